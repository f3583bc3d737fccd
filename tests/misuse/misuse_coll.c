/*
 * misuse_coll.c - breaks one rule of the collectives, named on the command line; see misuse.c.
 *
 * usage: misuse-coll CASE [TAG]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "misuse_case.h"

enum { H_COLL = 200, WORDS = 16 };

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static int64_t src[WORDS], dst[WORDS];
static gex_Event_t event;

static void broadcast(gex_TM_t team, gex_Rank_t root, void *to, const void *from, gex_Flags_t flags)
{
    event = gex_Coll_BroadcastNB(team, root, to, from, 64, flags);
}

static void reduce(gex_DT_t dt, size_t size, size_t count, gex_OP_t op, gex_Coll_ReduceFn_t fn)
{
    event = gex_Coll_ReduceToAllNB(tm, dst, src, dt, size, count, op, fn, NULL, 0);
}

static void reduce_to_one(gex_TM_t team, gex_Rank_t root, void *to, const void *from,
                          gex_Flags_t flags)
{
    event = gex_Coll_ReduceToOneNB(team, root, to, from, GEX_DT_I64, 8, 4, GEX_OP_ADD, NULL, NULL,
                                   flags);
}

static void h_coll(gex_Token_t token)
{
    (void)token;
    broadcast(tm, 0, dst, src, 0);
}

static gex_AM_Entry_t table[] = {
    { H_COLL, (gex_AM_Fn_t)h_coll, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "h_coll" },
};

/* --- the cases --- */

static void c_pair(void)
{
    broadcast(gex_TM_Pair(ep, 0), 0, dst, src, 0);
}
static void c_no_team(void)
{
    broadcast(GEX_TM_INVALID, 0, dst, src, 0);
}
static void c_barrier_pair(void)
{
    event = gex_Coll_BarrierNB(gex_TM_Pair(ep, 0), 0);
}
static void c_flags(void)
{
    broadcast(tm, 0, dst, src, GEX_FLAG_IMMEDIATE);
}
static void c_root(void)
{
    broadcast(tm, 99, dst, src, 0);
}
static void c_dst_null(void)
{
    broadcast(tm, 0, NULL, src, 0);
}
static void c_src_null(void)
{
    broadcast(tm, 0, dst, NULL, 0);
}
static void c_overlap(void)
{
    broadcast(tm, 0, dst + 1, dst, 0);
}
static void c_one_root(void)
{
    reduce_to_one(tm, 99, dst, src, 0);
}
static void c_one_dst(void)
{
    reduce_to_one(tm, 0, NULL, src, 0);
}
static void c_one_src(void)
{
    reduce_to_one(tm, 1, NULL, NULL, 0);
}
static void c_one_overlap(void)
{
    reduce_to_one(tm, 0, dst + 1, dst, 0);
}
static void c_one_flags(void)
{
    reduce_to_one(tm, 0, dst, src, 4);
}
static void c_type(void)
{
    reduce(GEX_DT_I32 | GEX_DT_U32, 4, 1, GEX_OP_ADD, NULL);
}
static void c_size(void)
{
    reduce(GEX_DT_I64, 4, 1, GEX_OP_ADD, NULL);
}
static void c_size_zero(void)
{
    reduce(GEX_DT_USER, 0, 1, GEX_OP_USER, NULL);
}
static void c_count(void)
{
    reduce(GEX_DT_I64, 8, 0, GEX_OP_ADD, NULL);
}
static void c_count_huge(void)
{
    reduce(GEX_DT_I64, 8, SIZE_MAX / 4, GEX_OP_ADD, NULL);
}
static void c_op(void)
{
    reduce(GEX_DT_I64, 8, 1, GEX_OP_SUB, NULL);
}
static void c_op_float(void)
{
    reduce(GEX_DT_DBL, 8, 1, GEX_OP_XOR, NULL);
}
static void c_op_user_type(void)
{
    reduce(GEX_DT_USER, 8, 1, GEX_OP_ADD, NULL);
}
static void c_no_fn(void)
{
    reduce(GEX_DT_USER, 8, 1, GEX_OP_USER, NULL);
}
static void c_in_handler(void)
{
    gex_AM_RequestShort0(tm, 0, H_COLL, 0);
}
static void c_under_lock(void)
{
    gex_HSL_Lock(&lock);
    broadcast(tm, 0, dst, src, 0);
}
static void c_named_open(void)
{
    gasnet_barrier_notify(1, 0);
    broadcast(tm, 0, dst, src, 0);
}
static void c_legacy_flags(void)
{
    gasnet_coll_broadcast(GASNET_TEAM_ALL, dst, 0, src, 8,
                          GASNET_COLL_IN_MYSYNC | GASNET_COLL_LOCAL);
}
static void c_legacy_bytes(void)
{
    gasnet_coll_gather_all(GASNET_TEAM_ALL, dst, src, 0,
                           GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL);
}
static void c_legacy_image(void)
{
    gasnet_coll_scatter(GASNET_TEAM_ALL, dst, 77, src, 8,
                        GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL);
}
static void polls(const void *x, void *y, size_t count, const void *cdata)
{
    (void)x, (void)y, (void)count, (void)cdata;
    if (gex_TM_QueryRank(tm) == 0)
        gasnet_AMPoll();
}

/* clang-format off */
#define CASES(X)                                                                                  \
    X(pair) X(no_team) X(barrier_pair) X(flags) X(root) X(dst_null) X(src_null) X(overlap)        \
    X(one_root) X(one_dst) X(one_src) X(one_overlap) X(one_flags) X(type) X(size) X(size_zero)    \
    X(count) X(count_huge) X(op) X(op_float) X(op_user_type) X(no_fn) X(in_handler) X(under_lock) \
    X(named_open) X(legacy_flags) X(legacy_bytes) X(legacy_image)
/* clang-format on */

static const struct misuse_case cases[] = { CASES(MISUSE_CASE) };

/* Destroy a team while a collective over it is open, which only rank 0 called. */
static void destroy(const char *open)
{
    gex_TM_t team;

    gex_TM_Split(&team, tm, 0, (int)gex_TM_QueryRank(tm), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (gex_TM_QueryRank(tm) == 0 && strcmp(open, "named") == 0)
        gasnet_coll_barrier_notify(team, 1, 0);
    else if (gex_TM_QueryRank(tm) == 0 && strcmp(open, "reduce") == 0)
        reduce_to_one(team, 0, dst, src, 0);
    else if (gex_TM_QueryRank(tm) == 0)
        event = gex_Coll_BarrierNB(team, 0);
    gex_TM_Destroy(team, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc < 2 || gex_Client_Init(&client, &ep, &tm, "MISUSE", &argc, &argv, 0) != GASNET_OK)
        return 2;
    gex_EP_RegisterHandlers(ep, table, 1);
    misuse_run(tm, cases, sizeof(cases) / sizeof(cases[0]), argv[1]);
    if (strcmp("operator_polls", argv[1]) == 0) {
        reduce(GEX_DT_I64, 8, 1, GEX_OP_USER, polls);
        gex_Event_Wait(event);
    }
    if (strncmp("destroy_", argv[1], strlen("destroy_")) == 0)
        destroy(argv[1] + strlen("destroy_"));
    if (strcmp("sizes_differ", argv[1]) == 0) /* the receiver sees it */
        gex_Event_Wait(
            gex_Coll_BroadcastNB(tm, 0, dst, dst, gex_TM_QueryRank(tm) == 0 ? 64 : 32, 0));
    if (strcmp("sizes_large", argv[1]) == 0) /* in a line of the shared memory, or in blocks */
        gex_Event_Wait(
            gex_Coll_BroadcastNB(tm, 0, dst, dst, gex_TM_QueryRank(tm) == 0 ? 64 : sizeof(dst), 0));
    if (strcmp("sizes_reduce", argv[1]) == 0)
        gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, 0, dst, src, GEX_DT_U64, 8,
                                              gex_TM_QueryRank(tm) == 0 ? 2 : 1, GEX_OP_ADD, NULL,
                                              NULL, 0));
    if (strcmp("places_differ", argv[1]) == 0)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, dst, gex_TM_QueryRank(tm) == 0 ? src : dst,
                                              GEX_DT_U64, 8, 2, GEX_OP_ADD, NULL, NULL, 0));
    misuse_survived(tm);
}
