/*
 * npam.h - active messages with a negotiated payload: Prepare, Commit, Cancel.
 *
 * Prepare agrees with the library on where the payload of one message is and how long it may be;
 * the client then makes the payload, and Commit sends it or Cancel drops it. With a buffer of the
 * library's the payload is written where the target's handler reads it, when the conduit can:
 * nothing is copied on the way.
 *
 * Between a successful Prepare and its Commit or Cancel the thread may make only the calls that
 * a reply handler may make, and may not prepare another message.
 *
 * The 136 forms of Commit with an argument count in their name (M in 0..16, M before _v2), and the
 * eight that count for themselves, are generated in am_forms.h:
 *
 *   void gex_AM_Commit{Request,Reply}MediumM(sd, h, nbytes, args...)
 *   void gex_AM_Commit{Request,Reply}LongM(sd, h, nbytes, dest, args...)
 *   int  gex_AM_Commit{Request,Reply}MediumM_v2(sd, h, nbytes, cflags, args...)
 *   int  gex_AM_Commit{Request,Reply}LongM_v2(sd, h, nbytes, dest, cflags, args...)
 *
 *   sd      from the Prepare of the same name, on this thread; consumed
 *   h       the handler at the target
 *   nbytes  0 <= nbytes <= gex_AM_SrcDescSize(sd); may be less than least_payload
 *   dest    Long: where the payload goes at the target; what Prepare was given, if that was not
 *           NULL
 *   cflags  0, or GEX_FLAG_IMMEDIATE: returns non-zero, and sd stays as it was, instead of waiting
 *   M       as numargs of Prepare
 *
 * Source: GASNet-EX specification 0.19, Negotiated-payload active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_NPAM_H
#define GASNET_NPAM_H 1

AQ_BEGIN_DECLS

/* What a descriptor points to; the rest of it is the library's. */
struct aq_srcdesc_public {
    void *addr;
    size_t size;
};

/**
 * gex_AM_PrepareRequestMedium and its three sisters - begin a message with a negotiated payload.
 * tm, rank       the target, or token: the request to reply to
 * client_buf     where the payload is going to be; NULL: in a buffer of the library's
 * least_payload  bytes that the client cannot do without; at most what gex_AM_Max*() says with
 *                GEX_FLAG_AM_PREPARE_LEAST_CLIENT (client_buf given) or _LEAST_ALLOC (NULL)
 * most_payload   bytes that it can use; at least least_payload, any number
 * dest           Long only: NULL, or what Commit is going to be given. The memory there is written
 *                by Commit, not before.
 * lc_opt         NULL if client_buf is; else as in the fixed-payload call. Written by Commit.
 * flags          0 or GEX_FLAG_IMMEDIATE
 * numargs        handler arguments of the Commit, 0..gex_AM_MaxArgs()
 * Context        where the fixed-payload call is legal
 * Returns a descriptor; GEX_AM_SRCDESC_NO_OP only with GEX_FLAG_IMMEDIATE, if there is no room now.
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
 * gex_AM_CancelRequestMedium and its three sisters - give up a prepared message; nothing is sent,
 * and a reply may be prepared or sent again.
 * sd      from the Prepare of the same name, on this thread; consumed
 * flags   0
 * Returns 0. The event of lc_opt is not written.
 */
AQ_PUBLIC int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
AQ_PUBLIC int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

/* Debug builds: sd is an open descriptor of this thread, or the job ends. */
AQ_PUBLIC void aq_npam_check_query(const char *call, gex_AM_SrcDesc_t sd);
#if GASNET_DEBUG
#define AQ_NPAM_CHECK_QUERY(call, sd) aq_npam_check_query(call, sd)
#else
#define AQ_NPAM_CHECK_QUERY(call, sd) ((void)0)
#endif

/**
 * gex_AM_SrcDescAddr - where the payload of a prepared message is to be: client_buf if that was
 * given, else a buffer aligned for any type, with any contents.
 */
static inline AQ_UNUSED void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd)
{
    AQ_NPAM_CHECK_QUERY("gex_AM_SrcDescAddr", sd);
    return ((const struct aq_srcdesc_public *)(const void *)sd)->addr;
}

/** gex_AM_SrcDescSize - how long it may be: least_payload <= size <= most_payload. */
static inline AQ_UNUSED size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd)
{
    AQ_NPAM_CHECK_QUERY("gex_AM_SrcDescSize", sd);
    return ((const struct aq_srcdesc_public *)(const void *)sd)->size;
}

/* What every form of Commit comes down to. Returns 0 once the message is accepted; non-zero only
 * with GEX_FLAG_IMMEDIATE in cflags. args is read during the call only. */
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
