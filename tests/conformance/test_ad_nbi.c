/*
 * test_ad_nbi.c - implicit atomics: SET counts as a put, GET as a get, everything else, SWAP
 * included, as RMW; regions collect them; events of explicit ones may be synchronised in any order
 * and number. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, implicit operations;
 * Remote atomics. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

#include <unistd.h>

enum { OPS = 600, GARBAGE = 0x77777777 };

static gex_AD_t ad;
static gex_Event_t events[OPS];
static int64_t results[OPS];

static int64_t *slot(gex_Rank_t owner, unsigned i)
{
    return (int64_t *)aq_test_base(owner) + (size_t)aq_test_me * OPS + i;
}

static void start(int64_t *result, gex_Rank_t to, unsigned i, gex_OP_t op, int64_t a)
{
    AQ_CHECK_EQ(gex_AD_OpNBI_I64(ad, result, to, slot(to, i), op, a, 0, 0), 0);
}

/* Waiting for its category alone is enough for each operation's result. */
static void check_category_suffices(gex_Rank_t to)
{
    static const gex_OP_t ops[] = { GEX_OP_FADD, GEX_OP_GET,   GEX_OP_SWAP, GEX_OP_FCAS,
                                    GEX_OP_FXOR, GEX_OP_FMULT, GEX_OP_FMIN, GEX_OP_FDEC };
    size_t i;
    int n;

    for (i = 0; i < AQ_LENGTH(ops); i++) {
        for (n = 0; n < 20; n++) {
            results[n] = GARBAGE;
            start(NULL, to, (unsigned)n, GEX_OP_SET, n);
        }
        gex_NBI_Wait(GEX_EC_PUT, 0);
        for (n = 0; n < 20; n++)
            start(&results[n], to, (unsigned)n, ops[i], 1);
        if (i % 2)
            gex_NBI_Wait(aq_ad_ec(ops[i]), 0);
        else
            while (gex_NBI_Test(aq_ad_ec(ops[i]), 0) != GASNET_OK)
                aq_test_relax();
        for (n = 0; n < 20; n++)
            AQ_CHECK_EQ(results[n], n);
    }
    start(NULL, to, 0, GEX_OP_SET, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (n = 0; n < 20; n++)
        start(NULL, to, 0, GEX_OP_INC, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    start(&results[0], to, 0, GEX_OP_GET, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    AQ_CHECK_EQ(results[0], 20);
}

/* While the target does not poll, an operation that needs its processor stays under way: it is then
 * in its own category and in no other. Where targets are reached without their help everything is
 * complete at once. */
static void check_category_alone(void)
{
    static const struct {
        gex_OP_t op;
        gex_EC_t own, others[3];
    } cases[] = {
        { GEX_OP_SET, GEX_EC_PUT, { GEX_EC_GET, GEX_EC_RMW, GEX_EC_AM } },
        { GEX_OP_GET, GEX_EC_GET, { GEX_EC_PUT, GEX_EC_RMW, GEX_EC_LC } },
        { GEX_OP_SWAP, GEX_EC_RMW, { GEX_EC_PUT, GEX_EC_GET, GEX_EC_LC } },
        { GEX_OP_INC, GEX_EC_RMW, { GEX_EC_PUT, GEX_EC_GET, GEX_EC_AM } },
        { GEX_OP_FADD, GEX_EC_RMW, { GEX_EC_PUT, GEX_EC_GET, GEX_EC_LC } },
        { GEX_OP_FCAS, GEX_EC_RMW, { GEX_EC_PUT, GEX_EC_GET, GEX_EC_AM } },
    };
    size_t i, k;

    for (i = 0; i < AQ_LENGTH(cases); i++) {
        aq_test_barrier();
        if (aq_test_me % 2 == 1) {
            usleep(20000); /* deaf */
        } else if (aq_test_me + 1 < aq_test_n) {
            const gex_Rank_t to = aq_test_me + 1;
            gex_Event_t pilot;
            int64_t old, seen;

            usleep(2000);
            pilot = gex_AD_OpNB_I64(ad, &old, to, slot(to, 0), GEX_OP_FADD, 1, 0, 0);
            start(&seen, to, 1, cases[i].op, 1);
            if (pilot != GEX_EVENT_INVALID) {
                const int own = gex_NBI_Test(cases[i].own, 0), all = gex_NBI_Test(GEX_EC_ALL, 0);
                int others = 0;

                for (k = 0; k < 3; k++)
                    others += gex_NBI_Test(cases[i].others[k], 0) != GASNET_OK;
                if (gex_Event_Test(pilot)
                    == GASNET_OK) { /* it was not deaf: nothing to be learnt */
                    gex_NBI_Wait(GEX_EC_ALL, 0);
                    continue;
                }
                AQ_CHECK_EQ(own, GASNET_ERR_NOT_READY);
                AQ_CHECK_EQ(all, GASNET_ERR_NOT_READY);
                AQ_CHECK_EQ(others, 0);
                gex_Event_Wait(pilot);
            }
            gex_NBI_Wait(cases[i].own, 0);
            AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
        }
    }
    aq_test_barrier();
}

static void check_region(gex_Rank_t to)
{
    const unsigned ops = aq_test_quick ? 90 : OPS;
    gex_Event_t region, leaf;
    int64_t outside = GARBAGE;
    unsigned i;

    for (i = 0; i < ops; i++)
        start(NULL, to, i, GEX_OP_SET, 5);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    gex_NBI_BeginAccessRegion(0);
    for (i = 0; i < ops; i++) {
        results[i] = GARBAGE;
        if (i % 3 == 0)
            start(&results[i], to, i, GEX_OP_FADD, 1);
        else if (i % 3 == 1)
            start(&results[i], to, i, GEX_OP_GET, 0);
        else
            start(&results[i], to, i, GEX_OP_SET, 9);
    }
    region = gex_NBI_EndAccessRegion(0);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* none of them is seen here */
    leaf = gex_Event_QueryLeaf(region, GEX_EC_LC);       /* nothing in it has a local completion */
    AQ_CHECK_EQ(gex_Event_Test(leaf), GASNET_OK);
    start(&outside, to, ops - 1, GEX_OP_GET, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(outside == 5 || outside == 9 || outside == 6);
    gex_Event_Wait(region);
    for (i = 0; i < ops; i++)
        AQ_CHECK_EQ(results[i], i % 3 == 2 ? GARBAGE : 5);
    for (i = 0; i < ops; i++)
        start(&results[i], to, i, GEX_OP_GET, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (i = 0; i < ops; i++)
        AQ_CHECK_EQ(results[i], i % 3 == 0 ? 6 : i % 3 == 1 ? 5 : 9);
}

static void check_events(gex_Rank_t to)
{
    const unsigned ops = aq_test_quick ? 90 : OPS;
    unsigned i, left = ops;

    for (i = 0; i < ops; i++)
        gex_Event_Wait(gex_AD_OpNB_I64(ad, NULL, to, slot(to, i), GEX_OP_SET, (int64_t)i, 0, 0));
    for (i = 0; i < ops; i++)
        events[i] = gex_AD_OpNB_I64(ad, &results[i], to, slot(to, i), GEX_OP_SWAP, -1, 0, 0);
    while (left > 0) { /* last first, tested rather than waited for */
        if (gex_Event_Test(events[left - 1]) == GASNET_OK)
            left--;
        else
            aq_test_relax();
    }
    for (i = 0; i < ops; i++)
        AQ_CHECK_EQ(results[i], i);
    for (i = 0; i < ops; i++)
        events[i] = gex_AD_OpNB_I64(ad, &results[i], to, slot(to, i), GEX_OP_FSUB, 1, 0, 0);
    gex_Event_WaitAll(events, ops, 0);
    for (i = 0; i < ops; i++)
        AQ_CHECK(results[i] == -1 && events[i] == GEX_EVENT_INVALID);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)aq_test_n * OPS * sizeof(int64_t));
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_I64, AQ_AD_OPS_INTEGER, 0);
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        rule("extended 5: a wait for PUT covers SET, for GET covers GET, for RMW all others");
        check_category_suffices(aq_test_peer(k));
        rule("extended 9.3: implicit atomics in an access region join it");
        check_region(aq_test_peer(k));
        rule("extended 9.1: many explicit atomics under way, synchronised in any order");
        check_events(aq_test_peer(k));
    }
    rule("extended 9.3: an atomic is in one category only");
    check_category_alone();
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
