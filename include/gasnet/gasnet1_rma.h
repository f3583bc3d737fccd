/*
 * gasnet1_rma.h - put, get and memset of GASNet-1: blocking, with a handle, implicit, by value.
 *
 * Common arguments:
 *   node      the target: node < gasnet_nodes()
 *   remote address (dest of a put, src of a get): address at the owner; the range lies in the
 *             target's segment. Any alignment, in the forms without _bulk too.
 *   local address: any memory of this process; may not overlap the remote range
 *   nbytes    bytes; 0 uses no address and completes at once
 *   Context   ordinary code, any thread in par; not in a handler, not holding a lock
 *   Errors    none; a debug build ends the job on a range off the segment
 *
 * Effect of _bulk: the source of a non-blocking put without _bulk may be reused at return; with
 * _bulk, after the put was synchronised. Other calls are equal with and without it.
 *
 * Source: GASNet specification 1.8, Extended API. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_RMA_H
#define GASNET_GASNET1_RMA_H 1

AQ_BEGIN_DECLS

/* --- blocking --- */

/** gasnet_get - copy nbytes from src on node to local dest; complete at return. */
static inline AQ_UNUSED void gasnet_get(void *dest, gasnet_node_t node, const void *src,
                                        size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get", node, src, nbytes);
    (void)gex_RMA_GetBlocking(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/** gasnet_get_bulk - the same. */
static inline AQ_UNUSED void gasnet_get_bulk(void *dest, gasnet_node_t node, const void *src,
                                             size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get_bulk", node, src, nbytes);
    (void)gex_RMA_GetBlocking(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/** gasnet_put - copy nbytes from local src to dest on node; complete at the target at return. */
static inline AQ_UNUSED void gasnet_put(gasnet_node_t node, void *dest, const void *src,
                                        size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put", node, dest, nbytes);
    (void)gex_RMA_PutBlocking(aq_gasnet1_tm, node, dest, src, nbytes, 0);
}

/** gasnet_put_bulk - the same. */
static inline AQ_UNUSED void gasnet_put_bulk(gasnet_node_t node, void *dest, const void *src,
                                             size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put_bulk", node, dest, nbytes);
    (void)gex_RMA_PutBlocking(aq_gasnet1_tm, node, dest, src, nbytes, 0);
}

/* --- with a handle, to be synchronised once; GASNET_INVALID_HANDLE if complete already --- */

/** gasnet_put_nb - start a put; src may be reused at return. */
static inline AQ_UNUSED gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest,
                                                      const void *src, size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put_nb", node, dest, nbytes);
    return gex_RMA_PutNB(aq_gasnet1_tm, node, dest, src, nbytes, GEX_EVENT_NOW, 0);
}

/** gasnet_put_nb_bulk - start a put; src must not change until the handle is synchronised. */
static inline AQ_UNUSED gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void *dest,
                                                           const void *src, size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put_nb_bulk", node, dest, nbytes);
    return gex_RMA_PutNB(aq_gasnet1_tm, node, dest, src, nbytes, GEX_EVENT_DEFER, 0);
}

/** gasnet_get_nb - start a get. */
static inline AQ_UNUSED gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node,
                                                      const void *src, size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get_nb", node, src, nbytes);
    return gex_RMA_GetNB(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/** gasnet_get_nb_bulk - the same. */
static inline AQ_UNUSED gasnet_handle_t gasnet_get_nb_bulk(void *dest, gasnet_node_t node,
                                                           const void *src, size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get_nb_bulk", node, src, nbytes);
    return gex_RMA_GetNB(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/* --- implicit: synchronised together, as puts or as gets of the calling thread --- */

/** gasnet_put_nbi - start a put; src may be reused at return. */
static inline AQ_UNUSED void gasnet_put_nbi(gasnet_node_t node, void *dest, const void *src,
                                            size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put_nbi", node, dest, nbytes);
    (void)gex_RMA_PutNBI(aq_gasnet1_tm, node, dest, src, nbytes, GEX_EVENT_NOW, 0);
}

/** gasnet_put_nbi_bulk - start a put; src must not change until it is synchronised. */
static inline AQ_UNUSED void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, const void *src,
                                                 size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_put_nbi_bulk", node, dest, nbytes);
    (void)gex_RMA_PutNBI(aq_gasnet1_tm, node, dest, src, nbytes, GEX_EVENT_DEFER, 0);
}

/** gasnet_get_nbi - start a get. */
static inline AQ_UNUSED void gasnet_get_nbi(void *dest, gasnet_node_t node, const void *src,
                                            size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get_nbi", node, src, nbytes);
    (void)gex_RMA_GetNBI(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/** gasnet_get_nbi_bulk - the same. */
static inline AQ_UNUSED void gasnet_get_nbi_bulk(void *dest, gasnet_node_t node, const void *src,
                                                 size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_get_nbi_bulk", node, src, nbytes);
    (void)gex_RMA_GetNBI(aq_gasnet1_tm, dest, node, src, nbytes, 0);
}

/* --- memset: counts as a put --- */

/* Out of line: peers that are not mapped in this process. */
AQ_PUBLIC void aq_gasnet1_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);
AQ_PUBLIC gasnet_handle_t aq_gasnet1_memset_nb(gasnet_node_t node, void *dest, int val,
                                               size_t nbytes);
AQ_PUBLIC void aq_gasnet1_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);

static inline AQ_UNUSED intptr_t aq_gasnet1_delta(gasnet_node_t node)
{
    return aq_tm_deltas(aq_gasnet1_tm)[node];
}

static inline AQ_UNUSED void aq_gasnet1_memset_mapped(intptr_t delta, void *dest, int val,
                                                      size_t nbytes)
{
    if (AQ_LIKELY(nbytes != 0))
        memset(aq_rma_ptr(delta, dest), val, nbytes);
    aq_fence_release(); /* as a put: visible before any later one */
}

/** gasnet_memset - fill nbytes at dest on node with the low 8 bits of val. */
static inline AQ_UNUSED void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_memset", node, dest, nbytes);
    const intptr_t delta = aq_gasnet1_delta(node);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        aq_gasnet1_memset(node, dest, val, nbytes);
    else
        aq_gasnet1_memset_mapped(delta, dest, val, nbytes);
}

/** gasnet_memset_nb - start such a fill; returns a handle as gasnet_put_nb. */
static inline AQ_UNUSED gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val,
                                                         size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_memset_nb", node, dest, nbytes);
    const intptr_t delta = aq_gasnet1_delta(node);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_gasnet1_memset_nb(node, dest, val, nbytes);
    aq_gasnet1_memset_mapped(delta, dest, val, nbytes);
    return GASNET_INVALID_HANDLE;
}

/** gasnet_memset_nbi - the same as an implicit put. */
static inline AQ_UNUSED void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val,
                                               size_t nbytes)
{
    AQ_GASNET1_CHECK_RMA("gasnet_memset_nbi", node, dest, nbytes);
    const intptr_t delta = aq_gasnet1_delta(node);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        aq_gasnet1_memset_nbi(node, dest, val, nbytes);
    else
        aq_gasnet1_memset_mapped(delta, dest, val, nbytes);
}

/* --- values of 1 to SIZEOF_GASNET_REGISTER_VALUE_T bytes --- */

/** gasnet_put_val - store the nbytes low-order bytes of value at dest on node. */
static inline AQ_UNUSED void gasnet_put_val(gasnet_node_t node, void *dest,
                                            gasnet_register_value_t value, size_t nbytes)
{
    AQ_GASNET1_CHECK_VAL("gasnet_put_val", node, dest, nbytes);
    (void)gex_RMA_PutBlockingVal(aq_gasnet1_tm, node, dest, value, nbytes, 0);
}

/** gasnet_put_nb_val - start such a store. */
static inline AQ_UNUSED gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void *dest,
                                                          gasnet_register_value_t value,
                                                          size_t nbytes)
{
    AQ_GASNET1_CHECK_VAL("gasnet_put_nb_val", node, dest, nbytes);
    return gex_RMA_PutNBVal(aq_gasnet1_tm, node, dest, value, nbytes, 0);
}

/** gasnet_put_nbi_val - the same as an implicit put. */
static inline AQ_UNUSED void gasnet_put_nbi_val(gasnet_node_t node, void *dest,
                                                gasnet_register_value_t value, size_t nbytes)
{
    AQ_GASNET1_CHECK_VAL("gasnet_put_nbi_val", node, dest, nbytes);
    (void)gex_RMA_PutNBIVal(aq_gasnet1_tm, node, dest, value, nbytes, 0);
}

/** gasnet_get_val - the nbytes at src on node as a value, zero-extended. */
static inline AQ_UNUSED gasnet_register_value_t gasnet_get_val(gasnet_node_t node, const void *src,
                                                               size_t nbytes)
{
    AQ_GASNET1_CHECK_VAL("gasnet_get_val", node, src, nbytes);
    return gex_RMA_GetBlockingVal(aq_gasnet1_tm, node, src, nbytes, 0);
}

/**
 * gasnet_get_nb_val - start getting a value.
 * Returns a handle, which must be passed to gasnet_wait_syncnb_valget() once; any number may be
 * outstanding. Access regions do not include it.
 */
AQ_PUBLIC gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, const void *src,
                                                   size_t nbytes);
/** gasnet_wait_syncnb_valget - poll until the value has arrived, and return it. */
AQ_PUBLIC gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

AQ_END_DECLS

#endif
