/*
 * aq_ibv_frag.c - puts the fragments of a message together; see aq_ibv_frag.h.
 *
 * A medium payload is gathered in memory of this file, a long one at its destination. The memory is
 * cached for later messages, up to a bound.
 *
 * Owns      the cache
 * Threads   aq_ibv_reasm_add(): the caller's lock; the cache: its own lock
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_frag.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_lock.h"
#include "base/aq_platform.h"

#define AQ_IBV_REASM_CACHED 64u

static struct {
    aq_lock lock;
    struct aq_ibv_reasm *first;
    uint32_t count;
} aq_ibv_reasm_cache;

static struct aq_ibv_reasm *aq_ibv_reasm_new(void)
{
    struct aq_ibv_reasm *reasm;

    aq_lock_acquire(&aq_ibv_reasm_cache.lock);
    reasm = aq_ibv_reasm_cache.first;
    if (AQ_LIKELY(reasm != NULL)) {
        aq_ibv_reasm_cache.first = reasm->next;
        aq_ibv_reasm_cache.count--;
    }
    aq_lock_release(&aq_ibv_reasm_cache.lock);
    return AQ_LIKELY(reasm != NULL) ? reasm : malloc(sizeof(*reasm) + AQ_IBV_MAX_MEDIUM);
}

void aq_ibv_reasm_release(struct aq_ibv_reasm *reasm)
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

enum aq_ibv_reasm_result aq_ibv_reasm_add(struct aq_ibv_reasm **open,
                                          const struct aq_ibv_fragment *fragment,
                                          struct aq_ibv_reasm **whole_out)
{
    const bool is_long = fragment->head.type == AQ_IBV_T_LONG_FRAG;
    struct aq_ibv_reasm *reasm = *open;

    if (reasm == NULL) {
        if (fragment->at != 0 || (!is_long && fragment->total > AQ_IBV_MAX_MEDIUM))
            return AQ_IBV_REASM_BAD;
        reasm = aq_ibv_reasm_new();
        if (reasm == NULL)
            return AQ_IBV_REASM_NOMEM;
        reasm->payload = is_long ? (uint8_t *)(uintptr_t)fragment->address : reasm->own;
        reasm->type = fragment->head.type;
        reasm->total = fragment->total;
        reasm->got = 0;
        *open = reasm;
    }
    if (reasm->type != fragment->head.type || reasm->total != fragment->total
        || reasm->got != fragment->at || fragment->head.nbytes > reasm->total - reasm->got)
        return AQ_IBV_REASM_BAD;
    memcpy(reasm->payload + fragment->at, fragment->data, fragment->head.nbytes);
    reasm->got += fragment->head.nbytes;
    if (reasm->got != reasm->total)
        return AQ_IBV_REASM_MORE;
    *open = NULL;
    *whole_out = reasm;
    return AQ_IBV_REASM_COMPLETE;
}
