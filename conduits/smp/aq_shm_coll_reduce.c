/*
 * aq_shm_coll_reduce.c - collectives through shared memory: reduction of the operands of a step.
 *
 * Small data: every member that receives the result combines all operands into its dst. From
 * AQ_SHM_SCATTER_MIN bytes and three members on, each member combines one chunk of the operands, in
 * place in its own block, and shares it. The members that receive the result copy the chunks, so
 * every operand is read once.
 *
 * Order     the accumulated value is the right operand, and only that is written. Operators that do
 *           not commute are applied in rank order
 * Threads   the thread at work on the team. Uses aq_shm_coll.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll.h"

#include <stdlib.h>

/* Combines all operands of a step, from the last to the first: the accumulated value is the right
 * operand, and only that is written. */
void aq_coll_req_combine(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step)
{
    const struct aq_coll_call *call = &req->call;
    const size_t bytes = aq_step_bytes(req, step);
    void *dst = (char *)call->dst + step * req->chunk;
    uint32_t member = coll->area.size - 1;

    if (bytes == 0)
        return;
    memcpy(dst, aq_step_data(coll, req, member, step), bytes);
    while (member-- > 0)
        aq_coll_apply(call->fn, aq_step_data(coll, req, member, step), dst, bytes / call->unit,
                      call->cdata);
}

void *aq_coll_temp(struct aq_coll_local *coll)
{
    if (coll->temp == NULL && (coll->temp = malloc(2 * (size_t)AQ_COLL_TEMP)) == NULL)
        aq_fatal("no memory for a reduction (%zu bytes)", 2 * (size_t)AQ_COLL_TEMP);
    return coll->temp;
}

/* The same in rank order for a chunk; the result replaces this member's operand. */
static void aq_step_reduce_ordered(struct aq_coll_local *coll, const struct aq_coll_req *req,
                                   size_t step, size_t at, size_t bytes)
{
    const struct aq_coll_call *call = &req->call;
    uint32_t member = coll->area.size - 1;
    char *own = (char *)aq_step_data(coll, req, coll->area.me, step) + at;
    char *result = own;

    if (coll->area.me != member) {
        result = aq_coll_temp(coll);
        memcpy(result, (char *)aq_step_data(coll, req, member, step) + at, bytes);
    }
    while (member-- > 0)
        aq_coll_apply(call->fn, (char *)aq_step_data(coll, req, member, step) + at, result,
                      bytes / call->unit, call->cdata);
    if (result != own)
        memcpy(own, result, bytes);
}

/* Combines this member's chunk of the next step, and shares it. Returns false if operands are
 * missing. */
bool aq_coll_req_share(struct aq_coll_local *coll, struct aq_coll_req *req)
{
    const struct aq_coll_call *call = &req->call;
    const size_t step = req->shared;
    const uint32_t me = coll->area.me;
    size_t at, bytes;

    if (req->posted == step || !aq_all_posted(coll, req, step, &req->seen_posted)
        || !aq_shm_coll_may_notify())
        return false;
    at = aq_step_offset(coll, req, step, me);
    bytes = aq_step_offset(coll, req, step, me + 1) - at;
    if (req->direct) {
        aq_coll_direct_reduce(coll, req, step, at, bytes);
    } else if (bytes > 0 && call->ordered) {
        aq_step_reduce_ordered(coll, req, step, at, bytes);
    } else if (bytes > 0) {
        char *own = (char *)aq_step_data(coll, req, me, step) + at;

        for (uint32_t member = coll->area.size; member-- > 0;)
            if (member != me)
                aq_coll_apply(call->fn, (char *)aq_step_data(coll, req, member, step) + at, own,
                              bytes / call->unit, call->cdata);
    }
    /* release: pairs with the acquire in aq_shm_area_shared() */
    atomic_store_explicit(&aq_shm_area_line(&coll->area, me, req->first + step)->shared,
                          req->first + step + 1, memory_order_release);
    if (aq_shm_area_sleepers())
        aq_coll_req_wake(coll, req, step, true);
    req->shared++;
    req->seen_posted = 0;
    return true;
}

void aq_coll_req_collect(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step)
{
    char *dst = (char *)req->call.dst + step * req->chunk;

    for (uint32_t member = 0; member < coll->area.size; member++) {
        const size_t at = aq_step_offset(coll, req, step, member);
        const size_t bytes = aq_step_offset(coll, req, step, member + 1) - at;

        memcpy(dst + at, (char *)aq_step_data(coll, req, member, step) + at, bytes);
    }
}
