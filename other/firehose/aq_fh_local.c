/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_local.c - holds of this process's own memory, for its own transfers.
 *
 * A region that peers have references to serves own transfers too, and counts against the local
 * budget while it does.
 *
 * Threads   any; a thread that needs a region which another thread is registering gets AQ_RETRY
 * Uses      aq_fh_internal.h
 */
#include "other/firehose/aq_fh_internal.h"

/* Beside enum aq_rc, in this file only: look the address up again. */
#define AQ_FH_LOOK_AGAIN 100

static void aq_fh_hold_fill(struct aq_fh_hold *hold, struct aq_fh_region *region, uintptr_t addr,
                            size_t nbytes)
{
    const size_t space = region->end - addr;

    region->holds++;
    region->used = true;
    *hold = (struct aq_fh_hold){
        .addr = addr, .len = nbytes < space ? nbytes : space, .reg = &region->reg, .region = region
    };
}

/* A neighbour becomes part of the new region. */
static void aq_fh_local_merge(struct aq_fh *fh, struct aq_fh_region *neighbour,
                              struct aq_fh_pending *pending)
{
    if (neighbour != NULL)
        aq_fh_pending_add(fh, neighbour, pending);
}

/* Local lock: a region as planned, or less, that is charged and in the index; NULL: *rc_out says
 * why. */
static struct aq_fh_region *aq_fh_local_make(struct aq_fh *fh, struct aq_fh_plan *plan,
                                             struct aq_fh_pending *pending, int *rc_out)
{
    struct aq_fh_region *region;

    if (plan->want_end - plan->want_start > fh->local_chunk)
        aq_fh_plan_cut(plan, fh->local_chunk);
    aq_fh_local_merge(fh, plan->below, pending);
    aq_fh_local_merge(fh, plan->above, pending);
    *rc_out = AQ_ERR_NOMEM;
    region = aq_fh_region_create(NULL, plan->want_start, plan->want_end);
    if (region == NULL)
        return NULL;
    if (!aq_fh_charge(fh, region, pending)) {
        aq_fh_plan_cut(plan, fh->local_chunk);
        region->start = plan->start;
        region->end = plan->end;
        if (!aq_fh_charge(fh, region, pending)) {
            *rc_out = AQ_RETRY;
            aq_fh_region_destroy(region);
            return NULL;
        }
    }
    if (!aq_fh_index_insert(&fh->index, region)) {
        aq_fh_charge_back(region, pending);
        aq_fh_region_destroy(region);
        return NULL;
    }
    aq_fh_list_append(&fh->order, region);
    region->holds = 1;
    return region;
}

/* Local lock, which it releases. */
static int aq_fh_local_miss(struct aq_fh *fh, uintptr_t addr, size_t nbytes, bool write,
                            struct aq_fh_hold *hold_out)
{
    struct aq_fh_pending pending = { .charge = 0 };
    struct aq_fh_region *region;
    struct aq_fh_plan plan;
    int rc;

    if (aq_fh_index_find(&fh->index, addr, write, AQ_FH_MAKING) != NULL) {
        aq_lock_release(&fh->lock);
        return AQ_RETRY;
    }
    fh->counts.local_misses++;
    plan = aq_fh_plan_make(&fh->index, addr, nbytes, write, fh->local_region, fh->local_chunk);
    region = aq_fh_local_make(fh, &plan, &pending, &rc);
    aq_lock_release(&fh->lock);
    aq_fh_dereg_pending(fh, &pending);
    if (region == NULL)
        return rc;
    rc = aq_fh_reg_region(fh, region, &plan, write);
    if (rc != AQ_OK)
        return rc;
    region->holds--; /* the maker's */
    aq_fh_hold_fill(hold_out, region, addr, nbytes);
    aq_lock_release(&fh->lock);
    return AQ_OK;
}

/* Local lock, which the call releases: an own transfer starts to use a region with references. The
 * region is registered, and its peers may give it up for something else at any time: so victims are
 * deregistered before the region is charged in their place, and the address is looked up again.
 * AQ_OK; AQ_FH_LOOK_AGAIN; AQ_RETRY: transfers use the budget; AQ_ERR_RESOURCE: the region is
 * larger than the local budget, as a region of a peer's quota may be. */
static int aq_fh_local_share(struct aq_fh *fh, struct aq_fh_region *region, uintptr_t addr,
                             size_t nbytes, struct aq_fh_hold *hold_out)
{
    struct aq_fh_pending pending = { .charge = 0 };
    int rc = AQ_ERR_RESOURCE;

    if (aq_fh_size(region) <= fh->config.local_bytes)
        rc = aq_fh_make_space(fh, aq_fh_size(region), &pending) ? AQ_FH_LOOK_AGAIN : AQ_RETRY;
    if (rc == AQ_FH_LOOK_AGAIN && pending.list.first == NULL
        && aq_fh_charge(fh, region, &pending)) {
        fh->counts.local_hits++;
        aq_fh_hold_fill(hold_out, region, addr, nbytes);
        rc = AQ_OK;
    }
    aq_lock_release(&fh->lock);
    aq_fh_dereg_pending(fh, &pending);
    return rc;
}

int aq_fh_local_chunk(struct aq_fh *fh, uintptr_t addr, size_t nbytes, size_t chunk, bool write,
                      struct aq_fh_hold *hold_out)
{
    struct aq_fh_region *region;

    aq_fh_settle(fh);
    for (;;) {
        int rc;

        aq_lock_acquire(&fh->lock);
        region = aq_fh_index_find(&fh->index, addr, write, AQ_FH_READY);
        if (AQ_UNLIKELY(region == NULL))
            return aq_fh_local_miss(fh, addr, nbytes < chunk ? nbytes : chunk, write, hold_out);
        if (AQ_LIKELY(region->charge != 0))
            break;
        rc = aq_fh_local_share(fh, region, addr, nbytes, hold_out);
        if (rc != AQ_FH_LOOK_AGAIN)
            return rc;
    }
    fh->counts.local_hits++;
    aq_fh_hold_fill(hold_out, region, addr, nbytes);
    aq_lock_release(&fh->lock);
    return AQ_OK;
}

int aq_fh_local(struct aq_fh *fh, uintptr_t addr, size_t nbytes, bool write,
                struct aq_fh_hold *hold_out)
{
    return aq_fh_local_chunk(fh, addr, nbytes, nbytes, write, hold_out);
}

/* Local lock: the last hold has ended. */
static void aq_fh_local_idle(struct aq_fh *fh, struct aq_fh_region *region,
                             struct aq_fh_pending *pending)
{
    if (region->peer_refs != NULL)
        aq_fh_uncharge(fh, region); /* it counts against the quotas of its references */
    else if (region->state == AQ_FH_STALE)
        aq_fh_pending_add(fh, region, pending);
}

static void aq_fh_remote_idle(struct aq_fh_region *region)
{
    struct aq_fh_peer *peer = region->peer;

    if (region->state == AQ_FH_READY)
        return;
    aq_fh_list_remove(region);
    aq_fh_list_append(&peer->leaving, region);
    aq_fh_set_pending(peer);
}

void aq_fh_release(struct aq_fh *fh, struct aq_fh_hold *hold)
{
    struct aq_fh_region *region = hold->region;
    struct aq_fh_peer *peer = region->peer;

    hold->region = NULL;
    if (peer != NULL) {
        aq_lock_acquire(&peer->lock);
        if (--region->holds == 0)
            aq_fh_remote_idle(region);
        aq_lock_release(&peer->lock);
    } else {
        struct aq_fh_pending pending = { .charge = 0 };

        aq_lock_acquire(&fh->lock);
        if (--region->holds == 0)
            aq_fh_local_idle(fh, region, &pending);
        aq_lock_release(&fh->lock);
        aq_fh_dereg_pending(fh, &pending);
    }
}
