/*
 * npam.h - active messages with a negotiated payload: Prepare, Commit, Cancel.
 *
 * Prepare agrees with the library on the place and the maximum length of one message's payload. The
 * client then makes the payload, and Commit sends it or Cancel drops it. A buffer of the library
 * is, if the conduit supports that, the memory from which the target's handler reads: the payload
 * is then not copied.
 *
 * Between a successful Prepare and its Commit or Cancel the thread may make only the calls that
 * a reply handler may make, and may not prepare another message.
 *
 * The 136 forms of Commit with an argument count in their name (M in 0..16, M before _v2), and the
 * eight that count their arguments, are generated in am_forms.h:
 *
 *   void gex_AM_Commit{Request,Reply}MediumM(sd, h, nbytes, args...)
 *   void gex_AM_Commit{Request,Reply}LongM(sd, h, nbytes, dest, args...)
 *   int  gex_AM_Commit{Request,Reply}MediumM_v2(sd, h, nbytes, cflags, args...)
 *   int  gex_AM_Commit{Request,Reply}LongM_v2(sd, h, nbytes, dest, cflags, args...)
 *
 *   sd      from the Prepare of the same name, on this thread; consumed
 *   h       the handler at the target
 *   nbytes  0 <= nbytes <= gex_AM_SrcDescSize(sd); may be less than least_payload
 *   dest    Long: destination of the payload at the target; equal to Prepare's dest, unless that
 *           was NULL
 *   cflags  0, or GEX_FLAG_IMMEDIATE: instead of waiting returns non-zero and leaves sd open
 *   M       equal to numargs of Prepare
 *
 * Source: GASNet-EX specification 0.19, Negotiated-payload active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_NPAM_H
#define GASNET_NPAM_H 1

AQ_BEGIN_DECLS

/* The public part of a descriptor. */
struct aq_srcdesc_public {
    void *addr;
    size_t size;
};

/**
 * gex_AM_PrepareRequestMedium, _PrepareRequestLong, _PrepareReplyMedium, _PrepareReplyLong - begin
 * a message with a negotiated payload.
 * tm, rank       the target, or token: the request to reply to
 * client_buf     place of the payload; NULL: a buffer of the library
 * least_payload  minimum size that the client needs, bytes; at most the result of gex_AM_Max*()
 *                with GEX_FLAG_AM_PREPARE_LEAST_CLIENT (client_buf given) or _LEAST_ALLOC (NULL)
 * most_payload   maximum size that it can use, bytes; at least least_payload, any number
 * dest           Long only: NULL, or the dest of the Commit. The memory there is written by Commit,
 *                not before.
 * lc_opt         NULL if client_buf is; else as in the fixed-payload call. Written by Commit.
 * flags          0 or GEX_FLAG_IMMEDIATE
 * numargs        handler arguments of the Commit, 0..gex_AM_MaxArgs()
 * Context        where the fixed-payload call is legal Returns a descriptor; GEX_AM_SRCDESC_NO_OP
 * only with GEX_FLAG_IMMEDIATE, if there is no space now.
 */
AQ_PUBLIC gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank,
                                                       const void *client_buf, size_t least_payload,
                                                       size_t most_payload, gex_Event_t *lc_opt,
                                                       gex_Flags_t flags, unsigned int numargs);
AQ_PUBLIC gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf,
                                                     size_t least_payload, size_t most_payload,
                                                     gex_Event_t *lc_opt, gex_Flags_t flags,
                                                     unsigned int numargs);
AQ_PUBLIC gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank,
                                                     const void *client_buf, size_t least_payload,
                                                     size_t most_payload, void *dest,
                                                     gex_Event_t *lc_opt, gex_Flags_t flags,
                                                     unsigned int numargs);
AQ_PUBLIC gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf,
                                                   size_t least_payload, size_t most_payload,
                                                   void *dest, gex_Event_t *lc_opt,
                                                   gex_Flags_t flags, unsigned int numargs);

/**
 * gex_AM_CancelRequestMedium, _CancelRequestLong, _CancelReplyMedium, _CancelReplyLong - drop a
 * prepared message. Nothing is sent, and a reply may be prepared or sent again.
 * sd      from the Prepare of the same name, on this thread; consumed
 * flags   0
 * Returns 0. The event of lc_opt is not written.
 */
AQ_PUBLIC int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

/* Debug builds: ends the job unless sd is an open descriptor of this thread. */
AQ_PUBLIC void aq_npam_check_query(const char *call, gex_AM_SrcDesc_t sd);
#if GASNET_DEBUG
#define AQ_NPAM_CHECK_QUERY(call, sd) aq_npam_check_query(call, sd)
#else
#define AQ_NPAM_CHECK_QUERY(call, sd) ((void)0)
#endif

/**
 * gex_AM_SrcDescAddr - the place of a prepared message's payload: client_buf if that was given,
 * else a buffer aligned for any type, whose contents are undefined.
 */
static inline AQ_UNUSED void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd)
{
    AQ_NPAM_CHECK_QUERY("gex_AM_SrcDescAddr", sd);
    return ((const struct aq_srcdesc_public *)(const void *)sd)->addr;
}

/** gex_AM_SrcDescSize - maximum length of the payload: least_payload <= size <= most_payload. */
static inline AQ_UNUSED size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd)
{
    AQ_NPAM_CHECK_QUERY("gex_AM_SrcDescSize", sd);
    return ((const struct aq_srcdesc_public *)(const void *)sd)->size;
}

/* The functions that every form of Commit calls. They return 0 once the message is accepted, and
 * non-zero only with GEX_FLAG_IMMEDIATE in cflags. args is read during the call only. */
AQ_PUBLIC int aq_npam_commit_request_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                            size_t nbytes, gex_Flags_t cflags, unsigned int nargs,
                                            const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_npam_commit_request_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, void *dest, gex_Flags_t cflags,
                                          unsigned int nargs, const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_npam_commit_reply_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, gex_Flags_t cflags, unsigned int nargs,
                                          const gex_AM_Arg_t *args);
AQ_PUBLIC int aq_npam_commit_reply_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        void *dest, gex_Flags_t cflags, unsigned int nargs,
                                        const gex_AM_Arg_t *args);

AQ_END_DECLS

#endif
