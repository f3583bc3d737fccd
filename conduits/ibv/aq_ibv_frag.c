/*
 * aq_ibv_frag.c - puts the fragments of a message together; see aq_ibv_frag.h.
 *
 * A medium payload is gathered in memory of this file, a long one at its destination.
 *
 * Owns      the pool of that memory
 * Threads   aq_ibv_reasm_add(): the caller's lock; the pool: its own lock
 * Uses      core/aq_bufpool.h, core/aq_fragment.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_frag.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_state.h"

static struct aq_bufpool aq_ibv_reasms AQ_JOB_STATE = { .keep = 64 };

static struct aq_ibv_reasm *aq_ibv_reasm_new(void)
{
    struct aq_ibv_reasm *reasm =
        aq_freelist_thing(aq_bufpool_take(&aq_ibv_reasms), offsetof(struct aq_ibv_reasm, item));

    return AQ_LIKELY(reasm != NULL) ? reasm : malloc(sizeof(*reasm) + AQ_IBV_MAX_MEDIUM);
}

void aq_ibv_reasm_release(struct aq_ibv_reasm *reasm)
{
    aq_bufpool_give(&aq_ibv_reasms, &reasm->item);
}

void aq_ibv_reasm_fini(void)
{
    aq_bufpool_fini(&aq_ibv_reasms, 1);
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
        aq_reassembly_open(&reasm->base, fragment->head.type, fragment->total,
                           is_long ? (void *)(uintptr_t)fragment->address : reasm->own);
        *open = reasm;
    }
    if (!aq_reassembly_matches(&reasm->base, fragment->head.type, fragment->total)
        || !aq_reassembly_follows(&reasm->base, fragment->at, fragment->head.nbytes))
        return AQ_IBV_REASM_BAD;
    memcpy((uint8_t *)reasm->base.payload + fragment->at, fragment->data, fragment->head.nbytes);
    if (!aq_reassembly_add(&reasm->base, fragment->head.nbytes))
        return AQ_IBV_REASM_MORE;
    *open = NULL;
    *whole_out = reasm;
    return AQ_IBV_REASM_COMPLETE;
}
