/*
 * aq_ibv_xfer_state.c - transfers that wait, and those of the past, which are used again.
 *
 * Owns      the lists; memory of transfers, for good
 * Threads   any; lists under their locks
 * Uses      aq_ibv_xfer_state.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_xfer_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"

#define AQ_XFER_PARKED_MAX 1024u /* transfers that may wait before clients do */

/* Those that wait. Long messages' are apart: they need no messages of others, so handlers' polls
 * feed them too, since a handler may wait for the source of its reply. */
static struct {
    aq_lock lock;
    struct aq_ibv_xfer *first, **last;
} aq_parked[2] = { { .last = &aq_parked[0].first }, { .last = &aq_parked[1].first } };

atomic_uint aq_ibv_xfers_parked[2];

/* Those of the past, to be used again. */
static struct {
    aq_lock lock;
    struct aq_ibv_xfer *free;
} aq_xfers;

struct aq_ibv_xfer *aq_ibv_xfer_take(const struct aq_ibv_wanted *wanted)
{
    struct aq_ibv_xfer *x;

    aq_lock_acquire(&aq_xfers.lock);
    x = aq_xfers.free;
    if (AQ_LIKELY(x != NULL))
        aq_xfers.free = x->next;
    aq_lock_release(&aq_xfers.lock);
    if (AQ_UNLIKELY(x == NULL) && (x = malloc(sizeof(*x))) == NULL)
        aq_fatal("ibv: no memory for a transfer of %zu bytes with rank %u", wanted->nbytes,
                 wanted->rank);
    memset(x, 0, offsetof(struct aq_ibv_xfer, follow));
    return x;
}

void aq_ibv_xfer_give(struct aq_ibv_xfer *x)
{
    if (x->copy != NULL)
        aq_ibv_bounce_give(x->copy);
    aq_lock_acquire(&aq_xfers.lock);
    x->next = aq_xfers.free;
    aq_xfers.free = x;
    aq_lock_release(&aq_xfers.lock);
}

/* --- parked --- */

void aq_ibv_xfer_park(struct aq_ibv_xfer *x)
{
    const unsigned which = x->is_long;

    x->next = NULL;
    aq_lock_acquire(&aq_parked[which].lock);
    *aq_parked[which].last = x;
    aq_parked[which].last = &x->next;
    /* relaxed: a hint, written under the lock; what it counts is under the lock too */
    atomic_store_explicit(&aq_ibv_xfers_parked[which],
                          atomic_load_explicit(&aq_ibv_xfers_parked[which], memory_order_relaxed)
                              + 1,
                          memory_order_relaxed);
    aq_lock_release(&aq_parked[which].lock);
}

bool aq_ibv_xfer_crowded(void)
{
    return aq_ibv_xfer_parked(false) + aq_ibv_xfer_parked(true) >= AQ_XFER_PARKED_MAX;
}

struct aq_ibv_xfer *aq_ibv_xfer_unpark(bool longs)
{
    struct aq_ibv_xfer *x;

    aq_lock_acquire(&aq_parked[longs].lock);
    x = aq_parked[longs].first;
    aq_parked[longs].first = NULL;
    aq_parked[longs].last = &aq_parked[longs].first;
    atomic_store_explicit(&aq_ibv_xfers_parked[longs], 0,
                          memory_order_relaxed); /* see aq_ibv_xfer_park() */
    aq_lock_release(&aq_parked[longs].lock);
    return x;
}
