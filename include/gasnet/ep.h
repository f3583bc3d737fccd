/*
 * ep.h - endpoints: the local end of every communication, with its handler table.
 *
 * Source: GASNet-EX specification 0.19, Endpoints; AM handlers. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_EP_H
#define GASNET_EP_H 1

AQ_BEGIN_DECLS

/** gex_EP_QueryClient - the owner. Legal in every context, like the next five. */
AQ_PUBLIC gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
/** gex_EP_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
/** gex_EP_QuerySegment - the bound segment, or GEX_SEGMENT_INVALID. */
AQ_PUBLIC gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep);
/** gex_EP_QueryIndex - index in this process: 0 for the primordial endpoint. */
AQ_PUBLIC gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
/** gex_EP_SetCData, gex_EP_QueryCData - the client's own pointer. */
AQ_PUBLIC void gex_EP_SetCData(gex_EP_t ep, const void *val);
AQ_PUBLIC void *gex_EP_QueryCData(gex_EP_t ep);

/**
 * gex_EP_RegisterHandlers - fill entries of an endpoint's handler table.
 * ep     the endpoint
 * table  rows; those with gex_index 0 get the highest free index, written back in the row
 * numentries  rows in table; 0 is a success whatever table is
 * Context ordinary code; not collective, any number of times, from any thread in par
 * Returns GASNET_OK; GASNET_ERR_BAD_ARG for a bad row or an index in use;
 * GASNET_ERR_RESOURCE if no index is free. On failure nothing is registered.
 */
AQ_PUBLIC int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t numentries);

AQ_END_DECLS

#endif
