/*
 * test_am_token.c - what a handler learns from its token, for every category and both directions.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, tokens.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_SQ = AQ_TEST_FREE, H_MQ, H_LQ, H_SP, H_MP, H_LP };

static aq_test_count_t seen;
static int context_of_ep;
static const char *const cdata_of_handler = "my handler data";

static gex_AM_Entry_t table[6];

/* Asks for everything, for each bit alone, and for nothing. */
static void check_token(gex_Token_t token, gex_AM_Index_t index, int is_req, int is_long,
                        gex_Rank_t from)
{
    const gex_TI_t bits[] = {
        GEX_TI_SRCRANK, GEX_TI_EP, GEX_TI_ENTRY, GEX_TI_IS_REQ, GEX_TI_IS_LONG, GEX_TI_ALL, 0
    };
    size_t i;

    for (i = 0; i < AQ_LENGTH(bits); i++) {
        gex_Token_Info_t info;
        gex_TI_t got;

        memset(&info, 0x5a, sizeof(info));
        got = gex_Token_Info(token, &info, bits[i]);
        AQ_CHECK((got & bits[i] & (GEX_TI_SRCRANK | GEX_TI_EP))
                 == (bits[i] & (GEX_TI_SRCRANK | GEX_TI_EP)));
        if (got & bits[i] & GEX_TI_SRCRANK)
            AQ_CHECK_EQ(info.gex_srcrank, from);
        if (got & bits[i] & GEX_TI_EP) {
            AQ_CHECK(info.gex_ep == aq_test_ep);
            AQ_CHECK_PTR(gex_EP_QueryCData(info.gex_ep), &context_of_ep);
        }
        if (got & bits[i] & GEX_TI_ENTRY) {
            AQ_CHECK_EQ(info.gex_entry->gex_index, index);
            AQ_CHECK(info.gex_entry->gex_fnptr == table[index - H_SQ].gex_fnptr);
            AQ_CHECK_EQ(info.gex_entry->gex_flags, table[index - H_SQ].gex_flags);
            AQ_CHECK_EQ(info.gex_entry->gex_nargs, 1);
            AQ_CHECK_PTR(info.gex_entry->gex_cdata, cdata_of_handler);
            AQ_CHECK_PTR(info.gex_entry->gex_name, table[index - H_SQ].gex_name);
            AQ_CHECK(info.gex_entry < table || info.gex_entry >= table + 6);
        }
        if (got & bits[i] & GEX_TI_IS_REQ)
            AQ_CHECK_EQ(info.gex_is_req, is_req);
        if (got & bits[i] & GEX_TI_IS_LONG)
            AQ_CHECK_EQ(info.gex_is_long, is_long);
#if GASNET_SUPPORTS_TI_ENTRY
        AQ_CHECK(!(bits[i] & GEX_TI_ENTRY) || (got & GEX_TI_ENTRY));
#endif
#if GASNET_SUPPORTS_TI_IS_REQ
        AQ_CHECK(!(bits[i] & GEX_TI_IS_REQ) || (got & GEX_TI_IS_REQ));
#endif
#if GASNET_SUPPORTS_TI_IS_LONG
        AQ_CHECK(!(bits[i] & GEX_TI_IS_LONG) || (got & GEX_TI_IS_LONG));
#endif
    }
}

static void *my_end(gex_Token_t token)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return (char *)aq_test_base(info.gex_srcrank) + GASNET_PAGESIZE / 2;
}

static void h_sq(gex_Token_t token, gex_AM_Arg_t from)
{
    check_token(token, H_SQ, 1, 0, (gex_Rank_t)from);
    gex_AM_ReplyShort1(token, H_SP, 0, aq_test_me);
    check_token(token, H_SQ, 1, 0, (gex_Rank_t)from); /* still a valid token */
}

static void h_mq(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from)
{
    check_token(token, H_MQ, 1, 0, (gex_Rank_t)from);
    gex_AM_ReplyMedium1(token, H_MP, buf, nbytes, GEX_EVENT_NOW, 0, aq_test_me);
    check_token(token, H_MQ, 1, 0, (gex_Rank_t)from);
}

static void h_lq(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from)
{
    check_token(token, H_LQ, 1, 1, (gex_Rank_t)from);
    gex_AM_ReplyLong1(token, H_LP, buf, nbytes, my_end(token), GEX_EVENT_NOW, 0, aq_test_me);
    check_token(token, H_LQ, 1, 1, (gex_Rank_t)from);
}

static void h_sp(gex_Token_t token, gex_AM_Arg_t from)
{
    check_token(token, H_SP, 0, 0, (gex_Rank_t)from);
    atomic_fetch_add(&seen, 1);
}

static void h_mp(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from)
{
    (void)buf;
    AQ_CHECK_EQ(nbytes, 5);
    check_token(token, H_MP, 0, 0, (gex_Rank_t)from);
    atomic_fetch_add(&seen, 1);
}

static void h_lp(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from)
{
    (void)buf;
    AQ_CHECK_EQ(nbytes, 5);
    check_token(token, H_LP, 0, 1, (gex_Rank_t)from);
    atomic_fetch_add(&seen, 1);
}

static gex_AM_Entry_t table[6] = {
    AQ_ENTRY(H_SQ, h_sq, AQ_SQ, 1), AQ_ENTRY(H_MQ, h_mq, AQ_MQ, 1), AQ_ENTRY(H_LQ, h_lq, AQ_LQ, 1),
    AQ_ENTRY(H_SP, h_sp, AQ_SP, 1), AQ_ENTRY(H_MP, h_mp, AQ_MP, 1), AQ_ENTRY(H_LP, h_lp, AQ_LP, 1),
};

int main(int argc, char **argv)
{
    gex_Rank_t r;
    size_t i;

    aq_test_start(&argc, &argv, 1);
    for (i = 0; i < AQ_LENGTH(table); i++)
        table[i].gex_cdata = cdata_of_handler;
    gex_EP_SetCData(aq_test_ep, &context_of_ep);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(GASNET_PAGESIZE);
    rule("core 19: gex_Token_Info: source jobrank, endpoint handle, entry, is_req, is_long; any "
         "mask");
    for (r = 0; r < aq_test_n; r++) {
        gex_AM_RequestShort1(aq_test_tm, r, H_SQ, 0, aq_test_me);
        gex_AM_RequestMedium1(aq_test_tm, r, H_MQ, "01234", 5, GEX_EVENT_NOW, 0, aq_test_me);
        gex_AM_RequestLong1(aq_test_tm, r, H_LQ, "56789", 5, aq_test_base(r), GEX_EVENT_NOW, 0,
                            aq_test_me);
    }
    aq_test_wait(&seen, 3 * (int)aq_test_n);
    rule("core 19: the same through a TM-pair");
    for (r = 0; r < aq_test_n; r++)
        gex_AM_RequestShort1(gex_TM_Pair(aq_test_ep, 0), r, H_SQ, 0, aq_test_me);
    aq_test_wait(&seen, 4 * (int)aq_test_n);
    return aq_test_finish();
}
