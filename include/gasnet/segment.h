/*
 * segment.h - segments: the memory that other processes may access.
 *
 * Source: GASNet-EX specification 0.19, Segments; bound-segment query.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_SEGMENT_H
#define GASNET_SEGMENT_H 1

AQ_BEGIN_DECLS

/* A client may define the first two itself. The attach hook is called with the new segment, before
 * any page of it is touched, so that a memory policy can be set. */
extern AQ_PUBLIC const char *gasnet_max_segsize_str;
extern AQ_PUBLIC uint64_t gasnet_max_segsize;
extern AQ_PUBLIC void (*gasnet_client_attach_hook)(void *base, uintptr_t size);

/** gasnet_getMaxLocalSegmentSize - the largest segment this process may attach, in bytes. */
AQ_PUBLIC uintptr_t gasnet_getMaxLocalSegmentSize(void);
/** gasnet_getMaxGlobalSegmentSize - the minimum of those values over the job, in bytes. */
AQ_PUBLIC uintptr_t gasnet_getMaxGlobalSegmentSize(void);

/**
 * gex_Segment_Attach - make this process's segment and publish it to the job.
 * segment_p  output
 * tm         the primordial team
 * size       bytes; a non-zero multiple of GASNET_PAGESIZE, at most
 *            gasnet_getMaxLocalSegmentSize(); may differ between processes
 * Context    collective over tm, once; contains a barrier
 * Returns GASNET_OK, GASNET_ERR_BAD_ARG or GASNET_ERR_RESOURCE (a message gives figures).
 */
AQ_PUBLIC int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size);

/**
 * gex_Segment_Create - make a segment for further endpoints (gex_EP_BindSegment).
 * segment_p  output; written on success only
 * client     the job's client
 * addr       NULL: the library allocates; else the client's memory, of any alignment, readable and
 *            writable until the segment is destroyed; its contents are not changed
 * length     bytes, not 0; what the library allocates is at most
 *            gasnet_getMaxLocalSegmentSize() and rounded up to pages
 * kind       GEX_MK_HOST
 * flags      0
 * Context    ordinary code; not collective
 * Returns GASNET_OK, GASNET_ERR_BAD_ARG or GASNET_ERR_RESOURCE.
 */
AQ_PUBLIC int gex_Segment_Create(gex_Segment_t *segment_p, gex_Client_t client, gex_Addr_t addr,
                                 uintptr_t length, gex_MK_t kind, gex_Flags_t flags);

/**
 * gex_Segment_Destroy - end a segment made by gex_Segment_Create, and free memory that the library
 * allocated for it.
 * flags      0
 * Context    ordinary code; not collective. No process uses the segment any more. Endpoints that it
 *            is bound to stay bound, to an empty segment.
 */
AQ_PUBLIC void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);

/** gex_Segment_QueryClient - the owner. Legal in every context, like the next four. */
AQ_PUBLIC gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment);
/** gex_Segment_QueryFlags - flags at creation. */
AQ_PUBLIC gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment);
/** gex_Segment_QueryAddr - base address in this process. */
AQ_PUBLIC void *gex_Segment_QueryAddr(gex_Segment_t segment);
/** gex_Segment_QuerySize - length in bytes. */
AQ_PUBLIC uintptr_t gex_Segment_QuerySize(gex_Segment_t segment);
/** gex_Segment_SetCData, gex_Segment_QueryCData - one pointer of the client's. */
AQ_PUBLIC void gex_Segment_SetCData(gex_Segment_t segment, const void *val);
AQ_PUBLIC void *gex_Segment_QueryCData(gex_Segment_t segment);

/**
 * gex_EP_QueryBoundSegmentNB - address and size of a peer's segment.
 * tm, rank  the peer; tm may be a TM-pair
 * owneraddr_p  base address at the owner
 * localaddr_p  base address as mapped in this process, or NULL
 * size_p       bytes; 0: the query did not succeed. Each output may be NULL.
 * flags     0, or GEX_FLAG_IMMEDIATE: never communicates, legal in every context
 * Returns an event; outputs are defined once it is synchronised.
 */
AQ_PUBLIC gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                                 void **localaddr_p, uintptr_t *size_p,
                                                 gex_Flags_t flags) AQ_MUST_USE;

/**
 * gex_Segment_QueryBound - blocking form of the query above (deprecated).
 * Returns 0 on success; otherwise non-zero, and the outputs are left as they were.
 */
AQ_PUBLIC int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                     void **localaddr_p, uintptr_t *size_p);

/**
 * gasnet_getSegmentInfo - every process's segment, with addresses at the owners.
 * table, numentries  filled for process i < min(numentries, job size)
 * Returns GASNET_OK, or GASNET_ERR_BAD_ARG for a negative count. After attach.
 */
AQ_PUBLIC int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);

AQ_END_DECLS

#endif
