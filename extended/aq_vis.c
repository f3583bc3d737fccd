/*
 * aq_vis.c - transfers that are not contiguous: the eighteen calls, and which way each takes.
 *
 * A peer that is mapped here is served by copy loops at once. Another one gets runs that are long
 * as puts and gets of their own, through the conduit's table, and everything else packed in
 * messages. The calls of one family differ in what they make of the result only.
 *
 * Owns      each thread's armed peer completion
 * Threads   any; a transfer declined with GEX_FLAG_IMMEDIATE leaves no trace in any counter
 * Uses      aq_vis.h, core/aq_op.h, the conduit table
 * See       GASNet-EX specification 0.19, VIS
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis.h"

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

/* The order of the rows of a family in core/aq_trace.def. */
enum aq_vis_style { AQ_VIS_BLOCKING, AQ_VIS_NB, AQ_VIS_NBI };

struct aq_vis_family {
    const char *name[3]; /* by style */
    struct aq_op_kind blocking, nb, nb_leaf;
    enum aq_trace_kind trace; /* of the blocking call; the others follow */
    bool is_put;
};

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

/* One call on its way through this file. */
struct aq_vis_call {
    const struct aq_vis_family *family;
    enum aq_vis_style style;
    gex_TM_t tm;
    gex_Rank_t rank;
    gex_Flags_t flags;
    uint64_t began; /* 0: nobody traces */
};

/* --- peer completion: one arming a thread --- */

#if AQ_THREADED
static _Thread_local struct aq_vis_arming aq_vis_armed __attribute__((tls_model("initial-exec")));
#else
static struct aq_vis_arming aq_vis_armed;
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

/* --- debug checks --- */

#if GASNET_DEBUG

static const char *aq_vis_name(const struct aq_vis_call *call)
{
    return call->family->name[call->style];
}

static void aq_vis_check_call(const struct aq_vis_call *call)
{
    const char *name = aq_vis_name(call);

    aq_thread_check_main(name);
    if ((call->flags & GEX_FLAG_ENABLE_LEAF_LC) != 0
        && (!call->family->is_put || call->style == AQ_VIS_BLOCKING))
        aq_fatal("%s: GEX_FLAG_ENABLE_LEAF_LC is for NB and NBI puts only", name);
    if (aq_vis_armed.handler != 0 && !call->family->is_put)
        aq_fatal(
            "%s: this thread has armed a peer completion, which the next VIS transfer has to be "
            "a put for; handler 0 takes it back",
            name);
    if (aq_vis_armed.handler != 0 && (call->flags & GEX_FLAG_IMMEDIATE) != 0)
        aq_fatal("%s: GEX_FLAG_IMMEDIATE, but this thread has armed a peer completion", name);
}

static void aq_vis_check_remote(const struct aq_vis_call *call, uintptr_t address, size_t nbytes)
{
    const gex_Flags_t others = GEX_FLAG_PEER_NEVER_SELF | GEX_FLAG_PEER_NEVER_NBRHD;

    aq_rma_check(aq_vis_name(call), call->tm, call->rank, aq_vis_at(address), nbytes,
                 call->flags & ~others);
}

static void aq_vis_check_local(const struct aq_vis_call *call, uintptr_t address, size_t nbytes)
{
    aq_rma_check_local(aq_vis_name(call), call->family->is_put ? "source" : "destination",
                       aq_vis_at(address), nbytes);
}

/* All of a section lies between its lowest and its highest byte. */
static void aq_vis_check_shape(const struct aq_vis_call *call, const struct aq_vis_shape *shape)
{
    const bool is_put = call->family->is_put;
    uintptr_t low = is_put ? shape->dst : shape->src, high = low;
    size_t nbytes = shape->elemsz;
    bool over = false;

    for (unsigned d = 0; d < shape->levels; d++) {
        const struct aq_vis_dim *dim = &shape->dim[d];
        const ptrdiff_t stride = is_put ? dim->dst : dim->src;
        const size_t step = stride < 0 ? -(size_t)stride : (size_t)stride;
        size_t extent;

        over |= __builtin_mul_overflow(nbytes, dim->count, &nbytes);
        over |= __builtin_mul_overflow(step, dim->count - 1, &extent);
        over |= stride < 0 ? __builtin_sub_overflow(low, extent, &low)
                           : __builtin_add_overflow(high, extent, &high);
    }
    over |= __builtin_add_overflow(high, shape->elemsz, &high);
    if (over)
        aq_fatal("%s: the section is larger than the address space", aq_vis_name(call));
    aq_vis_check_remote(call, low, high - low);
    aq_vis_check_local(call, is_put ? shape->src : shape->dst, shape->elemsz);
}

static void aq_vis_check_sums(const struct aq_vis_call *call, size_t dst, size_t src)
{
    if (dst != src)
        aq_fatal("%s: the destination has %zu bytes, the source %zu; they must be equal",
                 aq_vis_name(call), dst, src);
}

static void aq_vis_check_vector(const struct aq_vis_call *call, const struct aq_vis_vector *remote,
                                const struct aq_vis_vector *local)
{
    for (size_t i = 0; i < remote->count; i++)
        if (remote->list[i].gex_len != 0)
            aq_vis_check_remote(call, (uintptr_t)remote->list[i].gex_addr, remote->list[i].gex_len);
    for (size_t i = 0; i < local->count; i++)
        aq_vis_check_local(call, (uintptr_t)local->list[i].gex_addr, local->list[i].gex_len);
}

static void aq_vis_check_indexed(const struct aq_vis_call *call,
                                 const struct aq_vis_indexed *remote,
                                 const struct aq_vis_indexed *local)
{
    for (size_t i = 0; i < remote->count; i++)
        aq_vis_check_remote(call, (uintptr_t)remote->list[i], remote->len);
    for (size_t i = 0; i < local->count; i++)
        aq_vis_check_local(call, (uintptr_t)local->list[i], local->len);
}

#define AQ_VIS_CHECK(what) what
#else
#define AQ_VIS_CHECK(what) ((void)0)
#endif

/* --- how a call ends --- */

static gex_Event_t aq_vis_traced(const struct aq_vis_call *call, gex_Event_t result, size_t nbytes)
{
    aq_trace_end((enum aq_trace_kind)(call->family->trace + call->style), call->began,
                 nbytes == 0 ? GEX_RANK_INVALID : aq_tm_jobrank(call->tm, call->rank), nbytes);
    return result;
}

/* What there was to copy is copied. The fences are those of include/gasnet/rma.h. */
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
            0; /* before the message: sending it may poll, but never comes here */
        aq_vis_notify(aq_tm_jobrank(call->tm, call->rank), &arming);
    }
    return GEX_EVENT_INVALID;
}

/* --- peers that are not mapped --- */

static int aq_vis_start_run(const struct aq_vis_request *request, uintptr_t local, uintptr_t remote,
                            size_t nbytes, gex_Flags_t flags)
{
    const struct aq_conduit_ops *ops = aq_job_ops(request->jobrank);

    if (request->is_put)
        return ops->put(request->op, request->jobrank, aq_vis_at(remote), aq_vis_at(local), nbytes,
                        false, flags);
    return ops->get(request->op, request->jobrank, aq_vis_at(local), aq_vis_at(remote), nbytes,
                    flags);
}

/* Every run that is contiguous on both sides is a put or get of its own. With GEX_FLAG_IMMEDIATE
 * there is one run only. */
static int aq_vis_start_each(const struct aq_vis_request *request, gex_Flags_t flags)
{
    struct aq_vis_pos local_at = { 0, 0 }, remote_at = { 0, 0 };

    for (size_t left = request->nbytes; left > 0;) {
        uintptr_t local, remote;
        size_t frag = aq_vis_next_run(&request->local, &local_at, left, &local);

        left -= frag;
        while (frag > 0) {
            const size_t run = aq_vis_next_run(&request->remote, &remote_at, frag, &remote);

            if (aq_vis_start_run(request, local, remote, run, flags) == AQ_RETRY)
                return AQ_RETRY;
            local += run;
            frag -= run;
        }
    }
    return AQ_OK;
}

/* All of them together, if the conduit gains by that. */
static int aq_vis_start_runs(const struct aq_vis_request *request, gex_Flags_t flags)
{
    struct aq_op *before = aq_job.remote->rma_batch_begin(request->op);
    const int rc = aq_vis_start_each(request, flags);

    aq_job.remote->rma_batch_end(before);
    return rc;
}

static const struct aq_op_kind *aq_vis_kind(const struct aq_vis_call *call)
{
    if (call->style == AQ_VIS_BLOCKING)
        return &call->family->blocking;
    return (call->flags & GEX_FLAG_ENABLE_LEAF_LC) != 0 ? &call->family->nb_leaf
                                                        : &call->family->nb;
}

/* run: about how long the runs are that are contiguous on both sides */
static gex_Event_t aq_vis_remote(const struct aq_vis_call *call, struct aq_vis_request *request,
                                 size_t run)
{
    const bool is_put = call->family->is_put, is_implicit = call->style == AQ_VIS_NBI;
    const size_t limit = is_put ? aq_vis_limits.put_run : aq_vis_limits.get_run;
    /* after the first of several runs there is no way back, and the second may have to wait */
    const bool may_start_all = run == SIZE_MAX || (call->flags & GEX_FLAG_IMMEDIATE) == 0;
    struct aq_op *op;
    int rc;

    request->jobrank = aq_tm_jobrank(call->tm, call->rank);
    request->is_put = is_put;
    request->counts_lc = (call->flags & GEX_FLAG_ENABLE_LEAF_LC) != 0;
    request->arming = aq_vis_armed;
    aq_vis_armed.handler = 0;
    op = is_implicit ? aq_op_implicit(request->jobrank)
                     : aq_op_create(aq_vis_kind(call), request->jobrank);
    request->op = op;
    if (run >= limit && request->arming.handler == 0 && may_start_all)
        rc = aq_vis_start_runs(request, call->flags & GEX_FLAG_IMMEDIATE);
    else
        rc = aq_vis_ref_start(request, call->flags);
    if (rc == AQ_RETRY) {
        if (!is_implicit)
            aq_op_retire(op);
        return GEX_EVENT_NO_OP;
    }
    if (call->style == AQ_VIS_NB)
        return aq_op_expose(op);
    if (call->style == AQ_VIS_BLOCKING)
        aq_op_wait(op);
    return GEX_EVENT_INVALID;
}

/* --- which way: the peer's address in this process, if it has one --- */

static inline intptr_t aq_vis_delta(const struct aq_vis_call *call)
{
    intptr_t delta = aq_tm_deltas(call->tm)[call->rank];

    /* inline code may have been shown a table in which nothing is mapped */
    if (AQ_UNLIKELY(delta == AQ_NOT_MAPPED) && (aq_job.local->caps & AQ_CAP_LOAD_STORE) != 0
        && aq_tm(call->tm)->peer_index == 0)
        delta = aq_job.map[aq_tm_jobrank(call->tm, call->rank)];
    return delta;
}

/* --- strided --- */

static size_t aq_vis_shape_size(const struct aq_vis_shape *shape)
{
    size_t nbytes = shape->elemsz;

    for (unsigned d = 0; d < shape->levels; d++)
        nbytes *= shape->dim[d].count;
    return nbytes;
}

static __attribute__((noinline)) gex_Event_t aq_vis_strided_remote(const struct aq_vis_call *call,
                                                                   const struct aq_vis_shape *shape)
{
    const bool is_put = call->family->is_put;
    struct aq_vis_request request = { .nbytes = aq_vis_shape_size(shape), .grain = shape->elemsz };
    size_t local_count[AQ_VIS_LEVELS], remote_count[AQ_VIS_LEVELS];
    ptrdiff_t local_stride[AQ_VIS_LEVELS], remote_stride[AQ_VIS_LEVELS];

    aq_vis_side_of_shape(&request.local, shape, !is_put, local_count, local_stride);
    aq_vis_side_of_shape(&request.remote, shape, is_put, remote_count, remote_stride);
    return aq_vis_remote(call, &request, shape->levels == 0 ? SIZE_MAX : shape->elemsz);
}

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

static gex_Event_t aq_vis_strided(struct aq_vis_call *call, void *dst, const ptrdiff_t *dststrides,
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

static __attribute__((noinline)) gex_Event_t aq_vis_vector_remote(const struct aq_vis_call *call,
                                                                  const struct aq_vis_vector *dst,
                                                                  const struct aq_vis_vector *src,
                                                                  size_t nbytes)
{
    const struct aq_vis_side to = { .form = AQ_VIS_VECTOR, .vector = dst->list };
    const struct aq_vis_side from = { .form = AQ_VIS_VECTOR, .vector = src->list };
    const bool is_put = call->family->is_put;
    struct aq_vis_request request = { .nbytes = nbytes,
                                      .local = is_put ? from : to,
                                      .remote = is_put ? to : from };
    const size_t max = MAX(dst->count, src->count);

    return aq_vis_remote(call, &request, max == 1 ? SIZE_MAX : nbytes / max);
}

static gex_Event_t aq_vis_vector_go(const struct aq_vis_call *call, struct aq_vis_vector *dst,
                                    struct aq_vis_vector *src)
{
    const bool is_put = call->family->is_put;
    struct aq_vis_vector *remote = is_put ? dst : src;

    AQ_VIS_CHECK(aq_vis_check_vector(call, remote, is_put ? src : dst));
    remote->delta = aq_vis_delta(call);
    if (AQ_UNLIKELY(remote->delta == AQ_NOT_MAPPED))
        return aq_vis_vector_remote(call, dst, src, aq_vis_vector_size(dst->count, dst->list));
    aq_vis_copy_vector(dst, src);
    return aq_vis_done(call);
}

/* Are there any bytes? The first list that shows some decides. */
static inline bool aq_vis_vector_empty(size_t count, const gex_Memvec_t *list)
{
    for (size_t i = 0; i < count; i++)
        if (AQ_LIKELY(list[i].gex_len != 0))
            return false;
    return true;
}

static gex_Event_t aq_vis_vector(struct aq_vis_call *call, size_t dstcount,
                                 const gex_Memvec_t *dstlist, size_t srccount,
                                 const gex_Memvec_t *srclist)
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

static __attribute__((noinline)) gex_Event_t aq_vis_indexed_remote(const struct aq_vis_call *call,
                                                                   const struct aq_vis_indexed *dst,
                                                                   const struct aq_vis_indexed *src)
{
    const struct aq_vis_side to = { .form = AQ_VIS_INDEXED,
                                    .chunk = dst->len,
                                    .addresses = dst->list };
    const struct aq_vis_side from = { .form = AQ_VIS_INDEXED,
                                      .chunk = src->len,
                                      .addresses = src->list };
    const bool is_put = call->family->is_put;
    struct aq_vis_request request = { .nbytes = dst->count * dst->len,
                                      .local = is_put ? from : to,
                                      .remote = is_put ? to : from };

    return aq_vis_remote(call, &request,
                         dst->count == 1 && src->count == 1 ? SIZE_MAX : MIN(dst->len, src->len));
}

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

static gex_Event_t aq_vis_indexed(struct aq_vis_call *call, size_t dstcount, void *const *dstlist,
                                  size_t dstlen, size_t srccount, void *const *srclist,
                                  size_t srclen)
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
