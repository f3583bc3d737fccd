/*
 * aq_am.c - active messages: the part that all conduits share.
 *
 * Owns      the rules: which sends are legal in which context, waiting for credit, one reply
 * Threads   any client thread; no lock is held while a handler runs
 * Promise   a request without credit serves everything that arrives, a reply without credit serves
 *           replies only. Every conduit keeps space for replies apart, so no rank waits for ever
 * Uses      aq_job.h, aq_thread.h, aq_poll.h, the conduit table
 * See       GASNet-EX specification 0.19, Active messages
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_am.h"

#include <string.h>

#include "core/aq_am_deliver.h"
#include "core/aq_am_loop.h"
#include "core/aq_am_out.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"

static const char *const aq_am_kind_names[] = { "Short", "Medium", "Long" };

/* --- delivery --- */

/* Checks a message against its handler's registered flags and argument count. */
void aq_am_check_handler(const struct aq_token *token)
{
    static const char *const kinds[] = { "SHORT", "MEDIUM", "LONG" };
    const gex_AM_Entry_t *entry = &aq_job.ep.entry[token->handler];
    const gex_Flags_t kind = (gex_Flags_t)GEX_FLAG_AM_SHORT << token->kind;
    const gex_Flags_t direction = token->is_reply ? GEX_FLAG_AM_REPLY : GEX_FLAG_AM_REQUEST;
    const char *name = entry->gex_name != NULL ? entry->gex_name : "unnamed";

    if ((entry->gex_flags & kind) == 0)
        aq_fatal("handler %u (%s) received a %s message from rank %u, but was not registered with "
                 "GEX_FLAG_AM_%s",
                 token->handler, name, aq_am_kind_names[token->kind], token->jobrank,
                 kinds[token->kind]);
    if ((entry->gex_flags & direction) == 0)
        aq_fatal("handler %u (%s) received a %s from rank %u, but was not registered with "
                 "GEX_FLAG_AM_%s",
                 token->handler, name, token->is_reply ? "reply" : "request", token->jobrank,
                 token->is_reply ? "REPLY" : "REQUEST");
    if (entry->gex_nargs != token->nargs && entry->gex_nargs != AQ_AM_ANY_NARGS)
        aq_fatal("handler %u (%s) received %u arguments from rank %u, but was registered with "
                 "gex_nargs %u",
                 token->handler, name, token->nargs, token->jobrank, entry->gex_nargs);
}

__attribute__((cold)) void aq_am_no_handler(const struct aq_token *token)
{
    aq_fatal(
        "a %s %s from rank %u names handler %u, which is not registered here; register it with "
        "gex_EP_RegisterHandlers and separate that from its first use by a barrier, or with "
        "gasnet_attach",
        aq_am_kind_names[token->kind], token->is_reply ? "reply" : "request", token->jobrank,
        token->handler);
}

static inline void aq_am_deliver_any(struct aq_am_in *in)
{
    struct aq_token *token = &in->token;
    struct aq_thread *self = aq_thread_self();
    const uint8_t outer = self->context;
    const gex_AM_Fn_t fn = aq_am_enter(token, self);

    if (token->kind == AQ_AM_SHORT)
        aq_am_call_short(fn, token->nargs, aq_am_handle(token, self), NULL, 0, in->args);
    else
        aq_am_call_payload(fn, token->nargs, aq_am_handle(token, self), in->payload, in->nbytes,
                           in->args);
    aq_am_exit(token, self, outer);
}

/* Delivery with tracing or statistics. */
static __attribute__((noinline, cold)) void aq_am_deliver_traced(struct aq_am_in *in)
{
    const struct aq_trace_handler handler = aq_trace_begin_handler(&in->token);

    aq_am_deliver_any(in);
    aq_trace_end_handler(&handler, &in->token, in->args,
                         in->token.kind == AQ_AM_SHORT ? 0 : in->nbytes);
}

__attribute__((cold)) void aq_am_deliver_payload_traced(struct aq_token *token, void *payload,
                                                        size_t nbytes, const gex_AM_Arg_t *args)
{
    struct aq_am_in in = { .token = *token, .args = args, .payload = payload, .nbytes = nbytes };

    aq_am_deliver_traced(&in);
    *token = in.token;
}

__attribute__((cold)) void aq_am_deliver_short_traced(struct aq_token *token,
                                                      const gex_AM_Arg_t *args)
{
    aq_am_deliver_payload_traced(token, NULL, 0, args);
}

void aq_am_deliver(struct aq_am_in *in)
{
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_am_deliver_traced(in);
    else
        aq_am_deliver_any(in);
}

/* --- tokens --- */

#if GASNET_DEBUG
void aq_am_check_token(const char *call, gex_Token_t handle)
{
    const struct aq_thread *self = aq_thread_self();
    const struct aq_token *token;

    aq_check_handle(call, "token", handle);
    if (self->token == NULL)
        aq_fatal("%s called outside a handler; a token is good until its handler returns", call);
    token = aq_token(self->token);
    if (handle != self->token)
        aq_fatal("%s: the token is not that of the handler which runs, of message %u from rank "
                 "%u: a token is good for its own handler only, until that returns",
                 call, token->handler, token->jobrank);
}
#endif

gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask)
{
    AQ_AM_CHECK_TOKEN(__func__, token);
    const struct aq_token *own = aq_token(token);

    (void)mask; /* writing every field costs less than testing for each */
    info->gex_srcrank = own->jobrank;
    info->gex_ep = (gex_EP_t)(void *)&aq_job.ep;
    info->gex_entry = &aq_job.ep.entry[own->handler];
    info->gex_is_req = !own->is_reply;
    info->gex_is_long = own->kind == AQ_AM_LONG;
    return GEX_TI_ALL;
}

/* --- debug checks of a message that is sent --- */

void aq_am_check_index(const char *call, gex_AM_Index_t handler)
{
    if (handler < GEX_AM_INDEX_BASE)
        aq_fatal("%s: handler index %u; those of clients begin at GEX_AM_INDEX_BASE, which is %u",
                 call, handler, GEX_AM_INDEX_BASE);
}

#if GASNET_DEBUG

void aq_am_check_lc(const char *call, const gex_Event_t *lc_opt, bool is_reply)
{
    if (lc_opt == NULL)
        aq_fatal("%s: lc_opt is NULL; pass GEX_EVENT_NOW or the address of an event", call);
    if (lc_opt == GEX_EVENT_DEFER)
        aq_fatal("%s: lc_opt is GEX_EVENT_DEFER, which messages do not have", call);
    if (lc_opt == GEX_EVENT_GROUP && is_reply)
        aq_fatal("%s: lc_opt is GEX_EVENT_GROUP, which replies do not have", call);
}

void aq_am_check_nargs(const char *call, unsigned nargs)
{
    if (nargs > AQ_AM_MAX_ARGS)
        aq_fatal("%s: %u arguments; the most is %u", call, nargs, AQ_AM_MAX_ARGS);
}

void aq_am_check_dest(const char *call, gex_Rank_t jobrank, const void *dest, size_t nbytes)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)call, (void)jobrank, (void)dest, (void)nbytes;
#else
    if (nbytes > 0 && !aq_bound_contains(jobrank, dest, nbytes))
        aq_fatal("%s: [%p, +%zu) is not inside the segment of rank %u, which is [%p, +%zu)", call,
                 dest, nbytes, jobrank, aq_job.bound[jobrank].addr,
                 (size_t)aq_job.bound[jobrank].size);
#endif
}

static void aq_am_check_short(const char *call, unsigned nargs, gex_Flags_t flags)
{
    aq_am_check_nargs(call, nargs);
    if ((flags & (GEX_FLAG_AM_PREPARE_LEAST_CLIENT | GEX_FLAG_AM_PREPARE_LEAST_ALLOC)) != 0)
        aq_fatal("%s: GEX_FLAG_AM_PREPARE_LEAST_* are flags of the size queries, not of sends",
                 call);
}

static void aq_am_check_out(const char *call, const struct aq_am_out *out,
                            const gex_Event_t *lc_opt, gex_Flags_t flags)
{
    const size_t limit = out->kind == AQ_AM_LONG ? aq_limits.max_long : aq_limits.max_medium;

    aq_am_check_short(call, out->nargs, flags);
    aq_am_check_lc(call, lc_opt, out->is_reply);
    if (out->nbytes > limit)
        aq_fatal("%s: payload of %zu bytes; the most is %zu (ask gex_AM_Max%s%s)", call,
                 out->nbytes, limit, out->is_reply ? "Reply" : "Request",
                 aq_am_kind_names[out->kind]);
    if (out->src == NULL && out->nbytes != 0)
        aq_fatal("%s: the source is NULL, but the payload has %zu bytes", call, out->nbytes);
    if (out->kind == AQ_AM_LONG)
        aq_am_check_dest(call, out->jobrank, out->dest, out->nbytes);
}

static void aq_am_check_medium(const char *call, bool is_reply, const void *src, size_t nbytes,
                               const gex_Event_t *lc_opt, unsigned nargs, gex_Flags_t flags)
{
    const struct aq_am_out out = { .kind = AQ_AM_MEDIUM,
                                   .is_reply = is_reply,
                                   .nargs = (uint8_t)nargs,
                                   .src = src,
                                   .nbytes = nbytes };

    aq_am_check_out(call, &out, lc_opt, flags);
}

void aq_am_check_endpoints(const char *call, gex_TM_t tm)
{
    if (aq_tm(tm)->peer_index != 0 || aq_tm_head_of(tm)->ep != (gex_EP_t)(void *)&aq_job.ep)
        aq_fatal("%s: the TM-pair is of endpoint %u here and %u there; only primordial endpoints "
                 "(0) send and take messages",
                 call, gex_EP_QueryIndex(aq_tm_head_of(tm)->ep), aq_tm(tm)->peer_index);
}

void aq_am_check_peer(const char *call, gex_TM_t tm, gex_Rank_t rank)
{
    aq_check_started(call);
    if (tm == GEX_TM_INVALID)
        aq_fatal("%s: the team is GEX_TM_INVALID", call);
    if (aq_tm_head_of(tm)->size == 0)
        aq_fatal("%s: the team %p has been destroyed", call, (const void *)tm);
    if (rank >= aq_tm_head_of(tm)->size)
        aq_fatal("%s: rank %u is outside 0..%u", call, rank, aq_tm_head_of(tm)->size - 1);
    aq_am_check_endpoints(call, tm);
}

void aq_am_check_request(const char *call, gex_TM_t tm, gex_Rank_t rank)
{
    aq_am_check_peer(call, tm, rank);
    aq_thread_check_main(call);
}

void aq_am_check_reply(const char *call, gex_Token_t handle)
{
    const struct aq_thread *self = aq_thread_self();
    const struct aq_token *token;

    aq_check_started(call);
    if (self->context == AQ_CTX_MAIN)
        aq_fatal("%s called outside a handler; only a request handler may reply", call);
    if (self->context == AQ_CTX_PREPARED)
        aq_thread_check_main(call); /* reports the reason itself */
    aq_am_check_token(call, handle);
    token = aq_token(handle);
    if (self->context == AQ_CTX_REPLY || token->is_reply)
        aq_fatal("%s called in a reply handler; only a request handler may reply", call);
    if (token->replied)
        aq_fatal("%s: the handler of request %u from rank %u has already replied; one reply is "
                 "allowed",
                 call, token->handler, token->jobrank);
    if (self->hsls_locked != 0)
        aq_fatal("%s called by a thread that holds an HSL; release it before replying", call);
}

#define AQ_AM_CHECK_OUT(call, out, lc_opt, flags) aq_am_check_out(call, out, lc_opt, flags)
#define AQ_AM_CHECK_SHORT(call, nargs, flags)     aq_am_check_short(call, nargs, flags)
#define AQ_AM_CHECK_MEDIUM(call, is_reply, src, nbytes, lc_opt, nargs, flags) \
    aq_am_check_medium(call, is_reply, src, nbytes, lc_opt, nargs, flags)
#else
#define AQ_AM_CHECK_OUT(call, out, lc_opt, flags)                             ((void)0)
#define AQ_AM_CHECK_SHORT(call, nargs, flags)                                 ((void)0)
#define AQ_AM_CHECK_MEDIUM(call, is_reply, src, nbytes, lc_opt, nargs, flags) ((void)0)
#endif

/* --- sending --- */

/* No credit: serves what arrives, which also makes credit available at the other end. */
__attribute__((noinline)) int aq_am_send_waiting(const struct aq_am_out *out, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for a message", out->jobrank);

    if (flags & GEX_FLAG_IMMEDIATE)
        return 1;
    AQ_TRACE_SCOPE(AQ_TRACE_CREDIT_WAIT, out->jobrank, out->nbytes);
    waiter.no_wakeup = 1; /* receivers return credit without a wakeup */
    do {
        if (out->is_reply)
            aq_wait_step_replies(&waiter);
        else
            aq_wait_step(&waiter);
    } while (aq_job_ops(out->jobrank)->am_send(out) == AQ_RETRY);
    aq_wait_end(&waiter);
    return 0;
}

/* Sending with tracing or statistics. */
static __attribute__((noinline, cold)) int aq_am_send_traced(const struct aq_am_out *out,
                                                             gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(aq_trace_send_kind(out, false));

    if (aq_job_ops(out->jobrank)->am_send(out) == AQ_RETRY && aq_am_send_waiting(out, flags) != 0)
        return 1;
    aq_trace_end_send(began, out, false);
    return 0;
}

static inline int aq_am_send(const struct aq_am_out *out, gex_Flags_t flags)
{
    if (AQ_UNLIKELY(aq_trace_is_on()))
        return aq_am_send_traced(out, flags);
    if (AQ_UNLIKELY(aq_job_ops(out->jobrank)->am_send(out) == AQ_RETRY))
        return aq_am_send_waiting(out, flags);
    return 0;
}

int aq_am_try_send(const struct aq_am_out *out)
{
    return aq_am_send(out, GEX_FLAG_IMMEDIATE);
}

/* To this process itself: the message is never declined, and the source is free once it has been
 * copied. */
static inline int aq_am_loop_medium(bool is_reply, gex_AM_Index_t handler, const void *src,
                                    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags,
                                    unsigned nargs, const gex_AM_Arg_t *args)
{
    aq_am_complete_locally(lc_opt);
    aq_am_loop_payload(AQ_AM_MEDIUM, is_reply, handler, flags, nargs, args,
                       aq_am_loop_copy(is_reply, src, nbytes), nbytes);
    return 0;
}

static inline int aq_am_loop_long(bool is_reply, gex_AM_Index_t handler, const void *src,
                                  size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                                  unsigned nargs, const gex_AM_Arg_t *args)
{
    aq_am_complete_locally(lc_opt);
    aq_am_loop_payload(AQ_AM_LONG, is_reply, handler, flags, nargs, args,
                       aq_am_loop_put(dest, src, nbytes), nbytes);
    return 0;
}

/* A request polls the network once, so that a process that only sends still serves others. */
static inline int aq_am_send_request(const struct aq_am_out *out, gex_Flags_t flags)
{
    int declined = aq_am_send(out, flags);

    if (!(flags & GEX_FLAG_IMMEDIATE))
        aq_poll_of_send();
    return declined;
}

/* The slow path of short messages: no credit, or tracing is on. */
static __attribute__((noinline, cold)) int aq_am_short_slow(bool tried, gex_Rank_t jobrank,
                                                            bool is_reply, gex_AM_Index_t handler,
                                                            gex_Flags_t flags, unsigned nargs,
                                                            const gex_AM_Arg_t *args)
{
    const struct aq_am_out out = aq_am_out_short(jobrank, is_reply, handler, nargs, args);

    return tried ? aq_am_send_waiting(&out, flags) : aq_am_send_traced(&out, flags);
}

/* A short message is passed in registers. */
static inline int aq_am_send_short(gex_Rank_t jobrank, bool is_reply, gex_AM_Index_t handler,
                                   gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    if (AQ_UNLIKELY(aq_trace_is_on()))
        return aq_am_short_slow(false, jobrank, is_reply, handler, flags, nargs, args);
    if (AQ_UNLIKELY(aq_job_ops(jobrank)->am_short(jobrank, is_reply, handler, nargs, args)
                    == AQ_RETRY))
        return aq_am_short_slow(true, jobrank, is_reply, handler, flags, nargs, args);
    return 0;
}

/* The slow path of medium messages that are copied. */
static __attribute__((noinline, cold)) int aq_am_copied_slow(bool tried, gex_Rank_t jobrank,
                                                             bool is_reply, gex_AM_Index_t handler,
                                                             const void *src, size_t nbytes,
                                                             gex_Flags_t flags, unsigned nargs,
                                                             const gex_AM_Arg_t *args)
{
    const struct aq_am_out out =
        aq_am_out_medium(jobrank, is_reply, handler, src, nbytes, nargs, args);

    return tried ? aq_am_send_waiting(&out, flags) : aq_am_send_traced(&out, flags);
}

/* A medium message whose source is free when the call returns. */
static inline int aq_am_send_copied(gex_Rank_t jobrank, bool is_reply, gex_AM_Index_t handler,
                                    const void *src, size_t nbytes, gex_Flags_t flags,
                                    unsigned nargs, const gex_AM_Arg_t *args)
{
    if (AQ_UNLIKELY(aq_trace_is_on()))
        return aq_am_copied_slow(false, jobrank, is_reply, handler, src, nbytes, flags, nargs,
                                 args);
    if (AQ_UNLIKELY(
            aq_job_ops(jobrank)->am_medium(jobrank, is_reply, handler, src, nbytes, nargs, args)
            == AQ_RETRY))
        return aq_am_copied_slow(true, jobrank, is_reply, handler, src, nbytes, flags, nargs, args);
    return 0;
}

/* A medium message whose conduit may go on reading the source after the call. token: it is a reply;
 * NULL: a request. */
static __attribute__((noinline)) int aq_am_send_large(struct aq_token *token, gex_Rank_t jobrank,
                                                      gex_AM_Index_t handler, const void *src,
                                                      size_t nbytes, gex_Event_t *lc_opt,
                                                      gex_Flags_t flags, unsigned nargs,
                                                      const gex_AM_Arg_t *args)
{
    const bool is_reply = token != NULL;
    struct aq_am_lc lc = { .opt = lc_opt };
    struct aq_am_out out = aq_am_out_medium(jobrank, is_reply, handler, src, nbytes, nargs, args);
    int declined;

    out.lc = aq_am_medium_lc(&lc, nbytes, flags);
    if (is_reply) {
        declined = aq_am_send(&out, flags);
        token->replied |= !declined;
    } else {
        declined = aq_am_send_request(&out, flags);
    }
    aq_am_complete(&lc, declined != 0, is_reply);
    return declined;
}

int aq_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
                        unsigned int nargs, const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REQUEST("gex_AM_RequestShort", tm, rank);
    AQ_AM_CHECK_SHORT("gex_AM_RequestShort", nargs, flags);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    int declined;

    if (aq_am_is_loop(jobrank, handler)) {
        aq_am_loop_short(false, handler, flags, nargs, args);
        return 0;
    }
    declined = aq_am_send_short(jobrank, false, handler, flags, nargs, args);
    if (AQ_LIKELY(!(flags & GEX_FLAG_IMMEDIATE)))
        aq_poll_of_send();
    return declined;
}

int aq_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                         size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs,
                         const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REQUEST("gex_AM_RequestMedium", tm, rank);
    AQ_AM_CHECK_MEDIUM("gex_AM_RequestMedium", false, src, nbytes, lc_opt, nargs, flags);
    const gex_Rank_t jobrank = aq_tm_jobrank(tm, rank);
    int declined;

    if (aq_am_is_loop(jobrank, handler))
        return aq_am_loop_medium(false, handler, src, nbytes, lc_opt, flags, nargs, args);
    if (AQ_UNLIKELY(nbytes > AQ_AM_COPIED))
        return aq_am_send_large(NULL, jobrank, handler, src, nbytes, lc_opt, flags, nargs, args);
    declined = aq_am_send_copied(jobrank, false, handler, src, nbytes, flags, nargs, args);
    if (AQ_LIKELY(!(flags & GEX_FLAG_IMMEDIATE)))
        aq_poll_of_send();
    if (!declined)
        aq_am_complete_locally(lc_opt);
    return declined;
}

int aq_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                       size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                       unsigned int nargs, const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REQUEST("gex_AM_RequestLong", tm, rank);
    struct aq_am_lc lc = { .opt = lc_opt };
    const struct aq_am_out out = { .jobrank = aq_tm_jobrank(tm, rank),
                                   .handler = handler,
                                   .nargs = (uint8_t)nargs,
                                   .kind = AQ_AM_LONG,
                                   .args = args,
                                   .immediate = (flags & GEX_FLAG_IMMEDIATE) != 0,
                                   .src = src,
                                   .nbytes = nbytes,
                                   .dest = dest,
                                   .lc = &lc };
    int declined;

    AQ_AM_CHECK_OUT("gex_AM_RequestLong", &out, lc_opt, flags);
    if (aq_am_is_loop(out.jobrank, handler))
        return aq_am_loop_long(false, handler, src, nbytes, dest, lc_opt, flags, nargs, args);
    declined = aq_am_send_request(&out, flags);
    aq_am_complete(&lc, declined != 0, false);
    return declined;
}

/* A declined reply does not count as the handler's reply. */
static inline int aq_am_send_reply(gex_Token_t token, const struct aq_am_out *out,
                                   gex_Flags_t flags)
{
    int declined = aq_am_send(out, flags);

    if (!declined)
        aq_token(token)->replied = true;
    return declined;
}

int aq_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                      unsigned int nargs, const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REPLY("gex_AM_ReplyShort", token);
    AQ_AM_CHECK_SHORT("gex_AM_ReplyShort", nargs, flags);
    const gex_Rank_t jobrank = aq_token(token)->jobrank;
    int declined;

    if (aq_am_is_loop(jobrank, handler)) {
        aq_token(token)->replied = true;
        aq_am_loop_short(true, handler, flags, nargs, args);
        return 0;
    }
    declined = aq_am_send_short(jobrank, true, handler, flags, nargs, args);
    if (!declined)
        aq_token(token)->replied = true;
    return declined;
}

int aq_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t nbytes,
                       gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs,
                       const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REPLY("gex_AM_ReplyMedium", token);
    AQ_AM_CHECK_MEDIUM("gex_AM_ReplyMedium", true, src, nbytes, lc_opt, nargs, flags);
    const gex_Rank_t jobrank = aq_token(token)->jobrank;

    if (aq_am_is_loop(jobrank, handler)) {
        aq_token(token)->replied = true;
        return aq_am_loop_medium(true, handler, src, nbytes, lc_opt, flags, nargs, args);
    }
    if (AQ_UNLIKELY(nbytes > AQ_AM_COPIED))
        return aq_am_send_large(aq_token(token), jobrank, handler, src, nbytes, lc_opt, flags,
                                nargs, args);
    if (aq_am_send_copied(jobrank, true, handler, src, nbytes, flags, nargs, args) != 0)
        return 1;
    aq_token(token)->replied = true;
    aq_am_complete_locally(lc_opt);
    return 0;
}

int aq_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t nbytes,
                     void *dest, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned int nargs,
                     const gex_AM_Arg_t *args)
{
    AQ_AM_CHECK_REPLY("gex_AM_ReplyLong", token);
    struct aq_am_lc lc = { .opt = lc_opt };
    const struct aq_am_out out = { .jobrank = aq_token(token)->jobrank,
                                   .handler = handler,
                                   .nargs = (uint8_t)nargs,
                                   .kind = AQ_AM_LONG,
                                   .is_reply = 1,
                                   .immediate = (flags & GEX_FLAG_IMMEDIATE) != 0,
                                   .args = args,
                                   .src = src,
                                   .nbytes = nbytes,
                                   .dest = dest,
                                   .lc = &lc };
    int declined;

    AQ_AM_CHECK_OUT("gex_AM_ReplyLong", &out, lc_opt, flags);
    if (aq_am_is_loop(out.jobrank, handler)) {
        aq_token(token)->replied = true;
        return aq_am_loop_long(true, handler, src, nbytes, dest, lc_opt, flags, nargs, args);
    }
    declined = aq_am_send_reply(token, &out, flags);
    aq_am_complete(&lc, declined != 0, true);
    return declined;
}
