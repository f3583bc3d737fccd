/*
 * aq_ibv_recv.c - active messages from remote ranks: completions in, handlers, buffers back.
 *
 * A completion is taken and checked under the rail's lock, so that the fragments of a message are
 * put together in order; handlers run without the lock. Requests that arrive while only replies may
 * be served are deferred, in their receive buffers. The buffers that were granted to a channel are
 * there for this channel, so deferred requests take nothing from replies.
 *
 * Credits   handled buffers are posted again at the end of a batch, then granted (aq_ibv_credit.h)
 * Threads   any
 * Promise   nothing that a peer sends makes this process write outside its segments, or run what is
 *           not registered: a message that does not fit the format ends the job
 * Uses      aq_ibv_am.h, core/aq_am_deliver.h, core/aq_poll.h to wake sleepers.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_am.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "base/aq_word.h"
#include "core/aq_am_deliver.h"
#include "core/aq_ep.h"
#include "core/aq_exit.h"
#include "core/aq_poll.h"

#define AQ_IBV_RECV_MAX 16 /* completions of one poll */

/* This thread runs a handler of a firehose request. */
static _Thread_local bool aq_ibv_in_firehose;

/* --- messages that wait for a poll which may serve them, in their receive buffers --- */

/* A queue for each channel, and one for firehose's requests. These are apart: a peer with unmapped
 * memory may send nothing until this rank has forgotten it, not even a reply that a thread waits
 * for in a handler; so each poll serves them. */
#define AQ_IBV_FIREHOSE        AQ_IBV_CHANNELS
#define AQ_IBV_DEFERRED_QUEUES (AQ_IBV_CHANNELS + 1)

static struct {
    aq_lock lock;
    struct aq_ibv_rbuf *_Atomic first;
    struct aq_ibv_rbuf *last;
} aq_ibv_deferred[AQ_IBV_DEFERRED_QUEUES] AQ_JOB_STATE;

/* The queue of a message. */
static inline unsigned aq_ibv_rbuf_queue(const struct aq_ibv_rbuf *buf)
{
    const unsigned channel = aq_ibv_rbuf_channel(buf);

    return channel == AQ_IBV_REQUEST && buf->fragment.head.handler == AQ_HIDX_FIREHOSE
               ? AQ_IBV_FIREHOSE
               : channel;
}

static inline bool aq_ibv_deferred_any(unsigned queue)
{
    /* relaxed: what is seen too late is there at the next poll */
    return atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed) != NULL;
}

static void aq_ibv_deferred_add(struct aq_ibv_rbuf *buf, unsigned queue)
{
    buf->next = NULL;
    aq_lock_acquire(&aq_ibv_deferred[queue].lock);
    /* relaxed: under the lock; a look without it may be late */
    if (atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed) == NULL)
        atomic_store_explicit(&aq_ibv_deferred[queue].first, buf, memory_order_relaxed);
    else
        aq_ibv_deferred[queue].last->next = buf;
    aq_ibv_deferred[queue].last = buf;
    aq_lock_release(&aq_ibv_deferred[queue].lock);
    aq_counter_add(&aq_ibv_am.deferred, 1);
}

/* All messages of a queue, linked by next; or NULL. */
static struct aq_ibv_rbuf *aq_ibv_deferred_take(unsigned queue)
{
    struct aq_ibv_rbuf *buf;

    aq_lock_acquire(&aq_ibv_deferred[queue].lock);
    buf = atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv_deferred[queue].first, NULL, memory_order_relaxed);
    aq_lock_release(&aq_ibv_deferred[queue].lock);
    return buf;
}

/* Ends the job if a long message's payload does not lie inside a segment. */
static void aq_ibv_recv_check_dest(const struct aq_ibv_peer *peer, uint64_t dest, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)peer, (void)dest, (void)nbytes;
#else
    char who[AQ_IBV_WHO];

    if (nbytes != 0 && !(aq_job.bound != NULL && aq_bound_is_self((void *)(uintptr_t)dest, nbytes)))
        aq_fatal("%s sent a long message to [0x%llx, +%zu), which is not inside a segment of this "
                 "process",
                 aq_ibv_remote_who(&peer->remote, who, sizeof(who)), (unsigned long long)dest,
                 nbytes);
#endif
}

/* --- handlers --- */

static void aq_ibv_recv_deliver(struct aq_ibv_rbuf *buf, uint8_t kind, void *payload, size_t nbytes)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    struct aq_am_in in = { .token = { .jobrank = buf->peer->remote.rank,
                                      .handler = fragment->head.handler,
                                      .nargs = fragment->head.nargs,
                                      .kind = kind,
                                      .is_reply = aq_ibv_rbuf_channel(buf) == AQ_IBV_REPLY },
                           .args = fragment->args,
                           .payload = payload,
                           .nbytes = nbytes };

    if (kind == AQ_AM_SHORT)
        aq_am_deliver_short(&in.token, fragment->args);
    else
        aq_am_deliver(&in);
}

static void aq_ibv_recv_run(struct aq_ibv_rbuf *buf)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    void *address = (void *)(uintptr_t)fragment->address;
    struct aq_ibv_reasm *whole = buf->whole;

    switch (fragment->head.type) {
    case AQ_IBV_T_SHORT:
        aq_ibv_recv_deliver(buf, AQ_AM_SHORT, NULL, 0);
        break;
    case AQ_IBV_T_MEDIUM:
        aq_ibv_recv_deliver(buf, AQ_AM_MEDIUM, fragment->data, fragment->head.nbytes);
        break;
    case AQ_IBV_T_LONG:
        aq_ibv_recv_check_dest(buf->peer, fragment->address, fragment->head.nbytes);
        if (fragment->head.nbytes != 0)
            aq_word_write(address, fragment->data, fragment->head.nbytes);
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, address, fragment->head.nbytes);
        break;
    case AQ_IBV_T_PLACED:
        aq_ibv_recv_check_dest(buf->peer, fragment->address, fragment->head.nbytes);
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, address, fragment->head.nbytes);
        break;
    case AQ_IBV_T_MEDIUM_FRAG:
        aq_ibv_recv_deliver(buf, AQ_AM_MEDIUM, whole->base.payload, whole->base.total);
        aq_ibv_reasm_release(whole);
        break;
    default: /* AQ_IBV_T_LONG_FRAG */
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, whole->base.payload, whole->base.total);
        aq_ibv_reasm_release(whole);
        break;
    }
}

/* A request of firehose: polls in which its answer waits for space serve replies, and no further
 * request of firehose. */
static void aq_ibv_recv_run_firehose(struct aq_ibv_rbuf *buf)
{
    aq_ibv_in_firehose = true;
    aq_ibv_recv_run(buf);
    aq_ibv_in_firehose = false;
}

/* --- buffers back --- */

/* The buffers of a batch, all of one rail: posted again, then granted. */
static void aq_ibv_recv_release(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs,
                                unsigned count)
{
    struct aq_ibv_rbuf *again[AQ_IBV_RECV_MAX];
    struct aq_ibv_peer *whose[AQ_IBV_RECV_MAX];
    unsigned channels[AQ_IBV_RECV_MAX], posted = 0;

    for (unsigned i = 0; i < count; i++) {
        struct aq_ibv_peer *peer = bufs[i]->peer;
        const unsigned channel = aq_ibv_rbuf_channel(bufs[i]);
        const bool left_out = aq_ibv_rbuf_excess_take(rail);

        aq_lock_acquire(&peer->flow.in_lock);
        peer->flow.handled += bufs[i]->runs;
        aq_ibv_credit_return(&peer->flow.in[channel], left_out);
        if (left_out)
            aq_ibv_update_queue(&aq_ibv_am.updates, &peer->flow, channel);
        aq_lock_release(&peer->flow.in_lock);
        if (left_out) {
            aq_ibv_rbuf_reserve(rail, bufs[i]);
            continue;
        }
        again[posted] = bufs[i];
        whose[posted] = peer;
        channels[posted++] = channel;
    }
    if (posted == 0)
        return;
    aq_ibv_rbuf_repost(rail, again, posted);
    for (unsigned i = 0; i < posted; i++) {
        aq_lock_acquire(&whose[i]->flow.in_lock);
        aq_ibv_credit_add(&whose[i]->flow.in[channels[i]], 1);
        aq_ibv_update_queue(&aq_ibv_am.updates, &whose[i]->flow, channels[i]);
        aq_lock_release(&whose[i]->flow.in_lock);
    }
}

/* --- arrivals --- */

static _Noreturn void aq_ibv_recv_malformed(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                                            const struct aq_ibv_rbuf *buf, const char *what)
{
    const struct aq_ibv_remote unknown = { .rank = buf->fragment.head.from };
    const struct aq_ibv_peer *peer =
        unknown.rank < aq_job.size ? aq_ibv_peer_look(unknown.rank) : NULL;
    char who[AQ_IBV_WHO];

    aq_fatal("ibv: port %s:%u: a message of %u bytes, type %u, that says it is from %s is "
             "malformed: %s; do all ranks "
             "run the same library?",
             rail->dev->name, rail->port, wc->byte_len, buf->bytes[0],
             aq_ibv_remote_who(peer != NULL ? &peer->remote : &unknown, who, sizeof(who)), what);
}

/* The peer needs more credits; in_lock held. */
static void aq_ibv_recv_grow(struct aq_ibv_rail *rail, struct aq_ibv_peer *peer,
                             struct aq_ibv_credit_in *in, const struct aq_ibv_head *head)
{
    char why[600], who[AQ_IBV_WHO];
    uint32_t more = 0;

    if (head->want != 0)
        more =
            aq_ibv_credit_request(in, head->want < AQ_IBV_WANT_MAX ? head->want : AQ_IBV_WANT_MAX);
    else if ((head->flags & AQ_IBV_F_CREDIT_LOW) != 0)
        more = aq_ibv_credit_growth(in, aq_ibv_am.window_max, aq_ibv_rbuf_budget());
    if (more == 0)
        return;
    if (aq_ibv_rbuf_grow(rail, more, why, sizeof(why)))
        aq_ibv_credit_grow(in, more);
    else if (head->want > in->window) /* else the peer could wait for ever */
        aq_fatal("%s; %s needs %u of them", why, aq_ibv_remote_who(&peer->remote, who, sizeof(who)),
                 head->want);
}

/* The rail's lock held: add a fragment to its message; true: buf->whole is complete. */
static bool aq_ibv_recv_add_frag(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                                 struct aq_ibv_rbuf *buf)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    struct aq_ibv_reasm **open = &buf->peer->reasm[aq_ibv_rbuf_channel(buf)];

    if (*open == NULL && fragment->head.type == AQ_IBV_T_LONG_FRAG)
        aq_ibv_recv_check_dest(buf->peer, fragment->address, fragment->total);
    switch (aq_ibv_reasm_add(open, fragment, &buf->whole)) {
    case AQ_IBV_REASM_MORE:
        return false;
    case AQ_IBV_REASM_COMPLETE:
        return true;
    case AQ_IBV_REASM_NOMEM:
        aq_fatal("ibv: no memory for a message of %u bytes", fragment->total);
    default:
        aq_ibv_recv_malformed(rail, wc, buf, "its fragments contradict each other");
    }
}

/* The rail's lock held: check a message that arrived. */
static struct aq_ibv_rbuf *aq_ibv_recv_accept(struct aq_ibv_rail *rail, const struct ibv_wc *wc)
{
    struct aq_ibv_rbuf *buf = (struct aq_ibv_rbuf *)(uintptr_t)wc->wr_id;
    const struct aq_ibv_head *head = &buf->fragment.head;
    struct aq_ibv_credit_in *in;
    bool credited;

    /* INT32_MAX: the sender's limit for long messages may be higher than this process's */
    if (!aq_ibv_packet_read(buf->bytes, wc->byte_len, aq_job.size, aq_limits.max_medium, INT32_MAX,
                            &buf->fragment))
        aq_ibv_recv_malformed(rail, wc, buf, "lengths do not fit together");
    buf->peer = aq_ibv_peer_look(head->from);
    buf->whole = NULL;
    if (buf->peer == NULL || aq_ibv_peer_am_qp(buf->peer)->qp->qp_num != wc->qp_num)
        aq_ibv_recv_malformed(rail, wc, buf, "its sender is another rank");
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_ibv_credit_learn(&buf->peer->flow.out[channel], head->credits[channel]);
    in = &buf->peer->flow.in[aq_ibv_rbuf_channel(buf)];
    aq_lock_acquire(&buf->peer->flow.in_lock);
    credited = aq_ibv_credit_arrive(in, head->skip);
    if (AQ_UNLIKELY(head->want != 0 || (head->flags & AQ_IBV_F_CREDIT_LOW) != 0))
        aq_ibv_recv_grow(rail, buf->peer, in, head);
    aq_lock_release(&buf->peer->flow.in_lock);
    if (!credited)
        aq_ibv_recv_malformed(rail, wc, buf, "it had no credit for it");
    if (AQ_UNLIKELY(head->skip != 0))
        aq_ibv_rbuf_excess_add(rail, head->skip);
    buf->runs = aq_ibv_type_is_frag(head->type) ? aq_ibv_recv_add_frag(rail, wc, buf)
                                                : head->type != AQ_IBV_T_CONTROL;
    return buf;
}

/* Poll the rail for completions, of which there are none most often; non-zero: its lock is held. */
static inline int aq_ibv_recv_look(struct aq_ibv_rail *rail, struct ibv_wc *wc)
{
    int count;

    if (!aq_lock_try(&rail->recv_lock))
        return 0;
    count = ibv_poll_cq(rail->recv_cq, AQ_IBV_RECV_MAX, wc);
    if (count == 0)
        aq_lock_release(&rail->recv_lock);
    return count;
}

/* No message has arrived: the queue pair of a peer is in error, and has given the buffer back. */
static void aq_ibv_recv_failed(const struct aq_ibv_rail *rail, const struct ibv_wc *wc)
{
    const struct aq_ibv_peer *peer = aq_ibv_peer_first();

    while (peer != NULL
           && (!aq_ibv_peer_is_ready(peer) || aq_ibv_peer_am_qp(peer)->qp->qp_num != wc->qp_num))
        peer = peer->next_active;
    aq_ibv_error_note(rail, "receiving a message", peer != NULL ? &peer->remote : NULL, wc);
}

/* Take a batch of completions; returns how many of the messages run a handler. Releases the rail's
 * lock. Buffers of other messages (fragments, requests for credits) are posted again at once: no
 * handler that waits keeps their credits from the peer. */
static unsigned aq_ibv_recv_take(struct aq_ibv_rail *rail, const struct ibv_wc *wc, int count,
                                 struct aq_ibv_rbuf **bufs_out)
{
    struct aq_ibv_rbuf *rest[AQ_IBV_RECV_MAX];
    unsigned taken = 0, rest_count = 0;

    for (int i = 0; i < count; i++) {
        struct aq_ibv_rbuf *buf;

        if (AQ_UNLIKELY(wc[i].status != IBV_WC_SUCCESS)) {
            aq_ibv_recv_failed(rail, &wc[i]);
            continue;
        }
        buf = aq_ibv_recv_accept(rail, &wc[i]);
        if (AQ_LIKELY(buf->runs))
            bufs_out[taken++] = buf;
        else
            rest[rest_count++] = buf;
    }
    aq_lock_release(&rail->recv_lock);
    if (AQ_UNLIKELY(count < 0))
        aq_fatal("ibv: port %s:%u: its completion queue cannot be read", rail->dev->name,
                 rail->port);
    if (rest_count != 0)
        aq_ibv_recv_release(rail, rest, rest_count);
    return taken;
}

/* --- deferred messages --- */

static unsigned aq_ibv_serve_deferred(unsigned queue)
{
    struct aq_ibv_rbuf *buf = aq_ibv_deferred_take(queue);
    unsigned served = 0;

    while (buf != NULL) {
        struct aq_ibv_rbuf *next = buf->next;

        if (queue == AQ_IBV_FIREHOSE)
            aq_ibv_recv_run_firehose(buf);
        else
            aq_ibv_recv_run(buf);
        aq_ibv_recv_release(aq_ibv_peer_am_qp(buf->peer)->rail, &buf, 1);
        served++;
        buf = next;
    }
    return served;
}

void aq_ibv_recv_fini(void)
{
    for (unsigned queue = 0; queue < AQ_IBV_DEFERRED_QUEUES; queue++)
        for (struct aq_ibv_rbuf *buf = aq_ibv_deferred_take(queue); buf != NULL; buf = buf->next)
            if (buf->whole != NULL)
                aq_ibv_reasm_release(buf->whole);
}

/* --- polling --- */

static void aq_ibv_serve_firehose(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs,
                                  unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        aq_ibv_recv_run_firehose(bufs[i]);
        aq_ibv_recv_release(rail, &bufs[i], 1);
    }
}

/* Replies come first, and their buffers are posted again before a request runs: the request's
 * handler may wait for credits of replies, and the peer that is to grant them may wait for those of
 * its own replies, which are in this batch. Requests of firehose are next: a handler of the other
 * requests may wait until this rank may send again. */
static __attribute__((noinline)) unsigned aq_ibv_recv_serve(struct aq_ibv_rail *rail,
                                                            const struct ibv_wc *wc, int count,
                                                            bool replies_only)
{
    struct aq_ibv_rbuf *bufs[AQ_IBV_RECV_MAX], *replies[AQ_IBV_RECV_MAX],
        *firehose[AQ_IBV_RECV_MAX];
    const unsigned taken = aq_ibv_recv_take(rail, wc, count, bufs);
    unsigned reply_count = 0, firehose_count = 0, request_count = 0;

    for (unsigned i = 0; i < taken; i++) {
        struct aq_ibv_rbuf *buf = bufs[i];

        if (aq_ibv_rbuf_channel(buf) == AQ_IBV_REPLY) {
            aq_ibv_recv_run(buf);
            replies[reply_count++] = buf;
        } else if (aq_ibv_rbuf_queue(buf) == AQ_IBV_FIREHOSE && !aq_ibv_in_firehose) {
            firehose[firehose_count++] = buf;
        } else if (AQ_UNLIKELY(replies_only)) {
            aq_ibv_deferred_add(buf, aq_ibv_rbuf_queue(buf));
        } else {
            bufs[request_count++] = buf;
        }
    }
    if (reply_count != 0)
        aq_ibv_recv_release(rail, replies, reply_count);
    aq_ibv_serve_firehose(rail, firehose, firehose_count);
    for (unsigned i = 0; i < request_count; i++)
        aq_ibv_recv_run(bufs[i]);
    if (request_count != 0)
        aq_ibv_recv_release(rail, bufs, request_count);
    return reply_count + firehose_count + request_count;
}

unsigned aq_ibv_receive(bool replies_only)
{
    struct aq_ibv_rail *rail = &aq_ibv_am.net->rails[0]; /* messages use the first rail */
    struct ibv_wc wc[AQ_IBV_RECV_MAX];
    unsigned served = 0;
    int count;

    if (AQ_UNLIKELY(aq_ibv_deferred_any(AQ_IBV_REPLY)))
        served += aq_ibv_serve_deferred(AQ_IBV_REPLY);
    if (AQ_UNLIKELY(aq_ibv_deferred_any(AQ_IBV_FIREHOSE)) && !aq_ibv_in_firehose)
        served += aq_ibv_serve_deferred(AQ_IBV_FIREHOSE);
    if (AQ_UNLIKELY(aq_ibv_deferred_any(AQ_IBV_REQUEST)) && !replies_only)
        served += aq_ibv_serve_deferred(AQ_IBV_REQUEST);
    count = aq_ibv_recv_look(rail, wc);
    if (count != 0)
        served += aq_ibv_recv_serve(rail, wc, count, replies_only);
    /* a thread that waits with a reply may wait long: peers get all updates */
    aq_ibv_updates_poll(&aq_ibv_am.updates, replies_only);
    return served + (count == AQ_IBV_RECV_MAX); /* there may be more: the thread must not sleep */
}

void aq_ibv_receive_quietly(void)
{
    struct aq_ibv_rbuf *bufs[AQ_IBV_RECV_MAX];
    struct ibv_wc wc[AQ_IBV_RECV_MAX];
    const int count = aq_ibv_recv_look(&aq_ibv_am.net->rails[0], wc);
    const unsigned taken =
        count != 0 ? aq_ibv_recv_take(&aq_ibv_am.net->rails[0], wc, count, bufs) : 0;

    for (unsigned i = 0; i < taken; i++)
        aq_ibv_deferred_add(bufs[i], aq_ibv_rbuf_queue(bufs[i]));
    if (taken != 0 || count == AQ_IBV_RECV_MAX)
        /* another thread may have gone to sleep between the completion and now */
        aq_wait_wake();
}
