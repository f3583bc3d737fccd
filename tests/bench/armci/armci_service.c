/*
 * armci_service.c - what serves a rank's memory while its program does something else: an idle job,
 * operations at a target that sleeps, computes or waits in the library, ranks that flood each other
 * with requests, accumulates of local and remote ranks to the same places.
 *
 * Usage: armci_service progress|control|many full|quick
 *   progress   2 ranks
 *   control    2 ranks without the service thread: what a get takes while its target computes
 *   many       ranks that share memory with some of the others, or with none
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "armci.h"
#include "bench_armci.h"

#define MEMORY ((size_t)1 << 20)
#define OPS    5
#define AWAY   1e9 /* ns for which a target computes */
#define TIMES  20000

enum { ANSWER_BARRIER = 1, ANSWER_COMPUTE, ANSWER_IDLE };

static char *remote; /* rank 1's memory; its first long counts what it has computed */
static char local[4096];
static volatile double sum;

/* --- what the target does --- */

static void compute(void)
{
    const double end = bench_now() + AWAY;

    while (bench_now() < end)
        for (int i = 0; i < 100000; i++)
            sum = sum + 1;
    __atomic_fetch_add((long *)(void *)bench_memory(bench_me), 1, __ATOMIC_RELEASE);
}

static double processor_ms(const struct rusage *use)
{
    return 1e3 * (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec)
           + 1e-3 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

/* All threads of each rank together; rank 0 has the largest figures. */
static void idle(long seconds, double *ms_out, double *wakes_out)
{
    struct rusage before, after;
    double ours[2], upper[2];

    usleep(100000); /* what came before has ended */
    getrusage(RUSAGE_SELF, &before);
    sleep((unsigned)seconds);
    getrusage(RUSAGE_SELF, &after);
    ours[0] = processor_ms(&after) - processor_ms(&before);
    ours[1] = (double)(after.ru_nvcsw - before.ru_nvcsw);
    MPI_Reduce(ours, upper, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    *ms_out = upper[0];
    *wakes_out = upper[1];
}

static void answer(int how, long iters, long size)
{
    double ms, wakes;

    (void)size;
    if (how == ANSWER_BARRIER)
        ARMCI_Barrier();
    else if (how == ANSWER_COMPUTE)
        compute();
    else
        idle(iters, &ms, &wakes);
}

/* --- operations --- */

static void get8(void *state, long iters)
{
    for (long i = 0; i < iters; i++)
        ARMCI_Get(remote + 64, local, 8, 1);
    (void)state;
}

static void put8(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        ARMCI_Put(local, remote + 64, 8, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void acc8(void *state, long iters)
{
    double one = 1;

    for (long i = 0; i < iters; i++) {
        ARMCI_Acc(ARMCI_ACC_DBL, &one, local, remote + 128, 8, 1);
        ARMCI_Fence(1);
    }
    (void)state;
}

static void rmw8(void *state, long iters)
{
    long drawn;

    for (long i = 0; i < iters; i++)
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, remote + 64, 1, 1);
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

static const struct bench_side ops[OPS] = { { "get 8 B", get8, NULL },
                                            { "put 8 B and fence", put8, NULL },
                                            { "acc 8 B and fence", acc8, NULL },
                                            { "fetch and add", rmw8, NULL },
                                            { "lock and unlock", lock, NULL } };

/* --- what waking a thread costs --- */

static sem_t remote_addr, back;

/* Away from the processor of the thread that wakes it, as a target's service thread is. */
static void *woken(void *arg)
{
    const cpu_set_t *set = arg;

    pthread_setaffinity_np(pthread_self(), sizeof(*set), set);
    for (;;) {
        sem_wait(&remote_addr);
        sem_post(&back);
    }
    return NULL;
}

static void wake(void *state, long iters)
{
    for (long i = 0; i < iters; i++) {
        sem_post(&remote_addr);
        sem_wait(&back);
    }
    (void)state;
}

/* Each of the two threads on a processor of its own. */
static double wake_ns(void)
{
    cpu_set_t all, self, other;
    pthread_t thread;
    double ns;

    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&self);
    CPU_SET(sched_getcpu(), &self);
    CPU_XOR(&other, &all, &self);
    sem_init(&remote_addr, 0, 0);
    sem_init(&back, 0, 0);
    if (CPU_COUNT(&other) == 0 || pthread_create(&thread, NULL, woken, &other) != 0)
        return 0;
    sched_setaffinity(0, sizeof(self), &self);
    ns = bench_time((struct bench_side){ "", wake, NULL }) / 2;
    sched_setaffinity(0, sizeof(all), &all);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return ns;
}

/* --- 2 ranks --- */

static void idle_rows(void)
{
    const long seconds = bench_quick ? 2 : 10;
    double ms, wakes;
    char name[64];

    bench_call(ANSWER_IDLE, seconds, 0);
    idle(seconds, &ms, &wakes);
    snprintf(name, sizeof(name), "idle for %ld s, processor", seconds);
    bench_figure(name, 0, ms, "ms", (double)seconds);
    snprintf(name, sizeof(name), "idle for %ld s, wake-ups", seconds);
    bench_figure(name, 0, wakes, "times", 5 * (double)seconds);
}

static long computed(void)
{
    return ARMCI_GetValueLong(remote, 1);
}

/* The middle time of an operation while the target computes, one by one: some take a thousand
 * times as long, where the target's service thread does not get a processor. *rest_out: the time
 * that one in twenty exceeds; *in_time_out: whether the target still computed at the end. */
static double computing_time(struct bench_side side, double *rest_out, bool *in_time_out)
{
    static double each[TIMES];
    const long before = computed();
    double start, ns;
    int n = 0;

    bench_call(ANSWER_COMPUTE, 0, 0);
    usleep(1000);
    start = bench_now();
    while (n < TIMES && bench_now() < start + AWAY / 2) {
        const double began = bench_now();

        side.run(side.state, 1);
        each[n++] = bench_now() - began;
    }
    ns = bench_middle(each, n); /* sorts them */
    *rest_out = each[n * 19 / 20];
    *in_time_out = computed() == before;
    while (computed() == before)
        usleep(1000);
    return ns;
}

static void figure(const char *op, const char *target, double ns, double limit)
{
    char name[80];

    snprintf(name, sizeof(name), "%s, %s", op, target);
    bench_figure(name, 8, ns, "ns", limit);
}

static void progress_rows(void)
{
    double asleep[OPS], computing[OPS], rest[OPS], polled[OPS];
    const double wakes = wake_ns();
    bool in_time = true;

    for (int i = 0; i < OPS; i++) {
        bool ended;

        asleep[i] = bench_time(ops[i]);
        computing[i] = computing_time(ops[i], &rest[i], &ended);
        in_time = in_time && ended;
    }
    bench_call(ANSWER_BARRIER, 0, 0);
    for (int i = 0; i < OPS; i++)
        polled[i] = bench_time(ops[i]);
    ARMCI_Barrier();
    bench_figure("waking a thread", 0, wakes, "ns", 0);
    for (int i = 0; i < OPS; i++) {
        /* a lock and its unlock are two trips, each with a wake-up */
        const double limit = polled[i] + (i == OPS - 1 ? 6 : 3) * wakes;

        figure(ops[i].name, "target in the library", polled[i], 0);
        figure(ops[i].name, "target asleep", asleep[i], limit);
        figure(ops[i].name, "target computes", computing[i], limit);
        figure(ops[i].name, "target computes, 95th percentile", rest[i], 0);
    }
    bench_figure_at_min("all end while the target computes", 0, in_time, "", 1);
}

static void two_ranks(void)
{
    ARMCI_Create_mutexes(1);
    if (bench_me == 0) {
        idle_rows();
        progress_rows();
        bench_release();
    } else {
        bench_attend(answer);
    }
    ARMCI_Destroy_mutexes();
}

/* Nobody serves rank 1 until it calls the library again. */
static void control(void)
{
    double start, took;

    ARMCI_Barrier();
    if (bench_me == 1)
        compute();
    if (bench_me == 0) {
        usleep(20000);
        start = bench_now();
        get8(NULL, 1);
        took = bench_now() - start;
        bench_figure_at_min("get 8 B, target computes for 1 s", 8, took / 1e6, "ms", 900);
    }
    ARMCI_Barrier();
}

/* --- many ranks --- */

static double high_water_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return (double)kib;
}

/* Everybody gets from everybody else and waits at the end only. */
static double flood_ns(int each)
{
    static char to[4096];
    const double start = (ARMCI_Barrier(), bench_now());

    for (int i = 0; i < each; i++)
        for (int r = 1; r < bench_nproc; r++)
            ARMCI_NbGet(bench_memory((bench_me + r) % bench_nproc), to, i % 2 ? 8 : 1024,
                        (bench_me + r) % bench_nproc, NULL);
    ARMCI_WaitAll();
    ARMCI_Barrier();
    return (bench_now() - start) / ((double)each * (bench_nproc - 1));
}

static void flood_rows(void)
{
    const int few = 1000, many = bench_quick ? 10000 : 50000;
    double before, growth, upper, ns;
    char name[64];

    flood_ns(few);
    before = high_water_kib();
    ns = flood_ns(many);
    growth = high_water_kib() - before;
    MPI_Reduce(&growth, &upper, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (bench_me != 0)
        return;
    bench_figure("gets from everybody, a rank and get", 0, ns, "ns", 0);
    snprintf(name, sizeof(name), "memory of %d gets above that of %d", many, few);
    bench_figure(name, 0, upper, "KiB", 1024);
}

#define PLACES 2048
static long added[PLACES];

/* Four rows of two elements at a random place of rank 0's. */
static void add_some(unsigned *seed)
{
    int from[1] = { 2 * sizeof(long) }, to[1] = { 8 * sizeof(long) },
        count[2] = { 2 * sizeof(long), 4 };
    const int at = (int)((*seed = *seed * 1664525u + 1013904223u) >> 12) % (PLACES - 32);
    long values[8], scale = 3;

    for (int i = 0; i < 8; i++) {
        values[i] = i + 1;
        added[at + i / 2 * 8 + i % 2] += scale * values[i];
    }
    ARMCI_AccS(ARMCI_ACC_LNG, &scale, values, from, bench_memory(0) + 64 + 8 * at, to, count, 1, 0);
}

static void accumulate_rows(void)
{
    const int total = bench_quick ? 100000 : 1000000;
    unsigned seed = 17u + (unsigned)bench_me;
    const double start = (ARMCI_Barrier(), bench_now());
    char name[64];
    int wrong = 0;

    for (int i = 0; i < total / bench_nproc; i++)
        add_some(&seed);
    ARMCI_Barrier();
    if (bench_me == 0) {
        snprintf(name, sizeof(name), "%d overlapping accumulates, each", total);
        bench_figure(name, 64, (bench_now() - start) / total, "ns", 0);
    }
    armci_msg_lgop(added, PLACES, "+");
    for (int i = 0; i < PLACES && bench_me == 0; i++)
        wrong += ((long *)(void *)(bench_memory(0) + 64))[i] != added[i];
    if (bench_me == 0)
        bench_figure_at_min("share of exact sums", 0, 1 - (double)wrong / PLACES, "", 1);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "progress";

    bench_start(&argc, &argv, MEMORY);
    remote = bench_memory(1);
    if (strcmp(what, "many") == 0) {
        flood_rows();
        accumulate_rows();
    } else if (strcmp(what, "control") == 0) {
        control();
    } else {
        two_ranks();
    }
    bench_finish();
    return 0;
}
