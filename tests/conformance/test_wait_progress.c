/*
 * test_wait_progress.c - threads that wait call the function of aqueduct_progress(), in each wait
 * mode, for a barrier and for a condition of the client's, while messages arrive and while none
 * does, and not much more often than every 5 ms. The service thread does not call it, and nobody
 * does once it is taken back.
 * Ranks 2+. Conduits all. Source docs/aqueduct-h.md.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "aqueduct.h"
#include "gasnet_coll.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { H_GO = AQ_TEST_FREE, H_DONE, H_NOISE };

#define AWAY_MS     300 /* a wait as long as this */
#define FEWEST      3   /* calls in it, on a machine whose cores are busy */
#define TRIES       4
#define WITNESS_MS  5
#define FEWEST_RUNS (3 * FEWEST) /* of the witness in a wait, unless the machine has stopped it */
#define APART       0.005        /* seconds between two calls of a thread, at least */

static aq_test_count_t goes, dones, calls, wrong, witnessed;
static pthread_t client;

static void on_go(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_DONE, 0);
    atomic_fetch_add(&goes, 1);
}

static void on_done(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&dones, 1);
}

static void on_noise(gex_Token_t token)
{
    (void)token;
}

static void move(void *arg)
{
    if (arg != &calls || !pthread_equal(pthread_self(), client))
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&calls, 1);
}

static bool is_last(void)
{
    return aq_test_me == aq_test_n - 1;
}

/* The last rank comes later than the others. */
static void stay_away(void)
{
    const struct timespec away = { 0, AWAY_MS * 1000000 };

    if (is_last())
        nanosleep(&away, NULL);
}

static void in_barrier(void)
{
    stay_away();
    gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
}

static void for_message(void)
{
    static int times;

    stay_away();
    times++;
    if (is_last()) {
        for (gex_Rank_t r = 0; r + 1 < aq_test_n; r++)
            gex_AM_RequestShort0(aq_test_tm, r, H_GO, 0);
        aq_test_wait(&dones, times * ((int)aq_test_n - 1));
    } else {
        GASNET_BLOCKUNTIL(atomic_load(&goes) >= times);
    }
}

/* The last rank sends while it is away: the others always have something to serve. */
static void amid_messages(void)
{
    const double began = aq_test_clock();

    while (is_last() && aq_test_clock() - began < AWAY_MS / 1000.0)
        for (gex_Rank_t r = 0; r + 1 < aq_test_n; r++)
            gex_AM_RequestShort0(aq_test_tm, r, H_NOISE, 0);
    gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
}

/* A machine may stop a process for longer than a wait takes. A thread that only counts tells. */
static void *witness(void *arg)
{
    const struct timespec pause = { 0, WITNESS_MS * 1000000 };

    (void)arg;
    for (;;) {
        nanosleep(&pause, NULL);
        atomic_fetch_add(&witnessed, 1);
    }
    return NULL;
}

static bool any_rank(bool holds)
{
    const int32_t local = holds;
    int32_t highest = 0;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, &highest, &local, GEX_DT_I32, sizeof(local),
                                          1, GEX_OP_MAX, NULL, NULL, 0));
    return highest != 0;
}

/* A rank that waits calls the function; the last one does not wait for long. Returns whether the
 * machine stopped a rank that waited. */
static bool was_stopped_in(void (*await)(void))
{
    const int before = (int)atomic_load(&calls), ran_before = (int)atomic_load(&witnessed);
    const double began = aq_test_clock();
    bool too_few, stopped;
    int seen;

    await();
    seen = (int)atomic_load(&calls) - before;
    too_few = !is_last() && seen < FEWEST;
    stopped = too_few && (int)atomic_load(&witnessed) - ran_before < FEWEST_RUNS;
    AQ_CHECK(!too_few || stopped);
    AQ_CHECK(seen <= (aq_test_clock() - began) / APART + 2);
    return any_rank(stopped);
}

static void check(const char *name, int mode, void (*await)(void))
{
    bool stopped = true;

    rule(name);
    gasnet_set_waitmode(mode);
    for (int i = 0; i < TRIES && stopped; i++)
        stopped = was_stopped_in(await);
    AQ_CHECK(!stopped);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        AQ_ENTRY(H_GO, on_go, AQ_SQ, 0),
        AQ_ENTRY(H_DONE, on_done, AQ_SP, 0),
        AQ_ENTRY(H_NOISE, on_noise, AQ_SQ, 0),
    };
    const char *ranks = getenv("AQ_TEST_RANKS");
    pthread_t other;
    int before;

#if GASNET_PAR
    if (ranks != NULL && atoi(ranks) % 2 != 0)
        setenv("GASNET_PROGRESS_THREAD", "1", 1);
#else
    (void)ranks;
#endif
    aq_test_start(&argc, &argv, 2);
    aq_test_handlers(table, AQ_LENGTH(table));
    client = pthread_self();
    AQ_CHECK_EQ(pthread_create(&other, NULL, witness, NULL), 0);
    pthread_detach(other);
    aqueduct_progress(move, &calls);
    check("called in a barrier: spin, then sleep", GASNET_WAIT_SPINBLOCK, in_barrier);
    check("called in a wait for a message: the same", GASNET_WAIT_SPINBLOCK, for_message);
    check("called while messages arrive: the same", GASNET_WAIT_SPINBLOCK, amid_messages);
    check("called in a barrier: sleep", GASNET_WAIT_BLOCK, in_barrier);
    check("called in a wait for a message: sleep", GASNET_WAIT_BLOCK, for_message);
    check("called while messages arrive: sleep", GASNET_WAIT_BLOCK, amid_messages);
    check("called in a barrier: spin", GASNET_WAIT_SPIN, in_barrier);
    check("called in a wait for a message: spin", GASNET_WAIT_SPIN, for_message);
    check("called while messages arrive: spin", GASNET_WAIT_SPIN, amid_messages);
    rule("only the client's thread calls it, with its argument");
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
    rule("nobody calls it after it was taken back");
    aq_test_barrier();
    aqueduct_progress(NULL, NULL);
    before = atomic_load(&calls);
    in_barrier();
    AQ_CHECK_EQ(atomic_load(&calls), before);
    return aq_test_finish();
}
