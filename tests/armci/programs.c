/*
 * programs.c - what known programs of ARMCI rely on and no other test has; tests/armci/README.md
 * says which program needs what.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <stdint.h>

#include "armcix.h"

#define MiB ((armci_size_t)1 << 20)

void ARMCIX_Get_world_comm(MPI_Comm *comm); /* in no header */

static int right, left;

/* Memory of size for each, all zero. */
static void make(void **base, armci_size_t size)
{
    CHECK_EQ(ARMCI_Malloc(base, size), 0);
    if (size < 64 * MiB)
        memset(base[me], 0, (size_t)size);
    ARMCI_Barrier();
}

static void unmake(void **base)
{
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
}

/* Broadcasts and sums of up to 131072 items from every root; more in one reduction. */
static void long_messages(void)
{
    enum { HIGHEST = 131072 };
    static int items[HIGHEST];
    static double values[2 * HIGHEST];

    for (int n = 1; n <= HIGHEST; n *= 8) {
        for (int root = 0; root < nproc; root++) {
            for (int i = 0; i < n; i++)
                items[i] = me == root ? root + i : -1;
            armci_msg_brdcst(items, n * (int)sizeof(int), root);
            CHECK(items[0] == root && items[n - 1] == root + n - 1, "broadcast of %d", n);
        }
        armci_msg_igop(items, n, (char *)"+");
        CHECK_EQ(items[n - 1], nproc * (nproc - 1 + n - 1));
    }
    for (int i = 0; i < 2 * HIGHEST; i++)
        values[i] = i;
    armci_msg_dgop(values, 2 * HIGHEST, (char *)"+");
    CHECK(values[2 * HIGHEST - 1] == (double)nproc * (2 * HIGHEST - 1), "%g",
          values[2 * HIGHEST - 1]);
    armci_msg_reduce(values, 2 * HIGHEST, (char *)"max", ARMCI_DOUBLE);
    CHECK(me != 0 || values[7] == 7.0 * nproc, "%g", values[7]);
}

/* 320 MiB that nobody touches, and two large arrays twice. */
static void untouched_memory(void)
{
    void *base[10][1024];

    for (int i = 0; i < 10; i++)
        CHECK_EQ(ARMCI_Malloc(base[i], 32 * MiB), 0);
    for (int i = 0; i < 10; i++)
        ARMCI_Free(base[i][me]);
    for (int round = 0; round < 2; round++) {
        make(base[0], 13 * MiB / 2);
        make(base[1], 13 * MiB / 2);
        ARMCI_PutValueInt(round, (int *)base[1][right] + 1000000, right);
        ARMCI_Barrier();
        CHECK_EQ(((int *)base[1][me])[1000000], round);
        unmake(base[0]);
        unmake(base[1]);
    }
}

/* A counter in memory that one rank has alone, the first or the last. */
static void lonely_counter(int owner)
{
    void *base[1024];
    long drawn = -1, last = -1;

    CHECK_EQ(ARMCI_Malloc(base, me == owner ? sizeof(long) : 0), 0);
    if (me == owner)
        *(long *)base[me] = 0;
    ARMCI_Barrier();
    for (int i = 0; i < 100; i++, last = drawn) {
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, base[owner], 1, owner);
        CHECK(drawn > last, "%ld after %ld", drawn, last);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(base[owner], owner), 100L * nproc);
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
}

/* Puts and gets mixed, to all, one wait; then all fences and a barrier of messages alone. */
static void implicit_mix(void)
{
    enum { EACH = 50 };
    void *base[1024];
    long out[EACH], in[1024][EACH];

    make(base, 2 * EACH * 1024 * sizeof(long));
    for (int i = 0; i < EACH; i++)
        ((long *)base[me])[EACH * 1024 + i] = 1000 * me + i;
    ARMCI_Barrier();
    for (int i = 0; i < EACH; i++) {
        out[i] = 500 * me + i;
        for (int p = 0; p < nproc; p++) {
            ARMCI_NbPut(&out[i], (long *)base[p] + EACH * me + i, sizeof(long), p, NULL);
            ARMCI_NbGet((long *)base[p] + EACH * 1024 + i, &in[p][i], sizeof(long), p, NULL);
        }
    }
    ARMCI_WaitAll();
    ARMCI_AllFence();
    armci_msg_barrier();
    for (int p = 0; p < nproc; p++)
        for (int i = 0; i < EACH; i++) {
            CHECK_EQ(in[p][i], 1000 * p + i);
            CHECK_EQ(((long *)base[me])[EACH * p + i], 500 * p + i);
        }
    unmake(base);
}

/* Two large transfers to two neighbours at once, a notification before their waits. */
static void two_neighbours(void)
{
    enum { BYTES = 10 << 20 };
    void *base[1024];
    char *ours = malloc(BYTES);
    armci_hdl_t handles[2];
    int waited;

    make(base, 2 * BYTES);
    memset(ours, 1 + me, BYTES);
    ARMCI_INIT_HANDLE(&handles[0]);
    ARMCI_INIT_HANDLE(&handles[1]);
    ARMCI_NbPut(ours, base[right], BYTES, right, &handles[0]);
    ARMCI_NbPut(ours, (char *)base[left] + BYTES, BYTES, left, &handles[1]);
    armci_notify(right);
    ARMCI_Wait(&handles[0]);
    ARMCI_Wait(&handles[1]);
    armci_notify_wait(left, &waited);
    ARMCI_Barrier();
    CHECK_EQ(((char *)base[me])[BYTES - 1], 1 + left);
    CHECK_EQ(((char *)base[me])[2 * BYTES - 1], 1 + right);
    unmake(base);
    free(ours);
}

/* A put to oneself that a loop of gets waits for; a reduction in place. */
static void own_memory(void)
{
    void *base[1024];
    long seen = 0, number = 7 + me;
    int *numbers;

    make(base, 64);
    ARMCI_Put(&number, base[me], sizeof(long), me);
    while (seen != number)
        ARMCI_Get(base[me], &seen, sizeof(long), me);
    ARMCI_Barrier();
    numbers = base[me];
    numbers[0] = -(me + 1);
    numbers[1] = me + 1;
    armci_msg_igop(numbers, 2, (char *)"absmin");
    CHECK(numbers[0] == 1 && numbers[1] == 1, "absmin: %d %d", numbers[0], numbers[1]);
    numbers[0] = -(me + 1);
    armci_msg_igop(numbers, 1, (char *)"absmax");
    CHECK_EQ(numbers[0], nproc);
    unmake(base);
}

/* A square patch of n x n doubles, put and added, and read in place after a barrier. */
static void square_patch(int n)
{
    int strides[1] = { n * (int)sizeof(double) }, count[2] = { n * (int)sizeof(double), n };
    double *ours = malloc((size_t)n * (size_t)n * sizeof(double)), scale = 2, zero = 0;
    void *base[1024];

    make(base, (armci_size_t)n * n * sizeof(double));
    for (long i = 0; i < (long)n * n; i++)
        ours[i] = (double)(me + i);
    ARMCI_PutS(ours, strides, base[right], strides, count, 1, right);
    ARMCI_AccS(ARMCI_ACC_DBL, &scale, ours, strides, base[right], strides, count, 1, right);
    ARMCI_AccS(ARMCI_ACC_DBL, &zero, ours, strides, base[right], strides, count, 1, right);
    ARMCI_Barrier();
    for (long i = 0; i < (long)n * n; i++)
        CHECK(((double *)base[me])[i] == 3.0 * (double)(left + i), "element %ld is %g", i,
              ((double *)base[me])[i]);
    unmake(base);
    free(ours);
}

/* All types and formats at once by everybody, each type to a place of its own. */
static void all_types_at_once(void)
{
    enum { TURNS = 200 };
    static const int ops[] = { ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_FLT,
                               ARMCI_ACC_DBL, ARMCI_ACC_CPL, ARMCI_ACC_DCP };
    const int sizes[] = { 4, 8, 4, 8, 8, 16 };
    const int i_one = 1;
    const long l_one = 1;
    const float f_one[2] = { 1, 0 };
    const double d_one[2] = { 1, 0 };
    const void *ones[] = { &i_one, &l_one, f_one, d_one, f_one, d_one };
    char *from[6];
    void *base[1024];

    make(base, 6 * 64);
    for (int t = 0; t < 6; t++)
        from[t] = (char *)(uintptr_t)ones[t];
    for (int turn = 0; turn < TURNS; turn++) {
        for (int t = 0; t < 6; t++) {
            char *to = (char *)base[0] + 64 * t;
            void *src[1] = { from[t] }, *dst[1] = { to };
            int none[1] = { sizes[t] }, count[2] = { sizes[t], 1 };
            armci_giov_t list = { src, dst, sizes[t], 1 };

            if ((turn + t) % 3 == 0)
                CHECK_EQ(ARMCI_Acc(ops[t], from[t], from[t], to, sizes[t], 0), 0);
            else if ((turn + t) % 3 == 1)
                CHECK_EQ(ARMCI_AccS(ops[t], from[t], from[t], none, to, none, count, 1, 0), 0);
            else
                CHECK_EQ(ARMCI_AccV(ops[t], from[t], &list, 1, 0), 0);
        }
    }
    ARMCI_Barrier();
    if (me == 0) {
        char *sums = base[0];

        CHECK_EQ(*(int *)sums, TURNS * nproc);
        CHECK_EQ(*(long *)(sums + 64), TURNS * nproc);
        CHECK_EQ(*(float *)(sums + 128), TURNS * nproc);
        CHECK_EQ(*(double *)(sums + 192), TURNS * nproc);
        CHECK_EQ(*(float *)(sums + 256), TURNS * nproc);
        CHECK_EQ(*(double *)(sums + 320), TURNS * nproc);
        CHECK(((double *)(sums + 320))[1] == 0, "an imaginary part");
    }
    unmake(base);
}

/* A member puts, the group meets, and only then do its members fence. */
static void group_then_fence(void)
{
    ARMCI_Group evens;
    void *base[1024];
    int list[1024], n = 0, size = -1, rank;

    for (int p = 0; p < nproc; p += 2)
        list[n++] = p;
    make(base, 64);
    ARMCI_Group_create(n, list, &evens);
    ARMCI_Group_size(&evens, &size); /* legal for all; the true size or 0 */
    CHECK(size == n || (size == 0 && me % 2 == 1), "%d of %d", size, n);
    if (ARMCI_Group_rank(&evens, &rank) == 0) {
        ARMCI_PutValueLong(100 + me, base[list[(rank + 1) % n]], list[(rank + 1) % n]);
        armci_msg_group_barrier(&evens);
        for (int i = 0; i < n; i++)
            ARMCI_Fence(ARMCI_Absolute_id(&evens, i));
        armci_msg_group_barrier(&evens);
        CHECK_EQ(*(long *)base[me], 100 + list[(rank + n - 1) % n]);
        ARMCI_Group_free(&evens);
    }
    unmake(base);
}

/* All mutexes of all ranks in turn; data that a fence completes before the unlock. */
static void every_mutex(void)
{
    void *base[1024];

    make(base, 64);
    CHECK_EQ(ARMCI_Create_mutexes(1 + me % 3), 0);
    for (int turn = 0; turn < 10; turn++) {
        for (int p = 0; p < nproc; p++) {
            for (int m = 0; m < 1 + p % 3; m++) {
                ARMCI_Lock(m, p);
                ARMCI_PutValueLong(turn, (long *)base[me] + m, me);
                ARMCI_Unlock(m, p);
            }
        }
    }
    ARMCI_Lock(0, 0);
    ARMCI_PutValueLong(1 + ARMCI_GetValueLong((long *)base[nproc - 1] + 5, nproc - 1),
                       (long *)base[nproc - 1] + 5, nproc - 1);
    ARMCI_Fence(nproc - 1);
    ARMCI_Unlock(0, 0);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong((long *)base[nproc - 1] + 5, nproc - 1), nproc);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_Destroy_mutexes(), 0);
    unmake(base);
}

/* Communicators of groups are good for MPI's own collectives. */
static void communicators(void)
{
    ARMCI_Group world;
    MPI_Comm comm = MPI_COMM_NULL;
    int sum = 1;

    ARMCI_Group_get_world(&world);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, world.comm);
    CHECK_EQ(sum, nproc);
    ARMCIX_Get_world_comm(&comm);
    MPI_Bcast(&sum, 1, MPI_INT, nproc - 1, comm);
    MPI_Comm_size(comm, &sum);
    CHECK_EQ(sum, nproc);
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    CHECK_EQ(ARMCI_Init_args(&argc, &argv), 0);
    right = (me + 1) % nproc;
    left = (me + nproc - 1) % nproc;
    long_messages();
    untouched_memory();
    lonely_counter(0);
    lonely_counter(nproc - 1);
    implicit_mix();
    two_neighbours();
    own_memory();
    square_patch(1);
    square_patch(1024);
    all_types_at_once();
    group_then_fence();
    every_mutex();
    communicators();
    ARMCI_Barrier();
    armci_msg_igop(&failures, 1, (char *)"+");
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    ARMCI_Finalize();
    ARMCI_Finalize();
    MPI_Finalize();
    return failures != 0;
}
