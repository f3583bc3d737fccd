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
#include <stdlib.h>
#include <string.h>

#include "base/aq_platform.h"
#include "conduits/smp/aq_shm.h"
#include "core/aq_conduit.h"
#include "core/aq_contention.h"
#include "core/aq_job.h"

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
    struct aq_shm_layout *layout = &aq_shm.layout;

    (void)state;
    layout->control = AQ_PAGE_SIZE;
    layout->arrived =
        aq_round_up(layout->control + RANKS * sizeof(struct aq_shm_control), AQ_PAGE_SIZE);
    layout->named = layout->arrived + AQ_PAGE_SIZE;
    layout->bytes = layout->named + AQ_PAGE_SIZE;
    aq_shm.arena = aligned_alloc(AQ_PAGE_SIZE, layout->bytes);
    if (aq_shm.arena == NULL)
        return -1;
    memset(aq_shm.arena, 0, layout->bytes);
    aq_shm.size = RANKS;
    aq_shm.jobrank_of = ranks;
    aq_job.size = aq_job.nbrhd_size = RANKS;
    aq_job.has_remote = false;
    aq_contention_self.peers = 1;
    for (int i = 0; i < RANKS; i++)
        core[i] = i % 2;
    phase++;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aq_contention_self.peers = 0;
    free(aq_shm.arena);
    return 0;
}

/* Enters the phase, with a name or without. */
static void arrive(bool named, uint32_t rank)
{
    aq_shm.me = rank;
    aq_shm.self = aq_shm_control(rank);
    if (named)
        aq_shm_named_arrive(phase, 7, 0);
    else
        aq_shm_barrier_arrive(phase);
}

/* Whom rank waits for. */
static gex_Rank_t missing(bool named, uint32_t rank)
{
    struct aq_barrier_name name;
    gex_Rank_t missing_rank = GEX_RANK_INVALID;

    aq_shm.me = rank;
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
