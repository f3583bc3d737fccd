/*
 * test_event_leaf.c - leaf events of puts: written at every return, sync in either order with the
 * root, repeated tests, QueryLeaf, leaf and root in one array.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, events.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { BIG = 200000, SLOTS = 8 };

static char source[SLOTS][BIG];
static char check[BIG];

static const size_t sizes[] = { 1, 8, 100, 4096, 70000, BIG };

static char *dest_of(gex_Rank_t to, int slot)
{
    return (char *)aq_test_base(to) + (size_t)slot * BIG;
}

/* Starts a put with a leaf event and checks what every such put promises. */
static gex_Event_t start(gex_Rank_t to, int slot, size_t len, gex_Event_t *leaf, uint64_t seed)
{
    gex_Event_t root;

    aq_test_fill(source[slot], len, seed);
    *leaf = GEX_EVENT_NO_OP;
    root = gex_RMA_PutNB(aq_test_tm, to, dest_of(to, slot), source[slot], len, leaf, 0);
    AQ_CHECK(root != GEX_EVENT_NO_OP && *leaf != GEX_EVENT_NO_OP);
    if (root == GEX_EVENT_INVALID)
        AQ_CHECK(*leaf == GEX_EVENT_INVALID);
    if (root != GEX_EVENT_INVALID)
        AQ_CHECK(root != *leaf);
    return root;
}

static void arrived(gex_Rank_t to, int slot, size_t len, uint64_t seed)
{
    gex_RMA_GetBlocking(aq_test_tm, check, to, dest_of(to, slot), len, 0);
    AQ_CHECK(aq_test_same(check, len, seed));
}

static void leaf_then_root(gex_Rank_t to, size_t len)
{
    gex_Event_t leaf, root, q1, q2;
    int i;

    rule("extended 4.2: leaf first: the source is ours, the leaf tests done until the root is "
         "retired");
    root = start(to, 0, len, &leaf, len);
    q1 = gex_Event_QueryLeaf(root, GEX_EC_LC);
    q2 = gex_Event_QueryLeaf(root, GEX_EC_LC);
    AQ_CHECK(q1 == q2 || q1 == GEX_EVENT_INVALID || q2 == GEX_EVENT_INVALID);
    AQ_CHECK(q1 == leaf || q1 == GEX_EVENT_INVALID || leaf == GEX_EVENT_INVALID);
    gex_Event_Wait(leaf);
    memset(source[0], 0, len);
    for (i = 0; i < 3; i++)
        AQ_CHECK_EQ(gex_Event_Test(leaf), GASNET_OK);
    AQ_CHECK_EQ(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_LC)), GASNET_OK);
    aq_test_sync(root);
    arrived(to, 0, len, len);
}

static void root_only(gex_Rank_t to, size_t len)
{
    gex_Event_t leaf, root;

    rule("extended 4.2: root alone retires its leaves");
    root = start(to, 1, len, &leaf, len + 1);
    gex_Event_Wait(root);
    memset(source[1], 0, len);
    arrived(to, 1, len, len + 1);
}

static void in_arrays(gex_Rank_t to, size_t len)
{
    gex_Event_t a[2 * SLOTS];
    int i;

    rule("extended 4.2: leaf and root of one operation in one array, either order");
    for (i = 0; i < SLOTS; i++) {
        const int leaf = 2 * i + (i % 2), root = 2 * i + !(i % 2);

        a[root] = start(to, i, len, &a[leaf], len + (size_t)i);
    }
    gex_Event_WaitAll(a, 2 * SLOTS, 0);
    AQ_CHECK(aq_test_all(a, 0, sizeof(a)));
    for (i = 0; i < SLOTS; i++)
        arrived(to, i, len, len + (size_t)i);
    for (i = 0; i < SLOTS; i++)
        a[SLOTS + i] = start(to, i, len, &a[SLOTS - 1 - i], len + 20 + (size_t)i);
    while (gex_Event_TestAll(a, 2 * SLOTS, 0) != GASNET_OK)
        aq_test_relax();
    AQ_CHECK(aq_test_all(a, 0, sizeof(a)));
    for (i = 0; i < SLOTS; i++)
        a[i] = start(to, i, len, &a[2 * SLOTS - 1 - i], len + 40 + (size_t)i);
    while (!aq_test_all(a, 0, sizeof(a)))
        gex_Event_WaitSome(a, 2 * SLOTS, 0);
    for (i = 0; i < SLOTS; i++)
        arrived(to, i, len, len + 40 + (size_t)i);
}

/* Roots are synchronised while copies of their leaves are never read again. The library reuses the
 * operations more often than a small generation number could distinguish. */
static void untouched_leaves(gex_Rank_t to)
{
    const int rounds = aq_test_quick ? 30 : 200;
    gex_Event_t stale[200][SLOTS], roots[SLOTS];
    int round, i;

    rule("extended 4.2: leaf events that nobody touches after their root do no harm to later "
         "operations");
    for (round = 0; round < rounds; round++) {
        const size_t len = round % 3 == 0 ? 8 : round % 3 == 1 ? 4096 : 20000;

        for (i = 0; i < SLOTS; i++)
            roots[i] = start(to, i, len, &stale[round][i], (uint64_t)round * SLOTS + (uint64_t)i);
        for (i = 0; i < SLOTS; i++) { /* with and without a look at the leaf while it is one */
            if ((round + i) % 4 == 0)
                gex_Event_Wait(stale[round][i]);
            if (round % 2)
                gex_Event_Wait(roots[i]);
        }
        if (round % 2 == 0)
            gex_Event_WaitAll(roots, SLOTS, 0);
        for (i = round % 5; i < SLOTS; i += 5)
            arrived(to, i, len, (uint64_t)round * SLOTS + (uint64_t)i);
    }
}

static void invalid_root(void)
{
    rule("extended 4.3: QueryLeaf of INVALID gives something that tests done");
    AQ_CHECK_EQ(gex_Event_Test(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC)), GASNET_OK);
}

int main(int argc, char **argv)
{
    size_t i;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(SLOTS * BIG);
    invalid_root();
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        for (i = 0; i < AQ_LENGTH(sizes); i++) {
            const gex_Rank_t to = aq_test_peer(k);

            leaf_then_root(to, sizes[i]);
            root_only(to, sizes[i]);
            if (sizes[i] <= 70000)
                in_arrays(to, sizes[i]);
        }
        untouched_leaves(aq_test_peer(k));
        aq_test_barrier(); /* next round has other writers */
    }
    return aq_test_finish();
}
