/*
 * aq_udp_am.c - active messages to and from remote ranks.
 *
 * Small     a payload of up to AQ_UDP_INLINE_MAX bytes is copied into the head of a datagram, which
 *           several messages to the same peer may share
 * Large     a larger payload is copied once, into a buffer that one or several datagrams point
 *           into. The buffer stays until they are acknowledged
 * In        the fragments of Long messages are written to their destination as they arrive. The
 *           fragments of Medium messages are reassembled in a buffer
 *
 * Threads   any; handlers run without a lock
 * Promise   a message is sent whole or, with AQ_RETRY, not at all; its handler runs once
 * Uses      core/aq_am_deliver.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "core/aq_am_deliver.h"
#include "core/aq_ep.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

#define AQ_UDP_INLINE_MAX   512u  /* bytes of a payload that is copied into the head */
#define AQ_UDP_HEAD_MAX     160u  /* bytes of a header and the longest frame head of a message */
#define AQ_UDP_COALESCE_MAX 8192u /* bytes of a payload that may wait for others in a batch */

_Static_assert(AQ_UDP_HEADER + 32 + 4 * AQ_UDP_MAX_ARGS + 8 <= AQ_UDP_HEAD_MAX, "heads fit");

/* --- out --- */

/* The library's own messages, such as a barrier's, never wait: no poll need follow them. */
static inline enum aq_udp_delay aq_udp_am_delay(uint8_t handler)
{
    return handler >= AQ_HIDX_COUNT ? AQ_UDP_DELAY_MESSAGE : AQ_UDP_NO_DELAY;
}

/* A small message has been written into a record: send it now, or mark the peer. */
static inline void aq_udp_am_commit(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                    struct aq_udp_tx *tx, const uint8_t *end, uint8_t handler)
{
    tx->head_len = (uint32_t)(end - tx->head);
    tx->count++;
    peer->sent++;
    aq_udp_link_open(&peer->link, channel);
    if (channel == AQ_UDP_REPLY) {
        aq_udp_peer_mark(
            /* sent by a handler: leaves when everything that arrived with the request has been
             * served */
            peer);
        return;
    }
    aq_udp_peer_queued(peer, aq_udp_am_delay(handler), aq_now_ns());
}

int aq_udp_am_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    const enum aq_udp_channel channel = is_reply ? AQ_UDP_REPLY : AQ_UDP_REQUEST;
    struct aq_udp_peer *peer;
    struct aq_udp_tx *tx;
    uint8_t *at;

    peer = aq_udp_peer(jobrank);
    aq_lock_acquire(&peer->lock);
    at = aq_udp_peer_reserve(peer, channel, aq_udp_am_head(AQ_UDP_F_SHORT, nargs), &tx);
    if (at != NULL)
        aq_udp_am_commit(peer, channel, tx,
                         aq_udp_am_encode(at, AQ_UDP_F_SHORT, handler, nargs, args, 0, 0), handler);
    aq_lock_release(&peer->lock);
    return at != NULL ? AQ_OK : AQ_RETRY;
}

/* Sends arguments and payload in the head. */
static int aq_udp_am_send_small(struct aq_udp_peer *peer, enum aq_udp_channel channel, uint8_t type,
                                const struct aq_am_out *out)
{
    struct aq_udp_tx *tx;
    uint8_t *at =
        aq_udp_peer_reserve(peer, channel, aq_udp_am_head(type, out->nargs) + out->nbytes, &tx);

    if (at == NULL)
        return AQ_RETRY;
    at = aq_udp_am_encode(at, type, out->handler, out->nargs, out->args, (uint32_t)out->nbytes,
                          (uintptr_t)out->dest);
    if (out->nbytes != 0)
        memcpy(at, out->src, out->nbytes);
    aq_udp_am_commit(peer, channel, tx, at + out->nbytes, out->handler);
    return AQ_OK;
}

/* Adds a record for a datagram of a large message. The caller has checked that a slot is free. */
static struct aq_udp_tx *aq_udp_am_add(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                       size_t size)
{
    struct aq_udp_tx *tx = aq_udp_link_add(&peer->link, channel);

    if (tx == NULL)
        aq_fatal("udp: no memory for a message to rank %u", peer->rank);
    tx->head = aq_udp_buf_take(size);
    return tx;
}

/* Writes the head of a message that fits one datagram; body points to its payload. */
static void aq_udp_am_write_whole(struct aq_udp_tx *tx, const struct aq_am_out *out)
{
    const uint8_t type = out->kind == AQ_AM_LONG ? AQ_UDP_F_LONG : AQ_UDP_F_MEDIUM;
    const uint8_t *end = aq_udp_am_encode(tx->head + AQ_UDP_HEADER, type, out->handler, out->nargs,
                                          out->args, (uint32_t)out->nbytes, (uintptr_t)out->dest);

    tx->head_len = (uint32_t)(end - tx->head);
    tx->body_len = (uint32_t)out->nbytes;
    tx->count = 1;
}

/* One datagram with the payload right behind its head, so that send() needs one buffer. */
static void aq_udp_am_send_joined(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                  const struct aq_am_out *out)
{
    struct aq_udp_tx *tx = aq_udp_am_add(peer, channel, AQ_UDP_HEAD_MAX + out->nbytes);

    aq_udp_am_write_whole(tx, out);
    memcpy(tx->head + tx->head_len, out->src, out->nbytes);
    tx->body = tx->head + tx->head_len;
    peer->sent++;
    if (channel == AQ_UDP_REPLY)
        aq_udp_peer_mark(peer);
    else /* several datagrams of one size leave as a GSO batch */
        aq_udp_peer_queued(peer, aq_udp_am_delay(out->handler), aq_now_ns());
}

/* Queues the fragments of a message, which read the payload from the client's memory. Returns how
 * many. */
static uint32_t aq_udp_am_queue(struct aq_udp_peer *peer, enum aq_udp_channel channel, size_t each,
                                uint8_t *block, const struct aq_am_out *out)
{
    struct aq_udp_frame frame = {
        .type = out->kind == AQ_AM_LONG ? AQ_UDP_F_LONG_FRAG : AQ_UDP_F_MEDIUM_FRAG,
        .handler = out->handler,
        .nargs = out->nargs,
        .total = (uint32_t)out->nbytes,
        .addr = (uintptr_t)out->dest,
    };
    uint32_t count = 0;

    if (each < out->nbytes) {
        frame.message = peer->message[channel]++;
        if (out->nargs != 0) /* else args may be NULL */
            memcpy(frame.args, out->args, out->nargs * sizeof(*out->args));
    }
    for (size_t at = 0; at < out->nbytes; at += each, count++) {
        struct aq_udp_tx *tx = aq_udp_am_add(peer, channel, AQ_UDP_HEAD_MAX);

        if (each >= out->nbytes) {
            aq_udp_am_write_whole(tx, out);
        } else {
            frame.frag_offset = (uint32_t)at;
            frame.nbytes = (uint32_t)aq_fragment_len(each, out->nbytes, at);
            tx->head_len =
                (uint32_t)(aq_udp_frag_encode(tx->head + AQ_UDP_HEADER, &frame) - tx->head);
            tx->body_len = frame.nbytes;
            tx->count = at + each >= out->nbytes; /* the last fragment counts as the message */
        }
        tx->body = (const char *)out->src + at;
        tx->tag = block;
    }
    return count;
}

/* Sends the payload in as many datagrams as it takes. They leave at once, read from the client's
 * memory; the copy for a retransmission is made while they are on their way. */
static int aq_udp_am_send_large(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                const struct aq_am_out *out)
{
    const bool is_long = out->kind == AQ_AM_LONG;
    const uint8_t whole = is_long ? AQ_UDP_F_LONG : AQ_UDP_F_MEDIUM;
    const uint8_t frag = is_long ? AQ_UDP_F_LONG_FRAG : AQ_UDP_F_MEDIUM_FRAG;
    const size_t space = peer->link.mtu - AQ_UDP_HEADER;
    const struct aq_fragment_cut cut =
        aq_fragment_cut(out->nbytes, space - aq_udp_am_head(whole, out->nargs),
                        space - aq_udp_am_head(frag, out->nargs));
    uint8_t *block;
    uint32_t count;

    if (aq_udp_link_free_slots(&peer->link, channel) < cut.count)
        return AQ_RETRY;
    if (cut.count == 1 && out->nbytes <= AQ_UDP_COALESCE_MAX) {
        aq_udp_am_send_joined(peer, channel, out);
        return AQ_OK;
    }
    block = aq_udp_buf_take(16 + out->nbytes);
    count = aq_udp_am_queue(peer, channel, cut.each, block, out);
    *(uint32_t *)(void *)block = count;
    peer->sent++;
    if (channel == AQ_UDP_REPLY)
        aq_udp_peer_pump(peer, aq_now_ns());
    else
        aq_udp_peer_queued(peer, AQ_UDP_NO_DELAY, aq_now_ns());
    memcpy(block + 16, out->src, out->nbytes);
    aq_udp_link_move_bodies(&peer->link, channel, count, out->src, block + 16);
    return AQ_OK;
}

int aq_udp_am_send(const struct aq_am_out *out)
{
    const enum aq_udp_channel channel = out->is_reply ? AQ_UDP_REPLY : AQ_UDP_REQUEST;
    struct aq_udp_peer *peer;
    int rc;

    if (out->kind == AQ_AM_SHORT)
        return aq_udp_am_short(out->jobrank, out->is_reply, out->handler, out->nargs, out->args);
    peer = aq_udp_peer(out->jobrank);
    aq_lock_acquire(&peer->lock);
    if (out->nbytes <= AQ_UDP_INLINE_MAX)
        rc = aq_udp_am_send_small(peer, channel,
                                  out->kind == AQ_AM_LONG ? AQ_UDP_F_LONG : AQ_UDP_F_MEDIUM, out);
    else
        rc = aq_udp_am_send_large(peer, channel, out);
    aq_lock_release(&peer->lock);
    return rc;
}

/* --- in --- */

static void aq_udp_am_run(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                          const struct aq_udp_frame *frame, uint8_t kind, void *payload,
                          size_t nbytes)
{
    struct aq_am_in in = { .token = { .jobrank = peer->rank,
                                      .handler = frame->handler,
                                      .nargs = frame->nargs,
                                      .kind = kind,
                                      .is_reply = channel == AQ_UDP_REPLY },
                           .args = frame->args,
                           .payload = payload,
                           .nbytes = nbytes };

    if (kind == AQ_AM_SHORT)
        aq_am_deliver_short(&in.token, frame->args);
    else
        aq_am_deliver(&in);
}

/* A medium payload that is not aligned, because its datagram is not the first of a batch of odd
 * sizes: the handler gets an aligned copy. */
static void aq_udp_am_run_aligned(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                  const struct aq_udp_frame *frame)
{
    uint8_t *copy = aq_udp_buf_take(frame->nbytes);

    memcpy(copy, frame->data, frame->nbytes);
    aq_udp_am_run(peer, channel, frame, AQ_AM_MEDIUM, copy, frame->nbytes);
    aq_udp_buf_give(copy);
}

/* Returns the reassembly state of a fragment's message, and makes it for the first fragment.
 * Returns NULL if the fragment contradicts earlier ones. */
static struct aq_udp_frag *aq_udp_frag_find(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                            const struct aq_udp_frame *frame)
{
    struct aq_udp_frag *frag = peer->frags[channel];
    void *payload = (void *)(uintptr_t)frame->addr;
    const bool is_long = frame->type == AQ_UDP_F_LONG_FRAG;

    while (frag != NULL && frag->message != frame->message)
        frag = frag->next;
    if (frag != NULL)
        return aq_reassembly_matches(&frag->base, frame->type, frame->total) ? frag : NULL;
    /* the limit is the protocol's; this process's own limit for Long may be lower than the
     * sender's */
    if (frame->total > (is_long ? AQ_UDP_MAX_LONG : aq_limits.max_medium))
        return NULL;
    frag = malloc(sizeof(*frag));
    if (frag == NULL)
        aq_fatal("udp: no memory for a message of %u bytes", frame->total);
    if (!is_long)
        payload = aq_udp_buf_take(frame->total);
    aq_reassembly_open(&frag->base, frame->type, frame->total, payload);
    frag->message = frame->message;
    frag->next = peer->frags[channel];
    peer->frags[channel] = frag;
    return frag;
}

static void aq_udp_frag_unlink(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                               struct aq_udp_frag *frag)
{
    struct aq_udp_frag **at = &peer->frags[channel];

    while (*at != frag)
        at = &(*at)->next;
    *at = frag->next;
}

/* Every fragment arrives once (the link drops duplicates), so counting bytes is enough. Returns how
 * many handlers ran. */
static unsigned aq_udp_frag_receive(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                    const struct aq_udp_frame *frame)
{
    const bool is_long = frame->type == AQ_UDP_F_LONG_FRAG;
    struct aq_udp_frag *frag;
    bool complete;

    if (is_long)
        aq_bound_check_long(peer->rank, (void *)(uintptr_t)frame->addr, frame->total);
    aq_lock_acquire(&peer->lock);
    frag = aq_udp_frag_find(peer, channel, frame);
    aq_lock_release(&peer->lock);
    if (frag == NULL) {
        aq_counter_add(&aq_udp.counts.malformed, 1);
        return 0;
    }
    memcpy((char *)frag->base.payload + frame->frag_offset, frame->data, frame->nbytes);
    aq_lock_acquire(&peer->lock);
    complete = aq_reassembly_add(&frag->base, frame->nbytes);
    if (complete)
        aq_udp_frag_unlink(peer, channel, frag);
    aq_lock_release(&peer->lock);
    if (!complete)
        return 0;
    aq_udp_am_run(peer, channel, frame, is_long ? AQ_AM_LONG : AQ_AM_MEDIUM, frag->base.payload,
                  frag->base.total);
    if (!is_long)
        aq_udp_buf_give(frag->base.payload);
    free(frag);
    return 1;
}

static unsigned aq_udp_am_receive_one(struct aq_udp_peer *peer, enum aq_udp_channel channel,
                                      const struct aq_udp_frame *frame)
{
    void *data = (void *)(uintptr_t)frame->data;

    switch (frame->type) {
    case AQ_UDP_F_SHORT:
        aq_udp_am_run(peer, channel, frame, AQ_AM_SHORT, NULL, 0);
        return 1;
    case AQ_UDP_F_MEDIUM:
        if (AQ_LIKELY((uintptr_t)data % 16 == 0))
            aq_udp_am_run(peer, channel, frame, AQ_AM_MEDIUM, data, frame->nbytes);
        else
            aq_udp_am_run_aligned(peer, channel, frame);
        return 1;
    case AQ_UDP_F_LONG:
        aq_bound_place_long(peer->rank, (void *)(uintptr_t)frame->addr, data, frame->nbytes);
        aq_udp_am_run(peer, channel, frame, AQ_AM_LONG, (void *)(uintptr_t)frame->addr,
                      frame->nbytes);
        return 1;
    default:
        return aq_udp_frag_receive(peer, channel, frame);
    }
}

unsigned aq_udp_am_receive(struct aq_udp_peer *peer, const struct aq_udp_header *header,
                           uint8_t *datagram, size_t len)
{
    const enum aq_udp_channel channel = (enum aq_udp_channel)header->channel;
    struct aq_udp_frame frame;
    size_t at = AQ_UDP_HEADER;
    unsigned served = 0;

    while (aq_udp_frame_decode(datagram, len, header, &at, &frame) > 0)
        served += aq_udp_am_receive_one(peer, channel, &frame);
    return served;
}
