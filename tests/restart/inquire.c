/*
 * inquire.c - see inquire.h. Whether transfers need their target is known over smp and udp; over
 * mpi without a one-sided window a get of 16 KiB needs polls.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "inquire.h"

#include <string.h>

#include "aqueduct.h"

#define BYTES 16384

static int one_sided_is_right(gex_Rank_t rank, const void *mapped)
{
    const int is = aqueduct_is_one_sided(rank);

    if (mapped != NULL || strcmp(aqueduct_job_conduit(), "udp") == 0)
        return is == (mapped != NULL);
    return is == 0 || is == 1;
}

/* A service thread may complete the get before the question. */
static int has_transfer(gex_Rank_t rank)
{
    return strcmp(aqueduct_job_conduit(), "mpi") == 0 && aqueduct_is_one_sided(rank) == 0
           && gex_System_QueryHiddenAMConcurrencyLevel() == 0;
}

static void poll_until_idle(void)
{
    while (aqueduct_is_busy())
        gasnet_AMPoll();
}

static int busy_is_right(gex_TM_t tm, gex_Rank_t rank, void *src)
{
    static char dest[BYTES];
    gex_Event_t event;
    int right;

    poll_until_idle();
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    event = gex_RMA_GetNB(tm, dest, rank, src, BYTES, 0);
    right = aqueduct_is_busy() == 1 || !has_transfer(rank);
    gex_Event_Wait(event);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    poll_until_idle(); /* what others get from this rank ends, too */
    return right;
}

int inquire_is_right(gex_TM_t tm)
{
    const gex_Rank_t me = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm), next = (me + 1) % size;
    void *owner, *mapped;
    uintptr_t bytes;
    const int known = gex_Segment_QueryBound(tm, next, &owner, &mapped, &bytes) == 0;

    return known && aqueduct_is_one_sided(me) == 1 && aqueduct_is_one_sided(size) == 0
           && one_sided_is_right(next, mapped) && busy_is_right(tm, next, owner);
}
