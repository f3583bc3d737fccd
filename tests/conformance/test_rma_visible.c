/*
 * test_rma_visible.c - a completed put is visible to the target's loads, to gets by a third rank,
 * and to a rank that a later put or message has notified.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, completion.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { WORDS = 32, ROUNDS = 100, H_LOOK = AQ_TEST_FREE };

/* A rank's segment: data and flag written by the rank before it. */
struct cell {
    uint64_t data[WORDS];
    uint64_t flag;
    uint64_t pad[7];
};

static aq_test_count_t looked;
static atomic_int to_look;

static void h_look(gex_Token_t token, gex_AM_Arg_t round)
{
    (void)token;
    atomic_store(&to_look, round);
    atomic_fetch_add(&looked, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_LOOK, h_look, AQ_SQ, 1) };

static bool right(const uint64_t *data, uint64_t round)
{
    int i;

    for (i = 0; i < WORDS && data[i] == round * 1000 + (uint64_t)i; i++)
        ;
    return i == WORDS;
}

static void write_round(int style, gex_Rank_t to, uint64_t round)
{
    struct cell *c = aq_test_base(to);
    uint64_t data[WORDS];
    int i;

    for (i = 0; i < WORDS; i++)
        data[i] = round * 1000 + (uint64_t)i;
    if (style == 0) {
        gex_RMA_PutBlocking(aq_test_tm, to, c->data, data, sizeof(data), 0);
    } else if (style == 1) {
        gex_Event_Wait(
            gex_RMA_PutNB(aq_test_tm, to, c->data, data, sizeof(data), GEX_EVENT_DEFER, 0));
    } else {
        gex_RMA_PutNBI(aq_test_tm, to, c->data, data, sizeof(data), GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

/* Each writes to the rank after it, watches its own cell by loads and its follower's by gets. */
static void by_flag(int style, uint64_t first)
{
    const gex_Rank_t next = aq_test_peer(1), watched = aq_test_peer(2);
    struct cell *ours = aq_test_base(aq_test_me), *its = aq_test_base(watched), copy;
    uint64_t round, v;

    for (round = first; round < first + ROUNDS; round++) {
        write_round(style, next, round);
        gex_RMA_PutBlockingVal(aq_test_tm, next, &((struct cell *)aq_test_base(next))->flag, round,
                               8, 0);
        AQ_UNTIL(__atomic_load_n(&ours->flag, __ATOMIC_ACQUIRE) == round);
        AQ_CHECK(right(ours->data, round));
        AQ_UNTIL((v = gex_RMA_GetBlockingVal(aq_test_tm, watched, &its->flag, 8, 0)) == round);
        gex_RMA_GetBlocking(aq_test_tm, &copy, watched, its, sizeof(copy), 0);
        AQ_CHECK(right(copy.data, round));
        aq_test_barrier();
    }
}

/* The rank two places before tells a third party by message, after its put is complete. */
static void by_message(int style, uint64_t first)
{
    const gex_Rank_t target = aq_test_peer(1), third = aq_test_peer(2);
    struct cell *remote_addr = aq_test_base(aq_test_peer(aq_test_n - 1)),
                copy; /* where my teller wrote */
    uint64_t round;
    int want = 0;

    atomic_store(&looked, 0);
    aq_test_barrier();
    for (round = first; round < first + ROUNDS / 4; round++) {
        write_round(style, target, round);
        gex_AM_RequestShort1(aq_test_tm, third, H_LOOK, 0, round);
        aq_test_wait(&looked, ++want);
        AQ_CHECK_EQ(atomic_load(&to_look), round);
        gex_RMA_GetBlocking(aq_test_tm, &copy, aq_test_peer(aq_test_n - 1), remote_addr,
                            sizeof(copy), 0);
        AQ_CHECK(right(copy.data, round));
        aq_test_barrier();
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "extended 1: blocking put: data before a later flag, seen by loads and by third-party gets",
        "extended 1: NB put synced: data before a later flag, seen by loads and by third-party "
        "gets",
        "extended 1: NBI put synced: data before a later flag, seen by loads and by third-party "
        "gets",
    };
    int style;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(sizeof(struct cell));
    memset(aq_test_base(aq_test_me), 0, sizeof(struct cell));
    aq_test_barrier();
    for (style = 0; style < 3; style++) {
        rule(names[style]);
        by_flag(style, 1 + (uint64_t)style * ROUNDS);
    }
    rule("extended 19.10: a synced put is seen by a third rank that was told by a message");
    for (style = 0; style < 3; style++)
        by_message(style, 1000 + (uint64_t)style * ROUNDS);
    return aq_test_finish();
}
