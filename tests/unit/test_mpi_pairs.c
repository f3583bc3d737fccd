/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_pairs.c - which pairs of ranks measure for all of their class: one on a host, wherever
 * there is one, and one between hosts; none that shares memory.
 */
#include "tests/unit/aq_unit.h"

#include "conduits/mpi/aq_mpi_pairs.h"

#define HIGHEST 8

static void find(const gex_Rank_t *host_of, const gex_Rank_t *nbrhd_of, gex_Rank_t size,
                 struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES])
{
    gex_Rank_t first[HIGHEST], hosts = 0;

    for (gex_Rank_t rank = 0; rank < size; rank++)
        hosts = host_of[rank] >= hosts ? host_of[rank] + 1 : hosts;
    aq_mpi_pairs_find(host_of, nbrhd_of, size, hosts, first, pairs);
}

static void check_pair(const struct aq_mpi_remote_pair *pair, gex_Rank_t lead, gex_Rank_t other)
{
    assert_true(pair->exists);
    assert_int_equal(pair->lead, lead);
    assert_int_equal(pair->other, other);
}

static void test_one_host(void **state)
{
    const gex_Rank_t host_of[] = { 0, 0, 0, 0 }, nbrhd_of[] = { 0, 0, 1, 1 };
    struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES];

    (void)state;
    find(host_of, nbrhd_of, 4, pairs);
    check_pair(&pairs[AQ_MPI_SAME_HOST], 0, 2);
    assert_false(pairs[AQ_MPI_OTHER_HOST].exists);
}

static void test_hosts_that_share(void **state)
{
    const gex_Rank_t host_of[] = { 0, 0, 1, 1 }, nbrhd_of[] = { 0, 0, 1, 1 };
    struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES];

    (void)state;
    find(host_of, nbrhd_of, 4, pairs);
    assert_false(pairs[AQ_MPI_SAME_HOST].exists);
    check_pair(&pairs[AQ_MPI_OTHER_HOST], 0, 2);
}

/* Rank 0's host has no far pair of its own; another one has. */
static void test_pair_elsewhere(void **state)
{
    const gex_Rank_t host_of[] = { 0, 1, 0, 1, 1 }, nbrhd_of[] = { 0, 1, 0, 1, 2 };
    struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES];

    (void)state;
    find(host_of, nbrhd_of, 5, pairs);
    check_pair(&pairs[AQ_MPI_SAME_HOST], 1, 4);
    check_pair(&pairs[AQ_MPI_OTHER_HOST], 0, 1);
}

static void test_nobody_remote(void **state)
{
    const gex_Rank_t host_of[] = { 0, 0 }, nbrhd_of[] = { 0, 0 };
    struct aq_mpi_remote_pair pairs[AQ_MPI_CLASSES];

    (void)state;
    find(host_of, nbrhd_of, 2, pairs);
    assert_false(pairs[AQ_MPI_SAME_HOST].exists);
    assert_false(pairs[AQ_MPI_OTHER_HOST].exists);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_hosts_that_share),
        cmocka_unit_test(test_pair_elsewhere),
        cmocka_unit_test(test_nobody_remote),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
