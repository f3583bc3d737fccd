/*
 * armci_net.c - ranks that share no memory: operations at a target that sleeps and at one that
 * waits in the library, the ways of contiguous transfers, sections, aggregate handles.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <semaphore.h>
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

enum { ANSWER_BARRIER = 1 };

static char *local, *remote;

static void answer(int how, long iters, long size)
{
    (void)how, (void)iters, (void)size;
    ARMCI_Barrier();
}

/* --- operations --- */

static void get8(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote, local, 8, 1);
    (void)state;
}

static void put8(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Put(local, remote, 8, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void acc8(void *state, long iters)
{
    double one = 1;

    for (long i = 0; i < iters; i++) {
        ARMCI_Acc(ARMCI_ACC_DBL, &one, local, remote, 8, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void rmw8(void *state, long iters)
{
    long drawn;

    for (long i = 0; i < iters; i++)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, remote, 1, 1);
    (void)state;
}

static void lock(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Lock(0, 1);
        ARMCI_Unlock(0, 1);
    }
    (void)state;
}

/* --- what waking a thread costs --- */

static sem_t there, back;

static void *woken(void *arg)
{
    for (;;) {
        sem_wait(&there);
        sem_post(&back);
    }
    return arg;
}

static void wake(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        sem_post(&there);
        sem_wait(&back);
    }
    (void)state;
}

static double wake_ns(void)
{
    pthread_t thread;
    double ns;

    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    if (pthread_create(&thread, NULL, woken, NULL) != 0)
        return 0;
    ns = bench_time((struct bench_side){ "", wake, NULL }) / 2;
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return ns;
}

static void progress_rows(void)
{
    static const struct bench_side sides[] = { { "get 8 B", get8, NULL },
                                               { "put 8 B and fence", put8, NULL },
                                               { "acc 8 B and fence", acc8, NULL },
                                               { "fetch and add", rmw8, NULL },
                                               { "lock and unlock", lock, NULL } };
    double asleep[5], polled[5];
    const double wakes = wake_ns();

    for (int i = 0; i < 5; i++)
        asleep[i] = bench_time(sides[i]);
    bench_call(ANSWER_BARRIER, 0, 0);
    for (int i = 0; i < 5; i++)
        polled[i] = bench_time(sides[i]);
    ARMCI_Barrier();
    for (int i = 0; i < 5; i++) {
        char name[64];
        /* a lock and its unlock are two trips, each with a wake-up */
        const double limit = polled[i] + (i == 4 ? 6 : 3) * wakes;

        snprintf(name, sizeof(name), "%s, target in the library", sides[i].name);
        bench_figure(name, 8, polled[i], "ns", 0);
        snprintf(name, sizeof(name), "%s, target asleep", sides[i].name);
        bench_figure(name, 8, asleep[i], "ns", limit);
    }
    bench_figure("waking a thread", 0, wakes, "ns", 0);
}

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

/* A side that changes settings first: "NAME=VALUE NAME=VALUE". */
struct forced {
    const char *settings;
    void (*run)(void *state, long iters);
};

static void apply(const char *settings)
{
    char text[256], *rest = text, *word;

    snprintf(text, sizeof(text), "%s", settings);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');

        *value = '\0';
        if (ARMCIX_Set(word, value + 1) != 0)
            ARMCI_Error("unknown setting", 1);
    }
}

static void run_forced(void *state, long iters)
{
    const struct forced *forced = state;

    apply(forced->settings);
    forced->run(NULL, iters);
}

#define DEFAULTS                                                                    \
    "AQ_ARMCI_GET=auto AQ_ARMCI_PUT=auto AQ_ARMCI_STRIDED=auto AQ_ARMCI_BUFFERS=4 " \
    "AQ_ARMCI_CHUNK=65536 AQ_ARMCI_FIRST_CHUNK=16384"

static void compare(const char *name, long size, void (*run)(void *, long), const char *subject,
                    const char *other, double goal)
{
    struct forced a = { subject, run }, b = { other, run };
    const char *last = strrchr(other, '=');

    if (strncmp(other, "AQ_ARMCI_BUFFERS=", 17) == 0)
        last = other + 16;
    bench_row(name, size, (struct bench_side){ "", run_forced, &a },
              (struct bench_side){ last + 1, run_forced, &b }, goal);
    apply(DEFAULTS);
}

static void choice_rows(void)
{
    static const int sizes[] = { 8, 1024, 16384, 262144, 4 << 20 };

    for (int i = 0; i < 5; i++) {
        bytes = sizes[i];
        compare("get, automatic", bytes, get_bytes, "AQ_ARMCI_GET=auto", "AQ_ARMCI_GET=buffered",
                1.1);
        compare("get, automatic", bytes, get_bytes, "AQ_ARMCI_GET=auto", "AQ_ARMCI_GET=assisted",
                1.1);
        compare("put, automatic", bytes, put_bytes, "AQ_ARMCI_PUT=auto", "AQ_ARMCI_PUT=buffered",
                1.1);
    }
}

/* 16 MiB by 64 KiB. */
static void pipeline_rows(void)
{
    bytes = 16 << 20;
    compare("buffered put, 2 buffers", bytes, put_bytes, "AQ_ARMCI_PUT=buffered AQ_ARMCI_BUFFERS=2",
            "AQ_ARMCI_BUFFERS=1 AQ_ARMCI_PUT=buffered", 0);
    compare("buffered put, 2 buffers", bytes, put_bytes, "AQ_ARMCI_PUT=buffered AQ_ARMCI_BUFFERS=2",
            "AQ_ARMCI_BUFFERS=4 AQ_ARMCI_PUT=buffered", 0);
    compare("buffered get, 4 buffers", bytes, get_bytes, "AQ_ARMCI_GET=buffered AQ_ARMCI_BUFFERS=4",
            "AQ_ARMCI_BUFFERS=1 AQ_ARMCI_GET=buffered", 0);
    bytes = 256 << 10;
    compare("buffered put, small first chunk", bytes, put_bytes,
            "AQ_ARMCI_PUT=buffered AQ_ARMCI_FIRST_CHUNK=16384",
            "AQ_ARMCI_PUT=buffered AQ_ARMCI_FIRST_CHUNK=65536", 0);
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

static void section_rows(void)
{
    for (segment = 64; segment <= 16384; segment *= 4) {
        const double goal = segment <= 256 ? 2 : 1;

        bench_at_least("strided get", segment, (struct bench_side){ "", get_section, NULL },
                       (struct bench_side){ "loop of gets", get_loop, NULL }, goal);
        bench_at_least("strided put", segment, (struct bench_side){ "", put_section, NULL },
                       (struct bench_side){ "loop of puts", put_loop, NULL }, goal);
#ifdef BENCH_OURS
        compare("strided get, automatic", segment, get_section, "AQ_ARMCI_STRIDED=auto",
                "AQ_ARMCI_STRIDED=segments", 1.1);
        compare("strided put, automatic", segment, put_section, "AQ_ARMCI_STRIDED=auto",
                "AQ_ARMCI_STRIDED=segments", 1.1);
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
    bench_at_least("1000 aggregated doubles", 8 * MANY, (struct bench_side){ "", aggregate, NULL },
                   (struct bench_side){ "1000 calls", one_by_one, NULL }, 5);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, MEMORY);
    remote = bench_memory(1);
    local = malloc(MEMORY);
    memset(local, 0, MEMORY);
    ARMCI_Create_mutexes(1);
    if (bench_me == 0) {
        progress_rows();
        section_rows();
        aggregate_rows();
#ifdef BENCH_OURS
        choice_rows();
        pipeline_rows();
#endif
        bench_release();
    } else {
        bench_attend(answer);
    }
    ARMCI_Destroy_mutexes();
    bench_finish();
    return 0;
}
