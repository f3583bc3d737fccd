/*
 * aq_bound.c - the addresses of endpoints' segments.
 *
 * Owns      the table of published segments: open addressing, keyed by jobrank and index, grown by
 *           doubling; entries are never removed
 * Threads   any, handlers too; the table under aq_published.lock, for a few instructions
 * Uses      aq_ep.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "core/aq_ep.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"

struct aq_published {
    uint64_t key; /* 0: free */
    struct aq_bound bound;
};

static struct {
    aq_lock lock;
    struct aq_published *table;
    size_t slots, used; /* slots is a power of two, or 0 */
} aq_published AQ_JOB_STATE;

/* Never 0, since the index is not 0. */
static inline uint64_t aq_published_key(gex_Rank_t jobrank, gex_EP_Index_t index)
{
    return (uint64_t)jobrank << 16 | index;
}

/* Returns the entry with this key, or the free slot for it. */
static struct aq_published *aq_published_slot(struct aq_published *table, size_t slots,
                                              uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32);

    for (;; at++) {
        struct aq_published *entry = &table[at & (slots - 1)];

        if (entry->key == key || entry->key == 0)
            return entry;
    }
}

/* Makes space for one more entry; under the lock. */
static int aq_published_grow(void)
{
    const size_t slots = aq_published.slots == 0 ? 16 : 2 * aq_published.slots;
    struct aq_published *table;

    if (2 * (aq_published.used + 1) <= aq_published.slots)
        return AQ_OK;
    table = calloc(slots, sizeof(*table));
    if (table == NULL)
        return AQ_ERR_NOMEM;
    for (size_t i = 0; i < aq_published.slots; i++)
        if (aq_published.table[i].key != 0)
            *aq_published_slot(table, slots, aq_published.table[i].key) = aq_published.table[i];
    free(aq_published.table);
    aq_published.table = table;
    aq_published.slots = slots;
    return AQ_OK;
}

int aq_bound_learn(gex_Rank_t jobrank, gex_EP_Index_t index, struct aq_bound bound)
{
    const uint64_t key = aq_published_key(jobrank, index);
    int rc;

    if (index == 0) {
        aq_job.bound[jobrank] = bound;
        return AQ_OK;
    }
    aq_lock_acquire(&aq_published.lock);
    rc = aq_published_grow();
    if (rc == AQ_OK) {
        struct aq_published *entry = aq_published_slot(aq_published.table, aq_published.slots, key);

        aq_published.used += entry->key == 0;
        *entry = (struct aq_published){ key, bound };
    }
    aq_lock_release(&aq_published.lock);
    return rc;
}

/* acquire: pairs with the release where it is bound */
static inline const struct aq_segment *aq_bound_segment(const struct aq_ep *ep)
{
    return atomic_load_explicit(&ep->segment, memory_order_acquire);
}

static struct aq_bound aq_bound_own(gex_EP_Index_t index)
{
    const struct aq_ep *ep = aq_ep_at(index);
    const struct aq_segment *segment;
    uintptr_t size;

    if (ep == NULL)
        return (struct aq_bound){ NULL, 0 };
    segment = aq_bound_segment(ep);
    size = segment == NULL ? 0 : aq_segment_size(segment); /* once: it may become 0 at any time */
    return size == 0 ? (struct aq_bound){ NULL, 0 } : (struct aq_bound){ segment->base, size };
}

struct aq_bound aq_bound_find(gex_Rank_t jobrank, gex_EP_Index_t index)
{
    struct aq_bound bound = { NULL, 0 };

    if (index == 0)
        return aq_job.bound[jobrank];
    if (jobrank == aq_job.rank)
        return aq_bound_own(index);
    aq_lock_acquire(&aq_published.lock);
    if (aq_published.slots != 0)
        bound = aq_published_slot(aq_published.table, aq_published.slots,
                                  aq_published_key(jobrank, index))
                    ->bound;
    aq_lock_release(&aq_published.lock);
    return bound;
}

const struct aq_mk_ops *aq_bound_kind(const void *addr, size_t nbytes)
{
    const struct aq_segment *segment;

    if (aq_job.bound == NULL)
        return NULL;
    if (AQ_LIKELY(aq_bound_contains(aq_job.rank, addr, nbytes))) {
        segment = aq_bound_segment(&aq_job.ep);
        /* what attach has allocated is the host's before it is bound */
        return segment == NULL ? &aq_mk_host : segment->mk;
    }
    for (gex_EP_Index_t index = 1; aq_ep_at(index) != NULL; index++) {
        const struct aq_bound bound = aq_bound_own(index);

        if (bound.size != 0 && aq_bounds_contain(&bound, addr, nbytes))
            return aq_bound_segment(aq_ep_at(index))->mk;
    }
    return NULL;
}

bool aq_bound_is_self(const void *addr, size_t nbytes)
{
    return aq_bound_kind(addr, nbytes) != NULL;
}

void aq_bound_check_long(gex_Rank_t jobrank, const void *dest, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)jobrank, (void)dest, (void)nbytes;
#else
    if (nbytes != 0 && !aq_bound_is_self(dest, nbytes))
        aq_fatal("rank %u sent a long message to [%p, +%zu), which is not inside a segment of this "
                 "process",
                 jobrank, dest, nbytes);
#endif
}

void aq_bound_place_long(gex_Rank_t jobrank, void *dest, const void *payload, size_t nbytes)
{
    aq_bound_check_long(jobrank, dest, nbytes);
    if (nbytes != 0)
        aq_mk_at(dest, nbytes)->copy_in(dest, payload, nbytes);
}

void aq_bound_fini(void)
{
    free(aq_published.table);
}
