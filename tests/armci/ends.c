/*
 * ends.c - ends a job: ends WAY [WHERE]. Run by run.sh and ends.sh, which know the expected result.
 * WHERE is what the other ranks are in meanwhile: barrier (of ARMCI), mpi (MPI_Barrier), compute,
 * sleep; stopped: rank 0 or 1 by SIGSTOP, the rest in a barrier; blocked: no rank takes a signal.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <signal.h>
#include <unistd.h>

#include "gpc.h"

#define WAIT_S 300 /* longer than any end may take */

/* Ranks that do not exist in calls that return a code: each prints a line in a debug build. */
static int no_rank(void *ptr)
{
    int value = 1, one[1] = { 4 }, bad = 0;
    void *list[1] = { &value };
    armci_giov_t vector = { list, list, 4, 1 };
    armci_hdl_t handle;

    ARMCI_INIT_HANDLE(&handle);
    bad += ARMCI_NbPut(&value, ptr, 4, nproc, &handle) != FAIL5;
    bad += ARMCI_NbGetS(ptr, one, &value, one, one, 0, -1, &handle) != FAIL5;
    bad += ARMCI_NbAcc(ARMCI_ACC_INT, &value, &value, ptr, 4, nproc, &handle) != FAIL5;
    bad += ARMCI_NbGetV(&vector, 1, nproc, &handle) != FAIL5;
    bad += ARMCI_NbAccV(ARMCI_ACC_INT, &value, &vector, 1, nproc, &handle) != FAIL5;
    bad += ARMCI_NbPutValueInt(1, ptr, nproc, &handle) != FAIL5;
    bad += ARMCI_PutS_flag_dir(&value, one, ptr, one, one, 0, ptr, 1, nproc) != FAIL5;
    bad += ARMCI_Rmw(ARMCI_SWAP, &value, ptr, 1, nproc) != FAIL5;
    return bad;
}

/* Allocations of the caller of one byte each. The last of them may be reached, too. */
static void have_many(int n)
{
    armci_meminfo_t info;
    char byte = 1;

    for (int i = 0; i < n; i++)
        ARMCI_Memget(1, &info, 0);
    ARMCI_Put(&byte, info.armci_addr, 1, me);
}

/* A rank that does not exist in a call that has no code for it. Returns 0 if the way is another. */
static int no_such_rank(const char *way)
{
    if (strcmp(way, "rank") == 0)
        ARMCI_Fence(nproc);
    else if (strcmp(way, "lock-rank") == 0)
        ARMCI_Lock(0, nproc);
    else if (strcmp(way, "unlock-rank") == 0)
        ARMCI_Unlock(0, -1);
    else if (strcmp(way, "notify-rank") == 0)
        armci_notify(nproc);
    else if (strcmp(way, "wait-rank") == 0)
        armci_notify_wait(-1, NULL);
    else
        return 0;
    return 1;
}

/* What a debug build notices. */
static void broken_rule(const char *way, void **base)
{
    int value = 0, strides[1] = { 16 }, count[2] = { 8, 5 };
    long words[10] = { 0 };
    void *local[1] = { words }, *remote[1] = { (char *)base[0] + 60 };
    armci_giov_t vector = { remote, local, 8, 1 };
    armci_hdl_t handle;

    ARMCI_INIT_HANDLE(&handle);
    if (strcmp(way, "outside") == 0) {
        ARMCI_Put(&value, (char *)base[0] + 1024, 4, 0);
    } else if (strcmp(way, "across") == 0) {
        ARMCI_GetS(base[0], strides, words, strides, count, 1, 0);
    } else if (strcmp(way, "freed") == 0) {
        ARMCI_Acc(ARMCI_ACC_INT, &count[0], &value, base[me], 4, me);
        ARMCI_Acc(ARMCI_ACC_INT, &count[0], &value, (char *)ARMCI_Malloc_local(8), 4, me);
    } else if (strcmp(way, "handle") == 0) {
        ARMCI_NbGet(base[0], words, 8, 0, &handle);
        ARMCI_INIT_HANDLE(&handle);
    } else if (strcmp(way, "aggregate") == 0) {
        ARMCI_SET_AGGREGATE_HANDLE(&handle);
        ARMCI_NbPutS(words, strides, base[0], strides, count, 1, 0, &handle);
    } else if (strcmp(way, "list") == 0) {
        ARMCI_NbGetV(&vector, 1, 0, &handle);
    } else if (strcmp(way, "put-value") == 0) {
        ARMCI_PutValueLong(1, remote[0], 0);
    } else if (strcmp(way, "many") == 0) {
        have_many(10000);
        ARMCI_Put(&value, (char *)base[me] + 64, 4, me);
    } else if (strcmp(way, "no-rank") == 0) {
        exit(no_rank(base[0]) == 0 ? 3 : 4);
    }
}

/* A function that waits, and keeps others from going on. */
static int hold(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
                int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    (void)from, (void)hdr, (void)hlen, (void)data, (void)dlen, (void)rhdr, (void)rhlen;
    (void)rhsize, (void)rdata, (void)rdlen, (void)rdsize, (void)rtype;
    ARMCI_Gpc_lock(to);
    return GPC_PENDING;
}

static void wait_with_lock(void)
{
    const int function = ARMCI_Gpc_register((aq_gpc_any_t)hold);
    int word = 0;

    if (me == 0)
        ARMCI_Gpc_exec(function, 1, &word, sizeof(int), NULL, 0, &word, sizeof(int), NULL, 0, NULL);
    ARMCI_Barrier();
}

static void block_signals(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

/* Where the ranks are that do not end the job. */
static void be(const char *where)
{
    volatile double value = 1;

    if (strcmp(where, "stopped 0") == 0 && me == 0)
        raise(SIGSTOP);
    if (strcmp(where, "stopped 1") == 0 && me == 1)
        raise(SIGSTOP);
    if (strcmp(where, "mpi") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(where, "sleep") == 0)
        sleep(WAIT_S);
    if (strcmp(where, "compute") == 0 || strcmp(where, "blocked") == 0)
        for (double end = MPI_Wtime() + WAIT_S; MPI_Wtime() < end;)
            for (int i = 0; i < 1000000; i++)
                value = value * 1.0000001;
}

/* ARMCI over all ranks but the last, which waits in MPI for those. */
static void fail_in_a_part(void)
{
    MPI_Comm part;
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size - 1 ? 0 : MPI_UNDEFINED, rank, &part);
    if (part != MPI_COMM_NULL) {
        ARMCI_Init_mpi_comm(part);
        if (rank == 1)
            ARMCI_Error("enough of this part", 8);
        ARMCI_Barrier();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What goes wrong where ARMCI is not started. */
static int fail_outside(int *argc, char ***argv, const char *way)
{
    int last, rank;

    if (strcmp(way, "part") != 0 && strncmp(way, "before", 6) != 0)
        return 0;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &last);
    if (strcmp(way, "part") == 0)
        fail_in_a_part();
    else if (strcmp(way, "before-error") == 0)
        ARMCI_Error("too early", 9);
    else if (rank == last - 1)
        ARMCI_Fence(0);
    MPI_Barrier(MPI_COMM_WORLD);
    return 1;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *where = argc > 2 ? argv[2] : "barrier";
    void *base[1024];

    if (strcmp(where, "blocked") == 0)
        block_signals(); /* before MPI starts threads */
    if (fail_outside(&argc, &argv, way))
        return 1;
    test_start(&argc, &argv);
    ARMCI_Malloc(base, 64);
    if (strcmp(way, "messages") == 0) { /* as programs end that find too few ranks */
        printf("rank %d of %d right\n", me, nproc);
        armci_msg_finalize();
        exit(0);
    }
    if (strcmp(way, "late") == 0) { /* the others have left main long before */
        ARMCI_Finalize();
        MPI_Finalize();
        if (me == 0)
            sleep(4);
        printf("rank %d of %d right\n", me, nproc);
        return 0;
    }
    if (strcmp(way, "after-error") == 0) {
        ARMCI_Finalize();
        if (me == 0)
            ARMCI_Error("too late", 9);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (me == nproc - 1) {
        if (argc > 2)
            usleep(300000); /* the others are where they are to be */
        if (strcmp(way, "killed") == 0)
            raise(SIGKILL);
        else if (strcmp(way, "error") == 0)
            ARMCI_Error("enough of this", 7);
        else if (strcmp(way, "mutex") == 0)
            ARMCI_Lock(0, 0);
        else if (strcmp(way, "operation") == 0)
            ARMCI_Rmw(5, &nproc, base[0], 1, 0);
        else if (strcmp(way, "value") == 0)
            ARMCI_GetValueInt(base[0], nproc);
        else if (strcmp(way, "assertion") == 0)
            dassert(1, me < 0);
        else if (!no_such_rank(way))
            broken_rule(way, base);
    }
    if (strcmp(way, "gpc") == 0)
        wait_with_lock();
    if (strcmp(way, "unlock") == 0) {
        ARMCI_Create_mutexes(1);
        if (me == 1)
            ARMCI_Lock(0, 0);
        ARMCI_Barrier();
        if (me == nproc - 1)
            ARMCI_Unlock(0, 0);
    }
    be(where);
    ARMCI_Barrier();
    return test_finish();
}
