/*
 * aq_udp.c - the udp conduit's table; start-up, polling and waiting.
 *
 * Ranks that share memory are reached through conduits/smp. All other ranks are reached through one
 * UDP socket. aq_udp.h lists the files; aq_udp_link.c explains how datagrams become reliable.
 *
 * Polling   a receive call costs about 5 times as much as a poll of shared memory. While local
 *           ranks send, core leaves most polls out. The poll right after a send that waits to be
 *           coalesced (aq_udp_peer_queued()) does nothing; the next poll flushes it
 * Threads   any
 * Uses      other/spawn, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "core/aq_nosup.h"
#include "core/aq_poll.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "extended/aq_ref.h"
#include "other/spawn/aq_spawn.h"

#define AQ_UDP_SEND_BATCH_POLL 16u  /* sends of a batch between receive calls */
#define AQ_UDP_SEND_BATCH_MAX  128u /* sends of a batch before everything is flushed */
#define AQ_UDP_POLL_NS         400u
#define AQ_UDP_MIN_SLEEP_NS    UINT64_C(20000) /* shortest sleep */

extern const struct aq_conduit_info aq_udp_info; /* aq_udp_info.c */

struct aq_udp aq_udp AQ_JOB_STATE = { .fd = -1 };

/* --- start-up --- */

/* Called while start-up waits for other ranks of the host outside active messages. This rank's last
 * messages may be lost and need retransmission. */
static void aq_udp_meanwhile(void)
{
    (void)aq_udp_drain_once(false);
}

static int aq_udp_probe(char *why, size_t len)
{
    (void)why, (void)len;
    return AQ_OK;
}

static uint64_t aq_udp_env_us(enum aq_env_id id)
{
    return (uint64_t)(aq_env_real(id) * 1000);
}

static uint32_t aq_udp_window(void)
{
    const int64_t depth = aq_env_int(AQ_ENV_NETWORKDEPTH);

    /* the longest message must fit */
    if (depth < (int64_t)AQ_UDP_MIN_WINDOW)
        return AQ_UDP_MIN_WINDOW;
    return depth > AQ_UDP_WINDOW ? AQ_UDP_WINDOW : (uint32_t)depth;
}

static void aq_udp_configure(void)
{
    struct aq_udp_link_config *config = &aq_udp.config;

    config->window[AQ_UDP_REQUEST] = aq_udp_window();
    config->window[AQ_UDP_REPLY] = config->window[AQ_UDP_RMA] = AQ_UDP_WINDOW;
    config->probe_first_ns = aq_udp_env_us(AQ_ENV_REQUESTTIMEOUT_INITIAL);
    config->probe_min_ns = 200000;
    config->probe_max_ns = 1000000000;
    config->probe_backoff = aq_env_real(AQ_ENV_REQUESTTIMEOUT_BACKOFF);
    if (config->probe_backoff < 1.1)
        config->probe_backoff = 1.1;
    config->ack_delay_ns = 250000;
    if (aq_env_is_set(AQ_ENV_REQUESTTIMEOUT_MAX))
        aq_udp.lost_after_ns = aq_udp_env_us(AQ_ENV_REQUESTTIMEOUT_MAX);
    aq_udp.hash_all = aq_env_choice(AQ_ENV_UDP_AUTH) == 1;
    aq_udp.coalesce = aq_env_bool(AQ_ENV_UDP_COALESCE);
    aq_udp_inject_init();
}

static int aq_udp_publish(void)
{
    const union aq_udp_address *self = &aq_udp.self;
    struct aq_udp_modex modex;

    memset(&modex, 0, sizeof(modex));
    modex.mtu[0] = (uint8_t)(aq_udp.mtu >> 8);
    modex.mtu[1] = (uint8_t)aq_udp.mtu;
    if (!aq_udp.alone && self->any.sa_family == AF_INET) {
        modex.family = 4;
        memcpy(modex.address, &self->v4.sin_addr, 4);
        memcpy(modex.port, &self->v4.sin_port, 2);
    } else if (!aq_udp.alone) {
        modex.family = 6;
        memcpy(modex.address, &self->v6.sin6_addr, 16);
        memcpy(modex.port, &self->v6.sin6_port, 2);
    }
    return aq_spawn_publish(&modex, sizeof(modex));
}

static int aq_udp_init(void)
{
    int rc;

    atomic_init(&aq_udp.deadline, UINT64_MAX);
    aq_env_adopt_aliases(aq_udp_info.aliases,
                         aq_job.rank == 0
                             && !aq_spawn_is_supervised()); /* else its launcher has told */
    aq_udp.alone = aq_job.nbrhd_size == aq_job.size;
    aq_udp_configure();
    aq_udp.peers = calloc(aq_job.size, sizeof(*aq_udp.peers));
    if (aq_udp.peers == NULL)
        return aq_fail(AQ_ERR_NOMEM, "udp: no memory for %u pointers to peers", aq_job.size);
    rc = aq_udp_auth_init();
    if (rc == AQ_OK)
        rc = aq_udp_sock_open();
    if (rc == AQ_OK)
        rc = aq_udp_publish();
    if (rc == AQ_OK)
        rc = aq_wait_add_fd(aq_udp.fd);
    if (rc != AQ_OK)
        return rc;
    aq_jobarea_set_meanwhile(aq_udp_meanwhile);
    aq_limits.max_medium = AQ_UDP_MAX_MEDIUM;
    if (aq_limits.max_long > AQ_UDP_MAX_LONG)
        aq_limits.max_long = AQ_UDP_MAX_LONG;
    aq_limits.poll_ns = AQ_UDP_POLL_NS;
    aq_limits.host_bytes += (uint64_t)aq_udp.rx_space * 4 * aq_job.host_size;
    return AQ_OK;
}

/* --- polling --- */

/* True while messages of a batch wait to be coalesced: the receive call is deferred with them. Any
 * other poll than that of a send ends the batch. */
static inline bool aq_udp_poll_defers(enum aq_poll_kind kind)
{
    /* relaxed, here and below: a hint */
    uint64_t sends = atomic_load_explicit(&aq_udp.send_batch, memory_order_relaxed);

    if (AQ_LIKELY(sends == 0))
        return false;
    sends = kind == AQ_POLL_OF_SEND && sends < AQ_UDP_SEND_BATCH_MAX ? sends + 1 : 0;
    atomic_store_explicit(&aq_udp.send_batch, sends, memory_order_relaxed);
    return sends % AQ_UDP_SEND_BATCH_POLL != 0;
}

static unsigned aq_udp_poll(enum aq_poll_kind kind)
{
    const bool replies_only = kind == AQ_POLL_REPLIES;
    uint64_t deadline, now = 0;
    unsigned served = 0;

    if (aq_udp_poll_defers(kind))
        return 0;
    /* relaxed: a first check; the list has a lock */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_udp.deferred, memory_order_relaxed) != NULL)
        && !replies_only)
        served = aq_udp_serve_deferred();
    served += aq_udp_receive(replies_only, &now);
    deadline = atomic_load_explicit(&aq_udp.deadline, memory_order_relaxed);
    /* a receive call that returned data has read the clock; an idle process without a deadline
     * reads none */
    if (now == 0 && deadline != UINT64_MAX)
        now = aq_now_ns();
    /* A growing batch keeps its messages. relaxed: a hint; a peer that another thread marks is
     * flushed by that thread. */
    if (atomic_load_explicit(&aq_udp.send_batch, memory_order_relaxed) == 0 || served != 0) {
        atomic_store_explicit(&aq_udp.send_batch, 0, memory_order_relaxed);
        if (AQ_UNLIKELY(atomic_load_explicit(&aq_udp.dirty, memory_order_relaxed) != NULL))
            aq_udp_flush(now != 0 ? now : aq_now_ns());
    }
    if (AQ_UNLIKELY(now >= deadline))
        aq_udp_timers(now);
    return served;
}

/* --- waiting --- */

static void aq_udp_wait_arm(void)
{
    /* the last poll before sleeping looks at everything */
    atomic_store_explicit(&aq_udp.send_batch, 0, memory_order_relaxed);
    aq_udp_flush_acks(aq_now_ns());
}

/* Until the next timer of any link, at most max_ns. */
static uint64_t aq_udp_time_to_sleep(uint64_t max_ns)
{
    const uint64_t now = aq_now_ns();
    const uint64_t due = atomic_load_explicit(&aq_udp.deadline, memory_order_relaxed);
    const uint64_t left = due > now + AQ_UDP_MIN_SLEEP_NS ? due - now : AQ_UDP_MIN_SLEEP_NS;

    return left < max_ns ? left : max_ns;
}

/* A client thread may send after a service thread has begun to sleep, and then compute: nobody else
 * sends again what is lost. */
static uint64_t aq_udp_wait_limit(uint64_t max_ns)
{
    const uint64_t limit = aq_udp_time_to_sleep(max_ns);

    if (limit <= AQ_UDP_LONG_SLEEP_NS)
        return limit;
    /* relaxed with a fence, as in aq_udp_wake_long_sleeper(): either this thread sees the new
     * deadline, or the thread that has set it sees this sleeper */
    atomic_store_explicit(&aq_udp.sleeps_long, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return aq_udp_time_to_sleep(max_ns);
}

void aq_udp_wake_long_sleeper(void)
{
    atomic_thread_fence(memory_order_seq_cst); /* see aq_udp_wait_limit() */
    if (!atomic_load_explicit(&aq_udp.sleeps_long, memory_order_relaxed))
        return;
    atomic_store_explicit(&aq_udp.sleeps_long, false, memory_order_relaxed);
    aq_wait_wake();
}

/* --- reports --- */

static void aq_udp_peer_counts(gex_Rank_t jobrank, uint64_t *sent_out, uint64_t *handled_out)
{
    struct aq_udp_peer *peer;

    *sent_out = *handled_out = 0;
    peer = aq_udp_peer_look(jobrank);
    if (peer == NULL)
        return;
    aq_lock_acquire(&peer->lock);
    *sent_out = peer->sent;
    *handled_out = peer->handled;
    aq_lock_release(&peer->lock);
}

const struct aq_conduit_ops aq_udp_conduit = {
    .info = &aq_udp_info,
    .caps = AQ_CAP_AM | AQ_CAP_NETWORK,
    .min_medium = AQ_UDP_MAX_MEDIUM,
    .min_long = AQ_MIN_LONG < AQ_UDP_MAX_LONG ? AQ_MIN_LONG : AQ_UDP_MAX_LONG,
    .spawn = NULL,
    .probe = aq_udp_probe,
    .init = aq_udp_init,
    .fini = aq_udp_fini,
    .quiesce = aq_nosup_quiesce,
    .segment_attach = aq_nosup_segment_attach,
    .segment_ready = aq_nosup_segment_ready,
    .segment_discard = aq_nosup_segment_discard,
    .segment_detach = aq_nosup_segment_detach,
    .segment_bind = aq_nosup_segment_bind,
    .segment_reaches = aq_nosup_segment_reaches,
    .exit = aq_udp_exit,
    .am_send = aq_udp_am_send,
    .am_short = aq_udp_am_short,
    .am_medium = aq_nosup_am_medium,
    .am_alloc = aq_nosup_am_alloc, /* the core's buffers */
    .am_free = aq_nosup_am_free,
    .poll = aq_udp_poll,
    .busy = &aq_udp.send_batch,
    .peer_counts = aq_udp_peer_counts,
    .sleep_prepare = aq_nosup_sleep_prepare,
    .sleep = aq_nosup_sleep,
    .sleep_cancel = aq_nosup_sleep_cancel,
    .sleep_wake = aq_nosup_sleep_wake,
    .sleep_add_fd = aq_nosup_sleep_add_fd,
    .wait_arm = aq_udp_wait_arm,
    .wait_limit = aq_udp_wait_limit,
    .wait_look = aq_udp_wait_look,
    .may_notify = aq_nosup_may_notify,
    .is_one_sided = aq_nosup_is_one_sided,
    .put = aq_udp_put,
    .get = aq_udp_get,
    .rma_batch_begin = aq_nosup_rma_batch_begin,
    .rma_batch_end = aq_nosup_rma_batch_end,
    .ad_serves = aq_nosup_ad_serves,
    .ad_op = aq_nosup_ad_op,
    .coll = &aq_nosup_coll,
    .rndv_recv = aq_nosup_rndv_recv,
    .rndv_send = aq_nosup_rndv_send,
    .barrier_arrive = aq_ref_barrier_arrive,
    .barrier_done = aq_ref_barrier_done,
    .named_arrive = aq_ref_named_arrive,
    .named_done = aq_ref_named_done,
};
