/* SPDX-License-Identifier: BSD-3-Clause
 *
 * design_mpsc.c - design `mpsc`: one bounded queue with many producers for each receiver and channel.
 *
 * A sender takes a ticket by fetch_add, waits until the ticket's slot is free, fills it and stores
 * the ticket's number in it. A poll looks at one slot whatever the number of senders. What the
 * senders share is the ticket counter; and a sender that is preempted between ticket and number
 * holds up all that come after it.
 */
#include "queue_common.h"

#include <stdlib.h>

enum { MPSC_SLOTS = 256 };        /* a power of two; as many as four rings */

struct mpsc {
    _Alignas(BENCH_PAIR) _Atomic uint32_t tickets;
    _Alignas(BENCH_PAIR) _Atomic uint32_t consumed;
    _Alignas(BENCH_PAIR) struct slot slots[MPSC_SLOTS];
};

struct mpsc_tx {
    struct mpsc *queue;
    uint32_t consumed;            /* by the last look */
};

struct mpsc_rx {
    struct mpsc *queue;
    uint32_t next;
};

struct queue {
    struct queue_base base;
    struct mpsc_rx rx[CHANNELS];
    struct mpsc_tx tx[][CHANNELS];
};

static inline unsigned mpsc_drain(struct queue *q, unsigned channel)
{
    struct mpsc_rx *rx = &q->rx[channel];
    unsigned taken = 0;

    while (taken < BENCH_POLL_BURST) {
        struct slot *slot = &rx->queue->slots[rx->next % MPSC_SLOTS];

        /* acquire: the message's content is visible once its number is */
        if (atomic_load_explicit(&slot->seq, memory_order_acquire) != rx->next + 1)
            break;
        queue_dispatch(q, slot->source, slot);
        rx->next++;
        taken++;
        /* release: our reads of the messages come before the senders' next writes */
        if (rx->next % (MPSC_SLOTS / 8) == 0)
            atomic_store_explicit(&rx->queue->consumed, rx->next, memory_order_release);
    }
    return taken;
}

static inline unsigned queue_poll(struct queue *q, unsigned channels, unsigned options)
{
    unsigned taken = mpsc_drain(q, CHANNEL_REPLY);

    (void)options;
    if (channels == CHANNELS)
        taken += mpsc_drain(q, CHANNEL_REQUEST);
    return taken;
}

static inline bool mpsc_is_full(struct mpsc_tx *tx, uint32_t ticket)
{
    if (BENCH_LIKELY((int32_t)(ticket - tx->consumed) < MPSC_SLOTS))
        return false;
    /* acquire: pairs with the release in mpsc_drain() */
    tx->consumed = atomic_load_explicit(&tx->queue->consumed, memory_order_acquire);
    return (int32_t)(ticket - tx->consumed) >= MPSC_SLOTS;
}

static inline void queue_send(struct queue *q, unsigned target, enum bench_channel channel,
                              uint8_t handler, unsigned nargs, const uint32_t *args,
                              unsigned options)
{
    struct mpsc_tx *tx = &q->tx[target][channel];
    /* relaxed: a ticket orders nothing, the number in the slot does */
    uint32_t ticket = atomic_fetch_add_explicit(&tx->queue->tickets, 1, memory_order_relaxed);
    struct slot *slot = &tx->queue->slots[ticket % MPSC_SLOTS];

    while (BENCH_UNLIKELY(mpsc_is_full(tx, ticket))) {
        if (queue_poll(q, channel == CHANNEL_REPLY ? 1 : CHANNELS, options) == 0)
            bench_blocked(q->base.world);
    }
    queue_fill_slot(slot, q->base.world->rank, handler, nargs, args);
    /* release: pairs with the acquire in mpsc_drain() */
    atomic_store_explicit(&slot->seq, ticket + 1, memory_order_release);
    bench_notify(q->base.world, target);
}

static size_t queue_bytes(unsigned ranks)
{
    return (size_t)ranks * CHANNELS * sizeof(struct mpsc);
}

static void *queue_open(struct bench_world *world, void *shared)
{
    struct mpsc *queues = shared;
    struct queue *q = calloc(1, sizeof(*q) + world->ranks * sizeof(q->tx[0]));

    if (q == NULL)
        return NULL;
    q->base = (struct queue_base){ .world = world, .in_order = true };
    for (unsigned c = 0; c < CHANNELS; c++) {
        q->rx[c].queue = &queues[world->rank * CHANNELS + c];
        for (unsigned i = 0; i < world->ranks; i++)
            q->tx[i][c].queue = &queues[i * CHANNELS + c];
    }
    return q;
}

static void queue_close(void *queue)
{
    free(queue);
}

#define VARIANT_NAME mpsc
#define VARIANT_TITLE "mpsc"
#define VARIANT_WHAT "one queue with many producers for each receiver"
#define VARIANT_OPTIONS 0
#define VARIANT_FINE false
#include "queue_kernels.h"

const struct queue_design *const mpsc_designs[] = { &mpsc_design, NULL };
