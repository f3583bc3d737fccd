/*
 * aq_ibv_deferred.c - messages that wait, in their receive buffers, for a poll which may serve
 * them.
 *
 * Owns      the queues, one for each kind
 * Threads   any; lists under their locks
 * Uses      aq_ibv_recv.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_recv.h"

struct aq_ibv_deferred aq_ibv_deferred[AQ_IBV_DEFERRED_QUEUES];

void aq_ibv_deferred_add(struct aq_ibv_rbuf *buf, unsigned queue)
{
    buf->next = NULL;
    aq_lock_acquire(&aq_ibv_deferred[queue].lock);
    /* relaxed: under the lock; a look without it may be late */
    if (atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed) == NULL)
        atomic_store_explicit(&aq_ibv_deferred[queue].first, buf, memory_order_relaxed);
    else
        aq_ibv_deferred[queue].last->next = buf;
    aq_ibv_deferred[queue].last = buf;
    aq_lock_release(&aq_ibv_deferred[queue].lock);
    aq_counter_add(&aq_ibv.counts.deferred, 1);
}

struct aq_ibv_rbuf *aq_ibv_deferred_take(unsigned queue)
{
    struct aq_ibv_rbuf *buf;

    aq_lock_acquire(&aq_ibv_deferred[queue].lock);
    buf = atomic_load_explicit(&aq_ibv_deferred[queue].first, memory_order_relaxed);
    atomic_store_explicit(&aq_ibv_deferred[queue].first, NULL, memory_order_relaxed);
    aq_lock_release(&aq_ibv_deferred[queue].lock);
    return buf;
}
