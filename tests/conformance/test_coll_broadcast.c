/*
 * test_coll_broadcast.c - broadcasts of any size from any root, in place and not, many at once.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

enum { MANY = 400, CANARY = 64 };

static unsigned char *src, *dst;
static const size_t max = (size_t)4 << 20;

static uint64_t seed_of(gex_Rank_t root, size_t nbytes)
{
    return UINT64_C(77) * nbytes + root + 1;
}

/* One broadcast with buffers at odd addresses; nothing beside dst is touched. */
static void check_one(gex_Rank_t root, size_t nbytes, size_t skew)
{
    const uint64_t seed = seed_of(root, nbytes + skew);
    unsigned char *to = dst + CANARY + skew;

    memset(dst, 0xee, nbytes + skew + 2 * CANARY);
    if (aq_test_me == root)
        aq_test_fill(src + skew, nbytes, seed);
    aq_test_sync(gex_Coll_BroadcastNB(aq_test_tm, root, to, aq_test_me == root ? src + skew : NULL,
                                      nbytes, 0));
    AQ_CHECK(aq_test_same(to, nbytes, seed));
    AQ_CHECK(aq_test_all(dst, 0xee, CANARY + skew));
    AQ_CHECK(aq_test_all(to + nbytes, 0xee, CANARY));
    if (aq_test_me == root)
        AQ_CHECK(aq_test_same(src + skew, nbytes, seed));
}

static void check_sizes(void)
{
    static const size_t sizes[] = { 1,     2,     7,     8,      63,     64,    111,
                                    112,   113,   1000,  4096,   16383,  16385, 32768,
                                    32769, 65535, 65537, 200001, 1048577 };

    for (size_t i = 0; i < AQ_LENGTH(sizes); i++)
        for (gex_Rank_t root = 0; root<aq_test_n; root += sizes[i]> 40000 ? 1 + aq_test_n / 3 : 1)
            if (!aq_test_quick || sizes[i] < 70000)
                check_one(root, sizes[i], i % 5);
    if (!aq_test_quick) {
        check_one(aq_test_n - 1, max, 0);
        check_one(aq_test_n / 2, max - 3, 1);
    }
}

/* dst == src on the root only, then on all. */
static void check_in_place(void)
{
    static const size_t sizes[] = { 1, 40, 500, 33333, 300000 };

    for (size_t i = 0; i < AQ_LENGTH(sizes); i++) {
        const gex_Rank_t root = (gex_Rank_t)(i % aq_test_n);
        const uint64_t seed = seed_of(root, sizes[i]) + 5;

        for (int all = 0; all < 2; all++) {
            memset(dst, all, sizes[i]);
            if (aq_test_me == root)
                aq_test_fill(dst, sizes[i], seed);
            gex_Event_Wait(gex_Coll_BroadcastNB(
                aq_test_tm, root, dst, all || aq_test_me == root ? dst : NULL, sizes[i], 0));
            AQ_CHECK(aq_test_same(dst, sizes[i], seed));
        }
    }
}

static void check_zero(void)
{
    gex_Event_t event[3];
    int value = aq_test_me == 0 ? 4711 : 0;

    event[0] = gex_Coll_BroadcastNB(aq_test_tm, 0, NULL, NULL, 0, 0);
    event[1] = gex_Coll_BroadcastNB(aq_test_tm, 0, &value, &value, sizeof(value), 0);
    event[2] = gex_Coll_BroadcastNB(aq_test_tm, aq_test_n - 1, &value, NULL, 0, 0);
    gex_Event_WaitAll(event, 3, 0);
    AQ_CHECK_EQ(value, 4711);
}

/* Many small ones from changing roots; each rank retires them in an order of its own. */
static void check_many(int n)
{
    static gex_Event_t event[MANY];
    static uint64_t value[MANY];

    for (int i = 0; i < n; i++) {
        const gex_Rank_t root = (gex_Rank_t)i * 7 % aq_test_n;

        value[i] = root == aq_test_me ? UINT64_C(1000003) * (unsigned)i : 0;
        event[i] =
            gex_Coll_BroadcastNB(aq_test_tm, root, &value[i], &value[i], sizeof(value[i]), 0);
    }
    for (int k = 0; k < n; k++) {
        const int i = aq_test_me % 2 == 0 ? n - 1 - k : k * 3 % n; /* n is no multiple of 3 */

        if (k % 2 == 0)
            gex_Event_Wait(event[i]);
        else
            aq_test_sync(event[i]);
        AQ_CHECK(value[i] == UINT64_C(1000003) * (unsigned)i);
    }
}

/* The root is ahead by more calls than any member can store, before the others call. */
static void check_ahead(int n)
{
    const size_t each = 3000;
    gex_Event_t *event = calloc((size_t)n, sizeof(*event));

    if (aq_test_me != 0)
        for (int i = 0; i < 200; i++)
            aq_test_relax();
    for (int i = 0; i < n; i++) {
        if (aq_test_me == 0)
            aq_test_fill(dst + each * (size_t)i, each, (uint64_t)i + 1);
        event[i] = gex_Coll_BroadcastNB(aq_test_tm, 0, dst + each * (size_t)i,
                                        dst + each * (size_t)i, each, 0);
        if (aq_test_me != 0 && i % 16 == 0)
            aq_test_relax();
    }
    gex_Event_WaitAll(event, (size_t)n, 0);
    for (int i = 0; i < n; i++)
        AQ_CHECK(aq_test_same(dst + each * (size_t)i, each, (uint64_t)i + 1));
    free(event);
}

/* Open on another team while the segments are attached, since its root comes to it afterwards. */
static void check_across_attach(void)
{
    const size_t nbytes = 100000;
    gex_Event_t event = GEX_EVENT_INVALID;
    gex_TM_t team;

    gex_TM_Split(&team, aq_test_tm, 0, (int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (aq_test_me != 0)
        event = gex_Coll_BroadcastNB(team, 0, dst, NULL, nbytes, 0);
    aq_test_segment(GASNET_PAGESIZE);
    if (aq_test_me == 0) {
        aq_test_fill(dst, nbytes, 77);
        event = gex_Coll_BroadcastNB(team, 0, dst, dst, nbytes, 0);
    }
    gex_Event_Wait(event);
    AQ_CHECK(aq_test_same(dst, nbytes, 77));
    gex_TM_Destroy(team, NULL, 0);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    src = malloc(max + 4096);
    dst = malloc(max + 4096);
    rule("extended 12.3, 20: before a segment is attached");
    check_one(0, 8, 0);
    check_one(aq_test_n - 1, 100000, 0);
    rule("extended 12.1, 20: open while segments are attached");
    check_across_attach();
    rule("extended 12.3: every size from every root; src is ignored elsewhere");
    check_sizes();
    rule("extended 12.3: dst == src on the root, and on all");
    check_in_place();
    rule("extended 12.3: no bytes, no addresses, but a place in the order");
    check_zero();
    rule("extended 12.1: many outstanding, retired in any order");
    check_many(aq_test_quick ? 100 : MANY);
    rule("extended 12.1: a root may be ahead of the others");
    check_ahead(aq_test_quick ? 80 : 300);
    return aq_test_finish();
}
