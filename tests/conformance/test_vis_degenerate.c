/*
 * test_vis_degenerate.c - transfers without bytes, or with one chunk: which arguments are read, and
 * what is returned. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS: degenerate
 * shapes.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

enum { BYTES = 4096, BIG = 300000 };

static char local[BIG], back[BIG];
/* kept from the compiler, which would warn */
static void *volatile wild = (void *)(uintptr_t)0x10;
static volatile size_t none;
static const gex_TM_t no_team = GEX_TM_INVALID;
static const gex_Rank_t no_rank = 123456789;

/* Nothing happens: no event, no outstanding operation, not declined. */
static void empty(gex_Event_t ev)
{
    AQ_CHECK(ev == GEX_EVENT_INVALID);
    AQ_CHECK(gex_Event_QueryLeaf(ev, GEX_EC_LC) == GEX_EVENT_INVALID);
}

#define EMPTY_PUT(Name, ...)                                                          \
    do {                                                                              \
        AQ_CHECK_EQ(gex_VIS_##Name##PutBlocking(__VA_ARGS__, 0), 0);                  \
        AQ_CHECK_EQ(gex_VIS_##Name##PutBlocking(__VA_ARGS__, GEX_FLAG_IMMEDIATE), 0); \
        empty(gex_VIS_##Name##PutNB(__VA_ARGS__, 0));                                 \
        empty(gex_VIS_##Name##PutNB(__VA_ARGS__, GEX_FLAG_ENABLE_LEAF_LC));           \
        empty(gex_VIS_##Name##PutNB(__VA_ARGS__, GEX_FLAG_IMMEDIATE));                \
        AQ_CHECK_EQ(gex_VIS_##Name##PutNBI(__VA_ARGS__, 0), 0);                       \
        AQ_CHECK_EQ(gex_VIS_##Name##PutNBI(__VA_ARGS__, GEX_FLAG_ENABLE_LEAF_LC), 0); \
        AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);                          \
    } while (0)
#define EMPTY_GET(Name, ...)                                                  \
    do {                                                                      \
        AQ_CHECK_EQ(gex_VIS_##Name##GetBlocking(__VA_ARGS__, 0), 0);          \
        AQ_CHECK(gex_VIS_##Name##GetNB(__VA_ARGS__, 0) == GEX_EVENT_INVALID); \
        AQ_CHECK_EQ(gex_VIS_##Name##GetNBI(__VA_ARGS__, 0), 0);               \
        AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);                  \
    } while (0)

static void strided_empty(void)
{
    const ptrdiff_t strides[3] = { 8, -8, 1 << 20 };
    const ptrdiff_t *bad = wild;
    const size_t *bad_count = wild;
    size_t many[200];
    ptrdiff_t odd[200];

    rule("extended 10.3: strided, elemsz 0: no other argument is looked at");
    EMPTY_PUT(Strided, no_team, no_rank, wild, bad, wild, bad, none, bad_count, 7);
    EMPTY_GET(Strided, no_team, wild, bad, no_rank, wild, bad, none, bad_count, SIZE_MAX);

    rule("extended 10.3: strided, a count of 0 anywhere: team, rank and addresses are not looked "
         "at");
    for (int d = 0; d < 3; d++) {
        size_t count[3] = { 3, SIZE_MAX, 5 };

        count[d] = 0;
        EMPTY_PUT(Strided, no_team, no_rank, wild, strides, NULL, strides, 8, count, 3);
        EMPTY_GET(Strided, no_team, NULL, strides, no_rank, wild, strides, 8, count, 3);
    }
    for (int d = 0; d < 200; d++) {
        many[d] = 2;
        odd[d] = 1 + d;
    }
    many[199] = 0;
    EMPTY_PUT(Strided, no_team, no_rank, wild, odd, wild, odd, 8, many, 200);
}

static void lists_empty(void)
{
    const gex_Memvec_t zeros[3] = { { wild, 0 }, { NULL, 0 }, { local, 0 } };
    const gex_Memvec_t *bad = wild;
    void *const addresses[2] = { wild, NULL };
    void *const *bad_list = wild;

    rule("extended 10.3: vector, no chunks or only empty ones: lists of none are not read, "
         "addresses never");
    EMPTY_PUT(Vector, no_team, no_rank, none, bad, none, NULL);
    EMPTY_GET(Vector, no_team, none, NULL, no_rank, none, bad);
    EMPTY_PUT(Vector, no_team, no_rank, 3, zeros, 2, zeros);
    EMPTY_GET(Vector, no_team, 1, zeros, no_rank, 3, zeros);
    EMPTY_PUT(Vector, no_team, no_rank, none, bad, 3, zeros);
    EMPTY_GET(Vector, no_team, 3, zeros, no_rank, none, bad);

    rule("extended 10.3: indexed, a product of 0: nothing is looked at");
    EMPTY_PUT(Indexed, no_team, no_rank, none, bad_list, 8, none, NULL, 100);
    EMPTY_GET(Indexed, no_team, none, NULL, 8, no_rank, none, bad_list, 8);
    EMPTY_PUT(Indexed, no_team, no_rank, 2, addresses, none, 1000, bad_list, none);
    EMPTY_GET(Indexed, no_team, 2, addresses, none, no_rank, none, bad_list, 8);
    EMPTY_PUT(Indexed, no_team, no_rank, none, bad_list, 8, 2, addresses, none);
}

/* One chunk there and back in each family and style. */
static void one_chunk(gex_Rank_t rank, size_t n)
{
    char *remote_addr = (char *)aq_test_base(rank) + (size_t)aq_test_me * BIG;
    const ptrdiff_t *bad = wild;
    const gex_Memvec_t remote_vec[1] = { { remote_addr, n } }, local_vec[1] = { { local, n } },
                       back_vec[1] = { { back, n } };
    void *const remote_list[1] = { remote_addr }, *const local_list[1] = { local },
                *const back_list[1] = { back };
    gex_Event_t ev;

    rule("extended 10.3: strided without levels: one element, the arrays are not read");
    aq_test_fill(local, n, n);
    AQ_CHECK_EQ(
        gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, NULL, local, NULL, n, NULL, 0, 0),
        0);
    memset(back, 0, n);
    AQ_CHECK_EQ(
        gex_VIS_StridedGetBlocking(aq_test_tm, back, bad, rank, remote_addr, bad, n, wild, 0, 0),
        0);
    AQ_CHECK(aq_test_same(back, n, n));
    aq_test_fill(local, n, n + 1);
    ev = gex_VIS_StridedPutNB(aq_test_tm, rank, remote_addr, bad, local, bad, n, NULL, 0,
                              GEX_FLAG_ENABLE_LEAF_LC);
    gex_Event_Wait(gex_Event_QueryLeaf(ev, GEX_EC_LC));
    memset(local, 0, n);
    aq_test_sync(ev);
    aq_test_sync(
        gex_VIS_StridedGetNB(aq_test_tm, back, NULL, rank, remote_addr, NULL, n, NULL, 0, 0));
    AQ_CHECK(aq_test_same(back, n, n + 1));

    rule("extended 10.3: a vector of one chunk on each side");
    aq_test_fill(local, n, n + 2);
    AQ_CHECK_EQ(gex_VIS_VectorPutNBI(aq_test_tm, rank, 1, remote_vec, 1, local_vec,
                                     GEX_FLAG_ENABLE_LEAF_LC),
                0);
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(local, 0, n);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    AQ_CHECK_EQ(gex_VIS_VectorGetNBI(aq_test_tm, 1, back_vec, rank, 1, remote_vec, 0), 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(aq_test_same(back, n, n + 2));

    rule("extended 10.3: an index of one chunk on each side");
    aq_test_fill(local, n, n + 3);
    AQ_CHECK_EQ(
        gex_VIS_IndexedPutBlocking(aq_test_tm, rank, 1, remote_list, n, 1, local_list, n, 0), 0);
    AQ_CHECK_EQ(gex_VIS_IndexedGetBlocking(aq_test_tm, 1, back_list, n, rank, 1, remote_list, n, 0),
                0);
    AQ_CHECK(aq_test_same(back, n, n + 3));
}

/* All dimensions of one element: their strides are not looked at. */
static void ones(gex_Rank_t rank)
{
    char *remote_addr = (char *)aq_test_base(rank) + (size_t)aq_test_me * BIG;
    ptrdiff_t odd[300];
    size_t count[300];

    rule("extended 10.2: a dimension of one element ignores its strides; any number of them");
    for (int d = 0; d < 300; d++) {
        odd[d] = d % 2 ? PTRDIFF_MIN + d : PTRDIFF_MAX - d;
        count[d] = 1;
    }
    count[150] = 10;
    odd[150] = 16;
    aq_test_fill(local, 160, 99);
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, odd, local, odd, 16,
                                           count, 300, 0),
                0);
    AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, back, odd, rank, remote_addr, odd, 16, count,
                                           300, 0),
                0);
    AQ_CHECK(aq_test_same(back, 160, 99));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 1, 3, 8, 1000, BYTES, 70000, BIG };

    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)BIG * aq_test_n);
    strided_empty();
    lists_empty();
    for (size_t i = 0; i < AQ_LENGTH(sizes); i++) {
        one_chunk(aq_test_me, sizes[i]);
        one_chunk(aq_test_peer(1), sizes[i]);
    }
    ones(aq_test_me);
    ones(aq_test_peer(1));
    return aq_test_finish();
}
