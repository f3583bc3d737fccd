/*
 * armci_pipe.c - pipelines of chunks through buffers against what their parts take: one buffer
 * against wire and copy in turn, several against the longer of the two, the number of buffers, a
 * smaller first chunk, the first get to memory that no transfer has seen.
 *
 * A get takes the bytes from where they are at the target, so that only the requester copies: with
 * one buffer T = n/bn + n/bc, with several T = n/min(bn, bc).
 *
 * Usage: armci_pipe shaped|plain full|quick     shaped: the wire is slower than the processors, so
 *                                               that what overlaps can be seen
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "armci.h"
#include "bench_armci.h"

#define BYTES ((size_t)16 << 20)
#define CHUNK ((size_t)1 << 20)
#define FRESH ((size_t)2 << 20)
#define POOL  ((size_t)128 << 20) /* what no cache holds */

static char *local, *remote, *buffer;
static size_t at;

/* A walk through the pool: data that is in no cache. */
static char *next_place(size_t bytes)
{
    at = at + 2 * bytes > POOL ? 0 : at + bytes;
    return local + at;
}

/* --- the parts --- */

static void wire(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        for (size_t done = 0; done < BYTES; done += CHUNK)
            ARMCI_Get(remote + done, buffer, (int)CHUNK, 1);
    (void)state;
}

static void copies(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        char *to = next_place(BYTES);

        for (size_t done = 0; done < BYTES; done += CHUNK)
            memcpy(to + done, buffer, CHUNK);
    }
    (void)state;
}

static void in_turn(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        char *to = next_place(BYTES);

        for (size_t done = 0; done < BYTES; done += CHUNK) {
            ARMCI_Get(remote + done, buffer, (int)CHUNK, 1);
            memcpy(to + done, buffer, CHUNK);
        }
    }
    (void)state;
}

/* --- the pipelines --- */

struct forced {
    const char *settings;
    void (*run)(long iters);
};

static void run_forced(void *state, long iters)
{
    const struct forced *forced = state;

    bench_apply(forced->settings);
    forced->run(iters);
    bench_apply(BENCH_DEFAULTS);
}

static void get_all(long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote, next_place(BYTES), (int)BYTES, 1);
}

static void put_all(long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Put(next_place(BYTES), remote, (int)BYTES, 1);
        ARMCI_Fence(1);
    }
}

static void put_some(long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Put(next_place(CHUNK / 4), remote, (int)(CHUNK / 4), 1);
        ARMCI_Fence(1);
    }
}

#define GET_BY(buffers)                                                      \
    "AQ_ARMCI_GET=buffered AQ_ARMCI_CHUNK=1048576 AQ_ARMCI_BUFFERS=" buffers \
    " AQ_ARMCI_FIRST_CHUNK=1048576"
#define PUT_BY(buffers, first) \
    "AQ_ARMCI_PUT=buffered AQ_ARMCI_BUFFERS=" buffers " AQ_ARMCI_FIRST_CHUNK=" first

static struct bench_side forced_side(const char *name, struct forced *forced)
{
    return (struct bench_side){ name, run_forced, forced };
}

static void model_rows(bool is_shaped)
{
    struct forced one = { GET_BY("1"), get_all }, four = { GET_BY("4"), get_all };
    const double bn = (double)BYTES / bench_time((struct bench_side){ "", wire, NULL }),
                 bc = (double)BYTES / bench_time((struct bench_side){ "", copies, NULL });
    const double gain = (1 / bn + 1 / bc) * (bn < bc ? bn : bc);

    bench_figure("wire, by 1 MiB", (long)BYTES, bn, "GB/s", 0);
    bench_figure("copy, by 1 MiB", (long)BYTES, bc, "GB/s", 0);
    bench_row("buffered get, 1 buffer", (long)BYTES, forced_side("", &one),
              (struct bench_side){ "wire, copy in turn", in_turn, NULL }, 1.15);
    bench_at_min("buffered get, 4 buffers", (long)BYTES, forced_side("", &four),
                 forced_side("1 buffer", &one), is_shaped ? 0.9 * gain : 0);
}

static void buffer_rows(void)
{
    struct forced puts[] = { { PUT_BY("1", "16384"), put_all },
                             { PUT_BY("2", "16384"), put_all },
                             { PUT_BY("3", "16384"), put_all },
                             { PUT_BY("4", "16384"), put_all } };
    struct forced small = { PUT_BY("4", "16384"), put_some },
                  equal = { PUT_BY("4", "65536"), put_some };
    static const char *const names[] = { "1 buffer", "2 buffers", "3 buffers", "4 buffers" };

    for (int i = 0; i < 4; i++)
        if (i != 1)
            bench_row("buffered put, 2 buffers", (long)BYTES, forced_side("", &puts[1]),
                      forced_side(names[i], &puts[i]), 0);
    bench_row("buffered put, first chunk 16 KiB", (long)CHUNK / 4, forced_side("", &small),
              forced_side("64 KiB", &equal), 0);
}

/* --- memory that no transfer has seen, but the program has --- */

static char *fresh;
static const int places = 16;

static void touch_fresh(void)
{
    fresh = mmap(NULL, FRESH * places, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(fresh, 1, FRESH * places);
}

static void get_fresh(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote, fresh + FRESH * (size_t)(i % places), (int)FRESH, 1);
    (void)state;
}

static void pin_fresh(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        char *place = fresh + FRESH * (size_t)(i % places);

        if (mlock(place, FRESH) == 0)
            munlock(place, FRESH);
    }
    (void)state;
}

static double once_ns(void (*run)(void *, long))
{
    const double start = bench_now();

    run(NULL, places);
    return (bench_now() - start) / places;
}

/* Over ibv: pinning the whole buffer before its transfer would take the sum of the two. */
static void fresh_rows(void)
{
    const char *conduit = getenv("GASNET_CONDUIT");
    const bool pins = conduit != NULL && strcmp(conduit, "ibv") == 0;
    double first = 0, again = 0, pin = 0;

    for (int round = 0; round < 3; round++) {
        double took;

        touch_fresh();
        took = once_ns(get_fresh);
        first = round == 0 || took < first ? took : first;
        took = once_ns(get_fresh);
        again = round == 0 || took < again ? took : again;
        took = once_ns(pin_fresh);
        pin = round == 0 || took < pin ? took : pin;
        munmap(fresh, FRESH * places);
    }
    bench_figure("mlock and munlock", (long)FRESH, pin, "ns", 0);
    bench_figure("get, to memory used before", (long)FRESH, again, "ns", 0);
    bench_figure("get, to fresh memory", (long)FRESH, first, "ns", pins ? again + pin : 0);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, BYTES);
    remote = bench_memory(1);
    local = malloc(POOL);
    buffer = malloc(CHUNK);
    memset(local, 0, POOL);
    memset(buffer, 0, CHUNK);
    if (bench_me == 0) {
        model_rows(argc > 1 && strcmp(argv[1], "shaped") == 0);
        buffer_rows();
        fresh_rows();
        bench_release();
    } else {
        bench_attend(NULL);
    }
    bench_finish();
    return 0;
}
