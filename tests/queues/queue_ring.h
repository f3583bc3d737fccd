/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_ring.h - one single-producer ring for each ordered pair of ranks and channel.
 *
 * The sender writes a slot and stores its number last; the receiver waits for that number and never
 * writes the slot. It publishes how many it has consumed, a quarter of the ring at a time, in a line
 * that the sender reads only when its copy says that the ring is full. So a message costs the
 * hand-over of one line. The options (constants in every caller) are what the variants differ in.
 */
#ifndef AQ_TESTS_QUEUE_RING_H
#define AQ_TESTS_QUEUE_RING_H

#include "queue_common.h"

#include <stdlib.h>

enum ring_options {
    RING_REPLY_PREFETCH = 1,      /* own the slot of the reply from when a request is seen */
    RING_NEXT_PREFETCH = 2,       /* own the next slot from when a message was sent */
    RING_PAUSE = 4,               /* pause instruction after an empty poll */
    RING_RECEIVER_WRITES = 8,     /* receiver clears the number; no consumed count */
    RING_DENSE = QUEUE_FIRST_LINES_ONLY,   /* slots 64 bytes apart: first lines only */
    RING_SINGLE = 32,             /* requests and replies share a ring */
    RING_FENCE = 64,              /* sender's full fence instead of the sleeper's membarrier */
    RING_EAGER_COUNT = 128,       /* publish the consumed count after every message */
    RING_BELL = 256,              /* senders flag their ring in a summary word of the receiver */
    RING_REQUEST_PREFETCH = 512,  /* own the next request's slot from when a reply is seen */
};

enum { RING_SLOTS = 64 };         /* a power of two */

/* In shared memory. The count's own line pair also staggers the rings over the cache's sets. */
struct ring {
    _Alignas(BENCH_PAIR) _Atomic uint32_t consumed;
    _Alignas(BENCH_PAIR) struct slot slots[RING_SLOTS];
};

/* In shared memory, one for each receiver: which senders have ever sent, which have sent lately. */
struct ring_receiver {
    _Alignas(BENCH_PAIR) _Atomic uint64_t senders;
    _Alignas(BENCH_PAIR) _Atomic uint64_t bell;
};

struct ring_tx {
    struct ring *ring;
    uint32_t next;                /* number of the next message */
    uint32_t limit;               /* first number that does not fit, by the last look */
};

struct ring_rx {
    struct ring *ring;
    uint32_t next;
};

struct ring_peer {
    _Alignas(BENCH_LINE) struct ring_rx rx[CHANNELS];
    struct ring_tx tx[CHANNELS];
    unsigned rank;
    bool contacted;               /* the peer has been told to poll our ring */
};

struct queue {
    struct queue_base base;
    struct ring_receiver *receivers;
    uint64_t known;               /* senders in the active list */
    uint64_t pending;             /* bell: rings that may hold messages */
    unsigned actives;
    uint8_t active[BENCH_MAX_RANKS];
    struct ring_peer peers[];
};

static inline struct slot *ring_slot(struct ring *ring, uint32_t number, unsigned options)
{
    if (options & RING_DENSE)
        return (struct slot *)(void *)((char *)ring->slots + (number % RING_SLOTS) * BENCH_LINE);
    return &ring->slots[number % RING_SLOTS];
}

static inline enum bench_channel ring_index(enum bench_channel channel, unsigned options)
{
    return options & RING_SINGLE ? CHANNEL_REPLY : channel;
}

static inline void ring_own_slot(struct ring_tx *tx, unsigned options)
{
    __builtin_prefetch(ring_slot(tx->ring, tx->next, options), 1);
}

static inline bool ring_is_full(struct ring_tx *tx, struct slot *slot, unsigned options)
{
    if (options & RING_RECEIVER_WRITES) {
        /* acquire: the receiver's reads of the old message come before our writes of the new */
        return atomic_load_explicit(&slot->seq, memory_order_acquire) != 0;
    }
    if (BENCH_LIKELY(tx->next != tx->limit))
        return false;
    /* acquire: as above, pairs with the release in ring_count_consumed() */
    tx->limit = atomic_load_explicit(&tx->ring->consumed, memory_order_acquire) + RING_SLOTS + 1;
    return tx->next == tx->limit;
}

static inline void ring_count_consumed(struct ring_rx *rx, struct slot *slot, unsigned options)
{
    if (options & RING_RECEIVER_WRITES) {
        /* release: our reads of the message come before the sender's next write */
        atomic_store_explicit(&slot->seq, 0, memory_order_release);
    } else if ((options & RING_EAGER_COUNT) || rx->next % (RING_SLOTS / 4) == 0) {
        /* release: as above */
        atomic_store_explicit(&rx->ring->consumed, rx->next - 1, memory_order_release);
    }
}

static inline unsigned ring_drain(struct queue *q, struct ring_peer *peer,
                                  enum bench_channel channel, unsigned options)
{
    struct ring_rx *rx = &peer->rx[channel];
    unsigned taken = 0;

    while (taken < BENCH_POLL_BURST) {
        struct slot *slot = ring_slot(rx->ring, rx->next, options);

        /* acquire: the message's content is visible once its number is */
        if (atomic_load_explicit(&slot->seq, memory_order_acquire) != rx->next)
            break;
        if ((options & RING_REPLY_PREFETCH) && channel == CHANNEL_REQUEST)
            ring_own_slot(&peer->tx[CHANNEL_REPLY], options);
        if ((options & RING_REQUEST_PREFETCH) && channel == CHANNEL_REPLY)
            ring_own_slot(&peer->tx[ring_index(CHANNEL_REQUEST, options)], options);
        queue_dispatch(q, peer->rank, slot);
        rx->next++;
        ring_count_consumed(rx, slot, options);
        taken++;
    }
    return taken;
}

static inline unsigned ring_drain_peer(struct queue *q, unsigned source, unsigned channels,
                                       unsigned options)
{
    struct ring_peer *peer = &q->peers[source];
    unsigned taken = ring_drain(q, peer, CHANNEL_REPLY, options);

    if (channels == CHANNELS && !(options & RING_SINGLE))
        taken += ring_drain(q, peer, CHANNEL_REQUEST, options);
    return taken;
}

static inline unsigned ring_poll_bell(struct queue *q, unsigned channels, unsigned options)
{
    _Atomic uint64_t *bell = &q->receivers[q->base.world->rank].bell;
    unsigned taken = 0;

    /* relaxed: only a hint that the exchange is worth its cost */
    if (atomic_load_explicit(bell, memory_order_relaxed) != 0) {
        /* acquire: what was published before the bit was set is visible now */
        q->pending |= atomic_exchange_explicit(bell, 0, memory_order_acquire);
    }
    for (uint64_t left = q->pending; left != 0; left &= left - 1) {
        unsigned source = (unsigned)__builtin_ctzll(left);
        unsigned here = ring_drain_peer(q, source, channels, options);

        if (here < BENCH_POLL_BURST && channels == CHANNELS)
            q->pending &= ~(UINT64_C(1) << source);
        taken += here;
    }
    return taken;
}

static __attribute__((noinline, cold)) void ring_learn_senders(struct queue *q, uint64_t senders)
{
    for (uint64_t left = senders & ~q->known; left != 0; left &= left - 1)
        q->active[q->actives++] = (uint8_t)__builtin_ctzll(left);
    q->known = senders;
}

static inline unsigned queue_poll(struct queue *q, unsigned channels, unsigned options)
{
    unsigned taken = 0;

    if (options & RING_BELL)
        return ring_poll_bell(q, channels, options);

    for (unsigned i = 0; i < q->actives; i++)
        taken += ring_drain_peer(q, q->active[i], channels, options);
    if (taken == 0) {
        /* relaxed: the ring's own numbers order its content */
        uint64_t senders = atomic_load_explicit(&q->receivers[q->base.world->rank].senders,
                                                memory_order_relaxed);

        if (BENCH_UNLIKELY(senders != q->known))
            ring_learn_senders(q, senders);
        if ((options & RING_PAUSE) && q->base.world->dedicated)
            bench_cpu_relax();
    }
    return taken;
}

static __attribute__((noinline, cold)) void ring_contact(struct queue *q, struct ring_peer *peer)
{
    /* release: nothing is published through this bit, but it must not be held back */
    atomic_fetch_or_explicit(&q->receivers[peer->rank].senders,
                             UINT64_C(1) << q->base.world->rank, memory_order_release);
    peer->contacted = true;
}

static inline void ring_ring_bell(struct queue *q, unsigned target)
{
    /* release: the receiver that takes the bit sees the message. Unconditional: looking first
     * whether the bit is set would need a full fence between the message and the look. */
    atomic_fetch_or_explicit(&q->receivers[target].bell, UINT64_C(1) << q->base.world->rank,
                             memory_order_release);
}

static inline void queue_send(struct queue *q, unsigned target, enum bench_channel channel,
                              uint8_t handler, unsigned nargs, const uint32_t *args,
                              unsigned options)
{
    struct ring_peer *peer = &q->peers[target];
    struct ring_tx *tx = &peer->tx[ring_index(channel, options)];
    struct slot *slot = ring_slot(tx->ring, tx->next, options);

    while (BENCH_UNLIKELY(ring_is_full(tx, slot, options))) {
        if (queue_poll(q, channel == CHANNEL_REPLY ? 1 : CHANNELS, options) == 0)
            bench_blocked(q->base.world);
        slot = ring_slot(tx->ring, tx->next, options);
    }
    queue_fill_slot(slot, q->base.world->rank, handler, nargs, args);
    /* release: pairs with the acquire in ring_drain() */
    atomic_store_explicit(&slot->seq, tx->next, memory_order_release);
    tx->next++;
    if (options & RING_BELL)
        ring_ring_bell(q, target);
    else if (BENCH_UNLIKELY(!peer->contacted))
        ring_contact(q, peer);
    if (options & RING_NEXT_PREFETCH)
        ring_own_slot(tx, options);
    if (options & RING_FENCE)
        atomic_thread_fence(memory_order_seq_cst);
    bench_notify(q->base.world, target);
}

static size_t queue_bytes(unsigned ranks)
{
    return ranks * sizeof(struct ring_receiver)
           + (size_t)ranks * ranks * CHANNELS * sizeof(struct ring);
}

static void *queue_open(struct bench_world *world, void *shared)
{
    unsigned ranks = world->ranks;
    size_t bytes = sizeof(struct queue) + ranks * sizeof(struct ring_peer);
    struct queue *q = aligned_alloc(BENCH_LINE, (bytes + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE);
    struct ring_receiver *receivers = shared;
    struct ring *rings = (struct ring *)(void *)&receivers[ranks];

    if (q == NULL)
        return NULL;
    *q = (struct queue){ .base = { .world = world, .in_order = true }, .receivers = receivers };
    for (unsigned i = 0; i < ranks; i++) {
        struct ring_peer *peer = &q->peers[i];

        *peer = (struct ring_peer){ .rank = i };
        for (unsigned c = 0; c < CHANNELS; c++) {
            size_t in = ((size_t)world->rank * ranks + i) * CHANNELS + c;
            size_t out = ((size_t)i * ranks + world->rank) * CHANNELS + c;

            peer->rx[c] = (struct ring_rx){ .ring = &rings[in], .next = 1 };
            peer->tx[c] = (struct ring_tx){ .ring = &rings[out], .next = 1,
                                            .limit = RING_SLOTS + 1 };
        }
    }
    return q;
}

static void queue_close(void *queue)
{
    free(queue);
}

#endif
