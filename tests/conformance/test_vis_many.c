/*
 * test_vis_many.c - many transfers under way: all kinds, sync in any order, progress by polls
 * alone, regions. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS, progress,
 * outstanding operations. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

static char *local, *back;
static size_t space;

static char *slot_of(gex_Rank_t rank)
{
    return (char *)aq_test_base(rank) + (size_t)aq_test_me * space;
}

/* n transfers of 64 bytes, 8 by 8, each to a place of its own. */
static gex_Event_t small_put(gex_Rank_t rank, size_t k, enum vis_kind kind,
                             gex_Memvec_t *remote_vec, gex_Memvec_t *local_vec, void **remote_list,
                             void **local_list)
{
    const ptrdiff_t remote_stride[1] = { 16 }, local_stride[1] = { 8 };
    const size_t count[1] = { 8 };
    char *remote_addr = slot_of(rank) + k * 128, *self = local + k * 64;

    for (int i = 0; i < 8; i++) {
        remote_vec[i].gex_addr = remote_list[i] = remote_addr + 16 * i;
        local_vec[i].gex_addr = local_list[i] = self + 8 * i;
        remote_vec[i].gex_len = local_vec[i].gex_len = 8;
    }
    if (kind == VIS_VECTOR)
        return gex_VIS_VectorPutNB(aq_test_tm, rank, 8, remote_vec, 8, local_vec, 0);
    if (kind == VIS_INDEXED)
        return gex_VIS_IndexedPutNB(aq_test_tm, rank, 8, remote_list, 8, 8, local_list, 8, 0);
    return gex_VIS_StridedPutNB(aq_test_tm, rank, remote_addr, remote_stride, self, local_stride, 8,
                                count, 1, 0);
}

static void check_small(gex_Rank_t rank, size_t n)
{
    const ptrdiff_t remote_stride[2] = { 16, 128 }, local_stride[2] = { 8, 64 };
    const size_t count[2] = { 8, n };

    memset(back, 0, 64 * n);
    AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, back, local_stride, rank, slot_of(rank),
                                           remote_stride, 8, count, 2, 0),
                0);
    AQ_CHECK(memcmp(local, back, 64 * n) == 0);
}

static void any_order(gex_Rank_t rank, size_t n)
{
    gex_Memvec_t *remote_vec = malloc(8 * n * sizeof(*remote_vec)),
                 *local_vec = malloc(8 * n * sizeof(*local_vec));
    void **remote_list = malloc(8 * n * sizeof(*remote_list)),
         **local_list = malloc(8 * n * sizeof(*local_list));
    gex_Event_t *ev = malloc(n * sizeof(*ev));

    rule("extended 4.2, 16.3: many outstanding, completed by polls alone, synchronised in any "
         "order");
    aq_test_fill(local, 64 * n, 7);
    for (size_t k = 0; k < n; k++) {
        ev[k] = small_put(rank, k, (enum vis_kind)(k % 3), remote_vec + 8 * k, local_vec + 8 * k,
                          remote_list + 8 * k, local_list + 8 * k);
        AQ_CHECK(ev[k] != GEX_EVENT_NO_OP);
    }
    for (size_t k = n; k-- > 0;)
        AQ_UNTIL(gex_Event_Test(ev[k]) == GASNET_OK);
    check_small(rank, n);
    free(remote_vec);
    free(local_vec);
    free(remote_list);
    free(local_list);
    free(ev);
}

/* Large transfers interleave, none waits for another to be synchronised. */
static void large(gex_Rank_t rank)
{
    enum { EACH = 12 };
    const size_t items = space / (EACH * 2 * 8) / 2;
    const ptrdiff_t remote_stride[1] = { 16 }, local_stride[1] = { 8 };
    const size_t count[1] = { items };
    gex_Event_t put[EACH], get[EACH], region;

    rule("extended 16.3: large transfers of both directions at a time");
    aq_test_fill(local, items * 8 * EACH, 9);
    memset(back, 0, items * 8 * EACH);
    for (size_t k = 0; k < EACH; k++)
        put[k] =
            gex_VIS_StridedPutNB(aq_test_tm, rank, slot_of(rank) + k * items * 16, remote_stride,
                                 local + k * items * 8, local_stride, 8, count, 1, 0);
    for (size_t k = EACH; k-- > 0;) {
        aq_test_sync(put[k]);
        get[k] =
            gex_VIS_StridedGetNB(aq_test_tm, back + k * items * 8, local_stride, rank,
                                 slot_of(rank) + k * items * 16, remote_stride, 8, count, 1, 0);
    }
    gex_Event_WaitAll(get, EACH, 0);
    AQ_CHECK(memcmp(local, back, items * 8 * EACH) == 0);

    rule("extended 5: a region of many puts and gets, beside implicit ones outside it");
    memset(back, 0, items * 8 * EACH);
    AQ_CHECK_EQ(gex_VIS_StridedGetNBI(aq_test_tm, back, local_stride, rank, slot_of(rank),
                                      remote_stride, 8, count, 1, 0),
                0);
    gex_NBI_BeginAccessRegion(0);
    for (size_t k = 1; k < EACH; k++)
        AQ_CHECK_EQ(gex_VIS_StridedGetNBI(aq_test_tm, back + k * items * 8, local_stride, rank,
                                          slot_of(rank) + k * items * 16, remote_stride, 8, count,
                                          1, 0),
                    0);
    AQ_CHECK_EQ(gex_VIS_StridedPutNBI(aq_test_tm, rank, slot_of(rank) + EACH * items * 16,
                                      remote_stride, local, local_stride, 8, count, 1, 0),
                0);
    region = gex_NBI_EndAccessRegion(0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(memcmp(local, back, items * 8) == 0);
    aq_test_sync(region);
    AQ_CHECK(memcmp(local, back, items * 8 * EACH) == 0);
}

/* All ranks to all ranks, without a poll until the end. */
static void crossfire(void)
{
    const size_t items = space / 64;
    const ptrdiff_t remote_stride[1] = { 16 }, local_stride[1] = { 8 };
    const size_t count[1] = { items };

    rule("extended 16.3: everybody to everybody at once");
    aq_test_fill(local, items * 8, 100 + aq_test_me);
    for (int round = 0; round < (aq_test_quick ? 1 : 3); round++) {
        for (gex_Rank_t k = 0; k < aq_test_n; k++)
            AQ_CHECK_EQ(gex_VIS_StridedPutNBI(aq_test_tm, aq_test_peer(k), slot_of(aq_test_peer(k)),
                                              remote_stride, local, local_stride, 8, count, 1, 0),
                        0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    for (gex_Rank_t k = 0; k < aq_test_n; k++) {
        memset(back, 0, items * 8);
        AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, back, local_stride, aq_test_peer(k),
                                               slot_of(aq_test_peer(k)), remote_stride, 8, count, 1,
                                               0),
                    0);
        AQ_CHECK(memcmp(local, back, items * 8) == 0);
    }
}

int main(int argc, char **argv)
{
    size_t n;

    aq_test_start(&argc, &argv, 1);
    n = aq_test_quick || aq_test_n > 4 ? 500 : 20000;
    space = aq_test_quick ? 128 * 1024 : 4 << 20;
    aq_test_segment(space * aq_test_n);
    local = malloc(space);
    back = malloc(space);
    for (int k = 0; k < (aq_test_n > 1 ? 2 : 1); k++) {
        any_order(aq_test_peer((gex_Rank_t)k), n);
        large(aq_test_peer((gex_Rank_t)k));
    }
    aq_test_barrier();
    crossfire();
    return aq_test_finish();
}
