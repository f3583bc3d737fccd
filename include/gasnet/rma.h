/*
 * rma.h - contiguous one-sided transfers.
 *
 * The inline part serves peers whose segment is mapped in this process: one load from the table
 * in the team, one predictable branch, one copy. For other peers it calls extended/aq_rma.c, which
 * uses the conduit's table.
 *
 * Common arguments:
 *   tm, rank  the peer: rank < gex_TM_QuerySize(tm); a jobrank if tm is a TM-pair
 *   remote address (dest of a put, src of a get): address at the owner; the range lies in the
 *             segment bound by the peer. Any alignment, any length.
 *   local address: any host memory of this process; may not overlap the remote range
 *   nbytes    bytes; 0 uses no address and completes at once
 *   lc_opt    when src may be reused: GEX_EVENT_NOW, GEX_EVENT_DEFER, GEX_EVENT_GROUP (NBI only)
 *             or where to store an event (NB only)
 *   flags     0 or GEX_FLAG_IMMEDIATE, GEX_FLAG_PEER_NEVER_*, GEX_FLAG_*_SEG_*
 *   Context   ordinary code, any thread in par; not in a handler, not holding an HSL
 *   Errors    none; a debug build ends the job on a range off the segment
 *
 * Source: GASNet-EX specification 0.19, RMA. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_RMA_H
#define GASNET_RMA_H 1

AQ_BEGIN_DECLS

/* Out of line: peers that are not mapped in this process. */
AQ_PUBLIC int aq_rma_put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                  size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC gex_Event_t aq_rma_put_nb(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags);
AQ_PUBLIC int aq_rma_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                             size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags);
AQ_PUBLIC int aq_rma_get_blocking(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src,
                                  size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC gex_Event_t aq_rma_get_nb(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src,
                                    size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC int aq_rma_get_nbi(gex_TM_t tm, void *dest, gex_Rank_t rank, const void *src,
                             size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC int aq_rma_put_val(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                             size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC gex_Event_t aq_rma_put_val_nb(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                        gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC int aq_rma_put_val_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                                 size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC gex_RMA_Value_t aq_rma_get_val(gex_TM_t tm, gex_Rank_t rank, const void *src,
                                         size_t nbytes, gex_Flags_t flags);

/* Debug builds: end the job if rank, range, length or context of a transfer is wrong. */
AQ_PUBLIC void aq_rma_check(const char *call, gex_TM_t tm, gex_Rank_t rank, const void *remote,
                            size_t nbytes, gex_Flags_t flags);
AQ_PUBLIC void aq_rma_check_local(const char *call, const char *what, const void *addr,
                                  size_t nbytes);
AQ_PUBLIC void aq_rma_check_lc(const char *call, const gex_Event_t *lc_opt, int is_nbi);
AQ_PUBLIC void aq_rma_check_val(const char *call, size_t nbytes);
#if GASNET_DEBUG
#define AQ_RMA_CHECK(call, tm, rank, remote, nbytes, flags) \
    aq_rma_check(call, tm, rank, remote, nbytes, flags)
#define AQ_RMA_CHECK_LOCAL(call, what, addr, nbytes) aq_rma_check_local(call, what, addr, nbytes)
#define AQ_RMA_CHECK_LC(call, lc_opt, is_nbi)        aq_rma_check_lc(call, lc_opt, is_nbi)
#define AQ_RMA_CHECK_VAL(call, nbytes)               aq_rma_check_val(call, nbytes)
#else
#define AQ_RMA_CHECK(call, tm, rank, remote, nbytes, flags) ((void)0)
#define AQ_RMA_CHECK_LOCAL(call, what, addr, nbytes)        ((void)0)
#define AQ_RMA_CHECK_LC(call, lc_opt, is_nbi)               ((void)0)
#define AQ_RMA_CHECK_VAL(call, nbytes)                      ((void)0)
#endif

/* Longer copies may use another function than memcpy(): see conduits/smp/aq_copy.c. */
#define AQ_COPY_LARGE ((size_t)1 << 20)
AQ_PUBLIC void aq_copy_large(void *dest, const void *src, size_t nbytes);

static inline AQ_UNUSED void aq_copy(void *dest, const void *src, size_t nbytes)
{
    if (AQ_UNLIKELY(nbytes >= AQ_COPY_LARGE))
        aq_copy_large(dest, src, nbytes);
    else
        memcpy(dest, src, nbytes);
}

/* The peer's address in this process, if delta says that it is mapped. */
static inline AQ_UNUSED char *aq_rma_ptr(intptr_t delta, const void *remote)
{
    return (char *)((uintptr_t)remote + (uintptr_t)delta);
}

static inline AQ_UNUSED int aq_lc_is_variable(const gex_Event_t *lc_opt)
{
    return (uintptr_t)lc_opt > (uintptr_t)GEX_EVENT_GROUP;
}

/* Put to and get from a mapped peer. The fences make the data visible before any later put (of a
 * flag, for instance), and the read older than any later get: no instruction on x86. */
static inline AQ_UNUSED void aq_rma_put_mapped(intptr_t delta, void *dest, const void *src,
                                               size_t nbytes)
{
    if (AQ_LIKELY(nbytes != 0)) /* without data no address is used */
        aq_copy(aq_rma_ptr(delta, dest), src, nbytes);
    aq_fence_release();
}

static inline AQ_UNUSED void aq_rma_get_mapped(intptr_t delta, void *dest, const void *src,
                                               size_t nbytes)
{
    if (AQ_LIKELY(nbytes != 0))
        aq_copy(dest, aq_rma_ptr(delta, src), nbytes);
    aq_fence_acquire();
}

/** gex_RMA_PutBlocking - copy nbytes from local src to remote dest; complete at return.
 *  Returns 0; non-zero only with IMMEDIATE if nothing was done. */
static inline AQ_UNUSED int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                                const void *src, size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutBlocking", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_PutBlocking", "source", src, nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_blocking(tm, rank, dest, src, nbytes, flags);
    aq_rma_put_mapped(delta, dest, src, nbytes);
    return 0;
}

/** gex_RMA_PutNB - start such a copy.
 *  Returns a root event; GEX_EVENT_INVALID if already complete; GEX_EVENT_NO_OP (only with
 *  IMMEDIATE) if nothing was started. */
static inline AQ_UNUSED AQ_MUST_USE gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank,
                                                              void *dest, const void *src,
                                                              size_t nbytes, gex_Event_t *lc_opt,
                                                              gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutNB", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_PutNB", "source", src, nbytes);
    AQ_RMA_CHECK_LC("gex_RMA_PutNB", lc_opt, 0);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_nb(tm, rank, dest, src, nbytes, lc_opt, flags);
    aq_rma_put_mapped(delta, dest, src, nbytes);
    if (aq_lc_is_variable(lc_opt))
        *lc_opt = GEX_EVENT_INVALID;
    return GEX_EVENT_INVALID;
}

/** gex_RMA_PutNBI - the same with implicit completion (GEX_EC_PUT; GEX_EC_LC with GROUP). */
static inline AQ_UNUSED int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                           const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                           gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutNBI", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_PutNBI", "source", src, nbytes);
    AQ_RMA_CHECK_LC("gex_RMA_PutNBI", lc_opt, 1);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_nbi(tm, rank, dest, src, nbytes, lc_opt, flags);
    aq_rma_put_mapped(delta, dest, src, nbytes);
    return 0;
}

/** gex_RMA_GetBlocking - copy nbytes from remote src to local dest; complete at return. */
static inline AQ_UNUSED int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank,
                                                const void *src, size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_GetBlocking", tm, rank, src, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_GetBlocking", "destination", dest, nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_get_blocking(tm, dest, rank, src, nbytes, flags);
    aq_rma_get_mapped(delta, dest, src, nbytes);
    return 0;
}

/** gex_RMA_GetNB - start such a copy; returns as gex_RMA_PutNB. */
static inline AQ_UNUSED AQ_MUST_USE gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest,
                                                              gex_Rank_t rank, const void *src,
                                                              size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_GetNB", tm, rank, src, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_GetNB", "destination", dest, nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_get_nb(tm, dest, rank, src, nbytes, flags);
    aq_rma_get_mapped(delta, dest, src, nbytes);
    return GEX_EVENT_INVALID;
}

/** gex_RMA_GetNBI - the same with implicit completion (GEX_EC_GET). */
static inline AQ_UNUSED int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank,
                                           const void *src, size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_GetNBI", tm, rank, src, nbytes, flags);
    AQ_RMA_CHECK_LOCAL("gex_RMA_GetNBI", "destination", dest, nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_get_nbi(tm, dest, rank, src, nbytes, flags);
    aq_rma_get_mapped(delta, dest, src, nbytes);
    return 0;
}

/* Offset of the nbytes low-order bytes of a value in memory. */
static inline AQ_UNUSED size_t aq_val_offset(size_t nbytes)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return SIZEOF_GEX_RMA_VALUE_T - nbytes;
#else
    (void)nbytes;
    return 0;
#endif
}

/* The common widths are single loads and stores: clients poll on words written this way. */
static inline AQ_UNUSED void aq_copy_val(void *dest, const void *src, size_t nbytes)
{
    switch (nbytes) {
    case 8:
        memcpy(dest, src, 8);
        break;
    case 4:
        memcpy(dest, src, 4);
        break;
    case 2:
        memcpy(dest, src, 2);
        break;
    case 1:
        memcpy(dest, src, 1);
        break;
    default:
        memcpy(dest, src, nbytes);
    }
}

/** gex_RMA_GetBlockingVal - the 1 to 8 bytes at src as a zero-extended value. */
static inline AQ_UNUSED AQ_MUST_USE gex_RMA_Value_t gex_RMA_GetBlockingVal(
    gex_TM_t tm, gex_Rank_t rank, const void *src, size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_GetBlockingVal", tm, rank, src, nbytes, flags);
    AQ_RMA_CHECK_VAL("gex_RMA_GetBlockingVal", nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];
    gex_RMA_Value_t value = 0;

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_get_val(tm, rank, src, nbytes, flags);
    aq_copy_val((char *)&value + aq_val_offset(nbytes), aq_rma_ptr(delta, src), nbytes);
    aq_fence_acquire();
    return value;
}

/** gex_RMA_PutBlockingVal - store the nbytes (1 to 8) low-order bytes of value at dest. */
static inline AQ_UNUSED int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                                   gex_RMA_Value_t value, size_t nbytes,
                                                   gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutBlockingVal", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_VAL("gex_RMA_PutBlockingVal", nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];
    const char *low = (const char *)&value + aq_val_offset(nbytes);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_val(tm, rank, dest, value, nbytes, flags);
    aq_copy_val(aq_rma_ptr(delta, dest), low, nbytes);
    aq_fence_release();
    return 0;
}

/** gex_RMA_PutNBVal - start such a store; the value is taken at the call. */
static inline AQ_UNUSED AQ_MUST_USE gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank,
                                                                 void *dest, gex_RMA_Value_t value,
                                                                 size_t nbytes, gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutNBVal", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_VAL("gex_RMA_PutNBVal", nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];
    const char *low = (const char *)&value + aq_val_offset(nbytes);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_val_nb(tm, rank, dest, value, nbytes, flags);
    aq_copy_val(aq_rma_ptr(delta, dest), low, nbytes);
    aq_fence_release();
    return GEX_EVENT_INVALID;
}

/** gex_RMA_PutNBIVal - the same with implicit completion (GEX_EC_PUT). */
static inline AQ_UNUSED int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                              gex_RMA_Value_t value, size_t nbytes,
                                              gex_Flags_t flags)
{
    AQ_RMA_CHECK("gex_RMA_PutNBIVal", tm, rank, dest, nbytes, flags);
    AQ_RMA_CHECK_VAL("gex_RMA_PutNBIVal", nbytes);
    intptr_t delta = aq_tm_deltas(tm)[rank];
    const char *low = (const char *)&value + aq_val_offset(nbytes);

    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_rma_put_val_nbi(tm, rank, dest, value, nbytes, flags);
    aq_copy_val(aq_rma_ptr(delta, dest), low, nbytes);
    aq_fence_release();
    return 0;
}

AQ_END_DECLS

#endif
