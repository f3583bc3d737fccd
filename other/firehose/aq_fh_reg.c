/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_reg.c - registration of memory of this process, and eviction to make space for it.
 *
 * Victims    regions without holds and references, in the order in which they were made; a region
 *            that was used since it was last at the head goes round once
 * Budget     a region that is to be deregistered counts until it is, so that no space is used twice
 * Threads    as aq_fh_internal.h says of each function; operations run without a lock
 * Uses       aq_fh_internal.h
 */
#include "other/firehose/aq_fh_internal.h"

static bool aq_fh_is_idle(const struct aq_fh_region *region)
{
    return region->state == AQ_FH_READY && region->holds == 0 && region->peer_refs == NULL;
}

void aq_fh_pending_add(struct aq_fh *fh, struct aq_fh_region *region, struct aq_fh_pending *pending)
{
    if (region->state == AQ_FH_READY)
        aq_fh_index_remove(&fh->index, region);
    region->state = AQ_FH_FREE;
    aq_fh_list_remove(region);
    aq_fh_list_append(&pending->list, region);
    pending->charge += region->charge;
    pending->regions += region->charge != 0;
}

/* The oldest victim, or NULL. Two rounds at most: the first may find all of them used. */
static struct aq_fh_region *aq_fh_victim(struct aq_fh *fh)
{
    uint32_t scans = fh->charged_regions * 2;

    for (struct aq_fh_region *region = fh->order.first; region != NULL && scans-- > 0;
         region = fh->order.first) {
        if (aq_fh_is_idle(region) && !region->used)
            return region;
        if (region->holds == 0)
            region->used = false;
        aq_fh_list_remove(region);
        aq_fh_list_append(&fh->order, region);
    }
    return NULL;
}

bool aq_fh_make_space(struct aq_fh *fh, uint64_t size, struct aq_fh_pending *pending)
{
    while (fh->charged - pending->charge + size > fh->config.local_bytes
           || fh->charged_regions - pending->regions + 1 > fh->config.local_regions) {
        struct aq_fh_region *victim = size > fh->config.local_bytes ? NULL : aq_fh_victim(fh);

        if (victim == NULL)
            return false;
        aq_fh_pending_add(fh, victim, pending);
    }
    return true;
}

bool aq_fh_charge(struct aq_fh *fh, struct aq_fh_region *region, struct aq_fh_pending *pending)
{
    const uint64_t size = aq_fh_size(region);
    uint64_t paid;

    if (!aq_fh_make_space(fh, size, pending))
        return false;
    paid = size < pending->charge ? size : pending->charge;
    fh->charged += size - paid;
    pending->charge -= paid;
    if (pending->regions != 0)
        pending->regions--;
    else
        fh->charged_regions++;
    region->charge = size;
    return true;
}

void aq_fh_charge_back(struct aq_fh_region *region, struct aq_fh_pending *pending)
{
    pending->charge += region->charge;
    pending->regions++;
    region->charge = 0;
}

void aq_fh_uncharge(struct aq_fh *fh, struct aq_fh_region *region)
{
    if (region->charge == 0)
        return;
    fh->charged -= region->charge;
    fh->charged_regions--;
    region->charge = 0;
}

static void aq_fh_dereg(struct aq_fh *fh, const struct aq_fh_reg *reg, uint64_t size)
{
    fh->ops.dereg(fh->arg, reg);
    aq_lock_acquire(&fh->lock);
    fh->counts.deregs++;
    fh->counts.reg_regions--;
    fh->counts.reg_bytes -= size;
    aq_lock_release(&fh->lock);
}

void aq_fh_dereg_pending(struct aq_fh *fh, struct aq_fh_pending *pending)
{
    struct aq_fh_region *region;

    if (pending->list.first == NULL && pending->regions == 0)
        return;
    while ((region = aq_fh_list_pop(&pending->list)) != NULL) {
        aq_fh_dereg(fh, &region->reg, aq_fh_size(region));
        aq_fh_region_destroy(region);
    }
    aq_lock_acquire(&fh->lock);
    fh->charged -= pending->charge;
    fh->charged_regions -= pending->regions;
    aq_lock_release(&fh->lock);
    *pending = (struct aq_fh_pending){ .charge = 0 };
}

/* --- making a region --- */

struct aq_fh_try {
    uintptr_t start, end;
    bool write, once;
    struct aq_fh_reg reg;
};

/* exact: if it cannot be monitored, it is for one use; if there is more in it than was asked for,
 * that is not worth it */
static int aq_fh_try_reg(struct aq_fh *fh, struct aq_fh_try *try, bool exact)
{
    struct aq_fh_memmon *memmon = fh->head.memmon;

    try->once = memmon != NULL && memmon->cover(memmon, try->start, try->end - try->start) != AQ_OK;
    if (try->once && !exact)
        return AQ_ERR_RESOURCE;
    return fh->ops.reg(fh->arg, try->start, try->end - try->start, try->write, &try->reg);
}

/* The best that can be had: more pages before fewer, but writable before all, since a put or get
 * may follow. */
static int aq_fh_try_all(struct aq_fh *fh, const struct aq_fh_plan *plan, bool write,
                         struct aq_fh_try *try)
{
    const bool more = plan->want_start != plan->start || plan->want_end != plan->end;
    int rc = AQ_ERR_RESOURCE;

    for (int writable = 1; writable >= (write ? 1 : 0); writable--)
        for (int large = more ? 1 : 0; large >= 0; large--) {
            try->start = large ? plan->want_start : plan->start;
            try->end = large ? plan->want_end : plan->end;
            try->write = writable != 0;
            rc = aq_fh_try_reg(fh, try, !large);
            if (rc == AQ_OK)
                return AQ_OK;
        }
    return rc;
}

/* The device or the kernel has no space for more: evict every victim. False: there was none. */
static bool aq_fh_drop_idle(struct aq_fh *fh)
{
    struct aq_fh_pending pending = { .charge = 0 };
    struct aq_fh_region *next;
    bool any;

    aq_lock_acquire(&fh->lock);
    for (struct aq_fh_region *region = fh->order.first; region != NULL; region = next) {
        next = region->next;
        if (aq_fh_is_idle(region))
            aq_fh_pending_add(fh, region, &pending);
    }
    any = pending.list.first != NULL;
    aq_lock_release(&fh->lock);
    aq_fh_dereg_pending(fh, &pending);
    return any;
}

/* Local lock: a region that did not come to be. */
static void aq_fh_unmake(struct aq_fh *fh, struct aq_fh_region *region)
{
    if (region->state == AQ_FH_MAKING)
        aq_fh_index_remove(&fh->index, region);
    aq_fh_list_remove(region);
    aq_fh_uncharge(fh, region);
    aq_fh_region_destroy(region);
}

/* Local lock: it may be smaller than was planned. False: its memory was unmapped, or none is left
 * for the index. */
static bool aq_fh_made(struct aq_fh *fh, struct aq_fh_region *region, const struct aq_fh_try *try)
{
    fh->counts.regs++;
    fh->counts.reg_regions++;
    fh->counts.reg_bytes += try->end - try->start;
    if (region->state == AQ_FH_STALE)
        return false;
    if (!aq_fh_index_resize(&fh->index, region, try->start, try->end)) {
        region->state = AQ_FH_STALE;
        return false;
    }
    if (region->charge != 0) {
        fh->charged -= region->charge - aq_fh_size(region);
        region->charge = aq_fh_size(region);
    }
    region->reg = try->reg;
    region->write = try->write;
    region->state = AQ_FH_READY;
    if (try->once) {
        aq_fh_index_remove(&fh->index, region);
        aq_fh_list_remove(region);
        aq_fh_list_append(&fh->stale, region);
        region->state = AQ_FH_STALE;
    }
    return true;
}

int aq_fh_reg_region(struct aq_fh *fh, struct aq_fh_region *region, const struct aq_fh_plan *plan,
                     bool write)
{
    struct aq_fh_try try;
    int rc = aq_fh_try_all(fh, plan, write, &try);

    if (rc == AQ_ERR_NOMEM && aq_fh_drop_idle(fh))
        rc = aq_fh_try_all(fh, plan, write, &try);
    aq_lock_acquire(&fh->lock);
    if (rc == AQ_OK && aq_fh_made(fh, region, &try))
        return AQ_OK;
    if (rc == AQ_OK) {
        /* it counts until it is deregistered: keep the charge meanwhile */
        aq_lock_release(&fh->lock);
        aq_fh_dereg(fh, &try.reg, try.end - try.start);
        aq_lock_acquire(&fh->lock);
        rc = AQ_RETRY;
    } else {
        fh->counts.reg_failures++;
    }
    aq_fh_unmake(fh, region);
    aq_lock_release(&fh->lock);
    return rc;
}
