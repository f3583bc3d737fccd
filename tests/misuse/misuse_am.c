/*
 * misuse_am.c - part of misuse.c: the rules of active messages, of tokens, of handlers and of
 * TM-pairs.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "misuse_main.h"

#include <unistd.h>

/* ---- handlers that break a rule ---- */

static void h_plain(gex_Token_t token)
{
    (void)token;
}

static void h_payload(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    (void)buf;
    (void)nbytes;
}

static void h_twice(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_REPLY, 0);
    gex_AM_ReplyShort0(token, H_REPLY, 0);
}

static void h_replies(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_REPLY, 0); /* this one was a reply already */
}

static void h_asks(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_REPLIES, 0);
}

static void h_requests(gex_Token_t token)
{
    (void)token;
    gex_AM_RequestShort0(tm, 0, H_PLAIN, 0);
}

static void h_polls(gex_Token_t token)
{
    (void)token;
    gasnet_AMPoll();
}

static void h_waits(gex_Token_t token)
{
    (void)token;
    gex_Event_Wait(GEX_EVENT_INVALID);
}

static void h_looks_up(gex_Token_t token)
{
    (void)token;
    (void)!gex_EP_QueryBoundSegmentNB(tm, 0, NULL, NULL, NULL, 0);
}

static void h_keeps_lock(gex_Token_t token)
{
    (void)token;
    gex_HSL_Lock(&lock);
}

static void h_group(gex_Token_t token)
{
    gex_AM_ReplyMedium0(token, H_MEDIUM, buffer, 8, GEX_EVENT_GROUP, 0);
}

/* Prepared replies that are forgotten, or followed by another reply. */
static void h_keeps_prepared(gex_Token_t token)
{
    gex_AM_PrepareReplyMedium(token, NULL, 8, 8, NULL, 0, 0);
}

static void h_prepares_then_replies(gex_Token_t token)
{
    gex_AM_PrepareReplyMedium(token, NULL, 8, 8, NULL, 0, 0);
    gex_AM_ReplyShort0(token, H_REPLY, 0);
}

static void h_prepares_group(gex_Token_t token)
{
    gex_AM_PrepareReplyLong(token, buffer, 8, 8, NULL, GEX_EVENT_GROUP, 0, 0);
}

/* A token that outlives its handler; the next one, for a message of the same kind, may have the
 * same address. */
static gex_Token_t saved;

static void h_keeps_token(gex_Token_t token)
{
    saved = token;
}

static void h_replies_late(gex_Token_t token)
{
    (void)token;
    gex_AM_ReplyShort0(saved, H_REPLY, 0);
}

static void h_asks_late(gex_Token_t token)
{
    gex_Token_Info_t info;

    (void)token;
    (void)gex_Token_Info(saved, &info, GEX_TI_ALL);
}

/* The handlers of wait_for_peer(), which break no rule. */
static volatile int echoed;

static void h_echoes(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_ECHOED, 0);
}

static void h_echoed(gex_Token_t token)
{
    (void)token;
    echoed = 1;
}

/* Returns when the peer has answered, which has handled what was sent to it before, or after so
 * many seconds. */
void wait_for_peer(int seconds)
{
    ask(H_ECHOES);
    for (int turns = 0; !echoed && turns < 1000 * seconds; turns++) {
        gasnet_AMPoll();
        usleep(1000);
    }
}

#define ROW(INDEX, FN, FLAGS, NARGS)                    \
    {                                                   \
        INDEX, (gex_AM_Fn_t)FN, FLAGS, NARGS, NULL, #FN \
    }
gex_AM_Entry_t misuse_table[] = {
    ROW(H_PLAIN, h_plain, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_MEDIUM, h_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQREP, 0),
    ROW(H_LONG, h_payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQREP, 0),
    ROW(H_TWICE, h_twice, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_REPLY, h_plain, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0),
    ROW(H_REPLIES, h_replies, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0),
    ROW(H_REQUESTS, h_requests, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_POLLS, h_polls, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_WAITS, h_waits, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_LOOKS_UP, h_looks_up, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_KEEPS_LOCK, h_keeps_lock, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_GROUP, h_group, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_KEEPS_PREPARED, h_keeps_prepared, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_PREPARES_THEN_REPLIES, h_prepares_then_replies, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST,
        0),
    ROW(H_PREPARES_GROUP, h_prepares_group, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_KEEPS_TOKEN, h_keeps_token, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_REPLIES_LATE, h_replies_late, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_ASKS_LATE, h_asks_late, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_ECHOES, h_echoes, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
    ROW(H_ECHOED, h_echoed, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0),
    ROW(199, h_asks, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0),
};
const size_t misuse_table_len = sizeof(misuse_table) / sizeof(misuse_table[0]);

/* ---- the cases ---- */

static void c_handler_unknown(void)
{
    ask(H_NOBODY);
}
static void c_handler_low(void)
{
    ask(7);
}
static void c_handler_args(void)
{
    gex_AM_RequestShort3(tm, peer(), H_PLAIN, 0, 1, 2, 3);
}
static void c_handler_kind(void)
{
    ask(H_MEDIUM);
}
static void c_handler_direction(void)
{
    ask(H_REPLY);
}
static void c_am_rank(void)
{
    gex_AM_RequestShort0(tm, n_ranks + 6, H_PLAIN, 0);
}
static void c_am_pair_rank(void)
{
    gex_AM_RequestShort0(gex_TM_Pair(ep, 0), n_ranks + 6, H_PLAIN, 0);
}
static void c_am_team(void)
{
    gex_AM_RequestShort0(GEX_TM_INVALID, 0, H_PLAIN, 0);
}
static void c_am_args_query(void)
{
    (void)gex_AM_MaxRequestMedium(tm, peer(), GEX_EVENT_NOW, 0, 17);
}

static void c_medium_oversize(void)
{
    const size_t max = gex_AM_MaxRequestMedium(tm, peer(), GEX_EVENT_NOW, 0, 0);

    gex_AM_RequestMedium0(tm, peer(), H_MEDIUM, buffer, max + 1, GEX_EVENT_NOW, 0);
}

/* Negotiated payload. */
static gex_AM_SrcDesc_t prepare(void)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, peer(), NULL, 16, 100, NULL, 0, 1);

    memset(gex_AM_SrcDescAddr(sd), 1, gex_AM_SrcDescSize(sd));
    return sd;
}

static gex_AM_SrcDesc_t prepare_long(void *dest)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestLong(tm, peer(), NULL, 16, 100, dest, NULL, 0, 0);

    memset(gex_AM_SrcDescAddr(sd), 1, gex_AM_SrcDescSize(sd));
    return sd;
}

static void c_np_none(void)
{
    gex_AM_CommitRequestMedium1(GEX_AM_SRCDESC_NO_OP, H_MEDIUM, 8, 1);
}
static void c_np_size(void)
{
    gex_AM_CommitRequestMedium1(prepare(), H_MEDIUM, 101, 1);
}
static void c_np_args(void)
{
    gex_AM_CommitRequestMedium2(prepare(), H_MEDIUM, 8, 1, 2);
}
static void c_np_kind(void)
{
    gex_AM_CommitRequestLong1(prepare(), H_LONG, 8, peer_base(), 1);
}
static void c_np_direction(void)
{
    gex_AM_CommitReplyMedium1(prepare(), H_MEDIUM, 8, 1);
}
static void c_np_index(void)
{
    gex_AM_CommitRequestMedium1(prepare(), 7, 8, 1);
}
static void c_np_flags(void)
{
    gex_AM_CommitRequestMedium1_v2(prepare(), H_MEDIUM, 8, 1u << 11, 1);
}
static void c_np_nested(void)
{
    prepare(), prepare();
}
static void c_np_send(void)
{
    prepare(), ask(H_PLAIN);
}
static void c_np_poll(void)
{
    prepare(), gasnet_AMPoll();
}
static void c_np_min(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), NULL, 1 << 20, 1 << 20, NULL, 0, 0);
}
static void c_np_min_max(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), NULL, 9, 8, NULL, 0, 0);
}
static void c_np_nargs(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), NULL, 8, 8, NULL, 0, 17);
}
static void c_np_rank(void)
{
    gex_AM_PrepareRequestMedium(tm, n_ranks + 6, NULL, 8, 8, NULL, 0, 0);
}
static void c_np_lc_ours(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), NULL, 8, 8, GEX_EVENT_NOW, 0, 0);
}
static void c_np_lc_null(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), buffer, 8, 8, NULL, 0, 0);
}
static void c_np_lc_defer(void)
{
    gex_AM_PrepareRequestMedium(tm, peer(), buffer, 8, 8, GEX_EVENT_DEFER, 0, 0);
}
static void c_np_cancel_flags(void)
{
    gex_AM_CancelRequestMedium(prepare(), 1);
}
static void c_np_cancel_kind(void)
{
    gex_AM_CancelRequestLong(prepare(), 0);
}
static void c_np_query(void)
{
    (void)gex_AM_SrcDescSize((gex_AM_SrcDesc_t)(void *)buffer);
}
static void c_np_keep(void)
{
    ask(H_KEEPS_PREPARED);
}
static void c_np_reply(void)
{
    ask(H_PREPARES_THEN_REPLIES);
}
static void c_np_group(void)
{
    ask(H_PREPARES_GROUP);
}
static void c_np_reply_outside(void)
{
    gex_AM_PrepareReplyMedium((gex_Token_t)(void *)buffer, NULL, 8, 8, NULL, 0, 0);
}
static void c_np_dest_outside(void)
{
    gex_AM_CommitRequestLong0(prepare_long(NULL), H_LONG, 16, buffer);
}

static void c_np_put(void)
{
    char *base = peer_base();

    prepare();
    gex_RMA_PutBlocking(tm, peer(), base, buffer, 8, 0);
}

static void c_np_lock(void)
{
    gex_AM_SrcDesc_t sd = prepare();

    gex_HSL_Lock(&lock);
    gex_AM_CommitRequestMedium1(sd, H_MEDIUM, 8, 1);
}

static void c_np_twice(void)
{
    gex_AM_SrcDesc_t sd = prepare();

    gex_AM_CancelRequestMedium(sd, 0);
    gex_AM_CommitRequestMedium1(sd, H_MEDIUM, 8, 1);
}

static void c_np_addr(void)
{
    gex_AM_SrcDesc_t sd = prepare();

    gex_AM_CancelRequestMedium(sd, 0);
    (void)gex_AM_SrcDescAddr(sd);
}

static void c_np_dest_moved(void)
{
    char *base = peer_base();

    gex_AM_CommitRequestLong0(prepare_long(base), H_LONG, 16, base + 8);
}

/* No rule, but worth a warning: nothing was written into the library's buffer. */
static void c_ok_np_unwritten(void)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, peer(), NULL, 64, 64, NULL, 0, 0);

    gex_AM_CommitRequestMedium0(sd, H_MEDIUM, 64);
}

static void long_to(char *dest, size_t len)
{
    gex_AM_RequestLong0(tm, peer(), H_LONG, buffer, len, dest, GEX_EVENT_NOW, 0);
}

static void c_long_outside(void)
{
    long_to(peer_base() + SEGMENT + 64, 8);
}
static void c_long_across(void)
{
    long_to(peer_base() + SEGMENT - 4, 8);
}
static void c_long_null(void)
{
    long_to(NULL, 8);
}
static void c_lc_null(void)
{
    gex_AM_RequestMedium0(tm, peer(), H_MEDIUM, buffer, 8, NULL, 0);
}
static void c_lc_defer(void)
{
    gex_AM_RequestMedium0(tm, peer(), H_MEDIUM, buffer, 8, GEX_EVENT_DEFER, 0);
}
static void c_reply_group(void)
{
    ask(H_GROUP);
}
static void c_reply_twice(void)
{
    ask(H_TWICE);
}
static void c_reply_from_reply(void)
{
    ask(199);
}
static void c_reply_outside(void)
{
    gex_AM_ReplyShort0((gex_Token_t)(void *)buffer, H_REPLY, 0);
}
static void c_reply_saved(void)
{
    ask(H_KEEPS_TOKEN), ask(H_REPLIES_LATE);
}
static void c_info_saved(void)
{
    ask(H_KEEPS_TOKEN), ask(H_ASKS_LATE);
}
static void c_info_outside(void)
{
    gex_Token_Info_t info;

    (void)gex_Token_Info((gex_Token_t)(void *)buffer, &info, GEX_TI_ALL);
}
static void c_request_in_handler(void)
{
    ask(H_REQUESTS);
}
static void c_poll_in_handler(void)
{
    ask(H_POLLS);
}
static void c_wait_in_handler(void)
{
    ask(H_WAITS);
}
static void c_bound_in_handler(void)
{
    ask(H_LOOKS_UP);
}
static void c_pair_limit(void)
{
    (void)gex_AM_MaxRequestMedium(gex_TM_Pair(ep, 1), 0, NULL, 0, 0);
}
static void c_pair_limit_any(void)
{
    (void)gex_AM_MaxRequestLong(gex_TM_Pair(ep, 1), GEX_RANK_INVALID, NULL, 0, 0);
}
static void c_pair_size(void)
{
    (void)gex_TM_QuerySize(gex_TM_Pair(ep, 0));
}
static void c_pair_rank(void)
{
    (void)gex_TM_QueryRank(gex_TM_Pair(ep, 0));
}
static void c_pair_client(void)
{
    (void)gex_TM_QueryClient(gex_TM_Pair(ep, 0));
}
static void c_pair_cdata(void)
{
    gex_TM_SetCData(gex_TM_Pair(ep, 0), buffer);
}
static void c_put_flags(void)
{
    gex_RMA_PutBlocking(tm, 0, buffer, buffer, 8, (gex_Flags_t)1 << 30);
}
static void c_lock_not_released(void)
{
    ask(H_KEEPS_LOCK);
}

static void c_ok_register_args(void)
{
    gex_AM_Entry_t e = ROW(220, h_plain, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 17);

    printf("returned %s\n", gasnet_ErrorName(gex_EP_RegisterHandlers(ep, &e, 1)));
}

/* clang-format off */
#define AM_CASES(X) \
    X(handler_unknown) X(handler_low) X(handler_args) X(handler_kind) X(handler_direction) \
    X(am_rank) X(am_pair_rank) X(am_team) X(am_args_query) X(medium_oversize) \
    X(long_outside) X(long_across) X(long_null) X(lc_null) X(lc_defer) X(reply_group) \
    X(reply_twice) X(reply_from_reply) X(reply_outside) X(request_in_handler) \
    X(poll_in_handler) X(wait_in_handler) X(bound_in_handler) X(pair_limit) X(pair_limit_any) \
    X(pair_size) X(pair_rank) X(pair_client) X(pair_cdata) X(put_flags) X(lock_not_released) \
    X(reply_saved) X(info_saved) X(info_outside) \
    X(ok_register_args) X(np_none) X(np_size) X(np_args) X(np_kind) X(np_direction) \
    X(np_index) X(np_flags) X(np_nested) X(np_send) X(np_poll) X(np_put) X(np_lock) \
    X(np_min) X(np_min_max) X(np_nargs) X(np_rank) X(np_lc_ours) X(np_lc_null) \
    X(np_lc_defer) X(np_cancel_flags) X(np_cancel_kind) X(np_query) X(np_keep) X(np_reply) \
    X(np_group) X(np_reply_outside) X(np_dest_outside) X(np_twice) X(np_addr) \
    X(np_dest_moved) X(ok_np_unwritten)
/* clang-format on */

const struct misuse_case misuse_am_cases[] = { AM_CASES(MISUSE_CASE) };
const size_t misuse_am_count = sizeof(misuse_am_cases) / sizeof(misuse_am_cases[0]);
