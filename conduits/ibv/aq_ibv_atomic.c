/*
 * aq_ibv_atomic.c - atomic operations that the target's device executes.
 *
 * A device's atomics are atomic with each other (IBV_ATOMIC_HCA), not with the processor's, nor
 * with those of another device. So a domain is served either by devices altogether or not at all:
 * every operation on a word, also its owner's and its near ranks', goes to the first rail of the
 * owner, as an atomic of the wire. That is legal where
 *
 *     the type     has 64 bits and is an integer: the wire has no other
 *     every operation of the domain  is an addition, a comparison and swap, or a look, which is an
 *                  addition of 0: a domain that may set, swap or multiply would need a second kind
 *                  of access, not atomic with the first
 *     every rank   has a device with atomics on its first rail; all ranks have told each other
 *     the target   is in a segment that is registered for good: not in segment everything, whose
 *     memory may move
 *
 * and it is right where the client has not said that its operations will stay at home
 * (GEX_FLAG_AD_FAVOR_MY_RANK, _MY_NBRHD): the processor does those in a few nanoseconds. All other
 * domains are the processor's, at the target, by messages (extended/aq_ad_ref.c). The choice
 * depends on what is the same on every member, so all make the same.
 *
 * A look is no RDMA read: the wire promises nothing about a read beside an atomic.
 *
 * Threads   any; completions under the reap lock
 * Uses      aq_ibv_xfer.h, extended/aq_ad.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "conduits/ibv/aq_ibv_xfer.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "extended/aq_ad.h"

#define AQ_IBV_AD_OPS                                                                           \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | GEX_OP_CAS | GEX_OP_FADD | GEX_OP_FSUB \
     | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_FCAS | GEX_OP_GET)

bool aq_ibv_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    return (dt == GEX_DT_I64 || dt == GEX_DT_U64) && (ops & ~AQ_IBV_AD_OPS) == 0
           && (flags & (GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_MY_NBRHD)) == 0
           && aq_ibv_atomics_agreed();
}

/* --- completion; under the reap lock --- */

static void aq_ibv_ad_done(struct aq_ibv_done *done)
{
    struct aq_ibv_rma_frag *frag = (struct aq_ibv_rma_frag *)(void *)done; /* its first member */
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
    void *result_p; /* NULL: not a fetching one */
    uint64_t target;
    gex_EC_t category;
    enum ibv_wr_opcode opcode;
    uint64_t a, b; /* addend; or what is expected, and what takes its place */
};

/* Which atomic of the wire an operation is. */
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
    struct aq_waiter waiter = AQ_WAITER_INIT("room for an atomic operation", jobrank);
    int rc;

    (void)dt; /* addition and comparison are the same for both */
    aq_ibv_ad_translate(&call, opcode, operand1, operand2);
    rc = aq_ibv_ad_try(&call);
    if (AQ_LIKELY(rc != AQ_RETRY) || (flags & GEX_FLAG_IMMEDIATE) != 0)
        return rc;
    waiter.unrung = 1; /* the connector may be what it waits for */
    do
        aq_wait_step(&waiter);
    while ((rc = aq_ibv_ad_try(&call)) == AQ_RETRY);
    aq_wait_end(&waiter);
    return rc;
}
