/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_move.c - the initiator's side of a miss: what to give up, the message, and its answer.
 *
 * Quota      the references of this rank, and what its messages under way have asked for, never
 *            exceed its quota at the peer. Messages may overtake each other, so each pays for
 *            itself: what a message gives up counts until its answer, and what it asks for counts
 *            as far as it is more
 * Victims    regions without holds, oldest first; a region that was used since it was last at the
 *            head goes round once
 * Threads    any; the peer's lock. A message leaves without the lock. Until its answer the region
 *            is MAKING, and what the message gives up is in no table
 * Uses       aq_fh_internal.h, aq_fh_wire.h
 */
#include "other/firehose/aq_fh_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_word.h"
#include "other/firehose/aq_fh_wire.h"

#define AQ_FH_MIN_VICTIMS 16 /* that a message has space for, whatever data it carries */

/* --- ids --- */

/* Room for more numbers; false: there are as many as there can be, or no memory. */
static bool aq_fh_slots_grow(struct aq_fh_peer *peer)
{
    const uint32_t twice = peer->slots * 2 + 16;
    const uint32_t slots = twice < peer->fh->quota_slots ? twice : peer->fh->quota_slots;
    struct aq_fh_region **grown;

    if (slots == peer->slots)
        return false;
    grown = realloc(peer->slot, slots * sizeof(struct aq_fh_region *));
    if (grown == NULL)
        return false;
    memset(grown + peer->slots, 0, (slots - peer->slots) * sizeof(struct aq_fh_region *));
    peer->slot = grown;
    peer->next_slot = peer->slots;
    peer->slots = slots;
    return true;
}

/* A number for a region; false: none is free. */
static bool aq_fh_slot_take(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    uint32_t tries = 0;

    while (tries < peer->slots && peer->slot[(peer->next_slot + tries) % peer->slots] != NULL)
        tries++;
    if (tries == peer->slots) {
        if (!aq_fh_slots_grow(peer))
            return false;
        tries = 0;
    }
    peer->next_slot = (peer->next_slot + tries) % peer->slots;
    peer->slot[peer->next_slot] = region;
    region->id = peer->use++ << AQ_FH_SLOT_BITS | peer->next_slot++;
    return true;
}

static void aq_fh_slot_free(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    peer->slot[region->id % AQ_FH_SLOTS_MAX] = NULL;
}

/* --- what a message gives up --- */

struct aq_fh_load {
    struct aq_fh_list list;
    uint32_t count, max;
    uint64_t bytes;
};

static void aq_fh_load_add(struct aq_fh_peer *peer, struct aq_fh_load *load,
                           struct aq_fh_region *region)
{
    if (region->state == AQ_FH_READY)
        aq_fh_index_remove(&peer->index, region);
    aq_fh_list_remove(region);
    aq_fh_list_append(&load->list, region);
    region->leaving = true;
    load->count++;
    load->bytes += aq_fh_size(region);
}

/* The message was not sent: everything is as it was, but that a stale region remains one. */
static void aq_fh_load_undo(struct aq_fh_peer *peer, struct aq_fh_list *list)
{
    struct aq_fh_region *region;

    while ((region = aq_fh_list_pop(list)) != NULL) {
        region->leaving = false;
        if (region->state == AQ_FH_READY && aq_fh_index_insert(&peer->index, region)) {
            aq_fh_list_append(&peer->order, region);
        } else {
            region->state = AQ_FH_STALE;
            aq_fh_list_append(&peer->leaving, region);
            aq_fh_set_pending(peer);
        }
    }
}

/* The oldest region without holds, or NULL. */
static struct aq_fh_region *aq_fh_move_victim(struct aq_fh_peer *peer)
{
    uint32_t scans = peer->used_regions * 2;

    for (struct aq_fh_region *region = peer->order.first; region != NULL && scans-- > 0;
         region = peer->order.first) {
        if (region->holds == 0 && !region->used)
            return region;
        if (region->holds == 0)
            region->used = false;
        aq_fh_list_remove(region);
        aq_fh_list_append(&peer->order, region);
    }
    return NULL;
}

/* Give up as much as the plan needs, and make it smaller if that is not enough. False: there is no
 * space. */
static bool aq_fh_move_load(struct aq_fh_peer *peer, struct aq_fh_plan *plan,
                            struct aq_fh_load *load)
{
    const struct aq_fh *fh = peer->fh;
    uint64_t space = 0;

    while (load->count < load->max && peer->leaving.first != NULL)
        aq_fh_load_add(peer, load, peer->leaving.first);
    if (plan->below != NULL && load->count < load->max)
        aq_fh_load_add(peer, load, plan->below);
    if (plan->above != NULL && load->count < load->max)
        aq_fh_load_add(peer, load, plan->above);
    for (;;) {
        const bool enough = peer->used_regions - (load->count != 0) < fh->quota_regions;
        struct aq_fh_region *victim;

        space = fh->quota - peer->used + load->bytes;
        if (enough && plan->want_end - plan->want_start <= space)
            return true;
        victim = load->count < load->max ? aq_fh_move_victim(peer) : NULL;
        if (victim == NULL) {
            aq_fh_plan_cut(plan, space);
            return enough && plan->end > plan->start;
        }
        aq_fh_load_add(peer, load, victim);
    }
}

/* --- the message --- */

static size_t aq_fh_message_write(uint8_t *message, const struct aq_fh_wire_move *wire,
                                  const struct aq_fh_list *list, const struct aq_fh_region *first,
                                  const void *data)
{
    uint8_t *at = message + sizeof(*wire);

    memcpy(message, wire, sizeof(*wire));
    if (first != NULL) {
        memcpy(at, &first->id, sizeof(first->id));
        at += sizeof(first->id);
    }
    for (const struct aq_fh_region *region = list->first; region != NULL; region = region->next) {
        memcpy(at, &region->id, sizeof(region->id));
        at += sizeof(region->id);
    }
    if (wire->write && wire->data != 0 && data != NULL) {
        memcpy(at, data, wire->data);
        at += wire->data;
    }
    return (size_t)(at - message);
}

/* How much of a request travels with the message, or with its answer. */
static uint32_t aq_fh_move_carries(const struct aq_fh *fh, const struct aq_fh_request *request)
{
    const size_t head = request->write
                            ? sizeof(struct aq_fh_wire_move) + AQ_FH_MIN_VICTIMS * sizeof(uint32_t)
                            : sizeof(struct aq_fh_wire_reply);
    size_t max = fh->config.message - head;

    if (request->write ? request->put == NULL : request->get == NULL)
        return 0;
    max = max < fh->config.carry ? max : fh->config.carry;
    return (uint32_t)(max < request->nbytes ? max : request->nbytes);
}

/* The region of a move whose message is about to leave. NULL: none could be made. */
static struct aq_fh_region *aq_fh_move_make(struct aq_fh_peer *peer, const struct aq_fh_plan *plan,
                                            const struct aq_fh_load *load,
                                            struct aq_fh_request *request)
{
    struct aq_fh_region *region = aq_fh_region_create(peer, plan->want_start, plan->want_end);

    if (region == NULL)
        return NULL;
    if (!aq_fh_slot_take(peer, region)) {
        aq_fh_region_destroy(region);
        return NULL;
    }
    if (!aq_fh_index_insert(&peer->index, region)) {
        aq_fh_slot_free(peer, region);
        aq_fh_region_destroy(region);
        return NULL;
    }
    region->write = request->write;
    region->asked = aq_fh_size(region);
    region->discount = load->bytes < region->asked ? load->bytes : region->asked;
    region->region_discount = load->count != 0;
    region->requests = request;
    region->requests_end = &request->next;
    peer->used += region->asked - region->discount;
    peer->used_regions += 1 - region->region_discount;
    return region;
}

/* The peer's lock: the move is over; what it had reserved is free. */
static void aq_fh_move_settle(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    peer->used -= region->asked - region->discount;
    peer->used_regions -= 1 - region->region_discount;
}

static void aq_fh_requests_end(struct aq_fh_request *request, int rc)
{
    for (struct aq_fh_request *next; request != NULL; request = next) {
        next = request->next;
        request->rc = rc;
        request->hold.region = NULL;
        request->done(request);
    }
}

/* No message could be sent: undo everything. */
static int aq_fh_move_undo(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    struct aq_fh_request *others;

    aq_lock_acquire(&peer->lock);
    aq_fh_move_settle(peer, region);
    aq_fh_load_undo(peer, &region->cargo);
    aq_fh_index_remove(&peer->index, region);
    aq_fh_slot_free(peer, region);
    others = region->requests->next;
    aq_lock_release(&peer->lock);
    aq_fh_region_destroy(region);
    aq_fh_requests_end(others, AQ_RETRY);
    return AQ_RETRY;
}

/* A list that has a new place. */
static void aq_fh_list_move(struct aq_fh_list *to, const struct aq_fh_list *from)
{
    *to = *from;
    for (struct aq_fh_region *region = to->first; region != NULL; region = region->next)
        region->list = to;
}

int aq_fh_miss(struct aq_fh_peer *peer, struct aq_fh_request *request)
{
    const struct aq_fh *fh = peer->fh;
    const size_t chunk =
        request->chunk != 0 && request->chunk < request->nbytes ? request->chunk : request->nbytes;
    struct aq_fh_wire_move wire = { .kind = AQ_FH_MOVE,
                                    .write = request->write,
                                    .addr = request->addr };
    struct aq_fh_load load = { .count = 0 };
    struct aq_fh_region *region = NULL;
    uint8_t message[AQ_FH_MESSAGE];
    struct aq_fh_plan plan;
    size_t length;

    wire.data = aq_fh_move_carries(fh, request);
    load.max = (uint32_t)((fh->config.message - sizeof(wire) - (wire.write ? wire.data : 0))
                          / sizeof(uint32_t));
    plan = aq_fh_plan_make(&peer->index, request->addr, chunk, request->write, fh->remote_region,
                           fh->remote_chunk);
    if (aq_fh_move_load(peer, &plan, &load))
        region = aq_fh_move_make(peer, &plan, &load, request);
    if (region == NULL) {
        aq_fh_load_undo(peer, &load.list);
        aq_lock_release(&peer->lock);
        return AQ_RETRY;
    }
    aq_fh_list_move(&region->cargo, &load.list);
    wire.id = region->id;
    wire.start = plan.want_start;
    wire.pages = (uint32_t)((plan.want_end - plan.want_start) / AQ_FH_PAGE);
    wire.first = (uint32_t)((plan.start - plan.want_start) / AQ_FH_PAGE);
    wire.min = (uint32_t)((plan.end - plan.start) / AQ_FH_PAGE);
    wire.victims = (uint16_t)load.count;
    length = aq_fh_message_write(message, &wire, &region->cargo, NULL, request->put);
    peer->misses++;
    peer->moves++;
    aq_lock_release(&peer->lock);
    if (fh->ops.send_request(fh->arg, peer->rank, message, length) == AQ_OK)
        return AQ_PENDING;
    return aq_fh_move_undo(peer, region);
}

int aq_fh_release_send(struct aq_fh_peer *peer)
{
    const struct aq_fh *fh = peer->fh;
    const uint32_t max =
        (uint32_t)((fh->config.message - sizeof(struct aq_fh_wire_move)) / sizeof(uint32_t));
    struct aq_fh_wire_move wire = { .kind = AQ_FH_RELEASE };
    struct aq_fh_load load = { .count = 0 };
    uint8_t message[AQ_FH_MESSAGE];
    struct aq_fh_region *region;
    size_t length;

    aq_lock_acquire(&peer->lock);
    while (load.count < max && peer->leaving.first != NULL)
        aq_fh_load_add(peer, &load, peer->leaving.first);
    region = aq_fh_list_pop(&load.list);
    if (region == NULL) {
        aq_lock_release(&peer->lock);
        return AQ_OK;
    }
    aq_fh_list_move(&region->cargo, &load.list);
    load.list = (struct aq_fh_list){ .first = NULL };
    wire.id = region->id;
    wire.victims = (uint16_t)load.count;
    length = aq_fh_message_write(message, &wire, &region->cargo, region, NULL);
    peer->releases++;
    if (peer->leaving.first != NULL)
        aq_fh_set_pending(peer);
    aq_lock_release(&peer->lock);
    if (fh->ops.send_request(fh->arg, peer->rank, message, length) == AQ_OK)
        return AQ_OK;
    aq_lock_acquire(&peer->lock);
    peer->releases--;
    aq_fh_load_undo(peer, &region->cargo);
    aq_fh_list_append(&load.list, region);
    aq_fh_load_undo(peer, &load.list);
    aq_lock_release(&peer->lock);
    return AQ_RETRY;
}

/* --- the answer --- */

/* The peer has answered: the quota and ids of what was given up are free. */
static void aq_fh_region_released(struct aq_fh_peer *peer, struct aq_fh_region *region)
{
    peer->used -= aq_fh_size(region);
    peer->used_regions--;
    aq_fh_slot_free(peer, region);
    aq_fh_region_destroy(region);
}

static void aq_fh_cargo_released(struct aq_fh_peer *peer, struct aq_fh_list *list)
{
    struct aq_fh_region *region;

    while ((region = aq_fh_list_pop(list)) != NULL)
        aq_fh_region_released(peer, region);
}

/* Does the answer fit the request? */
static bool aq_fh_reply_fits(const struct aq_fh_region *region,
                             const struct aq_fh_wire_reply *reply)
{
    const uint64_t size = (uint64_t)reply->pages * AQ_FH_PAGE;

    return size != 0 && size <= region->asked && reply->start % AQ_FH_PAGE == 0
           && reply->start <= UINTPTR_MAX - size && region->requests->addr - reply->start < size
           && region->requests->write <= (reply->write != 0);
}

/* The peer's lock: the region is READY; or STALE at once, if it was recalled or cannot
 * be kept. */
static void aq_fh_reply_region(struct aq_fh_peer *peer, struct aq_fh_region *region,
                               const struct aq_fh_wire_reply *reply)
{
    const uint64_t size = (uint64_t)reply->pages * AQ_FH_PAGE;

    peer->used += size;
    peer->used_regions++;
    memcpy(region->reg.key, reply->key, sizeof(reply->key));
    region->write = reply->write != 0;
    if (!aq_fh_index_resize(&peer->index, region, reply->start, reply->start + size)) {
        region->recalled = true;
        region->state = AQ_FH_STALE;
        aq_fh_list_append(&peer->leaving, region);
        aq_fh_set_pending(peer);
        return;
    }
    region->state = AQ_FH_READY;
    aq_fh_list_append(&peer->order, region);
}

/* The requests that waited get their part of the region; once: only the first request, since the
 * others may know of changes that the target has not noticed. */
static void aq_fh_reply_requests(struct aq_fh_region *region, struct aq_fh_request *requests,
                                 uint32_t carried, bool once)
{
    requests->carried = carried < requests->nbytes ? carried : requests->nbytes;
    for (struct aq_fh_request *request = requests; request != NULL; request = request->next) {
        request->hold.region = NULL;
        request->rc = AQ_OK;
        if (region->recalled || (once && request != requests)
                ? request->carried < request->nbytes
                : !aq_fh_request_hold(request, region) && request->carried == 0)
            request->rc = AQ_RETRY;
    }
}

static void aq_fh_reply_move(struct aq_fh_peer *peer, struct aq_fh_region *region,
                             const struct aq_fh_wire_reply *reply, const uint8_t *data,
                             size_t ndata)
{
    struct aq_fh_request *requests = region->requests;
    int rc = reply->rc;

    aq_fh_cargo_released(peer, &region->cargo);
    aq_fh_move_settle(peer, region);
    if (rc == AQ_OK && aq_fh_reply_fits(region, reply)) {
        aq_fh_reply_region(peer, region, reply);
        aq_fh_reply_requests(region, requests, reply->data, reply->once != 0);
        if (requests->hold.region == NULL && requests->rc == AQ_OK
            && requests->carried == requests->nbytes)
            peer->carried++;
        region->requests = NULL;
        if (region->state == AQ_FH_READY && (region->recalled || reply->once))
            aq_fh_remote_stale(peer, region);
        aq_lock_release(&peer->lock);
        if (!requests->write && ndata != 0)
            aq_word_write(requests->get, data, ndata);
        for (struct aq_fh_request *request = requests, *next; request != NULL; request = next) {
            next = request->next;
            request->done(request);
        }
        return;
    }
    if (rc == AQ_OK)
        rc = AQ_ERR_RESOURCE;
    aq_fh_index_remove(&peer->index, region);
    aq_fh_slot_free(peer, region);
    aq_lock_release(&peer->lock);
    aq_fh_region_destroy(region);
    aq_fh_requests_end(requests, rc);
}

void aq_fh_reply_take(struct aq_fh_peer *peer, const void *msg, size_t nbytes)
{
    struct aq_fh_wire_reply reply;
    struct aq_fh_region *region;

    if (nbytes < sizeof(reply)) {
        aq_fh_bad(peer, "an answer that is too short");
        return;
    }
    memcpy(&reply, msg, sizeof(reply));
    aq_lock_acquire(&peer->lock);
    region = aq_fh_slot_region(peer, reply.id);
    if (region != NULL && reply.kind == AQ_FH_RELEASE && region->leaving) {
        aq_fh_cargo_released(peer, &region->cargo);
        aq_fh_region_released(peer, region);
        aq_lock_release(&peer->lock);
    } else if (region != NULL && reply.kind == AQ_FH_MOVE && region->state == AQ_FH_MAKING
               && reply.data <= AQ_FH_MESSAGE
               && (nbytes == sizeof(reply)
                   || (nbytes == sizeof(reply) + reply.data && !region->requests->write
                       && reply.data <= region->requests->nbytes))) {
        aq_fh_reply_move(peer, region, &reply, (const uint8_t *)msg + sizeof(reply),
                         nbytes - sizeof(reply));
    } else {
        aq_lock_release(&peer->lock);
        aq_fh_bad(peer, "an answer to nothing");
    }
}
