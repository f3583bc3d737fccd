/*
 * aq_shm_rma.c - put and get between ranks of a neighborhood, where the inline path did not serve.
 *
 * Inside the attached segment, which is mapped everywhere but in segment everything, it is a copy;
 * so it is at home. Anywhere else, which is where the segments of further endpoints are, the kernel
 * copies if it may. If it may not, messages have to do it, which is the conduit's to say.
 *
 * Threads   any. Uses aq_shm_cma.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_job.h"
#include "conduits/smp/aq_shm.h"

/* Can it be reached by loads and stores, and by what is its address here another? */
static inline bool aq_shm_is_mapped(gex_Rank_t jobrank, const void *remote, size_t nbytes,
                                    intptr_t *delta_out)
{
    *delta_out = aq_job.map[jobrank];
    if (*delta_out != AQ_NOT_MAPPED && aq_bound_contains(jobrank, remote, nbytes))
        return true;
    *delta_out = 0;
    return jobrank == aq_job.rank;
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
