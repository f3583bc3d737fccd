/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi_coll.c - the rows of aq-bench that MPI's collectives, atomics and derived datatypes can
 * do.
 * Owns      one window, one vector datatype
 * Threads   one in every process
 * Uses      MPI, bench_stat.h
 *
 * usage: mpirun -n N peer_mpi_coll WHO quick|full - prints record lines for aq-bench. Collectives
 * run over all ranks; atomics and strided puts go from rank 0 to rank 1 while the others wait in
 * MPI.
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stat.h"

#define POOL ((size_t)16 << 20)

enum kind {
    KIND_BARRIER,
    KIND_BROADCAST,
    KIND_REDUCE,
    KIND_ALLREDUCE,
    KIND_FADD,
    KIND_FADD_ALL,
    KIND_STRIDED,
    KIND_QUIT
};

struct peer {
    int rank;
    MPI_Win window;
    double *base, *src, *dst;
    MPI_Datatype section; /* n rows of n doubles out of rows of 2n */
    enum kind kind;
    size_t size;
};

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
        MPI_Put(p->src, 1, p->section, 1, 0, 1, p->section, p->window);
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

/* Tells the others what comes, then does its part. */
static double run_side(void *arg, uint64_t iters)
{
    struct peer *p = arg;
    unsigned long long command[3] = { p->kind, p->size, iters };
    double start;

    MPI_Bcast(command, 3, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    start = aq_bench_now();
    run(p, iters);
    return aq_bench_now() - start;
}

static void serve(struct peer *p)
{
    for (;;) {
        unsigned long long command[3];

        MPI_Bcast(command, 3, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
        p->kind = (enum kind)command[0];
        p->size = command[1];
        if (p->kind == KIND_QUIT)
            return;
        run(p, command[2]);
    }
}

static void measure(struct peer *p, const char *who, const char *name, enum kind kind, size_t size,
                    int quick)
{
    p->kind = kind;
    p->size = size;
    aq_bench_report(who, name, size, (struct aq_side){ run_side, p }, quick != 0);
}

static void measure_strided(struct peer *p, const char *who, size_t size, int quick)
{
    const int n = (int)sqrt((double)(size / sizeof(double)));

    MPI_Type_vector(n, n, 2 * n, MPI_DOUBLE, &p->section);
    MPI_Type_commit(&p->section);
    measure(p, who, "strided_put", KIND_STRIDED, size, quick);
    MPI_Type_free(&p->section);
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
    struct peer p;
    int ranks;

    memset(&p, 0, sizeof(p));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2 || argc != 3) {
        MPI_Finalize();
        return 2;
    }
    MPI_Win_allocate((MPI_Aint)POOL, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p.base, &p.window);
    MPI_Win_lock_all(0, p.window);
    p.src = aligned_alloc(4096, POOL);
    p.dst = aligned_alloc(4096, POOL);
    memset(p.base, 0, POOL);
    memset(p.src, 0, POOL);
    memset(p.dst, 0, POOL);
    MPI_Barrier(MPI_COMM_WORLD);
    if (p.rank == 0) {
        measure_all(&p, argv[1], strcmp(argv[2], "quick") == 0);
        p.kind = KIND_QUIT;
        run_side(&p, 0);
    } else {
        serve(&p);
    }
    MPI_Win_unlock_all(p.window);
    MPI_Win_free(&p.window);
    free(p.src);
    free(p.dst);
    MPI_Finalize();
    return 0;
}
