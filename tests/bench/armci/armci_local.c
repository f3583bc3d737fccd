/*
 * armci_local.c - ranks of one host: get against load and MPI, strided copies against a copy loop,
 * accumulate against a local loop, locks against compare-and-swap.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "armci.h"
#include "bench_armci.h"

#define POOL    ((size_t)128 << 20) /* what no cache holds */
#define STEP    ((size_t)4096 + 64)
#define LARGE   ((size_t)512 << 10)
#define SEGMENT 256
#define ROWS    64
#define PITCH   1024

#ifdef BENCH_OURS
#define IS_OURS true
#else
#define IS_OURS false
#endif

enum { ANSWER_PING = 1, ANSWER_STREAM };

static char *local, *remote;
static size_t at;
static MPI_Win window;
static double sink;

/* The next place of a walk through the pool. */
static size_t next_place(size_t bytes)
{
    at += bytes > STEP ? bytes : STEP;
    if (at + bytes > POOL)
        at = 0;
    return at;
}

/* --- 8 bytes --- */

static void get8(void *state, long iters)
{
    double x;

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote, &x, 8, 1);
}

static void get8_cold(void *state, long iters)
{
    double x;

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote + next_place(8), &x, 8, 1);
}

/* As a program would: the pointer comes from a table each time. */
static void load8_cold(void *state, long iters)
{
    char *volatile *table = state;

    for (long i = 0; i < iters; i++)
        sink = *(volatile double *)(table[0] + next_place(8));
}

static void mpi_get8(void *state, long iters)
{
    double x;

    (void)state;
    for (long i = 0; i < iters; i++) {
        MPI_Get(&x, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window);
        MPI_Win_flush(1, window);
    }
}

/* Half round trips, of messages of any size in places that no cache holds. */
static void half_trip(void *state, long iters)
{
    const int bytes = (int)*(const size_t *)state;

    bench_call(ANSWER_PING, iters, bytes);
    for (long i = 0; i < (iters + 1) / 2; i++) {
        MPI_Send(local + next_place((size_t)bytes), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(local + next_place((size_t)bytes), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
}

static void answer(int how, long iters, long size)
{
    (void)how;
    for (long i = 0; i < (iters + 1) / 2; i++) {
        MPI_Recv(local + next_place((size_t)size), (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(local + next_place((size_t)size), (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void get_large(void *state, long iters)
{
    const int bytes = (int)*(const size_t *)state;

    for (long i = 0; i < iters; i++) {
        const size_t place = next_place((size_t)bytes);

        ARMCI_Get(remote + place, local + place, bytes, 1);
    }
}

/* --- sections --- */

static void get_strided(void *state, long iters)
{
    int wide[1] = { PITCH }, narrow[1] = { SEGMENT }, count[2] = { SEGMENT, ROWS };

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_GetS(remote, wide, local, narrow, count, 1, 1);
}

static void put_strided(void *state, long iters)
{
    int wide[1] = { PITCH }, narrow[1] = { SEGMENT }, count[2] = { SEGMENT, ROWS };

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_PutS(local, narrow, remote, wide, count, 1, 1);
}

static void copy_loop(void *state, long iters)
{
    char *from = state;
    char *to = from == remote ? local : remote;
    const size_t from_step = from == remote ? PITCH : SEGMENT,
                 to_step = from == remote ? SEGMENT : PITCH;

    for (long i = 0; i < iters; i++)
        for (size_t row = 0; row < ROWS; row++) {
            memcpy(to + row * to_step, from + row * from_step, SEGMENT);
            __asm__ volatile("" ::: "memory");
        }
}

/* --- accumulate --- */

static size_t acc_bytes;

static void accumulate(void *state, long iters)
{
    double scale = 1.5;

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_Acc(ARMCI_ACC_DBL, &scale, local, remote, (int)acc_bytes, 1);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2")))
#endif
static void
add_loop(double *restrict to, const double *restrict from, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        to[i] += scale * from[i];
}

static void daxpy(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        add_loop((double *)(void *)remote, (const double *)(void *)local, acc_bytes / 8, 1.5);
        __asm__ volatile("" ::: "memory");
    }
    (void)state;
}

/* --- locks --- */

static void lock_pair(void *state, long iters)
{
    (void)state;
    for (long i = 0; i < iters; i++) {
        ARMCI_Lock(0, 0);
        ARMCI_Unlock(0, 0);
    }
}

static void swap_pair(void *state, long iters)
{
    unsigned *word = state;

    for (long i = 0; i < iters; i++) {
        unsigned expected = 0;

        __atomic_compare_exchange_n(word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
        expected = 1;
        __atomic_compare_exchange_n(word, &expected, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}

static void rmw(void *state, long iters)
{
    long drawn;

    (void)state;
    for (long i = 0; i < iters; i++)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, remote, 1, 1);
}

static void mpi_fetch(void *state, long iters)
{
    long one = 1, drawn;

    (void)state;
    for (long i = 0; i < iters; i++) {
        MPI_Fetch_and_op(&one, &drawn, MPI_LONG, 1, 8, MPI_SUM, window);
        MPI_Win_flush(1, window);
    }
}

/* What is compared with loads and stores of the same memory. */
static void mapped_rows(void)
{
    bench_row("get 8 B, cold", 8, (struct bench_side){ "", get8_cold, NULL },
              (struct bench_side){ "load", load8_cold, &remote }, 1.5);
    bench_at_min("strided get, 256 B", SEGMENT * ROWS, (struct bench_side){ "", get_strided, NULL },
                 (struct bench_side){ "copy loop", copy_loop, remote }, 0.9);
    bench_at_min("strided put, 256 B", SEGMENT * ROWS, (struct bench_side){ "", put_strided, NULL },
                 (struct bench_side){ "copy loop", copy_loop, local }, 0.9);
    for (acc_bytes = 65536; acc_bytes <= 1 << 20; acc_bytes *= 4)
        bench_at_min("accumulate", (long)acc_bytes, (struct bench_side){ "", accumulate, NULL },
                     (struct bench_side){ "add loop", daxpy, NULL }, 0.8);
}

static void unmapped_rows(void)
{
    bench_figure("strided get, 256 B", SEGMENT * ROWS,
                 bench_time((struct bench_side){ "", get_strided, NULL }), "ns", 0);
    bench_figure("strided put, 256 B", SEGMENT * ROWS,
                 bench_time((struct bench_side){ "", put_strided, NULL }), "ns", 0);
    for (acc_bytes = 65536; acc_bytes <= 1 << 20; acc_bytes *= 4)
        bench_figure("accumulate", (long)acc_bytes,
                     bench_time((struct bench_side){ "", accumulate, NULL }), "ns", 0);
}

static void size_rows(bool is_mapped)
{
    static const size_t sizes[] = { 64, 512, 4096, 32768, LARGE, 4 << 20 };

    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        size_t size = sizes[i];

        if (bench_quick && size != LARGE)
            continue;
        bench_at_min("get, cold", (long)size, (struct bench_side){ "", get_large, &size },
                     (struct bench_side){ "MPI message", half_trip, &size },
                     size == LARGE && is_mapped ? 1.5 : 0);
    }
}

static void rows(bool is_mapped)
{
    static unsigned word;
    static size_t eight = 8;
    const struct bench_side get = { "", get8, NULL };

    bench_at_min("get 8 B", 8, get, (struct bench_side){ "MPI_Get", mpi_get8, NULL }, 0);
    bench_at_min("get 8 B", 8, get, (struct bench_side){ "MPI half trip", half_trip, &eight },
                 is_mapped ? 10 : 0);
    if (is_mapped)
        mapped_rows();
    else
        unmapped_rows();
    size_rows(is_mapped);
    bench_row("lock and unlock", 0, (struct bench_side){ "", lock_pair, NULL },
              (struct bench_side){ "two swaps", swap_pair, &word }, is_mapped ? 1.5 : 0);
    bench_at_min("fetch and add", 8, (struct bench_side){ "", rmw, NULL },
                 (struct bench_side){ "MPI", mpi_fetch, NULL }, 0);
}

int main(int argc, char **argv)
{
    const char *sharing = getenv("GASNET_SUPERNODE_MAXSIZE");
    char *window_memory;

    bench_start(&argc, &argv, POOL);
    remote = bench_memory(1);
    local = malloc(POOL);
    memset(local, 0, POOL);
    ARMCI_Create_mutexes(1);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window_memory, &window);
    MPI_Win_lock_all(0, window);
    if (bench_me == 0) {
        double zero = 0;

        ARMCI_Acc(ARMCI_ACC_DBL, &zero, local, remote, (int)POOL / 2, 1);
        ARMCI_Get(remote + POOL / 2, local, (int)(POOL / 2), 1); /* mapped, page by page */
        rows(IS_OURS && (sharing == NULL || strcmp(sharing, "1") != 0));
        bench_release();
    } else {
        bench_attend(answer);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    ARMCI_Destroy_mutexes();
    bench_finish();
    return 0;
}
