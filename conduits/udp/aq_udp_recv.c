/*
 * aq_udp_recv.c - the receive path: from the socket to handlers and memory.
 *
 * One receive call returns one datagram or a batch. Each datagram is checked and handed to its link
 * under one lock. An unauthenticated datagram is dropped and counted. The others carry
 * acknowledgements, and the link finds whether their data is new. The frames of new datagrams are
 * then served: RMA data first, replies next, requests last. While only replies are served, requests
 * are deferred. A handler therefore never waits for something behind it in the same batch.
 *
 * Threads   any, several at a time: each has its own buffer, and the kernel gives each datagram to
 *           one of them
 * Promise   a datagram without the job's keyed hash is neither believed nor answered
 * Uses      aq_udp.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_log.h"
#include "base/aq_state.h"

/* A new datagram whose frames are to be served. */
struct aq_udp_arrival {
    struct aq_udp_peer *peer;
    uint8_t *datagram;
    struct aq_udp_header header;
    uint64_t seq;
    uint32_t len;
};

/* A request that was deferred. */
struct aq_udp_deferred {
    struct aq_udp_deferred *next;
    struct aq_udp_arrival arrival;
};

static struct {
    aq_lock lock;
    struct aq_udp_deferred **last;
} aq_udp_deferred AQ_JOB_STATE;

/* --- receive buffers --- */

/* The buffer of the last receive call, reused by the next one. NULL: another thread, or an outer
 * poll of this thread, uses it. */
static uint8_t *_Atomic aq_udp_rx_reserve AQ_JOB_STATE;

static inline uint8_t *aq_udp_rx_exchange(uint8_t *buffer)
{
    uint8_t *before;

    if (AQ_THREADED) /* acquire and release: the former user has finished with the buffer */
        return atomic_exchange_explicit(&aq_udp_rx_reserve, buffer, memory_order_acq_rel);
    before = atomic_load_explicit(&aq_udp_rx_reserve, memory_order_relaxed);
    atomic_store_explicit(&aq_udp_rx_reserve, buffer, memory_order_relaxed);
    return before;
}

static inline uint8_t *aq_udp_rx_buffer_take(void)
{
    uint8_t *buffer = aq_udp_rx_exchange(NULL);

    return AQ_LIKELY(buffer != NULL) ? buffer : aq_udp_buf_take(AQ_UDP_RX_BYTES);
}

static inline void aq_udp_rx_buffer_give(uint8_t *buffer)
{
    uint8_t *before = aq_udp_rx_exchange(buffer);

    if (AQ_UNLIKELY(before != NULL))
        aq_udp_buf_give(before);
}

/* --- one datagram --- */

/* Returns the sender of a first datagram if the hash shows that it is a rank of this job, else
 * NULL. The numbers are expanded as for a link that has received nothing. */
static struct aq_udp_peer *aq_udp_introduce(uint8_t *datagram, size_t len,
                                            const struct aq_udp_header *header)
{
    const uint64_t first = aq_udp.config.first_seq, seq = aq_udp_seq_expand(first, header->seq);
    uint8_t key[AQ_UDP_KEY];

    aq_udp_auth_key(header->src, aq_job.rank, key);
    if (!aq_udp_auth_check(key, datagram, len, header,
                           aq_udp_above(header, seq, (uint64_t[]){ first, first, first }))) {
        aq_counter_add(&aq_udp.counts.bad_hash, 1);
        return NULL;
    }
    return aq_udp_peer(header->src);
}

/* Returns true if the link has acknowledgements or data to send after what has arrived. */
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

/* Lock held, hash checked: hands the datagram to the link. */
static inline enum aq_udp_verdict aq_udp_take_over(struct aq_udp_arrival *arrival,
                                                   bool replies_only, bool acks_only,
                                                   uint64_t now_ns)
{
    struct aq_udp_peer *peer = arrival->peer;
    const bool defers = replies_only && arrival->header.channel == AQ_UDP_REQUEST;
    const bool take =
        !acks_only && !(defers && peer->deferred >= aq_udp.config.window[AQ_UDP_REQUEST]);
    const enum aq_udp_verdict verdict = aq_udp_link_receive(
        &peer->link, now_ns, &arrival->header, arrival->seq, arrival->datagram, arrival->len, take);

    if (AQ_UNLIKELY(defers) && verdict == AQ_UDP_NEW)
        peer->deferred++;
    if (aq_udp_link_has_pending(peer))
        aq_udp_peer_mark(peer);
    aq_udp_note_deadline(aq_udp_link_deadline(&peer->link) | (peer->link.ack_now ? UINT64_MAX : 0));
    return verdict;
}

/* Checks a datagram and hands it to its link. Returns true if the caller must serve its frames. */
static inline bool aq_udp_admit(uint8_t *datagram, size_t len, bool replies_only, bool acks_only,
                                uint64_t now_ns, struct aq_udp_arrival *arrival)
{
    struct aq_udp_header *header = &arrival->header;
    enum aq_udp_verdict verdict = AQ_UDP_OUTSIDE;
    struct aq_udp_peer *peer;
    bool good, formed;

    if (AQ_UNLIKELY(
            !aq_udp_header_decode(datagram, len, header) || header->dst != aq_job.rank
            || header->src >= aq_job.size || aq_job_is_local(header->src)
            || (aq_udp.hash_all && header->hashed < len && header->channel == AQ_UDP_CONTROL))) {
        aq_counter_add(&aq_udp.counts.unauthenticated, 1);
        return false;
    }
    peer = aq_udp_peer_look(header->src);
    if (AQ_UNLIKELY(peer == NULL) && (peer = aq_udp_introduce(datagram, len, header)) == NULL)
        return false;
    arrival->peer = peer;
    arrival->datagram = datagram;
    arrival->len = (uint32_t)len;
    aq_lock_acquire(&peer->lock);
    arrival->seq = aq_udp_link_expand(&peer->link, header->channel, header->seq);
    good = aq_udp_auth_check(peer->key_in, datagram, len, header,
                             aq_udp_link_above(&peer->link, header, arrival->seq));
    formed = good && aq_udp_frames_check(datagram, len, header);
    if (AQ_LIKELY(formed))
        verdict = aq_udp_take_over(arrival, replies_only, acks_only, now_ns);
    aq_lock_release(&peer->lock);
    if (AQ_LIKELY(verdict == AQ_UDP_NEW))
        return true;
    if (!formed)
        aq_counter_add(good ? &aq_udp.counts.malformed : &aq_udp.counts.bad_hash, 1);
    else if (verdict == AQ_UDP_REFUSED)
        aq_counter_add(&aq_udp.counts.refused, 1);
    return false;
}

/* --- deferred requests --- */

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
    if (atomic_load_explicit(&aq_udp.deferred, memory_order_relaxed) == NULL)
        atomic_store_explicit(&aq_udp.deferred, deferred, memory_order_relaxed);
    else
        *aq_udp_deferred.last = deferred;
    aq_udp_deferred.last = &deferred->next;
    aq_lock_release(&aq_udp_deferred.lock);
}

static struct aq_udp_deferred *aq_udp_deferred_pop(void)
{
    struct aq_udp_deferred *deferred;

    /* relaxed: a first check; the lock orders the rest */
    if (AQ_LIKELY(atomic_load_explicit(&aq_udp.deferred, memory_order_relaxed) == NULL))
        return NULL;
    aq_lock_acquire(&aq_udp_deferred.lock);
    deferred = atomic_load_explicit(&aq_udp.deferred, memory_order_relaxed);
    if (deferred != NULL)
        atomic_store_explicit(&aq_udp.deferred, deferred->next, memory_order_relaxed);
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

/* --- batches --- */

static inline void aq_udp_count_batch(const struct aq_udp_rx_batch *batch)
{
    aq_counter_add(&aq_udp.counts.receives, 1);
    aq_counter_add(&aq_udp.counts.bytes_in, batch->bytes);
    aq_counter_add(&aq_udp.counts.datagrams_in, batch->count);
}

static unsigned aq_udp_admit_batch(const struct aq_udp_rx_batch *batch, bool replies_only,
                                   bool acks_only, uint64_t now_ns,
                                   struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH])
{
    unsigned count = 0;

    aq_udp_count_batch(batch);
    for (unsigned i = 0; i < batch->count; i++)
        if (aq_udp_admit(batch->buffer + i * batch->each, batch->len[i], replies_only, acks_only,
                         now_ns, &arrivals[count]))
            count++;
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

/* Serves the frames of one datagram. */
static inline unsigned aq_udp_serve(const struct aq_udp_arrival *arrival, bool replies_only)
{
    if (arrival->header.channel == AQ_UDP_RMA)
        return aq_udp_rma_place(arrival);
    if (AQ_UNLIKELY(replies_only) && arrival->header.channel == AQ_UDP_REQUEST) {
        aq_udp_defer(arrival);
        return 0;
    }
    return aq_udp_am_receive(arrival->peer, &arrival->header, arrival->datagram, arrival->len);
}

/* RMA data first, then replies, then requests: a handler never waits for something behind it. */
static __attribute__((noinline)) unsigned aq_udp_receive_batch(const struct aq_udp_rx_batch *batch,
                                                               bool replies_only, uint64_t now_ns)
{
    static const uint8_t order[AQ_UDP_CHANNELS] = { AQ_UDP_RMA, AQ_UDP_REPLY, AQ_UDP_REQUEST };
    struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH];
    const unsigned count = aq_udp_admit_batch(batch, replies_only, false, now_ns, arrivals);
    unsigned served = 0;

    for (int step = 0; step < AQ_UDP_CHANNELS; step++)
        for (unsigned i = 0; i < count; i++)
            if (arrivals[i].header.channel == order[step])
                served += aq_udp_serve(&arrivals[i], replies_only);
    return served;
}

unsigned aq_udp_receive(bool replies_only, uint64_t *now_ns_out)
{
    struct aq_udp_rx_batch batch;
    struct aq_udp_arrival arrival;
    unsigned served = 0;

    batch.buffer = aq_udp_rx_buffer_take();
    if (!aq_udp_sock_receive(&batch)) {
        aq_udp_rx_buffer_give(batch.buffer);
        return 0;
    }
    *now_ns_out = aq_now_ns();
    if (AQ_LIKELY(batch.count == 1)) {
        aq_udp_count_batch(&batch);
        if (aq_udp_admit(batch.buffer, batch.len[0], replies_only, false, *now_ns_out, &arrival))
            served = aq_udp_serve(&arrival, replies_only);
    } else {
        served = aq_udp_receive_batch(&batch, replies_only, *now_ns_out);
    }
    aq_udp_rx_buffer_give(batch.buffer);
    /* something arrived, so the caller does not sleep after this poll */
    return served != 0 ? served : 1;
}

void aq_udp_receive_acks(uint64_t now_ns)
{
    struct aq_udp_arrival arrivals[AQ_UDP_RX_BATCH];
    struct aq_udp_rx_batch batch;

    batch.buffer = aq_udp_rx_buffer_take();
    while (aq_udp_sock_receive(&batch))
        aq_udp_admit_batch(&batch, true, true, now_ns, arrivals);
    aq_udp_rx_buffer_give(batch.buffer);
}

void aq_udp_recv_fini(void)
{
    struct aq_udp_deferred *deferred;
    uint8_t *buffer = aq_udp_rx_exchange(NULL);

    while ((deferred = aq_udp_deferred_pop()) != NULL) {
        aq_udp_buf_give(deferred->arrival.datagram);
        free(deferred);
    }
    if (buffer != NULL)
        aq_udp_buf_give(buffer);
}
