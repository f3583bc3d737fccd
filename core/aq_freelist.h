/*
 * aq_freelist.h - a list of free things, last in, first out: the next one is taken from the cache.
 *
 * A thing has a struct aq_freelist_item as a member, which is the list's while the thing is free.
 * The list owns no memory: a caller that finds the list empty makes more, waits, or returns
 * AQ_RETRY.
 *
 * Threads   aq_freelist_take() and aq_freelist_give(): any. aq_freelist_pop() and
 *           aq_freelist_push(): under the lock of the list, which also protects what its owner
 *           counts; it is held for a few instructions
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_FREELIST_H
#define AQ_FREELIST_H

#include <stddef.h>

#include "base/aq_lock.h"
#include "base/aq_platform.h"

struct aq_freelist_item {
    struct aq_freelist_item *next;
};

/* The thing that has the item offset bytes behind its begin: offsetof(). NULL stays NULL. */
static inline void *aq_freelist_thing(struct aq_freelist_item *item, size_t offset)
{
    return item == NULL ? NULL : (char *)item - offset;
}

/* All zero: an empty list. */
struct aq_freelist {
    aq_lock lock;
    struct aq_freelist_item *first;
};

/* Returns NULL if none is free. */
static inline struct aq_freelist_item *aq_freelist_pop(struct aq_freelist *list)
{
    struct aq_freelist_item *item = list->first;

    if (AQ_LIKELY(item != NULL))
        list->first = item->next;
    return item;
}

static inline void aq_freelist_push(struct aq_freelist *list, struct aq_freelist_item *item)
{
    item->next = list->first;
    list->first = item;
}

static inline struct aq_freelist_item *aq_freelist_take(struct aq_freelist *list)
{
    struct aq_freelist_item *item;

    aq_lock_acquire(&list->lock);
    item = aq_freelist_pop(list);
    aq_lock_release(&list->lock);
    return item;
}

static inline void aq_freelist_give(struct aq_freelist *list, struct aq_freelist_item *item)
{
    aq_lock_acquire(&list->lock);
    aq_freelist_push(list, item);
    aq_lock_release(&list->lock);
}

#endif
