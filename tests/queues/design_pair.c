/* SPDX-License-Identifier: BSD-3-Clause
 *
 * design_pair.c - design `pair`: rings whose i-th request and i-th reply share a cache line.
 *
 * Between two ranks there is a channel for each requester. Slot i holds, in two halves of one line, its
 * i-th request and the i-th reply to it. The responder's read of the request half brings it the line
 * for itself, so that writing the reply half asks nobody; a round trip hands over one line twice. What
 * does not fit a half goes to a line of its own beside it. Each lane has its own consumed count.
 *
 * Variants: `pair-apart` is the same code with the halves in two lines. `pair-drift` starts the
 * replies 7 slots ahead, as if 7 requests had not been answered: request and reply of a round
 * trip no longer meet in a line.
 */
#include "queue_common.h"

#include <stdlib.h>

enum pair_options {
    PAIR_APART = QUEUE_FIRST_LINES_ONLY,   /* the reply's half is in a line of its own */
    PAIR_DRIFT = 32,              /* the i-th request and reply are in different slots */
    PAIR_QUARTER = 64,            /* publish the consumed count a quarter of the ring at a time */
    PAIR_DRAIN = 128,             /* look for a second message even if the last poll found none */
    PAIR_PAUSE = 256,             /* pause instruction after an empty poll */
};

enum { PAIR_SLOTS = 64, PAIR_ARGS = 6, PAIR_DRIFTED = 7 };   /* slots: a power of two */

struct pair_half {
    _Atomic uint64_t head;        /* number:32 handler:8 nargs:8; stored last */
    uint32_t args[PAIR_ARGS];
};

union pair_more {
    uint32_t args[BENCH_MORE_ARGS];   /* all of them, if they do not fit the half */
    struct pair_half half;            /* of the reply, in pair-apart */
};

struct pair_slot {
    _Alignas(BENCH_LINE) struct pair_half half[CHANNELS];
    union pair_more more[CHANNELS];
};
_Static_assert(sizeof(struct pair_half) * CHANNELS == BENCH_LINE, "two halves are a line");

struct pair_channel {
    struct {
        _Alignas(BENCH_PAIR) _Atomic uint32_t count;
    } done[CHANNELS];
    struct pair_slot slots[PAIR_SLOTS];
};

/* In shared memory, one for each receiver. */
struct pair_receiver {
    _Alignas(BENCH_PAIR) _Atomic uint64_t senders;
};

struct pair_end {
    struct pair_channel *channel;
    uint32_t next;                /* number of the next message, from 1 */
    uint32_t limit;               /* sender: first number that does not fit, by the last look */
    bool streaming;               /* receiver: the last poll found a message here */
};

struct pair_peer {
    _Alignas(BENCH_LINE) struct pair_end rx[CHANNELS];
    struct pair_end tx[CHANNELS];
    unsigned rank;
    bool contacted;
};

struct queue {
    struct queue_base base;
    struct pair_receiver *receivers;
    uint64_t known;
    unsigned actives;
    uint8_t active[BENCH_MAX_RANKS];
    struct pair_peer peers[];
};

/* Where in its slot number n's half is. */
static inline struct pair_slot *pair_slot_at(const struct pair_end *end,
                                             enum bench_channel channel, unsigned options)
{
    uint32_t at = end->next;

    if ((options & PAIR_DRIFT) && channel == CHANNEL_REPLY)
        at += PAIR_DRIFTED;
    return &end->channel->slots[at % PAIR_SLOTS];
}

static inline struct pair_half *pair_half_at(struct pair_slot *slot, enum bench_channel channel,
                                             unsigned options)
{
    if ((options & PAIR_APART) && channel == CHANNEL_REPLY)
        return &slot->more[CHANNEL_REPLY].half;
    return &slot->half[channel];
}

static inline bool pair_is_full(struct pair_end *tx, enum bench_channel channel)
{
    if (BENCH_LIKELY(tx->next != tx->limit))
        return false;
    /* acquire: the receiver's reads of the old message come before our writes of the new; pairs
     * with the release in pair_drain() */
    tx->limit = atomic_load_explicit(&tx->channel->done[channel].count, memory_order_acquire)
                + PAIR_SLOTS + 1;
    return tx->next == tx->limit;
}

/* Looking for a second message where there is none is a miss that delays the reply to the first:
 * only a lane that had a message at the last poll too is drained. */
static inline unsigned pair_drain(struct queue *q, struct pair_peer *peer,
                                  enum bench_channel channel, unsigned options)
{
    struct pair_end *rx = &peer->rx[channel];
    unsigned budget = rx->streaming || (options & PAIR_DRAIN) ? BENCH_POLL_BURST : 1;
    unsigned taken = 0;

    while (taken < budget) {
        struct pair_slot *slot = pair_slot_at(rx, channel, options);
        struct pair_half *half = pair_half_at(slot, channel, options);
        /* acquire: the message's content is visible once its number is */
        uint64_t head = atomic_load_explicit(&half->head, memory_order_acquire);
        bool near = (uint8_t)(head >> 40) <= PAIR_ARGS;

        if ((uint32_t)head != rx->next)
            break;
        queue_call(q, peer->rank, (uint8_t)(head >> 32), near ? half->args : slot->more[channel].args,
                   near ? PAIR_ARGS : BENCH_MORE_ARGS, NULL);
        rx->next++;
        taken++;
        /* release: our reads of the message come before the sender's next write */
        if (!(options & PAIR_QUARTER) || rx->next % (PAIR_SLOTS / 4) == 0)
            atomic_store_explicit(&rx->channel->done[channel].count, rx->next - 1,
                                  memory_order_release);
    }
    rx->streaming = taken != 0;
    return taken;
}

static __attribute__((noinline, cold)) void pair_learn_senders(struct queue *q, uint64_t senders)
{
    for (uint64_t left = senders & ~q->known; left != 0; left &= left - 1)
        q->active[q->actives++] = (uint8_t)__builtin_ctzll(left);
    q->known = senders;
}

static inline unsigned queue_poll(struct queue *q, unsigned channels, unsigned options)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < q->actives; i++) {
        struct pair_peer *peer = &q->peers[q->active[i]];

        taken += pair_drain(q, peer, CHANNEL_REPLY, options);
        if (channels == CHANNELS)
            taken += pair_drain(q, peer, CHANNEL_REQUEST, options);
    }
    if (taken == 0) {
        /* relaxed: the messages' own numbers order their content */
        uint64_t senders = atomic_load_explicit(&q->receivers[q->base.world->rank].senders,
                                                memory_order_relaxed);

        if (BENCH_UNLIKELY(senders != q->known))
            pair_learn_senders(q, senders);
        if ((options & PAIR_PAUSE) && q->base.world->dedicated)
            bench_cpu_relax();
    }
    return taken;
}

static __attribute__((noinline, cold)) void pair_contact(struct queue *q, struct pair_peer *peer)
{
    /* release: nothing is published through this bit, but it must not be held back */
    atomic_fetch_or_explicit(&q->receivers[peer->rank].senders,
                             UINT64_C(1) << q->base.world->rank, memory_order_release);
    peer->contacted = true;
}

static inline void pair_copy_args(struct pair_slot *slot, struct pair_half *half,
                                  enum bench_channel channel, unsigned nargs, const uint32_t *args)
{
    uint32_t *to = nargs <= PAIR_ARGS ? half->args : slot->more[channel].args;

    if (BENCH_LIKELY(nargs <= 2)) {
        to[0] = args[0];
        to[1] = args[1];
        return;
    }
    for (unsigned i = 0; i < nargs; i++)
        to[i] = args[i];
}

static inline void queue_send(struct queue *q, unsigned target, enum bench_channel channel,
                              uint8_t handler, unsigned nargs, const uint32_t *args,
                              unsigned options)
{
    struct pair_peer *peer = &q->peers[target];
    struct pair_end *tx = &peer->tx[channel];
    struct pair_slot *slot;
    struct pair_half *half;

    while (BENCH_UNLIKELY(pair_is_full(tx, channel)))
        if (queue_poll(q, channel == CHANNEL_REPLY ? 1 : CHANNELS, options) == 0)
            bench_blocked(q->base.world);
    slot = pair_slot_at(tx, channel, options);
    half = pair_half_at(slot, channel, options);
    pair_copy_args(slot, half, channel, nargs, args);
    /* release: pairs with the acquire in pair_drain() */
    atomic_store_explicit(&half->head, (uint64_t)tx->next | (uint64_t)handler << 32
                                           | (uint64_t)nargs << 40, memory_order_release);
    tx->next++;
    if (BENCH_UNLIKELY(!peer->contacted))
        pair_contact(q, peer);
    bench_notify(q->base.world, target);
}

static size_t queue_bytes(unsigned ranks)
{
    return ranks * sizeof(struct pair_receiver)
           + (size_t)ranks * ranks * sizeof(struct pair_channel);
}

static void *queue_open(struct bench_world *world, void *shared)
{
    unsigned ranks = world->ranks, me = world->rank;
    size_t bytes = sizeof(struct queue) + ranks * sizeof(struct pair_peer);
    struct queue *q = aligned_alloc(BENCH_LINE, (bytes + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE);
    struct pair_receiver *receivers = shared;
    struct pair_channel *channels = (struct pair_channel *)(void *)&receivers[ranks];

    if (q == NULL)
        return NULL;
    *q = (struct queue){ .base = { .world = world, .in_order = true }, .receivers = receivers };
    for (unsigned i = 0; i < ranks; i++) {
        struct pair_end mine = { .channel = &channels[(size_t)me * ranks + i],   /* I request */
                                 .next = 1, .limit = PAIR_SLOTS + 1 };
        struct pair_end theirs = mine;

        theirs.channel = &channels[(size_t)i * ranks + me];
        q->peers[i] = (struct pair_peer){
            .rank = i,
            .tx = { [CHANNEL_REQUEST] = mine, [CHANNEL_REPLY] = theirs },
            .rx = { [CHANNEL_REQUEST] = theirs, [CHANNEL_REPLY] = mine },
        };
    }
    return q;
}

static void queue_close(void *queue)
{
    free(queue);
}

#define VARIANT_NAME pair
#define VARIANT_TITLE "pair"
#define VARIANT_WHAT "ring for each pair; a request and its reply share a line"
#define VARIANT_OPTIONS 0
#define VARIANT_FINE false
#include "queue_kernels.h"

#define VARIANT_NAME pair_drift
#define VARIANT_TITLE "pair-drift"
#define VARIANT_WHAT "pair after 7 requests that were not answered"
#define VARIANT_OPTIONS PAIR_DRIFT
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME pair_apart
#define VARIANT_TITLE "pair-apart"
#define VARIANT_WHAT "pair's code, reply in a line of its own"
#define VARIANT_OPTIONS PAIR_APART
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME pair_quarter
#define VARIANT_TITLE "pair-quarter"
#define VARIANT_WHAT "pair, consumed count published a quarter of the ring at a time"
#define VARIANT_OPTIONS PAIR_QUARTER
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME pair_drain
#define VARIANT_TITLE "pair-drain"
#define VARIANT_WHAT "pair, always looks for a second message"
#define VARIANT_OPTIONS PAIR_DRAIN
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME pair_pause
#define VARIANT_TITLE "pair-pause"
#define VARIANT_WHAT "pair, pause instruction in the spin"
#define VARIANT_OPTIONS PAIR_PAUSE
#define VARIANT_FINE false
#include "queue_kernels.h"

#define VARIANT_NAME pair_drift_pause
#define VARIANT_TITLE "pair-drift-p"
#define VARIANT_WHAT "pair-drift, pause instruction in the spin"
#define VARIANT_OPTIONS (PAIR_DRIFT | PAIR_PAUSE)
#define VARIANT_FINE true
#include "queue_kernels.h"

#define VARIANT_NAME pair_apart_pause
#define VARIANT_TITLE "pair-apart-p"
#define VARIANT_WHAT "pair-apart, pause instruction in the spin"
#define VARIANT_OPTIONS (PAIR_APART | PAIR_PAUSE)
#define VARIANT_FINE true
#include "queue_kernels.h"

const struct queue_design *const pair_designs[] = {
    &pair_design,         &pair_pause_design,       &pair_drift_design,       &pair_apart_design,
    &pair_quarter_design, &pair_drain_design,       &pair_drift_pause_design, &pair_apart_pause_design,
    NULL,
};
