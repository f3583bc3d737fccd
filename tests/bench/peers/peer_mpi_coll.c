/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi_coll.c - the rows of aq-bench that MPI's collectives, atomics and derived datatypes can
 * do.
 * Owns      one vector datatype
 * Threads   one in every process
 * Uses      MPI, peer_window.h
 *
 * usage: mpirun -n N peer_mpi_coll WHO quick|full - prints record lines for aq-bench. Collectives
 * run over all ranks; atomics and strided puts go from rank 0 to rank 1 while the others wait in
 * MPI.
 */
#include <limits.h>
#include <math.h>

#include "peer_window.h"

enum kind {
    KIND_BARRIER,
    KIND_BROADCAST,
    KIND_REDUCE,
    KIND_ALLREDUCE,
    KIND_FADD,
    KIND_FADD_ALL,
    KIND_STRIDED
};

static MPI_Datatype section; /* n rows of n doubles out of rows of 2n */

static void run_fetch_add(struct peer *p, uint64_t iters, int target)
{
    long long one = 1, old;

    for (uint64_t i = 0; i < iters; i++) {
        MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, target, 0, MPI_SUM, p->window);
        MPI_Win_flush(target, p->window);
    }
}

static void run_strided(struct peer *p, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        MPI_Put(p->src, 1, section, 1, 0, 1, section, p->window);
        MPI_Win_flush(1, p->window);
    }
}

static void run_collective(struct peer *p, uint64_t iters)
{
    const int doubles = (int)(p->size / sizeof(double));

    for (uint64_t i = 0; i < iters; i++) {
        switch (p->kind) {
        case KIND_BARRIER:
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        case KIND_BROADCAST:
            MPI_Bcast(p->src, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            break;
        case KIND_REDUCE:
            MPI_Reduce(p->src, p->dst, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
            break;
        default:
            MPI_Allreduce(p->src, p->dst, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
    }
}

static void run(struct peer *p, uint64_t iters)
{
    if (p->kind == KIND_FADD_ALL)
        run_fetch_add(p, iters, 0);
    else if (p->kind < KIND_FADD)
        run_collective(p, iters);
    else if (p->rank == 0 && p->kind == KIND_FADD)
        run_fetch_add(p, iters, 1);
    else if (p->rank == 0 && p->kind == KIND_STRIDED)
        run_strided(p, iters);
}

static void measure_strided(struct peer *p, const char *who, size_t size, int quick)
{
    const int n = (int)sqrt((double)(size / sizeof(double)));

    MPI_Type_vector(n, n, 2 * n, MPI_DOUBLE, &section);
    MPI_Type_commit(&section);
    measure(p, who, "strided_put", KIND_STRIDED, size, quick);
    MPI_Type_free(&section);
}

static void measure_all(struct peer *p, const char *who, int quick)
{
    static const size_t sizes[] = { 8, 1024, 65536, 1u << 20 };

    measure(p, who, "barrier", KIND_BARRIER, 0, quick);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure(p, who, "broadcast", KIND_BROADCAST, sizes[i], quick);
        measure(p, who, "reduce", KIND_REDUCE, sizes[i], quick);
        measure(p, who, "allreduce", KIND_ALLREDUCE, sizes[i], quick);
    }
    measure(p, who, "fadd", KIND_FADD, 8, quick);
    measure(p, who, "fadd_contended", KIND_FADD_ALL, 8, quick);
    measure_strided(p, who, 8192, quick);
    measure_strided(p, who, 128 * 1024, quick);
}

int main(int argc, char **argv)
{
    return peer_main(argc, argv, INT_MAX);
}
