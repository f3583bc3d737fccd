/*
 * aq_ibv.c - the ibv conduit: its table, its start, its report.
 *
 * The conduit consists of parts in an order, lowest first. A part calls only lower parts (a test
 * checks the object files), and has one internal header:
 *
 *     aq_ibv_choose.h    which ports and GIDs; where devices are
 *     aq_ibv_device.h    devices, rails, their queues
 *     aq_ibv_error.h     failures: noted, reported
 *     aq_ibv_reg.h       memory registration: with devices, of segments, limits
 *     aq_ibv_slab.h      registered memory that buffers are cut from
 *     aq_ibv_hello.h     the handshake of two ranks, as a state machine
 *     aq_ibv_qp.h        queue pairs: posting, completions
 *     aq_ibv_credit.h    credits and credit updates
 *     aq_ibv_packet.h, aq_ibv_frag.h    format of messages; fragments
 *     aq_ibv_rbuf.h      receive buffers
 *     aq_ibv_peer.h      the state of a remote rank
 *     aq_ibv_connect.h   connections on demand: datagrams, the connector
 *     aq_ibv_rma.h       put, get, atomics
 *     aq_ibv_am.h        active messages
 *     aq_ibv_firehose.h  the job's firehose: settings and messages
 *     aq_ibv_progress.h  polling, sleeping
 *     aq_ibv_end.h       disconnecting at the exit; freeing at the end of a job
 *
 * State     each part has a struct. The parts up to aq_ibv_rbuf.h get theirs, or what they need of
 *           lower ones, as arguments. The table's functions have no argument for state, so the
 *           upper parts have one instance each (aq_ibv_peers, aq_ibv_rma, aq_ibv_am), which only
 *           the part itself and higher ones use
 * Threads   any, and the connector. In seq locks are empty: what the connector shares with the
 *           client's thread is under a mutex (slow paths), or handed over by release and acquire
 * Uses      core, other/spawn, other/firehose, verbs; extended/aq_ref.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_end.h"
#include "conduits/ibv/aq_ibv_firehose.h"
#include "conduits/ibv/aq_ibv_progress.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "extended/aq_ref.h"

#define AQ_IBV_POLL_NS      150u
#define AQ_IBV_MAX_SLEEP_NS UINT64_C(1000000000)

static struct aq_ibv_net aq_ibv_net AQ_JOB_STATE;

/* --- start --- */

static uint32_t aq_ibv_bounded(enum aq_env_id id, int64_t min, int64_t max)
{
    const int64_t value = aq_env_int(id);

    return (uint32_t)(value < min ? min : value > max ? max : value);
}

/* Slots of a queue pair: a power of two that every device offers. */
static uint32_t aq_ibv_qp_depth(const struct aq_ibv_net *net)
{
    const uint32_t wanted = aq_ibv_bounded(AQ_ENV_NETWORKDEPTH_PP, 32, AQ_IBV_QP_DEPTH_MAX);
    uint32_t depth = 32;

    while (depth < wanted)
        depth *= 2;
    for (uint32_t i = 0; i < net->dev_count; i++)
        while (depth > 32 && depth > (uint32_t)net->devs[i].attr.max_qp_wr)
            depth /= 2;
    return depth;
}

static uint32_t aq_ibv_size_up_to(enum aq_env_id id, uint32_t max)
{
    const uint32_t size = (uint32_t)aq_env_size(id);

    return size < max ? size : max;
}

static int aq_ibv_init_peers(struct aq_ibv_net *net)
{
    const uint32_t qps = aq_ibv_bounded(AQ_ENV_NUM_QPS, 0, AQ_IBV_QPS);

    const struct aq_ibv_qp_config qp = {
        .depth = aq_ibv_qp_depth(net),
        .inline_max = aq_ibv_size_up_to(AQ_ENV_INLINESEND_LIMIT, AQ_IBV_INLINE_MAX),
        .gather_max = aq_ibv_bounded(AQ_ENV_AQ_IBV_GATHER, 1, AQ_IBV_GATHER_MAX),
    };

    return aq_ibv_peers_init(net, &qp, qps != 0 ? qps : net->rail_count,
                             aq_env_bool(AQ_ENV_USE_FENCED_PUTS));
}

static void aq_ibv_init_am(struct aq_ibv_net *net)
{
    aq_ibv_am_init(net, aq_ibv_size_up_to(AQ_ENV_PACKEDLONG_LIMIT, AQ_IBV_BUF - AQ_IBV_HEADROOM),
                   aq_ibv_bounded(AQ_ENV_AM_CREDITS_PP, AQ_IBV_WINDOW_MIN, 4096));
}

static void aq_ibv_limits(const struct aq_ibv_net *net)
{
    aq_limits.max_medium = AQ_IBV_MAX_MEDIUM;
    aq_limits.poll_ns = AQ_IBV_POLL_NS;
    /* send and receive buffers, which are pinned */
    aq_limits.host_bytes += (uint64_t)(aq_ibv_bounded(AQ_ENV_RBUF_COUNT, 0, 1 << 20)
                                       + aq_ibv_bounded(AQ_ENV_BBUF_COUNT, 0, 1 << 20))
                            * AQ_IBV_BUF * aq_job.host_size;
    aq_ibv_reg_limits(net);
}

static int aq_ibv_sleep_on_devices(const struct aq_ibv_net *net)
{
    int rc = AQ_OK;

    for (uint32_t i = 0; rc == AQ_OK && i < net->dev_count; i++)
        rc = aq_wait_add_fd(net->devs[i].comp_channel->fd);
    return rc;
}

static void aq_ibv_connect_all(void)
{
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        if (!aq_job_is_local(rank))
            (void)aq_ibv_peer(rank);
}

/* Receive buffers for all: the budget, and what each peer may ask for at once. */
static uint64_t aq_ibv_srq_demand(void)
{
    return (uint64_t)aq_env_int(AQ_ENV_RBUF_COUNT)
           + (uint64_t)aq_job.size * AQ_IBV_CHANNELS * AQ_IBV_WANT_MAX + 256;
}

static int aq_ibv_init(void)
{
    struct aq_ibv_net *net = &aq_ibv_net;
    char why[512];
    int rc = aq_ibv_load(&net->lib, why, sizeof(why));

    if (rc != AQ_OK)
        return aq_fail(rc, "ibv: %s", why);
    rc = aq_ibv_net_open(net, aq_ibv_srq_demand());
    if (rc == AQ_OK)
        rc = aq_ibv_init_peers(net);
    if (rc != AQ_OK)
        return rc;
    aq_ibv_segments.net = net;
    aq_ibv_limits(net);
    aq_ibv_rbuf_init(aq_env_int(AQ_ENV_RBUF_COUNT));
    aq_ibv_init_am(net);
    aq_ibv_buf_init(net);
    aq_ibv_rma_init(net);
    rc = aq_ibv_firehose_start(net);
    if (rc == AQ_OK)
        rc = aq_ibv_connect_start(net);
    if (rc == AQ_OK)
        rc = aq_ibv_sleep_on_devices(net);
    if (rc == AQ_OK && aq_env_bool(AQ_ENV_CONNECT_STATIC))
        aq_ibv_connect_all();
    return rc;
}

static int aq_ibv_segment_ready(void)
{
    const struct aq_bound own = aq_job.bound[aq_job.rank];
    const int rc = aq_ibv_segments_exchange();

    if (rc == AQ_OK && aq_ibv_segments.on_demand)
        aq_ibv_firehose_segment_on_demand(own.addr, own.size);
    else if (rc == AQ_OK && aq_ibv_segments.own.size != 0)
        aq_ibv_firehose_segment(&aq_ibv_net, aq_ibv_segments.own.addr, aq_ibv_segments.own.size);
    return rc;
}

/* First the pages, then their registrations: one that is made in between has the fresh pages or is
 * dropped, too. */
static int aq_ibv_segment_discard(void *addr, size_t nbytes)
{
    const int rc =
        aq_ibv_segments.on_demand ? aq_job.local->segment_discard(addr, nbytes) : AQ_ERR_RESOURCE;

    if (rc == AQ_OK)
        aq_ibv_firehose_discard(addr, nbytes);
    return rc;
}

/* --- progress --- */

static unsigned aq_ibv_poll(enum aq_poll_kind kind)
{
    return aq_ibv_progress(&aq_ibv_net, kind == AQ_POLL_REPLIES);
}

static bool aq_ibv_may_notify(void)
{
    return aq_ibv_rma_is_quiet();
}

static void aq_ibv_wait_arm(void)
{
    aq_ibv_progress_sleep(&aq_ibv_net);
}

/* Nothing wakes a thread when there is space for what firehose has to send, or when a peer has
 * disconnected. */
static uint64_t aq_ibv_wait_limit(uint64_t max_ns)
{
    return aq_fh_job != NULL && aq_fh_has_work(aq_fh_job) ? 0 : MIN(max_ns, AQ_IBV_MAX_SLEEP_NS);
}

/* --- reports --- */

static void aq_ibv_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    struct aq_ibv_peer *peer = aq_ibv_peer_look(jobrank);

    *sent_out = *handled_out = 0;
    if (peer == NULL || !aq_ibv_peer_is_ready(peer))
        return;
    aq_lock_acquire(&peer->flow.lock);
    *sent_out = peer->flow.sent;
    /* relaxed: a count for people */
    *handled_out = atomic_load_explicit(&peer->flow.cell->handled, memory_order_relaxed);
    aq_lock_release(&peer->flow.lock);
}

static unsigned long long aq_ibv_count(const aq_counter *counter)
{
    return (unsigned long long)aq_counter_get(counter);
}

static void aq_ibv_report(void)
{
    const struct aq_ibv_am *am = &aq_ibv_am;
    const struct aq_ibv_rma *rma = &aq_ibv_rma;

    aq_log_print(
        "ibv: rank %u: %u peers, %llu connected; deferred %llu messages, wrote %llu credit "
        "updates, asked for credits %llu times, gave up some %llu times, slept %llu times; "
        "%llu requests left in %llu batches, %llu transfers joined others, %llu fences; datagrams: "
        "sent %llu, received "
        "%llu, refused %llu; receive buffers %llu bytes\n",
        aq_job.rank, aq_ibv_peers.count, aq_ibv_count(&aq_ibv_peers.connects),
        aq_ibv_count(&am->deferred), aq_ibv_count(&am->updates.written),
        aq_ibv_count(&am->credit_requests), aq_ibv_count(&am->skips),
        (unsigned long long)aq_ibv_progress_sleeps(), aq_ibv_count(&rma->batch_requests),
        aq_ibv_count(&rma->batches), aq_ibv_count(&rma->joined), aq_ibv_count(&rma->fences),
        aq_ibv_count(&aq_ibv_dgram_counts.sent), aq_ibv_count(&aq_ibv_dgram_counts.received),
        aq_ibv_count(&aq_ibv_dgram_counts.refused), (unsigned long long)aq_ibv_rbuf_bytes());
    if (aq_fh_job != NULL)
        aq_ibv_firehose_report();
}

static void aq_ibv_exit(uint64_t max_ns)
{
    if (aq_ibv_peers.table == NULL)
        return;
    aq_ibv_disconnect_peers(&aq_ibv_net, max_ns);
    aq_ibv_connect_stop();
    if (aq_env_bool(AQ_ENV_AQ_IBV_STATS))
        aq_ibv_report();
}

static void aq_ibv_fini(void)
{
    aq_ibv_free(&aq_ibv_net);
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
    .fini = aq_ibv_fini,
    .quiesce = aq_nosup_quiesce,
    .segment_attach = aq_nosup_segment_attach,
    .segment_ready = aq_ibv_segment_ready,
    .segment_discard = aq_ibv_segment_discard,
    .segment_detach = aq_ibv_segments_drop,
    .segment_bind = aq_nosup_segment_bind, /* messages reach such a segment */
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_ibv_exit,
    .am_send = aq_ibv_am_send,
    .am_short = aq_ibv_am_short,
    .am_medium = aq_nosup_am_medium,
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
    .is_one_sided = aq_nosup_is_one_sided,
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
