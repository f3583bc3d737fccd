/*
 * test_ad_counters.c - domains of 64-bit integers with additions, compare-and-swap and reads only,
 * which a network's device may serve by itself. All ranks work on all ranks' words at once, on
 * their own too. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_ratomic.h"

enum { ROUNDS = 200, W_NUMBER = 0, W_SUM, W_CAS, W_BOTH, W_LOOK, WORDS };

#define COUNTERS                                                                                \
    (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_INC | GEX_OP_DEC | GEX_OP_CAS | GEX_OP_FADD | GEX_OP_FSUB \
     | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_FCAS | GEX_OP_GET)

static gex_AD_t ad;
static unsigned rounds;

static uint64_t *word(gex_Rank_t owner, int which)
{
    return (uint64_t *)aq_test_base(owner) + which;
}

static uint64_t fetch(gex_Rank_t owner, int which, gex_OP_t op, uint64_t a, uint64_t b)
{
    uint64_t old = UINT64_MAX - 7;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &old, owner, word(owner, which), op, a, b, 0));
    return old;
}

/* Each match id of each rank is drawn once: this rank's rise, and in the end as many were drawn as
 * were asked for. */
static void check_numbers(void)
{
    for (gex_Rank_t owner = 0; owner < aq_test_n; owner++) {
        uint64_t last = 0;

        for (unsigned i = 0; i < rounds; i++) {
            const uint64_t number = fetch(owner, W_NUMBER, i % 2 ? GEX_OP_FADD : GEX_OP_FINC, 1, 0);

            AQ_CHECK(number < (uint64_t)rounds * aq_test_n);
            AQ_CHECK(i == 0 || number > last);
            last = number;
        }
    }
    aq_test_barrier();
    for (gex_Rank_t owner = 0; owner < aq_test_n; owner++)
        AQ_CHECK_EQ(fetch(owner, W_NUMBER, GEX_OP_GET, 0, 0), (uint64_t)rounds * aq_test_n);
}

/* Without results, many under way at once. */
static void check_sums(void)
{
    static const gex_OP_t ops[] = { GEX_OP_ADD, GEX_OP_INC, GEX_OP_SUB, GEX_OP_DEC };

    for (unsigned i = 0; i < rounds; i++)
        for (gex_Rank_t owner = 0; owner < aq_test_n; owner++)
            AQ_CHECK_EQ(
                gex_AD_OpNBI_U64(ad, NULL, owner, word(owner, W_SUM), ops[i % 4], 1000, 0, 0), 0);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    aq_test_barrier();
    for (gex_Rank_t owner = 0; owner < aq_test_n; owner++)
        AQ_CHECK_EQ(fetch(owner, W_SUM, GEX_OP_GET, 0, 0), 0);
}

/* A counter made of compare-and-swap only: a failed one has no effect and returns the present
 * value. */
static void check_swaps(void)
{
    const gex_Rank_t owner = 0;
    const unsigned turns = rounds / 4;
    uint64_t seen = 0;

    for (unsigned i = 0; i < turns; i++)
        for (;;) {
            const uint64_t old = fetch(owner, W_CAS, GEX_OP_FCAS, seen, seen + 3);

            if (old == seen)
                break;
            AQ_CHECK(old % 3 == 0);
            seen = old;
        }
    aq_test_barrier();
    AQ_CHECK_EQ(fetch(owner, W_CAS, GEX_OP_GET, 0, 0), (uint64_t)3 * turns * aq_test_n);
    /* without a result */
    aq_test_barrier();
    if (aq_test_me == 0) {
        const uint64_t remote_addr = (uint64_t)3 * turns * aq_test_n;

        gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, owner, word(owner, W_CAS), GEX_OP_CAS,
                                       remote_addr + 1, 5, 0));
        AQ_CHECK_EQ(fetch(owner, W_CAS, GEX_OP_GET, 0, 0), remote_addr);
        gex_Event_Wait(
            gex_AD_OpNB_U64(ad, NULL, owner, word(owner, W_CAS), GEX_OP_CAS, remote_addr, 5, 0));
        AQ_CHECK_EQ(fetch(owner, W_CAS, GEX_OP_GET, 0, 0), 5);
    }
    aq_test_barrier();
}

/* Additions and swaps on one word: the owner adds to its own, the others swap, nothing is lost. */
static void check_mixed(void)
{
    const gex_Rank_t owner = aq_test_n - 1;
    const unsigned turns = rounds / 4;

    for (unsigned i = 0; i < turns; i++) {
        uint64_t seen;

        if (aq_test_me == owner) {
            gex_Event_Wait(
                gex_AD_OpNB_U64(ad, NULL, owner, word(owner, W_BOTH), GEX_OP_INC, 0, 0, 0));
            continue;
        }
        seen = fetch(owner, W_BOTH, GEX_OP_GET, 0, 0);
        for (;;) {
            const uint64_t old = fetch(owner, W_BOTH, GEX_OP_FCAS, seen, seen + 1);

            if (old == seen)
                break;
            seen = old;
        }
    }
    aq_test_barrier();
    AQ_CHECK_EQ(fetch(owner, W_BOTH, GEX_OP_GET, 0, 0), (uint64_t)turns * aq_test_n);
}

/* What a plain store wrote before a barrier is what atomics find, and the other way round; signs
 * survive. */
static void check_plain(void)
{
    const gex_Rank_t next = (aq_test_me + 1) % aq_test_n;
    gex_AD_t of_signed;
    int64_t old = 0;

    gex_AD_Create(&of_signed, aq_test_tm, GEX_DT_I64, COUNTERS, 0);
    *(volatile int64_t *)word(aq_test_me, W_LOOK) = -40 - (int64_t)aq_test_me;
    aq_test_barrier();
    gex_Event_Wait(
        gex_AD_OpNB_I64(of_signed, &old, next, word(next, W_LOOK), GEX_OP_FSUB, 2, 0, 0));
    AQ_CHECK_EQ(old, -40 - (int64_t)next);
    gex_Event_Wait(
        gex_AD_OpNB_I64(of_signed, &old, next, word(next, W_LOOK), GEX_OP_FDEC, 0, 0, 0));
    AQ_CHECK_EQ(old, -42 - (int64_t)next);
    gex_Event_Wait(
        gex_AD_OpNB_I64(of_signed, &old, next, word(next, W_LOOK), GEX_OP_FADD, -5, 0, 0));
    AQ_CHECK_EQ(old, -43 - (int64_t)next);
    aq_test_barrier();
    AQ_CHECK_EQ(*(volatile int64_t *)word(aq_test_me, W_LOOK), -48 - (int64_t)aq_test_me);
    gex_AD_Destroy(of_signed);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    rounds = aq_test_quick ? ROUNDS / 5 : ROUNDS;
    aq_test_segment(WORDS * sizeof(uint64_t));
    memset(aq_test_base(aq_test_me), 0, WORDS * sizeof(uint64_t));
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, COUNTERS, 0);
    aq_test_barrier();
    rule("extended 9.2: fetch-and-add draws each number once, own words included");
    check_numbers();
    rule("extended 9.2: additions without results, many under way, none lost");
    check_sums();
    rule("extended 9.2: compare-and-swap");
    check_swaps();
    rule("extended 9.2: different operations on one word through one domain are atomic with each "
         "other");
    check_mixed();
    rule("extended 9.2: plain accesses and atomics see each other's words across a barrier");
    check_plain();
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
