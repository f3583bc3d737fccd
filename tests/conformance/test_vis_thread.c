/*
 * test_vis_thread.c - VIS transfers by several threads: data right in all of them, an event
 * synchronised by another thread, armed peer completions that belong to their thread.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, VIS, threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

#if GASNET_PAR
enum { THREADS = 4, ITEMS = 3000, H_DONE = AQ_TEST_FREE };

static aq_test_count_t notices[THREADS], wrong;
static gex_Event_t handed[THREADS];

static void h_done(gex_Token_t token, void *buf, size_t nbytes)
{
    uint32_t thread = THREADS;

    (void)token;
    if (nbytes == sizeof(thread))
        memcpy(&thread, buf, sizeof(thread));
    atomic_fetch_add(thread < THREADS ? &notices[thread] : &wrong, 1);
}

/* A thread's place in a rank's segment, one for each writer. */
static char *place(gex_Rank_t to, int thread)
{
    return (char *)aq_test_base(to) + ((size_t)aq_test_me * THREADS + (size_t)thread) * ITEMS * 16;
}

static const ptrdiff_t remote_stride[1] = { 16 }, local_stride[1] = { 8 };
static const size_t count[1] = { ITEMS };

static void *worker(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const int rounds = aq_test_quick ? 5 : 40;
    const double until = aq_test_clock() + 2;
    uint64_t *out = malloc(ITEMS * 8), *in = malloc(ITEMS * 8);
    void *remote_list[64], *in_list[64];

    for (int round = 0; round < rounds && (round < 3 || aq_test_clock() < until); round++) {
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)(me + round) % 2);
        const uint64_t seed = (uint64_t)(me * 1000 + round);

        aq_test_fill(out, ITEMS * 8, seed);
        memset(in, 0, ITEMS * 8);
        if (round % 3 == 0) {
            gex_Event_Wait(gex_VIS_StridedPutNB(aq_test_tm, to, place(to, me), remote_stride, out,
                                                local_stride, 8, count, 1, 0));
            gex_VIS_StridedGetBlocking(aq_test_tm, in, local_stride, to, place(to, me),
                                       remote_stride, 8, count, 1, 0);
        } else {
            gex_VIS_StridedPutNBI(aq_test_tm, to, place(to, me), remote_stride, out, local_stride,
                                  8, count, 1, GEX_FLAG_ENABLE_LEAF_LC);
            gex_NBI_Wait(GEX_EC_LC, 0);
            memset(out, 0, ITEMS * 8);
            gex_NBI_Wait(GEX_EC_PUT, 0);
            gex_VIS_StridedGetNBI(aq_test_tm, in, local_stride, to, place(to, me), remote_stride, 8,
                                  count, 1, 0);
            gex_NBI_Wait(GEX_EC_GET, 0);
        }
        AQ_CHECK(aq_test_same(in, ITEMS * 8, seed));
        memset(in, 0, 512);
        for (int i = 0; i < 64; i++) {
            remote_list[i] = place(to, me) + 16 * i;
            in_list[i] = &in[i];
        }
        gex_VIS_IndexedGetBlocking(aq_test_tm, 64, in_list, 8, to, 64, remote_list, 8, 0);
        aq_test_fill(out, ITEMS * 8, seed);
        AQ_CHECK(memcmp(in, out, 512) == 0);
    }
    free(out);
    free(in);
    return NULL;
}

/* Each thread's arming follows its own put. */
static void *armed(void *arg)
{
    const uint32_t me = (uint32_t)(uintptr_t)arg;
    const gex_Rank_t to = aq_test_peer(1);
    uint64_t *out = calloc(ITEMS, 8);

    for (int round = 0; round < 20; round++) {
        gex_VIS_SetPeerCompletionHandler(H_DONE, &me, sizeof(me), 0);
        aq_test_relax();
        gex_VIS_StridedPutBlocking(aq_test_tm, to, place(to, (int)me), remote_stride, out,
                                   local_stride, 8, count, 1, 0);
        gex_VIS_StridedPutBlocking(aq_test_tm, to, place(to, (int)me), remote_stride, out,
                                   local_stride, 8, count, 1, 0);
    }
    free(out);
    return NULL;
}

/* Threads 0 and 2 start, threads 1 and 3 synchronise; the starters are gone by then. */
static uint64_t source[THREADS][ITEMS], seen[THREADS][ITEMS];

static void *start(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const gex_Rank_t to = aq_test_peer(1);

    aq_test_fill(source[me], sizeof(source[me]), (uint64_t)me);
    handed[me] = gex_VIS_StridedPutNB(aq_test_tm, to, place(to, me), remote_stride, source[me],
                                      local_stride, 8, count, 1, 0);
    return NULL;
}

static void *finish(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const gex_Rank_t to = aq_test_peer(1);

    gex_Event_Wait(handed[me]);
    gex_VIS_StridedGetBlocking(aq_test_tm, seen[me], local_stride, to, place(to, me), remote_stride,
                               8, count, 1, 0);
    AQ_CHECK(aq_test_same(seen[me], sizeof(seen[me]), (uint64_t)me));
    return NULL;
}

int main(int argc, char **argv)
{
    static gex_AM_Entry_t table[] = { AQ_ENTRY(H_DONE, h_done, AQ_MP, 0) };

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, 1);
    aq_test_segment((size_t)aq_test_n * THREADS * ITEMS * 16);
    rule("extended 16.2: transfers of several threads at a time");
    aq_test_threads(THREADS, worker);
    aq_test_barrier();
    rule("extended 11, 16.2: an armed peer completion belongs to its thread");
    aq_test_threads(THREADS, armed);
    for (int i = 0; i < THREADS; i++)
        aq_test_wait(&notices[i], 20);
    aq_test_barrier();
    for (int i = 0; i < THREADS; i++)
        AQ_CHECK_EQ(atomic_load(&notices[i]), 20);
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
    rule("extended 16.2: another thread synchronises what a thread that has ended started");
    aq_test_threads(THREADS, start);
    aq_test_threads(THREADS, finish);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
