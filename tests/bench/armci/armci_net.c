/*
 * armci_net.c - ranks that share no memory: the ways of contiguous transfers, sections, aggregate
 * handles.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armci.h"
#include "bench_armci.h"
#ifdef BENCH_OURS
#include "armcix.h"
#endif

#define MEMORY ((size_t)48 << 20)
#define MANY   1000

static char *local, *remote;

/* --- contiguous transfers by each way --- */

#ifdef BENCH_OURS
static int bytes;

static void get_bytes(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote, local, bytes, 1);
    (void)state;
}

static void put_bytes(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Put(local, remote, bytes, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

/* As programs put: nothing is waited for but the last arrival. */
static void puts_in_a_row(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Put(local, remote, bytes, 1);
    ARMCI_Fence(1);
    (void)state;
}

/* A side that changes settings first: "NAME=VALUE NAME=VALUE". */
struct forced {
    const char *settings;
    void (*run)(void *state, long iters);
};

static void run_forced(void *state, long iters)
{
    const struct forced *forced = state;

    bench_apply(forced->settings);
    forced->run(NULL, iters);
}

static void compare(const char *name, long size, void (*run)(void *, long), const char *subject,
                    const char *other, double goal)
{
    struct forced a = { subject, run }, b = { other, run };
    const char *last = strrchr(other, '=');

    bench_row(name, size, (struct bench_side){ "", run_forced, &a },
              (struct bench_side){ last + 1, run_forced, &b }, goal);
    bench_apply(BENCH_DEFAULTS);
}

static void choice_rows(void)
{
    static const int sizes[] = { 8, 256, 1024, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20 };

    for (int i = 0; i < (int)(sizeof(sizes) / sizeof(sizes[0])); i++) {
        bytes = sizes[i];
        compare("get, automatic", bytes, get_bytes, "AQ_ARMCI_GET=auto", "AQ_ARMCI_GET=buffered",
                1.1);
        compare("get, automatic", bytes, get_bytes, "AQ_ARMCI_GET=auto", "AQ_ARMCI_GET=assisted",
                1.1);
        compare("put, automatic", bytes, put_bytes, "AQ_ARMCI_PUT=auto", "AQ_ARMCI_PUT=buffered",
                1.1);
        compare("put, automatic", bytes, put_bytes, "AQ_ARMCI_PUT=auto", "AQ_ARMCI_PUT=direct",
                1.1);
        compare("puts in a row, automatic", bytes, puts_in_a_row, "AQ_ARMCI_PUT=auto",
                "AQ_ARMCI_PUT=direct", 1.1);
        compare("puts in a row, automatic", bytes, puts_in_a_row, "AQ_ARMCI_PUT=auto",
                "AQ_ARMCI_PUT=eager", 1.1);
    }
}
#endif

/* --- sections: 64 KiB in segments, one call against a non-blocking call for each --- */

static int segment;

static void get_section(void *state, long iters)
{
    int wide[1] = { 2 * segment }, narrow[1] = { segment }, count[2] = { segment, 65536 / segment };

    for (long i = 0; i < iters; i++)
        ARMCI_GetS(remote, wide, local, narrow, count, 1, 1);
    (void)state;
}

static void put_section(void *state, long iters)
{
    int wide[1] = { 2 * segment }, narrow[1] = { segment }, count[2] = { segment, 65536 / segment };

    for (long i = 0; i < iters; i++) {
        ARMCI_PutS(local, narrow, remote, wide, count, 1, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void get_loop(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        for (int k = 0; k < 65536 / segment; k++)
            ARMCI_NbGet(remote + 2 * k * segment, local + k * segment, segment, 1, NULL);
        ARMCI_WaitAll();
    }
    (void)state;
}

static void put_loop(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        for (int k = 0; k < 65536 / segment; k++)
            ARMCI_NbPut(local + k * segment, remote + 2 * k * segment, segment, 1, NULL);
        ARMCI_WaitAll();
        ARMCI_Fence(1);
    }
    (void)state;
}

#ifdef BENCH_OURS
static void section_choice_rows(const char *forced)
{
    compare("strided get, automatic", segment, get_section, "AQ_ARMCI_STRIDED=auto", forced, 1.1);
    compare("strided put, automatic", segment, put_section, "AQ_ARMCI_STRIDED=auto", forced, 1.1);
}
#endif

static void section_rows(void)
{
    for (segment = 64; segment <= 16384; segment *= 4) {
        const double goal = segment <= 256 ? 2 : 1;

        bench_at_min("strided get", segment, (struct bench_side){ "", get_section, NULL },
                     (struct bench_side){ "loop of gets", get_loop, NULL }, goal);
        bench_at_min("strided put", segment, (struct bench_side){ "", put_section, NULL },
                     (struct bench_side){ "loop of puts", put_loop, NULL }, goal);
#ifdef BENCH_OURS
        section_choice_rows("AQ_ARMCI_STRIDED=segments");
        if (ARMCIX_Counter("run_ns") > 0) /* over mpi; elsewhere the two are the same way */
            section_choice_rows("AQ_ARMCI_STRIDED=packed");
#endif
    }
}

/* --- 1000 doubles in scattered places --- */

static void *scattered[MANY], *values[MANY];

static void one_by_one(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        for (int k = 0; k < MANY; k++)
            ARMCI_NbPut(values[k], scattered[k], 8, 1, NULL);
        ARMCI_WaitAll();
        ARMCI_Fence(1);
    }
    (void)state;
}

static void aggregate(void *state, long iters)
{
    armci_hdl_t handle;

    for (long i = 0; i < iters; i++) {
        ARMCI_INIT_HANDLE(&handle);
        ARMCI_SET_AGGREGATE_HANDLE(&handle);
        for (int k = 0; k < MANY; k++)
            ARMCI_NbPut(values[k], scattered[k], 8, 1, &handle);
        ARMCI_Wait(&handle);
        ARMCI_Fence(1);
    }
    (void)state;
}

/* The lists are built anew each time, as a program would that does not know them before. */
static void one_vector(void *state, long iters)
{
    void *from[MANY], *to[MANY];
    armci_giov_t vector;

    vector.src_ptr_array = from;
    vector.dst_ptr_array = to;
    vector.bytes = 8;
    vector.ptr_array_len = MANY;
    for (long i = 0; i < iters; i++) {
        for (int k = 0; k < MANY; k++) {
            from[k] = values[k];
            to[k] = scattered[k];
        }
        ARMCI_PutV(&vector, 1, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void aggregate_rows(void)
{
    for (int k = 0; k < MANY; k++) {
        scattered[k] = remote + 40 * ((size_t)k * 377 % MANY);
        values[k] = local + 8 * k;
    }
    bench_row("1000 aggregated doubles", 8 * MANY, (struct bench_side){ "", aggregate, NULL },
              (struct bench_side){ "one vector call", one_vector, NULL }, 1.1);
    bench_at_min("1000 aggregated doubles", 8 * MANY, (struct bench_side){ "", aggregate, NULL },
                 (struct bench_side){ "1000 calls", one_by_one, NULL }, 5);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, MEMORY);
    remote = bench_memory(1);
    local = malloc(MEMORY);
    memset(local, 0, MEMORY);
    if (bench_me == 0) {
        section_rows();
        aggregate_rows();
#ifdef BENCH_OURS
        choice_rows();
#endif
        bench_release();
    } else {
        bench_attend(NULL);
    }
    bench_finish();
    return 0;
}
