/*
 * vis.h - vector, indexed and strided one-sided transfers.
 *
 * The data mapping. Both sides of a vector or indexed transfer are lists of chunks; the chunks of
 * the source, in list order, are one stream of bytes, which fills the chunks of the destination
 * in list order. Chunk boundaries need not match; the sums of the lengths must. Chunks of a vector
 * have any length, 0 included; all of one side of an indexed transfer have the same.
 * A strided transfer copies elemsz bytes for every index (i[0], .., i[stridelevels-1]), i[d] <
 * count[d], from srcaddr + sum of i[d]*srcstrides[d] to dstaddr + sum of i[d]*dststrides[d]:
 * strides are bytes, of any sign and order; a source stride may be 0.
 *
 * Common arguments:
 *   tm, rank  the peer (dstrank of a put, srcrank of a get): rank < gex_TM_QuerySize(tm); a jobrank
 *             if tm is a TM-pair
 *   remote addresses (the destination of a put, the source of a get): addresses at the owner; every
 *             byte touched lies in the segment bound by the peer. Any alignment
 *   local addresses: any host memory of this process
 *             No byte of the destination may overlap another or the source; sources may overlap.
 *   dstlist, srclist  must not change until the transfer is complete; dststrides, srcstrides and
 *             count are read before the call returns
 *   nothing to copy (a count, elemsz or every length 0): no address, list or peer is used
 *   flags     0 or GEX_FLAG_IMMEDIATE, GEX_FLAG_*_SEG_*; for NB and NBI puts
 *             GEX_FLAG_ENABLE_LEAF_LC: gex_Event_QueryLeaf(root, GEX_EC_LC), or GEX_EC_LC of
 *             gex_NBI_* and of the access region's event, then say when the source may be reused.
 *             Without the flag it may be reused when the put is complete
 *   Context   ordinary code, any thread in par; not in a handler, not holding an HSL
 *   Errors    none; a debug build ends the job on a range off the segment or lengths that differ
 *   Returns   Blocking and NBI: 0, or non-zero (only with GEX_FLAG_IMMEDIATE) if nothing was done.
 *             NB: a root event; GEX_EVENT_INVALID if already complete; GEX_EVENT_NO_OP (only with
 *             GEX_FLAG_IMMEDIATE) if nothing was started
 *
 * Source: GASNet-EX specification 0.19, VIS. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_VIS_PART_H
#define GASNET_VIS_PART_H 1

AQ_BEGIN_DECLS

/** gex_VIS_VectorPut* - copy the chunks of local srclist to those of remote dstlist. */
AQ_PUBLIC int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                        gex_Memvec_t const dstlist[], size_t srccount,
                                        gex_Memvec_t const srclist[], gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                          gex_Memvec_t const dstlist[], size_t srccount,
                                          gex_Memvec_t const srclist[],
                                          gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                   gex_Memvec_t const dstlist[], size_t srccount,
                                   gex_Memvec_t const srclist[], gex_Flags_t flags);

/** gex_VIS_VectorGet* - copy the chunks of remote srclist to those of local dstlist. */
AQ_PUBLIC int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                        gex_Rank_t srcrank, size_t srccount,
                                        gex_Memvec_t const srclist[], gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dstcount,
                                          gex_Memvec_t const dstlist[], gex_Rank_t srcrank,
                                          size_t srccount, gex_Memvec_t const srclist[],
                                          gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                   gex_Rank_t srcrank, size_t srccount,
                                   gex_Memvec_t const srclist[], gex_Flags_t flags);

/** gex_VIS_IndexedPut* - the same put; chunks have dstlen bytes at the peer, srclen bytes
 * locally. */
AQ_PUBLIC int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                         void *const dstlist[], size_t dstlen, size_t srccount,
                                         void *const srclist[], size_t srclen, gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                           void *const dstlist[], size_t dstlen, size_t srccount,
                                           void *const srclist[], size_t srclen,
                                           gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                    void *const dstlist[], size_t dstlen, size_t srccount,
                                    void *const srclist[], size_t srclen, gex_Flags_t flags);

/** gex_VIS_IndexedGet* - the same get; chunks have dstlen bytes locally, srclen bytes at the
 * peer. */
AQ_PUBLIC int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dstcount, void *const dstlist[],
                                         size_t dstlen, gex_Rank_t srcrank, size_t srccount,
                                         void *const srclist[], size_t srclen, gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dstcount, void *const dstlist[],
                                           size_t dstlen, gex_Rank_t srcrank, size_t srccount,
                                           void *const srclist[], size_t srclen,
                                           gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dstcount, void *const dstlist[],
                                    size_t dstlen, gex_Rank_t srcrank, size_t srccount,
                                    void *const srclist[], size_t srclen, gex_Flags_t flags);

/** gex_VIS_StridedPut* - copy a section of a local array to one of a remote array. With
 * stridelevels 0 the three arrays are not read: one element. */
AQ_PUBLIC int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                         const ptrdiff_t dststrides[], void *srcaddr,
                                         const ptrdiff_t srcstrides[], size_t elemsz,
                                         const size_t count[], size_t stridelevels,
                                         gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                           const ptrdiff_t dststrides[], void *srcaddr,
                                           const ptrdiff_t srcstrides[], size_t elemsz,
                                           const size_t count[], size_t stridelevels,
                                           gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                    const ptrdiff_t dststrides[], void *srcaddr,
                                    const ptrdiff_t srcstrides[], size_t elemsz,
                                    const size_t count[], size_t stridelevels, gex_Flags_t flags);

/** gex_VIS_StridedGet* - copy a section of a remote array to one of a local array. */
AQ_PUBLIC int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                         gex_Rank_t srcrank, void *srcaddr,
                                         const ptrdiff_t srcstrides[], size_t elemsz,
                                         const size_t count[], size_t stridelevels,
                                         gex_Flags_t flags);
AQ_PUBLIC gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                           gex_Rank_t srcrank, void *srcaddr,
                                           const ptrdiff_t srcstrides[], size_t elemsz,
                                           const size_t count[], size_t stridelevels,
                                           gex_Flags_t flags) AQ_MUST_USE;
AQ_PUBLIC int gex_VIS_StridedGetNBI(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                    gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                                    size_t elemsz, const size_t count[], size_t stridelevels,
                                    gex_Flags_t flags);

/* The largest payload of a peer completion, in bytes. */
#define GEX_VIS_MAX_PEERCOMPLETION 127

/**
 * gex_VIS_SetPeerCompletionHandler - send a message after this thread's next VIS put.
 * handler      index at the peer, registered for Medium replies without arguments; it runs at the
 *              peer once the put's data is in place. 0: cancel
 * source_addr  the message's payload; must not change until the put is complete or, with
 *              GEX_FLAG_ENABLE_LEAF_LC, locally complete
 * nbytes       at most GEX_VIS_MAX_PEERCOMPLETION; 0 uses no address
 * flags        0
 * Context      as for the puts. Exactly one message is sent for each call, after an empty put too;
 *              a later call replaces an earlier one. The put has no GEX_FLAG_IMMEDIATE; no VIS get
 *              comes before it
 */
AQ_PUBLIC void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source_addr,
                                                size_t nbytes, gex_Flags_t flags);

AQ_END_DECLS

#endif
