/*
 * ep.h - endpoints: the local end of every communication, with its handler table.
 *
 * Source: GASNet-EX specification 0.19, Endpoints; AM handlers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_EP_H
#define GASNET_EP_H 1

AQ_BEGIN_DECLS

/**
 * gex_EP_Create - make a further endpoint of this process.
 * ep_p    output; written on success only
 * client  the job's client
 * caps    GEX_EP_CAPABILITY_RMA: further endpoints serve put and get, and are in no team
 * flags   GEX_FLAG_HINT_ACCEL_*, or 0; the hints have no effect Context ordinary code; not
 * collective Returns GASNET_OK; GASNET_ERR_BAD_ARG for other capabilities or none;
 * GASNET_ERR_RESOURCE if there are GASNET_MAXEPS endpoints already. Indices are 1, 2, 3, ... in
 * order; a failure uses none. The interface has no call that frees an endpoint.
 */
AQ_PUBLIC int gex_EP_Create(gex_EP_t *ep_p, gex_Client_t client, gex_EP_Capabilities_t caps,
                            gex_Flags_t flags);

/**
 * gex_EP_BindSegment - give an endpoint its segment, once.
 * ep, segment  one segment may be bound to several endpoints
 * flags   0
 * Context ordinary code; not collective. Other processes reach it after gex_EP_PublishBoundSegment.
 * The primordial endpoint can have a bound segment instead of an attached one: teams, messages and
 * atomics reach it. The ranks of its host do not map it.
 * Returns GASNET_OK; GASNET_ERR_BAD_ARG if the endpoint has a segment, if a handle is INVALID, or
 * flags are not 0; gex_EP_QuerySegment(ep) then returns what it did before.
 */
AQ_PUBLIC int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);

/**
 * gex_EP_PublishBoundSegment - publish the segments of endpoints to the members of a team.
 * tm      the team
 * eps, num_eps  this process's endpoints, distinct. Each caller has its own number, which may be 0,
 *               also with NULL. Endpoints without a segment are skipped; a later call may publish
 *               it
 * flags   0
 * Context collective over tm
 * Returns GASNET_OK, or GASNET_ERR_RESOURCE: no memory, or the primordial endpoint of a rank that
 * shares memory with this one has a bound segment, and the kernel does not let this process write
 * there. The callers may now use put and get on those segments through gex_TM_Pair, and on those of
 * primordial endpoints through teams, also after the team is destroyed.
 */
AQ_PUBLIC int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t num_eps,
                                         gex_Flags_t flags);

/** gex_EP_QueryClient - the owner. Legal in every context, like the next five. */
AQ_PUBLIC gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
/** gex_EP_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
/** gex_EP_QuerySegment - the bound segment, or GEX_SEGMENT_INVALID. */
AQ_PUBLIC gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
/** gex_EP_QueryIndex - index in this process: 0 for the primordial endpoint. */
AQ_PUBLIC gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
/** gex_EP_SetCData, gex_EP_QueryCData - one pointer of the client's. */
AQ_PUBLIC void gex_EP_SetCData(gex_EP_t ep, const void *val);
AQ_PUBLIC void *gex_EP_QueryCData(gex_EP_t ep);

/**
 * gex_EP_RegisterHandlers - fill in entries of an endpoint's handler table.
 * ep     the endpoint
 * table  rows; those with gex_index 0 get the highest free index, written back in the row
 * numentries  rows in table; 0 succeeds for any table
 * Context ordinary code; not collective, any number of times, from any thread in par
 * Returns GASNET_OK; GASNET_ERR_BAD_ARG for a bad row or an index in use;
 * GASNET_ERR_RESOURCE if no index is free. On failure nothing is registered.
 */
AQ_PUBLIC int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t numentries);

AQ_END_DECLS

#endif
