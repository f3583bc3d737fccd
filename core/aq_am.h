/*
 * aq_am.h - active messages between the API and the conduits: tables, tokens, delivery.
 *
 * Out:  aq_am_request_*() and aq_am_reply_*() (the API) -> ops->am_send()
 * In:   ops->poll() -> aq_am_deliver() -> the client's handler, which may reply once
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
    AQ_HIDX_FIREHOSE,
    AQ_HIDX_FIREHOSE_REPLY,
    AQ_HIDX_COUNT
};

/* What the table says of a handler that takes requests and replies of any kind with any number
 * of arguments, as GASNet-1 clients register them. */
#define AQ_AM_ANY_KIND  (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP)
#define AQ_AM_ANY_NARGS (~0u)

/* Install one of them; at start-up, before the first message. */
void aq_am_register_internal(enum aq_am_index index, gex_AM_Fn_t fn, gex_Flags_t flags,
                             unsigned nargs, const char *name);

/* Debug builds: the low bits of a gex_Token_t are a number, so that the token of an earlier
 * handler, which was at the same address as a rule, is recognised. */
#define AQ_TOKEN_NUMBERS 16u

/* What gex_Token_t points to: lives on the stack while the handler runs. */
struct aq_token {
#if GASNET_DEBUG
    /* of the handler that this one interrupts; NULL: none */
    _Alignas(AQ_TOKEN_NUMBERS) gex_Token_t outer;
#endif
    gex_Rank_t jobrank; /* the sender */
    uint8_t handler;
    uint8_t nargs;
    uint8_t kind;
    uint8_t loc; /* the conduit's own */
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

/* A message that has arrived, as the conduit hands it over. payload may be written to by the
 * handler and stays ours until aq_am_deliver() returns. */
struct aq_am_in {
    struct aq_token token;
    const gex_AM_Arg_t *args;
    void *payload; /* medium, long */
    size_t nbytes;
};

/* Run the handler of a message on this thread. The conduit holds no lock. For short messages
 * core/aq_am_deliver.h has an inline form. */
void aq_am_deliver(struct aq_am_in *in);

/* The handler is not registered; or, in debug builds, not for such a message: ends the job. */
void aq_am_no_handler(const struct aq_token *token);
void aq_am_check_handler(const struct aq_token *token);
/* Debug builds: this is the token of the handler that this thread runs, or the job ends. */
void aq_am_check_token(const char *call, gex_Token_t handle);

/* The largest number of bytes the internal handlers may rely on, whatever the arguments. */
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
