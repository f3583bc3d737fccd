/*
 * test_wait_cores.c - a rank that waits while a peer is on its core may go to another one, but the
 * cores that its thread may use stay those that the client has set, and no message is lost.
 * Ranks 2+. Conduits all. Source docs/how-it-works.md, Waiting.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "aq_test.h"

#include <sched.h>

enum { H_PING = AQ_TEST_FREE, H_PONG };

static aq_test_count_t pings, pongs;

static void on_ping(gex_Token_t token)
{
    atomic_fetch_add(&pings, 1);
    gex_AM_ReplyShort0(token, H_PONG, 0);
}

static void on_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_PING, on_ping, AQ_SQ, 0),
    AQ_ENTRY(H_PONG, on_pong, AQ_SP, 0),
};

static void await(aq_test_count_t *count, int value, bool polls)
{
    if (!polls)
        aq_test_wait(count, value);
    while (atomic_load(count) < value)
        gasnet_AMPoll();
}

/* All ranks begin on the first core of allowed, and may use use. */
static void talk(const cpu_set_t *allowed, const cpu_set_t *use, int trips, bool polls)
{
    static int sent, served;
    cpu_set_t first, now;
    int number = 0;

    while (!CPU_ISSET(number, allowed))
        number++;
    CPU_ZERO(&first);
    CPU_SET(number, &first);
    AQ_CHECK(sched_setaffinity(0, sizeof(first), &first) == 0);
    aq_test_barrier();
    AQ_CHECK(sched_setaffinity(0, sizeof(*use), use) == 0);
    for (int i = 0; i < trips; i++) {
        gex_AM_RequestShort0(aq_test_tm, (aq_test_me + 1) % aq_test_n, H_PING, 0);
        await(&pongs, ++sent, polls);
    }
    served += trips;
    await(&pings, served, polls);
    aq_test_barrier();
    AQ_CHECK(sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, use));
    AQ_CHECK(sched_setaffinity(0, sizeof(*allowed), allowed) == 0);
}

int main(int argc, char **argv)
{
    cpu_set_t allowed, one;
    int trips, number = 0;

    aq_test_start(&argc, &argv, 2);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        aq_test_skip("more processors than a set of the C library holds");
    aq_test_handlers(table, AQ_LENGTH(table));
    trips = aq_test_quick ? 200 : 2000;
    rule("ranks that begin on one core leave each thread's cores as they are");
    for (int k = 0; k < 4; k++)
        talk(&allowed, &allowed, trips, k % 2 != 0);
    rule("so do ranks that may not leave that core");
    while (!CPU_ISSET(number, &allowed))
        number++;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    talk(&allowed, &one, trips / 10, false);
    talk(&allowed, &one, trips / 10, true);
    return aq_test_finish();
}
