/*
 * aq_valget.c - gasnet_get_nb_val() and gasnet_wait_syncnb_valget().
 *
 * The handle is an operation, in whose own cache line the value arrives: no further memory is used.
 *
 * Threads   any; pools of operations belong to threads
 * Uses      core/aq_op.h, the conduit table
 * See       GASNet specification 1.8, Extended API: register values; include/gasnet/gasnet1_rma.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

static const struct aq_op_kind aq_valget_kind = { .waits_in = "gasnet_wait_syncnb_valget",
                                                  .name = "gasnet_get_nb_val" };

gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, const void *src, size_t nbytes)
{
    AQ_TRACE_SCOPE(AQ_TRACE_GET_VAL_NB, node, nbytes);
    AQ_GASNET1_CHECK_VAL("gasnet_get_nb_val", node, src, nbytes);
    const intptr_t delta = aq_gasnet1_delta(node);
    struct aq_op *op = aq_op_create(&aq_valget_kind, node);
    char *dest = (char *)&op->value + aq_val_offset(nbytes);

    op->value = 0; /* the bytes that are not transferred */
    if (AQ_LIKELY(delta != AQ_NOT_MAPPED)) {
        aq_copy_val(dest, aq_rma_ptr(delta, src), nbytes);
        aq_fence_acquire();
    } else {
        aq_job_ops(node)->get(op, node, dest, src, nbytes, 0);
    }
    op->state = AQ_OP_LIVE;
    return (gasnet_valget_handle_t)(void *)op;
}

gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle)
{
    AQ_TRACE_SCOPE(AQ_TRACE_EVENT_WAIT, GEX_RANK_INVALID, 0);
    struct aq_op *op = (struct aq_op *)(void *)handle;
    struct aq_waiter waiter = AQ_WAITER_INIT(aq_valget_kind.waits_in, GEX_RANK_INVALID);
    gasnet_register_value_t value;

#if GASNET_DEBUG
    aq_thread_check_main(aq_valget_kind.waits_in);
    if (op == NULL || op->kind != &aq_valget_kind || op->state != AQ_OP_LIVE)
        aq_fatal(
            "gasnet_wait_syncnb_valget: %p is not a handle of a get that is under way; each is "
            "waited for once",
            (void *)op);
#endif
    if (aq_op_is_done(op, &waiter.peer)) {
        aq_poll(); /* programs that only get and wait must serve their peers too */
    } else {
        do {
            aq_wait_step(&waiter);
        } while (!aq_op_is_done(op, &waiter.peer));
        aq_wait_end(&waiter);
    }
    value = op->value;
    aq_op_retire(op);
    return value;
}
