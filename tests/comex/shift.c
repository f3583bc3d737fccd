/*
 * shift.c - accumulate, put and get around the ring, of 8 bytes to 8 MiB: over the world, and over
 * all ranks in reversed order. A rank writes to its right neighbour and reads from its left one.
 *
 *   shift [BYTES]    up to so many
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_test.h"

#define LONGEST (8 << 20)

static double number(int rank, size_t i)
{
    return rank + 1 + (double)(i % 1000);
}

/* Are the n numbers scale * those of a rank? */
static void check_numbers(const char *what, const double *x, size_t n, int rank, double scale)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != scale * number(rank, i)) {
            CHECK(0, "%s of %zu: number %zu is %g", what, n, i, x[i]);
            return;
        }
}

static void shift(comex_group_t group, size_t longest)
{
    int rank, size;
    double *local = (double *)comex_malloc_local(longest), scale = 0.5;
    void **ring;

    WORKS(comex_group_rank(group, &rank));
    WORKS(comex_group_size(group, &size));
    ring = (void **)malloc((size_t)size * sizeof(*ring));
    WORKS(comex_malloc(ring, longest, group));
    for (size_t bytes = 8; bytes <= longest; bytes *= 32) {
        const int right = (rank + 1) % size, left = (rank + size - 1) % size;
        const size_t n = bytes / sizeof(double);

        for (size_t i = 0; i < n; i++)
            local[i] = number(rank, i);
        memset(ring[rank], 0, bytes);
        WORKS(comex_barrier(group));
        WORKS(comex_acc(COMEX_ACC_DBL, &scale, local, ring[right], (int)bytes, right, group));
        WORKS(comex_barrier(group));
        check_numbers("accumulates", (double *)ring[rank], n, left, scale);
        WORKS(comex_barrier(group));
        WORKS(comex_put(local, ring[right], (int)bytes, right, group));
        WORKS(comex_barrier(group));
        check_numbers("puts", (double *)ring[rank], n, left, 1);
        WORKS(comex_get(ring[left], local, (int)bytes, left, group));
        check_numbers("gets", local, n, (left + size - 1) % size, 1);
        WORKS(comex_barrier(group));
    }
    WORKS(comex_free(ring[rank], group));
    WORKS(comex_free_local(local));
    free(ring);
}

int main(int argc, char **argv)
{
    const size_t longest = argc > 1 ? (size_t)atol(argv[1]) : LONGEST;
    comex_group_t reversed;

    MPI_Init(&argc, &argv);
    WORKS(comex_init_args(&argc, &argv));
    test_started();
    reversed = test_reversed();
    shift(COMEX_GROUP_WORLD, longest);
    shift(reversed, longest);
    WORKS(comex_group_free(reversed));
    return test_finish();
}
