/*
 * test_ad_order.c - the orders that GEX_FLAG_AD_REL and GEX_FLAG_AD_ACQ promise: messages passed through
 * memory with a flag, by puts, atomics and plain stores; and no order in which both sides miss each other.
 * With every sort of operation as the one that has the flag: stores, loads, those that always write, and
 * compare-and-swaps that succeed and that fail, which are loads and no more.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics: flags on operations.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

enum { FLAG, COUNT, BACK, DATA, OWN_FLAG, OWN_BACK, OWN_DATA, ATOMIC_DATA, LEFT, RIGHT, WORDS = 64 };

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

/* A word of flags holds round * SCALE; what is below counts looks that increment. */
#define SCALE UINT64_C(1000000)
#define NEVER UINT64_MAX /* no word has this value: comparing with it fails */

/* A fetching operation. */
static uint64_t fetch(gex_Rank_t at, unsigned i, gex_OP_t op, uint64_t a, uint64_t b, gex_Flags_t flags)
{
    uint64_t seen = 0;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &seen, at, word(at, i), op, a, b, flags));
    return seen;
}

enum { BY_SET, BY_SWAP, BY_CAS, BY_INC, RAISES };

/* Say in one of several ways that a round has come, ordered after what this thread did. */
static void raise_flag(gex_Rank_t to, uint64_t round, unsigned how)
{
    uint64_t expected = 0, seen;

    switch (how) {
    case BY_SET:
        set(to, FLAG, round * SCALE, GEX_FLAG_AD_REL);
        break;
    case BY_SWAP:
        AQ_CHECK(fetch(to, FLAG, GEX_OP_SWAP, round * SCALE, 0, GEX_FLAG_AD_REL) < round * SCALE);
        break;
    case BY_CAS: /* fails until it is told what to expect: the reader may count its looks there */
        while ((seen = fetch(to, FLAG, GEX_OP_FCAS, expected, round * SCALE, GEX_FLAG_AD_REL)) != expected)
            expected = seen;
        break;
    default:
        gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, to, word(to, COUNT), GEX_OP_INC, 0, 0,
                                       GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ));
    }
}

/* Look at my flag, in one of several ways, ordered before what this thread does next. */
static bool sees_flag(uint64_t round, unsigned raised, unsigned how)
{
    const uint64_t value = raised == BY_INC ? round / RAISES : round * SCALE;
    const unsigned i = raised == BY_INC ? COUNT : FLAG;

    switch (how) {
    case 0:
        return get(aq_test_me, i, GEX_FLAG_AD_ACQ) >= value;
    case 1: /* fails always: a load */
        return fetch(aq_test_me, i, GEX_OP_FCAS, NEVER, 0, GEX_FLAG_AD_ACQ) >= value;
    case 2: /* succeeds if the flag is there */
        return fetch(aq_test_me, i, GEX_OP_FCAS, value, value, GEX_FLAG_AD_ACQ) == value;
    case 3:
        if (i == FLAG)
            return fetch(aq_test_me, i, GEX_OP_FINC, 0, 0, GEX_FLAG_AD_ACQ) >= value;
        /* fall through */
    default:
        if (i == COUNT)
            return get(aq_test_me, i, GEX_FLAG_AD_ACQ) >= value;
        /* 0 stands for a flag that was seen already */
        return fetch(aq_test_me, i, GEX_OP_SWAP, 0, 0, GEX_FLAG_AD_ACQ) >= value;
    }
}

/* A puts X at B, syncs, raises its flag at B; B polls the flag, then reads X by load, atomic and get. */
static void check_flag_at_target(unsigned rounds)
{
    const gex_Rank_t next = aq_test_peer(1), previous = aq_test_peer(aq_test_n - 1);
    volatile const uint64_t *mine = word(aq_test_me, DATA);
    uint64_t round;

    for (round = 1; round <= rounds; round++) {
        const uint64_t x = round * 3, y = round * 5;
        const unsigned raise = (unsigned)(round - 1) % RAISES, look = (unsigned)((round - 1) / RAISES % 5);

        if (round % 2)
            gex_RMA_PutBlocking(aq_test_tm, next, word(next, DATA), &x, sizeof(x), 0);
        else
            gex_Event_Wait(gex_RMA_PutNBVal(aq_test_tm, next, word(next, DATA), x, sizeof(x), 0));
        set(next, ATOMIC_DATA, y, 0);
        raise_flag(next, round, raise);
        AQ_UNTIL(sees_flag(round, raise, look));
        AQ_CHECK_EQ(*mine, x);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, aq_test_me, word(aq_test_me, DATA), 8, 0), x);
        AQ_CHECK_EQ(get(aq_test_me, ATOMIC_DATA, 0), y);
        set(previous, BACK, round, GEX_FLAG_AD_REL); /* my reads are over: it may write again */
        await(aq_test_me, BACK, round);
    }
}

/* A stores X in its own memory and sets its own Y; B polls A's Y, then gets X. */
static void check_flag_at_initiator(unsigned rounds)
{
    const gex_Rank_t next = aq_test_peer(1), previous = aq_test_peer(aq_test_n - 1);
    volatile uint64_t *mine = word(aq_test_me, OWN_DATA);
    uint64_t round;

    for (round = 1; round <= rounds; round++) {
        *mine = round * 7;
        set(aq_test_me, OWN_FLAG, round, GEX_FLAG_AD_REL);
        await(previous, OWN_FLAG, round);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, previous, word(previous, OWN_DATA), 8, 0),
                    round * 7);
        set(aq_test_me, OWN_BACK, round, GEX_FLAG_AD_REL);
        await(next, OWN_BACK, round);
    }
}

/* Write value into a word that holds value - 1, the first half of what follows. */
static void write_word(gex_Rank_t at, unsigned i, gex_OP_t op, uint64_t value, gex_Flags_t flags)
{
    const uint64_t old = value - 1;

    switch (op) {
    case GEX_OP_SET:
        set(at, i, value, flags);
        break;
    case GEX_OP_INC:
        gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, at, word(at, i), op, 0, 0, flags));
        break;
    case GEX_OP_SWAP:
        AQ_CHECK_EQ(fetch(at, i, op, value, 0, flags), old);
        break;
    default:
        AQ_CHECK_EQ(fetch(at, i, GEX_OP_FCAS, old, value, flags), old);
    }
}

/* Has a word that holds value - 1 or value the latter? Afterwards it holds that or, if we wrote it, will. */
static bool look_at_word(gex_Rank_t at, unsigned i, gex_OP_t op, uint64_t value, gex_Flags_t flags)
{
    switch (op) {
    case GEX_OP_GET:
        return get(at, i, flags) == value;
    case GEX_OP_CAS: /* fails always */
        return fetch(at, i, GEX_OP_FCAS, NEVER, 0, flags) == value;
    case GEX_OP_FCAS: /* succeeds if value is not there yet */
        return fetch(at, i, op, value - 1, value - 1, flags) == value;
    case GEX_OP_FADD:
        return fetch(at, i, op, 0, 0, flags) == value;
    default: /* what the other is about to set, or has set */
        return fetch(at, i, GEX_OP_SWAP, value, 0, flags) == value;
    }
}

/* Each of two writes its word, then looks at the other's: with the write ordered before what follows, or what
 * went before ordered before the look, not both find nothing. */
static void check_not_both_miss(unsigned rounds, gex_OP_t writes, gex_Flags_t on_write, gex_OP_t looks,
                                gex_Flags_t on_look)
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
        write_word(home, my, writes, value, on_write);
        seen[round] = look_at_word(home, its, looks, value, on_look);
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

static void check_all_not_both_miss(unsigned rounds)
{
    const gex_OP_t writes[] = { GEX_OP_SET, GEX_OP_SWAP, GEX_OP_INC, GEX_OP_FCAS };
    const gex_OP_t looks[] = { GEX_OP_GET, GEX_OP_CAS, GEX_OP_FCAS, GEX_OP_FADD, GEX_OP_SWAP };
    size_t i;

    rule("extended 9.4: write with ACQ, then get: two ranks do not both miss the other's write");
    for (i = 0; i < AQ_LENGTH(writes); i++)
        check_not_both_miss(rounds, writes[i], GEX_FLAG_AD_ACQ, GEX_OP_GET, 0);
    rule("extended 9.4: set, then look with REL: two ranks do not both miss the other's set");
    for (i = 0; i < AQ_LENGTH(looks); i++)
        check_not_both_miss(rounds, GEX_OP_SET, 0, looks[i], GEX_FLAG_AD_REL);
}

int main(int argc, char **argv)
{
    unsigned rounds;

    aq_test_start(&argc, &argv, 1);
    rounds = aq_test_quick ? 100 : aq_test_crowded ? 300 : 2000;
    aq_test_segment((size_t)WORDS * 64 + (size_t)rounds * 8);
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, GEX_OP_SET | GEX_OP_GET | GEX_OP_INC | GEX_OP_FINC
                  | GEX_OP_SWAP | GEX_OP_FCAS | GEX_OP_FADD, 0);
    rule("extended 9.4: put X, sync, write Y at the target with REL; it sees Y with ACQ, then X");
    check_flag_at_target(rounds);
    aq_test_barrier();
    rule("extended 9.4: store X, set own Y with REL; who sees Y with ACQ then gets X");
    check_flag_at_initiator(rounds);
    check_all_not_both_miss(rounds / 4);
    aq_test_barrier();
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
