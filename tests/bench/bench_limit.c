/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_limit.c - cache-line hand-overs between two processes, alone or with payload copies.
 * Owns      nothing
 * Threads   one driver and one responder per area
 * Uses      the C library only
 * See       bench_limit.h
 */
#include "bench_limit.h"

#include <string.h>

static inline void aq_limit_relax(bool pause)
{
    if (pause)
        aq_limit_pause();
}

static inline void aq_limit_await(_Atomic uint64_t *word, uint64_t value, bool pause)
{
    /* pairs with the release in aq_limit_signal(): the payload is visible with its number */
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        aq_limit_relax(pause);
}

static inline void aq_limit_signal(_Atomic uint64_t *word, uint64_t value)
{
    /* pairs with the acquire in aq_limit_await() */
    atomic_store_explicit(word, value, memory_order_release);
}

uint64_t aq_limit_sum(const void *buf, size_t nbytes)
{
    const unsigned char *p = buf;
    uint64_t sum = 0, word;

    for (size_t i = 0; i + sizeof(word) <= nbytes; i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        sum += word;
    }
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

void aq_limit_payload(struct aq_limit *l, const void *src, size_t n, unsigned char *large)
{
    bool fits = n <= AQ_LIMIT_PAYLOAD;

    l->src = l->pages = src;
    l->nbytes = n;
    l->peer_buf = fits ? l->area->peer_buf : large;
    l->back_buf = fits ? l->area->back_buf : large + n;
    l->ring_buf = fits ? l->area->ring_buf[0] : large;
    l->ring_stride = fits ? AQ_LIMIT_PAYLOAD : n;
}

void aq_limit_place(struct aq_limit *l, unsigned number)
{
    const size_t page = 4096;

    if (l->area == NULL || l->nbytes == 0 || l->nbytes > AQ_LIMIT_PAYLOAD / 4)
        return;
    l->peer_buf = l->area->peer_buf + number * 3 * page;
    l->back_buf = l->area->back_buf + number * 3 * page;
    l->src = l->pages + number * 5 * page;
}

void aq_limit_ping(struct aq_limit *l, uint64_t iters)
{
    struct aq_limit_area *area = l->area;

    for (uint64_t i = 0; i < iters; i++) {
        if (l->nbytes > 0)
            memcpy(l->peer_buf, l->src, l->nbytes);
        aq_limit_signal(&area->remote_addr.seq, ++l->seq);
        aq_limit_await(&area->back.seq, l->seq, l->pause);
        if (l->read_payload)
            aq_limit_sum(l->back_buf, l->nbytes);
    }
}

void aq_limit_pong(struct aq_limit *l, uint64_t iters)
{
    struct aq_limit_area *area = l->area;

    for (uint64_t i = 0; i < iters; i++) {
        aq_limit_await(&area->remote_addr.seq, ++l->seq, l->pause);
        if (l->read_payload)
            aq_limit_sum(l->peer_buf, l->nbytes);
        if (l->nbytes > 0)
            memcpy(l->back_buf, l->src, l->nbytes);
        aq_limit_signal(&area->back.seq, l->seq);
    }
}

void aq_limit_shared(struct aq_limit *l, uint64_t iters, bool first)
{
    _Atomic uint64_t *word = &l->area->shared.seq;

    for (uint64_t i = 0; i < iters; i++) {
        l->shared_seq += 2;
        if (first) {
            aq_limit_signal(word, l->shared_seq - 1);
            aq_limit_await(word, l->shared_seq, l->pause);
        } else {
            aq_limit_await(word, l->shared_seq - 1, l->pause);
            aq_limit_signal(word, l->shared_seq);
        }
    }
}

/* Waits until the receiver is less than a ring of messages (four, with payload) behind number
 * seq. */
static void aq_limit_await_credit(struct aq_limit *l, uint64_t seq)
{
    uint64_t space = l->nbytes > 0 ? 4 : AQ_LIMIT_RING;

    /* pairs with the release in aq_limit_drain(): the slot has been read before it is written
     * again */
    while (seq - atomic_load_explicit(&l->area->credit.seq, memory_order_acquire) > space)
        aq_limit_relax(l->pause);
}

void aq_limit_send(struct aq_limit *l, uint64_t iters)
{
    struct aq_limit_area *area = l->area;
    uint64_t checked = l->ring_seq; /* messages up to here have space for certain */
    uint64_t step = l->nbytes > 0 ? 1 : AQ_LIMIT_RING / 4;

    for (uint64_t i = 0; i < iters; i++) {
        uint64_t seq = ++l->ring_seq;
        struct aq_limit_slot *slot = &area->ring[seq % AQ_LIMIT_RING];

        if (seq > checked) {
            checked = seq + step - 1;
            aq_limit_await_credit(l, checked);
        }
        if (l->nbytes > 0)
            memcpy(l->ring_buf + seq % 4 * l->ring_stride, l->src, l->nbytes);
        slot->args[0] = seq;
        aq_limit_signal(&slot->seq, seq);
    }
    aq_limit_await(&area->credit.seq, l->ring_seq, l->pause);
}

void aq_limit_drain(struct aq_limit *l, uint64_t iters)
{
    struct aq_limit_area *area = l->area;
    uint64_t step = l->nbytes > 0 ? 1 : AQ_LIMIT_RING / 4;

    for (uint64_t i = 0; i < iters; i++) {
        uint64_t seq = ++l->ring_seq;

        aq_limit_await(&area->ring[seq % AQ_LIMIT_RING].seq, seq, l->pause);
        if (l->read_payload)
            aq_limit_sum(l->ring_buf + seq % 4 * l->ring_stride, l->nbytes);
        if (seq % step == 0 || i + 1 == iters)
            aq_limit_signal(&area->credit.seq, seq);
    }
}

void aq_limit_barrier(struct aq_limit *l, uint64_t iters, uint32_t rank, uint32_t ranks)
{
    for (uint64_t i = 0; i < iters; i++) {
        unsigned step = 0;

        l->barrier_seq++;
        for (uint32_t remote = 1; remote < ranks; remote *= 2, step++) {
            uint32_t to = (rank + remote) % ranks;

            aq_limit_signal(&l->area->flags[to][step].seq, l->barrier_seq);
            /* a neighbour may already be one barrier ahead, never two */
            while (atomic_load_explicit(&l->area->flags[rank][step].seq, memory_order_acquire)
                   < l->barrier_seq)
                aq_limit_relax(l->pause);
        }
    }
}
