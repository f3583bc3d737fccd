/*
 * gasnet1_vis.h - non-contiguous transfers of GASNet-1: vector, indexed, strided.
 *
 * gasnet_{put,get}{v,i,s}_bulk are complete at return; _nb_bulk returns a handle, _nbi_bulk joins
 * the implicit puts or gets or the open access region. "Bulk": sources may not be written and
 * destinations not read before the transfer was synchronised.
 *
 *   v  lists of {addr, len}: the source chunks, in list order, are one stream of bytes, which fills
 *      the destination chunks in list order; as many bytes on both sides
 *   i  lists of addresses; all chunks of a side have one length in bytes; the same mapping
 *   s  a section of an array: count[0] contiguous bytes; count[1] to count[stridelevels] say how
 *      often each level repeats; strides[i] is the distance in bytes between two neighbours of
 *      level i + 1. No levels: a plain copy, and the strides are not read. Any count of 0: nothing
 *      is transferred, whatever the addresses.
 *
 * Lists must not change until the transfer was synchronised; the arrays of a section may be reused
 * at return. Chunks of length 0 are legal anywhere. The remote side (dst of a put, src of a get)
 * lies in the node's segment. Context: ordinary code, as all transfers.
 *
 * Source: GASNet specification 1.8 with its extension for vectors.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_VIS_H
#define GASNET_GASNET1_VIS_H 1

AQ_BEGIN_DECLS

/* The list in the EX interface's type. */
static inline AQ_UNUSED const gex_Memvec_t *aq_gasnet1_memvec(const gasnet_memvec_t *list)
{
    return (const gex_Memvec_t *)(const void *)list;
}

/* Strides are not negative in this interface; those of the EX interface may be. */
static inline AQ_UNUSED const ptrdiff_t *aq_gasnet1_strides(const size_t *strides)
{
    return (const ptrdiff_t *)(const void *)strides;
}

/* --- vector --- */

/** gasnet_putv_bulk - vector put, complete at return. */
static inline AQ_UNUSED void gasnet_putv_bulk(gasnet_node_t dstnode, size_t dstcount,
                                              gasnet_memvec_t const dstlist[], size_t srccount,
                                              gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_putv_bulk");
    (void)gex_VIS_VectorPutBlocking(aq_gasnet1_tm, dstnode, dstcount, aq_gasnet1_memvec(dstlist),
                                    srccount, aq_gasnet1_memvec(srclist), 0);
}

/** gasnet_putv_nb_bulk - vector put, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                            gasnet_memvec_t const dstlist[],
                                                            size_t srccount,
                                                            gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_putv_nb_bulk");
    return gex_VIS_VectorPutNB(aq_gasnet1_tm, dstnode, dstcount, aq_gasnet1_memvec(dstlist),
                               srccount, aq_gasnet1_memvec(srclist), 0);
}

/** gasnet_putv_nbi_bulk - vector put, implicit. */
static inline AQ_UNUSED void gasnet_putv_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                  gasnet_memvec_t const dstlist[], size_t srccount,
                                                  gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_putv_nbi_bulk");
    (void)gex_VIS_VectorPutNBI(aq_gasnet1_tm, dstnode, dstcount, aq_gasnet1_memvec(dstlist),
                               srccount, aq_gasnet1_memvec(srclist), 0);
}

/** gasnet_getv_bulk - vector get, complete at return. */
static inline AQ_UNUSED void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                              gasnet_node_t srcnode, size_t srccount,
                                              gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_getv_bulk");
    (void)gex_VIS_VectorGetBlocking(aq_gasnet1_tm, dstcount, aq_gasnet1_memvec(dstlist), srcnode,
                                    srccount, aq_gasnet1_memvec(srclist), 0);
}

/** gasnet_getv_nb_bulk - vector get, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount,
                                                            gasnet_memvec_t const dstlist[],
                                                            gasnet_node_t srcnode, size_t srccount,
                                                            gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_getv_nb_bulk");
    return gex_VIS_VectorGetNB(aq_gasnet1_tm, dstcount, aq_gasnet1_memvec(dstlist), srcnode,
                               srccount, aq_gasnet1_memvec(srclist), 0);
}

/** gasnet_getv_nbi_bulk - vector get, implicit. */
static inline AQ_UNUSED void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                                  gasnet_node_t srcnode, size_t srccount,
                                                  gasnet_memvec_t const srclist[])
{
    AQ_GASNET1_CHECK("gasnet_getv_nbi_bulk");
    (void)gex_VIS_VectorGetNBI(aq_gasnet1_tm, dstcount, aq_gasnet1_memvec(dstlist), srcnode,
                               srccount, aq_gasnet1_memvec(srclist), 0);
}

/* --- indexed --- */

/** gasnet_puti_bulk - indexed put, complete at return. */
static inline AQ_UNUSED void gasnet_puti_bulk(gasnet_node_t dstnode, size_t dstcount,
                                              void *const dstlist[], size_t dstlen, size_t srccount,
                                              void *const srclist[], size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_puti_bulk");
    (void)gex_VIS_IndexedPutBlocking(aq_gasnet1_tm, dstnode, dstcount, dstlist, dstlen, srccount,
                                     srclist, srclen, 0);
}

/** gasnet_puti_nb_bulk - indexed put, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                            void *const dstlist[], size_t dstlen,
                                                            size_t srccount, void *const srclist[],
                                                            size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_puti_nb_bulk");
    return gex_VIS_IndexedPutNB(aq_gasnet1_tm, dstnode, dstcount, dstlist, dstlen, srccount,
                                srclist, srclen, 0);
}

/** gasnet_puti_nbi_bulk - indexed put, implicit. */
static inline AQ_UNUSED void gasnet_puti_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                  void *const dstlist[], size_t dstlen,
                                                  size_t srccount, void *const srclist[],
                                                  size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_puti_nbi_bulk");
    (void)gex_VIS_IndexedPutNBI(aq_gasnet1_tm, dstnode, dstcount, dstlist, dstlen, srccount,
                                srclist, srclen, 0);
}

/** gasnet_geti_bulk - indexed get, complete at return. */
static inline AQ_UNUSED void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
                                              gasnet_node_t srcnode, size_t srccount,
                                              void *const srclist[], size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_geti_bulk");
    (void)gex_VIS_IndexedGetBlocking(aq_gasnet1_tm, dstcount, dstlist, dstlen, srcnode, srccount,
                                     srclist, srclen, 0);
}

/** gasnet_geti_nb_bulk - indexed get, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[],
                                                            size_t dstlen, gasnet_node_t srcnode,
                                                            size_t srccount, void *const srclist[],
                                                            size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_geti_nb_bulk");
    return gex_VIS_IndexedGetNB(aq_gasnet1_tm, dstcount, dstlist, dstlen, srcnode, srccount,
                                srclist, srclen, 0);
}

/** gasnet_geti_nbi_bulk - indexed get, implicit. */
static inline AQ_UNUSED void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[],
                                                  size_t dstlen, gasnet_node_t srcnode,
                                                  size_t srccount, void *const srclist[],
                                                  size_t srclen)
{
    AQ_GASNET1_CHECK("gasnet_geti_nbi_bulk");
    (void)gex_VIS_IndexedGetNBI(aq_gasnet1_tm, dstcount, dstlist, dstlen, srcnode, srccount,
                                srclist, srclen, 0);
}

/* --- strided: the EX calls have count[0] as an argument of its own --- */

static inline AQ_UNUSED const size_t *aq_gasnet1_counts(const size_t *count, size_t stridelevels)
{
    return stridelevels == 0 ? NULL : count + 1; /* not past the end of an array of one */
}

/** gasnet_puts_bulk - strided put, complete at return. */
static inline AQ_UNUSED void gasnet_puts_bulk(gasnet_node_t dstnode, void *dstaddr,
                                              const size_t dststrides[], void *srcaddr,
                                              const size_t srcstrides[], const size_t count[],
                                              size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_puts_bulk");
    (void)gex_VIS_StridedPutBlocking(aq_gasnet1_tm, dstnode, dstaddr,
                                     aq_gasnet1_strides(dststrides), srcaddr,
                                     aq_gasnet1_strides(srcstrides), count[0],
                                     aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

/** gasnet_puts_nb_bulk - strided put, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t
gasnet_puts_nb_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[], void *srcaddr,
                    const size_t srcstrides[], const size_t count[], size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_puts_nb_bulk");
    return gex_VIS_StridedPutNB(aq_gasnet1_tm, dstnode, dstaddr, aq_gasnet1_strides(dststrides),
                                srcaddr, aq_gasnet1_strides(srcstrides), count[0],
                                aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

/** gasnet_puts_nbi_bulk - strided put, implicit. */
static inline AQ_UNUSED void gasnet_puts_nbi_bulk(gasnet_node_t dstnode, void *dstaddr,
                                                  const size_t dststrides[], void *srcaddr,
                                                  const size_t srcstrides[], const size_t count[],
                                                  size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_puts_nbi_bulk");
    (void)gex_VIS_StridedPutNBI(aq_gasnet1_tm, dstnode, dstaddr, aq_gasnet1_strides(dststrides),
                                srcaddr, aq_gasnet1_strides(srcstrides), count[0],
                                aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

/** gasnet_gets_bulk - strided get, complete at return. */
static inline AQ_UNUSED void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[],
                                              gasnet_node_t srcnode, void *srcaddr,
                                              const size_t srcstrides[], const size_t count[],
                                              size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_gets_bulk");
    (void)gex_VIS_StridedGetBlocking(aq_gasnet1_tm, dstaddr, aq_gasnet1_strides(dststrides),
                                     srcnode, srcaddr, aq_gasnet1_strides(srcstrides), count[0],
                                     aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

/** gasnet_gets_nb_bulk - strided get, returns a handle. */
static inline AQ_UNUSED gasnet_handle_t
gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode, void *srcaddr,
                    const size_t srcstrides[], const size_t count[], size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_gets_nb_bulk");
    return gex_VIS_StridedGetNB(aq_gasnet1_tm, dstaddr, aq_gasnet1_strides(dststrides), srcnode,
                                srcaddr, aq_gasnet1_strides(srcstrides), count[0],
                                aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

/** gasnet_gets_nbi_bulk - strided get, implicit. */
static inline AQ_UNUSED void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[],
                                                  gasnet_node_t srcnode, void *srcaddr,
                                                  const size_t srcstrides[], const size_t count[],
                                                  size_t stridelevels)
{
    AQ_GASNET1_CHECK("gasnet_gets_nbi_bulk");
    (void)gex_VIS_StridedGetNBI(aq_gasnet1_tm, dstaddr, aq_gasnet1_strides(dststrides), srcnode,
                                srcaddr, aq_gasnet1_strides(srcstrides), count[0],
                                aq_gasnet1_counts(count, stridelevels), stridelevels, 0);
}

AQ_END_DECLS

#endif
