/*
 * parts-c.c - Global Arrays over a part of MPI's ranks: parts-c WAY. Run by run.sh.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   halves    both halves of the ranks have Global Arrays at the same time, twice
 *   turns     one half after the other, while the rest waits in MPI_Barrier
 *
 * GA_Initialize_comm, which newer versions have, calls ARMCI_Init_mpi_comm and then ARMCI_Init,
 * which then does nothing. So does this program, with any version.
 */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ARMCI_Init_mpi_comm(MPI_Comm comm);

#define N 40

static int failures;

static void expect(int is, const char *what)
{
    if (!is && failures++ < 5)
        printf("not so: %s\n", what);
}

/* All write a matrix in patches, add to it, read it back, and multiply it. */
static void use(int me, int n)
{
    int dims[2] = { N, N }, lo[2], hi[2], ld[1] = { N }, counter = 0, one = 1, zero[1] = { 0 };
    double part[N * N], first = 1, nothing = 0;
    int a = NGA_Create(C_DBL, 2, dims, (char *)"a", NULL), b = GA_Duplicate(a, (char *)"b");
    int tasks = NGA_Create(C_INT, 1, &one, (char *)"tasks", NULL);
    int c = GA_Duplicate(a, (char *)"c");
    long drawn = 0;

    GA_Zero(a);
    GA_Zero(tasks);
    while ((counter = (int)NGA_Read_inc(tasks, zero, 1)) < N) {
        lo[0] = hi[0] = counter;
        lo[1] = 0;
        hi[1] = N - 1;
        for (int j = 0; j < N; j++)
            part[j] = counter * 100 + j;
        NGA_Put(a, lo, hi, part, ld);
        drawn++;
    }
    GA_Lgop(&drawn, 1, (char *)"+");
    expect(drawn == N, "each row was drawn once");
    GA_Sync();
    lo[0] = lo[1] = 0;
    hi[0] = hi[1] = N - 1;
    NGA_Get(a, lo, hi, part, ld);
    for (int i = 0; i < N * N; i++)
        expect(part[i] == i / N * 100 + i % N, "the matrix is as it was written");
    GA_Zero(b);
    for (int i = 0; i < N * N; i++)
        part[i] = me + 1;
    NGA_Acc(b, lo, hi, part, ld, &first);
    GA_Sync();
    NGA_Get(b, lo, hi, part, ld);
    for (int i = 0; i < N * N; i++)
        expect(part[i] == n * (n + 1) / 2, "all have added");
    GA_Dgemm('n', 't', N, N, N, first, a, b, nothing, c);
    NGA_Get(c, lo, hi, part, ld);
    expect(part[N] == (100.0 * N + N * (N - 1) / 2) * (n * (n + 1) / 2), "the product");
    GA_Sync();
    GA_Destroy(c);
    GA_Destroy(tasks);
    GA_Destroy(b);
    GA_Destroy(a);
}

static void run(MPI_Comm comm, int times)
{
    int me, n;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    expect(ARMCI_Init_mpi_comm(comm) == 1, "ARMCI starts");
    GA_Initialize();
    if (!MA_initialized())
        MA_init(C_DBL, 100000, 100000);
    expect(GA_Nodeid() == me && GA_Nnodes() == n,
           "Global Arrays has the ranks of the communicator");
    for (int i = 0; i < times; i++)
        use(me, n);
    GA_Terminate();
}

int main(int argc, char **argv)
{
    const int turns = argc > 1 && strcmp(argv[1], "turns") == 0;
    int rank, size;
    MPI_Comm half;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
    for (int i = 0; i < 2; i++) {
        if (!turns || i == (rank < size / 2))
            run(half, 5);
        if (turns)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&half);
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d %s\n", rank, size, failures == 0 ? "right" : "wrong");
    MPI_Finalize();
    return failures != 0;
}
