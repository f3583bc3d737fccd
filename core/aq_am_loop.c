/*
 * aq_am_loop.c - active messages of a process to itself.
 *
 * Owns      nothing: a payload is in a buffer of the thread, in its descriptor of that direction
 * Threads   any; a message never leaves its thread
 * Promise   after at most AQ_LOOP_POLL such messages the network is polled: a poll for each would
 *           cost more than the message
 * Uses      aq_am_deliver.h, aq_poll.h, the conduit's sleep_wake
 * See       GASNet-EX specification 0.19, Active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_am_loop.h"

#include "core/aq_am_deliver.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"

#define AQ_LOOP_POLL 32u /* requests between two polls; a power of two */

/* Writes the token field by field, in place. A token that is built and then copied is read in wider
 * accesses than it was written in, and each such read waits for the stores to leave the core's
 * store buffer. */
static inline void aq_am_loop_fill(struct aq_token *token, enum aq_am_kind kind, bool is_reply,
                                   gex_AM_Index_t handler, unsigned nargs)
{
    token->jobrank = aq_job.rank;
    token->handler = handler;
    token->nargs = (uint8_t)nargs;
    token->kind = (uint8_t)kind;
    token->loc = 0;
    token->is_reply = is_reply;
    token->replied = false;
}

/* Called after a request's handler. A reply's handler runs inside one. */
static inline void aq_am_loop_after(struct aq_thread *self, gex_Flags_t flags)
{
#if AQ_THREADED
    /* Another thread may sleep on what the handler has changed. This orders the stores for the
     * compiler, the sleeper's membarrier for the processor: either this test sees the sleeper, or
     * the sleeper sees what the handler stored */
    atomic_signal_fence(memory_order_seq_cst);
    if (AQ_UNLIKELY(atomic_load_explicit(aq_job.sleeping, memory_order_relaxed) != 0))
        aq_job.local->sleep_wake();
#endif
    if (AQ_UNLIKELY(++self->loops % AQ_LOOP_POLL == 0) && !(flags & GEX_FLAG_IMMEDIATE))
        aq_poll_of_send();
}

/* No tracing here: see aq_am_loop.h. */
static inline void aq_am_loop_run(bool is_short, enum aq_am_kind kind, bool is_reply,
                                  gex_AM_Index_t handler, gex_Flags_t flags, unsigned nargs,
                                  const gex_AM_Arg_t *args, void *payload, size_t nbytes)
{
    struct aq_thread *self = aq_thread_self();
    const uint8_t outer = self->context;
    struct aq_token token;
    gex_AM_Fn_t fn;

    aq_am_loop_fill(&token, kind, is_reply, handler, nargs);
    fn = aq_am_enter(&token, self);
    if (is_short) /* a compile-time constant */
        aq_am_call_short(fn, nargs, aq_am_handle(&token, self), NULL, 0, args);
    else
        aq_am_call_payload(fn, nargs, aq_am_handle(&token, self), payload, nbytes, args);
    aq_am_exit(&token, self, outer);
    if (!is_reply)
        aq_am_loop_after(self, flags);
}

void aq_am_loop_short(bool is_reply, gex_AM_Index_t handler, gex_Flags_t flags, unsigned nargs,
                      const gex_AM_Arg_t *args)
{
    aq_am_loop_run(true, AQ_AM_SHORT, is_reply, handler, flags, nargs, args, NULL, 0);
}

void aq_am_loop_payload(enum aq_am_kind kind, bool is_reply, gex_AM_Index_t handler,
                        gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args, void *payload,
                        size_t nbytes)
{
    aq_am_loop_run(false, kind, is_reply, handler, flags, nargs, args, payload, nbytes);
}
