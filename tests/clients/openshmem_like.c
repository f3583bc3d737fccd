/*
 * openshmem_like.c - a client in the manner of the OpenSHMEM reference implementation: GASNet-1,
 * medium handlers without arguments, a thread that only polls, named barriers with rising ids, and
 * no gasnet_exit() at all. Every rank prints "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !defined(GASNET_SEGMENT_FAST) && !defined(GASNET_SEGMENT_LARGE) \
    && !defined(GASNET_SEGMENT_EVERYTHING)
#error "a segment kind"
#endif

#define HANDLER_SWAP_OUT  128
#define HANDLER_SWAP_BACK 129

#define NEED(cond)                                                          \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fprintf(stderr, "rank %u: %s, line %d\n", me, #cond, __LINE__); \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

static gasnet_node_t me, nodes;
static gasnet_seginfo_t *seginfo;
static gasnet_hsl_t swap_lock = GASNET_HSL_INITIALIZER;
static volatile int stop;
static int barrier_id;

/* what travels: all of it in the payload */
struct swap {
    volatile int *done;
    long *result;
    long *target;
    long value;
};

static void on_swap_out(gasnet_token_t token, void *buf, size_t bytes)
{
    struct swap *swap = buf;
    gasnet_node_t from;

    NEED(bytes == sizeof(*swap) && gasnet_AMGetMsgSource(token, &from) == GASNET_OK
         && from < nodes);
    gasnet_hsl_lock(&swap_lock);
    const long old = *swap->target;
    *swap->target = swap->value;
    gasnet_hsl_unlock(&swap_lock);
    swap->value = old;
    gasnet_AMReplyMedium0(token, HANDLER_SWAP_BACK, swap, bytes);
}

static void on_swap_back(gasnet_token_t token, void *buf, size_t bytes)
{
    struct swap *swap = buf;

    (void)token, (void)bytes;
    *swap->result = swap->value;
    *swap->done = 1;
}

static gasnet_handlerentry_t handlers[] = {
    { HANDLER_SWAP_OUT, on_swap_out },
    { HANDLER_SWAP_BACK, on_swap_back },
};

static void barrier_all(void)
{
    barrier_id++;
    gasnet_barrier_notify(barrier_id, 0);
    NEED(gasnet_barrier_wait(barrier_id, 0) == GASNET_OK);
}

static long swap_with(gasnet_node_t pe, long *target, long value)
{
    volatile int done = 0;
    long result = -1;
    struct swap swap = { &done, &result, target, value };

    NEED(gasnet_AMRequestMedium0(pe, HANDLER_SWAP_OUT, &swap, sizeof(swap)) == GASNET_OK);
    GASNET_BLOCKUNTIL(done);
    return result;
}

static void *progress(void *arg)
{
    while (!stop)
        gasnet_AMPoll();
    return arg;
}

static void start(void)
{
    char name[] = "openshmem-like", *words[] = { name, NULL }, **argv = words;
    int argc = 1, rc;
    const size_t heap = 16 * GASNET_PAGESIZE;

    NEED((rc = gasnet_init(&argc, &argv)) == GASNET_OK);
    me = gasnet_mynode();
    nodes = gasnet_nodes();
    rc = gasnet_attach(handlers, sizeof(handlers) / sizeof(handlers[0]), heap, 0);
    if (rc != GASNET_OK) {
        fprintf(stderr, "attach: %s (%s)\n", gasnet_ErrorName(rc), gasnet_ErrorDesc(rc));
        exit(1);
    }
    gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK);
    seginfo = calloc(nodes, sizeof(*seginfo));
    NEED(gasnet_getSegmentInfo(seginfo, (int)nodes) == GASNET_OK && seginfo[me].size >= heap);
    NEED(gasnet_AMMaxMedium() >= sizeof(struct swap) && gasnet_getMaxLocalSegmentSize() >= heap);
    gasnet_nodeinfo_t *place = calloc(nodes, sizeof(*place));
    NEED(gasnet_getNodeInfo(place, (int)nodes) == GASNET_OK && place[me].host < nodes);
    free(place);
    barrier_all();
}

static void transfers(gasnet_node_t next, gasnet_node_t before)
{
    long *ours = seginfo[me].addr, *remote = seginfo[next].addr, back[16];
    gasnet_handle_t handles[4];

    for (int i = 0; i < 16; i++)
        back[i] = 1000L * me + i;
    gasnet_put(next, remote, back, 4 * sizeof(long));
    gasnet_put_bulk(next, remote + 4, back + 4, 4 * sizeof(long));
    gasnet_put_nbi(next, remote + 8, back + 8, 2 * sizeof(long));
    gasnet_put_nbi_bulk(next, remote + 10, back + 10, 2 * sizeof(long));
    gasnet_wait_syncnbi_puts();
    for (int i = 0; i < 4; i++)
        handles[i] = gasnet_put_nb_bulk(next, remote + 12 + i, back + 12 + i, sizeof(long));
    gasnet_wait_syncnb_all(handles, 4);
    gasnet_put_val(next, remote + 16, 77 + me, sizeof(long));
    gasnet_put_nbi_val(next, remote + 17, 99, 1);
    gasnet_wait_syncnbi_all();
    barrier_all();
    for (int i = 0; i < 16; i++)
        NEED(ours[i] == 1000L * before + i);
    NEED(ours[16] == (long)(77 + before) && *(char *)(ours + 17) == 99);
    memset(back, 0, sizeof(back));
    gasnet_get(back, next, remote, 4 * sizeof(long));
    gasnet_get_bulk(back + 4, next, remote + 4, 4 * sizeof(long));
    gasnet_get_nbi(back + 8, next, remote + 8, 4 * sizeof(long));
    gasnet_get_nbi_bulk(back + 12, next, remote + 12, 2 * sizeof(long));
    gasnet_handle_t last = gasnet_get_nb_bulk(back + 14, next, remote + 14, 2 * sizeof(long));
    gasnet_wait_syncnbi_all();
    while (gasnet_try_syncnb(last) != GASNET_OK) {
    }
    for (int i = 0; i < 16; i++)
        NEED(back[i] == 1000L * me + i);
    NEED(gasnet_get_val(next, remote + 16, sizeof(long)) == 77 + me);
}

int main(void)
{
    pthread_t poller;

    start();
    const gasnet_node_t next = (me + 1) % nodes, before = (me + nodes - 1) % nodes;
#ifdef GASNET_PAR
    NEED(pthread_create(&poller, NULL, progress, NULL) == 0);
#endif
    transfers(next, before);

    long *cell = (long *)seginfo[0].addr + 32;
    if (me == 0)
        *cell = -1;
    barrier_all();
    const long old = swap_with(0, cell, (long)me);
    NEED(old >= -1 && old < (long)nodes && old != (long)me);
    barrier_all();
#ifdef GASNET_PAR
    stop = 1;
    pthread_join(poller, NULL);
#else
    (void)poller, (void)progress;
#endif
    printf("%u of %u right\n", me, nodes);
    fflush(stdout);
    barrier_all();
    return 0; /* the job ends by returning from main */
}
