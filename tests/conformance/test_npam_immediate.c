/*
 * test_npam_immediate.c - GEX_FLAG_IMMEDIATE at Prepare and at Commit under a flood: a declined
 * call has no effect, an accepted message arrives, and after polls an attempt succeeds eventually.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, negotiated payload, immediate mode.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_M = AQ_TEST_FREE, H_L, H_REP, BATCH = 2000, LEN = 20000, PLACE = 1 << 16 };

static aq_test_count_t mediums, longs, replies;

static void h_rep(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, 4));
    atomic_fetch_add(&replies, 1);
}

/* A declined Prepare or Commit of a reply does not count: the handler may fall back to a form that
 * waits. */
static void h_m(gex_Token_t token, void *buf, size_t nbytes)
{
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareReplyMedium(token, NULL, 100, LEN, NULL, GEX_FLAG_IMMEDIATE, 0);
    size_t size;

    AQ_CHECK(aq_test_same(buf, nbytes, 3));
    if (sd == GEX_AM_SRCDESC_NO_OP)
        sd = gex_AM_PrepareReplyMedium(token, NULL, 100, LEN, NULL, 0, 0);
    size = gex_AM_SrcDescSize(sd);
    AQ_CHECK(size >= 100 && size <= LEN);
    aq_test_fill(gex_AM_SrcDescAddr(sd), size, 4);
    if (gex_AM_CommitReplyMedium0_v2(sd, H_REP, size, GEX_FLAG_IMMEDIATE) != 0) {
        AQ_CHECK_EQ(gex_AM_SrcDescSize(sd), size); /* still open, still what it was */
        AQ_CHECK_EQ(gex_AM_CommitReplyMedium0_v2(sd, H_REP, size, 0), 0);
    }
    atomic_fetch_add(&mediums, 1);
}

static void h_l(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, 3));
    atomic_fetch_add(&longs, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_M, h_m, AQ_MQ, 0),
    AQ_ENTRY(H_L, h_l, AQ_LQ, 0),
    AQ_ENTRY(H_REP, h_rep, AQ_MP, 0),
};

static gex_AM_SrcDesc_t prepare(int kind, gex_Rank_t to, const void *buf, gex_Event_t *event,
                                gex_Flags_t flags)
{
    const size_t limit = gex_AM_LUBRequestMedium(), upper = limit < LEN ? limit : LEN;

    switch (kind) {
    case 0:
        return gex_AM_PrepareRequestMedium(aq_test_tm, to, NULL, 0, LEN, NULL, flags, 0);
    case 1:
        return gex_AM_PrepareRequestMedium(aq_test_tm, to, NULL, upper, LEN, NULL, flags, 0);
    case 2:
        return gex_AM_PrepareRequestMedium(aq_test_tm, to, buf, LEN / 2, LEN, event, flags, 0);
    default:
        return gex_AM_PrepareRequestLong(aq_test_tm, to, NULL, 1, LEN, aq_test_base(to), NULL,
                                         flags, 0);
    }
}

static int commit(int kind, gex_AM_SrcDesc_t sd, gex_Rank_t to, size_t size, gex_Flags_t cflags)
{
    return kind < 3 ? gex_AM_CommitRequestMedium0_v2(sd, H_M, size, cflags)
                    : gex_AM_CommitRequestLong0_v2(sd, H_L, size, aq_test_base(to), cflags);
}

/* Returns 0 if it was declined at Prepare; else the message is sent, or was cancelled after a
 * Commit that was declined again and again, which returns -1. */
static int attempt(int kind, gex_Rank_t to, const void *buf, gex_Flags_t flags)
{
    gex_Event_t event = GEX_EVENT_NO_OP;
    gex_AM_SrcDesc_t sd = prepare(kind, to, buf, &event, flags);
    int tries;

    if (sd == GEX_AM_SRCDESC_NO_OP)
        return 0;
    if (kind != 2)
        aq_test_fill(gex_AM_SrcDescAddr(sd), gex_AM_SrcDescSize(sd), 3);
    for (tries = 0; commit(kind, sd, to, gex_AM_SrcDescSize(sd), GEX_FLAG_IMMEDIATE) != 0;
         tries++) {
        AQ_CHECK(event == GEX_EVENT_NO_OP);
        if (tries == 3) {
            AQ_CHECK_EQ(
                kind < 3 ? gex_AM_CancelRequestMedium(sd, 0) : gex_AM_CancelRequestLong(sd, 0), 0);
            return -1;
        }
    }
    if (kind == 2) {
        AQ_CHECK(event != GEX_EVENT_NO_OP);
        gex_Event_Wait(event);
    }
    return 1;
}

static void bunch(gex_Rank_t to, int kind, const void *buf, int count)
{
    int sent, tries, rc;

    for (sent = 0; sent < count; sent++) {
        for (tries = 0; tries < 1000; tries++) {
            rc = attempt(kind, to, buf, GEX_FLAG_IMMEDIATE);
            if (rc > 0)
                break;
            aq_test_relax(); /* no interval is open: polling is legal */
        }
        if (tries == 1000) /* the documented fall-back */
            while (attempt(kind, to, buf, 0) <= 0)
                aq_test_relax();
    }
}

int main(int argc, char **argv)
{
    static char buf[LEN];
    int count, kind;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    count = aq_test_quick ? BATCH / 20 : BATCH;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(PLACE);
    aq_test_fill(buf, LEN, 3);
    rule("core 26: IMMEDIATE Prepare and Commit: accepted messages arrive once, declined ones not "
         "at all");
    for (k = 0; k < 2; k++)
        for (kind = 0; kind < 4; kind++)
            bunch(aq_test_peer(k), kind, buf, count);
    aq_test_wait(&mediums, 6 * count);
    aq_test_wait(&longs, 2 * count);
    rule("core 30.14: a declined Prepare or Commit of a reply is not a reply; each request got "
         "exactly one");
    aq_test_wait(&replies, 6 * count);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&mediums), 6 * count);
    AQ_CHECK_EQ(atomic_load(&longs), 2 * count);
    AQ_CHECK_EQ(atomic_load(&replies), 6 * count);
    return aq_test_finish();
}
