/*
 * polls.c - ranks without a service thread serve others in calls that look at nothing but own
 * memory, when they make a group, and in non-blocking gets: over mpi, where the program starts MPI
 * without threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <unistd.h>

#include "armcix.h"

#define LIMIT    20.0 /* seconds for one accumulate, on a busy machine */
#define COMPUTED 0.01 /* seconds by rank 0 */
#define SLOW     1e-3 /* seconds for a get */
#define ROUNDS   50
#define ENOUGH   20
#define BYTES    (1 << 20)

static void *base[1024];
static armci_hdl_t finished;

static void lock_and_unlock(void)
{
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
}

static void set_lock_and_unlock(void)
{
    static armcix_mutex_hdl_t set;

    if (set == NULL)
        set = ARMCIX_Create_mutexes_hdl(1, NULL);
    ARMCIX_Lock_hdl(set, 0, me);
    ARMCIX_Unlock_hdl(set, 0, me);
}

static void fence(void)
{
    ARMCI_Fence(0);
}

static void fence_group(void)
{
    ARMCI_GroupFence(NULL);
}

static void test_finished(void)
{
    CHECK_EQ(ARMCI_Test(&finished), 0);
}

static void wait_finished(void)
{
    ARMCI_Wait(&finished);
}

static void wait_all(void)
{
    ARMCI_WaitAll();
}

static void wait_proc(void)
{
    ARMCI_WaitProc(0);
}

static void notify_self(void)
{
    armci_notify(me);
    armci_notify_wait(me, NULL);
}

static const struct {
    const char *name;
    void (*call)(void);
} quick[] = { { "lock and unlock", lock_and_unlock },
              { "lock and unlock of a set", set_lock_and_unlock },
              { "a clean fence", fence },
              { "a clean fence of all", ARMCI_AllFence },
              { "a clean fence of a group", fence_group },
              { "a test of a finished handle", test_finished },
              { "a wait for a finished handle", wait_finished },
              { "a wait for nothing", wait_all },
              { "a wait for nothing at a rank", wait_proc },
              { "a notification to oneself", notify_self } };

/* Rank 0 repeats the call until the others have added to its memory. */
static void repeat(const char *name, void (*call)(void))
{
    double one = 1, *sum = base[0], start;
    double seen = 0;

    if (me == 0)
        *sum = 0;
    call(); /* a set of mutexes is made by all */
    ARMCI_Barrier();
    if (me != 0) {
        ARMCI_Acc(ARMCI_ACC_DBL, &one, &one, sum, sizeof(one), 0);
        ARMCI_Fence(0);
    }
    start = armci_timer();
    while (me == 0 && seen != nproc - 1 && armci_timer() - start < LIMIT) {
        call();
        __atomic_load(sum, &seen, __ATOMIC_ACQUIRE);
    }
    CHECK(me != 0 || seen == nproc - 1, "%s: %g", name, seen);
    ARMCI_Barrier();
}

/* Before the group's making: a member, or a rank that is none, needs rank 0, which is in it
 * already. */
static void need_rank_0(void)
{
    double one = 1;

    if (me == 0)
        return;
    usleep(20000);
    ARMCI_Acc(ARMCI_ACC_DBL, &one, &one, base[0], sizeof(one), 0);
    ARMCI_Fence(0);
}

static void check_group(ARMCI_Group *group, int size)
{
    int is, sum = 1;

    ARMCI_Group_size(group, &is);
    CHECK_EQ(is, size);
    if (group->rank >= 0) {
        armci_msg_group_igop(&sum, 1, (char *)"+", group);
        CHECK_EQ(sum, size);
    }
    ARMCI_Group_free(group);
    ARMCI_Barrier();
}

static void make_groups(void)
{
    ARMCI_Group group;
    int list[1024];

    for (int p = 0; p < nproc; p++)
        list[p] = p;
    ARMCI_Barrier();
    need_rank_0();
    ARMCI_Group_create(nproc, list, &group);
    check_group(&group, nproc);
    need_rank_0();
    ARMCI_Group_create(nproc - 1, list, &group);
    check_group(&group, nproc - 1);
    need_rank_0();
    ARMCIX_Group_split(NULL, 0, -me, &group);
    check_group(&group, nproc);
    need_rank_0();
    ARMCIX_Group_dup(NULL, &group);
    check_group(&group, nproc);
}

/* Makes no call of ARMCI. */
static void compute(double seconds)
{
    for (double end = armci_timer() + seconds; armci_timer() < end;)
        continue;
}

static double shorter(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the shortest time of a get from the next rank, while all ranks do the same. */
static double shortest_get(void *dst)
{
    double shortest = LIMIT;

    for (int round = 0; round < ROUNDS; round++) {
        double start;

        ARMCI_Barrier();
        start = armci_timer();
        ARMCI_Get(base[(me + 1) % nproc], dst, BYTES, (me + 1) % nproc);
        shortest = shorter(shortest, armci_timer() - start);
    }
    return shortest;
}

/* All start a get at about the same time and compute, higher ranks for longer. Returns how many
 * gets were complete soon after the caller's computation. */
static int gets_before_computing(void *dst)
{
    int served = 0;

    for (int round = 0; round < ROUNDS; round++) {
        armci_hdl_t handle;
        double start;

        ARMCI_INIT_HANDLE(&handle);
        ARMCI_Barrier();
        ARMCI_NbGet(base[(me + 1) % nproc], dst, BYTES, (me + 1) % nproc, &handle);
        compute(COMPUTED * (me + 1));
        start = armci_timer();
        ARMCI_Wait(&handle);
        served += armci_timer() - start < COMPUTED / 2;
    }
    return served;
}

/* Two ranks serve each other before they compute. On a machine on which a get takes long, or where
 * others use their cores, they may not. */
static void get_and_compute(void)
{
    static char bytes[BYTES];
    const double get = shortest_get(bytes);
    int served;

    for (int attempt = 0; attempt < 3; attempt++) {
        served = gets_before_computing(bytes);
        armci_msg_igop(&served, 1, (char *)"min");
        if (served >= ENOUGH)
            break;
    }
    CHECK(served >= ENOUGH || get > SLOW,
          "%d of %d gets served before the computation; a blocking get takes %g s", served, ROUNDS,
          get);
}

int main(int argc, char **argv)
{
    alarm(100); /* a deadlock ends the test */
    test_start(&argc, &argv);
    ARMCI_Malloc(base, BYTES);
    CHECK_EQ(ARMCI_Create_mutexes(1), 0);
    ARMCI_INIT_HANDLE(&finished);
    for (size_t i = 0; i < sizeof(quick) / sizeof(quick[0]); i++)
        repeat(quick[i].name, quick[i].call);
    make_groups();
    if (nproc == 2)
        get_and_compute();
    ARMCI_Destroy_mutexes();
    ARMCI_Free(base[me]);
    return test_finish();
}
