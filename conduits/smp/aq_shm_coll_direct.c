/*
 * aq_shm_coll_direct.c - collectives through shared memory: large data, copied once.
 *
 * A member posts the addresses of its operand instead of the operand, and keeps the call open until
 * no other member reads there any more. Members read attached segments through their mappings and
 * other memory by process_vm_readv. A broadcast is one copy at each receiver. In a reduction of two
 * members, those that receive the result read the other operand. Of more members, each reads one
 * chunk of all operands and reduces it, in its dst if all receive the result, in its block if one
 * does; those that receive the result then copy the others' chunks. Two members whose results
 * replace their operands do that too.
 *
 * A block in between would cost a second copy, and its lines would be in another core's cache when
 * the root writes them again.
 *
 * Order     as in aq_shm_coll_reduce.c
 * Threads   the thread at work on the team. Uses aq_shm_coll.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll.h"

/* AQ_DIRECT_MIN where ranks share cores: a member that others read from waits for them, and the
 * wait costs a switch of processes. 4 ranks on 2 cores, broadcast: 20 us against 11 with blocks for
 * 64 KiB, 61 against 47 for 256 KiB; from attached segments 9 and 19. */
#define AQ_DIRECT_MIN_SHARED 262144u

/* What a member posts. */
struct aq_direct_addrs {
    const char *src; /* its operand of the step */
    char *dst;       /* reductions to all: its result of the step */
};
_Static_assert(sizeof(struct aq_direct_addrs) <= AQ_AREA_INLINE_MAX, "addresses fit in a line");

static struct aq_direct_addrs *aq_direct_addrs(const struct aq_coll_local *coll,
                                               const struct aq_coll_req *req, uint32_t member,
                                               size_t step)
{
    return (struct aq_direct_addrs *)(void *)aq_shm_area_line(&coll->area, member,
                                                              req->first + step)
        ->data;
}

static gex_Rank_t aq_direct_jobrank(const struct aq_coll_local *coll, uint32_t member)
{
    return aq_shm.jobrank_of[coll->area.local[member]];
}

bool aq_coll_direct_plan(const struct aq_coll_local *coll, struct aq_coll_req *req)
{
    const struct aq_coll_call *call = &req->call;
    const bool reduces = call->kind != AQ_COLL_BROADCAST;

    if (!aq_shm_cma_is_allowed() || (aq_job.oversubscribed && req->bytes < AQ_DIRECT_MIN_SHARED))
        return false;
    /* dst == src is legal only if it is so on all members, or on none */
    req->scattered =
        reduces
        && (coll->area.size > 2 || (call->kind == AQ_COLL_TO_ALL && call->dst == call->src));
    /* a chunk of the result for one member must fit in a block */
    req->in_blocks = req->scattered && call->kind == AQ_COLL_TO_ONE;
    req->chunk = !req->in_blocks
                     ? req->bytes
                     : coll->area.block_bytes / call->unit * call->unit * coll->area.size;
    req->steps = (req->bytes + req->chunk - 1) / req->chunk;
    req->cells = req->in_blocks ? AQ_BLOCK_CELLS : 0;
    return true;
}

void aq_coll_direct_note(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step)
{
    *aq_direct_addrs(coll, req, coll->area.me, step) = (struct aq_direct_addrs){
        .src = (const char *)req->call.src + step * req->chunk,
        .dst = req->call.kind == AQ_COLL_TO_ALL ? (char *)req->call.dst + step * req->chunk : NULL,
    };
}

/* Copies a member's memory to this one's. */
static void aq_direct_copy(const struct aq_coll_local *coll, uint32_t member, void *dst,
                           const void *src, size_t bytes)
{
    aq_shm_read(aq_direct_jobrank(coll, member), dst, src, bytes);
}

void aq_coll_direct_receive(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                            size_t step)
{
    const uint32_t root = req->call.root;

    aq_direct_copy(coll, root, (char *)req->call.dst + step * req->chunk,
                   aq_direct_addrs(coll, req, root, step)->src, aq_step_bytes(req, step));
}

/* --- reductions --- */

/* As much of a chunk as is reduced at a time. */
struct aq_direct_range {
    size_t step, at, bytes;
    char *result; /* where this member's chunk has it */
    char *temp;   /* a copy of another member's operand */
};

/* Combines a member's operand with the accumulated value. */
static void aq_direct_apply(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                            const struct aq_direct_range *range, uint32_t member, char *value)
{
    const struct aq_coll_call *call = &req->call;
    const char *src = aq_direct_addrs(coll, req, member, range->step)->src + range->at;

    if (member != coll->area.me)
        src = aq_shm_view(aq_direct_jobrank(coll, member), src, range->bytes, range->temp);
    aq_coll_apply(call->fn, src, value, range->bytes / call->unit, call->cdata);
}

/* In rank order: the accumulated value is the right operand, from the last member on. */
static void aq_direct_reduce_ordered(const struct aq_coll_local *coll,
                                     const struct aq_coll_req *req,
                                     const struct aq_direct_range *range, char *accum)
{
    const uint32_t last = coll->area.size - 1;
    const char *own = aq_direct_addrs(coll, req, coll->area.me, range->step)->src + range->at;
    char *value = own == range->result && coll->area.me != last ? accum : range->result;

    if (coll->area.me != last || value != own)
        aq_direct_copy(coll, last, value,
                       aq_direct_addrs(coll, req, last, range->step)->src + range->at,
                       range->bytes);
    for (uint32_t member = last; member-- > 0;)
        aq_direct_apply(coll, req, range, member, value);
    if (value != range->result)
        memcpy(range->result, value, range->bytes);
}

/* In the order of the members after this one, so that not all read the same memory at a time. */
static void aq_direct_reduce_any(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                 const struct aq_direct_range *range)
{
    const uint32_t me = coll->area.me, size = coll->area.size, next = (me + 1) % size;
    const char *own = aq_direct_addrs(coll, req, me, range->step)->src + range->at;

    if (own != range->result) {
        aq_direct_copy(coll, next, range->result,
                       aq_direct_addrs(coll, req, next, range->step)->src + range->at,
                       range->bytes);
        aq_direct_apply(coll, req, range, me, range->result);
    } else {
        aq_direct_apply(coll, req, range, next, range->result);
    }
    for (uint32_t i = 2; i < size; i++)
        aq_direct_apply(coll, req, range, (me + i) % size, range->result);
}

void aq_coll_direct_reduce(struct aq_coll_local *coll, const struct aq_coll_req *req, size_t step,
                           size_t at, size_t bytes)
{
    const struct aq_coll_call *call = &req->call;
    const size_t max = AQ_COLL_TEMP / call->unit * call->unit;
    const bool in_dst = call->kind == AQ_COLL_TO_ALL || call->root == coll->area.me;
    char *const chunk = in_dst ? (char *)call->dst + step * req->chunk + at
                               : aq_step_data(coll, req, coll->area.me, step);
    char *const temp = aq_coll_temp(coll);

    for (size_t done = 0; done < bytes; done += max) {
        const struct aq_direct_range range = {
            .step = step,
            .at = at + done,
            .bytes = bytes - done < max ? bytes - done : max,
            .result = chunk + done,
            .temp = temp,
        };

        /* where each of two members computes all of the result, both must get the same bits */
        if (call->ordered || (call->kind == AQ_COLL_TO_ALL && !req->scattered && !call->symmetric))
            aq_direct_reduce_ordered(coll, req, &range, temp + AQ_COLL_TEMP);
        else
            aq_direct_reduce_any(coll, req, &range);
    }
}

void aq_coll_direct_collect(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                            size_t step)
{
    const uint32_t me = coll->area.me, size = coll->area.size;
    char *dst = (char *)req->call.dst + step * req->chunk;

    for (uint32_t i = 1; i < size; i++) {
        const uint32_t member = (me + i) % size;
        const size_t at = aq_step_offset(coll, req, step, member);
        const size_t bytes = aq_step_offset(coll, req, step, member + 1) - at;

        if (req->in_blocks)
            memcpy(dst + at, aq_step_data(coll, req, member, step), bytes);
        else
            aq_direct_copy(coll, member, dst + at,
                           aq_direct_addrs(coll, req, member, step)->dst + at, bytes);
    }
}
