/*
 * test_progress_thread.c - with GASNET_PROGRESS_THREAD=1 (or GASNET_RCV_THREAD, GASNET_SND_THREAD:
 * which of them depends on the number of ranks: 7, 3 or 2, 4) a rank that computes serves messages
 * all the same, and gex_System_QueryHiddenAMConcurrencyLevel() says so; without it the level is 0.
 * With 3 and 4 ranks the program defers the thread and starts it.
 * Ranks 2+, par. Conduits all. Source GASNet-EX specification 0.19, progress threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_PING = AQ_TEST_FREE, H_PONG };

/* seconds that rank 0 would stay away; it comes back when all have been answered. A service thread
 * gets a core of a busy machine only now and then */
#define COMPUTE 10.0
#define TRIPS   100

static aq_test_count_t pings, pongs;

static void on_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_PONG, 0);
    atomic_fetch_add(&pings, 1);
}

static void on_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

#if GASNET_PAR
/* One thread serves both directions, and is started once. */
static void start_deferred(void)
{
    const gex_ProgressThreadInfo_t *info = NULL;
    unsigned int count = 0;
    pthread_t id;

    rule("core 25: the thread is listed once, with both roles, and serves where the program starts "
         "it");
    AQ_CHECK_EQ(gex_System_QueryProgressThreads(aq_test_client, &count, &info, 0), GASNET_OK);
    AQ_CHECK_EQ(count, 1);
    AQ_CHECK_EQ(info[0].gex_thread_roles, GEX_THREAD_ROLE_RCV | GEX_THREAD_ROLE_SND);
    AQ_CHECK_EQ(pthread_create(&id, NULL, info[0].gex_progress_fn, info[0].gex_progress_arg), 0);
}
#endif

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        { H_PING, (gex_AM_Fn_t)on_ping, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "ping" },
        { H_PONG, (gex_AM_Fn_t)on_pong, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "pong" },
    };
    static const char *const names[] = { "GASNET_PROGRESS_THREAD", "GASNET_RCV_THREAD",
                                         "GASNET_SND_THREAD" };
    const char *text = getenv("AQ_TEST_RANKS");
    const int ranks = text != NULL ? atoi(text) : 0;
    const gex_Flags_t flags = ranks == 3 || ranks == 4 ? GEX_FLAG_DEFER_THREADS : 0;
    double began, took = 0;
    volatile double sum = 0;

    setenv(names[ranks / 2 % 3], "1", 1);
    aq_test_start_flags(&argc, &argv, 2, flags);
#if !GASNET_PAR
    AQ_CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), 0);
    aq_test_skip("a sequential program has no service thread");
#endif
    rule("the level of hidden concurrency is 1");
    AQ_CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), 1);
    AQ_CHECK(GASNET_HIDDEN_AM_CONCURRENCY_LEVEL != 0);
    aq_test_handlers(table, AQ_LENGTH(table));
#if GASNET_PAR
    if (flags & GEX_FLAG_DEFER_THREADS)
        start_deferred();
#endif
    rule("requests to a rank that computes are answered");
    began = aq_test_clock();
    if (aq_test_me == 0) {
        while (atomic_load(&pings) < TRIPS && aq_test_clock() - began < COMPUTE)
            sum = sum + 1;
    } else if (aq_test_me == 1) {
        for (int i = 0; i < TRIPS; i++) {
            gex_AM_RequestShort0(aq_test_tm, 0, H_PING, 0);
            aq_test_wait(&pongs, i + 1);
        }
        took = aq_test_clock() - began;
        /* well below the time that rank 0 stays away */
        AQ_CHECK(took < COMPUTE * 0.8);
    }
    aq_test_barrier();
    return aq_test_finish();
}
