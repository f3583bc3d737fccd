/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_missing.c - whom a barrier of shared memory names while ranks are missing: one of the
 * caller's core if there is one; over a network the lowest, by which a leader knows that all others
 * have arrived. The barriers are compiled into the test, with cores of the test's own. The ranks
 * are views of one process that take turns.
 */
#include "tests/unit/aq_unit.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "core/aq_contention.h"
#include "tests/unit/shm_ranks.h"

enum { RANKS = 6, LEADER = RANKS - 1 };

static uint32_t ranks[RANKS] = { 10, 11, 12, 13, 14, 15 };
static int core[RANKS]; /* where each has waited the last time */
static uint64_t phase;  /* the last one; a scan resumes at the highest so far */

static enum aq_contention_place sim_place_of(uint32_t jobrank)
{
    return core[jobrank - ranks[0]] == core[aq_shm.me] ? AQ_PLACE_OWN_CORE : AQ_PLACE_OTHER_CORE;
}

#define aq_contention_place_of sim_place_of
#include "conduits/smp/aq_shm_barrier.c"

static int setup(void **state)
{
    (void)state;
    aq_contention_self.peers = 1;
    for (int i = 0; i < RANKS; i++)
        core[i] = i % 2;
    phase++;
    return shm_ranks_make(ranks, RANKS);
}

static int teardown(void **state)
{
    (void)state;
    aq_contention_self.peers = 0;
    shm_ranks_free();
    return 0;
}

/* Enters the phase, with a name or without. */
static void arrive(bool named, uint32_t rank)
{
    shm_ranks_view(rank);
    if (named)
        aq_shm_named_arrive(phase, 7, 0);
    else
        aq_shm_barrier_arrive(phase);
}

/* The rank that a barrier names to `rank`. */
static gex_Rank_t missing(bool named, uint32_t rank)
{
    struct aq_barrier_name name;
    gex_Rank_t missing_rank = GEX_RANK_INVALID;

    shm_ranks_view(rank);
    assert_false(named ? aq_shm_named_done(phase, &name, &missing_rank)
                       : aq_shm_barrier_done(phase, &missing_rank));
    return missing_rank;
}

static void own_core_first(bool named)
{
    arrive(named, 0);
    assert_int_equal(missing(named, 0), 12); /* 11 is missing, too, on the other core */
    arrive(named, 2);
    assert_int_equal(missing(named, 0), 14);
    arrive(named, 4);
    assert_int_equal(missing(named, 0), 11); /* of this core nobody is */
    arrive(named, 3);
    assert_int_equal(missing(named, 3), 11);
    arrive(named, 1);
    assert_int_equal(missing(named, 0), 15);
}

static void test_own_core_first(void **state)
{
    (void)state;
    own_core_first(false);
    own_core_first(true);
}

/* A leader, which arrives last, looks for itself as the one that is missing. */
static void test_lowest_over_a_network(void **state)
{
    (void)state;
    aq_job.has_remote = true;
    for (int named = 0; named < 2; named++) {
        assert_int_equal(missing(named, LEADER), 10);
        arrive(named, 0);
        assert_int_equal(missing(named, LEADER), 11);
        for (uint32_t rank = 1; rank < LEADER; rank++)
            arrive(named, rank);
        assert_int_equal(missing(named, LEADER), 15);
    }
}

static void test_lowest_on_a_core_of_ones_own(void **state)
{
    (void)state;
    aq_contention_self.peers = 0;
    arrive(false, 0);
    assert_int_equal(missing(false, 0), 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_core_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lowest_over_a_network, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lowest_on_a_core_of_ones_own, setup, teardown),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
