/*
 * test_handler_register.c - the handler table: positional initialisers, fixed indices first, the
 * rest from 255 downwards in table order, caller's table free to reuse, several calls, error codes,
 * all slots. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, handlers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

static aq_test_count_t hits[256];

static void hit(gex_Token_t token)
{
    gex_Token_Info_t info;

    if (gex_Token_Info(token, &info, GEX_TI_ENTRY) & GEX_TI_ENTRY)
        atomic_fetch_add(&hits[info.gex_entry->gex_index], 1);
}

static void h_known(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&hits[0], 1);
}

static void check_order(void)
{
    /* As clients write it: position is everything. */
    gex_AM_Entry_t table[] = {
        { 0, (gex_AM_Fn_t)hit, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "first" },
        { 254, (gex_AM_Fn_t)hit, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "fixed" },
        { 0, (gex_AM_Fn_t)hit, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, "second" },
        { 200, (gex_AM_Fn_t)hit, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL },
        { 0, (gex_AM_Fn_t)hit, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, "data", "third" },
    };
    gex_AM_Entry_t before[AQ_LENGTH(table)];
    size_t i;

    memcpy(before, table, sizeof(table));
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, table, AQ_LENGTH(table)), GASNET_OK);
    AQ_CHECK_EQ(table[0].gex_index, 255);
    AQ_CHECK_EQ(table[1].gex_index, 254);
    AQ_CHECK_EQ(table[2].gex_index, 253);
    AQ_CHECK_EQ(table[3].gex_index, 200);
    AQ_CHECK_EQ(table[4].gex_index, 252);
    for (i = 0; i < AQ_LENGTH(table); i++) { /* the index is the only thing written */
        AQ_CHECK(table[i].gex_fnptr == before[i].gex_fnptr
                 && table[i].gex_flags == before[i].gex_flags);
        AQ_CHECK(table[i].gex_nargs == before[i].gex_nargs
                 && table[i].gex_cdata == before[i].gex_cdata);
        AQ_CHECK(table[i].gex_name == before[i].gex_name);
    }
    memset(table, 0xff, sizeof(table)); /* the library has its own copy */
}

static void check_errors(void)
{
    gex_AM_Entry_t dup = AQ_ENTRY(200, h_known, AQ_SQ, 0);
    gex_AM_Entry_t twice[2] = { AQ_ENTRY(180, h_known, AQ_SQ, 0),
                                AQ_ENTRY(180, h_known, AQ_SQ, 0) };
    gex_AM_Entry_t low = AQ_ENTRY(GEX_AM_INDEX_BASE - 1, h_known, AQ_SQ, 0);
    gex_AM_Entry_t one = AQ_ENTRY(181, h_known, AQ_SQ, 0);

    gex_System_SetVerboseErrors(0);
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, NULL, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, &one, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, NULL, 1), GASNET_ERR_BAD_ARG);
    AQ_CHECK(gex_EP_RegisterHandlers(aq_test_ep, &dup, 1) != GASNET_OK);
    AQ_CHECK(gex_EP_RegisterHandlers(aq_test_ep, twice, 2) != GASNET_OK);
    AQ_CHECK(gex_EP_RegisterHandlers(aq_test_ep, &low, 1) != GASNET_OK);
    gex_System_SetVerboseErrors(1);
}

/* Takes every slot that is left, in two calls, one after the segment is there. */
static int fill_rest(int count)
{
    gex_AM_Entry_t *table = calloc((size_t)count, sizeof(*table));
    int i, min = 255;

    for (i = 0; i < count; i++)
        table[i] = (gex_AM_Entry_t)AQ_ENTRY(0, hit, AQ_SQ, 0);
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, table, (size_t)count), GASNET_OK);
    for (i = 0; i < count; i++) {
        if (i > 0)
            AQ_CHECK(table[i].gex_index < table[i - 1].gex_index);
        min = table[i].gex_index < min ? table[i].gex_index : min;
    }
    free(table);
    return min;
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t known = AQ_ENTRY(190, h_known, AQ_SQ, 0);
    gex_AM_Entry_t again = AQ_ENTRY(180, hit, AQ_SQ, 0);
    int taken = AQ_TEST_OWN + 5 + 1, slots = 256 - GEX_AM_INDEX_BASE, i;

    aq_test_start(&argc, &argv, 1);
    rule("core 17.3: fixed indices first, others from 255 down in table order; only the index is "
         "written");
    check_order();
    rule("core 17.3: error codes: NULL table, duplicates, below the base; n == 0 succeeds");
    check_errors();
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, &known, 1), GASNET_OK);
    rule("core 17.3: many calls, before and after attach, until every slot is in use");
    /* The refused pair may or may not have left its first entry at 180; from here it is taken. */
    gex_System_SetVerboseErrors(0);
    gex_EP_RegisterHandlers(aq_test_ep, &again, 1);
    gex_System_SetVerboseErrors(1);
    taken++;
    fill_rest(10);
    aq_test_segment(GASNET_PAGESIZE);
    AQ_CHECK_EQ(fill_rest(slots - taken - 10), GEX_AM_INDEX_BASE + AQ_TEST_OWN);
    aq_test_barrier();
    rule("core 17: messages reach each of the handlers, by index, with the entry as registered");
    for (i = GEX_AM_INDEX_BASE + AQ_TEST_OWN; i < 256; i++)
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), (gex_AM_Index_t)i, 0);
    for (i = GEX_AM_INDEX_BASE + AQ_TEST_OWN; i < 256; i++)
        if (i != 190 && i != 180)
            aq_test_wait(&hits[i], 1);
    aq_test_wait(&hits[0], 1);
    aq_test_barrier();
    for (i = GEX_AM_INDEX_BASE + AQ_TEST_OWN; i < 256; i++)
        if (i != 190 && i != 180)
            AQ_CHECK_EQ(atomic_load(&hits[i]), 1);
    return aq_test_finish();
}
