/*
 * aq_bufpool.h - buffers of some sizes from the heap, which free lists keep for the next message.
 *
 * A conduit has one pool for each size. A buffer begins with a header of the conduit, whose first
 * member is a struct aq_freelist_item. A freed buffer returns to the list of its pool, up to a
 * bound, so that a usual message needs no malloc. An empty pool is not a limit: what bounds the
 * memory of messages under way is flow control (core/aq_credit.h).
 *
 * Owner     the conduit keeps the pools, and calls aq_bufpool_fini() at the end of the job
 * Threads   any; the lock of a list is held for a few instructions
 * Uses      core/aq_freelist.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_BUFPOOL_H
#define AQ_BUFPOOL_H

#include <stdint.h>
#include <stdlib.h>

#include "core/aq_freelist.h"

/* All zero but for keep: an empty pool. */
struct aq_bufpool {
    struct aq_freelist free;
    uint32_t count; /* in the list; under its lock */
    uint32_t keep;  /* the most that the list keeps */
};

/* Returns the index of the smallest of `count` sizes that holds size bytes; count: none does. The
 * sizes go up. */
static inline unsigned aq_bufpool_fit(const uint32_t *sizes, unsigned count, size_t size)
{
    unsigned kind = 0;

    while (kind < count && size > sizes[kind])
        kind++;
    return kind;
}

/* Returns a buffer that was free, or NULL: the caller makes one, by aq_bufpool_new(). */
static inline struct aq_freelist_item *aq_bufpool_take(struct aq_bufpool *pool)
{
    struct aq_freelist_item *item;

    aq_lock_acquire(&pool->free.lock);
    item = aq_freelist_pop(&pool->free);
    if (AQ_LIKELY(item != NULL))
        pool->count--;
    aq_lock_release(&pool->free.lock);
    return item;
}

/* The buffer is free: the pool keeps it, or it goes back to the heap. */
static inline void aq_bufpool_give(struct aq_bufpool *pool, struct aq_freelist_item *item)
{
    bool keeps;

    aq_lock_acquire(&pool->free.lock);
    keeps = pool->count < pool->keep;
    if (AQ_LIKELY(keeps)) {
        aq_freelist_push(&pool->free, item);
        pool->count++;
    }
    aq_lock_release(&pool->free.lock);
    if (AQ_UNLIKELY(!keeps))
        free(item);
}

/**
 * aq_bufpool_new - a buffer from the heap; its contents are not set.
 * who    the conduit, for the message
 * align  bytes, a power of two
 * bytes  of the buffer, with its header
 * Ends the job if there is no memory.
 */
void *aq_bufpool_new(const char *who, size_t align, size_t bytes);

/** aq_bufpool_fini - gives the memory of unused buffers back. */
void aq_bufpool_fini(struct aq_bufpool *pools, unsigned count);

#endif
