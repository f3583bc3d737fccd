/*
 * test_coll_serves.c - a rank serves its peers' messages although it makes only collective calls,
 * and is always the last to arrive or the root, so that each call completes at once. The same holds
 * for a rank that waits only for complete events.
 *
 * Rank 1 makes only such calls; rank 0 sends it a request first. After the calls, and before
 * anything else polls, rank 1 must have run the handler.
 * Ranks 2+. Conduits all. Source GASNet-EX specification 0.19, progress; GASNet specification 1.8.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

#include "gasnet_coll.h"

#include <time.h>

enum { H_PING = AQ_TEST_FREE, H_PONG, ROUNDS = 16, SERVER = 1 };

static aq_test_count_t pings, pongs;
static gex_TM_t job, pair, self; /* everybody; ranks 0 and 1; one rank */
static int expected;             /* pings so far */
static double until;             /* after that rank 1 gives up */

static void h_ping(gex_Token_t token)
{
    atomic_fetch_add(&pings, 1);
    gex_AM_ReplyShort0(token, H_PONG, 0);
}

static void h_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

static gasnet_handlerentry_t table[] = { AQ_G1_ENTRY(H_PING, h_ping), AQ_G1_ENTRY(H_PONG, h_pong) };

/* Sleep, so that the others get on even where there are too few cores; nothing is polled. */
static void pause_us(long us)
{
    const struct timespec length = { 0, us * 1000 };

    nanosleep(&length, NULL);
}

static bool served(void)
{
    return atomic_load(&pings) >= expected;
}

/* Rank 1 decides whether there is another round. */
static int is_last(void)
{
    return aq_test_me == SERVER && (served() || aq_test_clock() > until);
}

/* --- calls that wait for the others; rank 1 comes last --- */

static void barrier_job(void)
{
    gex_Coll_BarrierBlocking(job, 0);
}
static void barrier_nb_job(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(job, 0));
}
/* The last rank finds the event complete, and polls no more. */
static void barrier_tested_job(void)
{
    const gex_Event_t event = gex_Coll_BarrierNB(job, 0);

    while (gex_Event_Test(event) != GASNET_OK)
        gasnet_AMPoll();
}
static void barrier_named_job(void)
{
    gasnet_barrier_notify(3, 0);
    if (aq_test_me == SERVER)
        pause_us(2000); /* the wait finds everybody here */
    AQ_CHECK_EQ(gasnet_barrier_wait(3, 0), GASNET_OK);
}
static void barrier_pair(void)
{
    gex_Coll_BarrierBlocking(pair, 0);
}
static void barrier_nb_pair(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(pair, 0));
}
static void barrier_named_pair(void)
{
    AQ_CHECK_EQ(gasnet_coll_barrier(pair, 4, 0), GASNET_OK);
}
static void gather_all_pair(void)
{
    static int all[2];
    int ours = 5;

    gasnet_coll_gather_all(pair, all, &ours, sizeof(ours),
                           GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC | GASNET_COLL_LOCAL);
}
static void destroy_pair(void)
{
    gex_TM_t team;

    gex_TM_Split(&team, pair, 0, (int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Destroy(team, NULL, 0);
}

/* --- calls that wait for nobody at rank 1: true if it is to be the last --- */

static bool broadcast_pair(void)
{
    int last = is_last();

    gex_Event_Wait(gex_Coll_BroadcastNB(pair, SERVER, &last, &last, sizeof(last), 0));
    return last != 0;
}
static bool reduce_pair(void)
{
    const int ours = is_last();
    int last = ours;

    gex_Event_Wait(gex_Coll_ReduceToOneNB(pair, 0, aq_test_me == 0 ? &last : NULL, &ours,
                                          GEX_DT_I32, sizeof(ours), 1, GEX_OP_MAX, NULL, NULL, 0));
    return last != 0;
}
static bool reduce_all_pair(void)
{
    const int ours = is_last();
    int last = 0;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(pair, &last, &ours, GEX_DT_I32, sizeof(ours), 1,
                                          GEX_OP_MAX, NULL, NULL, 0));
    return last != 0;
}
static bool gather_pair(void)
{
    int last = is_last(), all[2] = { last, last };

    gasnet_coll_gather(pair, 0, all, &last, sizeof(last),
                       GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL);
    return all[SERVER] != 0;
}

/* --- calls of rank 1 alone --- */

static void reduce_self(void)
{
    int ours = 1, all = 0;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(self, &all, &ours, GEX_DT_I32, sizeof(ours), 1,
                                          GEX_OP_ADD, NULL, NULL, 0));
}
static void barrier_self(void)
{
    gex_Coll_BarrierBlocking(self, 0);
}
static void broadcast_nothing(void)
{
    gex_Event_Wait(gex_Coll_BroadcastNB(self, 0, NULL, NULL, 0, 0));
}
static void valget(void)
{
    (void)gasnet_wait_syncnb_valget(gasnet_get_nb_val(SERVER, aq_test_base(SERVER), 8));
}
static void wait_all_invalid(void)
{
    gex_Event_t events[3] = { GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID };

    gex_Event_WaitAll(events, AQ_LENGTH(events), 0);
}
static void wait_some_invalid(void)
{
    gex_Event_t events[2] = { GEX_EVENT_INVALID, GEX_EVENT_INVALID };

    gex_Event_WaitSome(events, AQ_LENGTH(events), 0);
}
static void wait_all_none(void)
{
    gex_Event_WaitAll(NULL, 0, 0);
}
static void wait_nbi_none(void)
{
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static const struct way {
    const char *rule;
    void (*in_job)(void);  /* a call that everybody makes ROUNDS times, */
    void (*in_pair)(void); /* or ranks 0 and 1, */
    bool (*last)(void);    /* or they until it says true, */
    void (*alone)(void);   /* or rank 1 until it was served */
} ways[] = {
    { "extended 14: BarrierBlocking over the job serves, whoever comes last",
      .in_job = barrier_job },
    { "extended 14: BarrierNB over the job serves, whoever comes last", .in_job = barrier_nb_job },
    { "extended 14: BarrierNB over the job serves who only tests its event",
      .in_job = barrier_tested_job },
    { "gasnet-1 17: gasnet_barrier_wait serves, whoever comes last", .in_job = barrier_named_job },
    { "extended 14: BarrierBlocking over a team serves", .in_pair = barrier_pair },
    { "extended 14: BarrierNB over a team serves", .in_pair = barrier_nb_pair },
    { "gasnet-1 20.1: gasnet_coll_barrier serves", .in_pair = barrier_named_pair },
    { "gasnet-1 20.1: gasnet_coll_gather_all serves", .in_pair = gather_all_pair },
    { "extended 13: making and destroying teams serves", .in_pair = destroy_pair },
    { "extended 12: broadcasts serve at the root", .last = broadcast_pair },
    { "extended 12: ReduceToOne serves at who only gives", .last = reduce_pair },
    { "extended 12: ReduceToAll serves at who comes last", .last = reduce_all_pair },
    { "gasnet-1 20.1: gasnet_coll_gather serves at who only gives", .last = gather_pair },
    { "extended 12: ReduceToAll over a team of one serves", .alone = reduce_self },
    { "extended 14: BarrierBlocking over a team of one serves", .alone = barrier_self },
    { "extended 12: broadcasts of nothing serve", .alone = broadcast_nothing },
    { "gasnet-1 16: gasnet_wait_syncnb_valget serves", .alone = valget },
    { "extended 4: WaitAll of invalid entries serves", .alone = wait_all_invalid },
    { "extended 4: WaitSome of invalid entries serves", .alone = wait_some_invalid },
    { "extended 4: WaitAll of no entries serves", .alone = wait_all_none },
    { "extended 5: NBI_Wait with nothing outstanding serves", .alone = wait_nbi_none },
};

static void rounds(void (*call)(void))
{
    for (int i = 0; call != NULL && i < ROUNDS; i++) {
        if (aq_test_me == SERVER)
            pause_us(2000);
        call();
    }
}

static void serve(const struct way *way)
{
    bool last = way->last == NULL;

    until = aq_test_clock() + aq_test_limit() / 4;
    rounds(way->in_job);
    rounds(way->in_pair);
    while (!last) {
        pause_us(200);
        last = way->last();
    }
    while (way->alone != NULL && !served() && aq_test_clock() < until)
        way->alone();
    AQ_CHECK(served()); /* by the calls: nothing else has polled */
}

static void expect(const struct way *way)
{
    pause_us(2000); /* rank 1 has left the barrier before, which would serve us */
    gex_AM_RequestShort0(job, SERVER, H_PING, 0);
    rounds(way->in_job);
    rounds(way->in_pair);
    while (way->last != NULL && !way->last())
        aq_test_yield();
    aq_test_wait(&pongs, expected);
}

int main(int argc, char **argv)
{
    aq_test_start_gasnet1(&argc, &argv, 2, table, AQ_LENGTH(table), GASNET_PAGESIZE);
    job = aq_test_tm;
    gex_TM_Split(&pair, job, aq_test_me > 1, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&self, job, (int)aq_test_me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (size_t i = 0; i < AQ_LENGTH(ways); i++) {
        rule(ways[i].rule);
        expected++;
        aq_test_barrier();
        if (aq_test_me == SERVER)
            serve(&ways[i]);
        else if (aq_test_me == 0)
            expect(&ways[i]);
        else
            rounds(ways[i].in_job);
    }
    aq_test_barrier();
    gex_TM_Destroy(self, NULL, 0);
    gex_TM_Destroy(pair, NULL, 0);
    return aq_test_finish();
}
