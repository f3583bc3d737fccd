/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_shmem_coll.c - the rows of aq-bench that OpenSHMEM's collectives and atomics can do.
 * Owns      symmetric blocks
 * Threads   one in every process
 * Uses      OpenSHMEM, bench_stat.h
 *
 * usage: oshrun -n N peer_shmem_coll WHO quick|full - prints record lines for aq-bench. Collectives
 * run over all ranks; atomics go from rank 0 to rank 1.
 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#include "bench_stat.h"

#define POOL ((size_t)1 << 20)

enum kind { KIND_BARRIER, KIND_BROADCAST, KIND_ALLREDUCE, KIND_FADD, KIND_FADD_ALL, KIND_QUIT };

struct peer {
    int rank, ranks;
    double *src, *dst, *work;
    long *word;
    enum kind kind;
    size_t size;
};

/* What rank 0 asks of the others, written into each. */
static long command_number, command[3];
static long sync_broadcast[2][SHMEM_BCAST_SYNC_SIZE], sync_reduce[2][SHMEM_REDUCE_SYNC_SIZE];

static void run(struct peer *p, uint64_t iters)
{
    const int doubles = (int)(p->size / sizeof(double));

    for (uint64_t i = 0; i < iters; i++) {
        switch (p->kind) {
        case KIND_BARRIER:
            shmem_barrier_all();
            break;
        case KIND_BROADCAST:
            shmem_broadcast64(p->dst, p->src, (size_t)doubles, 0, 0, 0, p->ranks,
                              sync_broadcast[i % 2]);
            break;
        case KIND_ALLREDUCE:
            shmem_double_sum_to_all(p->dst, p->src, doubles, 0, 0, p->ranks, p->work,
                                    sync_reduce[i % 2]);
            break;
        case KIND_FADD:
            if (p->rank == 0)
                shmem_long_atomic_fetch_add(p->word, 1, 1);
            break;
        case KIND_FADD_ALL:
            shmem_long_atomic_fetch_add(p->word, 1, 0);
            break;
        default:
            break;
        }
    }
}

static double run_side(void *arg, uint64_t iters)
{
    static long number;
    struct peer *p = arg;
    double start;

    shmem_barrier_all();
    number++;
    for (int r = 1; r < p->ranks; r++) {
        shmem_long_p(&command[0], p->kind, r);
        shmem_long_p(&command[1], (long)p->size, r);
        shmem_long_p(&command[2], (long)iters, r);
        shmem_fence();
        shmem_long_p(&command_number, number, r);
    }
    shmem_quiet();
    start = aq_bench_now();
    run(p, iters);
    return aq_bench_now() - start;
}

static void serve(struct peer *p)
{
    for (long number = 1;; number++) {
        shmem_barrier_all();
        shmem_long_wait_until(&command_number, SHMEM_CMP_GE, number);
        p->kind = (enum kind)command[0];
        p->size = (size_t)command[1];
        if (p->kind == KIND_QUIT)
            return;
        run(p, (uint64_t)command[2]);
    }
}

static void measure(struct peer *p, const char *who, const char *name, enum kind kind, size_t size,
                    int quick)
{
    p->kind = kind;
    p->size = size;
    aq_bench_report(who, name, size, (struct aq_side){ run_side, p }, quick != 0);
}

static void measure_all(struct peer *p, const char *who, int quick)
{
    static const size_t sizes[] = { 8, 1024, 65536, 1u << 20 };

    measure(p, who, "barrier", KIND_BARRIER, 0, quick);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure(p, who, "broadcast", KIND_BROADCAST, sizes[i], quick);
        measure(p, who, "allreduce", KIND_ALLREDUCE, sizes[i], quick);
    }
    measure(p, who, "fadd", KIND_FADD, 8, quick);
    measure(p, who, "fadd_contended", KIND_FADD_ALL, 8, quick);
}

static void init_sync(void)
{
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++)
            sync_broadcast[k][i] = SHMEM_SYNC_VALUE;
        for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
            sync_reduce[k][i] = SHMEM_SYNC_VALUE;
    }
}

int main(int argc, char **argv)
{
    struct peer p;

    memset(&p, 0, sizeof(p));
    shmem_init();
    p.rank = shmem_my_pe();
    p.ranks = shmem_n_pes();
    if (p.ranks < 2 || argc != 3)
        return 2;
    init_sync();
    p.src = shmem_align(4096, POOL);
    p.dst = shmem_align(4096, POOL);
    p.work = shmem_align(4096, POOL + SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(double));
    p.word = shmem_align(4096, 4096);
    if (p.src == NULL || p.dst == NULL || p.work == NULL || p.word == NULL)
        shmem_global_exit(2);
    memset(p.src, 0, POOL);
    memset(p.dst, 0, POOL);
    *p.word = 0;
    shmem_barrier_all();
    if (p.rank == 0) {
        measure_all(&p, argv[1], strcmp(argv[2], "quick") == 0);
        p.kind = KIND_QUIT;
        run_side(&p, 0);
    } else {
        serve(&p);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
