/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_choose.c - the mpi conduit's choices: which transfers share messages, by the user's
 * settings; which packets are split, by the measurement.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "conduits/mpi/aq_mpi_choose.h"
#include "conduits/mpi/aq_mpi_packet.h"

struct settings {
    const char *rma, *put_from, *direct, *coalesce;
    size_t max;
};

static void set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Exits with 0 if max follows from the settings. */
static void check_settings(void *arg)
{
    const struct settings *s = arg;

    set("GASNET_MPI_RMA", s->rma);
    set("GASNET_MPI_PUT_FROM", s->put_from);
    set("GASNET_MPI_GET_FROM", "16");
    set("GASNET_MPI_DIRECT", s->direct);
    set("GASNET_MPI_COALESCE", s->coalesce);
    aq_env_init();
    if (s->coalesce == NULL && aq_mpi_choose_coalesced_get() > 15)
        _exit(2);
    _exit(aq_mpi_choose_coalesced_put() == s->max ? 0 : 1);
}

/* Each of n settings in a process of its own; check() exits with 0 if all is right. */
static void try_each(const struct settings *all, size_t n, void (*check)(void *))
{
    for (size_t i = 0; i < n; i++) {
        struct settings one = all[i];
        struct aq_unit_result result;

        aq_unit_run(check, &one, &result);
        assert_int_equal(aq_unit_exit_code(&result), 0);
    }
}

/* Another way that the user has asked for wins, unless the user has asked for coalescing too. */
static void test_settings(void **state)
{
    static const struct settings all[] = {
        { NULL, NULL, NULL, NULL, 512 },      { "messages", NULL, NULL, NULL, 512 },
        { "window", NULL, NULL, NULL, 0 },    { "window", NULL, NULL, "64", 64 },
        { "window", "32", NULL, NULL, 31 },   { NULL, "4096", NULL, NULL, 512 },
        { NULL, "0", NULL, NULL, 0 },         { NULL, "0", NULL, "8", 8 },
        { "messages", NULL, "1", NULL, 0 },   { "messages", NULL, "1", "248", 248 },
        { "messages", "32", "16", NULL, 15 }, { NULL, NULL, NULL, "0", 0 },
    };

    (void)state;
    try_each(all, sizeof(all) / sizeof(all[0]), check_settings);
}

/* Times of a large message, of two eager ones, and of the packets in between. */
static size_t split_above(uint64_t large, uint64_t two, uint64_t first, uint64_t second)
{
    struct aq_mpi_latency min = { .split = two, .whole = { first, second } };

    min.message[AQ_MPI_SPLIT_SIZE] = large;
    return aq_mpi_choose_split(&min);
}

static void test_split(void **state)
{
    (void)state;
    assert_int_equal(split_above(1000, 900, 100, 100), 0);
    assert_int_equal(split_above(1000, UINT64_MAX, UINT64_MAX, UINT64_MAX), 0);
    assert_int_equal(split_above(1000, 500, 600, 100), AQ_MPI_EAGER);
    assert_int_equal(split_above(1000, 500, UINT64_MAX, UINT64_MAX), AQ_MPI_EAGER);
    assert_int_equal(split_above(1000, 500, 300, 900), aq_mpi_whole_sizes[0]);
    assert_int_equal(split_above(1000, 500, 300, 350), aq_mpi_whole_sizes[1]);
}

/* A window that needs polls of its target serves nothing, however quick it was while measured. */
static void test_window(void **state)
{
    struct aq_mpi_cost cost = { .known = true, .min = { .get = { 1, 1, 1 } } };
    struct aq_mpi_paths paths;

    (void)state;
    for (unsigned i = 0; i < AQ_MPI_SIZES; i++)
        cost.min.message[i] = 100;
    aq_mpi_choose_paths(&cost, &paths);
    assert_false(paths.one_sided);
    assert_true(paths.put_from == AQ_MPI_NEVER && paths.get_from == AQ_MPI_NEVER);
    cost.one_sided = true;
    aq_mpi_choose_paths(&cost, &paths);
    assert_true(paths.put_from == 0 && paths.get_from == 0);
    assert_false(paths.slow);
    cost.min.get[0] = cost.min.get[1] = 130;
    aq_mpi_choose_paths(&cost, &paths);
    assert_true(paths.slow);
}

/* Exits with 0 if direct transfers begin where they should: gets beyond a packet. */
static void check_direct(void *arg)
{
    const struct settings *s = arg;

    set("GASNET_MPI_DIRECT", s->direct);
    aq_env_init();
    aq_mpi_choose_none();
    _exit(aq_mpi_rma.paths[0].direct_get == s->max
                  && aq_mpi_rma.paths[0].direct_put == (s->direct == NULL ? 65536 : s->max)
              ? 0
              : 1);
}

static void test_direct(void **state)
{
    static const struct settings all[] = { { .max = AQ_MPI_INLINE + 1 },
                                           { .direct = "100", .max = 100 } };

    (void)state;
    try_each(all, sizeof(all) / sizeof(all[0]), check_direct);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_settings),
                                        cmocka_unit_test(test_window),
                                        cmocka_unit_test(test_direct),
                                        cmocka_unit_test(test_split) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
