/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi_net.c - the rows of aq-bench between ranks that share no memory, by an MPI that is told
 * to use a network.
 * Owns      nothing
 * Threads   one in every process
 * Uses      MPI, peer_window.h
 *
 * usage: mpirun -n 2 peer_mpi_net WHO quick|full - prints record lines for aq-bench, under the
 * names of its rows:
 *   am_short am_medium am_long   MPI_Send and MPI_Recv there and back
 *   am_short_flood               MPI_Isend of no bytes, WINDOW at a time, to posted receives
 *   put_stream                   MPI_Isend of so many bytes, some at a time, to posted receives
 *   put get fadd                 one-sided, each followed by MPI_Win_flush
 */
#include "peer_window.h"

#define WINDOW 64
#define TAG    2

enum kind {
    KIND_PINGPONG,
    KIND_STREAM,
    KIND_PUT,
    KIND_GET,
    KIND_FADD,
    KIND_BARRIER,
    KIND_ALLREDUCE
};

static void run_pingpong(struct peer *p, uint64_t iters)
{
    int n = (int)p->size;

    for (uint64_t i = 0; i < iters; i++) {
        if (p->rank == 0) {
            MPI_Send(p->src, n, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(p->dst, n, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(p->dst, n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(p->src, n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
}

/* Operations that are under way at a time: 4 MiB, at least 2, at most WINDOW. */
static uint64_t window_of(size_t size)
{
    uint64_t window = size > 0 ? ((uint64_t)4 << 20) / size : WINDOW;

    return window < 2 ? 2 : window > WINDOW ? WINDOW : window;
}

static void run_stream(struct peer *p, uint64_t iters)
{
    uint64_t window = window_of(p->size);
    MPI_Request requests[WINDOW];
    int n = (int)p->size;

    for (uint64_t i = 0; i < iters + window; i++) {
        MPI_Request *r = &requests[i % window];

        if (i >= window && i - window < iters)
            MPI_Wait(r, MPI_STATUS_IGNORE);
        if (i >= iters)
            continue;
        if (p->rank == 0)
            MPI_Isend(p->src, n, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, r);
        else
            MPI_Irecv(p->dst, n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, r);
    }
    if (p->rank == 0) /* until all of it has arrived */
        MPI_Recv(p->dst, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(p->src, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void run_one_sided(struct peer *p, uint64_t iters)
{
    long long one = 1, old;
    int n = (int)p->size;

    for (uint64_t i = 0; i < iters; i++) {
        if (p->kind == KIND_PUT)
            MPI_Put(p->src, n, MPI_BYTE, 1, 0, n, MPI_BYTE, p->window);
        else if (p->kind == KIND_GET)
            MPI_Get(p->dst, n, MPI_BYTE, 1, 0, n, MPI_BYTE, p->window);
        else
            MPI_Fetch_and_op(&one, &old, MPI_LONG_LONG, 1, 0, MPI_SUM, p->window);
        MPI_Win_flush(1, p->window);
    }
}

static void run(struct peer *p, uint64_t iters)
{
    switch (p->kind) {
    case KIND_PINGPONG:
        run_pingpong(p, iters);
        break;
    case KIND_STREAM:
        run_stream(p, iters);
        break;
    case KIND_BARRIER:
        for (uint64_t i = 0; i < iters; i++)
            MPI_Barrier(MPI_COMM_WORLD);
        break;
    case KIND_ALLREDUCE:
        for (uint64_t i = 0; i < iters; i++)
            MPI_Allreduce(p->src, p->dst, (int)(p->size / sizeof(double)), MPI_DOUBLE, MPI_SUM,
                          MPI_COMM_WORLD);
        break;
    default:
        if (p->rank == 0)
            run_one_sided(p, iters);
    }
}

static const struct {
    const char *name;
    enum kind kind;
    size_t sizes[10]; /* ended by END */
} rows[] = {
#define END ((size_t)-1)
    { "am_short", KIND_PINGPONG, { 0, END } },
    { "am_medium", KIND_PINGPONG, { 8, 512, 4096, 32768, END } },
    { "am_long", KIND_PINGPONG, { 65536, 1u << 20, END } },
    { "am_short_flood", KIND_STREAM, { 0, END } },
    { "put_stream",
      KIND_STREAM,
      { 64, 512, 4096, 65536, 1u << 18, 1u << 20, 4u << 20, 16u << 20, END } },
    { "put", KIND_PUT, { 8, 4096, 65536, 1u << 20, END } },
    { "get", KIND_GET, { 8, 4096, 65536, 1u << 20, END } },
    { "fadd", KIND_FADD, { 8, END } },
    { "barrier", KIND_BARRIER, { 0, END } },
    { "allreduce", KIND_ALLREDUCE, { 8, 1024, 65536, 1u << 20, END } },
};

static void measure_all(struct peer *p, const char *who, int quick)
{
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        for (const size_t *size = rows[k].sizes; *size != END; size++)
            measure(p, who, rows[k].name, rows[k].kind, *size, quick);
}

int main(int argc, char **argv)
{
    return peer_main(argc, argv, 2);
}
