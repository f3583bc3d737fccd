/*
 * misuse_vis.c - breaks one rule of the non-contiguous transfers, named on the command line; see
 * misuse.c.
 *
 * usage: misuse-vis CASE [TAG]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "misuse_case.h"

#include "gasnet_vis.h"

enum { H_PLAIN = 200, H_DONE, SEGMENT = 65536 };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static char buffer[1 << 20];
static char *base; /* of the peer's segment */
static gex_Event_t event;
static const ptrdiff_t stride[2] = { 8, 1024 }, back[2] = { -8, 1024 };
static const size_t count[2] = { 4, 4 };

static gex_Rank_t peer(void)
{
    return (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
}

static void put_at(char *dest, const ptrdiff_t *strides)
{
    gex_VIS_StridedPutBlocking(tm, peer(), dest, strides, buffer, stride, 8, count, 2, 0);
}

static void h_puts(gex_Token_t token)
{
    (void)token;
    put_at(base, stride);
}

static void h_done(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)buf, (void)nbytes;
    gex_AM_ReplyShort0(token, H_PLAIN, 0);
}

static gex_AM_Entry_t table[] = {
    { H_PLAIN, (gex_AM_Fn_t)h_puts, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, "h_puts" },
    { H_DONE, (gex_AM_Fn_t)h_done, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "h_done" },
};

static gex_Memvec_t vec(char *at, size_t len)
{
    gex_Memvec_t v = { NULL, 0 };

    v.gex_addr = at;
    v.gex_len = len;
    return v;
}

static void c_put_above(void)
{
    put_at(base + SEGMENT - 3 * 1024 - 31, stride);
}
static void c_put_below(void)
{
    put_at(base + 16, back);
}
static void c_put_rank(void)
{
    gex_VIS_StridedPutBlocking(tm, gex_TM_QuerySize(tm) + 6, base, stride, buffer, stride, 8, count,
                               2, 0);
}
static void c_put_team(void)
{
    gex_VIS_StridedPutBlocking(GEX_TM_INVALID, 0, base, stride, buffer, stride, 8, count, 2, 0);
}
static void c_get_below(void)
{
    event = gex_VIS_StridedGetNB(tm, buffer, stride, peer(), base - 8, stride, 8, count, 2, 0);
}
static void c_huge(void)
{
    const size_t many[2] = { 1ul << 40, 1ul << 40 };

    gex_VIS_StridedPutBlocking(tm, peer(), base, stride, buffer, stride, 8, many, 2, 0);
}
static void c_vector_outside(void)
{
    gex_Memvec_t remote[2], local_side[1];

    remote[0] = vec(base, 8);
    remote[1] = vec(base + SEGMENT - 4, 8);
    local_side[0] = vec(buffer, 16);
    gex_VIS_VectorPutNBI(tm, peer(), 2, remote, 1, local_side, 0);
}
static void c_strided_null(void)
{
    gex_VIS_StridedPutBlocking(tm, peer(), base, stride, NULL, stride, 8, count, 2, 0);
}
static void c_vector_null(void)
{
    gex_Memvec_t remote[1], local_side[1];

    remote[0] = vec(base, 8);
    local_side[0] = vec(NULL, 8);
    gex_VIS_VectorGetBlocking(tm, 1, local_side, peer(), 1, remote, 0);
}
static void c_indexed_null(void)
{
    void *remote[1], *local_side[1];

    remote[0] = base;
    local_side[0] = NULL;
    gex_VIS_IndexedPutBlocking(tm, peer(), 1, remote, 8, 1, local_side, 8, 0);
}
static void c_vector_sums(void)
{
    gex_Memvec_t remote[1], local_side[1];

    remote[0] = vec(base, 16);
    local_side[0] = vec(buffer, 24);
    gex_VIS_VectorGetBlocking(tm, 1, local_side, peer(), 1, remote, 0);
}
static void c_indexed_outside(void)
{
    void *remote[2], *local_side[2];

    remote[0] = base;
    remote[1] = base + SEGMENT;
    local_side[0] = local_side[1] = buffer;
    gex_VIS_IndexedPutBlocking(tm, peer(), 2, remote, 8, 2, local_side, 8, 0);
}
static void c_indexed_sums(void)
{
    void *remote[1], *local_side[1];

    remote[0] = base;
    local_side[0] = buffer;
    event = gex_VIS_IndexedGetNB(tm, 1, local_side, 8, peer(), 1, remote, 16, 0);
}
static void c_leaf_get(void)
{
    gex_VIS_StridedGetNBI(tm, buffer, stride, peer(), base, stride, 8, count, 2,
                          GEX_FLAG_ENABLE_LEAF_LC);
}
static void c_leaf_blocking(void)
{
    gex_VIS_StridedPutBlocking(tm, peer(), base, stride, buffer, stride, 8, count, 2,
                               GEX_FLAG_ENABLE_LEAF_LC);
}
static void c_leaf_hidden(void)
{
    const ptrdiff_t wide[1] = { 16 }, narrow[1] = { 8 };
    const size_t all[1] = { SEGMENT / 16 };

    event = gex_VIS_StridedPutNB(tm, peer(), base, wide, buffer, narrow, 8, all, 1, 0);
    event = gex_Event_QueryLeaf(event, GEX_EC_LC);
}
static void c_in_handler(void)
{
    gex_AM_RequestShort0(tm, peer(), H_PLAIN, 0);
}
static void c_in_lock(void)
{
    gex_HSL_Lock(&lock);
    put_at(base, stride);
}
static void c_arm_large(void)
{
    gex_VIS_SetPeerCompletionHandler(H_DONE, buffer, GEX_VIS_MAX_PEERCOMPLETION + 1, 0);
}
static void c_arm_flags(void)
{
    gex_VIS_SetPeerCompletionHandler(H_DONE, buffer, 8, GEX_FLAG_IMMEDIATE);
}
static void c_arm_index(void)
{
    gex_VIS_SetPeerCompletionHandler(7, buffer, 8, 0);
}
static void c_arm_get(void)
{
    gex_VIS_SetPeerCompletionHandler(H_DONE, buffer, 8, 0);
    gex_VIS_StridedGetBlocking(tm, buffer, stride, peer(), base, stride, 8, count, 2, 0);
}
static void c_arm_immediate(void)
{
    gex_VIS_SetPeerCompletionHandler(H_DONE, buffer, 8, 0);
    gex_VIS_StridedPutNBI(tm, peer(), base, stride, buffer, stride, 8, count, 2,
                          GEX_FLAG_IMMEDIATE);
}
static void c_arm_kind(void)
{
    gex_VIS_SetPeerCompletionHandler(H_PLAIN, buffer, 8, 0);
    put_at(base, stride);
}
static void c_arm_replies(void)
{
    gex_VIS_SetPeerCompletionHandler(H_DONE, buffer, 8, 0);
    put_at(base, stride);
}

/* clang-format off */
#define CASES(X) \
    X(put_above) X(put_below) X(put_rank) X(put_team) X(get_below) X(huge) \
    X(vector_outside) X(vector_sums) X(indexed_outside) X(indexed_sums) X(leaf_get) \
    X(leaf_blocking) X(leaf_hidden) X(in_handler) X(in_lock) X(arm_large) X(arm_flags) \
    X(arm_index) X(arm_get) X(arm_immediate) X(arm_kind) X(arm_replies) \
    X(strided_null) X(vector_null) X(indexed_null)
/* clang-format on */

static const struct misuse_case cases[] = { CASES(MISUSE_CASE) };

int main(int argc, char **argv)
{
    void *addr;
    uintptr_t size;

    if (argc < 2 || gex_Client_Init(&client, &ep, &tm, "MISUSE", &argc, &argv, 0) != GASNET_OK)
        return 2;
    gex_EP_RegisterHandlers(ep, table, 2);
    if (gex_Segment_Attach(&segment, tm, SEGMENT) != GASNET_OK)
        return 2;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer(), &addr, NULL, &size, 0));
    base = addr;
    misuse_run(tm, cases, sizeof(cases) / sizeof(cases[0]), argv[1]);
    misuse_barrier(tm);
    gex_Event_Wait(event);
    misuse_survived(tm);
}
