/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_recall.c - unmapped memory: no new transfer uses its registrations, neither local ones
 * nor those of peers.
 *
 * Local      regions that overlap it become STALE at once: no lookup finds them. They are
 *            deregistered when the last hold ends
 * Peers      each peer with a reference to such a region gets a recall, forgets the region, and
 *            answers at once (noted). When its own transfers are over it gives the region up, like
 *            others, by a release or with the next move. The rank is not quiet until all recalls
 *            are noted. A recall waits for nothing but the peer's attention. Only the next messages
 *            of this rank wait for a recall; moves do not
 * Threads    any; one lock at a time
 * Uses       aq_fh_internal.h, aq_fh_wire.h
 */
#include "other/firehose/aq_fh_internal.h"

#include <string.h>

#include "other/firehose/aq_fh_wire.h"

/* Local lock. */
static void aq_fh_recalls_add(struct aq_fh *fh, int n)
{
    const unsigned recalls = atomic_load_explicit(&fh->head.recalls, memory_order_relaxed);

    /* release: pairs with aq_fh_is_quiet() */
    atomic_store_explicit(&fh->head.recalls, recalls + (unsigned)n, memory_order_release);
}

static void aq_fh_recall_queue(struct aq_fh *fh, struct aq_fh_ref *ref)
{
    ref->recall = AQ_FH_RECALL_WANTED;
    ref->peer->recalls_wanted++;
    aq_fh_recalls_add(fh, 1);
    aq_fh_set_pending(ref->peer);
}

void aq_fh_recall_forget(struct aq_fh *fh, struct aq_fh_ref *ref)
{
    if (ref->recall != AQ_FH_RECALL_WANTED)
        return; /* if it was sent, the answer will come */
    ref->peer->recalls_wanted--;
    aq_fh_recalls_add(fh, -1);
}

void aq_fh_recall_give_up(struct aq_fh_peer *peer)
{
    aq_fh_recalls_add(peer->fh, -(int)peer->recalls_sent);
    peer->recalls_sent = 0;
}

/* --- here --- */

static bool aq_fh_touches(const struct aq_fh_region *region, uintptr_t addr, size_t nbytes)
{
    return region->start <= addr + (nbytes - 1) && region->end > addr;
}

/* Local lock: a MAKING or READY region. */
static void aq_fh_local_stale(struct aq_fh *fh, struct aq_fh_region *region,
                              struct aq_fh_pending *pending)
{
    const bool made = region->state == AQ_FH_READY;

    fh->counts.stale++;
    if (made && region->holds == 0 && region->peer_refs == NULL) {
        aq_fh_pending_add(fh, region, pending);
        return;
    }
    aq_fh_index_remove(&fh->index, region);
    region->state = AQ_FH_STALE; /* if it is being made, its maker will find it so */
    aq_fh_list_remove(region);
    aq_fh_list_append(&fh->stale, region);
    for (struct aq_fh_ref *ref = region->peer_refs; ref != NULL; ref = ref->next)
        aq_fh_recall_queue(fh, ref);
}

static void aq_fh_stale_in_list(struct aq_fh *fh, struct aq_fh_list *list, uintptr_t addr,
                                size_t nbytes, struct aq_fh_pending *pending)
{
    for (struct aq_fh_region *region = list->first, *next; region != NULL; region = next) {
        next = region->next;
        if (aq_fh_touches(region, addr, nbytes))
            aq_fh_local_stale(fh, region, pending);
    }
}

static void aq_fh_stale_in_granule(struct aq_fh *fh, uintptr_t granule, uintptr_t addr,
                                   size_t nbytes, struct aq_fh_pending *pending)
{
    for (struct aq_fh_node *node = aq_fh_index_chain(&fh->index, granule); node != NULL;) {
        if (node->granule == granule && aq_fh_touches(node->region, addr, nbytes)) {
            aq_fh_local_stale(fh, node->region, pending);
            node = aq_fh_index_chain(&fh->index, granule); /* the chain has changed */
        } else {
            node = node->next;
        }
    }
}

void aq_fh_invalidate(struct aq_fh *fh, uintptr_t addr, size_t nbytes)
{
    struct aq_fh_pending pending = { .charge = 0 };
    uintptr_t first, last;

    if (nbytes == 0)
        return;
    if (nbytes - 1 > UINTPTR_MAX - addr)
        nbytes = UINTPTR_MAX - addr + 1;
    first = addr >> AQ_FH_GRANULE_SHIFT;
    last = (addr + (nbytes - 1)) >> AQ_FH_GRANULE_SHIFT;
    aq_lock_acquire(&fh->lock);
    if (last - first > fh->index.nodes) {
        aq_fh_stale_in_list(fh, &fh->order, addr, nbytes, &pending);
        aq_fh_stale_in_list(fh, &fh->referenced, addr, nbytes, &pending);
    } else {
        for (uintptr_t granule = first; granule <= last; granule++)
            aq_fh_stale_in_granule(fh, granule, addr, nbytes, &pending);
    }
    aq_lock_release(&fh->lock);
    aq_fh_dereg_pending(fh, &pending);
}

/* --- recalls that we send --- */

struct aq_fh_recall_message {
    struct aq_fh_wire_recall wire;
    uint32_t id[(AQ_FH_MESSAGE - sizeof(struct aq_fh_wire_recall)) / sizeof(uint32_t)];
};

static void aq_fh_recall_collect(struct aq_fh_peer *peer, struct aq_fh_recall_message *message)
{
    struct aq_fh *fh = peer->fh;
    const uint32_t max =
        (uint32_t)((fh->config.message - sizeof(message->wire)) / sizeof(uint32_t));

    aq_lock_acquire(&fh->lock);
    for (uint32_t slot = 0;
         slot < peer->ref_slots && message->wire.count < max && peer->recalls_wanted != 0; slot++) {
        struct aq_fh_ref *ref = peer->ref[slot];

        if (ref == NULL || ref->recall != AQ_FH_RECALL_WANTED)
            continue;
        ref->recall = AQ_FH_RECALL_SENT;
        peer->recalls_wanted--;
        peer->recalls_sent++;
        message->id[message->wire.count++] = ref->id;
    }
    fh->counts.recalls += message->wire.count != 0;
    if (peer->recalls_wanted != 0)
        aq_fh_set_pending(peer);
    aq_lock_release(&fh->lock);
}

/* It was not sent. What was dropped meanwhile needs no recall any more; if the peer has left,
 * nothing does. */
static void aq_fh_recall_undo(struct aq_fh_peer *peer, const struct aq_fh_recall_message *message)
{
    struct aq_fh *fh = peer->fh;

    aq_lock_acquire(&fh->lock);
    fh->counts.recalls--;
    if (aq_fh_is_disconnected(peer)) {
        aq_lock_release(&fh->lock);
        return;
    }
    peer->recalls_sent -= message->wire.count;
    for (uint32_t i = 0; i < message->wire.count; i++) {
        struct aq_fh_ref *ref = aq_fh_ref_look(peer, message->id[i]);

        if (ref != NULL && ref->recall == AQ_FH_RECALL_SENT) {
            ref->recall = AQ_FH_RECALL_WANTED;
            peer->recalls_wanted++;
        } else {
            aq_fh_recalls_add(fh, -1);
        }
    }
    aq_lock_release(&fh->lock);
}

static int aq_fh_recall_send(struct aq_fh_peer *peer)
{
    struct aq_fh_recall_message message = { .wire = { .kind = AQ_FH_RECALL } };
    struct aq_fh *fh = peer->fh;

    aq_fh_recall_collect(peer, &message);
    if (message.wire.count == 0
        || fh->ops.send_request(fh->arg, peer->rank, &message,
                                sizeof(message.wire) + message.wire.count * sizeof(uint32_t))
               == AQ_OK)
        return AQ_OK;
    aq_fh_recall_undo(peer, &message);
    return AQ_RETRY;
}

void aq_fh_recall_noted(struct aq_fh_peer *peer, const void *msg, size_t nbytes)
{
    struct aq_fh *fh = peer->fh;
    struct aq_fh_wire_recall wire;

    if (nbytes != sizeof(wire)) {
        aq_fh_bad(peer, "an answer to a recall of a form that does not exist");
        return;
    }
    memcpy(&wire, msg, sizeof(wire));
    aq_lock_acquire(&fh->lock);
    if (wire.count > peer->recalls_sent)
        wire.count = peer->recalls_sent;
    peer->recalls_sent -= wire.count;
    aq_fh_recalls_add(fh, -(int)wire.count);
    aq_lock_release(&fh->lock);
}

/* --- recalls that we get --- */

size_t aq_fh_recall_serve(struct aq_fh_peer *peer, const void *msg, size_t nbytes, void *answer)
{
    struct aq_fh_wire_recall wire;

    if (nbytes < sizeof(wire))
        return aq_fh_bad(peer, "a recall of a form that does not exist");
    memcpy(&wire, msg, sizeof(wire));
    if (nbytes != sizeof(wire) + wire.count * sizeof(uint32_t))
        return aq_fh_bad(peer, "a recall of a form that does not exist");
    aq_lock_acquire(&peer->lock);
    for (uint32_t i = 0; i < wire.count; i++) {
        struct aq_fh_region *region;
        uint32_t id;

        memcpy(&id, (const uint8_t *)msg + sizeof(wire) + i * sizeof(id), sizeof(id));
        region = aq_fh_slot_region(peer, id);
        if (region == NULL) /* given up: the recall was late */
            continue;
        if (region->leaving)
            region->state = AQ_FH_STALE;
        else if (region->state == AQ_FH_MAKING)
            region->recalled = true;
        else if (region->state == AQ_FH_READY)
            aq_fh_remote_stale(peer, region);
    }
    aq_lock_release(&peer->lock);
    memcpy(answer, &wire, sizeof(wire));
    return sizeof(wire);
}

/* --- progress --- */

void aq_fh_progress(struct aq_fh *fh)
{
    struct aq_fh_peer *peer;

#if AQ_THREADED
    /* acq_rel: after another thread's aq_fh_set_pending(), and then its `wants` is seen, or before,
     * and then `work` stays set */
    (void)atomic_exchange_explicit(&fh->head.work, 0, memory_order_acq_rel);
#else
    atomic_store_explicit(&fh->head.work, 0, memory_order_relaxed); /* one thread */
#endif
    /* acquire: pairs with aq_fh_peer_get() */
    for (peer = atomic_load_explicit(&fh->peers, memory_order_acquire); peer != NULL;
         peer = peer->next) {
        if (!atomic_load_explicit(&peer->send_pending,
                                  memory_order_relaxed)) /* relaxed: see aq_fh_set_pending() */
            continue;
        atomic_store_explicit(&peer->send_pending, false, memory_order_relaxed);
        if (aq_fh_is_disconnected(peer)) /* and what waits to be given up there is freed */
            continue;
        if (aq_fh_recall_send(peer) != AQ_OK || aq_fh_release_send(peer) != AQ_OK)
            aq_fh_set_pending(peer);
    }
}
