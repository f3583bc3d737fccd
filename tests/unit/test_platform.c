/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_platform.c - cores and memory that this process may use, rounding, the clock.
 */
#include "tests/unit/aq_unit.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_platform.h"

static void body_one_core(void *arg)
{
    cpu_set_t mask;
    int first = 0;

    (void)arg;
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
        _exit(1);
    while (!CPU_ISSET(first, &mask))
        first++;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    if (sched_setaffinity(0, sizeof(mask), &mask) != 0)
        _exit(1);
    if (aq_cores_available() != 1)
        _exit(2);
}

static void test_cores(void **state)
{
    struct aq_unit_result result;

    (void)state;
    assert_true(aq_cores_available() >= 1);
    assert_true(aq_cores_available() <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    aq_unit_run(body_one_core, NULL, &result); /* the affinity mask counts */
    assert_int_equal(aq_unit_exit_code(&result), 0);
}

static void test_memory(void **state)
{
    const char *what = NULL;
    uint64_t bytes = aq_memory_available(&what);

    (void)state;
    assert_true(bytes >= 1 << 20);
    assert_true(bytes <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    assert_non_null(what);
    assert_int_equal(aq_memory_available(NULL), bytes);
}

static void test_round_up(void **state)
{
    (void)state;
    assert_int_equal(aq_round_up(0, 64), 0);
    assert_int_equal(aq_round_up(1, 64), 64);
    assert_int_equal(aq_round_up(64, 64), 64);
    assert_int_equal(aq_round_up(65, 64), 128);
    assert_int_equal(aq_round_up(4097, AQ_HUGE_PAGE), AQ_HUGE_PAGE);
}

static void test_clock(void **state)
{
    uint64_t before = aq_now_ns(), after;

    (void)state;
    usleep(2000);
    after = aq_now_ns();
    assert_true(after - before >= 2000000);
    assert_true(after - before < UINT64_C(20000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_round_up),
        cmocka_unit_test(test_clock),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
