/*
 * test_nbi_crossing.c - many large transfers in both directions at once, puts and gets, with and
 * without GEX_FLAG_IMMEDIATE: ranks that all start transfers before any of them serves still
 * finish, with the right bytes. Ranks 2+. Conduits all. Source GASNet-EX specification 0.19,
 * implicit operations; GEX_FLAG_IMMEDIATE. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { LEN = 128 * 1024, PLACES = 4, OPS = 200 };

static char *ours, *got;

static char *place(gex_Rank_t to, int part, int i)
{
    return (char *)aq_test_base(to) + (size_t)(part * PLACES + i % PLACES) * LEN;
}

/* Puts of equal bytes to each place, so that their order does not matter. */
static int puts_to(gex_Rank_t to, gex_Flags_t flags)
{
    int started = 0;

    for (int i = 0; i < OPS; i++)
        started += gex_RMA_PutNBI(aq_test_tm, to, place(to, 1, i),
                                  ours + (size_t)(i % PLACES) * LEN, LEN, GEX_EVENT_DEFER, flags)
                   == 0;
    return started;
}

/* started[i]: so many to place i */
static int gets_from(gex_Rank_t from, gex_Flags_t flags, int started[PLACES])
{
    int all = 0;

    for (int i = 0; i < OPS; i++) {
        const bool has = gex_RMA_GetNBI(aq_test_tm, got + (size_t)(i % PLACES) * LEN, from,
                                        place(from, 0, i), LEN, flags)
                         == 0;

        started[i % PLACES] += has;
        all += has;
    }
    return all;
}

static void round_with(gex_Flags_t flags)
{
    const gex_Rank_t next = (aq_test_me + 1) % aq_test_n,
                     last = (aq_test_me + aq_test_n - 1) % aq_test_n;
    const int immediate = (flags & GEX_FLAG_IMMEDIATE) != 0;
    int puts, gets, started[PLACES] = { 0 };

    memset(got, 0, (size_t)PLACES * LEN);
    memset(place(aq_test_me, 1, 0), 0, (size_t)PLACES * LEN);
    aq_test_barrier();
    puts = puts_to(next, flags);
    gets = gets_from(next, flags, started);
    AQ_CHECK(immediate || (puts == OPS && gets == OPS));
    gex_NBI_Wait(GEX_EC_ALL, 0);
    aq_test_barrier();
    for (int i = 0; i < PLACES; i++) {
        AQ_CHECK(started[i] == 0
                 || aq_test_same(got + (size_t)i * LEN, LEN, 1000 * next + (uint64_t)i));
        AQ_CHECK(immediate
                 || aq_test_same(place(aq_test_me, 1, i), LEN, 1000 * last + (uint64_t)i));
    }
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 2);
    ours = malloc((size_t)PLACES * LEN);
    got = malloc((size_t)PLACES * LEN);
    aq_test_segment(2 * PLACES * LEN);
    for (int i = 0; i < PLACES; i++) {
        aq_test_fill(ours + (size_t)i * LEN, LEN, 1000 * aq_test_me + (uint64_t)i);
        aq_test_fill(place(aq_test_me, 0, i), LEN, 1000 * aq_test_me + (uint64_t)i);
    }
    rule("extended 6.4: large implicit transfers cross each other");
    round_with(0);
    rule("extended 6.4: the same with GEX_FLAG_IMMEDIATE, as far as they start");
    round_with(GEX_FLAG_IMMEDIATE);
    free(ours);
    free(got);
    return aq_test_finish();
}
