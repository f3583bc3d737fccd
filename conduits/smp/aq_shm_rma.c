/*
 * aq_shm_rma.c - put and get between ranks of a neighborhood, for cases the inline path leaves out.
 *
 * Memory inside the attached segment, which every rank maps except in segment everything, is copied
 * directly; so is this rank's own memory. Other memory, such as the segments of further endpoints,
 * is copied by the kernel if it permits that. If not, the conduit must use messages.
 *
 * Threads   any. Uses aq_shm_cma.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_job.h"
#include "conduits/smp/aq_shm.h"

/* Returns true if loads and stores reach the remote memory, and its address in this process. */
static inline bool aq_shm_is_mapped(gex_Rank_t jobrank, const void *remote, size_t nbytes,
                                    intptr_t *delta_out)
{
    *delta_out = aq_job.map[jobrank];
    if (*delta_out != AQ_NOT_MAPPED && aq_bound_contains(jobrank, remote, nbytes))
        return true;
    *delta_out = 0;
    return jobrank == aq_job.rank;
}

const void *aq_shm_view(gex_Rank_t jobrank, const void *src, size_t nbytes, void *temp)
{
    intptr_t delta;

    if (aq_shm_is_mapped(jobrank, src, nbytes, &delta))
        return aq_rma_ptr(delta, src);
    aq_shm_cma_read(aq_job_local_index(jobrank), temp, src, nbytes);
    return temp;
}

void aq_shm_read(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes)
{
    intptr_t delta;

    if (aq_shm_is_mapped(jobrank, src, nbytes, &delta))
        aq_rma_get_mapped(delta, dest, src, nbytes);
    else
        aq_shm_cma_read(aq_job_local_index(jobrank), dest, src, nbytes);
}

bool aq_shm_put(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes)
{
    const uint32_t local = aq_job_local_index(jobrank);
    intptr_t delta;

    if (aq_shm_is_mapped(jobrank, dest, nbytes, &delta))
        aq_rma_put_mapped(delta, dest, src, nbytes);
    else if (aq_shm_cma_reaches(local))
        aq_shm_cma_write(local, dest, src, nbytes);
    else
        return false;
    return true;
}

bool aq_shm_get(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes)
{
    const uint32_t local = aq_job_local_index(jobrank);
    intptr_t delta;

    if (aq_shm_is_mapped(jobrank, src, nbytes, &delta))
        aq_rma_get_mapped(delta, dest, src, nbytes);
    else if (aq_shm_cma_reaches(local))
        aq_shm_cma_read(local, dest, src, nbytes);
    else
        return false;
    return true;
}
