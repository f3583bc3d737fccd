/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_share.c - the target's side: peers aim at regions of ours, each within its share.
 *
 * Owns      the aims: one for each region that a peer may transfer to, by the peer's number for it. A region may have
 *           aims of several peers, and counts against the share of each
 * Promise   a move is served without waiting for anybody: what the message gives up goes first, the share that it
 *           asks from is nobody else's, and victims make room at once
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

    if (aq_fh_is_gone(peer)) /* what it gives up was taken from it meanwhile */
        return 0;
    if (!atomic_exchange_explicit(&said, true, memory_order_relaxed)) /* relaxed: says only whether it was said */
        aq_warn("firehose: rank %u sent %s; are all ranks of the same version?", peer->rank, what);
    return 0;
}

struct aq_fh_aim *aq_fh_aim_look(const struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;
    struct aq_fh_aim *aim = slot < peer->aim_slots ? peer->aim[slot] : NULL;

    return aim != NULL && aim->id == id ? aim : NULL;
}

/* Local lock. seq_cst: with the look at the watch that follows a grant, see aq_fh_move_recheck() */
static void aq_fh_aims_add(struct aq_fh *fh, int n)
{
    const unsigned aims = atomic_load_explicit(&fh->head.aims, memory_order_relaxed);

    atomic_store_explicit(&fh->head.aims, aims + (unsigned)n, memory_order_seq_cst);
}

/* May a new aim of the peer's have this id? */
static bool aq_fh_aim_is_free(const struct aq_fh *fh, const struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;

    return slot < fh->share_slots && (slot >= peer->aim_slots || peer->aim[slot] == NULL);
}

/* A record for a new aim whose id is free, not linked yet; NULL: no memory. */
static struct aq_fh_aim *aq_fh_aim_create(struct aq_fh *fh, struct aq_fh_peer *peer, uint32_t id)
{
    const uint32_t slot = id % AQ_FH_SLOTS_MAX;
    struct aq_fh_aim *aim;

    if (slot >= peer->aim_slots) {
        const uint32_t twice = slot * 2 + 16, slots = twice < fh->share_slots ? twice : fh->share_slots;
        struct aq_fh_aim **grown = realloc(peer->aim, slots * sizeof(struct aq_fh_aim *));

        if (grown == NULL)
            return NULL;
        memset(grown + peer->aim_slots, 0, (slots - peer->aim_slots) * sizeof(struct aq_fh_aim *));
        peer->aim = grown;
        peer->aim_slots = slots;
    }
    aim = calloc(1, sizeof(*aim));
    if (aim != NULL) {
        aim->peer = peer;
        aim->id = id;
        peer->aim[slot] = aim;
        aq_fh_aims_add(fh, 1);
    }
    return aim;
}

static void aq_fh_aim_destroy(struct aq_fh_aim *aim)
{
    aq_fh_aims_add(aim->peer->fh, -1);
    aim->peer->aim[aim->id % AQ_FH_SLOTS_MAX] = NULL;
    free(aim);
}

static void aq_fh_aim_link(struct aq_fh *fh, struct aq_fh_aim *aim, struct aq_fh_region *region)
{
    aim->region = region;
    aim->linked = true;
    aim->prev = NULL;
    aim->next = region->aims;
    if (region->aims != NULL)
        region->aims->prev = aim;
    region->aims = aim;
    if (region->state == AQ_FH_READY) {
        aq_fh_list_remove(region);
        aq_fh_list_append(&fh->aimed, region);
    }
    if (region->refs == 0)
        aq_fh_uncharge(fh, region);
    fh->counts.remote_held += aq_fh_size(region);
}

/* Nobody aims at the region any more: it stays as a victim if there is room, unless it is not worth it. */
static void aq_fh_retire(struct aq_fh *fh, struct aq_fh_region *region, bool keep, struct aq_fh_doomed *doomed)
{
    if (region->state == AQ_FH_STALE) {
        if (region->refs == 0)
            aq_fh_doom(fh, region, doomed);
        return;
    }
    if (region->refs == 0 && (!keep || !aq_fh_charge(fh, region, doomed))) {
        aq_fh_doom(fh, region, doomed);
        return;
    }
    aq_fh_list_remove(region);
    aq_fh_list_append(&fh->order, region);
}

/* The peer aims at it no more. */
static void aq_fh_aim_drop(struct aq_fh *fh, struct aq_fh_aim *aim, bool keep, struct aq_fh_doomed *doomed)
{
    struct aq_fh_region *region = aim->region;
    const uint64_t size = aq_fh_size(region);

    aq_fh_recall_forget(fh, aim);
    if (aim->prev != NULL)
        aim->prev->next = aim->next;
    else
        region->aims = aim->next;
    if (aim->next != NULL)
        aim->next->prev = aim->prev;
    aim->peer->aimed -= size;
    aim->peer->aimed_regions--;
    fh->counts.remote_held -= size;
    aq_fh_aim_destroy(aim);
    if (region->aims == NULL)
        aq_fh_retire(fh, region, keep, doomed);
}

/* --- a move --- */

struct aq_fh_move {
    struct aq_fh_wire_move wire;
    struct aq_fh_plan plan;
    const uint8_t *ids;  /* of the victims */
    const uint8_t *data;
};

/* Is it of the form that a peer sends? */
static bool aq_fh_move_parse(const struct aq_fh *fh, const void *msg, size_t nbytes, struct aq_fh_move *move)
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
    if (wire->start % AQ_FH_PAGE != 0 || wire->least == 0 || wire->first > wire->pages
        || wire->least > wire->pages - wire->first || wire->pages > fh->share / AQ_FH_PAGE
        || wire->start > UINTPTR_MAX - (uint64_t)wire->pages * AQ_FH_PAGE
        || wire->data > AQ_FH_MESSAGE - sizeof(struct aq_fh_wire_grant))
        return false;
    move->plan = (struct aq_fh_plan){ .want_start = wire->start,
                                      .want_end = wire->start + (uintptr_t)wire->pages * AQ_FH_PAGE };
    move->plan.start = move->plan.want_start + (uintptr_t)wire->first * AQ_FH_PAGE;
    move->plan.end = move->plan.start + (uintptr_t)wire->least * AQ_FH_PAGE;
    return wire->addr - move->plan.start < AQ_FH_PAGE;
}

/* Local lock. False: one of the ids is not the peer's. */
static bool aq_fh_move_victims(struct aq_fh *fh, struct aq_fh_peer *peer, const struct aq_fh_move *move,
                               struct aq_fh_doomed *doomed)
{
    for (unsigned i = 0; i < move->wire.victims; i++) {
        const struct aq_fh_region *region;
        struct aq_fh_aim *aim;
        uint32_t id;
        bool inside;

        memcpy(&id, move->ids + i * sizeof(id), sizeof(id));
        aim = aq_fh_aim_look(peer, id);
        if (aim == NULL || !aim->linked)
            return false;
        region = aim->region;
        inside = move->wire.kind == AQ_FH_MOVE && region->start >= move->plan.want_start
                 && region->end <= move->plan.want_end;
        aq_fh_aim_drop(fh, aim, !inside, doomed);
    }
    return true;
}

/* Local lock: a region that others, or we, have pinned already, which is not larger than the peer will pay for. */
static struct aq_fh_region *aq_fh_move_find(const struct aq_fh *fh, const struct aq_fh_move *move)
{
    const uintptr_t granule = move->plan.start >> AQ_FH_GRANULE_SHIFT;

    for (struct aq_fh_node *node = aq_fh_index_chain(&fh->index, granule); node != NULL; node = node->next) {
        struct aq_fh_region *region = node->region;

        if (node->granule == granule && region->state == AQ_FH_READY && (move->wire.write != 0) <= region->write
            && region->start <= move->plan.start
            && region->end >= move->plan.end && aq_fh_size(region) <= (uint64_t)move->wire.pages * AQ_FH_PAGE)
            return region;
    }
    return NULL;
}

static void aq_fh_grant_fill(struct aq_fh_wire_grant *grant, const struct aq_fh_region *region)
{
    grant->rc = AQ_OK;
    grant->start = region->start;
    grant->pages = (uint32_t)(aq_fh_size(region) / AQ_FH_PAGE);
    grant->write = region->write;
    grant->once = region->state == AQ_FH_STALE; /* cannot be watched */
    memcpy(grant->key, region->pin.key, sizeof(grant->key));
}

/* Local lock, which it releases: pin the region for the peer, whose share has been charged. */
static void aq_fh_move_pin(struct aq_fh *fh, const struct aq_fh_move *move, struct aq_fh_aim *aim,
                           struct aq_fh_wire_grant *grant)
{
    const uint64_t asked = (uint64_t)move->wire.pages * AQ_FH_PAGE;
    struct aq_fh_peer *peer = aim->peer;
    struct aq_fh_region *region = aq_fh_region_create(NULL, move->plan.want_start, move->plan.want_end);
    int rc = AQ_ERR_NOMEM;

    if (region != NULL && !aq_fh_index_insert(&fh->index, region)) {
        aq_fh_region_destroy(region);
        region = NULL;
    }
    if (region != NULL)
        aq_fh_list_append(&fh->aimed, region);
    aq_lock_release(&fh->lock);
    if (region != NULL)
        rc = aq_fh_pin_region(fh, region, &move->plan, move->wire.write != 0);
    if (rc != AQ_OK)
        aq_lock_acquire(&fh->lock);
    grant->rc = (int8_t)rc;
    peer->aimed -= rc == AQ_OK ? asked - aq_fh_size(region) : asked;
    peer->aimed_regions -= rc != AQ_OK;
    if (rc == AQ_OK) {
        aq_fh_aim_link(fh, aim, region);
        aq_fh_grant_fill(grant, region);
    } else {
        aq_fh_aim_destroy(aim);
    }
    aq_lock_release(&fh->lock);
}

/* Local lock, which it releases: find or pin what the peer asks for. False: it asks for more than its share. */
static bool aq_fh_move_grant(struct aq_fh *fh, struct aq_fh_peer *peer, const struct aq_fh_move *move,
                             struct aq_fh_wire_grant *grant)
{
    const uint64_t asked = (uint64_t)move->wire.pages * AQ_FH_PAGE;
    struct aq_fh_region *region;
    struct aq_fh_aim *aim;

    if (peer->aimed + asked > fh->share || peer->aimed_regions >= fh->share_regions ||
        !aq_fh_aim_is_free(fh, peer, move->wire.id)) {
        aq_lock_release(&fh->lock);
        return false;
    }
    aim = aq_fh_aim_create(fh, peer, move->wire.id);
    if (aim == NULL) {
        aq_lock_release(&fh->lock);
        grant->rc = AQ_ERR_NOMEM; /* the peer sends its bytes in messages */
        return true;
    }
    peer->aimed_regions++;
    region = aq_fh_move_find(fh, move);
    if (region == NULL) {
        peer->aimed += asked;
        aq_fh_move_pin(fh, move, aim, grant);
        return true;
    }
    peer->aimed += aq_fh_size(region);
    aq_fh_aim_link(fh, aim, region);
    aq_fh_grant_fill(grant, region);
    aq_lock_release(&fh->lock);
    return true;
}

/* Memory may have gone while the region was found or pinned. Threads of ours that made it go before they could see
 * that a peer aims at it have told others since; so the peer must not get it. Who does it from now on sees the aim, and
 * waits for the recall (aq_fh_is_quiet()). */
static void aq_fh_move_recheck(struct aq_fh *fh, struct aq_fh_peer *peer, struct aq_fh_wire_grant *grant,
                               struct aq_fh_doomed *doomed)
{
    struct aq_fh_aim *aim;

    if (grant->rc != AQ_OK || grant->once || fh->head.watch == NULL)
        return;
    aq_fh_settle(fh);
    aq_lock_acquire(&fh->lock);
    aim = aq_fh_aim_look(peer, grant->id); /* NULL: the peer gives up what it has not got yet, which no right one does */
    if (aim != NULL && aim->region->state == AQ_FH_STALE) {
        aq_fh_aim_drop(fh, aim, false, doomed);
        grant->rc = AQ_RETRY;
    }
    aq_lock_release(&fh->lock);
}

/* The first bytes of the transfer, as far as the region goes. It is pinned, so it is there. */
static size_t aq_fh_move_carry(const struct aq_fh_move *move, struct aq_fh_wire_grant *grant, uint8_t *room)
{
    const uint64_t end = grant->start + (uint64_t)grant->pages * AQ_FH_PAGE;

    grant->data = 0;
    if (grant->rc != AQ_OK)
        return 0;
    grant->data = move->wire.data < end - move->wire.addr ? move->wire.data : (uint32_t)(end - move->wire.addr);
    if (move->wire.write) {
        aq_word_write((void *)(uintptr_t)move->wire.addr, move->data, grant->data);
        return 0;
    }
    aq_word_read(room, (const void *)(uintptr_t)move->wire.addr, grant->data);
    return grant->data;
}

static size_t aq_fh_move_serve(struct aq_fh *fh, struct aq_fh_peer *peer, const void *msg, size_t nbytes,
                               void *answer)
{
    struct aq_fh_doomed doomed = { .charge = 0 };
    struct aq_fh_wire_grant grant = { .rc = AQ_OK };
    struct aq_fh_move move;
    size_t data = 0;

    if (!aq_fh_move_parse(fh, msg, nbytes, &move))
        return aq_fh_bad(peer, "a move of a form that does not exist");
    grant.kind = move.wire.kind;
    grant.id = move.wire.id;
    aq_fh_settle(fh);
    aq_lock_acquire(&fh->lock);
    if (!aq_fh_move_victims(fh, peer, &move, &doomed)) {
        aq_lock_release(&fh->lock);
        aq_fh_unpin_doomed(fh, &doomed);
        return aq_fh_bad(peer, "a move that gives up what it does not have");
    }
    aq_lock_release(&fh->lock);
    /* Before the grant: until then what the message gives up, or a victim in its place, is covered by the share that
     * the peer pays with. A region that is granted without pinning takes that share too, and its local charge goes. */
    aq_fh_unpin_doomed(fh, &doomed);
    if (move.wire.kind == AQ_FH_MOVE) {
        aq_lock_acquire(&fh->lock);
        if (!aq_fh_move_grant(fh, peer, &move, &grant))
            return aq_fh_bad(peer, "a move that exceeds its share");
        aq_fh_move_recheck(fh, peer, &grant, &doomed);
        aq_fh_unpin_doomed(fh, &doomed);
        data = aq_fh_move_carry(&move, &grant, (uint8_t *)answer + sizeof(grant));
    }
    memcpy(answer, &grant, sizeof(grant));
    return sizeof(grant) + data;
}

/* --- a peer that has left --- */

static void aq_fh_peer_forget(struct aq_fh *fh, struct aq_fh_peer *peer)
{
    struct aq_fh_doomed doomed = { .charge = 0 };

    aq_lock_acquire(&fh->lock);
    atomic_store_explicit(&peer->gone, true, memory_order_relaxed); /* see aq_fh_is_gone() */
    for (uint32_t slot = 0; slot < peer->aim_slots; slot++)
        if (peer->aim[slot] != NULL && peer->aim[slot]->linked) /* else who is about to link it drops it, too */
            aq_fh_aim_drop(fh, peer->aim[slot], true, &doomed);
    aq_fh_recall_give_up(peer);
    aq_lock_release(&fh->lock);
    aq_fh_unpin_doomed(fh, &doomed);
}

void aq_fh_peer_gone(struct aq_fh *fh, uint32_t rank)
{
    struct aq_fh_peer *peer = aq_fh_peer_look(fh, rank);

    if (peer != NULL && !aq_fh_is_gone(peer))
        aq_fh_peer_forget(fh, peer);
}

bool aq_fh_is_word(const void *msg)
{
    return *(const uint8_t *)msg != AQ_FH_MOVE;
}

/* --- messages --- */

static size_t aq_fh_serve_any(struct aq_fh *fh, struct aq_fh_peer *peer, const void *msg, size_t nbytes, void *answer)
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
        aq_fatal("firehose: rank %u cannot be answered: this process has no memory left; raise ulimit -v, or run fewer "
                 "ranks on this host", rank);
    if (aq_fh_is_gone(peer))
        return 0;
    length = aq_fh_serve_any(fh, peer, msg, nbytes, answer);
    if (AQ_LIKELY(!aq_fh_is_gone(peer)))
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
        aq_fh_granted(peer, msg, nbytes);
}
