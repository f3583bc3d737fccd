/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_ref.c - the target's side: references of peers to regions of this rank, each peer within
 * its quota.
 *
 * Owns      the references: one for each region that a peer may transfer to, by the peer's number
 *           for it. A region may have references of several peers, and counts against the quota of
 *           each
 * Promise   a move is served without waiting: what the message gives up goes first, the quota that
 *           it uses belongs to no other peer, and victims are evicted at once
 * Threads   any; the local lock
 * Uses      aq_fh_internal.h, aq_fh_wire.h
 */
#include "other/firehose/aq_fh_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_word.h"
#include "other/firehose/aq_fh_wire.h"

size_t aq_fh_bad(const struct aq_fh_peer *peer, const char *what)
{
    static atomic_bool said;

    if (aq_fh_is_disconnected(peer)) /* what it gives up was taken from it meanwhile */
        return 0;
    if (!atomic_exchange_explicit(
            &said, true, memory_order_relaxed)) /* relaxed: says only whether it was said */
        aq_warn("firehose: rank %u sent %s; are all ranks of the same version?", peer->rank, what);
    return 0;
}

struct aq_fh_ref *aq_fh_ref_look(const struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;
    struct aq_fh_ref *ref = slot < peer->ref_slots ? peer->ref[slot] : NULL;

    return ref != NULL && ref->id == id ? ref : NULL;
}

/* Local lock. seq_cst: ordered with the check of the memory monitor in aq_fh_move_recheck() */
static void aq_fh_peer_refs_add(struct aq_fh *fh, int n)
{
    const unsigned peer_refs = atomic_load_explicit(&fh->head.peer_refs, memory_order_relaxed);

    atomic_store_explicit(&fh->head.peer_refs, peer_refs + (unsigned)n, memory_order_seq_cst);
}

/* May a new reference of the peer have this id? */
static bool aq_fh_ref_is_free(const struct aq_fh *fh, const struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;

    return slot < fh->quota_slots && (slot >= peer->ref_slots || peer->ref[slot] == NULL);
}

/* A record for a new reference whose id is free, not linked yet; NULL: no memory. */
static struct aq_fh_ref *aq_fh_ref_create(struct aq_fh *fh, struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;
    struct aq_fh_ref *ref;

    if (slot >= peer->ref_slots) {
        const uint32_t twice = slot * 2 + 16,
                       slots = twice < fh->quota_slots ? twice : fh->quota_slots;
        struct aq_fh_ref **grown = realloc(peer->ref, slots * sizeof(struct aq_fh_ref *));

        if (grown == NULL)
            return NULL;
        memset(grown + peer->ref_slots, 0, (slots - peer->ref_slots) * sizeof(struct aq_fh_ref *));
        peer->ref = grown;
        peer->ref_slots = slots;
    }
    ref = calloc(1, sizeof(*ref));
    if (ref != NULL) {
        ref->peer = peer;
        ref->id = id;
        peer->ref[slot] = ref;
        aq_fh_peer_refs_add(fh, 1);
    }
    return ref;
}

static void aq_fh_ref_destroy(struct aq_fh_ref *ref)
{
    aq_fh_peer_refs_add(ref->peer->fh, -1);
    ref->peer->ref[ref->id % AQ_FH_SLOTS_MAX] = NULL;
    free(ref);
}

static void aq_fh_ref_link(struct aq_fh *fh, struct aq_fh_ref *ref, struct aq_fh_region *region)
{
    ref->region = region;
    ref->linked = true;
    ref->prev = NULL;
    ref->next = region->peer_refs;
    if (region->peer_refs != NULL)
        region->peer_refs->prev = ref;
    region->peer_refs = ref;
    if (region->state == AQ_FH_READY) {
        aq_fh_list_remove(region);
        aq_fh_list_append(&fh->referenced, region);
    }
    if (region->holds == 0)
        aq_fh_uncharge(fh, region);
    fh->counts.remote_charged += aq_fh_size(region);
}

/* The region has no references any more: it stays as a victim if keep is set and there is space. */
static void aq_fh_retire(struct aq_fh *fh, struct aq_fh_region *region, bool keep,
                         struct aq_fh_pending *pending)
{
    if (region->state == AQ_FH_STALE) {
        if (region->holds == 0)
            aq_fh_pending_add(fh, region, pending);
        return;
    }
    if (region->holds == 0 && (!keep || !aq_fh_charge(fh, region, pending))) {
        aq_fh_pending_add(fh, region, pending);
        return;
    }
    aq_fh_list_remove(region);
    aq_fh_list_append(&fh->order, region);
}

/* The peer gives the reference up. */
static void aq_fh_ref_drop(struct aq_fh *fh, struct aq_fh_ref *ref, bool keep,
                           struct aq_fh_pending *pending)
{
    struct aq_fh_region *region = ref->region;
    const uint64_t size = aq_fh_size(region);

    aq_fh_recall_forget(fh, ref);
    if (ref->prev != NULL)
        ref->prev->next = ref->next;
    else
        region->peer_refs = ref->next;
    if (ref->next != NULL)
        ref->next->prev = ref->prev;
    ref->peer->referenced -= size;
    ref->peer->referenced_regions--;
    fh->counts.remote_charged -= size;
    aq_fh_ref_destroy(ref);
    if (region->peer_refs == NULL)
        aq_fh_retire(fh, region, keep, pending);
}

/* --- a move --- */

struct aq_fh_move {
    struct aq_fh_wire_move wire;
    struct aq_fh_plan plan;
    const uint8_t *ids; /* of the victims */
    const uint8_t *data;
};

/* Is the message well-formed? */
static bool aq_fh_move_parse(const struct aq_fh *fh, const void *msg, size_t nbytes,
                             struct aq_fh_move *move)
{
    struct aq_fh_wire_move *wire = &move->wire;
    size_t data;

    if (nbytes < sizeof(*wire))
        return false;
    memcpy(wire, msg, sizeof(*wire));
    data = wire->kind == AQ_FH_MOVE && wire->write ? wire->data : 0;
    if (nbytes != sizeof(*wire) + (size_t)wire->victims * sizeof(uint32_t) + data)
        return false;
    move->ids = (const uint8_t *)msg + sizeof(*wire);
    move->data = move->ids + (size_t)wire->victims * sizeof(uint32_t);
    if (wire->kind == AQ_FH_RELEASE)
        return true;
    if (wire->start % AQ_FH_PAGE != 0 || wire->min == 0 || wire->first > wire->pages
        || wire->min > wire->pages - wire->first || wire->pages > fh->quota / AQ_FH_PAGE
        || wire->start > UINTPTR_MAX - (uint64_t)wire->pages * AQ_FH_PAGE
        || wire->data > AQ_FH_MESSAGE - sizeof(struct aq_fh_wire_reply))
        return false;
    move->plan =
        (struct aq_fh_plan){ .want_start = wire->start,
                             .want_end = wire->start + (uintptr_t)wire->pages * AQ_FH_PAGE };
    move->plan.start = move->plan.want_start + (uintptr_t)wire->first * AQ_FH_PAGE;
    move->plan.end = move->plan.start + (uintptr_t)wire->min * AQ_FH_PAGE;
    return wire->addr - move->plan.start < AQ_FH_PAGE;
}

/* Local lock. False: one of the ids is not the peer's. */
static bool aq_fh_move_victims(struct aq_fh *fh, struct aq_fh_peer *peer,
                               const struct aq_fh_move *move, struct aq_fh_pending *pending)
{
    for (unsigned i = 0; i < move->wire.victims; i++) {
        const struct aq_fh_region *region;
        struct aq_fh_ref *ref;
        uint32_t id;
        bool inside;

        memcpy(&id, move->ids + i * sizeof(id), sizeof(id));
        ref = aq_fh_ref_look(peer, id);
        if (ref == NULL || !ref->linked)
            return false;
        region = ref->region;
        inside = move->wire.kind == AQ_FH_MOVE && region->start >= move->plan.want_start
                 && region->end <= move->plan.want_end;
        aq_fh_ref_drop(fh, ref, !inside, pending);
    }
    return true;
}

/* Local lock: a region that is registered already, and no larger than the quota that the peer
 * offers. */
static struct aq_fh_region *aq_fh_move_find(const struct aq_fh *fh, const struct aq_fh_move *move)
{
    const uintptr_t granule = move->plan.start >> AQ_FH_GRANULE_SHIFT;

    for (struct aq_fh_node *node = aq_fh_index_chain(&fh->index, granule); node != NULL;
         node = node->next) {
        struct aq_fh_region *region = node->region;

        if (node->granule == granule && region->state == AQ_FH_READY
            && (move->wire.write != 0) <= region->write && region->start <= move->plan.start
            && region->end >= move->plan.end && region->start >= fh->reach_start
            && region->end <= fh->reach_end
            && aq_fh_size(region) <= (uint64_t)move->wire.pages * AQ_FH_PAGE)
            return region;
    }
    return NULL;
}

static void aq_fh_reply_fill(struct aq_fh_wire_reply *reply, const struct aq_fh_region *region)
{
    reply->rc = AQ_OK;
    reply->start = region->start;
    reply->pages = (uint32_t)(aq_fh_size(region) / AQ_FH_PAGE);
    reply->write = region->write;
    reply->once = region->state == AQ_FH_STALE; /* cannot be monitored */
    memcpy(reply->key, region->reg.key, sizeof(reply->key));
}

/* Local lock, which it releases: register the region for the peer, whose quota has been charged. */
static void aq_fh_move_reg(struct aq_fh *fh, const struct aq_fh_move *move, struct aq_fh_ref *ref,
                           struct aq_fh_wire_reply *reply)
{
    const uint64_t asked = (uint64_t)move->wire.pages * AQ_FH_PAGE;
    struct aq_fh_peer *peer = ref->peer;
    struct aq_fh_region *region =
        aq_fh_region_create(NULL, move->plan.want_start, move->plan.want_end);
    int rc = AQ_ERR_NOMEM;

    if (region != NULL && !aq_fh_index_insert(&fh->index, region)) {
        aq_fh_region_destroy(region);
        region = NULL;
    }
    if (region != NULL)
        aq_fh_list_append(&fh->referenced, region);
    aq_lock_release(&fh->lock);
    if (region != NULL)
        rc = aq_fh_reg_region(fh, region, &move->plan, move->wire.write != 0);
    if (rc != AQ_OK)
        aq_lock_acquire(&fh->lock);
    reply->rc = (int8_t)rc;
    peer->referenced -= rc == AQ_OK ? asked - aq_fh_size(region) : asked;
    peer->referenced_regions -= rc != AQ_OK;
    if (rc == AQ_OK) {
        aq_fh_ref_link(fh, ref, region);
        aq_fh_reply_fill(reply, region);
    } else {
        aq_fh_ref_destroy(ref);
    }
    aq_lock_release(&fh->lock);
}

/* Local lock, which it releases: find or register what the peer asks for. False: it asks for more
 * than its quota. */
static bool aq_fh_move_reply(struct aq_fh *fh, struct aq_fh_peer *peer,
                             const struct aq_fh_move *move, struct aq_fh_wire_reply *reply)
{
    const uint64_t asked = (uint64_t)move->wire.pages * AQ_FH_PAGE;
    struct aq_fh_region *region;
    struct aq_fh_ref *ref;

    if (peer->referenced + asked > fh->quota || peer->referenced_regions >= fh->quota_regions
        || !aq_fh_ref_is_free(fh, peer, move->wire.id)) {
        aq_lock_release(&fh->lock);
        return false;
    }
    ref = aq_fh_ref_create(fh, peer, move->wire.id);
    if (ref == NULL) {
        aq_lock_release(&fh->lock);
        reply->rc = AQ_ERR_NOMEM; /* the peer sends its bytes in messages */
        return true;
    }
    peer->referenced_regions++;
    region = aq_fh_move_find(fh, move);
    if (region == NULL) {
        peer->referenced += asked;
        aq_fh_move_reg(fh, move, ref, reply);
        return true;
    }
    peer->referenced += aq_fh_size(region);
    aq_fh_ref_link(fh, ref, region);
    aq_fh_reply_fill(reply, region);
    aq_lock_release(&fh->lock);
    return true;
}

/* Memory may have been unmapped while the region was found or registered. A thread of this process
 * that unmapped it before the reference was visible may have sent messages since, so the peer must
 * not get the region. A thread that unmaps it from now on sees the reference and waits for the
 * recall (aq_fh_is_quiet()). */
static void aq_fh_move_recheck(struct aq_fh *fh, struct aq_fh_peer *peer,
                               struct aq_fh_wire_reply *reply, struct aq_fh_pending *pending)
{
    struct aq_fh_ref *ref;

    if (reply->rc != AQ_OK || reply->once || fh->head.memmon == NULL)
        return;
    aq_fh_settle(fh);
    aq_lock_acquire(&fh->lock);
    ref = aq_fh_ref_look(
        peer,
        reply->id); /* NULL: the peer has given up what it has not got yet, which is malformed */
    if (ref != NULL && ref->region->state == AQ_FH_STALE) {
        aq_fh_ref_drop(fh, ref, false, pending);
        reply->rc = AQ_RETRY;
    }
    aq_lock_release(&fh->lock);
}

/* The first bytes of the transfer, as far as the region goes. It is registered, so it is there. */
static size_t aq_fh_move_carry(const struct aq_fh_move *move, struct aq_fh_wire_reply *reply,
                               uint8_t *buffer)
{
    const uint64_t end = reply->start + (uint64_t)reply->pages * AQ_FH_PAGE;

    reply->data = 0;
    if (reply->rc != AQ_OK)
        return 0;
    reply->data = move->wire.data < end - move->wire.addr ? move->wire.data
                                                          : (uint32_t)(end - move->wire.addr);
    if (move->wire.write) {
        aq_word_write((void *)(uintptr_t)move->wire.addr, move->data, reply->data);
        return 0;
    }
    aq_word_read(buffer, (const void *)(uintptr_t)move->wire.addr, reply->data);
    return reply->data;
}

/* Cuts what the peer asks for beyond what it needs. False: it needs what peers may not reach. */
static bool aq_fh_move_clip(const struct aq_fh *fh, struct aq_fh_plan *plan)
{
    if (plan->start < fh->reach_start || plan->end > fh->reach_end)
        return false;
    if (plan->want_start < fh->reach_start)
        plan->want_start = fh->reach_start;
    if (plan->want_end > fh->reach_end)
        plan->want_end = fh->reach_end;
    return true;
}

static size_t aq_fh_move_serve(struct aq_fh *fh, struct aq_fh_peer *peer, const void *msg,
                               size_t nbytes, void *answer)
{
    struct aq_fh_pending pending = { .charge = 0 };
    struct aq_fh_wire_reply reply = { .rc = AQ_OK };
    struct aq_fh_move move;
    size_t data = 0;

    if (!aq_fh_move_parse(fh, msg, nbytes, &move))
        return aq_fh_bad(peer, "a move of a form that does not exist");
    reply.kind = move.wire.kind;
    reply.id = move.wire.id;
    aq_fh_settle(fh);
    aq_lock_acquire(&fh->lock);
    if (!aq_fh_move_victims(fh, peer, &move, &pending)) {
        aq_lock_release(&fh->lock);
        aq_fh_dereg_pending(fh, &pending);
        return aq_fh_bad(peer, "a move that gives up what it does not have");
    }
    aq_lock_release(&fh->lock);
    /* Before the grant: until then what the message gives up, or a victim in its place, is covered
     * by the quota that the message offers. A region that is granted without registration takes
     * that quota too, and its local charge goes. */
    aq_fh_dereg_pending(fh, &pending);
    if (move.wire.kind == AQ_FH_MOVE && !aq_fh_move_clip(fh, &move.plan)) {
        reply.rc = AQ_ERR_RESOURCE; /* the peer sends its bytes in messages */
    } else if (move.wire.kind == AQ_FH_MOVE) {
        aq_lock_acquire(&fh->lock);
        if (!aq_fh_move_reply(fh, peer, &move, &reply))
            return aq_fh_bad(peer, "a move that exceeds its share");
        aq_fh_move_recheck(fh, peer, &reply, &pending);
        aq_fh_dereg_pending(fh, &pending);
        data = aq_fh_move_carry(&move, &reply, (uint8_t *)answer + sizeof(reply));
    }
    memcpy(answer, &reply, sizeof(reply));
    return sizeof(reply) + data;
}

/* --- a peer that has left --- */

static void aq_fh_peer_forget(struct aq_fh *fh, struct aq_fh_peer *peer)
{
    struct aq_fh_pending pending = { .charge = 0 };

    aq_lock_acquire(&fh->lock);
    atomic_store_explicit(&peer->disconnected, true,
                          memory_order_relaxed); /* see aq_fh_is_disconnected() */
    for (uint32_t slot = 0; slot < peer->ref_slots; slot++)
        if (peer->ref[slot] != NULL
            && peer->ref[slot]->linked) /* else who is about to link it drops it, too */
            aq_fh_ref_drop(fh, peer->ref[slot], true, &pending);
    aq_fh_recall_give_up(peer);
    aq_lock_release(&fh->lock);
    aq_fh_dereg_pending(fh, &pending);
}

void aq_fh_peer_disconnect(struct aq_fh *fh, uint32_t rank)
{
    struct aq_fh_peer *peer = aq_fh_peer_look(fh, rank);

    if (peer != NULL && !aq_fh_is_disconnected(peer))
        aq_fh_peer_forget(fh, peer);
}

bool aq_fh_is_notice(const void *msg)
{
    return *(const uint8_t *)msg != AQ_FH_MOVE;
}

/* --- messages --- */

static size_t aq_fh_serve_any(struct aq_fh *fh, struct aq_fh_peer *peer, const void *msg,
                              size_t nbytes, void *answer)
{
    switch (*(const uint8_t *)msg) {
    case AQ_FH_MOVE:
    case AQ_FH_RELEASE:
        return aq_fh_move_serve(fh, peer, msg, nbytes, answer);
    case AQ_FH_RECALL:
        return aq_fh_recall_serve(peer, msg, nbytes, answer);
    default:
        return aq_fh_bad(peer, "a request of a kind that does not exist");
    }
}

size_t aq_fh_serve(struct aq_fh *fh, uint32_t rank, const void *msg, size_t nbytes, void *answer)
{
    struct aq_fh_peer *peer;
    size_t length;

    if (rank >= fh->config.size || nbytes == 0)
        return 0;
    peer = aq_fh_peer_get(fh, rank);
    if (peer == NULL) /* without an answer the peer would wait for ever */
        aq_fatal("firehose: rank %u cannot be answered: this process has no memory left; raise "
                 "ulimit -v, or run fewer "
                 "ranks on this host",
                 rank);
    if (aq_fh_is_disconnected(peer))
        return 0;
    length = aq_fh_serve_any(fh, peer, msg, nbytes, answer);
    if (AQ_LIKELY(!aq_fh_is_disconnected(peer)))
        return length;
    aq_fh_peer_forget(fh, peer); /* it has gone meanwhile: what has been granted since, too */
    return 0;
}

void aq_fh_answered(struct aq_fh *fh, uint32_t rank, const void *msg, size_t nbytes)
{
    struct aq_fh_peer *peer = rank < fh->config.size ? aq_fh_peer_look(fh, rank) : NULL;

    if (peer == NULL || nbytes == 0)
        return;
    if (*(const uint8_t *)msg == AQ_FH_RECALL)
        aq_fh_recall_noted(peer, msg, nbytes);
    else
        aq_fh_reply_take(peer, msg, nbytes);
}
