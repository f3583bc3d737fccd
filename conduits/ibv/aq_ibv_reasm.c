/*
 * aq_ibv_reasm.c - messages that come in several fragments, put together.
 *
 * A medium payload is gathered in memory of ours, a long one where it belongs. The memory is kept
 * for later messages, as much of it as was needed at a time, up to a bound.
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

#define AQ_IBV_REASM_CACHED 64u

static struct {
    aq_lock lock;
    struct aq_ibv_reasm *first;
    uint32_t count;
} aq_ibv_reasm_cache;

void aq_ibv_reasm_check(const struct aq_ibv_peer *peer, uint64_t dest, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)peer, (void)dest, (void)nbytes;
#else
    char who[AQ_IBV_WHO];

    if (nbytes != 0 && !(aq_job.bound != NULL && aq_bound_is_self((void *)(uintptr_t)dest, nbytes)))
        aq_fatal("%s sent a long message to [0x%llx, +%zu), which is not inside a segment of this "
                 "process",
                 aq_ibv_peer_who(peer, who, sizeof(who)), (unsigned long long)dest, nbytes);
#endif
}

static struct aq_ibv_reasm *aq_ibv_reasm_new(uint32_t total)
{
    struct aq_ibv_reasm *reasm;

    aq_lock_acquire(&aq_ibv_reasm_cache.lock);
    reasm = aq_ibv_reasm_cache.first;
    if (AQ_LIKELY(reasm != NULL)) {
        aq_ibv_reasm_cache.first = reasm->next;
        aq_ibv_reasm_cache.count--;
    }
    aq_lock_release(&aq_ibv_reasm_cache.lock);
    if (AQ_UNLIKELY(reasm == NULL) && (reasm = malloc(sizeof(*reasm) + AQ_IBV_MAX_MEDIUM)) == NULL)
        aq_fatal("ibv: no memory for a message of %u bytes", total);
    return reasm;
}

void aq_ibv_reasm_give(struct aq_ibv_reasm *reasm)
{
    bool cached;

    aq_lock_acquire(&aq_ibv_reasm_cache.lock);
    cached = aq_ibv_reasm_cache.count < AQ_IBV_REASM_CACHED;
    if (AQ_LIKELY(cached)) {
        reasm->next = aq_ibv_reasm_cache.first;
        aq_ibv_reasm_cache.first = reasm;
        aq_ibv_reasm_cache.count++;
    }
    aq_lock_release(&aq_ibv_reasm_cache.lock);
    if (!cached)
        free(reasm);
}

bool aq_ibv_reasm_take(const struct aq_ibv_rail *rail, const struct ibv_wc *wc,
                       struct aq_ibv_rbuf *buf)
{
    const struct aq_ibv_fragment *fragment = &buf->fragment;
    struct aq_ibv_reasm **at = &buf->peer->reasm[aq_ibv_rbuf_channel(buf)], *reasm = *at;
    const bool is_long = fragment->head.type == AQ_IBV_T_LONG_FRAG;

    if (reasm == NULL) {
        if (is_long)
            aq_ibv_reasm_check(buf->peer, fragment->address, fragment->total);
        *at = reasm = aq_ibv_reasm_new(fragment->total);
        reasm->payload = is_long ? (uint8_t *)(uintptr_t)fragment->address : reasm->own;
        reasm->type = fragment->head.type;
        reasm->total = fragment->total;
        reasm->got = 0;
    }
    if (reasm->type != fragment->head.type || reasm->total != fragment->total
        || reasm->got != fragment->at)
        aq_ibv_recv_malformed(rail, wc, buf, "its parts contradict each other");
    memcpy(reasm->payload + fragment->at, fragment->data, fragment->head.nbytes);
    reasm->got += fragment->head.nbytes;
    if (reasm->got != reasm->total)
        return false;
    *at = NULL;
    buf->whole = reasm;
    return true;
}
