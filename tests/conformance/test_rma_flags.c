/*
 * test_rma_flags.c - IMMEDIATE, also of large transfers to a peer that does not poll, locality and
 * segment assertions, zero lengths on every form. Ranks 1+. Conduits all. Source GASNet-EX
 * specification 0.19, RMA flags. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_vis.h"

#include <sched.h>

enum { LEN = 256, BURST = 2000 };

static char out[LEN], in[LEN];

/* One operation of each form; returns false if it was declined. */
static bool try_put(int form, gex_Rank_t to, gex_Flags_t flags)
{
    char *there = aq_test_base(to);
    gex_Event_t ev;

    switch (form) {
    case 0:
        return gex_RMA_PutBlocking(aq_test_tm, to, there, out, LEN, flags) == 0;
    case 1:
        ev = gex_RMA_PutNB(aq_test_tm, to, there, out, LEN, GEX_EVENT_NOW, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    case 2:
        if (gex_RMA_PutNBI(aq_test_tm, to, there, out, LEN, GEX_EVENT_NOW, flags) != 0)
            return false;
        gex_NBI_Wait(GEX_EC_PUT, 0);
        return true;
    default:
        ev = gex_RMA_PutNBVal(aq_test_tm, to, there, 0x4142434445464748u, 8, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    }
}

static bool try_get(int form, gex_Rank_t from, gex_Flags_t flags)
{
    char *there = aq_test_base(from);
    gex_Event_t ev;

    switch (form) {
    case 0:
        return gex_RMA_GetBlocking(aq_test_tm, in, from, there, LEN, flags) == 0;
    case 1:
        ev = gex_RMA_GetNB(aq_test_tm, in, from, there, LEN, flags);
        if (ev == GEX_EVENT_NO_OP)
            return false;
        gex_Event_Wait(ev);
        return true;
    default:
        if (gex_RMA_GetNBI(aq_test_tm, in, from, there, LEN, flags) != 0)
            return false;
        gex_NBI_Wait(GEX_EC_GET, 0);
        return true;
    }
}

static void check_flags(gex_Rank_t to, gex_Flags_t flags)
{
    int form, tries;

    for (form = 0; form < 4; form++) {
        aq_test_fill(out, LEN, (uint64_t)form + flags);
        for (tries = 0; tries < 1000 && !try_put(form, to, flags); tries++)
            aq_test_relax();
        if (tries == 1000)
            AQ_CHECK(try_put(form, to, flags & ~GEX_FLAG_IMMEDIATE));
        memset(in, 0, LEN);
        for (tries = 0; tries < 1000 && !try_get(form % 3, to, flags); tries++)
            aq_test_relax();
        if (tries == 1000)
            AQ_CHECK(try_get(form % 3, to, flags & ~GEX_FLAG_IMMEDIATE));
        if (form < 3)
            AQ_CHECK(memcmp(out, in, LEN) == 0);
        else
            AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, aq_test_base(to), 8, flags),
                        0x4142434445464748);
    }
}

/* Many without any polling: some may be declined; those leave no trace, the others all arrive. */
static void immediate_burst(gex_Rank_t to)
{
    uint64_t *there = aq_test_base(to), last[8] = { 0 };
    int i;

    for (i = 0; i < 8; i++)
        gex_RMA_PutBlockingVal(aq_test_tm, to, &there[i], 0, 8, 0);
    for (i = 1; i <= BURST; i++) {
        if (i % 8 == 0) /* a slot is written again only after its last put is complete */
            gex_NBI_Wait(GEX_EC_PUT, 0);
        if (gex_RMA_PutNBIVal(aq_test_tm, to, &there[i % 8], (gex_RMA_Value_t)i, 8,
                              GEX_FLAG_IMMEDIATE)
            == 0)
            last[i % 8] = (uint64_t)i;
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (i = 0; i < 8; i++)
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, &there[i], 8, 0), last[i]);
}

static void zero_lengths(gex_Rank_t to)
{
    void *const wild = (void *)(uintptr_t)0x10;
    gex_Event_t lc = GEX_EVENT_INVALID;

    AQ_CHECK_EQ(gex_RMA_PutBlocking(aq_test_tm, to, wild, NULL, 0, 0), 0);
    AQ_CHECK_EQ(gex_RMA_PutBlocking(aq_test_tm, to, NULL, wild, 0, 0), 0);
    AQ_CHECK(gex_RMA_PutNB(aq_test_tm, to, wild, wild, 0, &lc, 0) == GEX_EVENT_INVALID);
    AQ_CHECK(lc == GEX_EVENT_INVALID);
    AQ_CHECK(gex_RMA_PutNB(aq_test_tm, to, NULL, NULL, 0, GEX_EVENT_NOW, 0) == GEX_EVENT_INVALID);
    AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, wild, NULL, 0, GEX_EVENT_DEFER, 0), 0);
    AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, wild, NULL, 0, GEX_EVENT_GROUP, 0), 0);
    AQ_CHECK_EQ(gex_RMA_GetBlocking(aq_test_tm, wild, to, NULL, 0, 0), 0);
    AQ_CHECK(gex_RMA_GetNB(aq_test_tm, NULL, to, wild, 0, 0) == GEX_EVENT_INVALID);
    AQ_CHECK_EQ(gex_RMA_GetNBI(aq_test_tm, wild, to, wild, 0, 0), 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* --- large ones, while the peer does not poll --- */

enum { RUN = 131072, RUNS = 128 }; /* more fragments than any queue holds */

static char large[RUN * RUNS], got[RUN * RUNS];

/* A put, a get, runs and a put whose source must be free: declined or under way. The puts write the
 * same bytes. */
static void start_all(gex_Rank_t to, char *there, gex_Event_t events[4])
{
    const ptrdiff_t apart[1] = { RUN };
    const size_t count[1] = { RUNS };

    events[0] = gex_RMA_PutNB(aq_test_tm, to, there, large, sizeof(large), GEX_EVENT_DEFER,
                              GEX_FLAG_IMMEDIATE);
    events[1] = gex_RMA_GetNB(aq_test_tm, got, to, there, sizeof(large), GEX_FLAG_IMMEDIATE);
    events[2] = gex_VIS_StridedPutNB(aq_test_tm, to, there, apart, large, apart, RUN - 8, count, 1,
                                     GEX_FLAG_IMMEDIATE);
    events[3] = gex_RMA_PutNB(aq_test_tm, to, there, large, sizeof(large), GEX_EVENT_NOW,
                              GEX_FLAG_IMMEDIATE);
}

/* Rank 0 starts them; rank 1 looks at a word of its memory, which rank 0 writes when it is through.
 * */
static void large_immediate(void)
{
    void *here = NULL, *other = NULL;
    gex_Event_t events[4] = { GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID,
                              GEX_EVENT_INVALID };
    char *there = aq_test_base(1 % aq_test_n);
    bool put = false;
    int i;

    gex_Segment_QueryBound(aq_test_tm, 1 % aq_test_n, NULL, &here, NULL);
    gex_Segment_QueryBound(aq_test_tm, 0, NULL, &other, NULL);
    if (aq_test_me < 2 && aq_test_n > 1 && here != NULL && other != NULL) {
        aq_test_count_t *through = here; /* both see the same word */

        rule("extended 7: IMMEDIATE never waits for a peer that does not poll");
        if (aq_test_me == 0) {
            aq_test_fill(large, sizeof(large), 11);
            start_all(1, there + 64, events);
            put = events[0] != GEX_EVENT_NO_OP;
            for (i = 0; i < 4; i++)
                if (events[i] == GEX_EVENT_NO_OP)
                    events[i] = GEX_EVENT_INVALID;
            atomic_store(through, 1);
        }
        while (aq_test_me == 1 && atomic_load(through) == 0)
            sched_yield();
        gex_Event_WaitAll(events, 4, 0);
        if (aq_test_me == 0 && put) {
            gex_RMA_GetBlocking(aq_test_tm, got, 1, there + 64, sizeof(got), 0);
            AQ_CHECK(aq_test_same(got, sizeof(got), 11));
        }
    }
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_Rank_t k, to;

    aq_test_start(&argc, &argv, 1);
    rule("extended 6.5: zero length: no address is looked at, no segment needed, NB gives INVALID");
    zero_lengths(aq_test_me);
    zero_lengths(aq_test_peer(1));
    aq_test_segment(sizeof(large) + 4096);
    large_immediate();
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        to = aq_test_peer(k);
        rule("extended 7: no flags; IMMEDIATE with polling in between succeeds or falls back");
        check_flags(to, 0);
        check_flags(to, GEX_FLAG_IMMEDIATE);
        immediate_burst(to);
        rule("extended 7.3: true segment assertions are tolerated");
        check_flags(to, GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_PEER_SEG_BOUND);
        check_flags(to, GEX_FLAG_PEER_SEG_UNKNOWN);
        check_flags(to, GEX_FLAG_PEER_SEG_SOME);
        rule("extended 7.1: PEER_NEVER_SELF, true");
        if (to != aq_test_me)
            check_flags(to, GEX_FLAG_PEER_NEVER_SELF);
        rule("extended 6.5: zero length: no address is looked at, no segment needed, NB gives "
             "INVALID");
        zero_lengths(to);
        aq_test_barrier();
    }
    return aq_test_finish();
}
