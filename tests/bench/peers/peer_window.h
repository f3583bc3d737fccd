/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_window.h - what the peer programs with an MPI window share: start, end, and how rank 0 says
 * which row comes.
 * Owns      one window and two buffers
 * Threads   one in every process
 * Uses      MPI, bench_stat.h. Included by one source of a program, which defines run() and
 *           measure_all()
 */
#ifndef PEER_WINDOW_H
#define PEER_WINDOW_H

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stat.h"

#define POOL ((size_t)16 << 20)

enum { KIND_QUIT = -1 };

struct peer {
    int rank;
    MPI_Win window;
    void *base, *src, *dst; /* POOL bytes each; base: the window's */
    int kind;
    size_t size;
};

/* This rank's part of iters operations of p->kind and p->size. */
static void run(struct peer *p, uint64_t iters);
/* Rank 0: all rows. */
static void measure_all(struct peer *p, const char *who, int quick);

/* Tells the others what comes, then does its part. */
static double run_side(void *arg, uint64_t iters)
{
    struct peer *p = arg;
    long long command[3] = { p->kind, (long long)p->size, (long long)iters };
    double start;

    MPI_Bcast(command, 3, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
    if (p->kind == KIND_QUIT)
        return 0;
    start = aq_bench_now();
    run(p, iters);
    return aq_bench_now() - start;
}

static void serve(struct peer *p)
{
    for (;;) {
        long long command[3];

        MPI_Bcast(command, 3, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
        p->kind = (int)command[0];
        p->size = (size_t)command[1];
        if (p->kind == KIND_QUIT)
            return;
        run(p, (uint64_t)command[2]);
    }
}

static void measure(struct peer *p, const char *who, const char *name, int kind, size_t size,
                    int quick)
{
    p->kind = kind;
    p->size = size;
    aq_bench_report(who, name, size, (struct aq_side){ run_side, p }, quick != 0);
}

/* The program: WHO quick|full. Returns its exit status. */
static int peer_main(int argc, char **argv, int max_ranks)
{
    struct peer p = { 0 };
    int ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2 || ranks > max_ranks || argc != 3) {
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

#endif
