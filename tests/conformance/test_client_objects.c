/*
 * test_client_objects.c - queries of client, endpoint and primordial team, client data of each
 * object, rank translation, progress-thread query.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, client, endpoints, teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <pthread.h>

static int a_client, a_ep, a_tm;
#if !GASNET_SEGMENT_EVERYTHING
static int a_seg;
#endif

static void check_cdata(void)
{
    AQ_CHECK(gex_Client_QueryCData(aq_test_client) == NULL);
    AQ_CHECK(gex_EP_QueryCData(aq_test_ep) == NULL);
    AQ_CHECK(gex_TM_QueryCData(aq_test_tm) == NULL);
    gex_Client_SetCData(aq_test_client, &a_client);
    gex_EP_SetCData(aq_test_ep, &a_ep);
    gex_TM_SetCData(aq_test_tm, &a_tm);
    AQ_CHECK(gex_Client_QueryCData(aq_test_client) == &a_client);
    AQ_CHECK(gex_EP_QueryCData(aq_test_ep) == &a_ep);
    AQ_CHECK(gex_TM_QueryCData(aq_test_tm) == &a_tm);
    gex_TM_SetCData(aq_test_tm, NULL);
    AQ_CHECK(gex_TM_QueryCData(aq_test_tm) == NULL);
    AQ_CHECK(gex_EP_QueryCData(aq_test_ep) == &a_ep);
#if !GASNET_SEGMENT_EVERYTHING
    AQ_CHECK(gex_Segment_QueryCData(aq_test_seg) == NULL);
    gex_Segment_SetCData(aq_test_seg, &a_seg);
    AQ_CHECK(gex_Segment_QueryCData(aq_test_seg) == &a_seg);
#endif
}

static void check_team(void)
{
    gex_Rank_t r;
    gex_EP_Location_t loc;

    AQ_CHECK(gex_TM_QueryClient(aq_test_tm) == aq_test_client);
    AQ_CHECK(gex_TM_QueryEP(aq_test_tm) == aq_test_ep);
    AQ_CHECK_EQ(gex_TM_QueryFlags(aq_test_tm), 0);
    for (r = 0; r < aq_test_n; r++) {
        AQ_CHECK_EQ(gex_TM_TranslateRankToJobrank(aq_test_tm, r), r);
        AQ_CHECK_EQ(gex_TM_TranslateJobrankToRank(aq_test_tm, r), r);
        loc = gex_TM_TranslateRankToEP(aq_test_tm, r, 0);
        AQ_CHECK(loc.gex_rank == r && loc.gex_ep_index == 0);
    }
}

static void check_progress_threads(gex_Flags_t flags)
{
    const gex_ProgressThreadInfo_t *info = NULL;
    unsigned int count = 77, i;
    pthread_t id;

    AQ_CHECK(gex_System_QueryProgressThreads(aq_test_client, NULL, &info, 0) != GASNET_OK);
    AQ_CHECK(gex_System_QueryProgressThreads(aq_test_client, &count, NULL, 0) != GASNET_OK);
    AQ_CHECK(gex_System_QueryProgressThreads(aq_test_client, &count, &info, 1) != GASNET_OK);
    if (!(flags & GEX_FLAG_DEFER_THREADS)) {
        AQ_CHECK_EQ(gex_System_QueryProgressThreads(aq_test_client, &count, &info, 0),
                    GASNET_ERR_RESOURCE);
        return;
    }
    AQ_CHECK_EQ(gex_System_QueryProgressThreads(aq_test_client, &count, &info, 0), GASNET_OK);
    rule("core 25: a receive thread is offered if its variable asks for it and its macro is there");
#ifdef GASNET_RCV_THREAD
    AQ_CHECK(GASNET_RCV_THREAD == 1 && GASNET_SND_THREAD == 1);
    AQ_CHECK(count == 1 && gex_System_QueryHiddenAMConcurrencyLevel() != 0);
#else
    AQ_CHECK(count == 0 && gex_System_QueryHiddenAMConcurrencyLevel() == 0);
#endif
    for (i = 0; i < count; i++) {
        AQ_CHECK_EQ(info[i].gex_thread_roles, GEX_THREAD_ROLE_RCV | GEX_THREAD_ROLE_SND);
        AQ_CHECK(info[i].gex_device_list != NULL && info[i].gex_device_list[0] != '\0');
        AQ_CHECK(info[i].gex_progress_arg != NULL);
        AQ_CHECK_EQ(pthread_create(&id, NULL, info[i].gex_progress_fn, info[i].gex_progress_arg),
                    0);
    }
}

int main(int argc, char **argv)
{
    /* Half of the runs, by the number of ranks, use the flag. */
    const char *ranks = getenv("AQ_TEST_RANKS");
    const gex_Flags_t flags = ranks != NULL && atoi(ranks) % 2 ? GEX_FLAG_DEFER_THREADS : 0;

#if GASNET_SEQ && (defined(GASNET_RCV_THREAD) || defined(GASNET_SND_THREAD))
#error "a sequential program has no service thread"
#endif
    if (flags & GEX_FLAG_DEFER_THREADS)
        setenv("GASNET_RCV_THREAD", "1", 1);
    aq_test_start_flags(&argc, &argv, 1, flags);
    rule("core 10: client: name and flags as passed");
    AQ_CHECK(strcmp(gex_Client_QueryName(aq_test_client), "AQ_TEST") == 0);
    AQ_CHECK_EQ(gex_Client_QueryFlags(aq_test_client), flags);
    AQ_CHECK(aq_test_client != GEX_CLIENT_INVALID && aq_test_tm != GEX_TM_INVALID);
    rule("core 13: primordial endpoint: owner, index 0, flags, no segment yet");
    AQ_CHECK(gex_EP_QueryClient(aq_test_ep) == aq_test_client);
    AQ_CHECK_EQ(gex_EP_QueryIndex(aq_test_ep), 0);
    AQ_CHECK_EQ(gex_EP_QueryFlags(aq_test_ep), 0);
#if !GASNET_SEGMENT_EVERYTHING
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == GEX_SEGMENT_INVALID);
#endif
    aq_test_segment(GASNET_PAGESIZE);
#if !GASNET_SEGMENT_EVERYTHING
    rule("core 13: the endpoint's segment is the attached one");
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == aq_test_seg && aq_test_seg != GEX_SEGMENT_INVALID);
#endif
    rule("core 10: client data of each object: NULL at first, then what was set, independent");
    check_cdata();
    rule("core 15.1: primordial team: owner, endpoint, translations");
    check_team();
    rule("core 25: progress threads: argument errors; RESOURCE without the flag at init");
    check_progress_threads(flags);
    return aq_test_finish();
}
