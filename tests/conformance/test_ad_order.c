/*
 * test_ad_order.c - the orders that GEX_FLAG_AD_REL and GEX_FLAG_AD_ACQ promise: messages passed
 * through memory with a flag, by puts, atomics and plain stores; and no order in which both sides
 * miss each other. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics:
 * flags on operations. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

enum { FLAG, BACK, DATA, OWN_FLAG, OWN_BACK, OWN_DATA, ATOMIC_DATA, LEFT, RIGHT, WORDS = 64 };

static gex_AD_t ad;

static uint64_t *word(gex_Rank_t owner, unsigned i)
{
    return (uint64_t *)aq_test_base(owner) + 8 * i; /* a line each */
}

static uint64_t get(gex_Rank_t from, unsigned i, gex_Flags_t flags)
{
    uint64_t seen = 0;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &seen, from, word(from, i), GEX_OP_GET, 0, 0, flags));
    return seen;
}

static void set(gex_Rank_t to, unsigned i, uint64_t value, gex_Flags_t flags)
{
    gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, to, word(to, i), GEX_OP_SET, value, 0, flags));
}

static void await(gex_Rank_t from, unsigned i, uint64_t value)
{
    AQ_UNTIL(get(from, i, GEX_FLAG_AD_ACQ) >= value);
}

/* A puts X at B, syncs, sets Y at B; B polls its Y, then reads X by load, atomic and get. */
static void check_flag_at_target(unsigned rounds)
{
    const gex_Rank_t next = aq_test_peer(1), previous = aq_test_peer(aq_test_n - 1);
    volatile const uint64_t *ours = word(aq_test_me, DATA);
    uint64_t round;

    for (round = 1; round <= rounds; round++) {
        const uint64_t x = round * 3, y = round * 5;

        if (round % 2)
            gex_RMA_PutBlocking(aq_test_tm, next, word(next, DATA), &x, sizeof(x), 0);
        else
            gex_Event_Wait(gex_RMA_PutNBVal(aq_test_tm, next, word(next, DATA), x, sizeof(x), 0));
        set(next, ATOMIC_DATA, y, 0);
        if (round % 3)
            set(next, FLAG, round, GEX_FLAG_AD_REL);
        else
            gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, next, word(next, FLAG), GEX_OP_INC, 0, 0,
                                           GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ));
        await(aq_test_me, FLAG, round);
        AQ_CHECK_EQ(*ours, x);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, aq_test_me, word(aq_test_me, DATA), 8, 0),
                    x);
        AQ_CHECK_EQ(get(aq_test_me, ATOMIC_DATA, 0), y);
        set(previous, BACK, round, GEX_FLAG_AD_REL); /* my reads are over: it may write again */
        await(aq_test_me, BACK, round);
    }
}

/* A stores X in its own memory and sets its own Y; B polls A's Y, then gets X. */
static void check_flag_at_initiator(unsigned rounds)
{
    const gex_Rank_t next = aq_test_peer(1), previous = aq_test_peer(aq_test_n - 1);
    volatile uint64_t *ours = word(aq_test_me, OWN_DATA);
    uint64_t round;

    for (round = 1; round <= rounds; round++) {
        *ours = round * 7;
        set(aq_test_me, OWN_FLAG, round, GEX_FLAG_AD_REL);
        await(previous, OWN_FLAG, round);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, previous, word(previous, OWN_DATA), 8, 0),
                    round * 7);
        set(aq_test_me, OWN_BACK, round, GEX_FLAG_AD_REL);
        await(next, OWN_BACK, round);
    }
}

/* Each of two ranks sets its word, then reads the other's. With the set ordered before what
 * follows, or what precedes ordered before the read, at least one of them finds the other's
 * value. */
static void check_not_both_miss(unsigned rounds, gex_Flags_t on_set, gex_Flags_t on_get)
{
    const gex_Rank_t partner = aq_test_me ^ 1, home = aq_test_me & ~(gex_Rank_t)1;
    const unsigned my = LEFT + (aq_test_me & 1), its = LEFT + (~aq_test_me & 1);
    static uint64_t last;
    uint64_t *seen = malloc(rounds * sizeof(*seen));
    unsigned round, both = 0;

    for (round = 0; round < rounds; round++) {
        const uint64_t value = last + round + 1;

        aq_test_barrier();
        if (partner >= aq_test_n)
            continue;
        set(home, my, value, on_set);
        seen[round] = get(home, its, on_get) >= value;
    }
    last += rounds;
    aq_test_barrier();
    /* the odd one puts what it saw where the even one compares */
    if (partner < aq_test_n && aq_test_me != home)
        gex_RMA_PutBlocking(aq_test_tm, home, word(home, WORDS), seen, rounds * sizeof(*seen), 0);
    aq_test_barrier();
    if (partner < aq_test_n && aq_test_me == home)
        for (round = 0; round < rounds; round++)
            both += !seen[round] && !word(home, WORDS)[round];
    AQ_CHECK_EQ(both, 0);
    aq_test_barrier();
    free(seen);
}

int main(int argc, char **argv)
{
    unsigned rounds;

    aq_test_start(&argc, &argv, 1);
    rounds = aq_test_quick ? 100 : aq_test_crowded ? 300 : 2000;
    aq_test_segment((size_t)WORDS * 64 + (size_t)rounds * 8);
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, GEX_OP_SET | GEX_OP_GET | GEX_OP_INC, 0);
    rule("extended 9.4: put X, sync, set Y at the target with REL; it sees Y with ACQ, then X");
    check_flag_at_target(rounds);
    aq_test_barrier();
    rule("extended 9.4: store X, set own Y with REL; who sees Y with ACQ then gets X");
    check_flag_at_initiator(rounds);
    rule("extended 9.4: set with ACQ, then get: two ranks do not both miss the other's set");
    check_not_both_miss(rounds / 4, GEX_FLAG_AD_ACQ, 0);
    rule("extended 9.4: set, then get with REL: two ranks do not both miss the other's set");
    check_not_both_miss(rounds / 4, 0, GEX_FLAG_AD_REL);
    aq_test_barrier();
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
