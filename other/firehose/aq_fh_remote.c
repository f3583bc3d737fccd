/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_remote.c - the initiator's side: regions of peers that this rank has references to; hits.
 *
 * Owns      one struct aq_fh_peer for each rank that was contacted, made at the first contact
 * Threads   any; the peer's lock
 * Uses      aq_fh_internal.h
 */
#include "other/firehose/aq_fh_internal.h"

#include <stdlib.h>

#include "base/aq_log.h"

static void aq_fh_peer_destroy(struct aq_fh_peer *peer)
{
    aq_fh_index_close(&peer->index);
    free(peer->slot);
    free(peer->ref);
    free(peer);
}

struct aq_fh_peer *aq_fh_peer_get(struct aq_fh *fh, uint32_t rank)
{
    struct aq_fh_peer *peer = aq_fh_peer_look(fh, rank), *other = NULL;

    if (AQ_LIKELY(peer != NULL))
        return peer;
    peer = aligned_alloc(AQ_CACHE_LINE, aq_round_up(sizeof(*peer), AQ_CACHE_LINE));
    if (peer != NULL)
        *peer = (struct aq_fh_peer){ .fh = fh, .rank = rank };
    if (peer == NULL || !aq_fh_index_open(&peer->index)) {
        free(peer);
        aq_warn("firehose: no memory for the regions of rank %u", rank);
        return NULL;
    }
    /* release: pairs with aq_fh_peer_look(); another thread may have been faster */
    if (!atomic_compare_exchange_strong_explicit(&fh->peer[rank], &other, peer,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        aq_fh_peer_destroy(peer);
        return other;
    }
    /* release: pairs with the acquire of those who walk the list */
    peer->next = atomic_load_explicit(&fh->peers, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&fh->peers, &peer->next, peer,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    /* Another thread may have found the peer before it was in the list, wanted something of it, and
     * had its work taken away by a walk that did not meet the peer. release: who takes this work
     * finds the peer in the list */
    atomic_store_explicit(&fh->head.work, 1, memory_order_release);
    return peer;
}

void aq_fh_peer_close(struct aq_fh_peer *peer)
{
    for (uint32_t slot = 0; slot < peer->slots; slot++)
        if (peer->slot[slot] != NULL)
            aq_fh_region_destroy(peer->slot[slot]);
    for (uint32_t slot = 0; slot < peer->ref_slots; slot++)
        free(peer->ref[slot]);
    aq_fh_peer_destroy(peer);
}

struct aq_fh_region *aq_fh_slot_region(const struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;
    struct aq_fh_region *region = slot < peer->slots ? peer->slot[slot] : NULL;

    return region != NULL && region->id == id ? region : NULL;
}

void aq_fh_remote_stale(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    aq_fh_index_remove(&peer->index, region);
    aq_fh_list_remove(region);
    region->state = AQ_FH_STALE;
    if (region->holds != 0) {
        aq_fh_list_append(&peer->stale, region);
        return;
    }
    aq_fh_list_append(&peer->leaving, region);
    aq_fh_set_pending(peer);
}

bool aq_fh_request_hold(struct aq_fh_request *request, struct aq_fh_region *region)
{
    const uintptr_t addr = request->addr + request->carried;
    const size_t nbytes = request->nbytes - request->carried, space = region->end - addr;

    request->hold.region = NULL;
    if (nbytes == 0)
        return true;
    if (addr - region->start >= region->end - region->start)
        return false;
    region->holds++;
    region->used = true;
    request->hold = (struct aq_fh_hold){
        .addr = addr, .len = nbytes < space ? nbytes : space, .reg = &region->reg, .region = region
    };
    return true;
}

/* Called with the peer's lock, which the function releases. No registered region covers the
 * request: it joins a move under way, or starts one. */
static __attribute__((noinline)) int aq_fh_remote_slow(struct aq_fh_peer *peer,
                                                       struct aq_fh_request *request)
{
    struct aq_fh_region *region =
        aq_fh_index_find(&peer->index, request->addr, request->write, AQ_FH_MAKING);

    request->next = NULL;
    if (region == NULL)
        return aq_fh_miss(peer, request);
    peer->waits++;
    *region->requests_end = request;
    region->requests_end = &request->next;
    aq_lock_release(&peer->lock);
    return AQ_PENDING;
}

int aq_fh_remote(struct aq_fh *fh, struct aq_fh_request *request)
{
    struct aq_fh_peer *peer = aq_fh_peer_get(fh, request->peer);
    struct aq_fh_region *region;

    if (AQ_UNLIKELY(peer == NULL))
        return AQ_ERR_NOMEM;
    if (AQ_UNLIKELY(fh->quota == 0))
        return AQ_ERR_RESOURCE;
    request->carried = 0;
    aq_lock_acquire(&peer->lock);
    region = aq_fh_index_find(&peer->index, request->addr, request->write, AQ_FH_READY);
    if (AQ_UNLIKELY(region == NULL))
        return aq_fh_remote_slow(peer, request);
    peer->hits++;
    aq_fh_request_hold(request, region);
    aq_lock_release(&peer->lock);
    return AQ_OK;
}
