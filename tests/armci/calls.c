/*
 * calls.c - functions that no other program calls, and the short names of mp3.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include "mp3.h"

static int ga_started;

static void GA_Initialize(void)
{
    ga_started++;
}

/* The second names of lower case, which profiling tools pass on to. */
static void twins_of_messages(void)
{
    ARMCI_Group world;
    int waited = 0, left = (me + nproc - 1) % nproc;

    ARMCI_Group_get_world(&world);
    CHECK_EQ(parmci_notify((me + 1) % nproc), 1);
    CHECK(parmci_notify_wait(left, &waited) >= 1 && waited == 1, "notification %d", waited);
    parmci_msg_barrier();
    parmci_msg_group_barrier(&world);
    parmci_msg_group_barrier(NULL);
}

static void do_nothing(void)
{
    ARMCI_Cleanup();
    ARMCI_Set_shm_limit(1);
    ARMCI_Set_shmem_limit(1);
    CHECK(ARMCI_Initialized(), "after ARMCI_Cleanup");
}

static void print(void)
{
    derr_printf("rank %d of %d says %s\n", me, nproc, "this");
}

int main(int argc, char **argv)
{
    double start;

    setvbuf(stdout, NULL, _IOLBF, 0);
    MP_INIT(argc, argv);
    ARMCI_INIT(argc, argv);
    GA_INIT(argc, argv);
    MP_MYID(&me);
    MP_PROCS(&nproc);
    start = MP_TIMER();
    CHECK_EQ(ga_started, 1);
    CHECK_EQ(me, armci_msg_me());
    CHECK_EQ(nproc, armci_msg_nproc());
    do_nothing();
    twins_of_messages();
    print();
    MP_BARRIER();
    CHECK(MP_TIMER() >= start && armci_timer() - start < 100, "the time");
    armci_msg_igop(&failures, 1, (char *)"+");
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    ARMCI_Finalize();
    MP_FINALIZE();
    return failures != 0;
}
