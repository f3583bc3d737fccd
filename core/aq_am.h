/*
 * aq_am.h - active messages between the API and the conduits: tables, tokens, delivery.
 *
 * Send:     aq_am_request_*() and aq_am_reply_*() (the API) -> ops->am_send()
 * Receive:  ops->poll() -> aq_am_deliver() -> the client's handler, which may reply once
 *
 * Uses aq_job.h, aq_thread.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_AM_H
#define AQ_AM_H

#include "core/aq_job.h"

/* Handlers of the library itself: below GEX_AM_INDEX_BASE, the same on every process. */
enum aq_am_index {
    AQ_HIDX_NONE = 0,
    AQ_HIDX_PUT_MEDIUM,
    AQ_HIDX_PUT_LONG,
    AQ_HIDX_PUT_ACK,
    AQ_HIDX_GET_REQUEST,
    AQ_HIDX_GET_DATA,
    AQ_HIDX_BARRIER,
    AQ_HIDX_NAMED_BARRIER,
    AQ_HIDX_MEMSET,
    AQ_HIDX_EXCHANGE,
    AQ_HIDX_VIS_PUT,
    AQ_HIDX_VIS_ACK,
    AQ_HIDX_VIS_GET,
    AQ_HIDX_VIS_DATA,
    AQ_HIDX_VIS_NOTICE,
    AQ_HIDX_AD_REQUEST,
    AQ_HIDX_AD_RESULT,
    AQ_HIDX_AD_DONE,
    AQ_HIDX_COLL_DATA,
    AQ_HIDX_COLL_READY,
    AQ_HIDX_DIRECT_PUT,
    AQ_HIDX_DIRECT_GET,
    AQ_HIDX_PUTS,
    AQ_HIDX_PUTS_DONE,
    AQ_HIDX_GETS,
    AQ_HIDX_GETS_DATA,
    AQ_HIDX_ATTENTION,
    AQ_HIDX_ATTENTION_PAID,
    AQ_HIDX_FIREHOSE,
    AQ_HIDX_FIREHOSE_REPLY,
    AQ_HIDX_COUNT
};

/* Registration of a handler that accepts requests and replies of any kind with any number of
 * arguments, as GASNet-1 clients register them. */
#define AQ_AM_ANY_KIND  (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP)
#define AQ_AM_ANY_NARGS (~0u)

/* Installs an internal handler; at start-up, before the first message. */
void aq_am_register_internal(enum aq_am_index index, gex_AM_Fn_t fn, gex_Flags_t flags,
                             unsigned nargs, const char *name);

/* Debug builds: the low bits of a gex_Token_t are a number. A stale token usually has the address
 * of the present one, and the number tells them apart. */
#define AQ_TOKEN_NUMBERS 16u

/* The object behind gex_Token_t. It is on the stack while the handler runs. */
struct aq_token {
#if GASNET_DEBUG
    /* token of the handler that this one interrupts; NULL: none */
    _Alignas(AQ_TOKEN_NUMBERS) gex_Token_t outer;
#endif
    gex_Rank_t jobrank; /* sender */
    uint8_t handler;
    uint8_t nargs;
    uint8_t kind;
    uint8_t loc; /* private to the conduit */
    uint8_t is_reply;
    uint8_t replied;
};

static inline struct aq_token *aq_token(gex_Token_t handle)
{
#if GASNET_DEBUG
    return (struct aq_token *)(void *)((char *)handle - (uintptr_t)handle % AQ_TOKEN_NUMBERS);
#else
    return (struct aq_token *)(void *)handle;
#endif
}

/* A message that has arrived, as the conduit passes it to aq_am_deliver(). The handler may write to
 * payload, which belongs to the conduit when aq_am_deliver() returns. */
struct aq_am_in {
    struct aq_token token;
    const gex_AM_Arg_t *args;
    void *payload; /* medium, long */
    size_t nbytes;
};

/* Runs the handler of a message on this thread. The conduit must hold no lock. core/aq_am_deliver.h
 * has an inline form for short messages. */
void aq_am_deliver(struct aq_am_in *in);

/* Ends the job: the handler is not registered or, in debug builds, not for such a message. */
void aq_am_no_handler(const struct aq_token *token);
void aq_am_check_handler(const struct aq_token *token);
/* Debug builds: ends the job unless this is the token of the handler that this thread runs. */
void aq_am_check_token(const char *call, gex_Token_t handle);

/* The payload size that internal handlers may rely on, for any number of arguments. */
static inline size_t aq_am_max_medium(void)
{
    return aq_limits.max_medium;
}

/* An address in two handler arguments, and back. */
#define AQ_ARGS_OF_PTR(ptr) \
    (gex_AM_Arg_t)((uint64_t)(uintptr_t)(ptr) >> 32), (gex_AM_Arg_t)(uint32_t)(uintptr_t)(ptr)

static inline void *aq_ptr_of_args(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (void *)(uintptr_t)((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

/* A number of 64 bits in two handler arguments, and back. */
#define AQ_ARGS_OF_U64(value) \
    (gex_AM_Arg_t)((uint64_t)(value) >> 32), (gex_AM_Arg_t)(uint32_t)(value)

static inline uint64_t aq_u64_of_args(gex_AM_Arg_t high, gex_AM_Arg_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

#endif
