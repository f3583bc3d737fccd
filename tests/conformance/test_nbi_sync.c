/*
 * test_nbi_sync.c - implicit operations: each category, Test and Wait, local completion apart from
 * completion, nothing outstanding, mask 0.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, implicit operations.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { LEN = 3000, OPS = 16, H_M = AQ_TEST_FREE };

static char out[OPS][LEN], in[OPS][LEN];
static aq_test_count_t arrived;

static void h_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(nbytes == 500 && aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&arrived, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_M, h_m, AQ_MQ, 1) };

static char *place(gex_Rank_t to, int i)
{
    return (char *)aq_test_base(to) + (size_t)i * LEN;
}

static void sync_mask(gex_EC_t mask, int by_test)
{
    if (!by_test) {
        gex_NBI_Wait(mask, 0);
        return;
    }
    for (;;) {
        int rc = gex_NBI_Test(mask, 0);

        AQ_CHECK(rc == GASNET_OK || rc == GASNET_ERR_NOT_READY);
        if (rc == GASNET_OK)
            return;
        aq_test_relax();
    }
}

static void puts_with(gex_Rank_t to, gex_Event_t *lc, uint64_t seed, int by_test)
{
    int i;

    for (i = 0; i < OPS; i++) {
        aq_test_fill(out[i], LEN, seed + (uint64_t)i);
        AQ_CHECK_EQ(gex_RMA_PutNBI(aq_test_tm, to, place(to, i), out[i], LEN, lc, 0), 0);
        if (lc == GEX_EVENT_NOW)
            memset(out[i], 0, LEN);
    }
    if (lc == GEX_EVENT_GROUP) {
        sync_mask(GEX_EC_LC, by_test);
        memset(out, 0, sizeof(out));
    }
    sync_mask(GEX_EC_PUT, by_test);
}

static void gets_back(gex_Rank_t to, uint64_t seed, gex_EC_t mask, int by_test)
{
    int i;

    memset(in, 0, sizeof(in));
    for (i = 0; i < OPS; i++)
        AQ_CHECK_EQ(gex_RMA_GetNBI(aq_test_tm, in[i], to, place(to, i), LEN, 0), 0);
    sync_mask(mask, by_test);
    for (i = 0; i < OPS; i++)
        AQ_CHECK(aq_test_same(in[i], LEN, seed + (uint64_t)i));
}

static void check_categories(gex_Rank_t to, uint64_t seed, int by_test)
{
    rule("extended 5: PutNBI NOW: source reusable at return; GEX_EC_PUT completes");
    puts_with(to, GEX_EVENT_NOW, seed, by_test);
    gets_back(to, seed, GEX_EC_GET, by_test);
    rule("extended 5: PutNBI DEFER: GEX_EC_PUT covers local completion too");
    puts_with(to, GEX_EVENT_DEFER, seed + 100, by_test);
    gets_back(to, seed + 100, GEX_EC_ALL, by_test);
    rule("extended 5: PutNBI GROUP: GEX_EC_LC frees the source, GEX_EC_PUT is still to be synced");
    puts_with(to, GEX_EVENT_GROUP, seed + 200, by_test);
    gets_back(to, seed + 200, GEX_EC_GET | GEX_EC_PUT, by_test);
}

static void value_puts(gex_Rank_t to)
{
    int i;

    rule("extended 6.6: PutNBIVal is counted under GEX_EC_PUT");
    for (i = 0; i < LEN / 8; i++)
        gex_RMA_PutNBIVal(aq_test_tm, to, place(to, 0) + 8 * i, (gex_RMA_Value_t)i * 3, 8, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (i = 0; i < LEN / 8; i += 17)
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, place(to, 0) + 8 * i, 8, 0), i * 3);
}

static void am_group(gex_Rank_t to, int round)
{
    int i;

    rule("extended 5: AM requests with GROUP are synced by GEX_EC_AM, mixed with puts by "
         "GEX_EC_ALL");
    for (i = 0; i < OPS; i++) {
        aq_test_fill(out[i], 500, (uint64_t)i);
        gex_AM_RequestMedium1(aq_test_tm, to, H_M, out[i], 500, GEX_EVENT_GROUP, 0, i);
    }
    gex_NBI_Wait(GEX_EC_AM, 0);
    memset(out, 0, sizeof(out));
    for (i = 0; i < OPS; i++) {
        aq_test_fill(out[i], LEN, (uint64_t)i);
        gex_AM_RequestMedium1(aq_test_tm, to, H_M, out[i], 500, GEX_EVENT_GROUP, 0, i);
        gex_RMA_PutNBI(aq_test_tm, to, place(to, i), out[i], LEN, GEX_EVENT_GROUP, 0);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gets_back(to, 0, GEX_EC_GET, 0);
    aq_test_wait(&arrived, (round + 1) * 2 * OPS);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;
    int by_test;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(OPS * LEN);
    rule("extended 5: nothing outstanding: Test succeeds, Wait returns, for every mask and mask 0");
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_PUT | GEX_EC_GET, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_NBI_Test(0, 0), GASNET_OK);
    gex_NBI_Wait(GEX_EC_AM, 0);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_NBI_Wait(0, 0);
    for (k = 0; k < 2; k++) {
        for (by_test = 0; by_test < 2; by_test++)
            check_categories(aq_test_peer(k), k * 1000 + (uint64_t)by_test, by_test);
        value_puts(aq_test_peer(k));
        am_group(aq_test_peer(k), (int)k);
        aq_test_barrier();
    }
    return aq_test_finish();
}
