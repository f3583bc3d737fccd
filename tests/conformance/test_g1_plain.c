/*
 * test_g1_plain.c - the least and the most that gasnet_attach takes: no arguments at all, 128 rows
 * without an index, a segment of no size, any value where the segment does not matter; a return
 * from main. Uses nothing of the harness, and nothing but gasnet.h.
 * Ranks 1+. Conduits all. Source GASNet specification 1.8, job control.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 128 };

static volatile int seen;

static void h_any(gasnet_token_t token, int i)
{
    gasnet_node_t source;

    gasnet_AMGetMsgSource(token, &source);
    seen += (source + 1) % gasnet_nodes() == gasnet_mynode() && i >= 128;
}

static int number;

static void check(int truth, const char *what)
{
    if (!truth) {
        printf("not ok %d - %s\n", ++number, what);
        fflush(stdout);
        gasnet_exit(1);
    }
    if (gasnet_mynode() == 0)
        printf("ok %d - %s\n", ++number, what);
}

int main(int argc, char **argv)
{
    gasnet_handlerentry_t table[ROWS];
    gasnet_seginfo_t *info;
    int i, right = 1;

    (void)argc;
    (void)argv;
    for (i = 0; i < ROWS; i++) {
        table[i].index = 0;
        table[i].fnptr = (gex_AM_Fn_t)h_any;
    }
    if (gasnet_init(NULL, NULL) != GASNET_OK)
        return 1;
#if GASNET_SEGMENT_EVERYTHING
    check(gasnet_attach(table, ROWS, (uintptr_t)-1, 4711) == GASNET_OK,
          "gasnet-1 7.2: 128 automatic rows; segment sizes mean nothing in segment everything");
#else
    check(gasnet_attach(table, ROWS, 0, 0) == GASNET_OK,
          "gasnet-1 7.2: 128 automatic rows, no segment size");
#endif
    for (i = 0; i < ROWS; i++)
        right = right && table[i].index == 255 - i;
    check(right, "gasnet-1 7.2: indices 255 down to 128");
    for (i = 128; i < 256; i++)
        gasnet_AMRequestShort1((gasnet_mynode() + 1) % gasnet_nodes(), (gasnet_handler_t)i, i);
    GASNET_BLOCKUNTIL(seen == ROWS);
    info = malloc(gasnet_nodes() * sizeof(*info));
    check(gasnet_getSegmentInfo(info, (int)gasnet_nodes()) == GASNET_OK,
          "gasnet-1 7.2: segments are known");
#if !GASNET_SEGMENT_EVERYTHING
    check(info[gasnet_nodes() - 1].size == GASNET_PAGESIZE, "gasnet-1 7.2: no size makes one page");
#endif
    free(info);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK,
          "gasnet-1 17: barrier");
    if (gasnet_mynode() == 0) {
        printf("1..%d\n", number);
        fflush(stdout);
    }
    gasnet_barrier(1, 0);
    return 0; /* a return from main ends the job as gasnet_exit(0) does */
}
