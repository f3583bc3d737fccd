/*
 * test_rma_sizes.c - put and get of 0..300 bytes in all three styles, any alignment at both ends,
 * to oneself and to a peer; bytes beside the range stay as they were.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, RMA.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { SMALL = 300, SPACE = SMALL + 64, CANARY = 16, PAINT = 0x3c };

static char src[SPACE], got[SPACE + 2 * CANARY];

static void put(int style, gex_Rank_t to, void *dest, const void *from, size_t len)
{
    gex_Event_t ev, lc = GEX_EVENT_INVALID;

    switch (style) {
    case 0:
        AQ_CHECK_EQ(gex_RMA_PutBlocking(aq_test_tm, to, dest, from, len, 0), 0);
        break;
    case 1:
        ev = gex_RMA_PutNB(aq_test_tm, to, dest, from, len, len % 2 ? &lc : GEX_EVENT_NOW, 0);
        gex_Event_Wait(ev);
        break;
    default:
        AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, dest, from, len, GEX_EVENT_DEFER, 0), 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

static void get(int style, void *dest, gex_Rank_t from, void *remote, size_t len)
{
    gex_Event_t ev;

    switch (style) {
    case 0:
        AQ_CHECK_EQ(gex_RMA_GetBlocking(aq_test_tm, dest, from, remote, len, 0), 0);
        break;
    case 1:
        ev = gex_RMA_GetNB(aq_test_tm, dest, from, remote, len, 0);
        gex_Event_Wait(ev);
        break;
    default:
        AQ_CHECK_EQ(gex_RMA_GetNBI(aq_test_tm, dest, from, remote, len, 0), 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
    }
}

static void check_one(gex_Rank_t to, size_t len, int style, uint64_t *random)
{
    const uint64_t r = aq_test_random(random);
    char *dest = (char *)aq_test_base(to) + CANARY + r % 32;
    char *from = src + (r >> 8) % 32, *into = got + CANARY + (r >> 16) % 16;
    uint64_t seed = r >> 32;

    aq_test_fill(from, len, seed);
    put(style, to, dest, from, len);
    memset(got, PAINT, sizeof(got));
    get(style, into, to, dest, len);
    AQ_CHECK(aq_test_same(into, len, seed));
    AQ_CHECK(aq_test_all(got, PAINT, (size_t)(into - got)));
    AQ_CHECK(aq_test_all(into + len, PAINT, (size_t)(got + sizeof(got) - into) - len));
    get((style + 1) % 3, got, to, dest - CANARY, len + 2 * CANARY);
    AQ_CHECK(aq_test_all(got, PAINT, CANARY));
    AQ_CHECK(aq_test_same(got + CANARY, len, seed));
    AQ_CHECK(aq_test_all(got + CANARY + len, PAINT, CANARY));
    memset(src, PAINT, sizeof(src));
    put((style + 2) % 3, to, dest, src, len);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "extended 6: blocking put and get of 0..300 bytes, every alignment, guards untouched",
        "extended 6: NB put and get of 0..300 bytes, every alignment, guards untouched",
        "extended 6: NBI put and get of 0..300 bytes, every alignment, guards untouched",
    };
    uint64_t random = 1;
    gex_Rank_t k;
    size_t len;
    int style;

    aq_test_start(&argc, &argv, 1);
    random += aq_test_me;
    aq_test_segment(SPACE + 2 * CANARY);
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        memset(aq_test_base(aq_test_me), PAINT, SPACE + 2 * CANARY);
        aq_test_barrier();
        for (len = 0; len <= SMALL; len += aq_test_quick && len > 40 ? 9 : 1)
            for (style = 0; style < 3; style++) {
                rule(names[style]);
                check_one(aq_test_peer(k), len, style, &random);
            }
        aq_test_barrier();
    }
    return aq_test_finish();
}
