/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_shmem.c - the rows of aq-bench that OpenSHMEM can do: put, get and barrier between two
 * ranks.
 * Owns      one symmetric block
 * Threads   one in every process
 * Uses      OpenSHMEM, bench_stat.h, bench_limit.h
 *
 * usage: oshrun -n 2 peer_shmem WHO quick|full - prints record lines for aq-bench. The limit is
 * memcpy to the peer's memory where shmem_ptr() gives its address; else the row has none.
 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#include "bench_limit.h"
#include "bench_stat.h"

#define POOL ((size_t)2 << 20)

enum kind { KIND_PUT, KIND_GET, KIND_BARRIER, KIND_QUIT };

struct peer {
    int rank;
    unsigned char *base, *buffer,
        *remote_addr; /* symmetric, private, the peer's as mapped here or NULL */
    struct aq_limit limit;
    enum kind kind;
    size_t size;
};

/* Written by rank 0 in rank 1: the number of a command, and what it is. */
static long command_number;
static long command_iters, command_limit;

struct side {
    struct peer *peer;
    int limit;
};

static void run_barrier(struct peer *p, uint64_t iters, int limit)
{
    if (limit) {
        aq_limit_barrier(&p->limit, iters, (uint32_t)p->rank, 2);
        return;
    }
    for (uint64_t i = 0; i < iters; i++)
        shmem_barrier_all();
}

static void run_transfer(struct peer *p, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (p->kind == KIND_PUT)
            shmem_putmem(p->base, p->buffer, p->size, 1), shmem_quiet();
        else
            shmem_getmem(p->buffer, p->base, p->size, 1);
    }
}

static void run_copy(struct peer *p, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (p->kind == KIND_PUT)
            memcpy(p->remote_addr, p->buffer, p->size);
        else
            memcpy(p->buffer, p->remote_addr, p->size);
        aq_limit_compiler_barrier();
    }
}

static void send_command(const struct side *s, long iters)
{
    static long number;

    number++;
    shmem_long_p(&command_iters, iters, 1);
    shmem_long_p(&command_limit, s->limit, 1);
    shmem_fence();
    shmem_long_p(&command_number, number, 1);
    shmem_quiet();
}

static double run_side(void *arg, uint64_t iters)
{
    struct side *s = arg;
    struct peer *p = s->peer;
    double start;

    if (p->kind == KIND_BARRIER)
        send_command(s, (long)iters);
    start = aq_bench_now();
    if (p->kind == KIND_BARRIER)
        run_barrier(p, iters, s->limit);
    else if (s->limit)
        run_copy(p, iters);
    else
        run_transfer(p, iters);
    return aq_bench_now() - start;
}

/* Rank 1 waits in the library; the barrier rows are all it takes part in. */
static void serve(struct peer *p)
{
    for (long number = 1;; number++) {
        shmem_long_wait_until(&command_number, SHMEM_CMP_GE, number);
        if (command_iters < 0)
            return;
        run_barrier(p, (uint64_t)command_iters, command_limit != 0);
    }
}

static void measure(struct peer *p, const char *who, const char *name, enum kind kind, size_t size,
                    int quick)
{
    struct side subject = { p, 0 }, limit = { p, 1 };
    struct aq_measure m = { { run_side, &subject }, { run_side, &limit }, 1e6,  quick ? 25 : 101,
                            quick ? 0.2e9 : 1e9,    aq_bench_switches,    NULL, 1 };
    struct aq_result r;

    memset(&r, 0, sizeof(r));
    p->kind = kind;
    p->size = size;
    if (p->remote_addr == NULL)
        m.limit.run = NULL;
    else
        snprintf(r.limit_name, sizeof(r.limit_name), "%s",
                 kind == KIND_BARRIER ? "flag exchange" : "memcpy");
    snprintf(r.who, sizeof(r.who), "%s", who);
    snprintf(r.name, sizeof(r.name), "%s", name);
    snprintf(r.unit, sizeof(r.unit), "ns");
    r.size = size;
    aq_bench_settle(&m, 3, &r);
    aq_record_write(stdout, &r);
}

static void measure_all(struct peer *p, const char *who, int quick)
{
    static const size_t transfers[] = { 8, 4096, 65536, 1u << 20 };
    struct side quit = { p, 0 };

    for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); i++)
        measure(p, who, "put", KIND_PUT, transfers[i], quick);
    for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); i++)
        measure(p, who, "get", KIND_GET, transfers[i], quick);
    measure(p, who, "barrier", KIND_BARRIER, 0, quick);
    send_command(&quit, -1);
}

int main(int argc, char **argv)
{
    struct peer p;
    void *area;

    memset(&p, 0, sizeof(p));
    shmem_init();
    p.rank = shmem_my_pe();
    if (shmem_n_pes() != 2 || argc != 3)
        return 2;
    p.base = shmem_align(4096, POOL);
    area = shmem_align(4096, sizeof(struct aq_limit_area));
    p.buffer = aligned_alloc(4096, POOL);
    if (p.base == NULL || area == NULL || p.buffer == NULL)
        shmem_global_exit(2);
    memset(p.base, 1, POOL);
    memset(p.buffer, 3, POOL);
    memset(area, 0, sizeof(struct aq_limit_area));
    p.remote_addr = p.rank == 0 ? shmem_ptr(p.base, 1) : p.base;
    p.limit.area = p.rank == 0 ? area : shmem_ptr(area, 0);
    p.limit.pause = true;
    shmem_barrier_all();
    if (p.rank == 0)
        measure_all(&p, argv[1], strcmp(argv[2], "quick") == 0);
    else
        serve(&p);
    shmem_barrier_all();
    free(p.buffer);
    shmem_finalize();
    return 0;
}
