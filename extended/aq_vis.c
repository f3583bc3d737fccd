/*
 * aq_vis.c - non-contiguous transfers: the eighteen calls of gex_VIS_*.
 *
 * Owns      each thread's armed peer completion
 * Threads   any
 * Uses      aq_vis_call.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_call.h"

#include "base/aq_log.h"
#include "core/aq_thread.h"

#define AQ_VIS_FAMILY(stem, trace_kind, put)                                                      \
    {                                                                                             \
        .name = { #stem "Blocking", #stem "NB", #stem "NBI" },                                    \
        .blocking = { .waits_in = #stem "Blocking", .name = #stem "Blocking", .hides_lc = true }, \
        .nb = { .waits_in = "gex_Event_Wait (" #stem "NB)",                                       \
                .name = #stem "NB",                                                               \
                .hides_lc = true },                                                               \
        .nb_leaf = { .waits_in = "gex_Event_Wait (" #stem "NB)", .name = #stem "NB" },            \
        .trace = (trace_kind), .is_put = (put),                                                   \
    }

static const struct aq_vis_family aq_vis_vector_put =
    AQ_VIS_FAMILY(gex_VIS_VectorPut, AQ_TRACE_PUT_V, true);
static const struct aq_vis_family aq_vis_vector_get =
    AQ_VIS_FAMILY(gex_VIS_VectorGet, AQ_TRACE_GET_V, false);
static const struct aq_vis_family aq_vis_indexed_put =
    AQ_VIS_FAMILY(gex_VIS_IndexedPut, AQ_TRACE_PUT_I, true);
static const struct aq_vis_family aq_vis_indexed_get =
    AQ_VIS_FAMILY(gex_VIS_IndexedGet, AQ_TRACE_GET_I, false);
static const struct aq_vis_family aq_vis_strided_put =
    AQ_VIS_FAMILY(gex_VIS_StridedPut, AQ_TRACE_PUT_S, true);
static const struct aq_vis_family aq_vis_strided_get =
    AQ_VIS_FAMILY(gex_VIS_StridedGet, AQ_TRACE_GET_S, false);

/* --- peer completion: each thread has one handler set --- */

#if AQ_THREADED
_Thread_local struct aq_vis_arming aq_vis_armed __attribute__((tls_model("initial-exec")));
#else
struct aq_vis_arming aq_vis_armed;
#endif

void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source_addr,
                                      size_t nbytes, gex_Flags_t flags)
{
#if GASNET_DEBUG
    const char *call = "gex_VIS_SetPeerCompletionHandler";

    aq_thread_check_main(call);
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    if (handler != 0 && handler < GEX_AM_INDEX_BASE)
        aq_fatal("%s: handler %u is below GEX_AM_INDEX_BASE, %d", call, handler, GEX_AM_INDEX_BASE);
    if (handler != 0 && nbytes > GEX_VIS_MAX_PEERCOMPLETION)
        aq_fatal("%s: payload of %zu bytes; the most is GEX_VIS_MAX_PEERCOMPLETION, %d", call,
                 nbytes, GEX_VIS_MAX_PEERCOMPLETION);
#else
    (void)flags;
#endif
    aq_vis_armed = (struct aq_vis_arming){ handler, nbytes, source_addr };
}

/* --- the calls --- */

static inline int aq_vis_declined(gex_Event_t result)
{
    return result == GEX_EVENT_NO_OP;
}

#define AQ_VIS_CALL(family, style, rank)         \
    {                                            \
        &(family), (style), tm, (rank), flags, 0 \
    }

int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                              gex_Memvec_t const dstlist[], size_t srccount,
                              gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_put, AQ_VIS_BLOCKING, dstrank);

    return aq_vis_declined(aq_vis_vector(&call, dstcount, dstlist, srccount, srclist));
}

gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_put, AQ_VIS_NB, dstrank);

    return aq_vis_vector(&call, dstcount, dstlist, srccount, srclist);
}

int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                         gex_Memvec_t const dstlist[], size_t srccount,
                         gex_Memvec_t const srclist[], gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_put, AQ_VIS_NBI, dstrank);

    return aq_vis_declined(aq_vis_vector(&call, dstcount, dstlist, srccount, srclist));
}

int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                              gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                              gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_get, AQ_VIS_BLOCKING, srcrank);

    return aq_vis_declined(aq_vis_vector(&call, dstcount, dstlist, srccount, srclist));
}

gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                                gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_get, AQ_VIS_NB, srcrank);

    return aq_vis_vector(&call, dstcount, dstlist, srccount, srclist);
}

int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                         gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                         gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_vector_get, AQ_VIS_NBI, srcrank);

    return aq_vis_declined(aq_vis_vector(&call, dstcount, dstlist, srccount, srclist));
}

int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                               void *const dstlist[], size_t dstlen, size_t srccount,
                               void *const srclist[], size_t srclen, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_put, AQ_VIS_BLOCKING, dstrank);

    return aq_vis_declined(
        aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen));
}

gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                 void *const dstlist[], size_t dstlen, size_t srccount,
                                 void *const srclist[], size_t srclen, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_put, AQ_VIS_NB, dstrank);

    return aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen);
}

int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, void *const dstlist[],
                          size_t dstlen, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_put, AQ_VIS_NBI, dstrank);

    return aq_vis_declined(
        aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen));
}

int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                               gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                               size_t srclen, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_get, AQ_VIS_BLOCKING, srcrank);

    return aq_vis_declined(
        aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen));
}

gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                                 gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                                 size_t srclen, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_get, AQ_VIS_NB, srcrank);

    return aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen);
}

int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                          gex_Rank_t srcrank, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_indexed_get, AQ_VIS_NBI, srcrank);

    return aq_vis_declined(
        aq_vis_indexed(&call, dstcount, dstlist, dstlen, srccount, srclist, srclen));
}

int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t stridelevels, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_put, AQ_VIS_BLOCKING, dstrank);

    return aq_vis_declined(aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz,
                                          count, stridelevels));
}

gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                 const ptrdiff_t dststrides[], void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                                 size_t stridelevels, gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_put, AQ_VIS_NB, dstrank);

    return aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz, count,
                          stridelevels);
}

int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                          const ptrdiff_t dststrides[], void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_put, AQ_VIS_NBI, dstrank);

    return aq_vis_declined(aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz,
                                          count, stridelevels));
}

int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                               gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                               size_t elemsz, const size_t count[], size_t stridelevels,
                               gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_get, AQ_VIS_BLOCKING, srcrank);

    return aq_vis_declined(aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz,
                                          count, stridelevels));
}

gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                 gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                                 size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_get, AQ_VIS_NB, srcrank);

    return aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz, count,
                          stridelevels);
}

int gex_VIS_StridedGetNBI(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                          gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags)
{
    struct aq_vis_call call = AQ_VIS_CALL(aq_vis_strided_get, AQ_VIS_NBI, srcrank);

    return aq_vis_declined(aq_vis_strided(&call, dstaddr, dststrides, srcaddr, srcstrides, elemsz,
                                          count, stridelevels));
}
