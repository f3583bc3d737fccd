/*
 * aq_ibv_atomic.c - atomic operations that the target's device executes.
 *
 * A device's atomics are atomic with each other (IBV_ATOMIC_HCA), not with the processor's, nor
 * with those of another device. So devices serve a domain altogether or not at all: every operation
 * on a word, also of its owner and of ranks on the owner's host, goes to the first rail of the
 * owner as an atomic of the wire. Devices serve a domain if
 *
 *     its type is an integer of 64 bits: the wire has no other
 *     each of its operations is an addition, a compare-and-swap, or a load, which is an addition of
 *     0. A domain that may set, swap or multiply would need accesses that are not atomic with these
 *     every rank has a device with atomics on its first rail; all ranks have exchanged that
 *     its targets are in registered segments: not in segment everything
 *     the client has not said that its operations stay local (GEX_FLAG_AD_FAVOR_MY_RANK,
 *     _MY_NBRHD): the processor does those in a few nanoseconds
 *
 * The processor serves all other domains, at the target, by messages (extended/aq_ad_ref.c). The
 * choice depends on what is the same on every member, so all members choose alike.
 *
 * A load is no RDMA read: the wire promises nothing about a read beside an atomic.
 *
 * Threads   any; completions under the reap lock
 * Uses      aq_ibv_rma.h, extended/aq_ad.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_rma.h"

#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_poll.h"
#include "extended/aq_ad.h"

#define AQ_IBV_AD_OPS                                                                           \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | GEX_OP_CAS | GEX_OP_FADD | GEX_OP_FSUB \
     | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_FCAS | GEX_OP_GET)

bool aq_ibv_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    return (dt == GEX_DT_I64 || dt == GEX_DT_U64) && (ops & ~AQ_IBV_AD_OPS) == 0
           && (flags & (GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_MY_NBRHD)) == 0
           && aq_ibv_segments.atomics;
}

/* --- completion; under the reap lock --- */

static void aq_ibv_ad_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = aq_ibv_rma_frag_of(done);
    const gex_EC_t category = frag->category;
    struct aq_op *op = frag->op;

    if (frag->dest != NULL) {
        aq_op_acquire(op);
        memcpy(frag->dest, frag->bounce->bytes, sizeof(uint64_t));
    }
    aq_ibv_bounce_give(frag->bounce);
    aq_ibv_rma_frag_give(frag);
    aq_op_end(op, category, 1);
}

/* --- initiation --- */

struct aq_ibv_ad_call {
    struct aq_op *op;
    gex_Rank_t rank;
    void *result_p; /* NULL: the operation fetches nothing */
    uint64_t target;
    gex_EC_t category;
    enum ibv_wr_opcode opcode;
    uint64_t a, b; /* addend; or expected and new value */
};

/* The atomic of the wire for an operation. */
static void aq_ibv_ad_translate(struct aq_ibv_ad_call *call, gex_OP_t opcode, uint64_t operand1,
                                uint64_t operand2)
{
    call->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    switch (opcode) {
    case GEX_OP_CAS:
    case GEX_OP_FCAS:
        call->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        call->a = operand1;
        call->b = operand2;
        break;
    case GEX_OP_ADD:
    case GEX_OP_FADD:
        call->a = operand1;
        break;
    case GEX_OP_SUB:
    case GEX_OP_FSUB:
        call->a = -operand1;
        break;
    case GEX_OP_INC:
    case GEX_OP_FINC:
        call->a = 1;
        break;
    case GEX_OP_DEC:
    case GEX_OP_FDEC:
        call->a = (uint64_t)-1;
        break;
    default: /* GEX_OP_GET; the domain has no others */
        call->a = 0;
        break;
    }
}

static int aq_ibv_ad_try(const struct aq_ibv_ad_call *call)
{
    struct aq_ibv_peer *peer = aq_ibv_peer(call->rank);
    struct ibv_send_wr wr = {
        .opcode = call->opcode,
        .wr.atomic = { .remote_addr = call->target, .compare_add = call->a, .swap = call->b }
    };
    struct aq_ibv_local local = { .len = sizeof(uint64_t) };
    struct aq_ibv_bounce *bounce;
    struct aq_ibv_rma_frag *frag;
    int rc;

    if (AQ_UNLIKELY(peer == NULL
                    || aq_ibv_qp_space(peer->qps[0]) == 0)) /* qps[0] is on the first rail */
        return AQ_RETRY;
    bounce = aq_ibv_bounce_take(sizeof(uint64_t));
    if (AQ_UNLIKELY(bounce == NULL))
        return AQ_RETRY;
    if (!aq_ibv_remote_key(call->rank, 0, (void *)call->target, sizeof(uint64_t),
                           &wr.wr.atomic.rkey))
        aq_fatal("an atomic operation on [0x%llx, +8) of rank %u, which is not inside its segment",
                 (unsigned long long)call->target, call->rank);
    local.addr = (uintptr_t)bounce->bytes;
    memcpy(local.lkey, bounce->lkey, sizeof(local.lkey));
    frag = aq_ibv_rma_frag_take();
    frag->op = call->op;
    frag->bounce = bounce;
    frag->dest = call->result_p;
    frag->category = call->category;
    frag->done.fn = aq_ibv_ad_done;
    aq_op_begin(call->op, call->category, 1);
    rc = aq_ibv_rma_post(peer->qps[0], &wr, &local, frag);
    if (AQ_UNLIKELY(rc != AQ_OK)) {
        aq_op_end(call->op, call->category, 1);
        aq_ibv_bounce_give(bounce);
        aq_ibv_rma_frag_give(frag);
    }
    return rc;
}

int aq_ibv_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags)
{
    struct aq_ibv_ad_call call = { .op = op,
                                   .rank = jobrank,
                                   .target = (uintptr_t)tgt_addr,
                                   .category = aq_ad_category(opcode),
                                   .result_p = aq_ad_fetches(opcode) ? result_p : NULL };
    struct aq_waiter waiter = AQ_WAITER_INIT("space for an atomic operation", jobrank);
    int rc;

    (void)dt; /* addition and comparison are the same for both */
    aq_ibv_ad_translate(&call, opcode, operand1, operand2);
    rc = aq_ibv_ad_try(&call);
    if (AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0)
        return rc;
    waiter.no_wakeup = 1; /* the connector may be what it waits for */
    do
        aq_wait_step(&waiter);
    while ((rc = aq_ibv_ad_try(&call)) == AQ_RETRY);
    aq_wait_end(&waiter);
    return rc;
}
