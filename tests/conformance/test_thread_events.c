/*
 * test_thread_events.c - events started by one thread and synchronised by another: roots, leaves,
 * regions, AM events, barriers; the split-phase barrier left by another thread than entered it.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, events and threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
enum { PAIRS = 2, SLOTS = 64, ROUNDS = 30, LEN = 700, H_M = AQ_TEST_FREE };

/* One starter and one syncer share a ring of slots. */
static struct ring {
    _Atomic(int) put, taken;
    gex_Event_t events[SLOTS];
    char out[SLOTS][LEN];
} rings[PAIRS];
static aq_test_count_t arrived;

static void h_m(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    AQ_CHECK(nbytes == LEN && aq_test_same(buf, nbytes, 77));
    atomic_fetch_add(&arrived, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_M, h_m, AQ_MQ, 0) };

static char *place(gex_Rank_t to, int pair, int slot)
{
    return (char *)aq_test_base(to) + ((size_t)pair * SLOTS + (size_t)slot) * LEN;
}

static gex_Event_t begin(int pair, int slot, int kind)
{
    const gex_Rank_t to = aq_test_peer(1);
    char *out = rings[pair].out[slot];
    gex_Event_t ev = GEX_EVENT_INVALID;

    switch (kind % 4) {
    case 0:
        aq_test_fill(out, LEN, 77);
        return gex_RMA_PutNB(aq_test_tm, to, place(to, pair, slot), out, LEN, GEX_EVENT_DEFER, 0);
    case 1:
        return gex_RMA_GetNB(aq_test_tm, out, to, place(to, pair, slot), LEN, 0);
    case 2:
        aq_test_fill(out, LEN, 77);
        gex_AM_RequestMedium0(aq_test_tm, to, H_M, out, LEN, &ev, 0);
        return ev;
    default:
        aq_test_fill(out, LEN, 77);
        gex_NBI_BeginAccessRegion(0);
        gex_RMA_PutNBI(aq_test_tm, to, place(to, pair, slot), out, LEN / 2, GEX_EVENT_DEFER, 0);
        gex_RMA_PutNBI(aq_test_tm, to, place(to, pair, slot) + LEN / 2, out + LEN / 2,
                       LEN - LEN / 2, GEX_EVENT_GROUP, 0);
        return gex_NBI_EndAccessRegion(0);
    }
}

static void starter(int pair)
{
    struct ring *ring = &rings[pair];
    int i, slot;

    for (i = 0; i < SLOTS * ROUNDS; i++) {
        slot = i % SLOTS;
        while (i - atomic_load(&ring->taken) >= SLOTS)
            aq_test_relax();
        ring->events[slot] = begin(pair, slot, i);
        atomic_store(&ring->put, i + 1);
    }
}

static void syncer(int pair)
{
    struct ring *ring = &rings[pair];
    int i, end;

    for (i = 0; i < SLOTS * ROUNDS; i = end) {
        while ((end = atomic_load(&ring->put)) == i)
            aq_test_relax();
        if (end / SLOTS != i / SLOTS)
            end = (i / SLOTS + 1) * SLOTS; /* arrays do not wrap */
        if (i % 3 == 0)
            gex_Event_WaitAll(&ring->events[i % SLOTS], (size_t)(end - i), 0);
        else
            for (int k = i; k < end; k++)
                aq_test_sync(ring->events[k % SLOTS]);
        atomic_store(&ring->taken, end);
    }
}

static void *pair_half(void *arg)
{
    const int n = (int)(intptr_t)arg;

    if (n % 2)
        syncer(n / 2);
    else
        starter(n / 2);
    return NULL;
}

static gex_Event_t shared_event;
static aq_test_count_t stage;

static void *barrier_half(void *arg)
{
    int i;

    for (i = 0; i < 20; i++) {
        if ((intptr_t)arg == 0) {
            shared_event = gex_Coll_BarrierNB(aq_test_tm, 0);
            atomic_store(&stage, 4 * i + 1);
            aq_test_wait(&stage, 4 * i + 2);
            gasnet_barrier_notify(i, 0);
            atomic_store(&stage, 4 * i + 3);
            aq_test_wait(&stage, 4 * i + 4);
        } else {
            aq_test_wait(&stage, 4 * i + 1);
            aq_test_sync(shared_event);
            atomic_store(&stage, 4 * i + 2);
            aq_test_wait(&stage, 4 * i + 3);
            AQ_CHECK_EQ(gasnet_barrier_wait(i, 0), GASNET_OK);
            atomic_store(&stage, 4 * i + 4);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)PAIRS * SLOTS * LEN);
    rule("extended 4.2: puts, gets, AM events and regions of one thread synced by another");
    aq_test_threads(2 * PAIRS, pair_half);
    aq_test_wait(&arrived, PAIRS * SLOTS * ROUNDS / 4);
    aq_test_barrier();
    rule("extended 14: barriers entered by one thread and left by another");
    aq_test_threads(2, barrier_half);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
