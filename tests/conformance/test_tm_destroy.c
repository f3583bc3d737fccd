/*
 * test_tm_destroy.c - gex_TM_Destroy: transfers and messages started through a team complete after
 * its end; thousands of teams come and go without the process growing.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_teams.h"

#include <malloc.h>

enum { H_COUNT = AQ_TEAMS_FREE };

#define IN_FLIGHT 64
#define FRAGMENT  4096

static aq_test_count_t counted;

static void h_count(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    atomic_fetch_add(&counted, 1);
}

/* All ranks, those of my parity first. */
static gex_TM_t make_team(int round)
{
    gex_TM_t tm = GEX_TM_INVALID;

    gex_TM_Split(&tm, aq_test_tm, round % 3 ? (int)(aq_test_me % 2) : 0,
                 round % 2 ? -(int)aq_test_me : 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    AQ_CHECK(tm != GEX_TM_INVALID);
    return tm;
}

/* This rank's part of every rank's segment: IN_FLIGHT chunks. */
static char *part(gex_Rank_t owner)
{
    return (char *)aq_test_base(owner) + (size_t)aq_test_me * IN_FLIGHT * FRAGMENT;
}

static void check_in_flight(gex_Flags_t flags)
{
    static char source[IN_FLIGHT][FRAGMENT], back[FRAGMENT];
    static gex_Event_t events[IN_FLIGHT], leaves[IN_FLIGHT];
    gex_TM_t tm = make_team(1), other;
    const gex_Rank_t size = gex_TM_QuerySize(tm), peer = (gex_TM_QueryRank(tm) + 1) % size;
    const gex_Rank_t jobrank = gex_TM_TranslateRankToJobrank(tm, peer);
    static int calls;
    int i;

    for (i = 0; i < IN_FLIGHT; i++) {
        aq_test_fill(source[i], FRAGMENT, (uint64_t)i + aq_test_me);
        events[i] = gex_RMA_PutNB(tm, peer, part(jobrank) + FRAGMENT * i, source[i], FRAGMENT,
                                  &leaves[i], 0);
        gex_RMA_PutNBI(tm, peer, part(jobrank) + FRAGMENT * i, source[i], FRAGMENT, GEX_EVENT_DEFER,
                       0);
        gex_AM_RequestMedium0(tm, peer, H_COUNT, source[i], 64, GEX_EVENT_GROUP, 0);
    }
    if (flags != 0)
        aq_test_barrier(); /* everybody has made its calls */
    gex_TM_Destroy(tm, NULL, flags);
    other = make_team(2); /* perhaps in the same memory */
    for (i = 0; i < IN_FLIGHT; i++) {
        gex_Event_Wait(leaves[i]);
        gex_Event_Wait(events[i]);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    for (i = 0; i < IN_FLIGHT; i++) {
        gex_RMA_GetBlocking(aq_test_tm, back, jobrank, part(jobrank) + FRAGMENT * i, FRAGMENT, 0);
        AQ_CHECK(memcmp(back, source[i], FRAGMENT) == 0);
    }
    aq_test_wait(&counted, IN_FLIGHT * ++calls);
    if (flags != 0)
        aq_test_barrier();
    gex_TM_Destroy(other, NULL, flags);
}

static size_t heap_in_use(void)
{
    return mallinfo2().uordblks + mallinfo2().hblkhd;
}

static int by_size(const void *one, const void *other)
{
    const long a = *(const long *)one, b = *(const long *)other;

    return (a > b) - (a < b);
}

/* One team is made, carries transfers and is destroyed; `kept` outlives 15 others. */
static void play_round(int i, const char *source, gex_TM_t *deferred, gex_Event_t *open)
{
    const gex_Rank_t peer = aq_test_peer(1);
    gex_TM_t tm = make_team(i);

    gex_Event_Wait(*open);
    *open =
        gex_RMA_PutNB(aq_test_tm, peer, part(peer), (char *)source, FRAGMENT, GEX_EVENT_DEFER, 0);
    gex_RMA_PutNBI(tm, 0, part(gex_TM_TranslateRankToJobrank(tm, 0)), (char *)source, 64,
                   GEX_EVENT_DEFER, 0);
    AQ_CHECK(gex_TM_QueryCData(tm) == NULL);
    gex_TM_SetCData(tm, source);
    if (i % 16 == 0) {
        if (*deferred != GEX_TM_INVALID)
            gex_TM_Destroy(*deferred, NULL, 0);
        *deferred = tm;
    } else if (i % 16 == 8) {
        aq_test_barrier();
        gex_TM_Destroy(tm, NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    } else {
        gex_TM_Destroy(tm, NULL, 0);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* A few puts stay open across each round. What leaks grows in every stretch of rounds; the pool of
 * a library
   below the conduit grows once, in whichever stretch first needs it: so the median stretch
       is judged. */
static void check_rounds(void)
{
    enum { STRETCHES = 8 };
    const int each = aq_test_quick ? 48 : 512;
    static char source[FRAGMENT];
    gex_TM_t deferred = GEX_TM_INVALID;
    gex_Event_t open = GEX_EVENT_INVALID;
    long growth[STRETCHES - 1];
    size_t before = 0, now;
    int i, stretch;

    for (stretch = 0; stretch < STRETCHES; stretch++) {
        for (i = 0; i < each; i++)
            play_round(stretch * each + i, source, &deferred, &open);
        now = heap_in_use();
        if (stretch > 0)
            growth[stretch - 1] = (long)now - (long)before;
        before = now;
    }
    gex_Event_Wait(open);
    gex_TM_Destroy(deferred, NULL, 0);
    aq_test_barrier();
    qsort(growth, STRETCHES - 1, sizeof growth[0], by_size);
    AQ_CHECK(growth[(STRETCHES - 1) / 2] <= 16 * each);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t entry = AQ_ENTRY(H_COUNT, h_count, AQ_MQ, 0);

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(&entry, 1);
    aq_test_handlers(aq_teams_table, AQ_LENGTH(aq_teams_table));
    aq_test_segment((size_t)aq_test_n * IN_FLIGHT * FRAGMENT);
    rule("core 15.4: puts and messages in flight complete after the team they were started through "
         "is gone");
    check_in_flight(0);
    aq_test_barrier();
    rule("core 15.4: the same with GLOBALLY_QUIESCED");
    check_in_flight(GEX_FLAG_GLOBALLY_QUIESCED);
    aq_test_barrier();
    rule("core 15.4: thousands of rounds, with puts open across them: no growth");
    check_rounds();
    return aq_test_finish();
}
