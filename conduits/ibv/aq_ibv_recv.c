/*
 * aq_ibv_recv.c - active messages from far ranks: completions in, handlers, buffers back.
 *
 * A completion is taken and looked at under the rail's lock, so that the fragments of a message are
 * put together in their order; handlers run without it. Requests that come while only replies may
 * be served are held, in their buffers: what was granted to a lane is there for it, so that held
 * requests take nothing from replies.
 *
 * Grants    what is handled is posted again at the end of a batch, and granted;
 *           aq_ibv_credit_update.c tells the peer
 * Threads   any
 * Promise   nothing a peer sends makes this process write outside its segments or run what is not
 *           registered: what does not fit the format ends the job
 * Uses      aq_ibv_packet.h, core/aq_am_deliver.h, other/firehose.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_recv.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_am.h"
#include "core/aq_am_deliver.h"
#include "core/aq_poll.h"
#include "core/aq_ep.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"
#include "other/firehose/aq_fh.h"

#define AQ_IBV_BATCH   16
#define AQ_IBV_TICK_NS UINT64_C(100000000)

static _Thread_local bool aq_ibv_in_firehose;

/* Which of aq_ibv_deferred[] it would wait in. */
static inline unsigned aq_ibv_rbuf_queue(const struct aq_ibv_rbuf *buf)
{
    const unsigned channel = aq_ibv_rbuf_channel(buf);

    return channel == AQ_IBV_REQUEST && buf->fragment.head.handler == AQ_HIDX_FIREHOSE
               ? AQ_IBV_FIREHOSE
               : channel;
}

/* --- handlers --- */

static void aq_ibv_recv_deliver(struct aq_ibv_rbuf *buf, uint8_t kind, void *payload, size_t nbytes)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    struct aq_am_in in = { .token = { .jobrank = buf->peer->rank,
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
        aq_ibv_reasm_check(buf->peer, fragment->address, fragment->head.nbytes);
        if (fragment->head.nbytes != 0)
            aq_word_write(address, fragment->data, fragment->head.nbytes);
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, address, fragment->head.nbytes);
        break;
    case AQ_IBV_T_PLACED:
        aq_ibv_reasm_check(buf->peer, fragment->address, fragment->head.nbytes);
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, address, fragment->head.nbytes);
        break;
    case AQ_IBV_T_MEDIUM_FRAG:
        aq_ibv_recv_deliver(buf, AQ_AM_MEDIUM, whole->payload, whole->total);
        aq_ibv_reasm_give(whole);
        break;
    default: /* a long one's last part */
        aq_ibv_recv_deliver(buf, AQ_AM_LONG, whole->payload, whole->total);
        aq_ibv_reasm_give(whole);
        break;
    }
}

/* One of firehose's requests: polls in which its answer waits for room serve replies, and no
 * further one of these. */
static void aq_ibv_recv_run_firehose(struct aq_ibv_rbuf *buf)
{
    aq_ibv_in_firehose = true;
    aq_ibv_recv_run(buf);
    aq_ibv_in_firehose = false;
}

/* --- buffers back --- */

/* Credits were given up: so many buffers are posted for nobody. */
static void aq_ibv_excess_add(struct aq_ibv_rail *rail, uint32_t count)
{
    aq_lock_acquire(&rail->excess_lock);
    /* relaxed: written under the lock */
    atomic_store_explicit(&rail->excess,
                          atomic_load_explicit(&rail->excess, memory_order_relaxed) + count,
                          memory_order_relaxed);
    aq_lock_release(&rail->excess_lock);
}

/* Take one of them for a buffer that then need not be posted again. */
static bool aq_ibv_excess_take(struct aq_ibv_rail *rail)
{
    uint32_t excess;

    /* relaxed: a hint; what counts is read under the lock */
    if (AQ_LIKELY(atomic_load_explicit(&rail->excess, memory_order_relaxed) == 0))
        return false;
    aq_lock_acquire(&rail->excess_lock);
    excess = atomic_load_explicit(&rail->excess, memory_order_relaxed);
    if (excess != 0)
        atomic_store_explicit(&rail->excess, excess - 1, memory_order_relaxed);
    aq_lock_release(&rail->excess_lock);
    return excess != 0;
}

/* Those of a batch, all of one rail: posted again, granted. */
static void aq_ibv_recv_release(struct aq_ibv_rail *rail, struct aq_ibv_rbuf *const *bufs,
                                unsigned count)
{
    struct aq_ibv_rbuf *again[AQ_IBV_BATCH];
    struct aq_ibv_peer *whose[AQ_IBV_BATCH];
    unsigned channels[AQ_IBV_BATCH], posted = 0;

    for (unsigned i = 0; i < count; i++) {
        struct aq_ibv_peer *peer = bufs[i]->peer;
        const unsigned channel = aq_ibv_rbuf_channel(bufs[i]);
        const bool left_out = aq_ibv_excess_take(rail);

        aq_lock_acquire(&peer->in_lock);
        peer->handled += bufs[i]->runs;
        aq_ibv_credit_return(&peer->in[channel], left_out);
        if (left_out)
            aq_ibv_credit_update_queue(peer, channel);
        aq_lock_release(&peer->in_lock);
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
        aq_lock_acquire(&whose[i]->in_lock);
        aq_ibv_credit_add(&whose[i]->in[channels[i]], 1);
        aq_ibv_credit_update_queue(whose[i], channels[i]);
        aq_lock_release(&whose[i]->in_lock);
    }
}

/* --- what comes --- */

void aq_ibv_recv_malformed(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                           const struct aq_ibv_rbuf *buf, const char *what)
{
    const struct aq_ibv_peer none = { .rank = buf->fragment.head.from };
    const struct aq_ibv_peer *peer = none.rank < aq_job.size ? aq_ibv_peer_look(none.rank) : NULL;
    char who[AQ_IBV_WHO];

    aq_fatal("ibv: port %s:%u: a message of %u bytes, type %u, that says it is from %s is "
             "malformed: %s; do all ranks "
             "run the same library?",
             rail->dev->name, rail->port, wc->byte_len, buf->bytes[0],
             aq_ibv_peer_who(peer != NULL ? peer : &none, who, sizeof(who)), what);
}

/* The peer asks for more: in_lock held. */
static void aq_ibv_recv_grow(struct aq_ibv_rail *rail, struct aq_ibv_peer *peer,
                             struct aq_ibv_credit_in *in, const struct aq_ibv_head *head)
{
    char why[600], who[AQ_IBV_WHO];
    uint32_t more = 0;

    if (head->want != 0)
        more =
            aq_ibv_credit_request(in, head->want < AQ_IBV_WANT_MAX ? head->want : AQ_IBV_WANT_MAX);
    else if ((head->flags & AQ_IBV_F_CREDIT_LOW) != 0)
        more = aq_ibv_credit_growth(in, aq_ibv.window_max, aq_ibv_rbuf_budget());
    if (more == 0)
        return;
    if (aq_ibv_rbuf_grow(rail, more, why, sizeof(why)))
        aq_ibv_credit_grow(in, more);
    else if (head->want > in->window) /* it could wait for ever */
        aq_fatal("%s; %s needs %u of them", why, aq_ibv_peer_who(peer, who, sizeof(who)),
                 head->want);
}

/* The rail's lock held: look at a completion. */
static struct aq_ibv_rbuf *aq_ibv_recv_accept(struct aq_ibv_rail *rail, const struct ibv_wc *wc)
{
    struct aq_ibv_rbuf *buf = (struct aq_ibv_rbuf *)(uintptr_t)wc->wr_id;
    const struct aq_ibv_head *head = &buf->fragment.head;
    struct aq_ibv_credit_in *in;
    bool credited;

    /* not this process's limit for long ones: it may be lower than the sender's, for near ranks */
    if (!aq_ibv_packet_read(buf->bytes, wc->byte_len, aq_job.size, aq_limits.max_medium, INT32_MAX,
                            &buf->fragment))
        aq_ibv_recv_malformed(rail, wc, buf, "lengths do not fit together");
    buf->peer = aq_ibv_peer_look(head->from);
    buf->whole = NULL;
    if (buf->peer == NULL || buf->peer->qps[buf->peer->am_qp]->qp->qp_num != wc->qp_num)
        aq_ibv_recv_malformed(rail, wc, buf, "its sender is somebody else");
    for (unsigned channel = 0; channel < AQ_IBV_CHANNELS; channel++)
        aq_ibv_credit_learn(&buf->peer->out[channel], head->credits[channel]);
    in = &buf->peer->in[aq_ibv_rbuf_channel(buf)];
    aq_lock_acquire(&buf->peer->in_lock);
    credited = aq_ibv_credit_arrive(in, head->skip);
    if (AQ_UNLIKELY(head->want != 0 || (head->flags & AQ_IBV_F_CREDIT_LOW) != 0))
        aq_ibv_recv_grow(rail, buf->peer, in, head);
    aq_lock_release(&buf->peer->in_lock);
    if (!credited)
        aq_ibv_recv_malformed(rail, wc, buf, "it had no credit for it");
    if (AQ_UNLIKELY(head->skip != 0))
        aq_ibv_excess_add(rail, head->skip);
    buf->runs = aq_ibv_type_is_frag(head->type) ? aq_ibv_reasm_take(rail, wc, buf)
                                                : head->type != AQ_IBV_T_CONTROL;
    return buf;
}

/* A look at what has come, which most often is nothing; non-zero: the rail's lock is held. */
static inline int aq_ibv_recv_look(struct aq_ibv_rail *rail, struct ibv_wc *wc)
{
    int count;

    if (!aq_lock_try(&rail->recv_lock))
        return 0;
    count = ibv_poll_cq(rail->recv_cq, AQ_IBV_BATCH, wc);
    if (count == 0)
        aq_lock_release(&rail->recv_lock);
    return count;
}

/* Take a batch that was found; returns how many of its messages run a handler. Gives back the lock.
 * The buffers of others, fragments and requests for credit, go back at once: no handler that waits
 * keeps their credits from the peer. */
static unsigned aq_ibv_recv_take(struct aq_ibv_rail *rail, const struct ibv_wc *wc, int count,
                                 struct aq_ibv_rbuf **bufs_out)
{
    struct aq_ibv_rbuf *over[AQ_IBV_BATCH];
    unsigned taken = 0, over_count = 0;

    for (int i = 0; i < count; i++) {
        struct aq_ibv_rbuf *buf;

        if (AQ_UNLIKELY(wc[i].status != IBV_WC_SUCCESS)) {
            (void)aq_ibv_error_completion(rail, NULL, &wc[i]); /* which ends the job */
            continue;
        }
        buf = aq_ibv_recv_accept(rail, &wc[i]);
        if (AQ_LIKELY(buf->runs))
            bufs_out[taken++] = buf;
        else
            over[over_count++] = buf;
    }
    aq_lock_release(&rail->recv_lock);
    if (AQ_UNLIKELY(count < 0))
        aq_fatal("ibv: port %s:%u: its completion queue cannot be read", rail->dev->name,
                 rail->port);
    if (over_count != 0)
        aq_ibv_recv_release(rail, over, over_count);
    return taken;
}

/* --- messages that waited --- */

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
        aq_ibv_recv_release(buf->peer->qps[buf->peer->am_qp]->rail, &buf, 1);
        served++;
        buf = next;
    }
    return served;
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

/* Replies come first and are given back before a request runs: its handler may wait for credits of
 * replies, and the peer that is to return them may wait for those of its own replies, which are in
 * this batch. Then firehose's: a handler of those that follow may wait until this rank may speak
 * again. */
static __attribute__((noinline)) unsigned aq_ibv_recv_serve(struct aq_ibv_rail *rail,
                                                            const struct ibv_wc *wc, int count,
                                                            bool replies_only)
{
    struct aq_ibv_rbuf *bufs[AQ_IBV_BATCH], *replies[AQ_IBV_BATCH], *firehose[AQ_IBV_BATCH];
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
    struct aq_ibv_rail *rail = &aq_ibv.rails[0]; /* the one of messages */
    struct ibv_wc wc[AQ_IBV_BATCH];
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
    aq_ibv_credit_update(
        replies_only); /* who waits with a reply may wait long: peers hear of everything */
    return served + (count == AQ_IBV_BATCH); /* there may be more: nobody goes to sleep */
}

void aq_ibv_receive_quietly(void)
{
    struct aq_ibv_rbuf *bufs[AQ_IBV_BATCH];
    struct ibv_wc wc[AQ_IBV_BATCH];
    const int count = aq_ibv_recv_look(&aq_ibv.rails[0], wc);
    const unsigned taken = count != 0 ? aq_ibv_recv_take(&aq_ibv.rails[0], wc, count, bufs) : 0;

    for (unsigned i = 0; i < taken; i++)
        aq_ibv_deferred_add(bufs[i], aq_ibv_rbuf_queue(bufs[i]));
    if (taken != 0 || count == AQ_IBV_BATCH)
        /* another thread may have gone to sleep between the completion and now */
        aq_wait_wake();
}

/* It is connected. */
static void aq_ibv_tick_peer(struct aq_ibv_peer *peer)
{
    aq_ibv_am_skip(peer);
    if (AQ_UNLIKELY(aq_ibv_peer_disconnected(peer)) && aq_fh_job != NULL)
        aq_fh_peer_disconnect(aq_fh_job, peer->rank);
}

void aq_ibv_tick(uint64_t now_ns)
{
    static _Atomic uint64_t next;

    /* relaxed: two threads that come at once do it twice */
    if (AQ_LIKELY(now_ns < atomic_load_explicit(&next, memory_order_relaxed)))
        return;
    atomic_store_explicit(&next, now_ns + AQ_IBV_TICK_NS, memory_order_relaxed);
    aq_ibv_error_overdue(now_ns);
    aq_ibv_credit_update(true); /* what is not due yet might be what a peer waits for */
    for (uint32_t i = 0; i < aq_ibv.rail_count;
         i++) /* a request that was not signalled completes too, if it failed */
        (void)aq_ibv_qp_reap(&aq_ibv.rails[i]);
    for (struct aq_ibv_peer *peer = atomic_load_explicit(&aq_ibv.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active)
        if (atomic_load_explicit(&peer->ready, memory_order_acquire) != 0)
            aq_ibv_tick_peer(peer);
}
