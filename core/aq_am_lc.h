/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_am_lc.h - for conduits that keep the source of a message after the call: its local completion.
 *
 * Uses core/aq_op.h, core/aq_conduit.h
 */
#ifndef AQ_AM_LC_H
#define AQ_AM_LC_H

#include "core/aq_conduit.h"
#include "core/aq_op.h"

/* Must the source be free when the call returns? Then copying what is small beats waiting. */
static inline bool aq_am_lc_is_now(const struct aq_am_out *out)
{
    return out->lc == NULL || out->lc->opt == GEX_EVENT_NOW;
}

/**
 * aq_am_lc_take - the conduit will go on reading out->src, which has an lc. One GEX_EC_AM is
 * counted in the operation that this returns; aq_op_end() takes it away, when the source is free or
 * if the message could not be sent after all.
 */
struct aq_op *aq_am_lc_take(const struct aq_am_out *out);

#endif
