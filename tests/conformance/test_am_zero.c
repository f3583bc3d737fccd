/*
 * test_am_zero.c - AMs without bytes: NULL sources are fine, a Long's dest reaches the handler bit
 * for bit whatever it is, and no segment is needed.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_MED = AQ_TEST_FREE, H_MED_REP, H_LONG, H_LONG_REP };

static aq_test_count_t med, med_rep, lng, lng_rep;

static void h_med(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    (void)buf;
    AQ_CHECK_EQ(nbytes, 0);
    AQ_CHECK_EQ(a, 42);
    gex_AM_ReplyMedium1(token, H_MED_REP, NULL, 0, GEX_EVENT_NOW, 0, 43);
    atomic_fetch_add(&med, 1);
}

static void h_med_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    (void)token;
    (void)buf;
    AQ_CHECK_EQ(nbytes, 0);
    AQ_CHECK_EQ(a, 43);
    atomic_fetch_add(&med_rep, 1);
}

static void h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    AQ_CHECK_EQ(nbytes, 0);
    AQ_CHECK_PTR(buf, aq_test_pointer(hi, lo));
    gex_AM_ReplyLong2(token, H_LONG_REP, NULL, 0, buf, GEX_EVENT_NOW, 0, hi, lo);
    atomic_fetch_add(&lng, 1);
}

static void h_long_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t hi,
                       gex_AM_Arg_t lo)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, 0);
    AQ_CHECK_PTR(buf, aq_test_pointer(hi, lo));
    atomic_fetch_add(&lng_rep, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_MED, h_med, AQ_MQ, 1),
    AQ_ENTRY(H_MED_REP, h_med_rep, AQ_MP, 1),
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 2),
    AQ_ENTRY(H_LONG_REP, h_long_rep, AQ_LP, 2),
};

static int long_round(void *own)
{
    void *const dest[] = { NULL, (void *)1, (void *)(intptr_t)-1, (void *)(uintptr_t)0xdeadbeef01u,
                           own,  &lng };
    size_t i;
    gex_Rank_t k;

    for (k = 0; k < 2; k++)
        for (i = 0; i < AQ_LENGTH(dest); i++)
            AQ_CHECK_EQ(gex_AM_RequestLong2(aq_test_tm, aq_test_peer(k), H_LONG,
                                            i % 2 ? (const void *)(intptr_t)-8 : NULL, 0, dest[i],
                                            GEX_EVENT_NOW, 0, AQ_HI(dest[i]), AQ_LO(dest[i])),
                        0);
    return 2 * (int)AQ_LENGTH(dest);
}

int main(int argc, char **argv)
{
    gex_Event_t ev;
    int sent;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 20.4: Medium of 0 bytes: NULL or wild src is ignored; NOW, GROUP and event forms");
    for (k = 0; k < 2; k++) {
        gex_AM_RequestMedium1(aq_test_tm, aq_test_peer(k), H_MED, NULL, 0, GEX_EVENT_NOW, 0, 42);
        gex_AM_RequestMedium1(aq_test_tm, aq_test_peer(k), H_MED, (void *)(uintptr_t)64, 0,
                              GEX_EVENT_GROUP, 0, 42);
        ev = GEX_EVENT_NO_OP;
        gex_AM_RequestMedium1(aq_test_tm, aq_test_peer(k), H_MED, NULL, 0, &ev, 0, 42);
        AQ_CHECK(ev != GEX_EVENT_NO_OP);
        gex_Event_Wait(ev);
    }
    gex_NBI_Wait(GEX_EC_AM, 0);
    aq_test_wait(&med, 6);
    aq_test_wait(&med_rep, 6);

    rule("core 20.4: Long of 0 bytes needs no segment; dest arrives bit for bit, NULL and garbage "
         "too");
    sent = long_round(&ev);
    aq_test_wait(&lng, sent);
    aq_test_wait(&lng_rep, sent);
    rule("core 20.4: the same once segments are attached: dest is not translated");
    aq_test_segment(GASNET_PAGESIZE);
    sent += long_round(aq_test_base(aq_test_peer(1)));
    aq_test_wait(&lng, sent);
    aq_test_wait(&lng_rep, sent);
    return aq_test_finish();
}
