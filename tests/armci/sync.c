/*
 * sync.c - rmw, mutexes, notify, puts with a flag, and targets that call nothing: they compute,
 * sleep, wait in MPI.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <unistd.h>

#include "armcix.h"

#define TURNS 200

static void *base[1024];
static int one_sided; /* targets serve without calling; not over mpi with plain MPI_Init */

static long *words(int proc)
{
    return base[proc];
}

static void clear(void)
{
    memset(base[me], 0, 4096);
    ARMCI_Barrier();
}

/* Both sets of operation codes, both widths; every number is drawn once. */
static void rmw(void)
{
    int drawn = 0, last = -1;
    long wide = 0;

    clear();
    for (int i = 0; i < TURNS; i++) {
        ARMCI_Rmw(i % 2 ? ARMCI_FETCH_AND_ADD : 0, &drawn, words(0), 1, 0);
        CHECK(drawn > last, "%d after %d", drawn, last);
        last = drawn;
        ARMCI_Rmw(i % 2 ? ARMCI_FETCH_AND_ADD_LONG : 1, &wide, words(0) + 1, -3, 0);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueInt(base[0], 0), TURNS * nproc);
    CHECK_EQ(ARMCI_GetValueLong(words(0) + 1, 0), -3L * TURNS * nproc);
    ARMCI_Barrier();
    drawn = 100 + me;
    ARMCI_Rmw(ARMCI_SWAP, &drawn, words((me + 1) % nproc) + 2, 0, (me + 1) % nproc);
    wide = 1L << 40;
    ARMCI_Rmw(ARMCI_SWAP_LONG, &wide, words((me + 1) % nproc) + 3, 0, (me + 1) % nproc);
    CHECK_EQ(drawn, 0);
    CHECK_EQ(wide, 0);
    ARMCI_Barrier();
    CHECK_EQ(*(int *)(words(me) + 2), 100 + (me + nproc - 1) % nproc);
    CHECK_EQ(words(me)[3], 1L << 40);
    ARMCI_Barrier();
}

/* A lock that programs make of swap. */
static void swap_lock(void)
{
    clear();
    for (int i = 0; i < TURNS / 10; i++) {
        int locked = 1;
        long sum;

        do
            ARMCI_Rmw(ARMCI_SWAP, &locked, words(0), 0, 0);
        while (locked == 1);
        sum = ARMCI_GetValueLong(words(0) + 1, 0);
        ARMCI_PutValueLong(sum + 1, words(0) + 1, 0);
        ARMCI_Fence(0);
        locked = 0;
        ARMCI_Rmw(ARMCI_SWAP, &locked, words(0), 0, 0);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(words(0) + 1, 0), TURNS / 10 * nproc);
    ARMCI_Barrier();
}

/* Data of the mutex's own host need no fence; counts differ, also 0. */
static void mutexes(void)
{
    CHECK_EQ(ARMCI_Create_mutexes(me == nproc - 1 ? -1 : 1), FAIL); /* on every rank */
    CHECK_EQ(ARMCI_Create_mutexes(me % 2 == 0 ? 2 : 0), 0);
    CHECK(ARMCI_Create_mutexes(1) != 0, "a second set");
    clear();
    for (int i = 0; i < TURNS; i++) {
        const int host = i % 3 == 0 && nproc > 2 ? 2 : 0, mutex = i % 2;
        const long sum = (ARMCI_Lock(mutex, host), ARMCI_GetValueLong(words(host) + mutex, host));

        ARMCI_PutValueLong(sum + 1, words(host) + mutex, host);
        ARMCI_Unlock(mutex, host);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(words(0), 0) + ARMCI_GetValueLong(words(0) + 1, 0)
                 + (nproc > 2
                        ? ARMCI_GetValueLong(words(2), 2) + ARMCI_GetValueLong(words(2) + 1, 2)
                        : 0),
             (long)TURNS * nproc);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_Destroy_mutexes(), 0);
    CHECK(ARMCI_Destroy_mutexes() != 0, "no set");
}

static void mutex_sets(void)
{
    ARMCI_Group world, first;
    armcix_mutex_hdl_t set;
    int zero = 0;

    clear();
    ARMCI_Group_get_world(&world);
    set = ARMCIX_Create_mutexes_hdl(1, &world);
    for (int i = 0; i < TURNS / 10; i++) {
        const int host = nproc - 1;

        while (ARMCIX_Trylock_hdl(set, 0, host) != 0)
            ARMCIX_Progress();
        ARMCI_PutValueLong(ARMCI_GetValueLong(words(host), host) + 1, words(host), host);
        ARMCIX_Unlock_hdl(set, 0, host);
        ARMCIX_Lock_hdl(set, 0, host);
        ARMCIX_Unlock_hdl(set, 0, host);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(words(nproc - 1), nproc - 1), TURNS / 10 * nproc);
    CHECK_EQ(ARMCIX_Destroy_mutexes_hdl(set), 0);
    CHECK(ARMCIX_Create_mutexes_hdl(me == 0 ? -1 : 1, NULL) == NULL, "a negative count");
    ARMCI_Group_create(1, &zero, &first);
    set = ARMCIX_Create_mutexes_hdl(1, &first);
    CHECK((set != NULL) == (me == 0), "a set of rank 0 alone: %p", (void *)set);
    if (set != NULL)
        ARMCIX_Lock_hdl(set, 0, 0), ARMCIX_Unlock_hdl(set, 0, 0);
    CHECK_EQ(ARMCIX_Destroy_mutexes_hdl(set), me == 0 ? 0 : FAIL);
    ARMCI_Group_free(&first);
}

/* A ring: data, then the notification, which is waited for once each. */
static void notify(void)
{
    const int right = (me + 1) % nproc, left = (me + nproc - 1) % nproc;
    int waited;

    clear();
    for (int i = 1; i <= TURNS; i++) {
        ARMCI_PutValueLong(i, words(right) + i % 100, right);
        CHECK_EQ(armci_notify(right), i);
        CHECK(armci_notify_wait(left, &waited) >= i, "turn %d", i);
        CHECK_EQ(waited, i);
        CHECK(words(me)[i % 100] >= i, "turn %d: %ld", i, words(me)[i % 100]);
    }
    ARMCI_Barrier();
}

/* The receiver looks at a plain number and calls nothing. */
static void put_with_flag(void)
{
    static double section[64];
    int strides[1] = { 16 * sizeof(double) }, count[2] = { 4 * sizeof(double), 4 };
    volatile int *flag = (volatile int *)(words(me) + 400);

    if (!one_sided)
        return;
    clear();
    for (int i = 0; i < 64; i++)
        section[i] = me + i;
    if (me != 0)
        ARMCI_PutS_flag(section, strides, words(me - 1), strides, count, 1,
                        (int *)(words(me - 1) + 400), me, me - 1);
    if (me != nproc - 1) {
        while (*flag == 0)
            usleep(10);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        CHECK_EQ(*flag, me + 1);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(((double *)base[me])[16 * i + 3], me + 1 + 16 * i + 3);
    }
    ARMCI_Barrier();
    ARMCI_Put_flag(section, base[me], 8, (int *)(words(me) + 400), 77, me);
    CHECK_EQ(*flag, 77);
    ARMCI_Barrier();
}

/* A call that fails touches neither data nor flag. */
static void put_without_flag(void)
{
    const int right = (me + 1) % nproc;
    int strides[1] = { 16 }, count[2] = { 8, 2 };
    long data[4] = { 1, 2, 3, 4 };

    clear();
    CHECK_EQ(ARMCI_Put_flag(data, base[right], 8, NULL, 1, right), FAIL);
    CHECK_EQ(ARMCI_PutS_flag(data, strides, base[right], strides, count, 1, NULL, 1, right), FAIL);
    CHECK_EQ(ARMCI_PutS_flag(NULL, strides, base[right], strides, count, 1,
                             (int *)(words(right) + 400), 1, right),
             FAIL);
    CHECK_EQ(ARMCI_Put_flag(data, base[right], 8, (int *)(words(right) + 400), 1, nproc), FAIL5);
    ARMCI_Barrier();
    CHECK(words(me)[0] == 0 && words(me)[2] == 0 && words(me)[400] == 0, "%ld %ld %ld",
          words(me)[0], words(me)[2], words(me)[400]);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_PutS_flag_dir(data, strides, base[right], strides, count, 1,
                                 (int *)(words(right) + 400), 5, right),
             0);
    ARMCI_Barrier();
    CHECK(words(me)[2] == 3 && *(int *)(words(me) + 400) == 5, "%ld %ld", words(me)[2],
          words(me)[400]);
    ARMCI_Barrier();
}

/* Everything at a target that is in MPI, then at one that sleeps. */
static void quiet_target(void)
{
    double one = 1, x = 1, *sum;
    int drawn;

    CHECK_EQ(ARMCI_Create_mutexes(1), 0);
    for (int part = 0; part < 2 && one_sided; part++) {
        clear();
        sum = (double *)(words(0) + 8);
        if (me != 0) {
            for (int i = 0; i < 20; i++) {
                ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &drawn, words(0), 1, 0);
                ARMCI_Acc(ARMCI_ACC_DBL, &one, &x, sum, sizeof(x), 0);
                ARMCI_Lock(0, 0);
                ARMCI_PutValueLong(ARMCI_GetValueLong(words(0) + 1, 0) + 1, words(0) + 1, 0);
                ARMCI_Unlock(0, 0);
            }
            ARMCI_AllFence();
            CHECK(ARMCI_GetValueDouble(sum, 0) >= 20, "%g", ARMCI_GetValueDouble(sum, 0));
        } else if (part == 1) {
            usleep(100000);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(me != 0 || (*(int *)words(0) == 20 * (nproc - 1) && words(0)[1] == 20 * (nproc - 1)),
              "%d and %ld", *(int *)words(0), words(0)[1]);
        CHECK(me != 0 || *sum == 20 * (nproc - 1), "%g", *sum);
        ARMCI_Barrier();
    }
    ARMCI_Destroy_mutexes();
}

int main(int argc, char **argv)
{
    const char *conduit = getenv("GASNET_CONDUIT");

    one_sided = conduit == NULL || strcmp(conduit, "mpi") != 0 || test_threads(argc, argv);
    test_start(&argc, &argv);
    CHECK_EQ(ARMCI_Malloc(base, 4096), 0);
    rmw();
    swap_lock();
    mutexes();
    mutex_sets();
    notify();
    put_with_flag();
    put_without_flag();
    quiet_target();
    ARMCI_Access_begin(base[me]);
    ARMCI_Access_end(base[me]);
    ARMCI_Free(base[me]);
    return test_finish();
}
