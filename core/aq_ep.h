/*
 * aq_ep.h - endpoints of this process, and the known segments of other processes.
 *
 * The segment of a process's primordial endpoint, attached or bound, is in aq_job.bound, which has
 * an entry for every rank. Segments of further endpoints are few: a table has an entry for each one
 * that was published to this process. This process's own segments need no publishing.
 * Uses aq_job.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_EP_H
#define AQ_EP_H

#include "core/aq_job.h"

/** aq_ep_at - returns an endpoint of this process, or NULL. */
static inline struct aq_ep *aq_ep_at(gex_EP_Index_t index)
{
    if (index == 0)
        return &aq_job.ep;
    if (index >= GASNET_MAXEPS)
        return NULL;
    /* acquire: pairs with the release where it is made */
    return atomic_load_explicit(&aq_job.further[index], memory_order_acquire);
}

/**
 * aq_ep_register - gex_EP_RegisterHandlers() without its checks of the arguments; call is the name
 * in messages. Rows with AQ_AM_ANY_KIND and AQ_AM_ANY_NARGS (core/aq_am.h) accept every message.
 */
int aq_ep_register(const char *call, struct aq_ep *ep, gex_AM_Entry_t *table, size_t count);

/** aq_ep_release_segment - a segment ends; returns true if no endpoint refers to it. */
bool aq_ep_release_segment(struct aq_segment *segment);

/** aq_bound_learn - a process has published a bound segment. AQ_OK or AQ_ERR_NOMEM. */
int aq_bound_learn(gex_Rank_t jobrank, gex_EP_Index_t index, struct aq_bound bound);

/** aq_bound_find - the segment of an endpoint, own or published; size 0: none is known. */
struct aq_bound aq_bound_find(gex_Rank_t jobrank, gex_EP_Index_t index);

/** aq_bound_kind - the kind of memory of the segment that this process has bound and that contains
 *  [addr, addr+nbytes); NULL: none does. */
const struct aq_mk_ops *aq_bound_kind(const void *addr, size_t nbytes);

/** aq_mk_at - the same for any memory of this process: what is in no segment is the host's. */
static inline const struct aq_mk_ops *aq_mk_at(const void *addr, size_t nbytes)
{
    const struct aq_mk_ops *mk = aq_bound_kind(addr, nbytes);

    return mk == NULL ? &aq_mk_host : mk;
}

/** aq_bound_is_self - is [addr, addr+nbytes) inside a segment bound by this process? */
bool aq_bound_is_self(const void *addr, size_t nbytes);

/**
 * aq_bound_check_long - checks the destination [dest, dest+nbytes) of a long message from jobrank.
 * Ends the job unless it is inside a segment of this process; with GASNET_SEGMENT_EVERYTHING any
 * memory is legal. Conduits call it before they place the payload.
 */
void aq_bound_check_long(gex_Rank_t jobrank, const void *dest, size_t nbytes);

/** aq_bound_place_long - check it so, and copy the payload there. */
void aq_bound_place_long(gex_Rank_t jobrank, void *dest, const void *payload, size_t nbytes);

/** aq_bound_fini - the job has ended: forget what was published. */
void aq_bound_fini(void);

/** aq_ep_fini - the job has ended: frees the further endpoints. */
void aq_ep_fini(void);

#endif
