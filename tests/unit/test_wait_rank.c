/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wait_rank.c - a wait for a certain rank where ranks outnumber cores: how often it yields,
 * and in how many steps it sleeps. The waits are compiled into the test, with a transport and cores
 * of the test's own.
 */
#include "tests/unit/aq_unit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_state.h"
#include "core/aq_conduit.h"
#include "core/aq_contention.h"
#include "core/aq_job.h"
#include "core/aq_poll_step.h"
#include "core/aq_stall.h"
#include "other/spawn/aq_spawn.h"

enum { PEER = 1, STEPS_MAX = 10000 };

static struct {
    enum aq_contention_place place;
    bool slow;         /* yields take long */
    double spin_us;    /* AQ_SPIN; below 0: not set */
    unsigned messages; /* that the next poll finds */
    unsigned yields, sleeps;
} sim;

/* --- a transport without messages, or with some --- */

static unsigned sim_poll(enum aq_poll_kind kind)
{
    const unsigned messages = sim.messages;

    (void)kind;
    sim.messages = 0;
    return messages;
}

static uint32_t sim_sleep_prepare(bool waits)
{
    (void)waits;
    return 0;
}

static void sim_sleep(uint32_t wakeup, uint64_t max_ns)
{
    (void)wakeup, (void)max_ns;
    sim.sleeps++;
}

static void sim_sleep_cancel(bool waits)
{
    (void)waits;
}

static void sim_nothing(void)
{
}

static uint64_t sim_wait_limit(uint64_t max_ns)
{
    return max_ns;
}

static const struct aq_conduit_ops sim_ops = { .poll = sim_poll,
                                               .sleep_prepare = sim_sleep_prepare,
                                               .sleep = sim_sleep,
                                               .sleep_cancel = sim_sleep_cancel,
                                               .sleep_wake = sim_nothing,
                                               .wait_arm = sim_nothing,
                                               .wait_limit = sim_wait_limit };

/* --- cores and settings --- */

static enum aq_contention_place sim_place_of(uint32_t jobrank)
{
    assert_int_equal(jobrank, PEER);
    return sim.place;
}

static uint64_t sim_yield(void)
{
    sim.yields++;
    return 1000;
}

static void sim_stall_look(struct aq_waiter *waiter)
{
    waiter->since = 1;
}

#define aq_contention_place_of              sim_place_of
#define aq_contention_look()                (sim.place == AQ_PLACE_OWN_CORE)
#define aq_contention_move()                false
#define aq_contention_yield()               sim_yield()
#define aq_contention_yields_well()         (!sim.slow)
#define aq_contention_judge(took, served)   ((void)(took))
#define aq_stall_look                       sim_stall_look
#define aq_jobarea_note_done(jobarea, slot) ((void)0)
#define aq_env_is_set(id)                   ((id) == AQ_ENV_AQ_SPIN && sim.spin_us >= 0)
#define aq_env_real(id)                     ((id) == AQ_ENV_AQ_SPIN ? sim.spin_us : 1e3)
#include "core/aq_wait.c"

static int setup(void **state)
{
    (void)state;
    memset(&sim, 0, sizeof(sim));
    sim.spin_us = -1;
    aq_job.local = aq_job.remote = &sim_ops;
    aq_job.oversubscribed = true;
    aq_job.has_remote = false;
    aq_limits.poll_ns = 50; /* 20 steps a microsecond */
    aq_contention_self.peers = 0;
    gasnet_set_waitmode(GASNET_WAIT_SPIN);
    return 0;
}

/* The steps of this wait until it sleeps. */
static unsigned steps_until_sleep(struct aq_waiter *waiter)
{
    const unsigned sleeps = sim.sleeps;
    unsigned steps = 0;

    sim.yields = 0;
    while (sim.sleeps == sleeps && ++steps < STEPS_MAX)
        aq_wait_step(waiter);
    assert_int_not_equal(sim.sleeps, sleeps);
    return steps;
}

/* The same of a new wait, for a rank at this place. */
static unsigned steps(enum aq_contention_place place)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("a test", PEER);

    sim.place = place;
    aq_wait_init();
    return steps_until_sleep(&waiter);
}

static void test_own_core_yields_each_step(void **state)
{
    (void)state;
    assert_int_equal(steps(AQ_PLACE_OWN_CORE), 31 + 2); /* two to announce sleep, and to sleep */
    assert_int_equal(sim.yields, 31);
}

static void test_other_core_spins_between_yields(void **state)
{
    (void)state;
    assert_in_range(steps(AQ_PLACE_OTHER_CORE), 500, 520);
    assert_int_equal(sim.yields, 31);
}

/* Less is known of a wait for anybody, and over a network a poll is dear. */
static void test_unknown_place_sleeps_soon(void **state)
{
    (void)state;
    assert_in_range(steps(AQ_PLACE_UNKNOWN), 20, 30);
    assert_int_equal(sim.yields, 4);
    aq_job.has_remote = true;
    assert_in_range(steps(AQ_PLACE_OTHER_CORE), 20, 30);
}

static void test_the_setting_bounds_it(void **state)
{
    static const enum aq_contention_place places[] = { AQ_PLACE_OWN_CORE, AQ_PLACE_OTHER_CORE };

    (void)state;
    for (int i = 0; i < 2; i++) {
        sim.spin_us = 0;
        assert_in_range(steps(places[i]), 2, 8);
        assert_in_range(sim.yields, 0, 4);
        sim.spin_us = 5; /* 100 steps */
        assert_in_range(steps(places[i]), 2, 110);
    }
}

static void test_slow_yields_are_left_out(void **state)
{
    (void)state;
    sim.slow = true;
    assert_in_range(steps(AQ_PLACE_OWN_CORE), 2, 4);
    assert_int_equal(sim.yields, 0);
    assert_in_range(steps(AQ_PLACE_OTHER_CORE), 16, 24);
    assert_int_equal(sim.yields, 0);
}

static void test_a_wait_that_was_woken_sleeps_soon(void **state)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("a test", PEER);

    (void)state;
    sim.place = AQ_PLACE_OTHER_CORE;
    aq_wait_init();
    assert_in_range(steps_until_sleep(&waiter), 500, 520);
    for (int i = 0; i < 3; i++) {
        sim.messages = 1;
        assert_in_range(steps_until_sleep(&waiter), 20, 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_own_core_yields_each_step, setup),
        cmocka_unit_test_setup(test_other_core_spins_between_yields, setup),
        cmocka_unit_test_setup(test_unknown_place_sleeps_soon, setup),
        cmocka_unit_test_setup(test_the_setting_bounds_it, setup),
        cmocka_unit_test_setup(test_slow_yields_are_left_out, setup),
        cmocka_unit_test_setup(test_a_wait_that_was_woken_sleeps_soon, setup),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
