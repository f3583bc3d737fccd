/*
 * user_limits.c - a job with segments of a wanted size, every page of them written by their owner
 * and read by a neighbour. Run by users.sh under small file systems, limits and cgroups.
 * Usage: user_limits MB [tag]; with 0 rank 0 prints "limit BYTES" and no segment is attached.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t value_of(gex_Rank_t rank, uintptr_t page)
{
    return ((uint64_t)rank + 1) << 40 | page;
}

static uint64_t *word_of(void *base, uintptr_t page)
{
    return (uint64_t *)(void *)((char *)base + page * GASNET_PAGESIZE);
}

/* How many pages of my neighbour's segment do not hold what it wrote. */
static uintptr_t wrong_pages(gex_TM_t tm, gex_Rank_t next, uintptr_t pages)
{
    uintptr_t wrong = 0;
    void *base;

    gex_Segment_QueryBound(tm, next, &base, NULL, NULL);
    for (uintptr_t page = 0; page < pages; page++)
        wrong +=
            gex_RMA_GetBlockingVal(tm, next, word_of(base, page), 8, 0) != value_of(next, page);
    return wrong;
}

int main(int argc, char **argv)
{
    const uintptr_t bytes = argc > 1 ? (uintptr_t)atol(argv[1]) << 20 : 0;
    const uintptr_t pages = bytes / GASNET_PAGESIZE;
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    gex_Rank_t me;
    uintptr_t wrong;

    if (gex_Client_Init(&client, &ep, &tm, "LIMITS", &argc, &argv, 0) != GASNET_OK)
        return 3; /* the library has said why */
    me = gex_TM_QueryRank(tm);
    if (bytes == 0) {
        if (me == 0)
            printf("limit %llu\n", (unsigned long long)gasnet_getMaxGlobalSegmentSize());
        gasnet_exit(0);
    }
    if (gex_Segment_Attach(&segment, tm, bytes) != GASNET_OK)
        gasnet_exit(4);
    for (uintptr_t page = 0; page < pages; page++)
        *word_of(gex_Segment_QueryAddr(segment), page) = value_of(me, page);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    wrong = wrong_pages(tm, (me + 1) % gex_TM_QuerySize(tm), pages);
    if (wrong != 0)
        fprintf(stderr, "rank %u: %llu pages are wrong\n", (unsigned)me, (unsigned long long)wrong);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (me == 0)
        printf("done %llu MB a rank\n", (unsigned long long)(bytes >> 20));
    gasnet_exit(wrong != 0);
}
