/*
 * test_ad_domain.c - atomic domains as objects: creation, queries, client data, use before others
 * have come back from creation, several domains on one team, flags of operations, unused arguments.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics; Flags.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

enum { MANY = 40, ROUNDS = 20, H_QUERY = AQ_TEST_FREE };

#if GEX_OP_TO_FETCHING(GEX_OP_ADD) != GEX_OP_FADD \
    || GEX_OP_TO_NONFETCHING(GEX_OP_SWAP) != GEX_OP_SET
#error "GEX_OP_TO_* do not map one form to the other at compile time"
#endif
#if (GEX_OP_FCAS != GEX_OP_CSWAP) || GEX_OP_USER_NC == 0
#error "operation codes"
#endif

static gex_AD_t static_ad = GEX_AD_INVALID;
static gex_AD_t asked_ad;
static aq_test_count_t answers;
static int cookie;

static uint64_t *slot(gex_Rank_t owner, unsigned i)
{
    return (uint64_t *)aq_test_base(owner) + i;
}

static uint64_t fetch(gex_AD_t ad, gex_Rank_t to, void *at)
{
    uint64_t seen = ~(uint64_t)0;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &seen, to, at, GEX_OP_GET, 0, 0, 0));
    return seen;
}

static void check_object(void)
{
    const gex_OP_t ops = GEX_OP_FADD | GEX_OP_GET | GEX_OP_SET;
    const gex_Flags_t flags[] = { 0,
                                  GEX_FLAG_AD_FAVOR_MY_RANK,
                                  GEX_FLAG_AD_FAVOR_MY_NBRHD,
                                  GEX_FLAG_AD_FAVOR_REMOTE,
                                  GEX_FLAG_PEER_SEG_OFFSET,
                                  GEX_FLAG_AD_FAVOR_REMOTE | GEX_FLAG_SELF_SEG_SOME
                                      | GEX_FLAG_PEER_SEG_BOUND };
    gex_AD_t ad[AQ_LENGTH(flags)];
    size_t i;

    rule("extended 9.1: queries return what was passed at creation; client data is NULL at first");
    AQ_CHECK(static_ad == GEX_AD_INVALID && !(uintptr_t)GEX_AD_INVALID);
    AQ_CHECK_EQ(sizeof(gex_AD_t), sizeof(void *));
    for (i = 0; i < AQ_LENGTH(flags); i++) {
        ad[i] = GEX_AD_INVALID;
        gex_AD_Create(&ad[i], aq_test_tm, i % 2 ? GEX_DT_DBL : GEX_DT_I32, ops, flags[i]);
        AQ_CHECK(ad[i] != GEX_AD_INVALID);
    }
    for (i = 0; i < AQ_LENGTH(flags); i++) {
        AQ_CHECK(gex_AD_QueryTM(ad[i]) == aq_test_tm);
        AQ_CHECK_EQ(gex_AD_QueryFlags(ad[i]), flags[i]);
        AQ_CHECK_EQ(gex_AD_QueryDT(ad[i]), i % 2 ? GEX_DT_DBL : GEX_DT_I32);
        AQ_CHECK_EQ(gex_AD_QueryOps(ad[i]), ops);
        AQ_CHECK_PTR(gex_AD_QueryCData(ad[i]), NULL);
        gex_AD_SetCData(ad[i], &ad[i]);
    }
    for (i = 0; i < AQ_LENGTH(flags); i++) {
        AQ_CHECK_PTR(gex_AD_QueryCData(ad[i]), &ad[i]);
        gex_AD_Destroy(ad[i]);
    }
}

/* No barrier between creation and the first use; the first to be through does not wait for others.
 * */
static void check_immediate_use(void)
{
    gex_AD_t ad[ROUNDS];
    int round;

    rule("extended 9.2: a domain may be used at once, before others have come back from creation");
    for (round = 0; round < ROUNDS; round++) {
        const gex_Rank_t to = (aq_test_me + (gex_Rank_t)round) % aq_test_n;
        uint64_t old = 0;

        if (aq_test_n > 1 && (gex_Rank_t)round % aq_test_n == aq_test_me)
            for (int i = 0; i < 2000; i++)
                aq_test_yield(); /* late */
        gex_AD_Create(&ad[round], aq_test_tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_GET, 0);
        gex_Event_Wait(
            gex_AD_OpNB_U64(ad[round], &old, to, slot(to, (unsigned)round), GEX_OP_FADD, 3, 0, 0));
        AQ_CHECK_EQ(old, 0);
    }
    aq_test_barrier();
    for (round = 0; round < ROUNDS; round++) {
        AQ_CHECK_EQ(fetch(ad[round], aq_test_me, slot(aq_test_me, (unsigned)round)), 3);
        gex_AD_Destroy(ad[round]);
    }
    aq_test_barrier();
}

static void check_many(void)
{
    gex_AD_t ad[MANY];
    uint64_t *at = slot(aq_test_peer(1), 64);
    unsigned i;

    rule("extended 9.2: several domains on one team, with equal and different parameters");
    for (i = 0; i < MANY; i++)
        gex_AD_Create(&ad[i], aq_test_tm, i % 3 ? GEX_DT_U64 : GEX_DT_DBL,
                      i % 3 ? AQ_AD_OPS_INTEGER : AQ_AD_OPS_FLOATING, 0);
    for (i = 0; i < MANY; i++) {
        if (i % 3)
            gex_AD_OpNBI_U64(ad[i], NULL, aq_test_peer(1), at + i, GEX_OP_ADD, i, 0, 0);
        else
            gex_AD_OpNBI_DBL(ad[i], NULL, aq_test_peer(1), at + i, GEX_OP_ADD, i, 0, 0);
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
    aq_test_barrier();
    for (i = MANY; i-- > 0;) {
        double d = 0;

        if (i % 3) {
            AQ_CHECK_EQ(fetch(ad[i], aq_test_me, slot(aq_test_me, 64) + i), i);
        } else {
            gex_Event_Wait(gex_AD_OpNB_DBL(ad[i], &d, aq_test_me, slot(aq_test_me, 64) + i,
                                           GEX_OP_GET, 0, 0, 0));
            AQ_CHECK_EQ(d, i);
        }
        gex_AD_Destroy(ad[i]);
    }
    aq_test_barrier();
}

/* What does not belong to the operation may be anything. */
static void check_unused(gex_AD_t ad)
{
    const gex_Rank_t to = aq_test_peer(1);
    uint64_t *const garbage = (uint64_t *)(uintptr_t)8; /* nothing may be written there */
    uint64_t *at = slot(to, 120);

    rule("extended 9.3: result_p of non-fetching operations and unused operands are ignored");
    gex_AD_OpNBI_U64(ad, garbage, to, at, GEX_OP_SET, 5, ~(uint64_t)0, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, garbage, to, at, GEX_OP_INC, 77, 78, 0));
    gex_Event_Wait(gex_AD_OpNB_U64(ad, garbage, to, at, GEX_OP_ADD, 4, 1000, 0));
    gex_Event_Wait(gex_AD_OpNB_U64(ad, garbage, to, at, GEX_OP_CAS, 10, 20, 0));
    AQ_CHECK_EQ(fetch(ad, to, at), 20);
    aq_test_barrier();
}

static uint64_t add_one(gex_AD_t ad, gex_Rank_t to, void *at, gex_Flags_t flags)
{
    uint64_t old = ~(uint64_t)0;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &old, to, at, GEX_OP_FADD, 1, 0, flags));
    return old;
}

static void check_flags(gex_AD_t ad)
{
    static const gex_Flags_t orders[] = { 0, GEX_FLAG_AD_REL, GEX_FLAG_AD_ACQ,
                                          GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ };
    const gex_Rank_t to = aq_test_peer(1);
    gex_RankInfo_t *nbrhd;
    gex_Rank_t nbrs, me_in_nbrhd;
    uint64_t *ours = slot(aq_test_me, 130), *its = slot(to, 131);
    uint64_t n = 0;
    size_t i;

    rule("extended 9.4: locality assertions, orders, jobranks and true dispositions change no "
         "result");
    for (i = 0; i < AQ_LENGTH(orders); i++) {
        const gex_Flags_t more = GEX_FLAG_RANK_IS_JOBRANK | orders[i];

        AQ_CHECK_EQ(add_one(ad, aq_test_me, ours, orders[i] | GEX_FLAG_AD_MY_RANK), n);
        AQ_CHECK_EQ(add_one(ad, aq_test_me, ours, more | GEX_FLAG_AD_MY_RANK), n + 1);
        AQ_CHECK_EQ(add_one(ad, aq_test_me, ours, more | GEX_FLAG_AD_MY_NBRHD), n + 2);
        AQ_CHECK_EQ(add_one(ad, aq_test_me, ours, orders[i] | GEX_FLAG_PEER_SEG_BOUND), n + 3);
        n += 4;
        AQ_CHECK_EQ(add_one(ad, to, its, orders[i]), 2 * i);
        AQ_CHECK_EQ(add_one(ad, to, its, more), 2 * i + 1);
    }
    gex_System_QueryNbrhdInfo(&nbrhd, &nbrs, &me_in_nbrhd);
    for (i = 0; i < nbrs; i++)
        add_one(ad, nbrhd[i].gex_jobrank, slot(nbrhd[i].gex_jobrank, 132), GEX_FLAG_AD_MY_NBRHD);
    aq_test_barrier();
    AQ_CHECK_EQ(fetch(ad, aq_test_me, slot(aq_test_me, 132)), nbrs);
    aq_test_barrier();
}

/* A declined operation leaves no trace; one that is not declined takes effect once. */
static void check_immediate_flag(gex_AD_t ad)
{
    const gex_Rank_t to = aq_test_peer(1);
    const int ops = aq_test_quick ? 300 : 3000;
    uint64_t done = 0;
    int i;

    rule("extended 7.2: an operation declined with GEX_FLAG_IMMEDIATE has no effect at all");
    for (i = 0; i < ops; i++) {
        if (i % 2) {
            const gex_Event_t event =
                gex_AD_OpNB_U64(ad, NULL, to, slot(to, 140), GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE);

            if (event == GEX_EVENT_NO_OP) {
                aq_test_relax();
            } else {
                done++;
                if (i % 16 == 1)
                    gex_Event_Wait(event);
                else
                    aq_test_sync(event);
            }
        } else if (gex_AD_OpNBI_U64(ad, NULL, to, slot(to, 140), GEX_OP_INC, 0, 0,
                                    GEX_FLAG_IMMEDIATE)
                   == 0) {
            done++;
        } else {
            aq_test_relax();
        }
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_AD_OpNBI_U64(ad, NULL, to, slot(to, 141), GEX_OP_SET, done, 0, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    aq_test_barrier();
    AQ_CHECK_EQ(fetch(ad, aq_test_me, slot(aq_test_me, 140)),
                fetch(ad, aq_test_me, slot(aq_test_me, 141)));
    aq_test_barrier();
}

/* Queries and client data are legal in handlers. */
static void h_query(gex_Token_t token)
{
    gex_AD_t ad = asked_ad;

    (void)token;
    if (gex_AD_QueryTM(ad) != aq_test_tm || gex_AD_QueryDT(ad) != GEX_DT_U64
        || gex_AD_QueryOps(ad) != AQ_AD_OPS_INTEGER || gex_AD_QueryFlags(ad) != 0)
        AQ_CHECK(!"what was passed at creation");
    gex_AD_SetCData(ad, &cookie);
    AQ_CHECK_PTR(gex_AD_QueryCData(ad), &cookie);
    atomic_fetch_add(&answers, 1);
}

static void check_handler_context(gex_AD_t ad)
{
    rule("extended 16.1: queries of a domain are legal in a handler");
    asked_ad = ad;
    aq_test_barrier();
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_QUERY, 0);
    aq_test_wait(&answers, 1);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = { AQ_ENTRY(H_QUERY, h_query, AQ_SQ, 0) };
    gex_AD_t ad, early;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    check_object();
    gex_AD_Create(&early, aq_test_tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_GET, 0);
    aq_test_segment(GASNET_PAGESIZE);

    rule("extended 9.2: a domain made before segments are attached serves them");
    AQ_CHECK_EQ(add_one(early, aq_test_peer(1), slot(aq_test_peer(1), 150), 0), 0);
    AQ_CHECK_EQ(fetch(early, aq_test_peer(1), slot(aq_test_peer(1), 150)), 1);
    aq_test_barrier();
    gex_AD_Destroy(early);

    check_immediate_use();
    check_many();
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, AQ_AD_OPS_INTEGER, 0);
    check_unused(ad);
    check_flags(ad);
    check_immediate_flag(ad);
    check_handler_context(ad);
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
