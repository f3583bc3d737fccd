/*
 * aq_vis_route.c - selects the path of a non-contiguous transfer, and returns the call's result.
 *
 * Copy loops serve a mapped peer at once: aq_vis_strided.c, aq_vis_lists.c. aq_vis_remote.c serves
 * other peers. The calls of one family differ only in the form of the result.
 *
 * Threads   any; no state
 * Uses      aq_vis_call.h
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_call.h"

#include "core/aq_job.h"

/* --- results --- */

static gex_Event_t aq_vis_traced(const struct aq_vis_call *call, gex_Event_t result, size_t nbytes)
{
    aq_trace_end((enum aq_trace_kind)(call->family->trace + call->style), call->began,
                 nbytes == 0 ? GEX_RANK_INVALID : aq_tm_jobrank(call->tm, call->rank), nbytes);
    return result;
}

/* The copy is complete. The fences are those of include/gasnet/rma.h. */
static inline gex_Event_t aq_vis_done(const struct aq_vis_call *call)
{
    if (!call->family->is_put) {
        aq_fence_acquire();
        return GEX_EVENT_INVALID;
    }
    aq_fence_release();
    if (AQ_UNLIKELY(aq_vis_armed.handler != 0)) {
        const struct aq_vis_arming arming = aq_vis_armed;

        aq_vis_armed.handler =
            0; /* cleared before the message: sending it may poll, but never comes here */
        aq_vis_notify(aq_tm_jobrank(call->tm, call->rank), &arming);
    }
    return GEX_EVENT_INVALID;
}

/* --- the peer's address in this process, if it has one --- */

static inline intptr_t aq_vis_delta(const struct aq_vis_call *call)
{
    intptr_t delta = aq_tm_deltas(call->tm)[call->rank];

    /* inline code may have used a table in which nothing is mapped */
    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED) && (aq_job.local->caps & AQ_CAP_LOAD_STORE) != 0
        && aq_tm(call->tm)->peer_index == 0)
        delta = aq_job.map[aq_tm_jobrank(call->tm, call->rank)];
    return delta;
}

/* --- strided --- */

static gex_Event_t aq_vis_shape_go(const struct aq_vis_call *call, struct aq_vis_shape *shape)
{
    intptr_t delta;

    AQ_VIS_CHECK(aq_vis_check_shape(call, shape));
    delta = aq_vis_delta(call);
    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED))
        return aq_vis_strided_remote(call, shape);
    if (call->family->is_put)
        shape->dst += (uintptr_t)delta;
    else
        shape->src += (uintptr_t)delta;
    aq_vis_copy_shape(shape);
    return aq_vis_done(call);
}

gex_Event_t aq_vis_strided(struct aq_vis_call *call, void *dst, const ptrdiff_t *dststrides,
                           void *src, const ptrdiff_t *srcstrides, size_t elemsz,
                           const size_t *count, size_t levels)
{
    struct aq_vis_shape shape;
    gex_Event_t result;

    AQ_VIS_CHECK(aq_vis_check_call(call));
    call->began = aq_trace_begin((enum aq_trace_kind)(call->family->trace + call->style));
    if (elemsz == 0)
        return aq_vis_traced(call, aq_vis_done(call), 0);
    if (levels == 0) {
        shape.dst = (uintptr_t)dst;
        shape.src = (uintptr_t)src;
        shape.elemsz = elemsz;
        shape.levels = 0;
    } else if (!aq_vis_normalise(&shape, (uintptr_t)dst, dststrides, (uintptr_t)src, srcstrides,
                                 elemsz, count, levels)) {
        return aq_vis_traced(call, aq_vis_done(call), 0);
    }
    result = aq_vis_shape_go(call, &shape);
    if (AQ_UNLIKELY(call->began != 0))
        return aq_vis_traced(call, result, aq_vis_shape_size(&shape));
    return result;
}

/* --- vector --- */

static gex_Event_t aq_vis_vector_go(const struct aq_vis_call *call, struct aq_vis_vector *dst,
                                    struct aq_vis_vector *src)
{
    const bool is_put = call->family->is_put;
    struct aq_vis_vector *remote = is_put ? dst : src;

    AQ_VIS_CHECK(aq_vis_check_vector(call, remote, is_put ? src : dst));
    remote->delta = aq_vis_delta(call);
    if (AQ_UNLIKELY(remote->delta == AQ_NOT_MAPPED))
        return aq_vis_vector_remote(call, dst, src);
    aq_vis_copy_vector(dst, src);
    return aq_vis_done(call);
}

/* Returns true if the list has no bytes. The first entry with bytes decides. */
static inline bool aq_vis_vector_empty(size_t count, const gex_Memvec_t *list)
{
    for (size_t i = 0; i < count; i++)
        if (AQ_LIKELY(list[i].gex_len != 0))
            return false;
    return true;
}

gex_Event_t aq_vis_vector(struct aq_vis_call *call, size_t dstcount, const gex_Memvec_t *dstlist,
                          size_t srccount, const gex_Memvec_t *srclist)
{
    struct aq_vis_vector dst = { dstcount, dstlist, 0 }, src = { srccount, srclist, 0 };
    gex_Event_t result;

    AQ_VIS_CHECK(aq_vis_check_call(call));
    AQ_VIS_CHECK(aq_vis_check_sums(call, aq_vis_vector_size(dstcount, dstlist),
                                   aq_vis_vector_size(srccount, srclist)));
    call->began = aq_trace_begin((enum aq_trace_kind)(call->family->trace + call->style));
    if (aq_vis_vector_empty(dstcount, dstlist))
        return aq_vis_traced(call, aq_vis_done(call), 0);
    result = aq_vis_vector_go(call, &dst, &src);
    if (AQ_UNLIKELY(call->began != 0))
        return aq_vis_traced(call, result, aq_vis_vector_size(dstcount, dstlist));
    return result;
}

/* --- indexed --- */

static gex_Event_t aq_vis_indexed_go(const struct aq_vis_call *call, struct aq_vis_indexed *dst,
                                     struct aq_vis_indexed *src)
{
    struct aq_vis_indexed *remote = call->family->is_put ? dst : src;

    AQ_VIS_CHECK(aq_vis_check_indexed(call, remote, call->family->is_put ? src : dst));
    remote->delta = aq_vis_delta(call);
    if (AQ_UNLIKELY(remote->delta == AQ_NOT_MAPPED))
        return aq_vis_indexed_remote(call, dst, src);
    aq_vis_copy_indexed(dst, src);
    return aq_vis_done(call);
}

gex_Event_t aq_vis_indexed(struct aq_vis_call *call, size_t dstcount, void *const *dstlist,
                           size_t dstlen, size_t srccount, void *const *srclist, size_t srclen)
{
    struct aq_vis_indexed dst = { dstcount, dstlist, dstlen, 0 };
    struct aq_vis_indexed src = { srccount, srclist, srclen, 0 };
    gex_Event_t result;

    AQ_VIS_CHECK(aq_vis_check_call(call));
    AQ_VIS_CHECK(aq_vis_check_sums(call, dstcount * dstlen, srccount * srclen));
    call->began = aq_trace_begin((enum aq_trace_kind)(call->family->trace + call->style));
    if (dstcount == 0 || dstlen == 0)
        return aq_vis_traced(call, aq_vis_done(call), 0);
    result = aq_vis_indexed_go(call, &dst, &src);
    if (AQ_UNLIKELY(call->began != 0))
        return aq_vis_traced(call, result, dstcount * dstlen);
    return result;
}
