/*
 * test_rma_value.c - value forms of 1 to 8 bytes: low-order bytes, zero extension, any alignment,
 * no neighbours touched; naturally aligned words are not torn.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, RMA.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

static const gex_RMA_Value_t patterns[] = {
    0, 1, 0x8080808080808080u, 0xffffffffffffffffu, 0x0123456789abcdefu, 0xfedcba9876543210u
};

static gex_RMA_Value_t low(gex_RMA_Value_t v, size_t n)
{
    return n == 8 ? v : v & (((gex_RMA_Value_t)1 << (8 * n)) - 1);
}

static void put_val(int style, gex_Rank_t to, void *dest, gex_RMA_Value_t v, size_t n)
{
    if (style == 0) {
        AQ_CHECK_EQ(gex_RMA_PutBlockingVal(aq_test_tm, to, dest, v, n, 0), 0);
    } else if (style == 1) {
        gex_Event_Wait(gex_RMA_PutNBVal(aq_test_tm, to, dest, v, n, 0));
    } else {
        AQ_CHECK_EQ(gex_RMA_PutNBIVal(aq_test_tm, to, dest, v, n, 0), 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

static void check_forms(gex_Rank_t to)
{
    unsigned char *base = aq_test_base(to), back[32];
    size_t n, off, p;
    int style;
    uint16_t two = 0x1234, seen;

    for (style = 0; style < 3; style++)
        for (n = 1; n <= 8; n++)
            for (off = 0; off < 9; off++)
                for (p = 0; p < AQ_LENGTH(patterns); p++) {
                    unsigned char *dest = base + 8 + off;
                    gex_RMA_Value_t v;

                    memset(back, 0x99, sizeof(back));
                    gex_RMA_PutBlocking(aq_test_tm, to, base, back, sizeof(back), 0);
                    put_val(style, to, dest, patterns[p], n);
                    v = gex_RMA_GetBlockingVal(aq_test_tm, to, dest, n, 0);
                    AQ_CHECK(v == low(patterns[p], n));
                    gex_RMA_GetBlocking(aq_test_tm, back, to, base, sizeof(back), 0);
                    AQ_CHECK(aq_test_all(back, 0x99, 8 + off));
                    AQ_CHECK(aq_test_all(back + 8 + off + n, 0x99, sizeof(back) - 8 - off - n));
                }
    rule("extended 6.6: values are in the byte order of an integer of that width");
    gex_RMA_PutBlockingVal(aq_test_tm, to, base + 1, 0xffff1234u, 2, 0);
    gex_RMA_GetBlocking(aq_test_tm, &seen, to, base + 1, 2, 0);
    AQ_CHECK_EQ(seen, two);
}

/* Each rank flips a word in its neighbour while reading the one of its other neighbour. */
static void check_tearing(void)
{
    const gex_RMA_Value_t one = 0x1111111111111111u, two = 0x2222222222222222u;
    gex_Rank_t next = aq_test_peer(1), previous = aq_test_peer(aq_test_n - 1);
    uint64_t *word = (uint64_t *)aq_test_base(next) + 16;
    volatile uint64_t *ours = (volatile uint64_t *)aq_test_base(aq_test_me) + 16;
    uint64_t *its = (uint64_t *)aq_test_base(previous) + 16, v;
    int i, torn = 0;

    *ours = one;
    aq_test_barrier();
    for (i = 0; i < 2000; i++) {
        gex_RMA_PutBlockingVal(aq_test_tm, next, word, i % 2 ? one : two, 8, 0);
        v = gex_RMA_GetBlockingVal(aq_test_tm, previous, its, 8, 0);
        torn += v != one && v != two;
        v = *ours;
        torn += v != one && v != two;
    }
    AQ_CHECK_EQ(torn, 0);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(GASNET_PAGESIZE);
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        rule("extended 6.6: value puts and gets of 1..8 bytes, unaligned, zero-extended, guards "
             "untouched");
        check_forms(aq_test_peer(k));
        aq_test_barrier();
    }
    if (getenv("AQ_TEST_BYTEWISE")
        == NULL) { /* a device in software may copy byte by byte, while we look */
        rule("extended 6.7: naturally aligned 8-byte words are not torn");
        check_tearing();
    }
    return aq_test_finish();
}
