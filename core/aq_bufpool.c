/*
 * aq_bufpool.c - buffers of some sizes from the heap: making and freeing them; see aq_bufpool.h.
 *
 * Threads   aq_bufpool_new(): any; aq_bufpool_fini(): one, when nobody uses the pools
 * Uses      aq_bufpool.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_bufpool.h"

#include "base/aq_log.h"

void *aq_bufpool_new(const char *who, size_t align, size_t bytes)
{
    /* aligned_alloc() takes a multiple of the alignment */
    void *buf = aligned_alloc(align, (bytes + align - 1) & ~(align - 1));

    if (buf == NULL)
        aq_fatal("%s: no memory for a buffer of %zu bytes", who, bytes);
    return buf;
}

void aq_bufpool_fini(struct aq_bufpool *pools, unsigned count)
{
    for (unsigned kind = 0; kind < count; kind++) {
        struct aq_freelist_item *item;

        while ((item = aq_freelist_pop(&pools[kind].free)) != NULL)
            free(item);
        pools[kind].count = 0;
    }
}
