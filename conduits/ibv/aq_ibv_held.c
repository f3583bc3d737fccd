/*
 * aq_ibv_held.c - messages that wait, in their receive buffers, for a poll which may serve them.
 *
 * Owns      the queues, one for each kind
 * Threads   any; lists under their locks
 * Uses      aq_ibv_recv.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_recv.h"

struct aq_ibv_held aq_ibv_held[AQ_IBV_HELD_QUEUES];

void aq_ibv_held_add(struct aq_ibv_rbuf *buf, unsigned queue)
{
    buf->next = NULL;
    aq_lock_acquire(&aq_ibv_held[queue].lock);
    /* relaxed: under the lock; a look without it may be late */
    if (atomic_load_explicit(&aq_ibv_held[queue].first, memory_order_relaxed) == NULL)
        atomic_store_explicit(&aq_ibv_held[queue].first, buf, memory_order_relaxed);
    else
        aq_ibv_held[queue].last->next = buf;
    aq_ibv_held[queue].last = buf;
    aq_lock_release(&aq_ibv_held[queue].lock);
    aq_counter_add(&aq_ibv.counts.held, 1);
}

struct aq_ibv_rbuf *aq_ibv_held_take(unsigned queue)
{
    struct aq_ibv_rbuf *buf;

    aq_lock_acquire(&aq_ibv_held[queue].lock);
    buf = atomic_load_explicit(&aq_ibv_held[queue].first, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv_held[queue].first, NULL, memory_order_relaxed);
    aq_lock_release(&aq_ibv_held[queue].lock);
    return buf;
}
