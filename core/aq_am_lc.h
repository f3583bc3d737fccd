/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_am_lc.h - local completion, for conduits that read the source of a message after the call.
 *
 * Uses core/aq_op.h, core/aq_conduit.h
 */
#ifndef AQ_AM_LC_H
#define AQ_AM_LC_H

#include "core/aq_conduit.h"
#include "core/aq_op.h"

/* Returns true if the source must be free when the call returns. Copying a small payload is then
 * faster than waiting. */
static inline bool aq_am_lc_is_now(const struct aq_am_out *out)
{
    return out->lc == NULL || out->lc->opt == GEX_EVENT_NOW;
}

/**
 * aq_am_lc_take - the conduit takes the local completion over: it reads out->src, which has an lc,
 * after the call. One GEX_EC_AM is counted in the operation that this returns. aq_op_end() ends it,
 * when the source is free or if the message could not be sent.
 */
struct aq_op *aq_am_lc_take(const struct aq_am_out *out);

#endif
