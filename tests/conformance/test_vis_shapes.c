/*
 * test_vis_shapes.c - chosen shapes: transpose, reflection, replication, diagonals, many levels,
 * huge runs, lists longer than a message, strided arrays that change at once.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS data mapping and rules.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

enum { SIDE = 96, SPACE = 1 << 20 };

static double a[SIDE][SIDE], b[SIDE][SIDE];
static char *local, *back;

static char *slot_of(gex_Rank_t rank)
{
    return (char *)aq_test_base(rank) + (size_t)aq_test_me * SPACE;
}

static void number(void)
{
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            a[i][j] = i * 1000 + j;
            b[i][j] = -1;
        }
}

static void fetch(gex_Rank_t rank)
{
    gex_RMA_GetBlocking(aq_test_tm, b, rank, slot_of(rank), sizeof(b), 0);
}

static void matrices(gex_Rank_t rank)
{
    const ptrdiff_t row = SIDE * 8, item = 8;
    const ptrdiff_t rows_first[2] = { row, item }, items_first[2] = { item, row };
    const ptrdiff_t turned[2] = { -row, -item }, still[2] = { 0, item },
                    diagonal[1] = { row + item };
    const size_t whole[2] = { SIDE, SIDE }, part[2] = { 7, 31 }, along[1] = { SIDE };
    char *remote_addr = slot_of(rank);

    rule("extended 10.2: transpose");
    number();
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, rows_first, a,
                                           items_first, 8, whole, 2, 0),
                0);
    fetch(rank);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            AQ_CHECK_EQ(b[j][i], a[i][j]);

    rule("extended 10.2: reflection: addresses are those of the first element, not of the lowest "
         "byte");
    number();
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank,
                                           remote_addr + (SIDE - 1) * (row + item), turned, a,
                                           rows_first, 8, whole, 2, 0),
                0);
    fetch(rank);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            AQ_CHECK_EQ(b[SIDE - 1 - i][SIDE - 1 - j], a[i][j]);
    gex_NBI_BeginAccessRegion(0);
    AQ_CHECK_EQ(gex_VIS_StridedGetNBI(aq_test_tm, b, rows_first, rank,
                                      remote_addr + (SIDE - 1) * (row + item), turned, 8, whole, 2,
                                      0),
                0);
    aq_test_sync(gex_NBI_EndAccessRegion(0));
    AQ_CHECK(memcmp(a, b, sizeof(a)) == 0);

    rule("extended 10.2: replication: a source stride of 0");
    number();
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, rows_first, a[5], still,
                                           8, whole, 2, 0),
                0);
    fetch(rank);
    for (int i = 0; i < SIDE; i++)
        AQ_CHECK(memcmp(b[i], a[5], sizeof(a[5])) == 0);
    AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, a, rows_first, rank, remote_addr + 8 * 3,
                                           (const ptrdiff_t[]){ 0, 0 }, 8, whole, 2, 0),
                0);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            AQ_CHECK_EQ(a[i][j], b[0][3]);

    rule("extended 10.2: a diagonal; a part of a matrix to a part of another");
    number();
    gex_RMA_PutBlocking(aq_test_tm, rank, remote_addr, b, sizeof(b), 0);
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr, diagonal, a, diagonal, 8,
                                           along, 1, 0),
                0);
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, remote_addr + 50 * row + 3 * item,
                                           rows_first, &a[20][60], rows_first, 8, part, 2, 0),
                0);
    fetch(rank);
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            const bool inside = i >= 50 && i < 57 && j >= 3 && j < 34;
            const double should = inside ? a[i - 30][j + 57] : i == j ? a[i][i] : -1;

            AQ_CHECK_EQ(b[i][j], should);
        }
}

/* As many dimensions of two as there are bytes for, in random order, spread with gaps. */
static void levels(gex_Rank_t rank)
{
    enum { N = 17 };
    ptrdiff_t remote_stride[60], local_stride[60], back_stride[60];
    size_t count[60];
    uint64_t seed = 4711;

    rule("extended 10.2: many levels of two elements each");
    for (int d = 0; d < 60; d++) {
        remote_stride[d] = local_stride[d] = back_stride[d] = 12345 - d;
        count[d] = 1;
    }
    for (int d = 0; d < N; d++) {
        int at;

        do
            at = (int)(aq_test_random(&seed) % 60);
        while (count[at] != 1);
        count[at] = 2;
        remote_stride[at] = 7 << d; /* 3 bytes and a gap of 4 */
        local_stride[at] = 3 << (N - 1 - d);
        back_stride[at] = 3 << (N - 1 - d);
    }
    aq_test_fill(local, 3 << N, 17);
    memset(back, 0, 3 << N);
    AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, rank, slot_of(rank), remote_stride, local,
                                           local_stride, 3, count, 60, 0),
                0);
    AQ_CHECK_EQ(gex_VIS_StridedGetBlocking(aq_test_tm, back, back_stride, rank, slot_of(rank),
                                           remote_stride, 3, count, 60, 0),
                0);
    AQ_CHECK(memcmp(local, back, 3 << N) == 0);
}

/* Few runs, each longer than a message; and one long list of single bytes. */
static void sizes(gex_Rank_t rank)
{
    enum { RUN = 150001, RUNS = 3, BYTES = 60000 };
    static void *remote_list[BYTES], *local_list[BYTES];
    static gex_Memvec_t remote_vec[BYTES];
    const ptrdiff_t remote_stride[1] = { RUN + 100 }, local_stride[1] = { RUN };
    const size_t count[1] = { RUNS };
    gex_Memvec_t whole = { local, BYTES }, whole_back = { back, BYTES };
    char *remote_addr = slot_of(rank);

    rule("extended 10.2: runs longer than any message");
    aq_test_fill(local, RUN * RUNS, 1);
    memset(back, 0, RUN * RUNS);
    aq_test_sync(gex_VIS_StridedPutNB(aq_test_tm, rank, remote_addr, remote_stride, local,
                                      local_stride, RUN, count, 1, 0));
    aq_test_sync(gex_VIS_StridedGetNB(aq_test_tm, back, local_stride, rank, remote_addr,
                                      remote_stride, RUN, count, 1, 0));
    AQ_CHECK(memcmp(local, back, RUN * RUNS) == 0);

    rule("extended 10.4: lists longer than any message, of the smallest chunks");
    for (int i = 0; i < BYTES; i++) {
        const int j = (int)((i * 7919ll) % BYTES);

        remote_list[i] = remote_addr + 3 * j;
        local_list[i] = local + i;
        remote_vec[i].gex_addr = remote_addr + 3 * j;
        remote_vec[i].gex_len = 1;
    }
    memset(back, 0, BYTES);
    AQ_CHECK_EQ(gex_VIS_IndexedPutBlocking(aq_test_tm, rank, BYTES, remote_list, 1, BYTES,
                                           local_list, 1, 0),
                0);
    AQ_CHECK_EQ(gex_VIS_VectorGetBlocking(aq_test_tm, 1, &whole_back, rank, BYTES, remote_vec, 0),
                0);
    AQ_CHECK(memcmp(local, back, BYTES) == 0);
    aq_test_fill(local, BYTES, 5);
    memset(back, 0, BYTES);
    AQ_CHECK_EQ(gex_VIS_VectorPutBlocking(aq_test_tm, rank, BYTES, remote_vec, 1, &whole, 0), 0);
    AQ_CHECK_EQ(gex_VIS_IndexedGetBlocking(aq_test_tm, 1, (void *const[]){ back }, BYTES, rank,
                                           BYTES, remote_list, 1, 0),
                0);
    AQ_CHECK(memcmp(local, back, BYTES) == 0);
}

/* The arrays of one call are those of the next, changed at once, while everything is under way. */
static void reuse(gex_Rank_t rank)
{
    enum { CALLS = 64, WIDTH = 64 };
    char *remote_addr = slot_of(rank);
    gex_Event_t ev[2 * CALLS];
    ptrdiff_t remote_stride[2], local_stride[2];
    size_t count[2];

    rule("extended 10.4: the three strided arrays may be changed as soon as the call has returned");
    aq_test_fill(local, SPACE / 2, 3);
    memset(back, 0, SPACE / 2);
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < CALLS; k++) {
            char *remote_at = remote_addr + k * 8192,
                 *local_at = (pass == 0 ? local : back) + k * 4096;

            remote_stride[0] = 1 + k % 2;
            remote_stride[1] = 128;
            local_stride[0] = 1;
            local_stride[1] = WIDTH;
            count[0] = WIDTH;
            count[1] = 64;
            ev[k] = pass == 0 ? gex_VIS_StridedPutNB(aq_test_tm, rank, remote_at, remote_stride,
                                                     local_at, local_stride, 1, count, 2, 0)
                              : gex_VIS_StridedGetNB(aq_test_tm, local_at, local_stride, rank,
                                                     remote_at, remote_stride, 1, count, 2, 0);
            remote_stride[0] = remote_stride[1] = local_stride[0] = local_stride[1] = -1;
            count[0] = count[1] = 0;
        }
        gex_Event_WaitAll(ev, CALLS, 0);
    }
    AQ_CHECK(memcmp(local, back, CALLS * 4096) == 0);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)SPACE * aq_test_n);
    local = malloc(SPACE);
    back = malloc(SPACE);
    for (int k = 0; k < (aq_test_n > 1 ? 2 : 1); k++) {
        matrices(aq_test_peer((gex_Rank_t)k));
        levels(aq_test_peer((gex_Rank_t)k));
        sizes(aq_test_peer((gex_Rank_t)k));
        reuse(aq_test_peer((gex_Rank_t)k));
    }
    return aq_test_finish();
}
