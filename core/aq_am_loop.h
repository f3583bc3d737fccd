/*
 * aq_am_loop.h - active messages of a process to itself: the send is a call of the handler.
 *
 * The handler runs inside the call that sends, on the calling thread, as in a poll: a request's in
 * ordinary context, a reply's inside the request handler that replies. The nesting depth is at most
 * two, since a request handler sends only its reply, and a reply handler sends nothing. Messages to
 * the library's own handlers go through the conduit, since the code that sends them relies on their
 * being served in a later poll. While tracing is on, and with AQ_NO_OVERRIDES, all messages go
 * through the conduit: aq_job.loop_rank is GEX_RANK_INVALID then.
 *
 * A Medium handler may write to its payload, and the source is the client's: it is copied once,
 * into a buffer of the thread. A negotiated payload is made in that buffer and is not copied.
 *
 * Uses aq_am.h, aq_npam.h, aq_thread.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AM_LOOP_H
#define AQ_AM_LOOP_H

#include <string.h>

#include "core/aq_am.h"
#include "core/aq_npam.h"
#include "core/aq_thread.h"

static inline bool aq_am_is_loop(gex_Rank_t jobrank, gex_AM_Index_t handler)
{
    return AQ_UNLIKELY(jobrank == aq_job.loop_rank) && handler >= GEX_AM_INDEX_BASE;
}

/* Runs the handler of a Short, and does what follows a request. */
void aq_am_loop_short(bool is_reply, gex_AM_Index_t handler, gex_Flags_t flags, unsigned nargs,
                      const gex_AM_Arg_t *args);

/* The same for a payload that is already where the handler may have it. */
void aq_am_loop_payload(enum aq_am_kind kind, bool is_reply, gex_AM_Index_t handler,
                        gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args, void *payload,
                        size_t nbytes);

/* Copies a Medium's payload to the thread's buffer, where the handler gets it. */
static inline void *aq_am_loop_copy(bool is_reply, const void *src, size_t nbytes)
{
    void *payload = aq_npam_own(&aq_thread_self()->prepared[is_reply]);

    if (nbytes != 0) /* src is not read if nbytes is 0 */
        memcpy(payload, src, nbytes);
    return payload;
}

/* Copies a Long's payload to its destination. */
static inline void *aq_am_loop_put(void *dest, const void *src, size_t nbytes)
{
    if (nbytes != 0)
        aq_copy(dest, src, nbytes);
    return dest;
}

#endif
