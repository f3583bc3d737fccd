/*
 * test_am_tail.c - a conduit may keep the last messages of a run to send more with them, but not
 * for longer than to the next call that polls or sends, whoever that is to.
 * Ranks 2+. Conduits all. Source docs/design/udp.md, Coalescing.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_tools.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { H_RUN = AQ_TEST_FREE, H_OTHER, H_VERDICT };
enum { MESSAGES = 40, TRIES = 40, AWAY_US = 200000 };

static aq_test_count_t arrived, others, verdicts, good;
static gasnett_tick_t first, last; /* of a run's arrivals */

static void on_run(gex_Token_t token)
{
    (void)token;
    last = gasnett_ticks_now();
    if (atomic_fetch_add(&arrived, 1) % MESSAGES == 0)
        first = last;
}

static void on_other(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&others, 1);
}

static void on_verdict(gex_Token_t token, gex_AM_Arg_t in_time)
{
    (void)token;
    atomic_fetch_add(&good, in_time);
    atomic_fetch_add(&verdicts, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_RUN, on_run, AQ_SQ, 0),
    AQ_ENTRY(H_OTHER, on_other, AQ_SQ, 0),
    AQ_ENTRY(H_VERDICT, on_verdict, AQ_SQ, 1),
};

static void run_then_poll(void)
{
    for (int i = 0; i < MESSAGES; i++)
        gex_AM_RequestShort0(aq_test_tm, 1, H_RUN, 0);
    gasnet_AMPoll();
}

/* Such messages do not poll. */
static void immediate_run_then_poll(void)
{
    for (int i = 0; i < MESSAGES; i++)
        while (gex_AM_RequestShort0(aq_test_tm, 1, H_RUN, GEX_FLAG_IMMEDIATE) != 0)
            gasnet_AMPoll();
    gasnet_AMPoll();
}

static void run_then_send_elsewhere(void)
{
    for (int i = 0; i < MESSAGES; i++)
        gex_AM_RequestShort0(aq_test_tm, 1, H_RUN, 0);
    gex_AM_RequestShort0(aq_test_tm, aq_test_n - 1, H_OTHER, GEX_FLAG_IMMEDIATE);
}

/* Rank 1 waits for a run of rank 0's and tells all whether the run came while rank 0 was away. */
static void receive_run(int sent)
{
    bool in_time;

    aq_test_wait(&arrived, sent);
    in_time = gasnett_ticks_to_ns(last - first) < (uint64_t)AWAY_US * 1000 / 2;
    for (gex_Rank_t r = 0; r < aq_test_n; r++)
        gex_AM_RequestShort1(aq_test_tm, r, H_VERDICT, 0, in_time);
}

/* Rank 0 sends and is away for a while. One run in time is enough: the scheduler, or a datagram
 * lost on purpose, spoils some, but a conduit that keeps the end of a run spoils each. */
static void try_run(const char *name, void (*send)(void))
{
    static int sent, tries, wanted;

    rule(name);
    wanted++;
    for (int i = 0; i < TRIES && atomic_load(&good) < wanted; i++) {
        sent += MESSAGES;
        if (aq_test_me == 0) {
            send();
            usleep(AWAY_US);
        } else if (aq_test_me == 1) {
            receive_run(sent);
        }
        aq_test_wait(&verdicts, ++tries);
    }
    AQ_CHECK(atomic_load(&good) == wanted);
    aq_test_barrier(); /* the verdicts of the next rule are not this one's */
}

/* An MPI may keep what its receiver has no space for, until the sender calls MPI again; a message
 * to somebody else need not do that. */
static bool mpi_may_keep(void)
{
    const char *conduit = getenv("GASNET_CONDUIT");

    return conduit != NULL && strcmp(conduit, "mpi") == 0;
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 2);
    aq_test_handlers(table, AQ_LENGTH(table));
    try_run("the end of a run leaves with the next poll", run_then_poll);
    try_run("so does the end of a run with GEX_FLAG_IMMEDIATE", immediate_run_then_poll);
    if (aq_test_n > 2 && !mpi_may_keep())
        try_run("the end of a run leaves with the next message", run_then_send_elsewhere);
    return aq_test_finish();
}
