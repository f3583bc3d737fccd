/*
 * test_poll_blockuntil.c - polling, GASNET_BLOCKUNTIL in its odder uses, wait modes, thread-info
 * macros. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, polling.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <pthread.h>
#include <time.h>

enum { H_PING = AQ_TEST_FREE, H_PONG, H_TURN, H_OVER, ROUNDS = 30, SLEEPERS = 4, TURNS = 240 };

static aq_test_count_t pings, pongs;

static void h_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_PONG, 0);
    atomic_fetch_add(&pings, 1);
}

static void h_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

static aq_test_count_t turn_of[SLEEPERS], is_over; /* by thread: the latest turn it was given */

/* Takes long enough for the threads that the message has woken to find nothing and fall asleep
 * again. */
static void h_turn(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t turn)
{
    const struct timespec asleep = { 0, 1500000 };

    (void)token;
    nanosleep(&asleep, NULL);
    atomic_store(&turn_of[thread], turn);
}

static void h_over(gex_Token_t token)
{
    (void)token;
    atomic_store(&is_over, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_TURN, h_turn, AQ_SQ, 2),
    AQ_ENTRY(H_OVER, h_over, AQ_SQ, 0),
    AQ_ENTRY(H_PING, h_ping, AQ_SQ, 0),
    AQ_ENTRY(H_PONG, h_pong, AQ_SP, 0),
};

static int looked;

static int looks(int until)
{
    looked++;
    return atomic_load(&pongs) >= until;
}

static void round_trips(int mode)
{
    int i, want = atomic_load(&pongs);

    AQ_CHECK_EQ(gasnet_set_waitmode(mode), GASNET_OK);
    for (i = 0; i < ROUNDS; i++) {
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
        want++;
        GASNET_BLOCKUNTIL(atomic_load(&pongs) >= want);
    }
    aq_test_barrier();
}

static int with_threadinfo(void)
{
    GASNET_BEGIN_FUNCTION();
    int sum = 0, evaluated = 0;

    {
        gasnet_threadinfo_t info = GASNET_GET_THREADINFO();
        {
            GASNET_POST_THREADINFO((evaluated++, info));
            int more = 1;

            sum += more + gasnet_AMPoll();
        }
    }
    AQ_CHECK_EQ(evaluated, 1);
    return sum;
}

#if GASNET_PAR
/* All threads wait in the library; the condition of each is changed by whoever runs the handler. */
static void *waiter(void *arg)
{
    (void)arg;
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    GASNET_BLOCKUNTIL(atomic_load(&pongs) >= ROUNDS * 3 + 2 + 4);
    return NULL;
}

/* Turns go round: each thread of a process in a row, then the next process. */
static gex_Rank_t rank_of_turn(int turn)
{
    return (gex_Rank_t)(turn / SLEEPERS) % aq_test_n;
}

static int thread_of_turn(int turn)
{
    return (turn + turn / SLEEPERS / (int)aq_test_n) % SLEEPERS;
}

static _Atomic double given_at[SLEEPERS]; /* by thread: when, if by a thread of this process */
static double
    waited[TURNS]; /* in this process, from giving a turn to having it; 0: given by another */

static void give_turn(int turn)
{
    const struct timespec asleep = { 0, 300000 }; /* in which all the others fall asleep */

    nanosleep(&asleep, NULL);
    if (rank_of_turn(turn) == aq_test_me)
        atomic_store(&given_at[thread_of_turn(turn)], aq_test_clock());
    gex_AM_RequestShort2(aq_test_tm, rank_of_turn(turn), H_TURN, 0, thread_of_turn(turn), turn);
}

/* Every thread of the process does this, the main one too: only BLOCKUNTIL polls. A thread that
 * passes the turn sleeps again, or runs the handler that passes the turn to another thread, which
 * must be woken. */
static void *sleeper(void *arg)
{
    const int me = (int)(intptr_t)arg, turns = aq_test_quick ? TURNS / 4 : TURNS;
    gex_Rank_t r;
    int turn;

    for (turn = 0; turn < turns; turn++) {
        if (rank_of_turn(turn) != aq_test_me || thread_of_turn(turn) != me)
            continue;
        GASNET_BLOCKUNTIL(atomic_load(&turn_of[me]) >= turn);
        AQ_CHECK_EQ(atomic_load(&turn_of[me]), turn);
        if (turn > 0 && rank_of_turn(turn - 1) == aq_test_me)
            waited[turn] = aq_test_clock() - atomic_load(&given_at[me]);
        if (turn + 1 < turns)
            give_turn(turn + 1);
        else
            for (r = 0; r < aq_test_n; r++)
                gex_AM_RequestShort0(aq_test_tm, r, H_OVER, 0);
    }
    GASNET_BLOCKUNTIL(atomic_load(&is_over) != 0);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* A wake-up that is lost is made good for by a bounded sleep, if at all, of many milliseconds. */
static void check_waits(void)
{
    int i, n = 0;

    for (i = 0; i < TURNS; i++)
        if (waited[i] > 0)
            waited[n++] = waited[i];
    qsort(waited, (size_t)n, sizeof(*waited), by_size);
    if (n > 0 && !aq_test_crowded && waited[n / 2] > 0.025)
        aq_test_fail(__FILE__, __LINE__, "a thread's wake-up takes %.1f ms (median of %d)",
                     waited[n / 2] * 1e3, n);
}

static void all_asleep(void)
{
    pthread_t ids[SLEEPERS];
    int i;

    AQ_CHECK_EQ(gasnet_set_waitmode(GASNET_WAIT_BLOCK), GASNET_OK);
    for (i = 0; i < SLEEPERS; i++)
        atomic_store(&turn_of[i], -1);
    aq_test_barrier();
    for (i = 1; i < SLEEPERS; i++)
        if (pthread_create(&ids[i], NULL, sleeper, (void *)(intptr_t)i) != 0)
            aq_test_die(__FILE__, __LINE__, "cannot start thread %d", i);
    if (aq_test_me == 0)
        give_turn(0);
    sleeper((void *)0);
    for (i = 1; i < SLEEPERS; i++)
        pthread_join(ids[i], NULL);
    check_waits();
    aq_test_barrier();
    AQ_CHECK_EQ(gasnet_set_waitmode(GASNET_WAIT_SPIN), GASNET_OK);
}
#endif

int main(int argc, char **argv)
{
    int want, i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 24: gasnet_AMPoll returns OK");
    for (i = 0; i < 10; i++)
        AQ_CHECK_EQ(gasnet_AMPoll(), GASNET_OK);
    rule("core 24: BLOCKUNTIL with a true condition looks once; side effects, comma expressions");
    looked = 0;
    GASNET_BLOCKUNTIL(looks(0));
    AQ_CHECK_EQ(looked, 1);
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    GASNET_BLOCKUNTIL(looks(1));
    gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, 0);
    i = 0;
    GASNET_BLOCKUNTIL((i++, looks(2)));
    AQ_CHECK(i >= 1);
    if (looked < 0)
        GASNET_BLOCKUNTIL(0);
    else
        AQ_CHECK(looked >= 3);
    aq_test_barrier();
    rule("core 24: round trips in every wait mode");
    round_trips(GASNET_WAIT_BLOCK);
    round_trips(GASNET_WAIT_SPINBLOCK);
    round_trips(GASNET_WAIT_SPIN);
    rule("core 24: unknown wait modes are BAD_ARG");
    gex_System_SetVerboseErrors(0);
    AQ_CHECK_EQ(gasnet_set_waitmode(99), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gasnet_set_waitmode(-1), GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    rule("core 24: thread-info macros compile in nested blocks and do no harm");
    AQ_CHECK_EQ(with_threadinfo(), 1);
#if GASNET_PAR
    rule("core 24: several threads in BLOCKUNTIL are all released");
    aq_test_threads(4, waiter);
    rule("core 24: all threads asleep in BLOCKUNTIL: whose condition another's poll makes true "
         "wakes");
    all_asleep();
#endif
    want = atomic_load(&pongs);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&pongs), want);
    return aq_test_finish();
}
