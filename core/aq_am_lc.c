/*
 * aq_am_lc.c - local completion of messages whose source the conduit reads after the call.
 *
 * An event is an operation of its own. A group's completion is counted in the implicit operations.
 * A caller that needs the source at once waits for the operation and serves what arrives.
 *
 * Threads   the sender's
 * Uses      core/aq_op.h, core/aq_callback.h
 * See       GASNet-EX specification 0.19, Active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_am_lc.h"

#include "core/aq_poll.h"
#include "core/aq_callback.h"

static const struct aq_op_kind aq_am_lc_kind = {
    .waits_in = "gex_Event_Wait (local completion of a message)", .name = "a message"
};

struct aq_op *aq_am_lc_take(const struct aq_am_out *out)
{
    struct aq_am_lc *lc = out->lc;

    if (lc->op == NULL) /* not NULL: an earlier attempt found no credit */
        lc->op = lc->opt == GEX_EVENT_GROUP ? aq_op_implicit(out->jobrank)
                                            : aq_op_create(&aq_am_lc_kind, out->jobrank);
    aq_op_begin(lc->op, GEX_EC_AM, 1);
    return lc->op;
}

/* In a handler: serves replies only. */
static void aq_am_lc_wait_replies(struct aq_op *op)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("local completion of a reply", aq_op_peer(op));

    while (!aq_op_is_done(op, &waiter.peer))
        aq_wait_step_replies(&waiter);
    aq_wait_end(&waiter);
    aq_op_retire(op);
}

void aq_callback_am_sent(struct aq_am_lc *lc, bool replies_only)
{
    if (lc->opt == GEX_EVENT_GROUP)
        return;
    if (aq_lc_is_variable(lc->opt))
        *lc->opt = aq_op_expose(lc->op);
    else if (replies_only)
        aq_am_lc_wait_replies(lc->op);
    else
        aq_op_wait(lc->op);
}

void aq_callback_am_declined(struct aq_am_lc *lc)
{
    if (lc->opt != GEX_EVENT_GROUP)
        aq_op_retire(lc->op);
}
