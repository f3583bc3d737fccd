/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_contention.c - ranks that share a core: which of them moves, when, and where to. The module
 * is compiled into the test, with a scheduler and a clock of the test's own; the ranks are views
 * that take turns.
 */
#define _GNU_SOURCE 1
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "core/aq_contention.h"
#include "core/aq_job.h"
#include "other/spawn/aq_spawn.h"

enum { RANKS = 6, CORES = 4, SETS = 64 };

/* --- the scheduler and the clock --- */

static struct {
    struct aq_contention view[RANKS];
    cpu_set_t allowed[RANKS];
    int core[RANKS];        /* where each rank's thread runs */
    cpu_set_t set_to[SETS]; /* what affinities were set to, one after the other */
    unsigned sets;
    bool refuses; /* affinities cannot be set */
    uint64_t now;
} sim;

static struct aq_spawn_info sim_job = { .provider = "test", .size = RANKS, .host_size = RANKS };
static struct {
    struct aq_jobarea area;
    _Atomic uint16_t cores[RANKS];
} jobarea;

static const struct aq_spawn_info *sim_info(void)
{
    return &sim_job;
}

static struct aq_jobarea *sim_jobarea(void)
{
    return &jobarea.area;
}

static uint64_t sim_now(void)
{
    return sim.now;
}

static int sim_getcpu(void)
{
    return sim.core[sim_job.host_rank];
}

static int sim_getaffinity(pid_t pid, size_t size, cpu_set_t *set_out)
{
    assert_int_equal(pid, 0);
    assert_int_equal(size, sizeof(*set_out));
    *set_out = sim.allowed[sim_job.host_rank];
    return 0;
}

static int sim_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    assert_int_equal(pid, 0);
    assert_int_equal(size, sizeof(*set));
    assert_true(sim.sets < SETS);
    if (sim.refuses) {
        errno = EPERM;
        return -1;
    }
    sim.set_to[sim.sets++] = *set;
    sim.allowed[sim_job.host_rank] = *set;
    for (int core = 0; !CPU_ISSET(sim.core[sim_job.host_rank], set); core++)
        if (CPU_ISSET(core, set))
            sim.core[sim_job.host_rank] = core;
    return 0;
}

#define aq_spawn_info()    sim_info()
#define aq_spawn_jobarea() sim_jobarea()
#define aq_now_ns()        sim_now()
#define sched_getcpu()     sim_getcpu()
#define sched_getaffinity  sim_getaffinity
#define sched_setaffinity  sim_setaffinity
#include "core/aq_contention.c"

#define MS UINT64_C(1000000)

/* Nobody waits yet; each rank may use the first CORES cores. */
static int setup(void **state)
{
    (void)state;
    memset(&sim, 0, sizeof(sim));
    memset(&jobarea, 0, sizeof(jobarea));
    jobarea.area.cores_offset = (uint32_t)((char *)jobarea.cores - (char *)&jobarea);
    for (int rank = 0; rank < RANKS; rank++)
        for (int core = 0; core < CORES; core++)
            CPU_SET(core, &sim.allowed[rank]);
    sim.now = 1000 * MS; /* since the machine's start */
    return 0;
}

/* This rank has looked in vain: returns whether it has moved, having found a peer. */
static bool rank_looks(uint32_t rank)
{
    bool moved;

    sim_job.host_rank = rank;
    aq_contention_self = sim.view[rank];
    moved = aq_contention_look() && aq_contention_move();
    sim.view[rank] = aq_contention_self;
    return moved;
}

static bool rank_shares(uint32_t rank)
{
    return sim.view[rank].peers != 0;
}

/* The ranks below count wait on these cores. */
static void place(const int *cores, uint32_t count)
{
    for (uint32_t rank = 0; rank < count; rank++) {
        sim.core[rank] = cores[rank];
        jobarea.cores[rank] = (uint16_t)(cores[rank] + 1);
    }
}

/* --- who moves, and where to --- */

static void test_last_moves(void **state)
{
    (void)state;
    place((const int[]){ 0, 0 }, 2);
    assert_false(rank_looks(0));
    assert_true(rank_shares(0));
    assert_true(rank_looks(1));
    assert_int_not_equal(sim.core[1], 0);
    assert_int_equal(sim.core[0], 0);
    assert_int_equal(jobarea.cores[1], sim.core[1] + 1); /* others know at once */
    assert_false(rank_looks(0));
    assert_false(rank_shares(0));
    assert_false(rank_looks(1));
    assert_false(rank_shares(1));
}

static void test_three_part(void **state)
{
    unsigned used = 0;

    (void)state;
    place((const int[]){ 2, 2, 2 }, 3);
    for (unsigned i = 0; i < 30; i++, sim.now += MS / 10)
        for (uint32_t rank = 0; rank < 3; rank++)
            rank_looks(rank);
    for (uint32_t rank = 0; rank < 3; rank++)
        used |= 1u << sim.core[rank];
    assert_int_equal(__builtin_popcount(used), 3); /* before anybody's 10 ms are over */
    assert_int_equal(sim.core[0], 2);
    assert_int_equal(sim.sets, 4);
}

static void test_only_to_free_cores(void **state)
{
    (void)state;
    place((const int[]){ 0, 1, 3, 0 }, 4);
    assert_true(rank_looks(3));
    assert_int_equal(sim.core[3], 2); /* the only one that nobody has published */
}

static void test_affinity_restored(void **state)
{
    cpu_set_t allowed;

    (void)state;
    CPU_ZERO(&allowed);
    CPU_SET(1, &allowed);
    CPU_SET(3, &allowed);
    sim.allowed[1] = allowed;
    place((const int[]){ 1, 1 }, 2);
    assert_true(rank_looks(1));
    assert_int_equal(sim.core[1], 3); /* cores 0 and 2 are free, and forbidden */
    assert_int_equal(sim.sets, 2);
    assert_int_equal(CPU_COUNT(&sim.set_to[0]), 1);
    assert_true(CPU_EQUAL(&sim.set_to[1], &allowed));
    assert_true(CPU_EQUAL(&sim.allowed[1], &allowed));
}

static void test_all_taken_stays(void **state)
{
    (void)state;
    place((const int[]){ 0, 1, 2, 3, 3 }, 5);
    for (unsigned i = 0; i < 200; i++, sim.now += MS) {
        assert_false(rank_looks(4));
        assert_true(rank_shares(4));
        assert_false(rank_looks(3));
    }
    assert_int_equal(sim.sets, 0);
    jobarea.cores[0] = 0; /* that rank has been asleep for long */
    for (unsigned i = 0; i < 51 && !rank_looks(4); i++)
        sim.now += MS;
    assert_int_equal(sim.core[4], 0);
}

static void test_bound_stays(void **state)
{
    (void)state;
    CPU_ZERO(&sim.allowed[1]);
    CPU_SET(0, &sim.allowed[1]);
    place((const int[]){ 0, 0 }, 2);
    for (unsigned i = 0; i < 200; i++, sim.now += MS)
        assert_false(rank_looks(1));
    assert_int_equal(sim.sets, 0);
}

static void test_refused_stays(void **state)
{
    (void)state;
    sim.refuses = true;
    place((const int[]){ 0, 0 }, 2);
    assert_false(rank_looks(1));
    assert_int_equal(jobarea.cores[1], 1);
    assert_true(rank_shares(1));
}

/* --- the others --- */

/* The last one cannot move: the other one does, when they have shared the core for 10 ms. */
static uint64_t other_moves_after(uint64_t interval)
{
    const uint64_t began = sim.now;

    CPU_ZERO(&sim.allowed[1]);
    CPU_SET(0, &sim.allowed[1]);
    place((const int[]){ 0, 0 }, 2);
    while (!rank_looks(0)) {
        assert_true(sim.now - began < 1000 * MS);
        assert_false(rank_looks(1));
        sim.now += interval;
    }
    assert_int_not_equal(sim.core[0], 0);
    return sim.now - began;
}

static void test_others_later(void **state)
{
    (void)state;
    assert_int_equal(other_moves_after(MS / 10) / MS, 10);
}

/* Who looks rarely is not taken for one whose sharing has just begun. */
static void test_others_that_look_rarely(void **state)
{
    (void)state;
    assert_int_equal(other_moves_after(25 * MS) / MS, 25);
}

/* Sharing counts from where it began, however long ago the rank last moved or looked. */
static void test_others_count_afresh(void **state)
{
    (void)state;
    place((const int[]){ 0, 0 }, 2);
    for (unsigned i = 0; i < 9; i++, sim.now += MS)
        assert_false(rank_looks(0));
    jobarea.cores[1] = 2; /* it has gone */
    assert_false(rank_looks(0));
    assert_false(rank_shares(0));
    sim.now += 15 * MS;
    jobarea.cores[1] = 1; /* and come back */
    for (unsigned i = 0; i < 10; i++, sim.now += MS)
        assert_false(rank_looks(0));
    assert_true(rank_looks(0));
}

static void test_others_count_afresh_elsewhere(void **state)
{
    (void)state;
    place((const int[]){ 0, 0, 2 }, 3);
    for (unsigned i = 0; i < 9; i++, sim.now += MS)
        assert_false(rank_looks(0));
    sim.core[0] = 2; /* the scheduler has moved it to another peer's core */
    for (unsigned i = 0; i < 10; i++, sim.now += MS)
        assert_false(rank_looks(0));
    assert_true(rank_looks(0));
}

/* The last one moves at the latest a millisecond after it has become that. */
static void test_becomes_last(void **state)
{
    (void)state;
    place((const int[]){ 0, 0, 0 }, 3);
    assert_false(rank_looks(1));
    sim.now += MS / 10;
    jobarea.cores[2] = 4;
    for (unsigned i = 0; i < 10; i++, sim.now += MS / 10)
        rank_looks(1);
    assert_int_not_equal(sim.core[1], 0);
}

/* --- how often --- */

static void test_once_a_millisecond(void **state)
{
    unsigned moves = 0;

    (void)state;
    place((const int[]){ 0, 0 }, 2);
    for (unsigned i = 0; i < 1000; i++, sim.now += MS / 50) { /* 20 ms */
        moves += rank_looks(1);
        sim.core[1] = 0;
    }
    assert_in_range(moves, 4, 20);
}

/* --- slow yields --- */

/* Two yields in a row take that long: are they taken for a foreign program's? */
static bool is_slow(unsigned ranks_per_core, uint64_t took)
{
    memset(&aq_contention_self, 0, sizeof(aq_contention_self));
    aq_contention_ranks_per_core = ranks_per_core;
    aq_contention_judge(took, 0);
    aq_contention_judge(took, 0);
    return !aq_contention_yields_well();
}

/* A chain of many ranks that poll takes long; a program takes its time slice, about 3 ms. */
static void test_many_ranks_are_no_program(void **state)
{
    (void)state;
    assert_false(is_slow(1, MS));
    assert_true(is_slow(1, MS + MS / 10));
    assert_false(is_slow(8, MS + MS / 10));
    assert_false(is_slow(32, 2 * MS));
    assert_true(is_slow(32, 2 * MS + MS / 2));
    assert_true(is_slow(1000, 2 * MS + MS / 2));
    aq_contention_ranks_per_core = 0;
}

/* For how long does a pause last that begins with a yield of `took`? */
static uint64_t pause_after(uint64_t took)
{
    aq_contention_judge(took, 0);
    assert_false(aq_contention_yields_well());
    return aq_contention_self.slow_until - sim.now;
}

/* A stall of the machine costs a short pause; a program that is there time and again a long one. */
static void test_pauses_grow(void **state)
{
    const uint64_t took = 4 * MS;

    (void)state;
    memset(&aq_contention_self, 0, sizeof(aq_contention_self));
    aq_contention_judge(took, 0);
    assert_true(aq_contention_yields_well());
    assert_int_equal(pause_after(took), 4 * took);
    assert_int_equal(pause_after(took), 8 * took);
    assert_int_equal(pause_after(took), 16 * took);
    assert_int_equal(pause_after(took), 32 * took);
    assert_int_equal(pause_after(took), 32 * took);
    for (int i = 0; i < 256; i++)
        aq_contention_judge(1000, 0);
    assert_true(aq_contention_yields_well());
    aq_contention_judge(took, 0);
    assert_int_equal(pause_after(took), 4 * took);
}

/* --- where a rank has waited --- */

static void test_place(void **state)
{
    static const uint32_t one_host[RANKS] = { 0, 1, 2, 3, 4, 5 };
    static const uint32_t second_host[RANKS] = { 6, 7, 8, 9, 10, 11 };

    (void)state;
    sim_job.host_ranks = one_host;
    sim_job.host_rank = 1;
    memset(&aq_contention_self, 0, sizeof(aq_contention_self));
    sim.core[1] = 2;
    assert_false(aq_contention_look());
    atomic_store(&jobarea.cores[0], 3);
    atomic_store(&jobarea.cores[2], 1);
    assert_int_equal(aq_contention_place_of(0), AQ_PLACE_OWN_CORE);
    assert_int_equal(aq_contention_place_of(2), AQ_PLACE_OTHER_CORE);
    assert_int_equal(aq_contention_place_of(3), AQ_PLACE_UNKNOWN); /* has not waited */
    assert_int_equal(aq_contention_place_of(RANKS), AQ_PLACE_UNKNOWN);
    assert_int_equal(aq_contention_place_of(GEX_RANK_INVALID), AQ_PLACE_UNKNOWN);
    sim_job.host_ranks = second_host;
    assert_int_equal(aq_contention_place_of(0), AQ_PLACE_UNKNOWN);
    assert_int_equal(aq_contention_place_of(6), AQ_PLACE_UNKNOWN);
    sim_job.host_ranks = NULL;
}

/* --- spinning first on a shared core --- */

/* Of so many waits, how many spin first? Each of them is answered, or none is. */
static unsigned spin_first(unsigned waits, bool answered)
{
    unsigned first = 0;

    for (unsigned i = 0; i < waits; i++) {
        if (!aq_contention_spins_first())
            continue;
        first++;
        aq_contention_note_spin(answered);
    }
    return first;
}

static void share_with(unsigned peers)
{
    memset(&aq_contention_self, 0, sizeof(aq_contention_self));
    aq_contention_self.peers = peers;
}

static void test_spins_first_if_answered(void **state)
{
    unsigned waits = 0;

    (void)state;
    share_with(1);
    assert_in_range(spin_first(64, false), 1, 8); /* it tries now and then */
    while (spin_first(1, true) == 0)
        assert_true(++waits < 16);
    assert_int_equal(spin_first(100, true), 100);
    assert_in_range(spin_first(64, false), 16, 48); /* it gives up, but not at once */
    assert_in_range(spin_first(64, false), 1, 8);
}

/* A peer on this core may be the one that the client waits for. */
static void test_gives_way_now_and_then(void **state)
{
    (void)state;
    share_with(1);
    spin_first(64, true);
    assert_in_range(spin_first(20000, true), 19980, 19999);
}

static void test_spins_first_not_in_a_crowd(void **state)
{
    (void)state;
    share_with(AQ_CROWD);
    assert_int_equal(spin_first(64, true), 0);
}

/* As long as yields return soon, a wait spins for one answer; if they do not, for a wake-up too. */
static void test_spins_on_if_yields_are_slow(void **state)
{
    (void)state;
    share_with(1);
    spin_first(64, true);
    assert_true(aq_contention_spins_first());
    assert_false(aq_contention_spins_on());
    aq_contention_self.slow_until = sim.now + MS;
    assert_true(aq_contention_spins_first());
    assert_true(aq_contention_spins_on());
    sim.now += MS / 20;
    assert_true(aq_contention_spins_on());
    sim.now += MS / 20;
    assert_false(aq_contention_spins_on());
    assert_in_range(spin_first(64, false), 8, 16); /* that is dear: it gives up sooner */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_last_moves, setup),
        cmocka_unit_test_setup(test_three_part, setup),
        cmocka_unit_test_setup(test_only_to_free_cores, setup),
        cmocka_unit_test_setup(test_affinity_restored, setup),
        cmocka_unit_test_setup(test_all_taken_stays, setup),
        cmocka_unit_test_setup(test_bound_stays, setup),
        cmocka_unit_test_setup(test_refused_stays, setup),
        cmocka_unit_test_setup(test_others_later, setup),
        cmocka_unit_test_setup(test_others_that_look_rarely, setup),
        cmocka_unit_test_setup(test_others_count_afresh, setup),
        cmocka_unit_test_setup(test_others_count_afresh_elsewhere, setup),
        cmocka_unit_test_setup(test_becomes_last, setup),
        cmocka_unit_test_setup(test_once_a_millisecond, setup),
        cmocka_unit_test_setup(test_many_ranks_are_no_program, setup),
        cmocka_unit_test_setup(test_spins_first_if_answered, setup),
        cmocka_unit_test_setup(test_gives_way_now_and_then, setup),
        cmocka_unit_test_setup(test_spins_first_not_in_a_crowd, setup),
        cmocka_unit_test_setup(test_pauses_grow, setup),
        cmocka_unit_test_setup(test_place, setup),
        cmocka_unit_test_setup(test_spins_on_if_yields_are_slow, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
