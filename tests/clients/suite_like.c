/*
 * suite_like.c - a client in the manner of the interface's own test suite: par.
 *
 * Includes gasnetex.h and the tools and no header of the system's; its printing functions are
 * defined behind GASNETT_FORMAT_PRINTF; its segment is sized by GASNETT_MAX_THREADS; it starts the
 * progress threads itself. Every rank prints "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <gasnet_ratomic.h>
#include <gasnet_tools.h>

#if !HAVE_PTHREAD_H || SIZEOF_INT != 4
#error "what the configuration says of the system"
#endif
#if GASNET_SUPPORTS_AM_CANCEL < 20240418L || GASNET_SUPPORTS_AM_COMMIT_V2 < 20240906L
#error "calls that may be cancelled"
#endif
#ifdef GASNET_RCV_THREAD
#define THREADS_WANTED 1
#else
#define THREADS_WANTED 0
#endif

#define SEGMENT (GASNETT_MAX_THREADS * (uintptr_t)65536)

static gex_Rank_t me, ranks;
static int failures;

GASNETT_FORMAT_PRINTF(suite_say, 2, 3, static void suite_say(int failed, const char *format, ...))
{
    va_list list;
    char text[BUFSIZ];

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    failures += failed;
    fprintf(failed ? stderr : stdout, "%s%s\n", failed ? "ERROR: " : "", text);
    fflush(NULL);
}

#define NEED(cond)                                                                        \
    do {                                                                                  \
        if (!(cond))                                                                      \
            suite_say(1, "rank %" PRIu32 " at %s:%i: %s", me, __FILE__, __LINE__, #cond); \
    } while (0)

GASNETT_INLINE(suite_round)
uintptr_t suite_round(uintptr_t size)
{
    return (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
}

GASNETT_NEVER_INLINE(suite_start_threads, static void suite_start_threads(gex_Client_t client))
{
    const gex_ProgressThreadInfo_t *info = NULL;
    unsigned int count = 0;

    NEED(gex_System_QueryProgressThreads(client, &count, &info, 0) == GASNET_OK);
    NEED(count >= THREADS_WANTED);
    for (unsigned int i = 0; i < count; i++) {
        pthread_t thread;

        NEED(info[i].gex_thread_roles != 0 && info[i].gex_device_list != NULL);
        NEED(info[i].gex_progress_fn != NULL && info[i].gex_progress_arg != NULL);
        NEED(pthread_create(&thread, NULL, info[i].gex_progress_fn, info[i].gex_progress_arg) == 0);
    }
}

static void suite_domain(gex_TM_t team)
{
    const gex_Flags_t flags = GEX_FLAG_PEER_SEG_OFFSET;
    gex_AD_t domain;

    gex_AD_Create(&domain, team, GEX_DT_I32, GEX_OP_ADD, flags);
    NEED(gex_AD_QueryFlags(domain) == flags);
    gex_AD_Destroy(domain);
}

static void suite_events(gex_TM_t team, gex_Segment_t segment)
{
    gex_Event_t events[2], leaf;
    int value = INT_MAX;

    events[0] =
        gex_RMA_PutNB(team, me, gex_Segment_QueryAddr(segment), &value, sizeof(value), &leaf, 0);
    events[1] = gex_Coll_BarrierNB(team, 0);
    gex_Event_QueryLeaf(events[0], GEX_EC_LC); /* none of these results is looked at */
    gex_Event_TestSome(events, 2, 0);          /* for what it does to the events */
    gex_Event_TestAll(events, 2, 0);
    gex_Event_WaitAll(events, 2, 0);
    NEED(*(int *)gex_Segment_QueryAddr(segment) == INT_MAX);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t team;
    gex_Segment_t segment;

    setenv("GASNET_ EXITTIMEOUT", "30", 0);
    setenv("GASNET_RCV_THREAD", "1", 1);
    NEED(gex_Client_Init(&client, &ep, &team, "suite", &argc, &argv, GEX_FLAG_DEFER_THREADS)
         == GASNET_OK);
    me = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);
    suite_start_threads(client);
    NEED(gex_System_QueryMaxThreads() >= GASNETT_MAX_THREADS);
    NEED(gasnet_getMaxLocalSegmentSize() >= SEGMENT);
    NEED(gex_Segment_Attach(&segment, team, suite_round(SEGMENT)) == GASNET_OK);
    suite_domain(team);
    suite_events(team, segment);
    if (failures == 0)
        suite_say(0, "%" PRIu32 " of %" PRIu32 " right", me, ranks);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gasnet_exit(failures != 0);
}
