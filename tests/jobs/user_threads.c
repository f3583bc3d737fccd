/*
 * user_threads.c - no table of threads: hundreds alive at once in the library, and thousands one
 * after the other without anything growing.
 * Ranks 1+. Mode par. Source what users suffer from. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_tools.h"

#if GASNET_PAR
#include <pthread.h>

enum {
    ALIVE = 320,
    ROUNDS = 20,
    CHURN = 5000,
    WAVE = 50,
    WARM_WAVES = 20,
    GROWTH_KB = 1024, /* of what is resident, over CHURN threads */
    H_ASK = AQ_TEST_FREE,
    H_ANSWER,
};

_Static_assert(ALIVE > GASNETT_MAX_THREADS, "more threads than clients size their tables by");

static aq_test_count_t answers[ALIVE], inside;
static atomic_int errors;

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

static uint64_t *slot_of(gex_Rank_t rank, int who)
{
    return (uint64_t *)aq_test_base(rank) + (size_t)aq_test_me * ALIVE + who;
}

/* A message there and back, and a put that a get sees. */
static void use_library(int who, int round)
{
    const gex_Rank_t to = aq_test_peer((gex_Rank_t)(who + round));
    const uint64_t value = (uint64_t)who << 32 | (uint64_t)round;
    const int want = atomic_load(&answers[who]) + 1;
    gex_Event_t event;

    event = gex_RMA_PutNB(aq_test_tm, to, slot_of(to, who), (void *)(uintptr_t)&value, 8,
                          GEX_EVENT_NOW, 0);
    gex_AM_RequestShort1(aq_test_tm, to, H_ASK, 0, who);
    gex_Event_Wait(event);
    if (gex_RMA_GetBlockingVal(aq_test_tm, to, slot_of(to, who), 8, 0) != value)
        atomic_fetch_add(&errors, 1);
    GASNET_BLOCKUNTIL(atomic_load(&answers[who]) >= want);
}

static void *stay(void *arg)
{
    gasnet_AMPoll();
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&inside) < ALIVE) /* all of them are known to the library now */
        aq_test_yield();
    for (int round = 0; round < ROUNDS; round++)
        use_library((int)(intptr_t)arg, round);
    return NULL;
}

static void *come_and_go(void *arg)
{
    use_library((int)(intptr_t)arg, 0);
    return NULL;
}

static long resident_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "RssAnon: %ld", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return kb;
}

static void churn(int waves)
{
    for (int wave = 0; wave < waves; wave++)
        aq_test_threads(WAVE, come_and_go);
}

int main(int argc, char **argv)
{
    long before, after;

    aq_test_start(&argc, &argv, 1);
    aq_test_crowded = true; /* by threads */
    if (gex_System_QueryMaxThreads() <= ALIVE)
        aq_test_skip("GASNET_MAX_THREADS is smaller than this test");
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)aq_test_n * ALIVE * 8);
    rule("threads: 320 threads alive at once send messages and put");
    aq_test_threads(ALIVE, stay);
    AQ_CHECK_EQ(atomic_load(&errors), 0);
    rule("threads: 5000 threads come and go, and none leaves memory behind");
    churn(WARM_WAVES);
    aq_test_barrier();
    before = resident_kb();
    churn(CHURN / WAVE);
    after = resident_kb();
    AQ_CHECK_EQ(atomic_load(&errors), 0);
    if (aq_test_me == 0)
        printf("# private memory before %ld kB, after %d threads more %ld kB\n", before, CHURN,
               after);
    AQ_CHECK(after - before < GROWTH_KB);
    aq_test_barrier();
    return aq_test_finish();
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
