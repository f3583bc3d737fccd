/*
 * test_thread_nbi.c - implicit operations and access regions belong to a thread: what one thread
 * does with them neither needs nor disturbs the others.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, implicit operations.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
enum { THREADS = 4, OPS = 200, ROUNDS = 10, LEN = 64 };

static aq_test_count_t region_open, other_done;

static char *place(gex_Rank_t to, int thread, int op)
{
    return (char *)aq_test_base(to) + ((size_t)thread * OPS + (size_t)op) * LEN;
}

/* Puts, syncs, and reads back; every other thread does it inside a region. */
static void *worker(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const gex_Rank_t to = aq_test_peer((gex_Rank_t)me % 2);
    char(*out)[LEN] = malloc(2 * OPS * sizeof(*out)), (*in)[LEN] = out + OPS;
    int round, i;

    for (round = 0; round < ROUNDS; round++) {
        const uint64_t seed = (uint64_t)(me * 1000 + round);

        if (me % 2)
            gex_NBI_BeginAccessRegion(0);
        for (i = 0; i < OPS; i++) {
            aq_test_fill(out[i], LEN, seed + (uint64_t)i);
            gex_RMA_PutNBI(aq_test_tm, to, place(to, me, i), out[i], LEN, GEX_EVENT_DEFER, 0);
        }
        if (me % 2)
            gex_Event_Wait(gex_NBI_EndAccessRegion(0));
        else
            gex_NBI_Wait(GEX_EC_PUT, 0);
        for (i = 0; i < OPS; i++)
            gex_RMA_GetNBI(aq_test_tm, in[i], to, place(to, me, i), LEN, 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
        for (i = 0; i < OPS; i++)
            AQ_CHECK(aq_test_same(in[i], LEN, seed + (uint64_t)i));
    }
    free(out);
    return NULL;
}

/* Thread 0 keeps a region open while thread 1 starts and syncs operations of its own. */
static void *open_or_sync(void *arg)
{
    static uint64_t a[8], b[8];
    gex_Event_t region;
    int i;

    if ((intptr_t)arg == 0) {
        gex_NBI_BeginAccessRegion(0);
        for (i = 0; i < 8; i++)
            gex_RMA_PutNBIVal(aq_test_tm, aq_test_peer(1), place(aq_test_peer(1), 0, i), 5, 8, 0);
        atomic_store(&region_open, 1);
        aq_test_wait(&other_done, 1);
        for (i = 0; i < 8; i++)
            gex_RMA_GetNBI(aq_test_tm, &a[i], aq_test_me, place(aq_test_me, 2, i), 8, 0);
        region = gex_NBI_EndAccessRegion(0);
        gex_Event_Wait(region);
        return NULL;
    }
    aq_test_wait(&region_open, 1);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* nothing of mine is outstanding */
    for (i = 0; i < 8; i++)
        gex_RMA_GetNBI(aq_test_tm, &b[i], aq_test_peer(1), place(aq_test_peer(1), 1, i), 8, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    atomic_store(&other_done, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)THREADS * OPS * LEN);
    rule("extended 5: a thread's sync covers its own operations; data right in all threads");
    aq_test_threads(THREADS, worker);
    aq_test_barrier();
    rule("extended 5: an open region of one thread does not concern another");
    aq_test_threads(2, open_or_sync);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
