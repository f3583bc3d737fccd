/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_ranks.h - the ranks of a host as views of one process that take turns, in an arena with what
 * barriers need. Used by the tests of sleeps and barriers in shared memory.
 */
#ifndef SHM_RANKS_H
#define SHM_RANKS_H

#include <stdlib.h>
#include <string.h>

#include "base/aq_platform.h"
#include "conduits/smp/aq_shm.h"
#include "core/aq_conduit.h"
#include "core/aq_job.h"

/* Makes size ranks, whose jobranks are given. Returns 0, or -1 without memory. */
static inline int shm_ranks_make(const uint32_t *jobranks, uint32_t size)
{
    struct aq_shm_layout *layout = &aq_shm.layout;

    layout->control = AQ_PAGE_SIZE;
    layout->arrived =
        aq_round_up(layout->control + size * sizeof(struct aq_shm_control), AQ_PAGE_SIZE);
    layout->named = layout->arrived + AQ_PAGE_SIZE;
    layout->bytes = layout->named + AQ_PAGE_SIZE;
    aq_shm.arena = aligned_alloc(AQ_PAGE_SIZE, layout->bytes);
    if (aq_shm.arena == NULL)
        return -1;
    memset(aq_shm.arena, 0, layout->bytes);
    aq_shm.size = size;
    aq_shm.jobrank_of = jobranks;
    aq_job.size = aq_job.nbrhd_size = size;
    aq_job.has_remote = false;
    return 0;
}

static inline void shm_ranks_free(void)
{
    free(aq_shm.arena);
}

/* From now on the process acts as this rank. */
static inline void shm_ranks_view(uint32_t rank)
{
    aq_shm.me = rank;
    aq_shm.self = aq_shm_control(rank);
}

#endif
