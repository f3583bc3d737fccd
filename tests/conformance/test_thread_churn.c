/*
 * test_thread_churn.c - 300 threads alive at once in the library, or 40 if there are more than 4
 * ranks or the machine is slow, then as many coming and going in waves; some leave operations
 * behind that others synchronise.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
enum { CROWD = 300, WAVES = 10, WAVE = 30, H_ASK = AQ_TEST_FREE, H_ANSWER };

static aq_test_count_t answers[CROWD];
static pthread_barrier_t all_inside;
static gex_Event_t left_behind[CROWD];
static uint64_t values[CROWD];

static void h_ask(gex_Token_t token, gex_AM_Arg_t who)
{
    gex_AM_ReplyShort1(token, H_ANSWER, 0, who);
}

static void h_answer(gex_Token_t token, gex_AM_Arg_t who)
{
    (void)token;
    atomic_fetch_add(&answers[who], 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK, h_ask, AQ_SQ, 1),
    AQ_ENTRY(H_ANSWER, h_answer, AQ_SP, 1),
};

/* A bit of everything, then the thread is gone; its NB put is for the main thread to finish. */
static void use_library(int who)
{
    const gex_Rank_t to = aq_test_peer((gex_Rank_t)who % 3);
    uint64_t *slot = (uint64_t *)aq_test_base(to) + (size_t)aq_test_me * CROWD + who;
    const int want = atomic_load(&answers[who]) + 1;

    values[who] = (uint64_t)who * 7 + aq_test_me;
    gex_RMA_PutNBI(aq_test_tm, to, slot, &values[who], 8, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, slot, 8, 0), values[who]);
    gex_AM_RequestShort1(aq_test_tm, to, H_ASK, 0, who);
    aq_test_wait(&answers[who], want);
    values[who]++;
    left_behind[who] = gex_RMA_PutNB(aq_test_tm, to, slot, &values[who], 8, GEX_EVENT_DEFER, 0);
}

static void *crowd(void *arg)
{
    gasnet_AMPoll();
    /* all of them know the library now; asleep, since spinners take the core from the thread that
     * starts the others */
    pthread_barrier_wait(&all_inside);
    use_library((int)(intptr_t)arg);
    return NULL;
}

static void finish(int n)
{
    int i;

    gex_Event_WaitAll(left_behind, (size_t)n, 0);
    for (i = 0; i < n; i++) {
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)i % 3);
        uint64_t *slot = (uint64_t *)aq_test_base(to) + (size_t)aq_test_me * CROWD + i;

        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(aq_test_tm, to, slot, 8, 0), values[i]);
    }
}

/* n threads come, are in the library at once, and go. */
static void together(int n)
{
    AQ_CHECK_EQ(pthread_barrier_init(&all_inside, NULL, (unsigned)n), 0);
    aq_test_threads(n, crowd);
    pthread_barrier_destroy(&all_inside);
    finish(n);
}

int main(int argc, char **argv)
{
    int wave, n, space;

    aq_test_start(&argc, &argv, 1);
    aq_test_crowded = true; /* by threads */
    space = gex_System_QueryMaxThreads() > CROWD ? CROWD : (int)gex_System_QueryMaxThreads() - 1;
    /* each thread of all ranks waits its turn on the core with each poll */
    n = aq_test_n > 4 || aq_test_quick || aq_test_slow ? 40 : space;
    n = n > space ? space : n;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)aq_test_n * CROWD * 8);
    rule("core 7: many threads alive at once may all use the library");
    together(n);
    rule("core 7: exited threads do not count; their events can be synced by others");
    for (wave = 0; wave < WAVES; wave++)
        together(n < WAVE ? n : WAVE);
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
