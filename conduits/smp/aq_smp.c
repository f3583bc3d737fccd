/*
 * aq_smp.c - the smp conduit: shared memory only.
 *
 * Every job uses this table for its local ranks. A job of the smp conduit has no other table.
 *
 * Uses      conduits/smp/aq_shm.h; extended/aq_ref.h for what shared memory cannot do
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/aq_rc.h"
#include "conduits/smp/aq_shm.h"
#include "core/aq_job.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

/* Shared memory is always available. */
static int aq_smp_probe(char *why, size_t len)
{
    (void)why, (void)len;
    return AQ_OK;
}

/* Its peers reach it through the kernel. */
static int aq_smp_segment_bind(const struct aq_segment *segment)
{
    return aq_shm_cma_allow(segment->base, aq_segment_size(segment));
}

/* Through the kernel, if it allows that. */
static bool aq_smp_segment_reaches(gex_Rank_t jobrank)
{
    return aq_shm_cma_reaches(aq_job_local_index(jobrank));
}

#if GASNET_SEGMENT_EVERYTHING
/* The local receiver may pass on to a remote rank what this message says. Messages therefore wait
 * while a peer could still use memory that this process has unmapped. */
static int aq_smp_am_send(const struct aq_am_out *out)
{
    return aq_job.remote->may_notify() ? aq_shm_am_send(out) : AQ_RETRY;
}

static int aq_smp_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                           const gex_AM_Arg_t *args)
{
    return aq_job.remote->may_notify() ? aq_shm_am_short(jobrank, is_reply, handler, nargs, args)
                                       : AQ_RETRY;
}

static int aq_smp_am_medium(gex_Rank_t jobrank, bool is_reply, uint8_t handler, const void *src,
                            size_t nbytes, unsigned nargs, const gex_AM_Arg_t *args)
{
    return aq_job.remote->may_notify()
               ? aq_shm_am_medium(jobrank, is_reply, handler, src, nbytes, nargs, args)
               : AQ_RETRY;
}

static int aq_smp_notify_wait(gex_Rank_t rank, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("peers that are to forget unmapped memory", rank);

    if (aq_job.remote->may_notify())
        return AQ_OK;
    if ((flags & GEX_FLAG_IMMEDIATE) != 0)
        return AQ_RETRY;
    waiter.no_wakeup = 1;
    do
        aq_wait_step(&waiter);
    while (!aq_job.remote->may_notify());
    aq_wait_end(&waiter);
    return AQ_OK;
}
#else
#define aq_smp_am_send   aq_shm_am_send
#define aq_smp_am_short  aq_shm_am_short
#define aq_smp_am_medium aq_shm_am_medium

static inline int aq_smp_notify_wait(gex_Rank_t rank, gex_Flags_t flags)
{
    (void)rank, (void)flags;
    return AQ_OK;
}
#endif

static int aq_smp_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    if (aq_smp_notify_wait(jobrank, flags) != AQ_OK)
        return AQ_RETRY;
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

extern const struct aq_conduit_info aq_smp_info; /* aq_smp_info.c */

const struct aq_conduit_ops aq_smp_conduit = {
    .info = &aq_smp_info,
    .caps = AQ_CAP_AM | AQ_CAP_ONE_SIDED | AQ_CAP_LOAD_STORE,
    .min_medium = AQ_SHM_MAX_MEDIUM,
    .min_long = AQ_MIN_LONG,
    .spawn = NULL,
    .probe = aq_smp_probe,
    .init = aq_shm_init,
    .fini = aq_shm_fini,
    .quiesce = aq_nosup_quiesce,
    .segment_attach = aq_shm_segment_attach,
    .segment_ready = aq_nosup_segment_ready,
    .segment_discard = aq_shm_segment_discard,
    .segment_detach = aq_shm_segment_detach,
    .segment_bind = aq_smp_segment_bind,
    .segment_reaches = aq_smp_segment_reaches,
    .exit = aq_nosup_exit,
    .am_send = aq_smp_am_send,
    .am_short = aq_smp_am_short,
    .am_medium = aq_smp_am_medium,
    .am_alloc = aq_shm_am_alloc,
    .am_free = aq_shm_am_free,
    .poll = aq_shm_poll,
    .busy = &aq_nosup_busy,
    .peer_counts = aq_shm_peer_counts,
    .sleep_prepare = aq_shm_sleep_prepare,
    .sleep = aq_shm_sleep,
    .sleep_cancel = aq_shm_sleep_cancel,
    .sleep_wake = aq_shm_sleep_wake,
    .sleep_add_fd = aq_shm_sleep_add_fd,
    .wait_arm = aq_nosup_wait_arm,
    .wait_limit = aq_nosup_wait_limit,
    .wait_look = aq_nosup_wait_look,
    .may_notify = aq_nosup_may_notify,
    .is_one_sided = aq_nosup_is_one_sided,
    .put = aq_smp_put,
    .get = aq_smp_get,
    .rma_batch_begin = aq_nosup_rma_batch_begin,
    .rma_batch_end = aq_nosup_rma_batch_end,
    .ad_serves = aq_nosup_ad_serves,
    .ad_op = aq_nosup_ad_op,
    .coll = &aq_shm_coll_ops,
    .rndv_recv = aq_nosup_rndv_recv,
    .rndv_send = aq_nosup_rndv_send,
    .barrier_arrive = aq_shm_barrier_arrive,
    .barrier_done = aq_shm_barrier_done,
    .named_arrive = aq_shm_named_arrive,
    .named_done = aq_shm_named_done,
};
