/*
 * aq_ibv_part.c - messages that come in several fragments, put together.
 *
 * A medium payload is gathered in memory of ours, a long one where it belongs. The memory is kept for later messages,
 * as much of it as was needed at a time, up to a bound.
 *
 * Owns      spare memory
 * Threads   fragments under the rail's recv_lock, in their order; the spare list under its lock
 * Uses      aq_ibv_recv.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_recv.h"
#include "core/aq_ep.h"
#include "base/aq_log.h"

#define AQ_IBV_PARTS_SPARE 64u

static struct {
    aq_lock lock;
    struct aq_ibv_part *first;
    uint32_t count;
} aq_ibv_spare_parts;

void aq_ibv_part_check(const struct aq_ibv_peer *peer, uint64_t dest, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)peer, (void)dest, (void)nbytes;
#else
    char who[AQ_IBV_WHO];

    if (nbytes != 0 && !(aq_job.bound != NULL && aq_bound_is_mine((void *)(uintptr_t)dest, nbytes)))
        aq_fatal("%s sent a long message to [0x%llx, +%zu), which is not inside a segment of this process",
                 aq_ibv_peer_who(peer, who, sizeof(who)), (unsigned long long)dest, nbytes);
#endif
}

static struct aq_ibv_part *aq_ibv_part_new(uint32_t total)
{
    struct aq_ibv_part *part;

    aq_lock_acquire(&aq_ibv_spare_parts.lock);
    part = aq_ibv_spare_parts.first;
    if (AQ_LIKELY(part != NULL)) {
        aq_ibv_spare_parts.first = part->next;
        aq_ibv_spare_parts.count--;
    }
    aq_lock_release(&aq_ibv_spare_parts.lock);
    if (AQ_UNLIKELY(part == NULL) && (part = malloc(sizeof(*part) + AQ_IBV_MAX_MEDIUM)) == NULL)
        aq_fatal("ibv: no memory for a message of %u bytes", total);
    return part;
}

void aq_ibv_part_give(struct aq_ibv_part *part)
{
    bool kept;

    aq_lock_acquire(&aq_ibv_spare_parts.lock);
    kept = aq_ibv_spare_parts.count < AQ_IBV_PARTS_SPARE;
    if (AQ_LIKELY(kept)) {
        part->next = aq_ibv_spare_parts.first;
        aq_ibv_spare_parts.first = part;
        aq_ibv_spare_parts.count++;
    }
    aq_lock_release(&aq_ibv_spare_parts.lock);
    if (!kept)
        free(part);
}

bool aq_ibv_part_take(const struct aq_ibv_rail *rail, const struct ibv_wc *wc, struct aq_ibv_rbuf *buf)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    struct aq_ibv_part **at = &buf->peer->parts[aq_ibv_rbuf_lane(buf)], *part = *at;
    const bool is_long = fragment->head.type == AQ_IBV_T_LONG_PART;

    if (part == NULL) {
        if (is_long)
            aq_ibv_part_check(buf->peer, fragment->address, fragment->total);
        *at = part = aq_ibv_part_new(fragment->total);
        part->payload = is_long ? (uint8_t *)(uintptr_t)fragment->address : part->own;
        part->type = fragment->head.type;
        part->total = fragment->total;
        part->got = 0;
    }
    if (part->type != fragment->head.type || part->total != fragment->total || part->got != fragment->at)
        aq_ibv_recv_malformed(rail, wc, buf, "its parts contradict each other");
    memcpy(part->payload + fragment->at, fragment->data, fragment->head.nbytes);
    part->got += fragment->head.nbytes;
    if (part->got != part->total)
        return false;
    *at = NULL;
    buf->whole = part;
    return true;
}
