/*
 * bench_armci.c - what the programs of aq-bench armci share: start, slices, rows, and how rank 0
 * calls the others.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_armci.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "armci.h"
#ifdef BENCH_OURS
#include "armcix.h"
#endif

#define SLICES     15
#define SLICE_NS   3e6
#define MAX_SPREAD 1.5

/* Goals are ours, not other libraries'. */
#ifdef BENCH_OURS
#define HAS_GOALS true
#else
#define HAS_GOALS false
#endif

/* Before the memory that rows use: how rank 0 calls. */
struct call {
    volatile long number; /* of calls so far; -1 is the end */
    long how, iters, size;
    char pad[32];
};

int bench_me, bench_nproc;
bool bench_quick;
static void *base[1024];
static size_t memory_bytes;
static long calls;

void bench_start(int *argc, char ***argv, size_t bytes)
{
    const char *conduit = getenv("GASNET_CONDUIT");
    const int wanted =
        conduit != NULL && strcmp(conduit, "mpi") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    int level;

    MPI_Init_thread(argc, argv, wanted, &level);
    ARMCI_Init();
    bench_me = armci_msg_me();
    bench_nproc = armci_msg_nproc();
    bench_quick = *argc > 1 && strcmp((*argv)[*argc - 1], "quick") == 0;
    memory_bytes = bytes;
    if (ARMCI_Malloc(base, (armci_size_t)(bytes + sizeof(struct call))) != 0)
        ARMCI_Error("no memory for the measurement", 1);
    memset(base[bench_me], 0, bytes + sizeof(struct call));
    ARMCI_Barrier();
}

char *bench_memory(int rank)
{
    return (char *)base[rank] + sizeof(struct call);
}

void bench_finish(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    ARMCI_Barrier();
    ARMCI_Free(base[bench_me]);
    ARMCI_Finalize();
    MPI_Finalize();
}

/* --- rank 0 calls --- */

/* One-sided operations of MPI may need the target's calls; ours do not. */
static void let_others_progress(void)
{
#ifndef BENCH_OURS
    int is_present;

    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &is_present, MPI_STATUS_IGNORE);
#endif
}

void bench_attend(bench_answer_fn answer)
{
    struct call *call = base[bench_me];
    long seen = 0;

    while (call->number >= 0) {
        if (call->number == seen) {
            let_others_progress();
            usleep(50);
            continue;
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        seen = call->number;
        answer((int)call->how, call->iters, call->size);
    }
}

static void write_call(long number, int how, long iters, long size)
{
    long words[3] = { how, iters, size };

    for (int r = 1; r < bench_nproc; r++) {
        ARMCI_Put(words, (char *)base[r] + sizeof(long), sizeof(words), r);
        ARMCI_Fence(r);
        ARMCI_PutValueLong(number, base[r], r);
        ARMCI_Fence(r);
    }
}

void bench_call(int how, long iters, long size)
{
    write_call(++calls, how, iters, size);
}

void bench_release(void)
{
    write_call(-1, 0, 0, 0);
}

/* --- slices --- */

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double slice(const struct bench_side *side, long iters)
{
    const double start = bench_now();

    side->run(side->state, iters);
    return (bench_now() - start) / (double)iters;
}

static long iterations(const struct bench_side *side)
{
    const double goal = bench_quick ? SLICE_NS / 10 : SLICE_NS;
    long iters = 1;

    slice(side, 1);
    while (iters < 1L << 24 && slice(side, iters) * (double)iters < goal)
        iters *= 2;
    return iters;
}

/* How often the kernel has taken the processor from this thread. */
static long taken_away(void)
{
    struct rusage use;

    getrusage(RUSAGE_THREAD, &use);
    return use.ru_nivcsw;
}

/* Times of slices in turn, of the subject alone if there is no other. Slices in which the processor
 * was taken away are measured again, up to three times as many in all. */
static int collect(const struct bench_side *subject, const struct bench_side *other,
                   double *subjects, double *others)
{
    const int wanted = bench_quick ? 3 : SLICES;
    const long iters = iterations(subject), other_iters = other != NULL ? iterations(other) : 0;
    int n = 0;

    for (int tries = 0; n < wanted && tries < 3 * wanted; tries++) {
        const long before = taken_away();

        subjects[n] = slice(subject, iters);
        if (other != NULL)
            others[n] = slice(other, other_iters);
        if (taken_away() == before || 3 * wanted - tries <= wanted - n)
            n++;
    }
    return n;
}

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(double *values, int n, double q)
{
    qsort(values, (size_t)n, sizeof(values[0]), less);
    return values[(int)((double)(n - 1) * q + 0.5)];
}

double bench_middle(double *values, int n)
{
    return quantile(values, n, 0.5);
}

double bench_time(struct bench_side side)
{
    double times[SLICES];
    const int n = collect(&side, NULL, times, NULL);

    return quantile(times, n, 0.5);
}

static double measure(struct bench_side subject, struct bench_side other, double *subject_out,
                      double *other_out, double *spread_out)
{
    double ratios[SLICES], subjects[SLICES], others[SLICES];
    const int n = collect(&subject, &other, subjects, others);

    for (int i = 0; i < n; i++)
        ratios[i] = subjects[i] / others[i];
    /* of quiet slices: they are what sections of different processes are compared by */
    *subject_out = quantile(subjects, n, 0.25);
    *other_out = quantile(others, n, 0.25);
    *spread_out = quantile(ratios, n, 0.75) / quantile(ratios, n, 0.25);
    return quantile(ratios, n, 0.5);
}

static void write_row(const char *name, long size, double ns, const char *other, double other_ns,
                      double ratio, double spread, const char *sense, double goal, bool is_met)
{
    char text[32] = "-";

    goal = HAS_GOALS ? goal : 0;
    if (goal > 0)
        snprintf(text, sizeof(text), "%s %.3g", sense, goal);
    printf("%s|%ld|%.1f|%s|%.1f|%.6f|%.2f|%s|%s\n", name, size, ns, other, other_ns, ratio, spread,
           text,
           goal == 0             ? ""
           : is_met              ? "ok"
           : spread > MAX_SPREAD ? "noise"
                                 : "MISSED");
    fflush(stdout);
}

double bench_row(const char *name, long size, struct bench_side subject, struct bench_side other,
                 double goal)
{
    double ns, other_ns, spread;
    const double ratio = measure(subject, other, &ns, &other_ns, &spread);

    write_row(name, size, ns, other.name, other_ns, ratio, spread, "<=", goal, ratio <= goal);
    return ratio;
}

double bench_at_min(const char *name, long size, struct bench_side subject, struct bench_side other,
                    double goal)
{
    double ns, other_ns, spread;
    const double ratio = 1 / measure(subject, other, &ns, &other_ns, &spread);

    write_row(name, size, ns, other.name, other_ns, ratio, spread, ">=", goal, ratio >= goal);
    return ratio;
}

static void write_figure(const char *name, long size, double value, const char *unit,
                         const char *sense, double limit, bool is_met)
{
    char text[32] = "-";

    limit = HAS_GOALS ? limit : 0;
    if (limit > 0)
        snprintf(text, sizeof(text), "%s %.3g", sense, limit);
    printf("%s|%ld|%.3f|%s||||%s|%s\n", name, size, value, unit, text,
           limit == 0 ? ""
           : is_met   ? "ok"
                      : "MISSED");
    fflush(stdout);
}

void bench_figure(const char *name, long size, double value, const char *unit, double limit)
{
    write_figure(name, size, value, unit, "<=", limit, value <= limit);
}

void bench_figure_at_min(const char *name, long size, double value, const char *unit, double limit)
{
    write_figure(name, size, value, unit, ">=", limit, value >= limit);
}

/* --- settings --- */

#ifndef BENCH_OURS
static int ARMCIX_Set(const char *name, const char *value)
{
    (void)name, (void)value;
    return 0;
}
#endif

void bench_apply(const char *settings)
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
