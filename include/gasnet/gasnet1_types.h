/*
 * gasnet1_types.h - types and constants of GASNet-1, most of them other names for EX ones.
 *
 * Source: GASNet specification 1.8, types and constants. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_TYPES_H
#define GASNET_GASNET1_TYPES_H 1

AQ_BEGIN_DECLS

typedef gex_Rank_t gasnet_node_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_Token_t gasnet_token_t;
typedef gex_Event_t gasnet_handle_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
typedef gex_HSL_t gasnet_hsl_t;
typedef struct gasnet_valget_handle_s *gasnet_valget_handle_t;

#define SIZEOF_GASNET_REGISTER_VALUE_T 8
#define GASNET_INVALID_HANDLE          GEX_EVENT_INVALID
#define GASNET_HSL_INITIALIZER         GEX_HSL_INITIALIZER

/* Maximum number of client threads at a time, as a build-time constant: a client's limit for its
 * own threads. GASNETT_MAX_THREADS is the one that clients size tables by, and
 * gex_System_QueryMaxThreads() returns the running job's value. */
#ifndef GASNETI_MAX_THREADS
#if GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS 65536
#endif
#endif

/* One row of the table for gasnet_attach(); positional initialisers rely on this order, and
 * on fnptr being a function of any arguments. */
typedef struct gasnet_handlerentry_s {
    gasnet_handler_t index; /* 0: the library assigns one, from 255 downwards */
    gex_AM_Fn_t fnptr;
} gasnet_handlerentry_t;

/* Has the layout of gex_Memvec_t and is read through it. */
typedef struct gasnet_memvec_s {
    void *addr;
    size_t len;
} AQ_ATTR((__may_alias__)) gasnet_memvec_t;

/* The team of all processes, if this process may use GASNet-1 communication: it was started with
 * gasnet_init() or with GEX_FLAG_USES_GASNET1. Set once, at start-up. */
extern AQ_PUBLIC gex_TM_t aq_gasnet1_tm;

/* Debug builds: end the job on a wrong start-up, context, node, range or size. */
AQ_PUBLIC void aq_gasnet1_check(const char *call);
AQ_PUBLIC void aq_gasnet1_check_rma(const char *call, gasnet_node_t node, const void *remote,
                                    size_t nbytes);
AQ_PUBLIC void aq_gasnet1_check_val(const char *call, gasnet_node_t node, const void *remote,
                                    size_t nbytes);
AQ_PUBLIC void aq_gasnet1_check_request(const char *call, gasnet_node_t node);
AQ_PUBLIC void aq_gasnet1_check_payload(const char *call, size_t nbytes, size_t limit);
AQ_PUBLIC void aq_gasnet1_check_reply(const char *call, gasnet_token_t token);
#if GASNET_DEBUG
#define AQ_GASNET1_CHECK(call) aq_gasnet1_check(call)
#define AQ_GASNET1_CHECK_RMA(call, node, remote, nbytes) \
    aq_gasnet1_check_rma(call, node, remote, nbytes)
#define AQ_GASNET1_CHECK_VAL(call, node, remote, nbytes) \
    aq_gasnet1_check_val(call, node, remote, nbytes)
#define AQ_GASNET1_CHECK_REQUEST(call, node)          aq_gasnet1_check_request(call, node)
#define AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, limit) aq_gasnet1_check_payload(call, nbytes, limit)
#define AQ_GASNET1_CHECK_REPLY(call, token)           aq_gasnet1_check_reply(call, token)
#else
#define AQ_GASNET1_CHECK(call)                           ((void)0)
#define AQ_GASNET1_CHECK_RMA(call, node, remote, nbytes) ((void)0)
#define AQ_GASNET1_CHECK_VAL(call, node, remote, nbytes) ((void)0)
#define AQ_GASNET1_CHECK_REQUEST(call, node)             ((void)0)
#define AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, limit)    ((void)0)
#define AQ_GASNET1_CHECK_REPLY(call, token)              ((void)0)
#endif

AQ_END_DECLS

#endif
