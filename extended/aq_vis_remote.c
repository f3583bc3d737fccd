/*
 * aq_vis_remote.c - non-contiguous transfers with peers that are not mapped in this process.
 *
 * Runs that are long and contiguous on both sides are individual puts and gets, through the
 * conduit's table, batched where the conduit supports it. Everything else is packed in messages:
 * aq_vis_ref.c.
 *
 *
 * Threads   any; a transfer declined with GEX_FLAG_IMMEDIATE leaves no trace in any counter
 * Uses      aq_vis_call.h, core/aq_op.h, the conduit table. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_vis_call.h"

#include "core/aq_job.h"
#include "base/aq_rc.h"
#include "extended/aq_ref.h"

/* --- individual transfers, or packed --- */

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

/* Starts a put or get for every run that is contiguous on both sides. With GEX_FLAG_IMMEDIATE there
 * is only one run. */
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

/* Starts all of them, in a batch if the conduit supports it. */
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

/* run: approximate length of the runs that are contiguous on both sides */
static gex_Event_t aq_vis_remote(const struct aq_vis_call *call, struct aq_vis_request *request,
                                 size_t run)
{
    const bool is_put = call->family->is_put, is_implicit = call->style == AQ_VIS_NBI;
    const size_t limit = is_put ? aq_vis_limits.put_run : aq_vis_limits.get_run;
    /* after the first of several runs the call cannot be declined any more, and the second may have
     * to wait */
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

/* --- strided, vector, indexed --- */

size_t aq_vis_shape_size(const struct aq_vis_shape *shape)
{
    size_t nbytes = shape->elemsz;

    for (unsigned d = 0; d < shape->levels; d++)
        nbytes *= shape->dim[d].count;
    return nbytes;
}

gex_Event_t aq_vis_strided_remote(const struct aq_vis_call *call, const struct aq_vis_shape *shape)
{
    const bool is_put = call->family->is_put;
    struct aq_vis_request request = { .nbytes = aq_vis_shape_size(shape), .grain = shape->elemsz };
    size_t local_count[AQ_VIS_LEVELS], remote_count[AQ_VIS_LEVELS];
    ptrdiff_t local_stride[AQ_VIS_LEVELS], remote_stride[AQ_VIS_LEVELS];

    aq_vis_side_of_shape(&request.local, shape, !is_put, local_count, local_stride);
    aq_vis_side_of_shape(&request.remote, shape, is_put, remote_count, remote_stride);
    return aq_vis_remote(call, &request, shape->levels == 0 ? SIZE_MAX : shape->elemsz);
}

gex_Event_t aq_vis_vector_remote(const struct aq_vis_call *call, const struct aq_vis_vector *dst,
                                 const struct aq_vis_vector *src)
{
    const struct aq_vis_side to = { .form = AQ_VIS_VECTOR, .vector = dst->list };
    const struct aq_vis_side from = { .form = AQ_VIS_VECTOR, .vector = src->list };
    const bool is_put = call->family->is_put;
    const size_t nbytes = aq_vis_vector_size(dst->count, dst->list);
    struct aq_vis_request request = { .nbytes = nbytes,
                                      .local = is_put ? from : to,
                                      .remote = is_put ? to : from };
    const size_t max = MAX(dst->count, src->count);

    return aq_vis_remote(call, &request, max == 1 ? SIZE_MAX : nbytes / max);
}

gex_Event_t aq_vis_indexed_remote(const struct aq_vis_call *call, const struct aq_vis_indexed *dst,
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
