/*
 * test_rma_large.c - transfers from 4 KiB to megabytes with odd lengths and offsets, and at the
 * lengths where conduits change how they transfer; hundreds at once, between all neighbours of the
 * ring.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, RMA.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { TOP = 3 * 1024 * 1024 + 77 };

static char *src, *dst;

static void one_way(gex_Rank_t to, size_t len, uint64_t seed)
{
    char *remote_addr = (char *)aq_test_base(to) + 5;
    gex_Event_t evs[2];

    aq_test_fill(src + 3, len, seed);
    memset(dst, 0x42, len + 16);
    gex_RMA_PutBlocking(aq_test_tm, to, remote_addr, src + 3, len, 0);
    gex_RMA_GetBlocking(aq_test_tm, dst + 7, to, remote_addr, len, 0);
    AQ_CHECK(aq_test_same(dst + 7, len, seed));
    AQ_CHECK(aq_test_all(dst, 0x42, 7) && aq_test_all(dst + 7 + len, 0x42, 9));
    /* Two halves at once, explicit; then backwards, implicit. */
    aq_test_fill(src + 3, len, seed + 1);
    evs[0] = gex_RMA_PutNB(aq_test_tm, to, remote_addr, src + 3, len / 2, GEX_EVENT_DEFER, 0);
    evs[1] = gex_RMA_PutNB(aq_test_tm, to, remote_addr + len / 2, src + 3 + len / 2, len - len / 2,
                           GEX_EVENT_NOW, 0);
    gex_Event_WaitAll(evs, 2, 0);
    memset(dst, 0, len);
    gex_RMA_GetNBI(aq_test_tm, dst + len / 2, to, remote_addr + len / 2, len - len / 2, 0);
    gex_RMA_GetNBI(aq_test_tm, dst, to, remote_addr, len / 2, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(aq_test_same(dst, len, seed + 1));
}

/* More transfers than a conduit may have under way, of lengths below and above a packet's. */
static void many_at_once(gex_Rank_t to, uint64_t seed)
{
    enum { COUNT = 300, STEP = 9001, SHORTEST = 8050 };
    char *remote_addr = (char *)aq_test_base(to) + 1;
    int i;

    aq_test_fill(src, (size_t)COUNT * STEP, seed);
    memset(dst, 0x42, (size_t)COUNT * STEP);
    for (i = 0; i < COUNT; i++)
        gex_RMA_PutNBI(aq_test_tm, to, remote_addr + i * STEP, src + i * STEP, SHORTEST + i,
                       GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (i = COUNT - 1; i >= 0; i--)
        gex_RMA_GetNBI(aq_test_tm, dst + i * STEP, to, remote_addr + i * STEP, SHORTEST + i, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (i = 0; i < COUNT; i++) {
        AQ_CHECK(memcmp(dst + i * STEP, src + i * STEP, SHORTEST + i) == 0);
        AQ_CHECK(aq_test_all(dst + i * STEP + SHORTEST + i, 0x42, STEP - SHORTEST - i));
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {
        4096, 8191, 8192, 8193, 65535, 65536, 65536 + 13, 1 << 20, TOP
    };
    size_t i;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    src = malloc(TOP + 32);
    dst = malloc(TOP + 32);
    aq_test_segment(TOP + 64);
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        rule(k == 0 ? "extended 6.3: large transfers to oneself, odd lengths and offsets"
                    : "extended 6.3: large transfers to a peer, odd lengths and offsets");
        for (i = 0; i < AQ_LENGTH(sizes) - (aq_test_quick || aq_test_n > 4); i++)
            one_way(aq_test_peer(k), sizes[i], i * 100 + aq_test_me);
        many_at_once(aq_test_peer(k), 7 + aq_test_me);
        aq_test_barrier();
    }
    free(src);
    free(dst);
    return aq_test_finish();
}
