/*
 * comex_test.h - what the programs of tests/comex share: checks, groups, a last line. They use
 * comex.h and MPI, as programs of ComEx do.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef COMEX_TEST_H
#define COMEX_TEST_H 1

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "comex.h"

#define WORKS(call) CHECK_EQ(call, COMEX_SUCCESS)
#define FAILS(call) CHECK_EQ(call, COMEX_FAILURE)

/* Learns the ranks; after the start of ComEx. */
static inline void test_started(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    WORKS(comex_group_rank(COMEX_GROUP_WORLD, &me));
    WORKS(comex_group_size(COMEX_GROUP_WORLD, &nproc));
}

/* Sums up the failures of the world, prints the last line, ends ComEx. */
static inline int test_end(void)
{
    MPI_Comm comm;

    WORKS(comex_group_comm(COMEX_GROUP_WORLD, &comm));
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, comm);
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    WORKS(comex_finalize());
    return failures != 0;
}

static inline int test_finish(void)
{
    const int status = test_end();

    MPI_Finalize();
    return status;
}

/* The group of ranks first, first + step, ... of the world, n of them. */
static inline comex_group_t test_group(int first, int step, int n)
{
    int *ranks = (int *)malloc((size_t)(n > 0 ? n : 1) * sizeof(int));
    comex_group_t group;

    for (int i = 0; i < n; i++)
        ranks[i] = first + i * step;
    WORKS(comex_group_create(n, ranks, COMEX_GROUP_WORLD, &group));
    free(ranks);
    return group;
}

/* The caller's half of the world. */
static inline comex_group_t test_half(void)
{
    const int low = (nproc + 1) / 2;

    return me < low ? test_group(0, 1, low) : test_group(low, 1, nproc - low);
}

/* All ranks in reversed order. */
static inline comex_group_t test_reversed(void)
{
    return test_group(nproc - 1, -1, nproc);
}

#endif
