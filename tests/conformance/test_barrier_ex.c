/*
 * test_barrier_ex.c - the EX barrier: nobody is through before all have entered, many outstanding
 * at once, writes before it are visible after it, progress by polling alone.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, barriers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { ROUNDS = 50, MANY = 1000, H_THROUGH = AQ_TEST_FREE };

static aq_test_count_t through;

static void h_through(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&through, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_THROUGH, h_through, AQ_SQ, 0) };

static void wait_somehow(gex_Event_t ev, int how)
{
    gex_Event_t two[2] = { GEX_EVENT_INVALID, ev };

    if (how == 0)
        gex_Event_Wait(ev);
    else if (how == 1)
        aq_test_sync(ev);
    else
        gex_Event_WaitAll(two, 2, 0);
}

/* Each rank announces its round in its own segment by a plain store, then enters. */
static void check_separation(void)
{
    uint64_t *ours = aq_test_base(aq_test_me), v;
    gex_Rank_t r;
    uint64_t round;

    for (round = 1; round <= ROUNDS; round++) {
        if (round % aq_test_n == aq_test_me)
            aq_test_relax(); /* somebody is late */
        *ours = round;
        if (round % 4 == 3)
            gex_Coll_BarrierBlocking(aq_test_tm, 0);
        else
            wait_somehow(gex_Coll_BarrierNB(aq_test_tm, 0), (int)round % 4);
        for (r = 0; r < aq_test_n; r++) {
            v = gex_RMA_GetBlockingVal(aq_test_tm, r, aq_test_base(r), 8, 0);
            AQ_CHECK(v >= round && v <= round + 1);
        }
    }
    gex_Coll_BarrierBlocking(aq_test_tm, 0);
}

static void check_many(int n)
{
    static gex_Event_t evs[MANY];
    int i;

    for (i = 0; i < n; i++)
        evs[i] = gex_Coll_BarrierNB(aq_test_tm, 0);
    /* Different ranks take them in different orders. */
    if (aq_test_me % 3 == 0) {
        gex_Event_WaitAll(evs, (size_t)n, 0);
    } else if (aq_test_me % 3 == 1) {
        for (i = n - 1; i >= 0; i--)
            gex_Event_Wait(evs[i]);
    } else {
        for (i = 0; i < n; i++)
            aq_test_sync(evs[i]);
    }
}

/* Rank 0 enters and then only polls; the others must get through. */
static void check_polling_rank(void)
{
    gex_Event_t ev = gex_Coll_BarrierNB(aq_test_tm, 0);

    if (aq_test_me != 0) {
        gex_Event_Wait(ev);
        gex_AM_RequestShort0(aq_test_tm, 0, H_THROUGH, 0);
    } else {
        aq_test_wait(&through, (int)aq_test_n - 1);
        gex_Event_Wait(ev);
    }
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(GASNET_PAGESIZE);
    memset(aq_test_base(aq_test_me), 0, 8);
    aq_test_barrier();
    rule("extended 14.1: nobody is through before all entered; stores before are visible after");
    check_separation();
    rule("extended 14.1: many outstanding barriers, synced in any order");
    check_many(aq_test_n > 8 ? 50 : aq_test_quick ? 100 : MANY);
    rule("extended 14.1: others get through while one rank only polls");
    check_polling_rank();
    return aq_test_finish();
}
