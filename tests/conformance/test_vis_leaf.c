/*
 * test_vis_leaf.c - local completion of VIS puts: leaf events, categories, access regions, on every
 * path: contiguous, empty, packed in one message or many, long runs; for events and implicit
 * operations. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS local completion,
 * events. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

enum { SPACE = 400000, PATHS = 6 };

static char *local, *back;
static const size_t count_of[PATHS] = { 1, 10, 0, 5000, 20000, 4 };
static const size_t elem_of[PATHS] = { 5000, 8, 8, 10, 8, 70000 };

static char *slot_of(gex_Rank_t rank)
{
    return (char *)aq_test_base(rank) + (size_t)aq_test_me * SPACE;
}

static void fill(int path, uint64_t seed)
{
    aq_test_fill(local, count_of[path] * elem_of[path], seed);
}

static gex_Event_t put_nb(gex_Rank_t rank, int path, gex_Flags_t flags)
{
    const ptrdiff_t remote_stride[1] = { (ptrdiff_t)elem_of[path] + 8 },
                    local_stride[1] = { (ptrdiff_t)elem_of[path] };

    return gex_VIS_StridedPutNB(aq_test_tm, rank, slot_of(rank), remote_stride, local, local_stride,
                                elem_of[path], &count_of[path], 1, flags);
}

static void put_nbi(gex_Rank_t rank, int path, gex_Flags_t flags)
{
    const ptrdiff_t remote_stride[1] = { (ptrdiff_t)elem_of[path] + 8 },
                    local_stride[1] = { (ptrdiff_t)elem_of[path] };

    AQ_CHECK_EQ(gex_VIS_StridedPutNBI(aq_test_tm, rank, slot_of(rank), remote_stride, local,
                                      local_stride, elem_of[path], &count_of[path], 1, flags),
                0);
}

/* The source could be reused when it was overwritten: the target has the earlier contents. */
static void arrived(gex_Rank_t rank, int path, uint64_t seed)
{
    const ptrdiff_t remote_stride[1] = { (ptrdiff_t)elem_of[path] + 8 },
                    local_stride[1] = { (ptrdiff_t)elem_of[path] };
    const size_t nbytes = count_of[path] * elem_of[path];

    AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, back, local_stride, rank, slot_of(rank),
                                           remote_stride, elem_of[path], &count_of[path], 1, 0),
                0);
    AQ_CHECK(aq_test_same(back, nbytes, seed) || nbytes == 0);
}

static void leaves(gex_Rank_t rank, int path)
{
    gex_Event_t root, leaf, pair[2];

    rule("extended 10.5: the leaf of a put with ENABLE_LEAF_LC, waited for before the root");
    fill(path, 1);
    root = put_nb(rank, path, GEX_FLAG_ENABLE_LEAF_LC);
    leaf = gex_Event_QueryLeaf(root, GEX_EC_LC);
    if (root == GEX_EVENT_INVALID)
        AQ_CHECK(leaf == GEX_EVENT_INVALID);
    gex_Event_Wait(leaf);
    memset(local, 0x33, SPACE);
    AQ_CHECK_EQ(gex_Event_Test(leaf), GASNET_OK);
    AQ_CHECK_EQ(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_LC)), GASNET_OK);
    aq_test_sync(root);
    arrived(rank, path, 1);

    rule("extended 10.5: leaf and root in one array");
    fill(path, 2);
    pair[0] = put_nb(rank, path, GEX_FLAG_ENABLE_LEAF_LC);
    pair[1] = gex_Event_QueryLeaf(pair[0], GEX_EC_LC);
    gex_Event_WaitAll(pair, 2, 0);
    AQ_CHECK(pair[0] == GEX_EVENT_INVALID && pair[1] == GEX_EVENT_INVALID);
    arrived(rank, path, 2);

    rule("extended 10.5: without ENABLE_LEAF_LC the root tells");
    fill(path, 3);
    aq_test_sync(put_nb(rank, path, 0));
    memset(local, 0x33, SPACE);
    arrived(rank, path, 3);
}

static void implicit(gex_Rank_t rank, int path)
{
    gex_Event_t region;

    rule("extended 10.5: ENABLE_LEAF_LC of implicit puts is counted under GEX_EC_LC");
    fill(path, 4);
    put_nbi(rank, path, GEX_FLAG_ENABLE_LEAF_LC);
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(local, 0x44, SPACE);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    arrived(rank, path, 4);

    rule("extended 10.5: an access region's event has a leaf for its puts with ENABLE_LEAF_LC");
    fill(path, 5);
    gex_NBI_BeginAccessRegion(0);
    put_nbi(rank, path, GEX_FLAG_ENABLE_LEAF_LC);
    region = gex_NBI_EndAccessRegion(0);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* it is in the region only */
    gex_Event_Wait(gex_Event_QueryLeaf(region, GEX_EC_LC));
    memset(local, 0x44, SPACE);
    aq_test_sync(region);
    arrived(rank, path, 5);

    rule("extended 10.5: syncing puts covers their local completion");
    fill(path, 6);
    put_nbi(rank, path, path % 2 ? GEX_FLAG_ENABLE_LEAF_LC : 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    memset(local, 0x44, SPACE);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_LC, 0), GASNET_OK);
    arrived(rank, path, 6);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)SPACE * aq_test_n);
    local = malloc(SPACE);
    back = malloc(SPACE);
    for (int path = 0; path < PATHS; path++)
        for (int k = 0; k < (aq_test_n > 1 ? 2 : 1); k++) {
            leaves(aq_test_peer((gex_Rank_t)k), path);
            implicit(aq_test_peer((gex_Rank_t)k), path);
        }
    return aq_test_finish();
}
