/*
 * aq_am_deliver.h - running handlers: the part of delivery that conduits inline.
 *
 * Uses aq_am.h, aq_thread.h, and aq_am_dispatch.inc, which calls a handler through a pointer of its
 * exact type. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AM_DELIVER_H
#define AQ_AM_DELIVER_H

#include "core/aq_am.h"
#include "base/aq_log.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"

#include "core/aq_am_dispatch.inc"

/* The gex_Token_t that a handler gets. */
static inline gex_Token_t aq_am_handle(struct aq_token *token, const struct aq_thread *self)
{
#if GASNET_DEBUG
    (void)token;
    return self->token;
#else
    (void)self;
    return (gex_Token_t)(void *)token;
#endif
}

/* Looks up the handler, and records what this thread is running. */
static inline gex_AM_Fn_t aq_am_enter(struct aq_token *token, struct aq_thread *self)
{
    /* relaxed: a rank sends for a handler only after messages that the registering thread began;
     * that chain orders this load after the registration's store */
    const gex_AM_Fn_t fn =
        atomic_load_explicit(&aq_job.ep.handler[token->handler], memory_order_relaxed);

    if (AQ_UNLIKELY(fn == NULL))
        aq_am_no_handler(token);
#if GASNET_DEBUG
    aq_am_check_handler(token);
    token->outer = self->token;
    self->token = (gex_Token_t)(void *)((char *)token + self->tokens++ % AQ_TOKEN_NUMBERS);
#endif
    self->context = token->is_reply ? AQ_CTX_REPLY : AQ_CTX_REQUEST;
    return fn;
}

static inline void aq_am_exit(const struct aq_token *token, struct aq_thread *self, uint8_t outer)
{
#if GASNET_DEBUG
    if (self->context == AQ_CTX_PREPARED)
        aq_fatal("handler %u returned between a gex_AM_Prepare and its Commit or Cancel",
                 token->handler);
    self->context = outer;
    self->token = token->outer;
    if (self->hsls_locked != 0 && outer == AQ_CTX_MAIN)
        aq_fatal("handler %u returned while its thread still holds an HSL", token->handler);
#else
    (void)token;
    self->context = outer;
#endif
}

/* The same with tracing or statistics. */
void aq_am_deliver_short_traced(struct aq_token *token, const gex_AM_Arg_t *args);
void aq_am_deliver_payload_traced(struct aq_token *token, void *payload, size_t nbytes,
                                  const gex_AM_Arg_t *args);

/* Runs the handler of a short message, which the token names. */
static inline void aq_am_deliver_short(struct aq_token *token, const gex_AM_Arg_t *args)
{
    struct aq_thread *self;
    gex_AM_Fn_t fn;
    uint8_t outer;

    if (AQ_UNLIKELY(aq_trace_is_on())) {
        aq_am_deliver_short_traced(token, args);
        return;
    }
    self = aq_thread_self();
    outer = self->context;
    fn = aq_am_enter(token, self);
    aq_am_call_short(fn, token->nargs, aq_am_handle(token, self), NULL, 0, args);
    aq_am_exit(token, self, outer);
}

/* The same for a message with a payload. */
static inline void aq_am_deliver_payload(struct aq_token *token, void *payload, size_t nbytes,
                                         const gex_AM_Arg_t *args)
{
    struct aq_thread *self;
    gex_AM_Fn_t fn;
    uint8_t outer;

    if (AQ_UNLIKELY(aq_trace_is_on())) {
        aq_am_deliver_payload_traced(token, payload, nbytes, args);
        return;
    }
    self = aq_thread_self();
    outer = self->context;
    fn = aq_am_enter(token, self);
    aq_am_call_payload(fn, token->nargs, aq_am_handle(token, self), payload, nbytes, args);
    aq_am_exit(token, self, outer);
}

#endif
