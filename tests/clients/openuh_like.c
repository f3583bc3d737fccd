/*
 * openuh_like.c - a client in the manner of OpenUH's coarray runtime: strided GASNet-1 transfers,
 * direct loads and stores in a neighbour's segment, its own limit for the segment. Every rank
 * prints "R of N right". SPDX-License-Identifier: BSD-3-Clause
 */
#define GASNET_PAR                 1
#define GASNETI_BUG1389_WORKAROUND 1
#define GASNET_VIS_AMPIPE          1
#define GASNET_VIS_MAXCHUNK        512
#define GASNET_VIS_REMOTECONTIG    1
#include <gasnet.h>
#include <gasnet_vis.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(cond)                                                          \
    do {                                                                    \
        if (!(cond)) {                                                      \
            fprintf(stderr, "rank %u: %s, line %d\n", me, #cond, __LINE__); \
            gasnet_exit(1);                                                 \
        }                                                                   \
    } while (0)

static gasnet_node_t me;
static volatile int answered;

static void on_medium(gasnet_token_t token, void *buf, size_t bytes, gasnet_handlerarg_t a)
{
    gasnet_AMReplyMedium1(token, 129, buf, bytes, a + 1);
}

static void on_answer(gasnet_token_t token, void *buf, size_t bytes, gasnet_handlerarg_t a)
{
    (void)token;
    NEED(bytes == 6 && memcmp(buf, "hello", 6) == 0 && a == 8);
    answered = 1;
}

int main(int argc, char **argv)
{
    gasnet_handlerentry_t table[] = { { 128, (void (*)(void))on_medium },
                                      { 129, (void (*)(void))on_answer } };

    gasnet_max_segsize = (uint64_t)8 << 20;
    NEED(gasnet_init(&argc, &argv) == GASNET_OK);
    me = gasnet_mynode();
    const gasnet_node_t nodes = gasnet_nodes(), next = (me + 1) % nodes,
                        before = (me + nodes - 1) % nodes;
    NEED(gasnet_attach(table, 2, 1 << 20, 0) == GASNET_OK);
    gasnet_seginfo_t *segment = calloc(nodes, sizeof(*segment));
    gasnet_nodeinfo_t *place = calloc(nodes, sizeof(*place));
    gasnet_getSegmentInfo(segment, (int)nodes);
    gasnet_getNodeInfo(place, (int)nodes);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);

    gasnet_AMRequestMedium1(next, 128, (void *)"hello", 6, 7);
    GASNET_BLOCKUNTIL(answered);

    /* a 3 by 4 section of doubles, out of a matrix of 10 columns into one of 7, non-negative nested
     * strides */
    double ours[3][10], back[3][7];
    double *remote_addr = segment[next].addr;
    const size_t count[3] = { sizeof(double), 4, 3 },
                 from[2] = { 2 * sizeof(double), sizeof(ours[0]) };
    const size_t to[2] = { sizeof(double), 7 * sizeof(double) };
    for (int i = 0; i < 30; i++)
        ours[i / 10][i % 10] = 100 * me + i;
    gasnet_puts_bulk(next, remote_addr, to, &ours[0][1], from, count, 2);
    memset(back, 0, sizeof(back));
    gasnet_handle_t get = gasnet_gets_nb_bulk(back, to, next, remote_addr, to, count, 2);
    gasnet_wait_syncnb(get);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            NEED(back[i][j] == ours[i][1 + 2 * j]);
    gasnet_hold_interrupts();
    gasnet_resume_interrupts();
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
#if GASNET_PSHM
    if (place[next].supernode == place[me].supernode) {
        double *direct = (double *)((uintptr_t)segment[next].addr + (uintptr_t)place[next].offset);
        NEED(direct[0] == ours[0][1]);
        direct[100] = me + 0.25;
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (place[before].supernode == place[me].supernode)
        NEED(((double *)segment[me].addr)[100] == before + 0.25);
#else
    (void)before;
#endif
    printf("%u of %u right\n", me, nodes);
    fflush(stdout);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(0);
}
