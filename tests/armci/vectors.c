/*
 * vectors.c - a blocking vector call has all its descriptors under way at once, and a put returns
 * before they have arrived: times over a network with a delay, beside single gets.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#define DESCRIPTORS 32
#define SEGMENTS    4
#define BYTES       (DESCRIPTORS * SEGMENTS * 16)

static void *base[1024];
static int right;

/* Descriptor i has SEGMENTS segments of 8 bytes; each second word of the remote memory is none. */
static void describe(armci_giov_t *darr, void **local_list, void **remote_list, long *local,
                     int is_put)
{
    for (int i = 0; i < DESCRIPTORS; i++) {
        const int at = i * SEGMENTS;

        for (int k = at; k < at + SEGMENTS; k++) {
            local_list[k] = local + k;
            remote_list[k] = (long *)base[right] + 2 * k;
        }
        darr[i] =
            (armci_giov_t){ is_put ? local_list + at : remote_list + at,
                            is_put ? remote_list + at : local_list + at, sizeof(long), SEGMENTS };
    }
}

static double put_all(void)
{
    long values[DESCRIPTORS * SEGMENTS];
    void *local[DESCRIPTORS * SEGMENTS], *remote[DESCRIPTORS * SEGMENTS];
    armci_giov_t darr[DESCRIPTORS];
    double start;

    for (int i = 0; i < DESCRIPTORS * SEGMENTS; i++)
        values[i] = 1000 * me + i;
    describe(darr, local, remote, values, 1);
    start = armci_timer();
    CHECK_EQ(ARMCI_PutV(darr, DESCRIPTORS, right), 0);
    start = armci_timer() - start;
    /* source, lists and descriptors belong to the program again */
    memset(values, -1, sizeof(values));
    memset(local, -1, sizeof(local));
    memset(remote, -1, sizeof(remote));
    memset(darr, -1, sizeof(darr));
    return start;
}

static double get_all(void)
{
    long values[DESCRIPTORS * SEGMENTS] = { 0 };
    void *local[DESCRIPTORS * SEGMENTS], *remote[DESCRIPTORS * SEGMENTS];
    armci_giov_t darr[DESCRIPTORS];
    double start;

    describe(darr, local, remote, values, 0);
    start = armci_timer();
    CHECK_EQ(ARMCI_GetV(darr, DESCRIPTORS, right), 0);
    start = armci_timer() - start;
    for (int i = 0; i < DESCRIPTORS * SEGMENTS; i++)
        CHECK_EQ(values[i], 1000 * me + i);
    return start;
}

/* As many gets one after the other. */
static double get_each(void)
{
    const double start = armci_timer();
    long value;

    for (int i = 0; i < DESCRIPTORS; i++)
        ARMCI_Get(base[right], &value, sizeof(value), right);
    return armci_timer() - start;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    enum { TRIES = 3 };
    double each, put, got;

    test_start(&argc, &argv);
    right = (me + 1) % nproc;
    CHECK_EQ(ARMCI_Malloc(base, BYTES), 0);
    memset(base[me], 0, BYTES);
    ARMCI_Barrier();
    each = get_each();
    put = got = each;
    for (int i = 0; i < TRIES; i++) { /* a busy machine may hold up one of them */
        put = smaller(put, put_all());
        ARMCI_Fence(right);
        got = smaller(got, get_all());
    }
    printf("%d gets %.1f ms; as many descriptors: put %.1f ms, get %.1f ms\n", DESCRIPTORS,
           1e3 * each, 1e3 * put, 1e3 * got);
    CHECK(got < each / 2, "%.1f and %.1f ms", 1e3 * got, 1e3 * each);
    CHECK(put < each / 4, "%.1f and %.1f ms", 1e3 * put, 1e3 * each);
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
    return test_finish();
}
