/*
 * test_wait_progress.c - threads that wait call the function of aqueduct_progress(), in each wait
 * mode, for a barrier and for a condition of the client's; handlers do not, and nobody does once it
 * is taken back.
 * Ranks 2+. Conduits all. Source docs/aqueduct-h.md.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "aqueduct.h"

#include <pthread.h>
#include <time.h>

enum { H_GO = AQ_TEST_FREE, H_DONE };

#define AWAY_MS 300 /* a wait as long as this */
#define FEWEST  3   /* calls in it, on a machine whose cores are busy */

static aq_test_count_t goes, dones, calls, wrong;
static _Thread_local int handling;
static pthread_t client;

static void on_go(gex_Token_t token)
{
    handling++;
    gex_AM_ReplyShort0(token, H_DONE, 0);
    handling--;
    atomic_fetch_add(&goes, 1);
}

static void on_done(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&dones, 1);
}

static void move(void *arg)
{
    if (arg != &calls || handling != 0 || !pthread_equal(pthread_self(), client))
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

/* Ranks wait for the last one: in a barrier, or for its message. */
static void await(bool by_message)
{
    static int times;

    stay_away();
    if (!by_message) {
        gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
        return;
    }
    times++;
    if (is_last()) {
        for (gex_Rank_t r = 0; r + 1 < aq_test_n; r++)
            gex_AM_RequestShort0(aq_test_tm, r, H_GO, 0);
        aq_test_wait(&dones, times * ((int)aq_test_n - 1));
    } else {
        GASNET_BLOCKUNTIL(atomic_load(&goes) >= times);
    }
}

/* A rank that waits calls the function; of the last one nothing is known. */
static void check_mode(const char *in_barrier, const char *by_message, int mode)
{
    const char *const names[] = { in_barrier, by_message };

    gasnet_set_waitmode(mode);
    for (int i = 0; i < 2; i++) {
        const int before = (int)atomic_load(&calls);

        rule(names[i]);
        await(i == 1);
        AQ_CHECK(is_last() || (int)atomic_load(&calls) - before >= FEWEST);
        aq_test_barrier();
    }
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        AQ_ENTRY(H_GO, on_go, AQ_SQ, 0),
        AQ_ENTRY(H_DONE, on_done, AQ_SP, 0),
    };
    int before;

    aq_test_start(&argc, &argv, 2);
    aq_test_handlers(table, AQ_LENGTH(table));
    client = pthread_self();
    aqueduct_progress(move, &calls);
    check_mode("called in a barrier: spin, then sleep", "called in a wait for a message: the same",
               GASNET_WAIT_SPINBLOCK);
    check_mode("called in a barrier: sleep", "called in a wait for a message: sleep",
               GASNET_WAIT_BLOCK);
    check_mode("called in a barrier: spin", "called in a wait for a message: spin",
               GASNET_WAIT_SPIN);
    rule("only the thread that waits calls it, outside of handlers, with its argument");
    AQ_CHECK_EQ(atomic_load(&wrong), 0);
    rule("nobody calls it after it was taken back");
    aq_test_barrier();
    aqueduct_progress(NULL, NULL);
    before = atomic_load(&calls);
    await(false);
    AQ_CHECK_EQ(atomic_load(&calls), before);
    return aq_test_finish();
}
