/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_sleep.c - the end of a barrier in shared memory wakes the threads that wait, and not a
 * service thread that sleeps beside them; over a network the leader's too. The ranks are views of
 * one process that take turns.
 */
#include "tests/unit/aq_unit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_platform.h"
#include "conduits/smp/aq_shm.h"
#include "core/aq_conduit.h"
#include "core/aq_job.h"

enum { RANKS = 3, LEADER = RANKS - 1 };

static uint32_t ranks[RANKS] = { 0, 1, 2 };
static uint64_t phase; /* the last one; a scan resumes at the highest so far */

static void view(uint32_t rank)
{
    aq_shm.me = rank;
    aq_shm.self = aq_shm_control(rank);
}

static int setup(void **state)
{
    struct aq_shm_layout *layout = &aq_shm.layout;

    (void)state;
    layout->control = AQ_PAGE_SIZE;
    layout->arrived =
        aq_round_up(layout->control + RANKS * sizeof(struct aq_shm_control), AQ_PAGE_SIZE);
    layout->bytes = layout->arrived + AQ_PAGE_SIZE;
    aq_shm.arena = aligned_alloc(AQ_PAGE_SIZE, layout->bytes);
    if (aq_shm.arena == NULL)
        return -1;
    memset(aq_shm.arena, 0, layout->bytes);
    aq_shm.size = RANKS;
    aq_shm.jobrank_of = ranks;
    aq_job.size = aq_job.nbrhd_size = RANKS;
    aq_job.has_remote = false;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(aq_shm.arena);
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
        view(rank);
        aq_shm_barrier_arrive(phase);
    }
}

static void test_a_service_thread_sleeps_on(void **state)
{
    (void)state;
    view(1);
    aq_shm_sleep_prepare(false);
    barrier();
    assert_int_equal(wakeups(1), 0);
    view(1);
    aq_shm_sleep_wake(); /* a message wakes it */
    assert_int_equal(wakeups(1), 1);
    aq_shm_sleep_cancel(false);
    aq_shm_sleep_wake();
    assert_int_equal(wakeups(1), 1);
}

static void test_a_thread_that_waits_wakes(void **state)
{
    (void)state;
    view(0);
    aq_shm_sleep_prepare(false);
    view(1);
    aq_shm_sleep_prepare(false);
    aq_shm_sleep_prepare(true);
    barrier();
    assert_int_equal(wakeups(0), 0);
    assert_int_equal(wakeups(1), 1);
    view(1);
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
    view(LEADER);
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
