/*
 * test_progress_thread.c - with GASNET_PROGRESS_THREAD=1 (or GASNET_RCV_THREAD, GASNET_SND_THREAD:
 * which of them depends on the number of ranks: 7, 3 or 2, 4) a rank that computes serves messages
 * all the same, and gex_System_QueryHiddenAMConcurrencyLevel() says so; without it the level is 0.
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

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        { H_PING, (gex_AM_Fn_t)on_ping, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, "ping" },
        { H_PONG, (gex_AM_Fn_t)on_pong, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "pong" },
    };
    static const char *const names[] = { "GASNET_PROGRESS_THREAD", "GASNET_RCV_THREAD",
                                         "GASNET_SND_THREAD" };
    const char *ranks = getenv("AQ_TEST_RANKS");
    double began, took = 0;
    volatile double sum = 0;

    setenv(names[ranks != NULL ? atoi(ranks) / 2 % 3 : 0], "1", 1);
    aq_test_start(&argc, &argv, 2);
#if !GASNET_PAR
    AQ_CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), 0);
    aq_test_skip("a sequential program has no service thread");
#endif
    rule("the level of hidden concurrency is 1");
    AQ_CHECK_EQ(gex_System_QueryHiddenAMConcurrencyLevel(), 1);
    AQ_CHECK(GASNET_HIDDEN_AM_CONCURRENCY_LEVEL != 0);
    aq_test_handlers(table, AQ_LENGTH(table));
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
