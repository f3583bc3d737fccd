/*
 * test_thread_teams.c - threads that split, use and destroy teams at the same time, each below a
 * team of its own; another one makes endpoints and asks where segments are.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, Teams; threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
enum { THREADS = 3, H_HIT = AQ_TEST_FREE, H_ACK };

static gex_TM_t parents[THREADS];
static aq_test_count_t acks[THREADS];
static int rounds;

static void h_hit(gex_Token_t token, gex_AM_Arg_t to, gex_AM_Arg_t thread)
{
    AQ_CHECK_EQ(to, aq_test_me);
    gex_AM_ReplyShort1(token, H_ACK, 0, thread);
}

static void h_ack(gex_Token_t token, gex_AM_Arg_t thread)
{
    (void)token;
    atomic_fetch_add(&acks[thread], 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_HIT, h_hit, AQ_SQ, 2),
                                  AQ_ENTRY(H_ACK, h_ack, AQ_SP, 1) };

/* Reversed order; every other round those of my parity only. */
static void one_round(int thread, int round)
{
    gex_TM_t tm = GEX_TM_INVALID;
    gex_Rank_t r, jobrank;
    int expected = atomic_load(&acks[thread]);

    gex_TM_Split(&tm, parents[thread], round % 2 ? (int)(aq_test_me % 2) : 0, -(int)aq_test_me,
                 NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (r = 0; r < gex_TM_QuerySize(tm); r++) {
        jobrank = gex_TM_TranslateRankToJobrank(tm, r);
        AQ_CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, jobrank), r);
        AQ_CHECK(r == 0 || jobrank < gex_TM_TranslateRankToJobrank(tm, r - 1));
        gex_AM_RequestShort2(tm, r, H_HIT, 0, jobrank, thread);
        gex_RMA_PutBlockingVal(tm, r,
                               (uint64_t *)aq_test_base(jobrank) + THREADS * aq_test_me + thread,
                               (uint64_t)round, 8, 0);
        expected++;
    }
    aq_test_wait(&acks[thread], expected);
    for (r = 0; r < gex_TM_QuerySize(tm); r++) {
        jobrank = gex_TM_TranslateRankToJobrank(tm, r);
        AQ_CHECK_EQ(
            gex_RMA_GetBlockingVal(
                tm, r, (uint64_t *)aq_test_base(jobrank) + THREADS * aq_test_me + thread, 8, 0),
            round);
    }
    gex_TM_Destroy(tm, NULL, 0);
}

static void *teams(void *arg)
{
    const int thread = (int)(intptr_t)arg;

    for (int i = 0; i < rounds && thread < THREADS; i++)
        one_round(thread, i);
    for (int i = 1; i < GASNET_MAXEPS && thread == THREADS; i++) {
        gex_EP_t ep = GEX_EP_INVALID;
        gex_Segment_t seg = GEX_SEGMENT_INVALID;
        uintptr_t size = 0;
        void *addr = NULL;

        AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, NULL, 4096, GEX_MK_HOST, 0),
                    GASNET_OK);
        AQ_CHECK_EQ(gex_EP_Create(&ep, aq_test_client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
        AQ_CHECK_EQ(gex_EP_BindSegment(ep, seg, 0), GASNET_OK);
        AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, &ep, 1, 0), GASNET_OK);
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(aq_test_ep, (gex_EP_Index_t)i),
                                                  aq_test_peer(1), &addr, NULL, &size, 0));
        AQ_CHECK(addr != NULL && size == 4096);
        gex_RMA_PutBlockingVal(gex_TM_Pair(ep, (gex_EP_Index_t)i), aq_test_peer(1), addr, 7, 8, 0);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(gex_TM_Pair(aq_test_ep, (gex_EP_Index_t)i),
                                           aq_test_peer(1), addr, 8, 0),
                    7);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(THREADS * 8 * (size_t)aq_test_n);
    rounds = aq_test_quick || aq_test_n > 8 ? 20 : 100;
    rule("core 7: threads make, use and end teams at once, each thread below a team of its own");
    for (i = 0; i < THREADS; i++)
        gex_TM_Split(&parents[i], aq_test_tm, 0, (int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    aq_test_threads(THREADS + 1, teams);
    aq_test_barrier();
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("needs a par build");
}
#endif
