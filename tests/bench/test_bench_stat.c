/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_stat.c - the statistics behind every verdict of aq-bench.
 * Uses cmocka, bench_stat.h, bench_limit.h
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench_limit.h"
#include "bench_stat.h"

#define AQ_CLOSE(a, b) assert_true((a) > (b)-1e-9 && (a) < (b) + 1e-9)

static void test_quartiles(void **state)
{
    const double odd[] = { 5, 1, 4, 2, 3 }, one[] = { 7 }, even[] = { 4, 1, 3, 2 };
    struct aq_quart q = aq_stat_quart(odd, 5);

    (void)state;
    AQ_CLOSE(q.q1, 2);
    AQ_CLOSE(q.median, 3);
    AQ_CLOSE(q.q3, 4);
    AQ_CLOSE(odd[0], 5); /* the input keeps its order */
    q = aq_stat_quart(one, 1);
    AQ_CLOSE(q.q1, 7);
    AQ_CLOSE(q.q3, 7);
    q = aq_stat_quart(even, 4);
    AQ_CLOSE(q.median, 2.5);
    q = aq_stat_quart(even, 0);
    AQ_CLOSE(q.median, 0);
}

/* One slice in which the machine was ten times slower moves neither ratio nor control. */
static void test_ratio_is_slicewise(void **state)
{
    const double s[] = { 12, 120, 12, 12, 12 }, a[] = { 10, 100, 10, 10, 10 },
                 b[] = { 10, 100, 10, 10, 10 };
    struct aq_result r;

    (void)state;
    memset(&r, 0, sizeof(r));
    aq_stat_reduce(s, a, b, 5, &r);
    AQ_CLOSE(r.ratio.median, 1.2);
    AQ_CLOSE(r.ratio.q1, 1.2);
    AQ_CLOSE(r.ratio.q3, 1.2);
    AQ_CLOSE(r.aa, 1);
    AQ_CLOSE(r.limit.median, 10);
    assert_int_equal(r.slices, 5);
}

/* A steady drift cancels: the limit of a slice is the mean of the two around the subject. */
static void test_drift_cancels(void **state)
{
    const double s[] = { 10.5, 11.5, 12.5 }, a[] = { 10, 11, 12 }, b[] = { 11, 12, 13 };
    struct aq_result r;

    (void)state;
    memset(&r, 0, sizeof(r));
    aq_stat_reduce(s, a, b, 3, &r);
    AQ_CLOSE(r.ratio.median, 1);
}

/* A slice in which the limit changed says nothing; with too few others the row is noise. */
static void test_unsteady_slices(void **state)
{
    double s[20], a[20], b[20];
    struct aq_result r;

    (void)state;
    for (int i = 0; i < 20; i++) {
        a[i] = 10;
        b[i] = i % 2 == 0 ? 10 : i % 4 == 1 ? 100 : 1;
        s[i] = i % 2 == 0 ? 12 : 200;
    }
    memset(&r, 0, sizeof(r));
    r.budget = 1.25;
    aq_stat_reduce(s, a, b, 20, &r);
    assert_int_equal(r.slices, 10);
    AQ_CLOSE(r.ratio.q3, 1.2);
    AQ_CLOSE(r.subject.q3, 12);
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OK);
    aq_stat_reduce(s, a, b, 16, &r); /* 8 steady ones of 16 */
    assert_int_equal(r.slices, 16);
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
}

static void test_verdicts(void **state)
{
    char text[AQ_STAT_RATIO];
    struct aq_result r;

    (void)state;
    memset(&r, 0, sizeof(r));
    r.ratio = (struct aq_quart){ 1.4, 1.5, 1.55 };
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NONE);
    r.budget = 1.5;
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OK);
    r.ratio.median = 1.51;
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OVER);
    r.aa = 1.09;
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OVER);
    r.aa = 1.11;
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
    r.aa = 0.89;
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
    r.ratio.median = 1; /* noise is no pass either */
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
    r.aa = 1; /* quartiles far apart: only if the budget lies between them */
    r.ratio = (struct aq_quart){ 0.8, 1, 1.4 };
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OK);
    r.ratio = (struct aq_quart){ 0.8, 1, 1.6 };
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
    r.ratio = (struct aq_quart){ 1.4, 2, 9 };
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_NOISE);
    r.ratio = (struct aq_quart){ 1.6, 2, 9 };
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OVER);
    assert_string_equal(aq_stat_word(AQ_VERDICT_OK), "ok");
    assert_string_equal(aq_stat_word(AQ_VERDICT_OVER), "over");
    assert_string_equal(aq_stat_ratio(1.2345, 0, text), "1.23");
    assert_string_equal(aq_stat_ratio(1.149, 1.15, text), "1.15");
    assert_string_equal(aq_stat_ratio(1.1561, 1.15, text), "1.16");
    assert_string_equal(aq_stat_ratio(1.1503, 1.15, text), "1.1503");
    assert_string_equal(aq_stat_word(AQ_VERDICT_NOISE), "noise");
}

static void test_record_round_trip(void **state)
{
    struct aq_result r, back;
    char line[1024] = "";
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    memset(&r, 0, sizeof(r));
    strcpy(r.who, "mpich");
    strcpy(r.name, "put");
    strcpy(r.unit, "ns");
    strcpy(r.limit_name, "ping-pong + 2 memcpy, pause");
    r.size = UINT64_C(1) << 33;
    r.subject = (struct aq_quart){ 1.5, 2.5, 3.5 };
    r.limit = (struct aq_quart){ 1, 2, 3 };
    r.ratio = (struct aq_quart){ 1.25, 1.25, 1.5 };
    r.aa = 1.01;
    r.budget = 1.05;
    r.slices = 51;
    r.unsteady = true;
    aq_record_write(f, &r);
    rewind(f);
    assert_non_null(fgets(line, sizeof(line), f));
    memset(&back, 0xff, sizeof(back));
    assert_true(aq_record_read(line, &back));
    assert_memory_equal(&r, &back, sizeof(r));
    r.limit_name[0] = '\0'; /* no limit */
    rewind(f);
    aq_record_write(f, &r);
    rewind(f);
    assert_non_null(fgets(line, sizeof(line), f));
    assert_true(aq_record_read(line, &back));
    assert_string_equal(back.limit_name, "");
    assert_false(aq_record_read("RUNNING\tput", &back));
    assert_false(aq_record_read("AQBENCH1\tmpich\tput\tns", &back));
    assert_false(aq_record_read("", &back));
    fclose(f);
}

/* A side that takes exactly *arg nanoseconds an operation, by the clock. */
static double fixed_cost(void *arg, uint64_t iters)
{
    return *(const double *)arg * (double)iters;
}

static void test_measure(void **state)
{
    double fast = 10, slow = 15;
    struct aq_measure m = {
        { fixed_cost, &slow }, { fixed_cost, &fast }, 1e6, 9, 1e9, NULL, NULL, 1
    };
    struct aq_result r;

    (void)state;
    memset(&r, 0, sizeof(r));
    aq_bench_measure(&m, &r);
    AQ_CLOSE(r.ratio.median, 1.5);
    AQ_CLOSE(r.subject.median, 15);
    AQ_CLOSE(r.limit.median, 10);
    AQ_CLOSE(r.aa, 1);
    assert_int_equal(r.slices, 9);
    memset(&r, 0, sizeof(r));
    m.limit.run = NULL;
    aq_bench_measure(&m, &r);
    AQ_CLOSE(r.subject.median, 15);
    AQ_CLOSE(r.limit.median, 0);
}

/* Every second triple is interrupted and takes ten times as long: it does not count. */
static int triple;

static uint64_t some_switches(void *arg)
{
    (void)arg;
    return (uint64_t)(++triple
                      / 4); /* two calls a triple: the count moves within every second one */
}

static double disturbed_cost(void *arg, uint64_t iters)
{
    return *(const double *)arg * (double)iters * (triple % 4 == 3 ? 10 : 1);
}

static void test_interrupted_slices_are_left_out(void **state)
{
    double fast = 10, slow = 15;
    struct aq_measure m = {
        { disturbed_cost, &slow }, { fixed_cost, &fast }, 1e6, 20, 1e9, some_switches, NULL, 1
    };
    struct aq_result r;

    (void)state;
    triple = 0;
    memset(&r, 0, sizeof(r));
    aq_bench_measure(&m, &r);
    AQ_CLOSE(r.ratio.q1, 1.5);
    AQ_CLOSE(r.ratio.q3, 1.5);
    assert_int_equal(r.slices, 20);
}

/* The first attempt is wild, the second quiet: the second is kept though its ratio is larger. */
static int attempt_calls;

static double settling_cost(void *arg, uint64_t iters)
{
    double wild = attempt_calls++ < 40 ? (attempt_calls % 2 == 0 ? 0.1 : 5) : 3;

    return *(const double *)arg * (double)iters * wild;
}

static void test_settle(void **state)
{
    double cost = 10;
    struct aq_measure m = {
        { settling_cost, &cost }, { fixed_cost, &cost }, 1e6, 20, 1e9, NULL, NULL, 1
    };
    struct aq_result r;

    (void)state;
    attempt_calls = 0;
    memset(&r, 0, sizeof(r));
    strcpy(r.name, "row");
    r.budget = 4;
    aq_bench_settle(&m, 4, &r);
    AQ_CLOSE(r.ratio.q1, 3);
    AQ_CLOSE(r.ratio.q3, 3);
    assert_string_equal(r.name, "row");
    assert_int_equal(aq_stat_verdict(&r), AQ_VERDICT_OK);
}

/* --- limits: both sides agree over many rounds of every kind, whatever the payload --- */

static struct aq_limit_area *area;
static unsigned char payload[AQ_LIMIT_PAYLOAD];
static const size_t payloads[] = { 0, 8, 4096, AQ_LIMIT_PAYLOAD };

static void limit_rounds(struct aq_limit *l, int rank)
{
    l->area = area;
    l->pause = true;
    for (size_t k = 0; k < sizeof(payloads) / sizeof(payloads[0]); k++) {
        aq_limit_payload(l, payload, payloads[k], NULL);
        if (payloads[k] <= 4096)
            aq_limit_place(l, 0);
        for (uint64_t iters = 1; iters < 300; iters = iters * 5 + 2) {
            if (rank == 0) {
                aq_limit_ping(l, iters);
                aq_limit_send(l, iters);
            } else {
                aq_limit_pong(l, iters);
                aq_limit_drain(l, iters);
            }
            aq_limit_shared(l, iters, rank == 0);
            aq_limit_barrier(l, iters, (uint32_t)rank, 2);
        }
    }
}

static void *limit_responder(void *arg)
{
    limit_rounds(arg, 1);
    return NULL;
}

static void test_limits_agree(void **state)
{
    struct aq_limit sides[2];
    pthread_t thread;

    (void)state;
    area = aligned_alloc(4096, (sizeof(*area) + 4095) / 4096 * 4096);
    assert_non_null(area);
    memset(area, 0, sizeof(*area));
    memset(sides, 0, sizeof(sides));
    memset(payload, 0x5a, sizeof(payload));
    assert_int_equal(pthread_create(&thread, NULL, limit_responder, &sides[1]), 0);
    limit_rounds(&sides[0], 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(sides[0].seq, sides[1].seq);
    assert_int_equal(sides[0].ring_seq, sides[1].ring_seq);
    assert_int_equal(area->credit.seq, sides[0].ring_seq);
    assert_memory_equal(area->back_buf, payload, sizeof(payload));
    free(area);
}

/* --- few slow operations do not make a stream --- */

static uint64_t fewest;

static double slow_cost(void *arg, uint64_t iters)
{
    fewest = iters;
    return *(double *)arg * (double)iters;
}

static void test_min(void **state)
{
    double slow = 2e6;
    struct aq_measure m = { { slow_cost, &slow }, { NULL, NULL }, 1e6, 9, 1e9, NULL, NULL, 1 };
    struct aq_result r;

    (void)state;
    memset(&r, 0, sizeof(r));
    aq_bench_measure(&m, &r);
    assert_int_equal(fewest, 1);
    m.min = 128;
    aq_bench_measure(&m, &r);
    assert_int_equal(fewest, 128); /* the last slice */
    AQ_CLOSE(r.subject.median, slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quartiles),
        cmocka_unit_test(test_ratio_is_slicewise),
        cmocka_unit_test(test_drift_cancels),
        cmocka_unit_test(test_unsteady_slices),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_record_round_trip),
        cmocka_unit_test(test_measure),
        cmocka_unit_test(test_interrupted_slices_are_left_out),
        cmocka_unit_test(test_settle),
        cmocka_unit_test(test_limits_agree),
        cmocka_unit_test(test_min),
    };

    return cmocka_run_group_tests_name("bench_stat", tests, NULL, NULL);
}
