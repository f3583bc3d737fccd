/*
 * aq_am_loop.h - active messages of a process to itself: the send is a call of the handler.
 *
 * The handler runs inside the call that sends, on the calling thread, as in a poll: a request's in
 * ordinary context, a reply's inside the request handler that replies. That nests no deeper than
 * two, since a request handler sends nothing but its reply, and a reply handler nothing. Messages
 * to the library's own handlers take the conduit's way, since the code that sends them counts on
 * their being served in a later poll. So do all while they may be traced, and with
 * AQ_NO_OVERRIDES: aq_job.loop_rank is then nobody's.
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

/* Run the handler of a Short, and after a request's what a request owes. */
void aq_am_loop_short(bool is_reply, gex_AM_Index_t handler, gex_Flags_t flags, unsigned nargs,
                      const gex_AM_Arg_t *args);

/* The same for a payload that lies where the handler may have it. */
void aq_am_loop_payload(enum aq_am_kind kind, bool is_reply, gex_AM_Index_t handler,
                        gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args, void *payload,
                        size_t nbytes);

/* Where a Medium's handler is to have it: in the thread's buffer. */
static inline void *aq_am_loop_copy(bool is_reply, const void *src, size_t nbytes)
{
    void *payload = aq_npam_own(&aq_thread_self()->prepared[is_reply]);

    if (nbytes != 0) /* else src is not looked at */
        memcpy(payload, src, nbytes);
    return payload;
}

/* And a Long's: at its destination. */
static inline void *aq_am_loop_put(void *dest, const void *src, size_t nbytes)
{
    if (nbytes != 0)
        aq_copy(dest, src, nbytes);
    return dest;
}

#endif
