/*
 * aq_udp_rma.c - puts and gets with remote ranks, on the RMA channel.
 *
 * Put    up to AQ_UDP_INLINE_MAX bytes are copied into a datagram, which several puts to the same
 *        peer may share. A larger put is read from the client's memory when it is sent, and again
 *        if it is retransmitted, so that the kernel makes the only copy. The target acknowledges
 *        datagrams after their data is in place; a put is complete when its datagrams are
 *        acknowledged, without a reply message
 * Get    a request names the source at the target and an id. The target answers with DATA frames on
 *        the same channel, read from its segment when they are sent. The initiator finds the
 *        destination by the id; the target never names an address of the initiator
 * Order  none: a fragment is placed when it arrives
 *
 * Two queues wait for free slots of the channel. Data that the peer has requested goes first and
 * waits for acknowledgements only. This rank's own puts and gets may also wait for a free get id.
 * Two ranks that get from each other therefore cannot deadlock.
 *
 * Threads   any; queues under the peer's lock, copies without it
 * Promise   for a peer, nothing is read or written outside this process's segments or the
 *           destinations of outstanding gets; aligned words of 1 to 8 bytes are not torn
 * Uses      core/aq_op.h, base/aq_word.h, core/aq_poll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "core/aq_ep.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "base/aq_word.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

#define AQ_UDP_INLINE_MAX 512u /* bytes of data that travel in the head */
#define AQ_UDP_COPY_NOW \
    32768u /* a source of up to so many bytes is copied, if the client needs it back at once; a
            * longer one is waited for */
#define AQ_UDP_GET_MAX   (UINT64_C(1) << 30) /* bytes of one request */
#define AQ_UDP_QUEUE_MAX 1024u               /* transfers that may wait for slots */

/* --- datagrams of the channel --- */

/* Sends a put whose data is copied now. Returns false if no slot is free. */
static bool aq_udp_put_small(struct aq_udp_peer *peer, struct aq_op *op, uint64_t dest,
                             const void *src, size_t nbytes)
{
    struct aq_udp_tx *tx;
    uint8_t *at = aq_udp_peer_reserve(peer, AQ_UDP_RMA, AQ_UDP_RMA_HEAD + nbytes, &tx);

    if (at == NULL)
        return false;
    at = aq_udp_put_encode(at, (uint32_t)nbytes, dest, (uintptr_t)op);
    memcpy(at, src, nbytes);
    tx->count++;
    tx->urgent = true;
    aq_udp_link_open(&peer->link, AQ_UDP_RMA);
    return true;
}

/* --- queues of transfers --- */

static void aq_udp_queue_push(struct aq_udp_queue *queue, struct aq_udp_xfer *xfer)
{
    xfer->next = NULL;
    *queue->last = xfer;
    queue->last = &xfer->next;
    queue->length++;
}

static void aq_udp_queue_pop(struct aq_udp_queue *queue)
{
    queue->first = queue->first->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    queue->length--;
}

static struct aq_udp_xfer *aq_udp_xfer_new(const struct aq_udp_xfer *as)
{
    struct aq_udp_xfer *xfer = malloc(sizeof(*xfer));

    if (xfer == NULL)
        aq_fatal("udp: no memory for a transfer of %llu bytes", (unsigned long long)as->nbytes);
    *xfer = *as;
    return xfer;
}

/* All datagrams of a put, or of requested data, are acknowledged. */
static void aq_udp_xfer_end(struct aq_udp_xfer *xfer)
{
    const bool is_callers = xfer->is_callers;

    if (xfer->copy != NULL)
        aq_udp_buf_give(xfer->copy);
    if (xfer->type == AQ_UDP_X_PUT) {
        if (xfer->counts_lc)
            aq_op_end(xfer->op, GEX_EC_LC, 1);
        aq_op_end(xfer->op, GEX_EC_PUT, 1);
    }
    if (is_callers)
        /* release: the waiting caller may then reuse the source and leave the frame that holds
         * xfer */
        atomic_store_explicit(&xfer->done, true, memory_order_release);
    else
        free(xfer);
}

/* Queues the next datagram of a put or of requested data. The caller has checked that a slot is
 * free. */
static void aq_udp_xfer_frag(struct aq_udp_peer *peer, struct aq_udp_xfer *xfer)
{
    const uint64_t space = (peer->link.mtu - AQ_UDP_HEADER - AQ_UDP_RMA_HEAD) & ~7u;
    const uint64_t left = xfer->nbytes - xfer->at, len = left < space ? left : space;
    struct aq_udp_tx *tx = aq_udp_link_add(&peer->link, AQ_UDP_RMA);
    const bool inlined = len <= AQ_UDP_INLINE_MAX;
    uint8_t *at;

    if (tx == NULL)
        aq_fatal("udp: no memory for a transfer with rank %u", peer->rank);
    tx->head = aq_udp_buf_take(AQ_UDP_HEADER + AQ_UDP_RMA_HEAD + (inlined ? len : 0));
    at = tx->head + AQ_UDP_HEADER;
    if (xfer->type == AQ_UDP_X_PUT)
        at = aq_udp_put_encode(at, (uint32_t)len, xfer->remote + xfer->at, 0);
    else
        at = aq_udp_data_encode(at, (uint32_t)len, xfer->id, xfer->at);
    if (inlined) {
        aq_word_read(at, xfer->local + xfer->at, len);
        at += len;
    } else {
        tx->body = xfer->local + xfer->at;
        tx->body_len = (uint32_t)len;
    }
    tx->head_len = (uint32_t)(at - tx->head);
    tx->tag = xfer;
    xfer->at += len;
    xfer->unacked++;
    tx->urgent = xfer->type == AQ_UDP_X_PUT && xfer->at == xfer->nbytes;
}

/* Sends a get request, which needs an id and a slot. Returns false if one of them is not free. */
static bool aq_udp_get_ask(struct aq_udp_peer *peer, const struct aq_udp_xfer *xfer)
{
    struct aq_udp_get *get;
    struct aq_udp_tx *tx;
    uint8_t *at;
    uint32_t slot;

    if (peer->gets_used == AQ_UDP_GETS)
        return false;
    if (peer->gets == NULL && (peer->gets = calloc(AQ_UDP_GETS, sizeof(*peer->gets))) == NULL)
        aq_fatal("udp: no memory for gets from rank %u", peer->rank);
    at = aq_udp_peer_reserve(peer, AQ_UDP_RMA, AQ_UDP_RMA_HEAD, &tx);
    if (at == NULL)
        return false;
    for (slot = peer->get_seq % AQ_UDP_GETS; peer->gets[slot].used; slot = (slot + 1) % AQ_UDP_GETS)
        continue;
    get = &peer->gets[slot];
    *get = (struct aq_udp_get){ .op = xfer->op,
                                .dest = xfer->local,
                                .nbytes = xfer->nbytes,
                                .id = slot | peer->get_seq++ << 8,
                                .used = true };
    peer->gets_used++;
    aq_udp_get_encode(at, get->id, xfer->remote, xfer->nbytes);
    aq_udp_link_open(&peer->link, AQ_UDP_RMA);
    return true;
}

static void aq_udp_feed_serve(struct aq_udp_peer *peer)
{
    while (peer->serve.first != NULL && aq_udp_link_free_slots(&peer->link, AQ_UDP_RMA) != 0) {
        struct aq_udp_xfer *xfer = peer->serve.first;

        aq_udp_xfer_frag(peer, xfer);
        if (xfer->at == xfer->nbytes)
            aq_udp_queue_pop(&peer->serve);
    }
}

/* Returns true if the channel has slots for a whole batch, or for all that the transfer still
 * needs. Bulk data then does not leave datagram by datagram with each acknowledgement. */
static bool aq_udp_feed_has_slots(const struct aq_udp_peer *peer, const struct aq_udp_xfer *xfer)
{
    const uint32_t slots = aq_udp_link_free_slots(&peer->link, AQ_UDP_RMA);

    return slots >= AQ_UDP_WINDOW / 4
           || (slots != 0
               && (xfer->type == AQ_UDP_X_GET
                   || (xfer->nbytes - xfer->at) / peer->link.mtu < slots));
}

static void aq_udp_feed_own(struct aq_udp_peer *peer)
{
    while (peer->own.first != NULL && aq_udp_link_free_slots(&peer->link, AQ_UDP_RMA) != 0) {
        struct aq_udp_xfer *xfer = peer->own.first;

        if (xfer->type == AQ_UDP_X_GET) {
            if (!aq_udp_get_ask(peer, xfer))
                return;
            aq_udp_queue_pop(&peer->own);
            free(xfer);
        } else {
            aq_udp_xfer_frag(peer, xfer);
            if (xfer->at == xfer->nbytes)
                aq_udp_queue_pop(&peer->own);
        }
    }
}

void aq_udp_rma_feed(struct aq_udp_peer *peer)
{
    if (AQ_UNLIKELY(peer->link.disconnected))
        return;
    if (AQ_UNLIKELY(peer->serve.first != NULL) && aq_udp_feed_has_slots(peer, peer->serve.first))
        aq_udp_feed_serve(peer);
    if (AQ_UNLIKELY(peer->own.first != NULL) && aq_udp_feed_has_slots(peer, peer->own.first))
        aq_udp_feed_own(peer);
}

/* A datagram of several small puts names their operations in its frames. */
static void aq_udp_rma_acked_frames(const struct aq_udp_tx *tx)
{
    const struct aq_udp_header header = { .channel = AQ_UDP_RMA, .hashed = (uint16_t)tx->head_len };
    struct aq_udp_frame frame = { .type = 0 };
    size_t at = AQ_UDP_HEADER;

    while (aq_udp_frame_decode(tx->head, tx->head_len, &header, &at, &frame) > 0)
        if (frame.type == AQ_UDP_F_PUT)
            aq_op_end((struct aq_op *)(uintptr_t)frame.cookie, GEX_EC_PUT, 1);
}

/* Reports a put whose target disconnected before it acknowledged the put. Nothing else is pending
 * for a disconnected peer. */
static void aq_udp_rma_look_abandoned(const struct aq_udp_peer *peer, const struct aq_udp_tx *tx)
{
    const struct aq_udp_xfer *xfer = tx->tag;
    const bool is_put = xfer != NULL ? xfer->type == AQ_UDP_X_PUT : tx->count != 0;

    if (AQ_LIKELY(!peer->link.disconnected) || !is_put || aq_exit_in_progress())
        return;
    aq_exit_peer_lost(peer->rank, "it has left the job before a put to it was complete");
}

void aq_udp_rma_acked(struct aq_udp_peer *peer, struct aq_udp_tx *tx)
{
    struct aq_udp_xfer *xfer = tx->tag;

    aq_udp_rma_look_abandoned(peer, tx);
    if (xfer != NULL) {
        if (--xfer->unacked == 0 && xfer->at == xfer->nbytes)
            aq_udp_xfer_end(xfer);
    } else if (tx->count != 0) {
        aq_udp_rma_acked_frames(tx);
    }
}

/* --- the client's calls --- */

/* Waits while too many transfers are queued, and serves what arrives. */
static int aq_udp_rma_wait(struct aq_udp_peer *peer, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for a transfer", peer->rank);

    if ((flags & GEX_FLAG_IMMEDIATE) != 0)
        return AQ_RETRY;
    waiter.no_wakeup = 1;
    for (;;) {
        bool full;

        aq_wait_step(&waiter);
        aq_lock_acquire(&peer->lock);
        full = peer->own.length >= AQ_UDP_QUEUE_MAX;
        aq_lock_release(&peer->lock);
        if (!full)
            break;
    }
    aq_wait_end(&waiter);
    return AQ_OK;
}

/* With GASNET_CATCH_EXIT=0 ranks may leave early. An operation that targets a disconnected rank
 * would never complete. */
static int aq_udp_rma_begin(struct aq_udp_peer *peer, gex_Flags_t flags)
{
    bool full, left;

    aq_lock_acquire(&peer->lock);
    full = peer->own.length >= AQ_UDP_QUEUE_MAX;
    left = peer->link.disconnected;
    aq_lock_release(&peer->lock);
    if (AQ_UNLIKELY(left) && !aq_exit_in_progress())
        aq_exit_peer_lost(peer->rank,
                          "it has left the job, and this rank puts to it or gets from it");
    return AQ_UNLIKELY(full) ? aq_udp_rma_wait(peer, flags) : AQ_OK;
}

static void aq_udp_put_and_wait(struct aq_udp_peer *peer, struct aq_udp_xfer *xfer)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("the acknowledgement of a put", peer->rank);

    xfer->is_callers = true;
    aq_lock_acquire(&peer->lock);
    aq_udp_queue_push(&peer->own, xfer);
    aq_udp_peer_queued(peer, AQ_UDP_NO_DELAY, aq_now_ns());
    aq_lock_release(&peer->lock);
    /* acquire: pairs with the release in aq_udp_xfer_end() */
    while (!atomic_load_explicit(&xfer->done, memory_order_acquire))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
    /* the acknowledging thread uses this frame until it releases the lock */
    aq_lock_acquire(&peer->lock);
    aq_lock_release(&peer->lock);
}

/* Queues a put. Its data is read when datagrams leave: from the source, or from a copy if lc_now
 * and the put is short enough. */
static void aq_udp_put_queue(struct aq_udp_peer *peer, struct aq_udp_xfer *as, bool lc_now)
{
    struct aq_udp_xfer *xfer;

    if (lc_now) {
        as->copy = aq_udp_buf_take(as->nbytes);
        memcpy(as->copy, as->local, as->nbytes);
        as->local = (char *)as->copy;
    } else {
        as->counts_lc = true;
        aq_op_begin(as->op, GEX_EC_LC, 1);
    }
    xfer = aq_udp_xfer_new(as);
    aq_lock_acquire(&peer->lock);
    aq_udp_queue_push(&peer->own, xfer);
    aq_udp_peer_queued(peer, AQ_UDP_NO_DELAY, aq_now_ns());
    aq_lock_release(&peer->lock);
}

static bool aq_udp_put_now(struct aq_udp_peer *peer, const struct aq_udp_xfer *xfer)
{
    bool sent;

    aq_lock_acquire(&peer->lock);
    sent = peer->own.first == NULL
           && aq_udp_put_small(peer, xfer->op, xfer->remote, xfer->local, xfer->nbytes);
    if (sent)
        aq_udp_peer_queued(peer, AQ_UDP_DELAY_PUT, aq_now_ns());
    aq_lock_release(&peer->lock);
    return sent;
}

int aq_udp_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    struct aq_udp_peer *peer = aq_udp_peer(jobrank);
    struct aq_udp_xfer xfer = { .type = AQ_UDP_X_PUT,
                                .local = (char *)(uintptr_t)src,
                                .remote = (uintptr_t)dest,
                                .nbytes = nbytes,
                                .op = op };

    if (aq_udp_rma_begin(peer, flags) != AQ_OK
        || ((flags & GEX_FLAG_IMMEDIATE) != 0 && lc_now && nbytes > AQ_UDP_COPY_NOW))
        return AQ_RETRY;
    aq_op_begin(op, GEX_EC_PUT, 1);
    if (nbytes <= AQ_UDP_INLINE_MAX && aq_udp_put_now(peer, &xfer))
        return AQ_OK;
    if (lc_now && nbytes > AQ_UDP_COPY_NOW)
        aq_udp_put_and_wait(peer, &xfer);
    else
        aq_udp_put_queue(peer, &xfer, lc_now);
    return AQ_OK;
}

int aq_udp_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    struct aq_udp_peer *peer = aq_udp_peer(jobrank);

    if (aq_udp_rma_begin(peer, flags) != AQ_OK)
        return AQ_RETRY;
    aq_lock_acquire(&peer->lock);
    for (uint64_t at = 0; at < nbytes; at += AQ_UDP_GET_MAX) {
        const struct aq_udp_xfer xfer = { .type = AQ_UDP_X_GET,
                                          .local = (char *)dest + at,
                                          .remote = (uintptr_t)src + at,
                                          .op = op,
                                          .nbytes = nbytes - at < AQ_UDP_GET_MAX ? nbytes - at
                                                                                 : AQ_UDP_GET_MAX };

        aq_op_begin(op, GEX_EC_GET, 1);
        if (peer->own.first != NULL || !aq_udp_get_ask(peer, &xfer))
            aq_udp_queue_push(&peer->own, aq_udp_xfer_new(&xfer));
    }
    /* without a flush timer a get that waits would not overlap what the client does meanwhile */
    aq_udp_peer_queued(peer, AQ_THREADED ? AQ_UDP_DELAY_PUT : AQ_UDP_NO_DELAY, aq_now_ns());
    aq_lock_release(&peer->lock);
    return AQ_OK;
}

/* --- in --- */

static void aq_udp_rma_check(const struct aq_udp_peer *peer, const char *what, uint64_t addr,
                             uint64_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)peer, (void)what, (void)addr, (void)nbytes;
#else
    if (!(aq_job.bound != NULL && aq_bound_is_self((void *)(uintptr_t)addr, nbytes)))
        aq_fatal("rank %u asked for a %s of [0x%llx, +%llu), which is not inside a segment of this "
                 "process",
                 peer->rank, what, (unsigned long long)addr, (unsigned long long)nbytes);
#endif
}

/* A get request has arrived: its data leaves as slots of the channel become free. */
static void aq_udp_get_serve(struct aq_udp_peer *peer, const struct aq_udp_frame *frame)
{
    const struct aq_udp_xfer xfer = { .type = AQ_UDP_X_DATA,
                                      .id = frame->id,
                                      .nbytes = frame->length,
                                      .local = (char *)(uintptr_t)frame->addr };

    aq_udp_rma_check(peer, "get", frame->addr, frame->length);
    aq_lock_acquire(&peer->lock);
    if (peer->serve.length >= AQ_UDP_GETS)
        aq_counter_add(&aq_udp.counts.malformed, 1); /* no rank sends a longer request */
    else
        aq_udp_queue_push(&peer->serve, aq_udp_xfer_new(&xfer));
    aq_udp_peer_mark(peer);
    aq_lock_release(&peer->lock);
}

/* Data of an outstanding get has arrived. Returns 1 if it was the last of its get. */
static unsigned aq_udp_get_data(struct aq_udp_peer *peer, const struct aq_udp_frame *frame)
{
    struct aq_udp_get *get = NULL;
    struct aq_op *op = NULL;
    char *dest = NULL;

    aq_lock_acquire(&peer->lock);
    if (peer->gets != NULL) {
        get = &peer->gets[frame->id % AQ_UDP_GETS];
        if (get->used && get->id == frame->id && frame->length <= get->nbytes
            && frame->nbytes <= get->nbytes - frame->length)
            dest = get->dest + frame->length;
    }
    aq_lock_release(&peer->lock);
    if (dest == NULL) {
        aq_counter_add(&aq_udp.counts.malformed, 1);
        return 0;
    }
    aq_op_acquire(get->op);
    aq_word_write(dest, frame->data, frame->nbytes);
    aq_lock_acquire(&peer->lock);
    get->got += frame->nbytes;
    if (get->got >= get->nbytes) {
        op = get->op;
        get->used = false;
        peer->gets_used--;
        /* another thread's flush may have run after this datagram was taken over and before the id
         * became free: it found no id for the gets that wait */
        if (peer->own.first != NULL)
            aq_udp_peer_mark(peer);
    }
    aq_lock_release(&peer->lock);
    if (op == NULL)
        return 0;
    aq_op_end(op, GEX_EC_GET, 1);
    return 1;
}

unsigned aq_udp_rma_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                            const uint8_t *datagram, size_t len)
{
    struct aq_udp_frame frame = { .type = 0 };
    size_t at = AQ_UDP_HEADER;
    unsigned served = 0;

    while (aq_udp_frame_decode(datagram, len, header, &at, &frame) > 0) {
        switch (frame.type) {
        case AQ_UDP_F_PUT:
            aq_udp_rma_check(peer, "put", frame.addr, frame.nbytes);
            aq_word_write((void *)(uintptr_t)frame.addr, frame.data, frame.nbytes);
            served++;
            break;
        case AQ_UDP_F_GET:
            aq_udp_get_serve(peer, &frame);
            break;
        case AQ_UDP_F_PAD:
            break;
        default:
            served += aq_udp_get_data(peer, &frame);
            break;
        }
    }
    return served;
}
