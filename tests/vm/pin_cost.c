/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pin_cost.c - what it costs to put from memory that was never registered: a table over sizes.
 *
 *     warm     the same source again and again: registered once
 *     first    a source that is new each time, its pages present
 *
 * Run with AQ_IBV_OVERLAP=no, "first" registers everything before the first byte leaves; by default
 * it registers chunk by chunk while the device sends. Each figure is the median of some puts from
 * rank 0 to rank 1, complete there, in us.
 *
 * Usage: pin_cost [LARGEST]     bytes; default 64 MiB
 * Ranks 2.
 */
#define _GNU_SOURCE 1
#include "gasnetex.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOWEST ((size_t)64 << 10)
#define ROUNDS 9

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static char *source_new(size_t size)
{
    char *source = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (source == MAP_FAILED) {
        perror("pin_cost: mmap");
        gasnet_exit(1);
    }
    memset(source, (int)(size >> 16), size);
    return source;
}

/* Median of ROUNDS puts; fresh: each from a mapping of its own, which stays until the end, so that
 * no address is reused. */
static double put_cost(gex_TM_t tm, void *dest, size_t size, int fresh)
{
    char *sources[ROUNDS + 1];
    double took[ROUNDS];

    sources[0] = source_new(size);
    if (!fresh)
        gex_RMA_PutBlocking(tm, 1, dest, sources[0], size, 0);
    for (int i = 0; i < ROUNDS; i++) {
        char *source = sources[0];
        double began;

        if (fresh)
            source = sources[i + 1] = source_new(size);
        began = now_us();
        gex_RMA_PutBlocking(tm, 1, dest, source, size, 0);
        took[i] = now_us() - began;
    }
    for (int i = 0; i <= (fresh ? ROUNDS : 0); i++)
        munmap(sources[i], size);
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    return took[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    size_t largest = argc > 1 ? (size_t)strtoull(argv[1], NULL, 0) : (size_t)64 << 20;
    gex_Segment_t segment;
    gex_Client_t client;
    void *dest = NULL;
    gex_EP_t ep;
    gex_TM_t tm;

    gex_Client_Init(&client, &ep, &tm, "pin_cost", &argc, &argv, 0);
    if (gex_TM_QuerySize(tm) < 2) {
        fprintf(stderr, "pin_cost: needs 2 ranks\n");
        gasnet_exit(2);
    }
#ifdef GASNET_SEGMENT_EVERYTHING
    fprintf(stderr, "pin_cost: needs a build with segments\n");
    gasnet_exit(2);
#endif
    if (gex_Segment_Attach(&segment, tm, largest) != GASNET_OK)
        gasnet_exit(1);
    gex_Segment_QueryBound(tm, 1, &dest, NULL, NULL);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (gex_TM_QueryRank(tm) == 0) {
        printf("# size_bytes warm_us first_us first/warm\n");
        for (size_t size = LOWEST; size <= largest; size *= 4) {
            const double warm = put_cost(tm, dest, size, 0), first = put_cost(tm, dest, size, 1);

            printf("%zu %.1f %.1f %.2f\n", size, warm, first, first / warm);
            fflush(stdout);
        }
    }
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
    return 0;
}
