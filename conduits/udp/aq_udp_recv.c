/*
 * aq_udp_recv.c - from the socket to handlers and memory.
 *
 * One look at the socket takes one datagram, or a train of them that the kernel has put together.
 * First all headers are dealt with: a datagram that is not from our job is dropped and counted,
 * others bring acknowledgements, and are found new or old. Then data is placed, replies are
 * handled, requests last, or kept back while only replies are served: what a handler may wait for
 * is never behind it in the same train.
 *
 * Threads   any, several at a time: each has its buffer, and the kernel gives each datagram to one
 * Promise   of what does not carry our hash nothing is believed and nothing is answered
 * Uses      aq_udp.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_log.h"

/* A datagram that was taken over. */
struct aq_udp_arrival {
    struct aq_udp_peer *peer;
    uint8_t *datagram;
    struct aq_udp_header header;
    uint64_t seq;
    uint32_t len;
};

/* A request that was kept back. */
struct aq_udp_deferred {
    struct aq_udp_deferred *next;
    struct aq_udp_arrival arrival;
};

static struct {
    aq_lock lock;
    struct aq_udp_deferred *_Atomic first;
    struct aq_udp_deferred **last;
} aq_udp_deferred = { .last = NULL };

/* --- one datagram's header --- */

/* Before a rank is known, its hash is checked with what it would be known by. */
static bool aq_udp_is_from(struct aq_udp_peer *peer, uint8_t *datagram, size_t len,
                           const struct aq_udp_header *header, uint64_t *seq_out)
{
    const uint64_t first = aq_udp.config.first_seq;
    uint8_t key[AQ_UDP_KEY];

    if (peer != NULL) {
        *seq_out = aq_udp_link_expand(&peer->link, header->channel, header->seq);
        return aq_udp_auth_check(peer->key_in, datagram, len, header,
                                 aq_udp_link_above(&peer->link, header, *seq_out));
    }
    aq_udp_auth_key(header->src, aq_job.rank, key);
    *seq_out = aq_udp_seq_expand(first, header->seq);
    return aq_udp_auth_check(key, datagram, len, header,
                             aq_udp_above(header, *seq_out, (uint64_t[]){ first, first, first }));
}

/* Which rank's, if any: *arrival_out is filled in. */
static bool aq_udp_recognise(uint8_t *datagram, size_t len, struct aq_udp_arrival *arrival)
{
    struct aq_udp_header *header = &arrival->header;
    struct aq_udp_peer *peer;
    bool good;

    if (!aq_udp_header_decode(datagram, len, header) || header->dst != aq_job.rank
        || header->src >= aq_job.size || aq_job_is_local(header->src)
        || (aq_udp.hash_all && header->hashed < len && header->channel == AQ_UDP_CONTROL)) {
        aq_counter_add(&aq_udp.counts.unauthenticated, 1);
        return false;
    }
    peer = aq_udp_peer_look(header->src);
    if (peer != NULL)
        aq_lock_acquire(&peer->lock);
    good = aq_udp_is_from(peer, datagram, len, header, &arrival->seq);
    if (peer != NULL)
        aq_lock_release(&peer->lock);
    if (!good) {
        aq_counter_add(&aq_udp.counts.bad_hash, 1);
        return false;
    }
    if (!aq_udp_frames_check(datagram, len, header)) {
        aq_counter_add(&aq_udp.counts.malformed, 1);
        return false;
    }
    arrival->peer = aq_udp_peer(header->src);
    arrival->datagram = datagram;
    arrival->len = (uint32_t)len;
    return true;
}

/* Has the link something to say after what it has heard? */
static inline bool aq_udp_link_has_pending(const struct aq_udp_peer *peer)
{
    const struct aq_udp_link *link = &peer->link;

    if (link->ack_now || peer->own.first != NULL || peer->serve.first != NULL)
        return true;
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        if (link->tx[channel].lost != 0 || link->tx[channel].next != link->tx[channel].end)
            return true;
    return false;
}

/* The engine's part. True: its frames are to be dealt with. */
static bool aq_udp_take_over(struct aq_udp_arrival *arrival, bool replies_only, bool acks_only,
                             uint64_t now_ns)
{
    struct aq_udp_peer *peer = arrival->peer;
    bool take = !acks_only;
    enum aq_udp_verdict verdict;

    aq_lock_acquire(&peer->lock);
    if (replies_only && arrival->header.channel == AQ_UDP_REQUEST
        && peer->deferred >= aq_udp.config.window[AQ_UDP_REQUEST])
        take = false;
    verdict = aq_udp_link_receive(&peer->link, now_ns, &arrival->header, arrival->seq,
                                  arrival->datagram, arrival->len, take);
    if (verdict == AQ_UDP_NEW && replies_only && arrival->header.channel == AQ_UDP_REQUEST)
        peer->deferred++;
    if (aq_udp_link_has_pending(peer))
        aq_udp_peer_mark(peer);
    aq_udp_note_deadline(aq_udp_link_deadline(&peer->link) | (peer->link.ack_now ? UINT64_MAX : 0));
    aq_lock_release(&peer->lock);
    if (verdict == AQ_UDP_REFUSED)
        aq_counter_add(&aq_udp.counts.refused, 1);
    return verdict == AQ_UDP_NEW;
}

/* --- keeping requests back --- */

static void aq_udp_defer(const struct aq_udp_arrival *arrival)
{
    struct aq_udp_deferred *deferred = malloc(sizeof(*deferred));

    if (deferred == NULL)
        aq_fatal("udp: no memory for a request that has to wait");
    deferred->next = NULL;
    deferred->arrival = *arrival;
    deferred->arrival.datagram = aq_udp_buf_take(arrival->len);
    memcpy(deferred->arrival.datagram, arrival->datagram, arrival->len);
    aq_counter_add(&aq_udp.counts.deferred, 1);
    aq_lock_acquire(&aq_udp_deferred.lock);
    if (atomic_load_explicit(&aq_udp_deferred.first, memory_order_relaxed) == NULL)
        atomic_store_explicit(&aq_udp_deferred.first, deferred, memory_order_relaxed);
    else
        *aq_udp_deferred.last = deferred;
    aq_udp_deferred.last = &deferred->next;
    aq_lock_release(&aq_udp_deferred.lock);
}

static struct aq_udp_deferred *aq_udp_deferred_pop(void)
{
    struct aq_udp_deferred *deferred;

    /* relaxed: a look; the lock orders the rest */
    if (AQ_LIKELY(atomic_load_explicit(&aq_udp_deferred.first, memory_order_relaxed) == NULL))
        return NULL;
    aq_lock_acquire(&aq_udp_deferred.lock);
    deferred = atomic_load_explicit(&aq_udp_deferred.first, memory_order_relaxed);
    if (deferred != NULL)
        atomic_store_explicit(&aq_udp_deferred.first, deferred->next, memory_order_relaxed);
    aq_lock_release(&aq_udp_deferred.lock);
    return deferred;
}

unsigned aq_udp_serve_deferred(void)
{
    struct aq_udp_deferred *deferred;
    unsigned served = 0;

    while ((deferred = aq_udp_deferred_pop()) != NULL) {
        struct aq_udp_arrival *arrival = &deferred->arrival;

        aq_lock_acquire(&arrival->peer->lock);
        arrival->peer->deferred--;
        aq_lock_release(&arrival->peer->lock);
        served +=
            aq_udp_am_receive(arrival->peer, &arrival->header, arrival->datagram, arrival->len);
        aq_udp_buf_give(arrival->datagram);
        free(deferred);
    }
    return served;
}

/* --- a train --- */

static unsigned aq_udp_sort(const struct aq_udp_rx_batch *batch, bool replies_only, bool acks_only,
                            uint64_t now_ns, struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH])
{
    unsigned count = 0;

    aq_counter_add(&aq_udp.counts.receives, 1);
    aq_counter_add(&aq_udp.counts.bytes_in, batch->bytes);
    aq_counter_add(&aq_udp.counts.datagrams_in, batch->count);
    for (unsigned i = 0; i < batch->count; i++) {
        struct aq_udp_arrival *arrival = &arrivals[count];

        if (aq_udp_recognise(batch->buffer + i * batch->each, batch->len[i], arrival)
            && aq_udp_take_over(arrival, replies_only, acks_only, now_ns))
            count++;
    }
    return count;
}

static unsigned aq_udp_rma_place(const struct aq_udp_arrival *arrival)
{
    const unsigned served =
        aq_udp_rma_receive(arrival->peer, &arrival->header, arrival->datagram, arrival->len);

    aq_lock_acquire(&arrival->peer->lock);
    aq_udp_link_placed(&arrival->peer->link, arrival->seq);
    aq_lock_release(&arrival->peer->lock);
    return served;
}

unsigned aq_udp_receive(bool replies_only, uint64_t now_ns)
{
    struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH];
    struct aq_udp_rx_batch batch;
    unsigned count, served = 0;

    batch.buffer = aq_udp_buf_take(AQ_UDP_RX_BYTES);
    if (!aq_udp_sock_receive(&batch)) {
        aq_udp_buf_give(batch.buffer);
        return 0;
    }
    count = aq_udp_sort(&batch, replies_only, false, now_ns, arrivals);
    for (unsigned i = 0; i < count; i++)
        if (arrivals[i].header.channel == AQ_UDP_RMA)
            served += aq_udp_rma_place(&arrivals[i]);
    for (unsigned i = 0; i < count; i++)
        if (arrivals[i].header.channel == AQ_UDP_REPLY)
            served += aq_udp_am_receive(arrivals[i].peer, &arrivals[i].header, arrivals[i].datagram,
                                        arrivals[i].len);
        else if (arrivals[i].header.channel == AQ_UDP_REQUEST && replies_only)
            aq_udp_defer(&arrivals[i]);
    for (unsigned i = 0; i < count && !replies_only; i++)
        if (arrivals[i].header.channel == AQ_UDP_REQUEST)
            served += aq_udp_am_receive(arrivals[i].peer, &arrivals[i].header, arrivals[i].datagram,
                                        arrivals[i].len);
    aq_udp_buf_give(batch.buffer);
    return served != 0 ? served : 1; /* something came: nobody sleeps on this look */
}

void aq_udp_receive_acks(uint64_t now_ns)
{
    struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH];
    struct aq_udp_rx_batch batch;

    batch.buffer = aq_udp_buf_take(AQ_UDP_RX_BYTES);
    while (aq_udp_sock_receive(&batch))
        aq_udp_sort(&batch, true, true, now_ns, arrivals);
    aq_udp_buf_give(batch.buffer);
}
