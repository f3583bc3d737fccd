/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_sleep.c - the end of a barrier in shared memory wakes the threads that wait, and not a
 * service thread that sleeps beside them; over a network the leader's too. The ranks are views of
 * one process that take turns.
 */
#include "tests/unit/aq_unit.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "tests/unit/shm_ranks.h"

enum { RANKS = 3, LEADER = RANKS - 1 };

static uint32_t ranks[RANKS] = { 0, 1, 2 };
static uint64_t phase; /* the last one; a scan resumes at the highest so far */

static int setup(void **state)
{
    (void)state;
    return shm_ranks_make(ranks, RANKS);
}

static int teardown(void **state)
{
    (void)state;
    shm_ranks_free();
    return 0;
}

static uint32_t wakeups(uint32_t rank)
{
    return atomic_load_explicit(&aq_shm_control(rank)->wakeup, memory_order_relaxed);
}

/* The ranks enter the next phase one after the other. */
static void barrier(void)
{
    phase++;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        shm_ranks_view(rank);
        aq_shm_barrier_arrive(phase);
    }
}

static void test_a_service_thread_sleeps_on(void **state)
{
    (void)state;
    shm_ranks_view(1);
    aq_shm_sleep_prepare(false);
    barrier();
    assert_int_equal(wakeups(1), 0);
    shm_ranks_view(1);
    aq_shm_sleep_wake(); /* a message wakes it */
    assert_int_equal(wakeups(1), 1);
    aq_shm_sleep_cancel(false);
    aq_shm_sleep_wake();
    assert_int_equal(wakeups(1), 1);
}

static void test_a_thread_that_waits_wakes(void **state)
{
    (void)state;
    shm_ranks_view(0);
    aq_shm_sleep_prepare(false);
    shm_ranks_view(1);
    aq_shm_sleep_prepare(false);
    aq_shm_sleep_prepare(true);
    barrier();
    assert_int_equal(wakeups(0), 0);
    assert_int_equal(wakeups(1), 1);
    shm_ranks_view(1);
    aq_shm_sleep_cancel(true);
    barrier();
    assert_int_equal(wakeups(1), 1);
    aq_shm_sleep_prepare(true); /* the last rank itself: another thread of it */
    barrier();
    assert_int_equal(wakeups(LEADER), 1);
}

static void test_a_leader_is_woken(void **state)
{
    (void)state;
    aq_job.has_remote = true;
    shm_ranks_view(LEADER);
    aq_shm_sleep_prepare(false);
    barrier();
    assert_int_equal(wakeups(LEADER), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_service_thread_sleeps_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_thread_that_waits_wakes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_leader_is_woken, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
