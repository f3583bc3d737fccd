/*
 * aq_am_out.h - shared by the senders of messages with a fixed (aq_am.c) and with a negotiated
 * payload (aq_npam.c): local completion, waiting for credit, the checks of debug builds.
 *
 * Owns      nothing: messages and their local completions are on their senders' stacks
 * Threads   any; waiting runs handlers, for a reply those of replies only
 * Uses      core/aq_am.h, core/aq_callback.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AM_OUT_H
#define AQ_AM_OUT_H

#include "core/aq_am.h"
#include "core/aq_callback.h"

/* The payload was copied or placed before the send returned: local completion has happened. */
static inline void aq_am_complete_locally(gex_Event_t *lc_opt)
{
    if (aq_lc_is_variable(lc_opt))
        *lc_opt = GEX_EVENT_INVALID;
}

/* The lc that a medium message offers to its conduit. None if copying takes less time than the
 * offer. None if the call may not wait, and its source must be free when it returns. */
static inline struct aq_am_lc *aq_am_medium_lc(struct aq_am_lc *lc, size_t nbytes,
                                               gex_Flags_t flags)
{
    if (AQ_LIKELY(nbytes <= AQ_AM_COPIED)
        || ((flags & GEX_FLAG_IMMEDIATE) != 0 && lc->opt == GEX_EVENT_NOW))
        return NULL;
    return lc;
}

/* Handles the local completion of a message whose conduit could take it over. */
static inline void aq_am_complete(struct aq_am_lc *lc, bool declined, bool is_reply)
{
    if (AQ_LIKELY(lc->op == NULL)) {
        if (!declined)
            aq_am_complete_locally(lc->opt);
    } else if (declined) {
        aq_callback_am_declined(lc);
    } else {
        aq_callback_am_sent(lc, is_reply);
    }
}

/* The conduit had no credit. Returns non-zero with GEX_FLAG_IMMEDIATE. Otherwise serves what
 * arrives (for a reply: replies only) until the message is sent, and returns 0. */
int aq_am_send_waiting(const struct aq_am_out *out, gex_Flags_t flags);

/* For the library's own messages: sends a request if there is credit now; else returns non-zero.
 * The caller handles out->lc itself. */
int aq_am_try_send(const struct aq_am_out *out);

#if GASNET_DEBUG
/* The rules of every send. Each function ends the job with a message that names the call. */
void aq_am_check_endpoints(const char *call, gex_TM_t tm);
void aq_am_check_peer(const char *call, gex_TM_t tm, gex_Rank_t rank);
void aq_am_check_request(const char *call, gex_TM_t tm, gex_Rank_t rank);
void aq_am_check_reply(const char *call, gex_Token_t token);
void aq_am_check_nargs(const char *call, unsigned nargs);
void aq_am_check_lc(const char *call, const gex_Event_t *lc_opt, bool is_reply);
void aq_am_check_dest(const char *call, gex_Rank_t jobrank, const void *dest, size_t nbytes);
#define AQ_AM_CHECK_REQUEST(call, tm, rank) aq_am_check_request(call, tm, rank)
#define AQ_AM_CHECK_REPLY(call, token)      aq_am_check_reply(call, token)
#define AQ_AM_CHECK_TOKEN(call, token)      aq_am_check_token(call, token)
#else
#define AQ_AM_CHECK_REQUEST(call, tm, rank) ((void)0)
#define AQ_AM_CHECK_REPLY(call, token)      ((void)0)
#define AQ_AM_CHECK_TOKEN(call, token)      ((void)0)
#endif

#endif
