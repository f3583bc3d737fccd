/*
 * test_wait_asleep.c - a message to a rank that has waited for long, and sleeps, is served at once:
 * one that its sender waits for, one that its sender does not wait for, a get, a put of much data,
 * which may go in several steps that both ranks take part in, and an atomic.
 * Ranks 2+. Conduits all. Source docs/how-it-works.md, Waiting.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <stdlib.h>
#include <time.h>

#include "gasnet_ratomic.h"

#define AWAY_NS 90000000 /* in which a rank that waits falls asleep; it looks by itself later */
#define LIMIT   0.02     /* seconds */
#define MUCH    ((size_t)256 << 10)

enum { H_PING = AQ_TEST_FREE, H_PONG, H_NOTE, H_TOOK, TIMES = 5, ATTEMPTS = 3 };

static aq_test_count_t pongs, took_count;
static _Atomic uint32_t sent_us, took_us; /* of the last note: when it left, and how long it took */

static gex_AD_t ad;

static uint32_t now_us(void)
{
    return (uint32_t)(uint64_t)(aq_test_clock() * 1e6);
}

static void on_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_PONG, 0);
}

static void on_pong(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&pongs, 1);
}

static void on_note(gex_Token_t token)
{
    gex_AM_ReplyShort1(token, H_TOOK, 0, (gex_AM_Arg_t)now_us());
}

static void on_took(gex_Token_t token, gex_AM_Arg_t at_us)
{
    (void)token;
    atomic_store(&took_us, (uint32_t)at_us - atomic_load(&sent_us));
    atomic_fetch_add(&took_count, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_PING, on_ping, AQ_SQ, 0),
    AQ_ENTRY(H_PONG, on_pong, AQ_SP, 0),
    AQ_ENTRY(H_NOTE, on_note, AQ_SQ, 0),
    AQ_ENTRY(H_TOOK, on_took, AQ_SP, 1),
};

static void stay_away(void)
{
    const struct timespec away = { 0, AWAY_NS };

    nanosleep(&away, NULL);
}

static double ping(gex_Rank_t target)
{
    const double start = aq_test_clock();
    const int want = atomic_load(&pongs) + 1;

    gex_AM_RequestShort0(aq_test_tm, target, H_PING, 0);
    aq_test_wait(&pongs, want);
    return aq_test_clock() - start;
}

/* The sender makes no call until the target has served the message. Both are on one machine. */
static double note(gex_Rank_t target)
{
    const int want = atomic_load(&took_count) + 1;

    atomic_store(&sent_us, now_us());
    gex_AM_RequestShort0(aq_test_tm, target, H_NOTE, 0);
    stay_away();
    aq_test_wait(&took_count, want);
    return (double)atomic_load(&took_us) * 1e-6;
}

static double get(gex_Rank_t target)
{
    const double start = aq_test_clock();
    uint64_t word = 0;

    gex_RMA_GetBlocking(aq_test_tm, &word, target, aq_test_base(target), sizeof(word), 0);
    return aq_test_clock() - start;
}

static double put(gex_Rank_t target)
{
    static unsigned char data[MUCH];
    const double start = aq_test_clock();

    gex_RMA_PutBlocking(aq_test_tm, target, aq_test_base(target), data, MUCH, 0);
    return aq_test_clock() - start;
}

static double fetch_add(gex_Rank_t target)
{
    const double start = aq_test_clock();
    uint64_t before = 0;

    gex_Event_Wait(
        gex_AD_OpNB_U64(ad, &before, target, aq_test_base(target), GEX_OP_FADD, 1, 0, 0));
    return aq_test_clock() - start;
}

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double (*of)(gex_Rank_t target))
{
    double times[TIMES];

    for (int i = 0; i < TIMES; i++) {
        stay_away();
        times[i] = of(0);
    }
    qsort(times, TIMES, sizeof(times[0]), less);
    return times[TIMES / 2];
}

/* Other programs may keep the cores during one attempt, not during all. Without wake-ups a time is
 * anything up to the 0.1 s that a rank sleeps: one check then passes in one of six runs. */
static void check(const char *what, double (*of)(gex_Rank_t target))
{
    double took = median(of);

    for (int attempt = 1; attempt < ATTEMPTS && took > LIMIT; attempt++)
        took = median(of);
    if (took > LIMIT)
        aq_test_fail(__FILE__, __LINE__, "%s to a rank that sleeps takes %.1f ms in each of %d",
                     what, took * 1e3, ATTEMPTS);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 2);
    aq_test_handlers(table, AQ_LENGTH(table));
    AQ_CHECK_EQ(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK), GASNET_OK);
    aq_test_segment(MUCH);
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, GEX_OP_FADD, 0);
    aq_test_barrier();
    rule("Waiting: who sleeps is woken by what its sender waits for, and by what it does not");
    if (aq_test_me == 1) {
        check("a message and its answer", ping);
        check("a message", note);
        check("a get", get);
        check("a put of much data", put);
        check("an atomic", fetch_add);
    }
    gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0)); /* in which the other ranks sleep */
    gex_AD_Destroy(ad);
    return aq_test_finish();
}
