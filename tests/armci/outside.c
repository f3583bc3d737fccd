/*
 * outside.c - the program's own messages move while a rank waits in ARMCI. Run by run.sh, with an
 * MPI whose long messages need the calls of their sender.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Rank 0 has sent a long message, and waits in a call of ARMCI for rank 1, which comes only when it
 * has the message. A rank that moves nothing waits for ever.
 */
#include "armci_test.h"

#define LONG (8 << 20)

static char *out, *in;

/* Rank 1 receives, rank 0 waits as wait says; the other ranks wait, too. */
static void run(const char *name, void (*wait)(void), void (*come)(void))
{
    MPI_Request request;

    ARMCI_Barrier();
    if (me == 0) {
        memset(out, name[0], LONG);
        MPI_Isend(out, LONG, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request);
        wait();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (me == 1) {
        MPI_Recv(in, LONG, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(in[0], name[0]);
        CHECK_EQ(in[LONG - 1], name[0]);
        come();
    }
    ARMCI_Barrier();
}

static void barrier(void)
{
    ARMCI_Barrier();
}

static void everybody(void)
{
    run("barrier", barrier, barrier);
}

static void notified(void)
{
    armci_notify_wait(1, NULL);
}

static void notify(void)
{
    armci_notify(0);
}

static void lock(void)
{
    ARMCI_Lock(0, 1);
    ARMCI_Unlock(0, 1);
}

static void unlock(void)
{
    ARMCI_Unlock(0, 1);
}

/* Rank 1 has the mutex before rank 0 asks for it. */
static void locked(void)
{
    ARMCI_Create_mutexes(1);
    if (me == 1)
        ARMCI_Lock(0, 1);
    run("lock", lock, unlock);
    ARMCI_Destroy_mutexes();
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    if (nproc != 2)
        ARMCI_Error("outside wants 2 ranks", nproc);
    out = malloc(LONG);
    in = malloc(LONG);
    everybody();
    run("notify", notified, notify);
    locked();
    free(out);
    free(in);
    return test_finish();
}
