/*
 * parts.c - ARMCI over parts of MPI's ranks, ended and started again: parts WAY. Run by run.sh.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   halves    both halves have ARMCI at the same time
 *   turns     one half after the other, while the rest waits in MPI_Barrier
 *   again     all, all in another order, all but one, 20 times: a process holds no more than before
 */
#include "armci_test.h"

#include <dirent.h>

static int rank, size; /* of MPI */
static MPI_Comm comm;

/* Every rank but those of color MPI_UNDEFINED has ARMCI over those of its color. */
static int begin(int color, int key)
{
    int is, n;

    MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm);
    if (comm == MPI_COMM_NULL)
        return 0;
    CHECK_EQ(ARMCI_Initialized(), 0);
    CHECK_EQ(ARMCI_Init_mpi_comm(comm), 1);
    CHECK_EQ(ARMCI_Init(), 0); /* as Global Arrays does: nothing */
    CHECK_EQ(ARMCI_Initialized(), 1);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    MPI_Comm_rank(comm, &is);
    MPI_Comm_size(comm, &n);
    CHECK_EQ(me, is);
    CHECK_EQ(nproc, n);
    return 1;
}

static void end(void)
{
    CHECK_EQ(ARMCI_Finalize(), 0);
    CHECK_EQ(ARMCI_Initialized(), 0);
    CHECK_EQ(ARMCI_Finalize(), 0); /* nothing */
    MPI_Comm_free(&comm);
}

static void use_memory(void)
{
    const int next = (me + 1) % nproc, before = (me + nproc - 1) % nproc;
    void **base = malloc((size_t)nproc * sizeof(*base));
    long value[64], got[64], *own;
    double sum[8], one = 1;

    ARMCI_Malloc(base, 4096);
    own = base[me];
    memset(own, 0, 4096);
    ARMCI_Barrier();
    for (int i = 0; i < 64; i++)
        value[i] = me * 1000 + i;
    ARMCI_Put(value, base[next], sizeof(value), next);
    ARMCI_Get(base[next], got, sizeof(got), next);
    CHECK_EQ(memcmp(got, value, sizeof(got)), 0);
    for (int i = 0; i < 8; i++)
        sum[i] = me + 1;
    ARMCI_Acc(ARMCI_ACC_DBL, &one, sum, (char *)base[0] + 1024, sizeof(sum), 0);
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, got, (char *)base[0] + 2048, 2, 0);
    ARMCI_Barrier();
    CHECK_EQ(own[63], before * 1000 + 63);
    if (me == 0) {
        CHECK_EQ(*(double *)(void *)((char *)own + 1024 + 56), nproc * (nproc + 1) / 2);
        CHECK_EQ(*(long *)(void *)((char *)own + 2048), 2 * nproc);
    }
    ARMCI_Free(base[me]);
    ARMCI_Malloc(base, 100 * me); /* for ARMCI_Finalize to free */
    free(base);
}

static void use_others(void)
{
    ARMCI_Group group;
    int *members = malloc((size_t)nproc * sizeof(int)), n = (nproc + 1) / 2, sum = me + 1;

    armci_msg_igop(&sum, 1, "+");
    CHECK_EQ(sum, nproc * (nproc + 1) / 2);
    for (int i = 0; i < n; i++)
        members[i] = i;
    ARMCI_Group_create(n, members, &group);
    if (me < n) {
        armci_msg_group_barrier(&group);
        ARMCI_Group_free(&group);
    }
    free(members);
    ARMCI_Create_mutexes(1);
    ARMCI_Lock(0, nproc - 1);
    ARMCI_Unlock(0, nproc - 1);
    ARMCI_Destroy_mutexes();
    ARMCI_Create_mutexes(me + 1); /* for ARMCI_Finalize to free */
    if (nproc > 1) {
        armci_notify((me + 1) % nproc);
        armci_notify_wait((me + nproc - 1) % nproc, &sum);
    }
}

static void use(void)
{
    use_memory();
    use_others();
}

static void run_halves(int times)
{
    for (int i = 0; i < times; i++) {
        begin(rank < size / 2, i % 2 == 0 ? rank : -rank);
        use();
        end();
    }
}

static void run_turns(int times)
{
    for (int i = 0; i < 2 * times; i++) {
        if (begin((rank < size / 2) == i % 2 ? 0 : MPI_UNDEFINED, rank)) {
            use();
            end();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static void run_again(int times)
{
    int files = 0, threads = 0;

    for (int i = 0; i < times; i++) {
        if (begin(i % 3 == 2 && rank == i % size ? MPI_UNDEFINED : 0, i % 3 == 1 ? -rank : rank)) {
            use();
            end();
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (i == times / 2) {
            files = count_entries("/proc/self/fd");
            threads = count_entries("/proc/self/task");
        }
    }
    CHECK_EQ(count_entries("/proc/self/fd"), files);
    CHECK_EQ(count_entries("/proc/self/task"), threads);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(way, "halves") == 0)
        run_halves(5);
    else if (strcmp(way, "turns") == 0)
        run_turns(3);
    else
        run_again(20);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d %s\n", rank, size, failures == 0 ? "right" : "wrong");
    MPI_Finalize();
    return failures != 0;
}
