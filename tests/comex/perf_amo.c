/*
 * perf_amo.c - fetch-and-add of 1, 2, 4, ... ranks at once on one word of rank 0, in either width;
 * the others wait in a barrier. Prints the time of an operation, and checks the sums.
 *
 *   perf_amo [TIMES]   operations of a rank, 1000 by default
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_test.h"

static double run(int op, int ranks, int times, void *word)
{
    const double begin = MPI_Wtime();
    long before;

    for (int i = 0; i < times && me < ranks; i++)
        WORKS(comex_rmw(op, &before, word, 1, 0, COMEX_GROUP_WORLD));
    WORKS(comex_barrier(COMEX_GROUP_WORLD));
    return (MPI_Wtime() - begin) / times;
}

static long sum_of(int op, const void *word)
{
    return op == COMEX_FETCH_AND_ADD ? *(const int *)word : *(const long *)word;
}

static void measure(const char *name, int op, int times)
{
    void **words = (void **)malloc((size_t)nproc * sizeof(*words));

    WORKS(comex_malloc(words, me == 0 ? sizeof(long) : 0, COMEX_GROUP_WORLD));
    for (int ranks = 1; ranks <= nproc; ranks *= 2) {
        double seconds;

        if (me == 0)
            memset(words[0], 0, sizeof(long));
        WORKS(comex_barrier(COMEX_GROUP_WORLD));
        seconds = run(op, ranks, times, words[0]);
        if (me == 0) {
            CHECK_EQ(sum_of(op, words[0]), (long)ranks * times);
            printf("%s, %d ranks: %.3f us\n", name, ranks, seconds * 1e6);
        }
        WORKS(comex_barrier(COMEX_GROUP_WORLD));
    }
    WORKS(comex_free(words[me], COMEX_GROUP_WORLD));
    free(words);
}

int main(int argc, char **argv)
{
    const int times = argc > 1 ? atoi(argv[1]) : 1000;

    WORKS(comex_init_args(&argc, &argv));
    test_started();
    measure("int", COMEX_FETCH_AND_ADD, times);
    measure("long", COMEX_FETCH_AND_ADD_LONG, times);
    return test_finish();
}
