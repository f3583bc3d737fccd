/*
 * am.h - active messages with a fixed payload: limits, tokens, requests and replies.
 *
 * The 102 forms with an argument count in their name, and the six that count their arguments, are
 * generated in am_forms.h; all call the six functions below. npam.h has the calls with a negotiated
 * payload.
 *
 * Source: GASNet-EX specification 0.19, Active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_AM_H
#define GASNET_AM_H 1

AQ_BEGIN_DECLS

#define AQ_AM_MAX_ARGS 16

/** gex_AM_MaxArgs - maximum number of handler arguments. Legal in every context, as all limits. */
static inline AQ_UNUSED unsigned int gex_AM_MaxArgs(void)
{
    return AQ_AM_MAX_ARGS;
}

/**
 * gex_AM_MaxRequestMedium, _MaxReplyMedium, _MaxRequestLong, _MaxReplyLong - the largest payload of
 * a message, in bytes.
 * tm, other  the other party; GEX_RANK_INVALID: the minimum over all peers
 * lc_opt     never dereferenced: GEX_EVENT_NOW, GEX_EVENT_GROUP or any other pointer
 * flags      as in the call; with GEX_FLAG_AM_PREPARE_LEAST_* the largest least_payload
 * numargs    handler arguments of the call
 */
AQ_PUBLIC size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt,
                                         gex_Flags_t flags, unsigned int numargs);
AQ_PUBLIC size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt,
                                       gex_Flags_t flags, unsigned int numargs);
AQ_PUBLIC size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt,
                                       gex_Flags_t flags, unsigned int numargs);
AQ_PUBLIC size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other, const gex_Event_t *lc_opt,
                                     gex_Flags_t flags, unsigned int numargs);
/** gex_Token_MaxReplyMedium, gex_Token_MaxReplyLong - the same for the reply to a request. */
AQ_PUBLIC size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt,
                                          gex_Flags_t flags, unsigned int numargs);
AQ_PUBLIC size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt,
                                        gex_Flags_t flags, unsigned int numargs);
/**
 * gex_AM_LUBRequestMedium, _LUBReplyMedium, _LUBRequestLong, _LUBReplyLong - lower bounds of the
 * limits above, over all peers of the job, in bytes. Before gex_Client_Init: over every possible
 * job, which may be less.
 */
AQ_PUBLIC size_t gex_AM_LUBRequestMedium(void);
AQ_PUBLIC size_t gex_AM_LUBReplyMedium(void);
AQ_PUBLIC size_t gex_AM_LUBRequestLong(void);
AQ_PUBLIC size_t gex_AM_LUBReplyLong(void);

/**
 * gex_Token_Info - facts about the running handler's message.
 * token  the handler's first argument
 * info   output
 * mask   OR of GEX_TI_*
 * Context any handler, also holding an HSL
 * Returns the mask of the fields that were written.
 */
AQ_PUBLIC gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);

/*
 * The functions that every form calls. They return 0 once the message is accepted, and non-zero
 * only with GEX_FLAG_IMMEDIATE if nothing was sent. args is read during the call only.
 */
AQ_PUBLIC int aq_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                  gex_Flags_t flags, unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                   const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                   gex_Flags_t flags, unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                 const void *src, size_t nbytes, void *dest, gex_Event_t *lc_opt,
                                 gex_Flags_t flags, unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                                unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                                 size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags,
                                 unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                               size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                               unsigned int nargs, const gex_AM_Arg_t *args);

/* Debug builds: ends the job unless the handler's index is at least GEX_AM_INDEX_BASE. The
 * library's own handlers have lower indices, and it sends to them through the same forms. */
AQ_PUBLIC void aq_am_check_index(const char *call, gex_AM_Index_t handler);
#if GASNET_DEBUG && !defined(AQ_BUILD_LIBRARY)
#define AQ_AM_CHECK_INDEX(call, handler) aq_am_check_index(call, handler)
#else
#define AQ_AM_CHECK_INDEX(call, handler) ((void)0)
#endif

/* The words of an address in handler arguments: private names that clients use. */
#define GASNETI_HIWORD(word) ((gex_AM_Arg_t)(uint32_t)((uint64_t)(uintptr_t)(word) >> 32))
#define GASNETI_LOWORD(word) ((gex_AM_Arg_t)(uint32_t)(uintptr_t)(word))
#define GASNETI_MAKEWORD(high, low) \
    ((uintptr_t)((uint64_t)(uint32_t)(high) << 32 | (uint64_t)(uint32_t)(low)))

AQ_END_DECLS

#endif
