/*
 * accumulate.c - a million accumulates to overlapping sections at once, in all formats and integer
 * types, from ranks that map the memory and ranks that do not: the sums are exact.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#define TOTAL   1000000
#define LONGS   4096 /* 32 KiB: two stretches, with a border inside */
#define LONGEST 16

static void *base[1024];
static long sums[LONGS]; /* what this rank has added */

static void contiguous(long *target, unsigned *seed)
{
    const int n = 1 + (int)test_random(seed, LONGEST), at = (int)test_random(seed, LONGS - LONGEST);
    long values[LONGEST], scale = 1 + (long)test_random(seed, 3);

    for (int i = 0; i < n; i++) {
        values[i] = (long)test_random(seed, 1000) - 500;
        sums[at + i] += scale * values[i];
    }
    ARMCI_Acc(ARMCI_ACC_LNG, &scale, values, target + at, n * (int)sizeof(long), 0);
}

/* Two columns of some rows, which go over the border between the stretches. */
static void strided(long *target, unsigned *seed)
{
    const int rows = 2 + (int)test_random(seed, 7),
              at = LONGS / 2 - 64 + (int)test_random(seed, 64);
    int from[1] = { 2 * sizeof(long) }, to[1] = { 16 * sizeof(long) },
        count[2] = { 2 * sizeof(long), rows };
    long values[2 * 8], scale = 2;

    for (int i = 0; i < 2 * rows; i++) {
        values[i] = (long)test_random(seed, 1000);
        sums[at + i / 2 * 16 + i % 2] += scale * values[i];
    }
    ARMCI_AccS(ARMCI_ACC_LNG, &scale, values, from, target + at, to, count, 1, 0);
}

static void vector(long *target, unsigned *seed)
{
    long values[3], scale = -1;
    void *from[3], *to[3];
    armci_giov_t list = { from, to, sizeof(long), 3 };

    for (int i = 0; i < 3; i++) {
        const int at = (int)test_random(seed, LONGS / 3) * 3 + i;

        values[i] = (long)test_random(seed, 1000);
        from[i] = &values[i];
        to[i] = target + at % LONGS;
        sums[at % LONGS] += scale * values[i];
    }
    ARMCI_AccV(ARMCI_ACC_LNG, &scale, &list, 1, 0);
}

int main(int argc, char **argv)
{
    const int total = argc > 1 && atoi(argv[argc - 1]) > 0 ? atoi(argv[argc - 1]) : TOTAL;
    unsigned seed;
    double start;

    test_start(&argc, &argv);
    seed = 77u + (unsigned)me;
    ARMCI_Malloc(base, LONGS * sizeof(long));
    memset(base[me], 0, LONGS * sizeof(long));
    ARMCI_Barrier();
    start = armci_timer();
    for (int i = 0; i < total / nproc; i++) {
        if (i % 3 == 0)
            strided(base[0], &seed);
        else if (i % 3 == 1)
            vector(base[0], &seed);
        else
            contiguous(base[0], &seed);
    }
    ARMCI_Barrier();
    if (me == 0)
        printf("%d accumulates in %.2f s\n", total, armci_timer() - start);
    armci_msg_lgop(sums, LONGS, "+");
    for (int i = 0; i < LONGS && me == 0; i++)
        CHECK(((long *)base[0])[i] == sums[i], "element %d is %ld, not %ld", i,
              ((long *)base[0])[i], sums[i]);
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
    return test_finish();
}
