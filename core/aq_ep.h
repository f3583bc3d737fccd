/*
 * aq_ep.h - endpoints of this process, and what is known of the segments of all others.
 *
 * The segment of a process's primordial endpoint, attached or bound, is in aq_job.bound, which has
 * an entry for everybody. Segments of further endpoints are few: they are in a table with an entry
 * for each that was published to this process, and none for anybody else. This process's own need
 * no publishing. Uses aq_job.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_EP_H
#define AQ_EP_H

#include "core/aq_job.h"

/** aq_ep_at - an endpoint of this process, or NULL. */
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
 * aq_ep_register - gex_EP_RegisterHandlers() without its checks of the arguments; the messages name
 * call. Rows with AQ_AM_ANY_KIND and AQ_AM_ANY_NARGS (core/aq_am.h) admit every message.
 */
int aq_ep_register(const char *call, struct aq_ep *ep, gex_AM_Entry_t *table, size_t count);

/** aq_ep_release_segment - a segment ends; returns whether no endpoint names it. */
bool aq_ep_release_segment(struct aq_segment *segment);

/** aq_bound_learn - a process has published what it bound to an endpoint. AQ_OK or AQ_ERR_NOMEM. */
int aq_bound_learn(gex_Rank_t jobrank, gex_EP_Index_t index, struct aq_bound bound);

/** aq_bound_find - the segment of an endpoint, own or published; size 0: none that we know of. */
struct aq_bound aq_bound_find(gex_Rank_t jobrank, gex_EP_Index_t index);

/** aq_bound_is_self - is [addr, addr+nbytes) inside a segment bound by this process? */
bool aq_bound_is_self(const void *addr, size_t nbytes);

/**
 * aq_bound_check_long - a long message of jobrank has come for [dest, dest+nbytes): ends the job
 * unless that is inside a segment of this process. For conduits, before they place the payload;
 * with GASNET_SEGMENT_EVERYTHING any memory will do.
 */
void aq_bound_check_long(gex_Rank_t jobrank, const void *dest, size_t nbytes);

/** aq_bound_fini - the job has ended: forget what was published. */
void aq_bound_fini(void);

/** aq_ep_fini - the job has ended: free the further endpoints. */
void aq_ep_fini(void);

#endif
