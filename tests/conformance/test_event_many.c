/*
 * test_event_many.c - 65536 outstanding explicit operations, and as many implicit ones,
 * synchronised in orders that have nothing to do with that of initiation.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, events.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { HIGHEST = 65536 };

static gex_Event_t evs[HIGHEST];
static uint64_t back[HIGHEST];

static uint64_t word(gex_Rank_t writer, int i)
{
    return ((uint64_t)writer << 32 | (uint32_t)i) * 0x9e3779b97f4a7c15u;
}

static void check_words(int n, gex_Rank_t writer)
{
    int i, wrong = 0;

    for (i = 0; i < n; i++)
        wrong += back[i] != word(writer, i);
    AQ_CHECK_EQ(wrong, 0);
}

int main(int argc, char **argv)
{
    static uint64_t words[HIGHEST];
    uint64_t *remote_addr;
    gex_Rank_t to;
    int i, n;

    aq_test_start(&argc, &argv, 1);
    /* All of them on rank 0; fewer elsewhere, so that the program stays short. */
    n = aq_test_me == 0 && !aq_test_quick ? HIGHEST : 4096;
    aq_test_segment(sizeof(words));
    to = aq_test_peer(1);
    remote_addr = aq_test_base(to);
    for (i = 0; i < n; i++)
        words[i] = word(aq_test_me, i);
    rule("extended 4.2: 65536 outstanding puts, synchronised one by one backwards");
    for (i = 0; i < n; i++)
        evs[i] = gex_RMA_PutNB(aq_test_tm, to, &remote_addr[i], &words[i], 8, GEX_EVENT_DEFER, 0);
    for (i = n - 1; i >= 0; i--)
        gex_Event_Wait(evs[i]);
    rule("extended 4.2: 65536 outstanding gets, synchronised by WaitSome and WaitAll");
    for (i = 0; i < n; i++)
        evs[i] = gex_RMA_GetNB(aq_test_tm, &back[i], to, &remote_addr[i], 8, 0);
    gex_Event_WaitSome(evs, (size_t)n, 0);
    gex_Event_WaitAll(evs + n / 2, (size_t)(n - n / 2), 0);
    gex_Event_WaitAll(evs, (size_t)n, 0);
    AQ_CHECK(aq_test_all(evs, 0, (size_t)n * sizeof(evs[0])));
    check_words(n, aq_test_me);
    aq_test_barrier();
    rule("extended 5: 65536 outstanding implicit puts and gets");
    for (i = 0; i < n; i++)
        words[i] = word(aq_test_me + 1000, i);
    for (i = 0; i < n; i++)
        gex_RMA_PutNBI(aq_test_tm, to, &remote_addr[i], &words[i], 8, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    for (i = 0; i < n; i++)
        gex_RMA_GetNBI(aq_test_tm, &back[i], to, &remote_addr[i], 8, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    check_words(n, aq_test_me + 1000);
    return aq_test_finish();
}
