/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi.c - the rows of aq-bench that any MPI-3 can do: send/receive, put, get, barrier
 * between two ranks.
 * Owns      one ordinary window for RMA and one shared window for the limits
 * Threads   one in every process
 * Uses      MPI, bench_stat.h, bench_limit.h
 *
 * usage: mpirun -n 2 peer_mpi WHO quick|full - prints record lines for aq-bench. The limits are
 * those of aq-bench, measured in these processes: cache lines in shared memory, memcpy to the
 * peer's mapped memory.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "bench_limit.h"
#include "bench_stat.h"

#define POOL        ((size_t)16 << 20)
#define TAG_COMMAND 1
#define TAG_DATA    2

enum kind { KIND_PINGPONG, KIND_PUT, KIND_GET, KIND_BARRIER, KIND_PAUSE, KIND_QUIT };

struct peer {
    int rank;
    MPI_Win window, shared;
    unsigned char *base, *buffer,
        *remote_addr; /* my window, private memory, the peer's shared memory */
    struct aq_limit limit;
    enum kind kind;
    size_t size;
};

/* What rank 0 asks of rank 1. */
struct command {
    int kind, limit;
    unsigned long long iters, size;
};

static void run_pingpong(struct peer *p, uint64_t iters)
{
    int n = (int)p->size;

    for (uint64_t i = 0; i < iters; i++) {
        if (p->rank == 0) {
            MPI_Send(p->buffer, n, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(p->buffer, n, MPI_BYTE, 1, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(p->buffer, n, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(p->buffer, n, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD);
        }
    }
}

static void run_rma(struct peer *p, uint64_t iters)
{
    int n = (int)p->size;

    for (uint64_t i = 0; i < iters; i++) {
        if (p->kind == KIND_PUT)
            MPI_Put(p->buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, p->window);
        else
            MPI_Get(p->buffer, n, MPI_BYTE, 1, 0, n, MPI_BYTE, p->window);
        MPI_Win_flush(1, p->window);
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

static void run_subject(struct peer *p, uint64_t iters)
{
    switch (p->kind) {
    case KIND_PINGPONG:
        run_pingpong(p, iters);
        break;
    case KIND_BARRIER:
        for (uint64_t i = 0; i < iters; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        break;
    default:
        if (p->rank == 0)
            run_rma(p, iters);
    }
}

static void run_limit(struct peer *p, uint64_t iters)
{
    switch (p->kind) {
    case KIND_PINGPONG:
        aq_limit_payload(&p->limit, p->buffer, p->size, NULL);
        if (p->rank == 0)
            aq_limit_ping(&p->limit, iters);
        else
            aq_limit_pong(&p->limit, iters);
        break;
    case KIND_BARRIER:
        aq_limit_barrier(&p->limit, iters, (uint32_t)p->rank, 2);
        break;
    default:
        if (p->rank == 0)
            run_copy(p, iters);
    }
}

struct side {
    struct peer *peer;
    int limit;
};

static void send_command(const struct side *s, uint64_t iters, int kind)
{
    struct command c = { kind, s->limit, iters, s->peer->size };

    MPI_Send(&c, sizeof(c), MPI_BYTE, 1, TAG_COMMAND, MPI_COMM_WORLD);
}

/* Rank 1 runs its part and is back in MPI_Recv, making progress, while rank 0 puts, gets or
 * copies. */
static double run_side(void *arg, uint64_t iters)
{
    struct side *s = arg;
    double start;

    send_command(s, iters, (int)s->peer->kind);
    start = aq_bench_now();
    if (s->limit)
        run_limit(s->peer, iters);
    else
        run_subject(s->peer, iters);
    return aq_bench_now() - start;
}

static void serve(struct peer *p)
{
    for (;;) {
        struct command c;

        MPI_Recv(&c, sizeof(c), MPI_BYTE, 0, TAG_COMMAND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (c.kind == KIND_QUIT)
            return;
        if (c.kind == KIND_PAUSE) {
            p->limit.pause = c.iters != 0;
            continue;
        }
        p->kind = (enum kind)c.kind;
        p->size = c.size;
        if (c.limit)
            run_limit(p, c.iters);
        else
            run_subject(p, c.iters);
    }
}

static void choose_pause(struct side *limit)
{
    double best[2] = { 1e18, 1e18 };

    for (int k = 0; k < 15; k++) {
        int pause = k < 14 ? k % 2 : best[1] < best[0];
        double ns;

        limit->peer->limit.pause = pause != 0;
        send_command(limit, (uint64_t)pause, KIND_PAUSE);
        ns = run_side(limit, 2000);
        if (ns < best[pause])
            best[pause] = ns;
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
    if (kind == KIND_PINGPONG || kind == KIND_BARRIER)
        choose_pause(&limit);
    snprintf(r.who, sizeof(r.who), "%s", who);
    snprintf(r.name, sizeof(r.name), "%s", name);
    snprintf(r.unit, sizeof(r.unit), "ns");
    snprintf(r.limit_name, sizeof(r.limit_name), "%s",
             kind == KIND_BARRIER    ? "flag exchange"
             : kind != KIND_PINGPONG ? "memcpy"
             : size > 0              ? "line ping-pong + 2 memcpy"
                                     : "line ping-pong");
    r.size = size;
    aq_bench_settle(&m, 3, &r);
    aq_record_write(stdout, &r);
}

static void measure_all(struct peer *p, const char *who, int quick)
{
    static const size_t messages[] = { 0, 8, 512, 4096, 65536 };
    static const size_t transfers[] = { 8, 4096, 65536, 1u << 20 };

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        measure(p, who, "pingpong", KIND_PINGPONG, messages[i], quick);
    for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); i++)
        measure(p, who, "put", KIND_PUT, transfers[i], quick);
    for (size_t i = 0; i < sizeof(transfers) / sizeof(transfers[0]); i++)
        measure(p, who, "get", KIND_GET, transfers[i], quick);
    measure(p, who, "barrier", KIND_BARRIER, 0, quick);
}

static void open_windows(struct peer *p)
{
    size_t size = sizeof(struct aq_limit_area) + 4096 + POOL;
    void *ours, *first, *second;
    MPI_Aint length;
    int unit;

    MPI_Win_allocate((MPI_Aint)POOL, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->base, &p->window);
    MPI_Win_lock_all(0, p->window);
    MPI_Win_allocate_shared((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &ours, &p->shared);
    MPI_Win_lock_all(0, p->shared);
    memset(ours, 0, size);
    memset(p->base, 1, POOL);
    MPI_Win_shared_query(p->shared, 0, &length, &unit, &first);
    MPI_Win_shared_query(p->shared, 1, &length, &unit, &second);
    /* rank 0's part holds the lines, rank 1's part receives the copies */
    p->limit.area = (struct aq_limit_area *)(void *)(((uintptr_t)first + 4095) & ~(uintptr_t)4095);
    p->remote_addr = (unsigned char *)(((uintptr_t)second + 4095) & ~(uintptr_t)4095);
    p->buffer = aligned_alloc(4096, POOL);
    memset(p->buffer, 3, POOL);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct peer p;
    int ranks;

    memset(&p, 0, sizeof(p));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks == 2 && argc == 3) {
        struct side quit = { &p, 0 };

        open_windows(&p);
        if (p.rank == 0) {
            measure_all(&p, argv[1], strcmp(argv[2], "quick") == 0);
            send_command(&quit, 0, KIND_QUIT);
        } else {
            serve(&p);
        }
        MPI_Win_unlock_all(p.window);
        MPI_Win_unlock_all(p.shared);
        MPI_Win_free(&p.window);
        MPI_Win_free(&p.shared);
        free(p.buffer);
    }
    MPI_Finalize();
    return ranks == 2 && argc == 3 ? 0 : 2;
}
