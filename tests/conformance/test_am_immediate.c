/*
 * test_am_immediate.c - GEX_FLAG_IMMEDIATE: a declined call has no effect, an accepted one is
 * delivered, and after polling an attempt succeeds sooner or later.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, immediate mode.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_S = AQ_TEST_FREE, H_M, H_L, H_REP, BATCH = 3000, LEN = 1024 };

static aq_test_count_t shorts, mediums, longs, replies;

static void h_s(gex_Token_t token, gex_AM_Arg_t a)
{
    AQ_CHECK_EQ(a, 17);
    while (gex_AM_ReplyShort0(token, H_REP, GEX_FLAG_IMMEDIATE) != 0) {
        /* a declined reply does not count as one: fall back to the form that may block */
        AQ_CHECK_EQ(gex_AM_ReplyShort0(token, H_REP, 0), 0);
        break;
    }
    atomic_fetch_add(&shorts, 1);
}

static void h_m(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, LEN);
    AQ_CHECK(aq_test_same(buf, nbytes, 3));
    atomic_fetch_add(&mediums, 1);
}

static void h_l(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, LEN);
    AQ_CHECK(aq_test_same(buf, nbytes, 3));
    atomic_fetch_add(&longs, 1);
}

static void h_rep(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&replies, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_S, h_s, AQ_SQ, 1),
    AQ_ENTRY(H_M, h_m, AQ_MQ, 0),
    AQ_ENTRY(H_L, h_l, AQ_LQ, 0),
    AQ_ENTRY(H_REP, h_rep, AQ_SP, 0),
};

static int send_one(int kind, gex_Rank_t to, const void *buf)
{
    gex_Event_t ev = GEX_EVENT_INVALID;
    int rc;

    switch (kind) {
    case 0:
        return gex_AM_RequestShort1(aq_test_tm, to, H_S, GEX_FLAG_IMMEDIATE, 17);
    case 1:
        return gex_AM_RequestMedium0(aq_test_tm, to, H_M, buf, LEN, GEX_EVENT_NOW,
                                     GEX_FLAG_IMMEDIATE);
    case 2:
        rc = gex_AM_RequestMedium0(aq_test_tm, to, H_M, buf, LEN, &ev, GEX_FLAG_IMMEDIATE);
        if (rc == 0)
            gex_Event_Wait(ev);
        return rc;
    case 3:
        return gex_AM_RequestMedium0(aq_test_tm, to, H_M, buf, LEN, GEX_EVENT_GROUP,
                                     GEX_FLAG_IMMEDIATE);
    default:
        return gex_AM_RequestLong0(aq_test_tm, to, H_L, buf, LEN, aq_test_base(to), GEX_EVENT_NOW,
                                   GEX_FLAG_IMMEDIATE);
    }
}

/* Sends without any polling until one is declined, then polls and tries again. */
static void bunch(gex_Rank_t to, int kind, const void *buf, int count)
{
    int sent = 0, tries;

    while (sent < count) {
        for (tries = 0; tries < 1000 && send_one(kind, to, buf) != 0; tries++)
            aq_test_relax();
        if (tries == 1000) { /* the documented fall-back */
            if (kind == 0)
                gex_AM_RequestShort1(aq_test_tm, to, H_S, 0, 17);
            else if (kind < 4)
                gex_AM_RequestMedium0(aq_test_tm, to, H_M, buf, LEN, GEX_EVENT_NOW, 0);
            else
                gex_AM_RequestLong0(aq_test_tm, to, H_L, buf, LEN, aq_test_base(to), GEX_EVENT_NOW,
                                    0);
        }
        sent++;
    }
}

int main(int argc, char **argv)
{
    static char buf[LEN];
    const int count = aq_test_quick ? BATCH / 10 : BATCH;
    int kind, s = 0, m = 0, l = 0;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(LEN);
    aq_test_fill(buf, LEN, 3);
    rule("core 26: accepted IMMEDIATE messages are delivered once, declined ones not at all");
    for (k = 0; k < 2; k++)
        for (kind = 0; kind < 5; kind++) {
            bunch(aq_test_peer(k), kind, buf, count);
            s += kind == 0 ? count : 0;
            m += kind >= 1 && kind <= 3 ? count : 0;
            l += kind == 4 ? count : 0;
        }
    gex_NBI_Wait(GEX_EC_AM, 0);
    aq_test_wait(&shorts, s);
    aq_test_wait(&mediums, m);
    aq_test_wait(&longs, l);
    rule("core 20.5: a declined reply does not count; each request got exactly one");
    aq_test_wait(&replies, s);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&replies), s);
    AQ_CHECK_EQ(atomic_load(&shorts), s);
    AQ_CHECK_EQ(atomic_load(&mediums), m);
    AQ_CHECK_EQ(atomic_load(&longs), l);
    return aq_test_finish();
}
