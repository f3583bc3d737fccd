/*
 * aq_ibv.c - the ibv conduit: its table, its start, its turn at polling and sleeping, its end.
 *
 * Near ranks, with which memory is shared, are conduits/smp's; far ones are reached by RDMA. See
 * aq_ibv.h for the files.
 *
 * Polling   a look at a completion queue is a look at memory, so every poll takes one. A software
 *           device (rxe, siw) does its work on this host's cores, in a thread of the kernel that a
 *           rank which spins keeps out until the end of its time slice: so after every few polls
 *           that find nothing the core is given away, and after each when the wait is a long one
 * Sleeping  completion queues are armed, then looked at once more; their channels are among
 *           sleepers' descriptors
 * Leaving   aq_ibv_disconnect.c
 * Threads   any
 * Uses      other/spawn, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_batch.h"
#include "conduits/ibv/aq_ibv_recv.h"
#include "conduits/ibv/aq_ibv_start.h"
#include "conduits/ibv/aq_ibv_xfer.h"
#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "extended/aq_ref.h"
#include "other/spawn/aq_spawn.h"

#define AQ_IBV_TICKS       256u /* polls between looks at the clock */
#define AQ_IBV_POLL_NS     150u
#define AQ_IBV_YIELD_AFTER 4u /* polls in vain of a software device before the core is given away */
#define AQ_IBV_YIELD_ALWAYS \
    32u /* after so many in a row it is given away after each: the wait is long */

struct aq_ibv aq_ibv = { .connect_lock = PTHREAD_MUTEX_INITIALIZER };

/* --- start --- */

static uint32_t aq_ibv_bounded(enum aq_env_id id, int64_t min, int64_t max)
{
    const int64_t value = aq_env_int(id);

    return (uint32_t)(value < min ? min : value > max ? max : value);
}

static void aq_ibv_configure(void)
{
    const uint32_t depth = aq_ibv_bounded(AQ_ENV_NETWORKDEPTH_PP, 32, AQ_IBV_QP_DEPTH_MAX);

    aq_ibv.qp_depth = 32;
    while (aq_ibv.qp_depth < depth)
        aq_ibv.qp_depth *= 2;
    aq_ibv.inline_max = (uint32_t)aq_env_size(AQ_ENV_INLINESEND_LIMIT);
    if (aq_ibv.inline_max > AQ_IBV_INLINE_MAX)
        aq_ibv.inline_max = AQ_IBV_INLINE_MAX;
    aq_ibv.packed_max = (uint32_t)aq_env_size(AQ_ENV_PACKEDLONG_LIMIT);
    if (aq_ibv.packed_max > AQ_IBV_BUF - AQ_IBV_HEADROOM)
        aq_ibv.packed_max = AQ_IBV_BUF - AQ_IBV_HEADROOM;
    aq_ibv.window_max = aq_ibv_bounded(AQ_ENV_AM_CREDITS_PP, AQ_IBV_WINDOW_MIN, 4096);
}

/* More queue pairs than ports, if they are wished for; never fewer than one. */
static void aq_ibv_count_qps(void)
{
    const uint32_t pref = aq_ibv_bounded(AQ_ENV_NUM_QPS, 0, AQ_IBV_QPS);

    aq_ibv.qps_wanted = pref != 0 ? pref : aq_ibv.rail_count;
    for (uint32_t i = 0; i < aq_ibv.dev_count; i++) /* what is outstanding fits the device */
        while (aq_ibv.qp_depth > 32 && aq_ibv.qp_depth > (uint32_t)aq_ibv.devs[i].attr.max_qp_wr)
            aq_ibv.qp_depth /= 2;
}

static int aq_ibv_sleep_on_devices(void)
{
    int rc = AQ_OK;

    for (uint32_t i = 0; rc == AQ_OK && i < aq_ibv.dev_count; i++)
        rc = aq_wait_add_fd(aq_ibv.devs[i].comp_channel->fd);
    return rc;
}

static void aq_ibv_limits(void)
{
    aq_limits.max_medium = AQ_IBV_MAX_MEDIUM;
    aq_limits.poll_ns = AQ_IBV_POLL_NS;
    /* send and receive buffers, which are pinned */
    aq_limits.host_bytes += (uint64_t)(aq_ibv_bounded(AQ_ENV_RBUF_COUNT, 0, 1 << 20)
                                       + aq_ibv_bounded(AQ_ENV_BBUF_COUNT, 0, 1 << 20))
                            * AQ_IBV_BUF * aq_job.host_size;
}

/* Everybody with everybody, as far as that is wished for. */
static void aq_ibv_connect_all(void)
{
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        if (!aq_job_is_local(rank))
            (void)aq_ibv_peer(rank);
}

static int aq_ibv_init(void)
{
    char why[512];
    int rc = aq_ibv_load(why, sizeof(why));

    if (rc != AQ_OK)
        return aq_fail(rc, "ibv: %s", why);
    aq_ibv_configure();
    aq_ibv.peers = calloc(aq_job.size, sizeof(*aq_ibv.peers));
    if (aq_ibv.peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "ibv: no memory for %u pointers to peers", aq_job.size);
    rc = aq_ibv_device_open();
    if (rc != AQ_OK)
        return rc;
    aq_ibv_count_qps();
    aq_ibv_limits();
    aq_ibv_reg_limits();
    rc = aq_ibv_buf_init();
    if (rc == AQ_OK)
        rc = aq_ibv_rbuf_init();
    if (rc == AQ_OK)
        rc = aq_ibv_rma_init();
    if (rc == AQ_OK)
        rc = aq_ibv_connect_start();
    if (rc == AQ_OK)
        rc = aq_ibv_sleep_on_devices();
    if (rc == AQ_OK && aq_env_bool(AQ_ENV_CONNECT_STATIC))
        aq_ibv_connect_all();
    return rc;
}

/* --- polling --- */

static bool aq_ibv_may_notify(void)
{
    return aq_ibv_rma_is_quiet();
}

static unsigned aq_ibv_poll(bool replies_only)
{
    static _Thread_local uint32_t polls;
    static _Thread_local unsigned idle;
    unsigned served;

    aq_ibv_batch_poll();
    served = aq_ibv_receive(replies_only);
    served += aq_ibv_qp_reap_all();
    aq_ibv_rma_progress();
    served += aq_ibv_rma_poll(replies_only);
    if (AQ_UNLIKELY(++polls % AQ_IBV_TICKS == 0))
        aq_ibv_tick(aq_now_ns());
    if (served != 0)
        idle = 0;
    else if (aq_ibv.software && (++idle % AQ_IBV_YIELD_AFTER == 0 || idle > AQ_IBV_YIELD_ALWAYS))
        sched_yield(); /* a software device moves packets on this core */
    return served;
}

/* --- sleeping --- */

/* From now on completions make the channels readable. */
static void aq_ibv_arm(void)
{
    struct ibv_cq *cq;
    void *own;
    int error = 0;

    for (uint32_t i = 0; i < aq_ibv.dev_count; i++)
        while (aq_ibv.lib->get_cq_event(aq_ibv.devs[i].comp_channel, &cq, &own) == 0)
            aq_ibv.lib->ack_cq_events(cq, 1);
    for (uint32_t i = 0; error == 0 && i < aq_ibv.rail_count; i++) {
        error = ibv_req_notify_cq(aq_ibv.rails[i].send_cq, 0);
        if (error == 0)
            error = ibv_req_notify_cq(aq_ibv.rails[i].recv_cq, 0);
    }
    if (error != 0 && !aq_exit_in_progress())
        aq_fatal("ibv: a completion queue cannot be armed: %s", strerror(error));
}

static void aq_ibv_wait_arm(void)
{
    aq_ibv_credit_update(true); /* nobody may poll for a while */
    aq_ibv_tick(aq_now_ns());
    aq_ibv_arm();
    aq_counter_add(&aq_ibv.counts.sleeps, 1);
}

/* Nothing wakes a thread when there is room for what firehose has to send. */
static uint64_t aq_ibv_wait_limit(uint64_t max_ns)
{
    return aq_fh_job != NULL && aq_fh_has_work(aq_fh_job) ? 0 : max_ns;
}

/* --- reports --- */

static void aq_ibv_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    struct aq_ibv_peer *peer;

    *sent_out = *handled_out = 0;
    peer = aq_ibv_peer_look(jobrank);
    if (peer == NULL || atomic_load_explicit(&peer->ready, memory_order_acquire) == 0)
        return;
    aq_lock_acquire(&peer->lock);
    *sent_out = peer->sent;
    /* relaxed: a count for people */
    *handled_out = atomic_load_explicit(&peer->cell->handled, memory_order_relaxed);
    aq_lock_release(&peer->lock);
}

static void aq_ibv_report(void)
{
    const struct aq_ibv_counters *c = &aq_ibv.counts;
#define AQ_N(counter) (unsigned long long)aq_counter_get(&c->counter)

    aq_log_print(
        "ibv: rank %u: %u peers, %llu connected; held %llu messages, wrote %llu grants, asked for "
        "credits "
        "%llu times, gave up some %llu times, slept %llu times; %llu transfers left in %llu lists, "
        "%llu "
        "fences; datagrams: sent %llu, received %llu, refused %llu; receive buffers %llu bytes\n",
        aq_job.rank, aq_ibv.peer_count, AQ_N(connects), AQ_N(deferred), AQ_N(updates_written),
        AQ_N(credit_requests), AQ_N(skips), AQ_N(sleeps), AQ_N(batch_requests), AQ_N(batches),
        AQ_N(fences), AQ_N(hellos_out), AQ_N(hellos_in), AQ_N(hellos_bad),
        (unsigned long long)aq_ibv_rbuf_bytes());
#undef AQ_N
    if (aq_fh_job != NULL)
        aq_ibv_reg_report();
}

static void aq_ibv_exit(uint64_t max_ns)
{
    if (aq_ibv.peers == NULL)
        return;
    aq_ibv_disconnect_peers(max_ns);
    aq_ibv_connect_stop();
    if (aq_env_bool(AQ_ENV_AQ_IBV_STATS))
        aq_ibv_report();
}

extern const struct aq_conduit_info aq_ibv_info; /* aq_ibv_info.c */

const struct aq_conduit_ops aq_ibv_conduit = {
    .info = &aq_ibv_info,
    .caps = AQ_CAP_AM | AQ_CAP_NETWORK | AQ_CAP_ONE_SIDED | AQ_CAP_RMA_BATCH,
    .min_medium = AQ_IBV_MAX_MEDIUM,
    .min_long = AQ_MIN_LONG,
    .spawn = NULL,
    .probe = aq_ibv_probe,
    .init = aq_ibv_init,
    .quiesce = aq_nosup_quiesce,
    .segment_attach = aq_nosup_segment_attach,
    .segment_ready = aq_ibv_segment_ready,
    .segment_detach = aq_ibv_segment_detach,
    .segment_bind = aq_nosup_segment_bind, /* messages reach it */
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_ibv_exit,
    .am_send = aq_ibv_am_send,
    .am_short = aq_ibv_am_short,
    .am_alloc = aq_ibv_am_alloc,
    .am_free = aq_ibv_am_free,
    .poll = aq_ibv_poll,
    .busy = &aq_nosup_busy,
    .peer_counts = aq_ibv_peer_counts,
    .sleep_prepare = aq_nosup_sleep_prepare,
    .sleep = aq_nosup_sleep,
    .sleep_cancel = aq_nosup_sleep_cancel,
    .sleep_wake = aq_nosup_sleep_wake,
    .sleep_add_fd = aq_nosup_sleep_add_fd,
    .wait_arm = aq_ibv_wait_arm,
    .wait_limit = aq_ibv_wait_limit,
    .wait_look = aq_nosup_wait_look,
    .may_notify = aq_ibv_may_notify,
    .put = aq_ibv_put,
    .get = aq_ibv_get,
    .rma_batch_begin = aq_ibv_rma_batch_begin,
    .rma_batch_end = aq_ibv_rma_batch_end,
    .ad_serves = aq_ibv_ad_serves,
    .ad_op = aq_ibv_ad_op,
    .coll = &aq_nosup_coll,
    .rndv_recv = aq_nosup_rndv_recv,
    .rndv_send = aq_nosup_rndv_send,
    .barrier_arrive = aq_ref_barrier_arrive,
    .barrier_done = aq_ref_barrier_done,
    .named_arrive = aq_ref_named_arrive,
    .named_done = aq_ref_named_done,
};
