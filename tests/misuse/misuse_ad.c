/*
 * misuse_ad.c - breaks one rule of the remote atomics, named on the command line; see misuse.c.
 *
 * usage: misuse-ad CASE [TAG]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "misuse_case.h"

#include "gasnet_ratomic.h"

enum { H_ADDS = 200, SEGMENT = 65536 };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm, half;
static gex_Segment_t segment;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static gex_AD_t ad, other;
static uint64_t *target, *ours; /* in the peer's segment, in ours */
static uint64_t result;
static uint64_t *volatile no_result;

static gex_Rank_t peer(void)
{
    return (gex_TM_QueryRank(tm) + 1) % gex_TM_QuerySize(tm);
}

static void create(gex_TM_t team, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    gex_AD_Create(&other, team, dt, ops, flags);
}

static void op(gex_Rank_t rank, void *at, gex_OP_t opcode, gex_Flags_t flags)
{
    gex_AD_OpNBI_U64(ad, &result, rank, at, opcode, 1, 0, flags);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void h_adds(gex_Token_t token)
{
    (void)token;
    op(0, ours, GEX_OP_ADD, 0);
}

static gex_AM_Entry_t table[] = {
    { H_ADDS, (gex_AM_Fn_t)h_adds, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "h_adds" },
};

/* --- the cases --- */

static void c_create_pair(void)
{
    create(gex_TM_Pair(ep, 0), GEX_DT_U64, GEX_OP_ADD, 0);
}
static void c_create_team(void)
{
    create(GEX_TM_INVALID, GEX_DT_U64, GEX_OP_ADD, 0);
}
static void c_create_type(void)
{
    create(tm, GEX_DT_USER, GEX_OP_ADD, 0);
}
static void c_create_two_types(void)
{
    create(tm, GEX_DT_U64 | GEX_DT_I64, GEX_OP_ADD, 0);
}
static void c_create_empty(void)
{
    create(tm, GEX_DT_U64, 0, 0);
}
static void c_create_bits(void)
{
    create(tm, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_FXOR, 0);
}
static void c_create_user(void)
{
    create(tm, GEX_DT_U64, GEX_OP_USER, 0);
}
static void c_create_flags(void)
{
    create(tm, GEX_DT_U64, GEX_OP_ADD, GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_REMOTE);
}
static void c_create_in_lock(void)
{
    gex_HSL_Lock(&lock);
    create(tm, GEX_DT_U64, GEX_OP_ADD, 0);
}
static void c_destroyed(void)
{
    create(tm, GEX_DT_U64, GEX_OP_ADD, 0);
    gex_AD_Destroy(other);
    gex_AD_OpNBI_U64(other, NULL, peer(), target, GEX_OP_ADD, 1, 0, 0);
}
static void c_destroy_twice(void)
{
    create(tm, GEX_DT_U64, GEX_OP_ADD, 0);
    gex_AD_Destroy(other);
    gex_AD_Destroy(other);
}
static void c_destroy_invalid(void)
{
    gex_AD_Destroy(GEX_AD_INVALID);
}
static void c_op_type(void)
{
    gex_AD_OpNBI_I64(ad, NULL, peer(), target, GEX_OP_ADD, 1, 0, 0);
}
static void c_op_code(void)
{
    op(peer(), target, GEX_OP_MULT, 0);
}
static void c_op_set(void)
{
    op(peer(), target, GEX_OP_ADD | GEX_OP_FADD, 0);
}
static void c_op_none(void)
{
    op(peer(), target, 0, 0);
}
static void c_op_rank(void)
{
    op(gex_TM_QuerySize(tm) + 6, target, GEX_OP_ADD, 0);
}
static void c_op_jobrank(void)
{
    ad = other;
    op(1, target, GEX_OP_ADD, GEX_FLAG_RANK_IS_JOBRANK);
}
static void c_op_outside(void)
{
    op(peer(), target + SEGMENT / 8, GEX_OP_ADD, 0);
}
static void c_op_below(void)
{
    op(peer(), target - 1, GEX_OP_ADD, 0);
}
static void c_op_across(void)
{
    op(peer(), (char *)target + SEGMENT - 4, GEX_OP_ADD, 0);
}
static void c_op_unaligned(void)
{
    op(peer(), (char *)target + 4, GEX_OP_ADD, 0);
}
static void c_op_result(void)
{
    gex_Event_Wait(gex_AD_OpNB_U64(ad, no_result, peer(), target, GEX_OP_FADD, 1, 0, 0));
}
static void c_op_result_is_target(void)
{
    gex_AD_OpNBI_U64(ad, ours, gex_TM_QueryRank(tm), ours, GEX_OP_FADD, 1, 0, 0);
}
static void c_op_my_rank(void)
{
    op(peer(), target, GEX_OP_ADD, GEX_FLAG_AD_MY_RANK);
}
static void c_op_both_places(void)
{
    op(gex_TM_QueryRank(tm), ours, GEX_OP_ADD, GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_MY_NBRHD);
}
static void c_op_offset(void)
{
    op(peer(), target, GEX_OP_ADD, GEX_FLAG_PEER_SEG_OFFSET);
}
static void c_op_in_lock(void)
{
    gex_HSL_Lock(&lock);
    op(peer(), target, GEX_OP_ADD, 0);
}
static void c_op_in_handler(void)
{
    gex_AM_RequestShort0(tm, peer(), H_ADDS, 0);
}
static void c_team_first(void)
{
    gex_TM_Destroy(half, NULL, 0);
}

/* clang-format off */
#define CASES(X)                                                                                   \
    X(create_pair) X(create_team) X(create_type) X(create_two_types) X(create_empty)               \
    X(create_bits) X(create_user) X(create_flags) X(create_in_lock) X(destroyed) X(destroy_twice)  \
    X(destroy_invalid) X(op_type) X(op_code) X(op_set) X(op_none) X(op_rank) X(op_jobrank)         \
    X(op_outside) X(op_below) X(op_across) X(op_unaligned) X(op_result) X(op_result_is_target)     \
    X(op_my_rank) X(op_both_places) X(op_offset) X(op_in_lock) X(op_in_handler) X(team_first)
/* clang-format on */

static const struct misuse_case cases[] = { CASES(MISUSE_CASE) };

int main(int argc, char **argv)
{
    void *addr;

    if (argc < 2 || gex_Client_Init(&client, &ep, &tm, "MISUSE", &argc, &argv, 0) != GASNET_OK)
        return 2;
    gex_EP_RegisterHandlers(ep, table, 1);
    if (gex_Segment_Attach(&segment, tm, SEGMENT) != GASNET_OK)
        return 2;
    ours = gex_Segment_QueryAddr(segment);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer(), &addr, NULL, NULL, 0));
    target = addr;
    gex_AD_Create(&ad, tm, GEX_DT_U64, GEX_OP_ADD | GEX_OP_FADD, 0);
    gex_TM_Split(&half, tm, (int)gex_TM_QueryRank(tm), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_AD_Create(&other, half, GEX_DT_U64, GEX_OP_ADD, 0);
    misuse_run(tm, cases, sizeof(cases) / sizeof(cases[0]), argv[1]);
    misuse_survived(tm);
}
