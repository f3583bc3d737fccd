/*
 * chapel_like.c - a client in the manner of Chapel: EX start-up that says it uses GASNet-1, legacy
 * messages to handlers registered through EX, split barriers tried in a loop, tasks that test each
 * other's events, and one rank that ends the job for all. Every rank prints "R of N right".
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "rank %u: %s, line %d\n", (unsigned)gasnet_mynode(), #cond, __LINE__); \
            gasnet_exit(1);                                                                        \
        }                                                                                          \
    } while (0)

enum { FORK = 128, SIGNAL, FREE, REPLY_PUT, DONE_LONG };

static gex_Client_t client;
static gex_EP_t endpoint;
static gex_TM_t team;
static gex_Segment_t segment;
static gasnet_seginfo_t *seginfo;
static volatile int forks, signals, placed;
static void *hooked_base;
static uintptr_t hooked_size;

static void on_attach(void *base, uintptr_t size)
{
    hooked_base = base;
    hooked_size = size;
}
void (*gasnet_client_attach_hook)(void *, uintptr_t) = on_attach;

static void on_fork(gasnet_token_t token, void *buf, size_t bytes)
{
    NEED(bytes == 24 && memcmp(buf, "body of a task, copied.", 24) == 0);
    forks++;
    gasnet_AMReplyShort2(token, SIGNAL, 3, 4);
}

static void on_signal(gasnet_token_t token, gasnet_handlerarg_t a0, gasnet_handlerarg_t a1)
{
    (void)token;
    NEED(a0 == 3 && a1 == 4);
    signals++;
}

static void on_free(gasnet_token_t token, gasnet_handlerarg_t a0, gasnet_handlerarg_t a1)
{
    (void)token, (void)a0, (void)a1;
}

/* answers with a long reply out of memory that is in no segment */
static void on_reply_put(gasnet_token_t token, void *buf, size_t bytes, gasnet_handlerarg_t high,
                         gasnet_handlerarg_t low, gasnet_handlerarg_t size,
                         gasnet_handlerarg_t value)
{
    static char outside[512];
    void *dest = (void *)(uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);

    (void)buf, (void)bytes;
    memset(outside, value, (size_t)size);
    gasnet_AMReplyLong2(token, DONE_LONG, outside, (size_t)size, dest, high, low);
}

static void on_done_long(gasnet_token_t token, void *buf, size_t bytes, gasnet_handlerarg_t high,
                         gasnet_handlerarg_t low)
{
    (void)token, (void)high, (void)low;
    NEED(bytes == 300 && ((char *)buf)[299] == 42);
    placed = 1;
}

/* function pointers of several types, uncast where the language allows it */
static gex_AM_Entry_t handlers[] = {
    { FORK, (gex_AM_Fn_t)on_fork, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 0, NULL, "fork" },
    { SIGNAL, (gex_AM_Fn_t)on_signal, GEX_FLAG_AM_REQREP | GEX_FLAG_AM_SHORT, 2, NULL, "signal" },
    { FREE, (gex_AM_Fn_t)on_free, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 2, NULL, "free" },
    { REPLY_PUT, (gex_AM_Fn_t)on_reply_put, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 4, NULL,
      "reply put" },
    { DONE_LONG, (gex_AM_Fn_t)on_done_long, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_LONG, 2, NULL, "done" },
};

static void barrier(void)
{
    static int id;

    id++;
    gasnet_barrier_notify(id, 0);
    int rc;
    while ((rc = gasnet_barrier_try(id, 0)) == GASNET_ERR_NOT_READY)
        sched_yield();
    NEED(rc == GASNET_OK);
}

static void *waits_for_it(void *event)
{
    while (gex_Event_Test((gex_Event_t)event) != GASNET_OK)
        gasnet_AMPoll();
    return NULL;
}

static void transfers(gasnet_node_t next)
{
    char *remote_addr = seginfo[next].addr, data[64], back[64];
    void *events[3]; /* handles are kept as void * */
    const size_t none[1] = { 0 };
    pthread_t task;

    memset(data, 5, sizeof(data));
    for (int i = 0; i < 3; i++)
        events[i] =
            gex_RMA_PutNB(team, next, remote_addr + 64 * i, data, sizeof(data), GEX_EVENT_DEFER, 0);
    for (int live = 1; live;) {
        gex_Event_WaitSome((gex_Event_t *)events, 3, 0);
        live = 0;
        for (int i = 0; i < 3; i++)
            live |= events[i] != GEX_EVENT_INVALID;
    }
    NEED(gex_Event_TestSome((gex_Event_t *)events, 3, 0) == GASNET_OK);
    gex_Event_t get = gex_RMA_GetNB(team, back, next, remote_addr + 128, sizeof(back), 0);
    if (get != GEX_EVENT_INVALID) {
        NEED(pthread_create(&task, NULL, waits_for_it, get) == 0);
        pthread_join(task, NULL);
    }
    NEED(memcmp(data, back, sizeof(data)) == 0);

    const ptrdiff_t remote[1] = { 16 }, local_side[1] = { 8 };
    const size_t count[1] = { 4 };
    gex_VIS_StridedPutBlocking(team, next, remote_addr + 512, remote, data, local_side, 8, count, 1,
                               0);
    memset(back, 0, sizeof(back));
    gex_VIS_StridedGetBlocking(team, back, local_side, next, remote_addr + 512, remote, 8, count, 1,
                               0);
    NEED(memcmp(data, back, 32) == 0 && back[32] == 0);
    gex_VIS_StridedGetBlocking(team, back + 32, NULL, next, remote_addr, NULL, 32, none, 0, 0);
    NEED(memcmp(data, back, sizeof(data)) == 0);
}

int main(int argc, char **argv)
{
    gex_Rank_t hosts, count;
    gex_RankInfo_t *info;

    NEED(gex_Client_Init(&client, &endpoint, &team, "chapel", &argc, &argv, GEX_FLAG_USES_GASNET1)
         == GASNET_OK);
    const gasnet_node_t me = gasnet_mynode(), nodes = gasnet_nodes();
    const gasnet_node_t next = (me + 1) % nodes;
    gex_System_QueryHostInfo(&info, &hosts, NULL);
    gex_System_QueryNbrhdInfo(NULL, &count, NULL);
    NEED(hosts >= 1 && count >= 1 && gex_System_QueryMaxThreads() > 256);
    NEED(gex_Segment_Attach(&segment, team, 1 << 20) == GASNET_OK);
    gasnet_set_waitmode(GASNET_WAIT_BLOCK);
    seginfo = calloc(nodes, sizeof(*seginfo));
    NEED(gasnet_getSegmentInfo(seginfo, (int)nodes) == GASNET_OK);
    NEED(hooked_base == seginfo[me].addr && hooked_size == seginfo[me].size);
    NEED(gex_EP_RegisterHandlers(endpoint, handlers, sizeof(handlers) / sizeof(handlers[0]))
         == GASNET_OK);
    barrier();

    NEED(gasnet_AMRequestMedium0(next, FORK, (void *)"body of a task, copied.", 24) == GASNET_OK);
    NEED(gasnet_AMRequestShort2(next, FREE, 1, 2) == GASNET_OK);
    GASNET_BLOCKUNTIL(forks == 1 && signals == 1);
    char *dest = (char *)seginfo[me].addr + 65536;
    NEED(300 <= gasnet_AMMaxLongReply() && 4 <= gasnet_AMMaxMedium());
    gasnet_AMRequestMedium4(next, REPLY_PUT, NULL, 0,
                            (gasnet_handlerarg_t)((uint64_t)(uintptr_t)dest >> 32),
                            (gasnet_handlerarg_t)(uintptr_t)dest, 300, 42);
    GASNET_BLOCKUNTIL(placed);
    NEED(dest[0] == 42 && dest[300] == 0);
    transfers(next);

    int everybody = me == 0 ? 11 : 0;
    gex_Event_Wait(gex_Coll_BroadcastNB(team, 0, &everybody, &everybody, sizeof(everybody), 0));
    NEED(everybody == 11);
    printf("%u of %u right\n", me, nodes);
    fflush(stdout);
    barrier();
    if (me == 0)
        gasnet_exit(0); /* one locale ends it for all */
    for (;;)
        gasnet_AMPoll();
}
