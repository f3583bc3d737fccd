/*
 * gasnet1_am.h - active messages of GASNet-1: limits, the sender of a message, requests, replies.
 *
 * The 119 forms with an argument count in their name, and the seven that take the count as an
 * argument, are generated in gasnet1_forms.h; all call the functions below.
 *
 * Common arguments:
 *   dest     the target: dest < gasnet_nodes()
 *   handler  an index registered at the target
 *   source_addr, nbytes  payload: any memory of this process, which may be reused at return
 *            (after LongAsync too); not read if nbytes is 0
 *   dest_addr  Long: destination of the payload, inside the target's segment; the handler gets this
 *            address even if nbytes is 0
 *   Context  requests: ordinary code; replies: a request handler, once, holding no lock
 *   Returns  GASNET_OK
 *
 * Source: GASNet specification 1.8, Active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_AM_H
#define GASNET_GASNET1_AM_H 1

AQ_BEGIN_DECLS

/** gasnet_AMMaxArgs - maximum number of handler arguments. These four: every context. */
static inline AQ_UNUSED size_t gasnet_AMMaxArgs(void)
{
    return gex_AM_MaxArgs();
}

/** gasnet_AMMaxMedium - the largest payload of a Medium request or reply, in bytes. */
static inline AQ_UNUSED size_t gasnet_AMMaxMedium(void)
{
    const size_t request = gex_AM_LUBRequestMedium(), reply = gex_AM_LUBReplyMedium();

    return request < reply ? request : reply;
}

/** gasnet_AMMaxLongRequest - the largest payload of a Long request, in bytes. */
static inline AQ_UNUSED size_t gasnet_AMMaxLongRequest(void)
{
    return gex_AM_LUBRequestLong();
}

/** gasnet_AMMaxLongReply - the largest payload of a Long reply, in bytes. */
static inline AQ_UNUSED size_t gasnet_AMMaxLongReply(void)
{
    return gex_AM_LUBReplyLong();
}

/**
 * gasnet_AMGetMsgSource - the sender of the message whose handler is running.
 * token     the handler's first argument
 * srcindex  output
 * Context   any handler
 * Returns GASNET_OK.
 */
static inline AQ_UNUSED int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *srcindex)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    *srcindex = info.gex_srcrank;
    return GASNET_OK;
}

/* --- the functions that the generated forms call --- */

static inline AQ_UNUSED int aq_gasnet1_request_short(const char *call, gasnet_node_t dest,
                                                     gasnet_handler_t handler, unsigned int nargs,
                                                     const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REQUEST(call, dest);
    (void)call;
    return aq_am_request_short(aq_gasnet1_tm, dest, handler, 0, nargs, args);
}

static inline AQ_UNUSED int aq_gasnet1_request_medium(const char *call, gasnet_node_t dest,
                                                      gasnet_handler_t handler, const void *src,
                                                      size_t nbytes, unsigned int nargs,
                                                      const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REQUEST(call, dest);
    AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, gasnet_AMMaxMedium());
    (void)call;
    return aq_am_request_medium(aq_gasnet1_tm, dest, handler, src, nbytes, GEX_EVENT_NOW, 0, nargs,
                                args);
}

static inline AQ_UNUSED int aq_gasnet1_request_long(const char *call, gasnet_node_t dest,
                                                    gasnet_handler_t handler, const void *src,
                                                    size_t nbytes, void *dest_addr,
                                                    unsigned int nargs,
                                                    const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REQUEST(call, dest);
    AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, gasnet_AMMaxLongRequest());
    AQ_GASNET1_CHECK_RMA(call, dest, dest_addr, nbytes);
    (void)call;
    return aq_am_request_long(aq_gasnet1_tm, dest, handler, src, nbytes, dest_addr, GEX_EVENT_NOW,
                              0, nargs, args);
}

static inline AQ_UNUSED int aq_gasnet1_reply_short(const char *call, gasnet_token_t token,
                                                   gasnet_handler_t handler, unsigned int nargs,
                                                   const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REPLY(call, token);
    (void)call;
    return aq_am_reply_short(token, handler, 0, nargs, args);
}

static inline AQ_UNUSED int aq_gasnet1_reply_medium(const char *call, gasnet_token_t token,
                                                    gasnet_handler_t handler, const void *src,
                                                    size_t nbytes, unsigned int nargs,
                                                    const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REPLY(call, token);
    AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, gasnet_AMMaxMedium());
    (void)call;
    return aq_am_reply_medium(token, handler, src, nbytes, GEX_EVENT_NOW, 0, nargs, args);
}

static inline AQ_UNUSED int aq_gasnet1_reply_long(const char *call, gasnet_token_t token,
                                                  gasnet_handler_t handler, const void *src,
                                                  size_t nbytes, void *dest_addr,
                                                  unsigned int nargs,
                                                  const gasnet_handlerarg_t *args)
{
    AQ_GASNET1_CHECK_REPLY(call, token);
    AQ_GASNET1_CHECK_PAYLOAD(call, nbytes, gasnet_AMMaxLongReply());
    (void)call;
    return aq_am_reply_long(token, handler, src, nbytes, dest_addr, GEX_EVENT_NOW, 0, nargs, args);
}

/* Ends the job: a form that is given a count needs as many arguments after it. */
AQ_PUBLIC void aq_gasnet1_wrong_count(const char *call, int numargs, int counted);

static inline AQ_UNUSED void aq_gasnet1_check_count(const char *call, int numargs, int counted)
{
    if (AQ_UNLIKELY(numargs != counted))
        aq_gasnet1_wrong_count(call, numargs, counted);
}

AQ_END_DECLS

#include "gasnet/gasnet1_forms.h"

#endif
