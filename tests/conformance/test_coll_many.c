/*
 * test_coll_many.c - hundreds of collectives of all kinds at once, retired in any order, in one
 * array or by tests alone; progress that only another thread's polls make.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives, Progress.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if GASNET_PAR
#include <pthread.h>
#endif

enum { HIGHEST = 600, WORDS = 700, LARGE = 300, LARGE_BYTES = 20000 };

struct one {
    int kind;
    gex_Rank_t root;
    size_t count;
    gex_Event_t event;
    uint64_t *buf; /* WORDS */
};
static struct one ones[HIGHEST];

static uint64_t word(gex_Rank_t rank, int i, size_t k)
{
    return (uint64_t)rank * 1000003u + (unsigned)i * 131u + k * 7u + 1;
}

static void op_last(const void *x, void *y, size_t count, const void *cdata)
{
    (void)x, (void)y, (void)count, (void)cdata; /* right operand: in rank order, the last rank's */
}

/* The same calls at every rank: kind, root and size follow from i and the round. */
static void start(int i, uint64_t *state)
{
    struct one *one = &ones[i];
    const uint64_t r = aq_test_random(state);

    one->kind = (int)(r % 6);
    one->root = (gex_Rank_t)(r / 8 % aq_test_n);
    one->count = r / 1024 % 4 == 0 ? WORDS - r / 4096 % 9 : 1 + r / 4096 % 30;
    for (size_t k = 0; k < one->count; k++)
        one->buf[k] = word(aq_test_me, i, k);
    switch (one->kind) {
    case 0:
        one->event = gex_Coll_BarrierNB(aq_test_tm, 0);
        break;
    case 1:
        one->event =
            gex_Coll_BroadcastNB(aq_test_tm, one->root, one->buf, one->buf, one->count * 8, 0);
        break;
    case 2:
        one->event = gex_Coll_ReduceToOneNB(aq_test_tm, one->root, one->buf, one->buf, GEX_DT_U64,
                                            8, one->count, GEX_OP_ADD, NULL, NULL, 0);
        break;
    case 3:
        one->event = gex_Coll_ReduceToAllNB(aq_test_tm, one->buf, one->buf, GEX_DT_U64, 8,
                                            one->count, GEX_OP_ADD, NULL, NULL, 0);
        break;
    case 4:
        one->event = gex_Coll_ReduceToAllNB(aq_test_tm, one->buf, one->buf, GEX_DT_USER, 8,
                                            one->count, GEX_OP_USER_NC, op_last, NULL, 0);
        break;
    default:
        one->event = gex_Coll_ReduceToAllNB(aq_test_tm, one->buf, one->buf, GEX_DT_U64, 8,
                                            one->count, GEX_OP_MAX, NULL, NULL, 0);
    }
}

static void check(int i)
{
    const struct one *one = &ones[i];
    size_t wrong = 0;

    for (size_t k = 0; k < one->count; k++) {
        uint64_t sum = 0, expected;

        for (gex_Rank_t rank = 0; rank < aq_test_n; rank++)
            sum += word(rank, i, k);
        expected = one->kind == 1                              ? word(one->root, i, k)
                   : one->kind == 2 && one->root == aq_test_me ? sum
                   : one->kind == 3                            ? sum
                   : one->kind == 4 || one->kind == 5          ? word(aq_test_n - 1, i, k)
                                                               : word(aq_test_me, i, k);
        wrong += one->buf[k] != expected;
    }
    if (wrong != 0)
        aq_test_fail(__FILE__, __LINE__, "collective %d, kind %d, root %u, %zu words: %zu wrong", i,
                     one->kind, one->root, one->count, wrong);
}

/* In an order of this rank's own. */
static void retire_somehow(int n, uint64_t *state)
{
    static int order[HIGHEST];

    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(aq_test_random(state) % (unsigned)(i + 1)), other = order[i];

        order[i] = order[j];
        order[j] = other;
    }
    for (int i = 0; i < n; i++) {
        if (i % 3 == 0)
            gex_Event_Wait(ones[order[i]].event);
        else
            aq_test_sync(ones[order[i]].event);
        check(order[i]);
    }
}

static void retire_array(int n)
{
    static gex_Event_t events[HIGHEST];
    int done = 0;

    for (int i = 0; i < n; i++)
        events[i] = ones[i].event;
    if (aq_test_me % 2 == 0) {
        gex_Event_WaitAll(events, (size_t)n, 0);
    } else {
        while (gex_Event_TestAll(events, (size_t)n, 0) != GASNET_OK) {
            aq_test_relax();
            done++;
        }
    }
    for (int i = 0; i < n; i++)
        check(i);
}

/* Nothing but tests here; whoever polls is another thread. */
#if GASNET_PAR
static atomic_bool stop;

static void *poller(void *arg)
{
    while (!atomic_load(&stop))
        gasnet_AMPoll();
    return arg;
}

static void retire_testing(int n)
{
    pthread_t thread;

    atomic_store(&stop, false);
    pthread_create(&thread, NULL, poller, NULL);
    for (int i = 0; i < n; i++) {
        const double until = aq_test_clock() + aq_test_limit();

        while (gex_Event_Test(ones[i].event) != GASNET_OK) {
            aq_test_yield();
            if (aq_test_clock() > until)
                aq_test_die(__FILE__, __LINE__, "collective %d never ended", i);
        }
        check(i);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}
#endif

static void start_all(int n, uint64_t seed)
{
    for (int i = 0; i < n; i++) {
        start(i, &seed);
        if ((i + (int)aq_test_me * 5) % 50 == 49)
            aq_test_relax();
    }
}

/* More receives wait for their data than a library may have posted at a time. */
static void large_ones(void)
{
    static gex_Event_t events[LARGE];
    unsigned char *buf = malloc((size_t)LARGE * LARGE_BYTES);
    size_t wrong = 0;

    if (aq_test_me == 0)
        usleep(20000);
    for (int i = 0; i < LARGE; i++) {
        unsigned char *ours = buf + (size_t)i * LARGE_BYTES;

        memset(ours, aq_test_me == 0 ? i % 251 + 1 : 0, LARGE_BYTES);
        events[i] = gex_Coll_BroadcastNB(aq_test_tm, 0, ours, ours, LARGE_BYTES, 0);
    }
    gex_Event_WaitAll(events, LARGE, 0);
    for (size_t at = 0; at < (size_t)LARGE * LARGE_BYTES; at++)
        wrong += buf[at] != at / LARGE_BYTES % 251 + 1;
    if (wrong != 0)
        aq_test_fail(__FILE__, __LINE__, "%zu bytes of %d broadcasts are wrong", wrong, (int)LARGE);
    free(buf);
}

int main(int argc, char **argv)
{
    const int rounds = aq_test_quick ? 2 : 6;
    uint64_t ours;
    int n;

    aq_test_start(&argc, &argv, 1);
    n = aq_test_quick || aq_test_n > 8 ? 150 : HIGHEST;
    for (int i = 0; i < n; i++)
        ones[i].buf = malloc(WORDS * 8);
    rule("extended 12.1: mixed kinds before attach");
    ours = aq_test_me + 1;
    start_all(20, 99);
    retire_somehow(20, &ours);
    aq_test_segment(GASNET_PAGESIZE);
    for (int round = 0; round < rounds; round++) {
        rule("extended 12.1: hundreds of mixed collectives, retired in any order");
        start_all(n, (uint64_t)round * 3 + 1);
        retire_somehow(n, &ours);
        rule("extended 12.1, 4.1: the same in one array");
        start_all(n, (uint64_t)round * 3 + 2);
        retire_array(n);
#if GASNET_PAR
        rule("extended 16.3: tests alone, while another thread polls");
        start_all(n / 3, (uint64_t)round * 3 + 3);
        retire_testing(n / 3);
#endif
    }
    rule("extended 16.3: the rest of the job gets on while one rank only polls");
    start_all(60, 12345);
    if (aq_test_me == 0)
        for (int i = 0; i < 500; i++)
            gasnet_AMPoll();
    retire_somehow(60, &ours);
    rule("extended 12.1: hundreds of large ones, whose root comes late");
    large_ones();
    return aq_test_finish();
}
