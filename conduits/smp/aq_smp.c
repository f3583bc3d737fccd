/*
 * aq_smp.c - the smp conduit: shared memory and nothing else.
 *
 * The smallest conduit there can be: every entry of its table is conduits/smp's, so that this file
 * is the picture of what a conduit has to say for itself.
 *
 * Uses      conduits/smp, extended/aq_ref.h for what shared memory cannot do
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "extended/aq_ref.h"
#include "conduits/smp/aq_shm.h"

/* Shared memory is everywhere. */
static int aq_smp_probe(char *why, size_t len)
{
    (void)why, (void)len;
    return AQ_OK;
}

static int aq_smp_init(void)
{
    if (aq_job.host_count != 1)
        return aq_fail(AQ_ERR_ARG,
                       "the smp conduit joins the ranks of one host, but the launcher put "
                       "this job's %u ranks on %u hosts; start it on one, or use another conduit",
                       aq_job.size, aq_job.host_count);
    if (aq_env_int(AQ_ENV_SUPERNODE_MAXSIZE) != 0 && aq_job.rank == 0)
        aq_warn("GASNET_SUPERNODE_MAXSIZE is ignored: with the smp conduit all ranks share memory");
    return aq_shm_init();
}

static int aq_smp_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    return aq_shm_put(jobrank, dest, src, nbytes)
               ? AQ_OK
               : aq_ref_put(op, jobrank, dest, src, nbytes, lc_now, flags);
}

static int aq_smp_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags)
{
    return aq_shm_get(jobrank, dest, src, nbytes)
               ? AQ_OK
               : aq_ref_get(op, jobrank, dest, src, nbytes, flags);
}

const struct aq_conduit_ops aq_smp_conduit = {
    .name = "smp",
    .about = "ranks of one host, through shared memory",
    .caps = AQ_CAP_AM | AQ_CAP_ONE_SIDED,
    .min_medium = AQ_SHM_MAX_MEDIUM,
    .min_long = AQ_SHM_MIN_LONG,
    .probe = aq_smp_probe,
    .init = aq_smp_init,
    .segment_attach = aq_shm_segment_attach,
    .segment_detach = aq_shm_segment_detach,
    .segment_bind = aq_shm_cma_allow,
    .am_send = aq_shm_am_send,
    .am_short = aq_shm_am_short,
    .am_alloc = aq_shm_am_alloc,
    .am_free = aq_shm_am_free,
    .poll = aq_shm_poll,
    .sleep_prepare = aq_shm_sleep_prepare,
    .sleep = aq_shm_sleep,
    .sleep_cancel = aq_shm_sleep_cancel,
    .sleep_wake = aq_shm_sleep_wake,
    .peer_counts = aq_shm_peer_counts,
    .put = aq_smp_put,
    .get = aq_smp_get,
    .barrier_arrive = aq_shm_barrier_arrive,
    .barrier_done = aq_shm_barrier_done,
    .named_arrive = aq_shm_named_arrive,
    .named_done = aq_shm_named_done,
};
