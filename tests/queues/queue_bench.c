/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_bench.c - queue-bench: measures designs of an active-message queue between processes.
 *
 * Forks the ranks over one shared memfd, and lets rank 0 conduct: it posts what to run (design,
 * kernel, operations), all ranks meet in a barrier, run it and meet again. Designs and the physical
 * limit alternate in short slices: on a shared machine absolute times wander. The limit changes its
 * line from slice to slice and lines are not equally far, so a slice is not held against the limit
 * beside it but against the mean of the limit's middle half: what the design's lines are on average.
 * Exit code: 0 measured, 1 a message was lost or overtaken, 2 could not run.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "queue_bench.h"

#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_DESIGNS = 32, MAX_SLICES = 4096 };

static const char *const kernel_names[KERNELS] = {
    "pairs", "pairs-2-lines", "flood", "fan-in", "random", "idle",
};

static const char *const kernel_units[KERNELS] = {
    "round trip, all pairs at once, 2 arguments", "the same with 16 arguments",
    "message, one to one", "message, all to one", "request + reply, all to all, random",
    "empty poll of rank 0, all others known senders",
};

struct control {
    _Alignas(BENCH_PAIR) _Atomic uint32_t arrived;
    _Alignas(BENCH_PAIR) _Atomic uint32_t round;
    _Alignas(BENCH_PAIR) uint32_t design;       /* what to run next; MAX_DESIGNS: leave */
    uint32_t kernel;
    uint64_t count;
    _Atomic uint32_t broken;
    _Alignas(BENCH_PAIR) struct bench_span spans[BENCH_MAX_RANKS];
    struct wake_line wake[BENCH_MAX_RANKS];
};

struct settings {
    unsigned slices, spins, yields;
    uint64_t slice_ns;
    const char *design, *kernel;                /* NULL: all */
    bool tsv;
};

struct bench {
    struct settings settings;
    struct bench_world world;
    struct control *control;
    const struct queue_design *designs[MAX_DESIGNS];   /* [0] and [1] are limits */
    unsigned limit;                             /* the faster of the two; known to rank 0 */
    void *queues[MAX_DESIGNS];
    uint64_t counts[MAX_DESIGNS];
    unsigned design_count;
};

static _Noreturn void bench_die(const char *what)
{
    perror(what);
    exit(2);
}

static void bench_barrier(struct bench *bench)
{
    struct control *control = bench->control;
    /* acquire and release throughout: what came before the barrier is seen by all after it */
    uint32_t round = atomic_load_explicit(&control->round, memory_order_acquire);

    if (atomic_fetch_add_explicit(&control->arrived, 1, memory_order_acq_rel) + 1
        == bench->world.ranks) {
        atomic_store_explicit(&control->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&control->round, round + 1, memory_order_release);
        if (!bench->world.dedicated)
            bench_futex_wake(&control->round, BENCH_MAX_RANKS);
        return;
    }
    while (atomic_load_explicit(&control->round, memory_order_acquire) == round)
        if (!bench->world.dedicated)
            bench_futex_wait(&control->round, round);
}

/* What every rank does with a posted slice. */
static void bench_take_part(struct bench *bench)
{
    struct control *control = bench->control;
    struct bench_span *span = &control->spans[bench->world.rank];
    unsigned design = control->design;

    span->took_part = false;
    if (!bench->designs[design]->run[control->kernel](bench->queues[design], control->count, span))
        atomic_store_explicit(&control->broken, design, memory_order_relaxed);
    bench_busy(&bench->world);
    bench_barrier(bench);
}

/* Rank 0: one slice on all ranks; nanoseconds from the first start to the last end. */
static uint64_t bench_conduct_slice(struct bench *bench, unsigned design, enum bench_kernel kernel)
{
    struct control *control = bench->control;
    uint64_t start = UINT64_MAX, end = 0;

    control->design = design;
    control->kernel = kernel;
    control->count = bench->counts[design];
    bench_barrier(bench);
    bench_take_part(bench);
    for (unsigned i = 0; i < bench->world.ranks; i++) {
        const struct bench_span *span = &control->spans[i];

        if (span->took_part && span->start_ns < start)
            start = span->start_ns;
        if (span->took_part && span->end_ns > end)
            end = span->end_ns;
    }
    return end > start ? end - start : 1;
}

/* The quickest of some slices: one that lost the core would settle on far too few operations, and
 * then all slices of the job would show their start and end instead. */
static uint64_t bench_quickest(struct bench *bench, unsigned design, enum bench_kernel kernel)
{
    uint64_t best = bench_conduct_slice(bench, design, kernel);

    for (unsigned i = 0; i < 4; i++) {
        uint64_t took = bench_conduct_slice(bench, design, kernel);

        if (took < best)
            best = took;
    }
    return best;
}

/* Settles how many operations fill a slice. */
static void bench_calibrate(struct bench *bench, unsigned design, enum bench_kernel kernel)
{
    uint64_t want = bench->settings.slice_ns;

    bench->counts[design] = bench->world.ranks;
    for (unsigned tries = 0; tries < 40; tries++) {
        uint64_t took = bench_quickest(bench, design, kernel);

        if (took >= want / 2)
            break;
        bench->counts[design] *= took < want / 8 ? 4 : 2;
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The slices of one design and kernel. */
struct series {
    unsigned slices;
    double ns[MAX_SLICES];
};

static void series_add(struct series *series, double ns)
{
    if (series->slices < MAX_SLICES)
        series->ns[series->slices++] = ns;
}

/* Mean of the middle half: unmoved by slices that lost the core, and, unlike the median, in
 * proportion between near and far lines. Sorts the series. */
static double series_middle(struct series *series)
{
    unsigned first = series->slices / 4, last = series->slices - first;
    double sum = 0;

    qsort(series->ns, series->slices, sizeof(series->ns[0]), compare_doubles);
    for (unsigned i = first; i < last; i++)
        sum += series->ns[i];
    return sum / (last - first);
}

static double bench_slice(struct bench *bench, unsigned design, enum bench_kernel kernel)
{
    return (double)bench_conduct_slice(bench, design, kernel) / (double)bench->counts[design];
}

/* The limit is the faster way to spin; the other one stays among the designs. */
static void bench_choose_limit(struct bench *bench, enum bench_kernel kernel, struct series *series)
{
    enum { TRIALS = 32 };

    bench->limit = 0;
    if (!bench->world.dedicated)
        return;
    for (unsigned i = 0; i < 2 * TRIALS; i++)
        series_add(&series[i % 2], bench_slice(bench, i % 2, kernel));
    bench->limit = series_middle(&series[0]) <= series_middle(&series[1]) ? 0 : 1;
    series[0].slices = series[1].slices = 0;
}

static void bench_print_row(struct bench *bench, enum bench_kernel kernel, unsigned design,
                            struct series *series, double limit)
{
    double middle = series_middle(series), *ns = series->ns;
    unsigned n = series->slices;

    printf(bench->settings.tsv ? "%u\t%s\t%s\t%.1f\t%.3f\t%.3f\t%.3f\t%u\n"
                               : "%5u  %-13s  %-12s  %11.1f  %8.3f  %6.3f .. %-8.3f  %u\n",
           bench->world.ranks, kernel_names[kernel], bench->designs[design]->name, middle,
           middle / limit, ns[n / 4] / limit, ns[n - 1 - n / 4] / limit, n);
}

/* Slices of one kernel: limit, design 1, limit, design 2, ... */
static void bench_measure(struct bench *bench, enum bench_kernel kernel)
{
    unsigned designs = bench->design_count;
    struct series *series = calloc(designs, sizeof(*series));
    double limit;

    if (series == NULL)
        bench_die("queue-bench: memory");
    for (unsigned d = 0; d < designs; d++)
        if (bench->designs[d]->run[kernel] != NULL)
            bench_calibrate(bench, d, kernel);
    bench_choose_limit(bench, kernel, series);
    for (unsigned s = 0; s < bench->settings.slices; s++)
        for (unsigned d = 0; d < designs; d++) {
            if (d == bench->limit || bench->designs[d]->run[kernel] == NULL)
                continue;
            series_add(&series[bench->limit], bench_slice(bench, bench->limit, kernel));
            series_add(&series[d], bench_slice(bench, d, kernel));
        }
    limit = series_middle(&series[bench->limit]);
    for (unsigned d = 0; d < designs; d++)
        if (series[d].slices != 0)
            bench_print_row(bench, kernel, d, &series[d], limit);
    if (!bench->settings.tsv)
        printf("       (ns for each %s)\n\n", kernel_units[kernel]);
    fflush(stdout);
    free(series);
}

static void bench_conduct(struct bench *bench)
{
    for (unsigned k = 0; k < KERNELS; k++)
        if (bench->settings.kernel == NULL || strcmp(bench->settings.kernel, kernel_names[k]) == 0)
            bench_measure(bench, (enum bench_kernel)k);
    bench->control->design = MAX_DESIGNS;
    bench_barrier(bench);
}

static _Noreturn void bench_run_rank(struct bench *bench, unsigned rank, char *shared)
{
    size_t offset = 0;

    bench->world.rank = rank;
    if (!bench_wait_init())
        bench_die("queue-bench: membarrier");
    for (unsigned d = 0; d < bench->design_count; d++) {
        bench->queues[d] = bench->designs[d]->open(&bench->world, shared + offset);
        if (bench->queues[d] == NULL)
            bench_die("queue-bench: memory");
        offset += bench->designs[d]->bytes(bench->world.ranks);
    }
    if (rank == 0) {
        bench_conduct(bench);
    } else {
        for (;;) {
            bench_barrier(bench);
            if (bench->control->design == MAX_DESIGNS)
                break;
            bench_take_part(bench);
        }
    }
    for (unsigned d = 0; d < bench->design_count; d++)
        bench->designs[d]->close(bench->queues[d]);
    exit(0);
}

/* A core of its own for every rank, if there are as many in the affinity mask. */
static void bench_pin(unsigned rank, const cpu_set_t *allowed)
{
    unsigned seen = 0;

    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed) && seen++ == rank) {
            cpu_set_t one;

            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            if (sched_setaffinity(0, sizeof(one), &one) != 0)
                bench_die("queue-bench: sched_setaffinity");
            return;
        }
    }
}

static void bench_choose_designs(struct bench *bench)
{
    const struct queue_design *const *const families[] = {
        limit_designs, pair_designs, ring_designs, mpsc_designs, bell_designs,
    };

    bench->design_count = 0;
    for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++)
        for (const struct queue_design *const *d = families[f]; *d != NULL; d++) {
            bool named = bench->settings.design != NULL
                         && strcmp(bench->settings.design, (*d)->name) == 0;

            if (*d == limit_designs[0] || *d == limit_designs[1] || named || (bench->settings.design == NULL
                                    && (bench->world.ranks == 2 || !(*d)->fine_point)))
                bench->designs[bench->design_count++] = *d;
        }
}

/* Everything the ranks share. The file is unlinked by nature and goes with the last process. */
static char *bench_map(struct bench *bench)
{
    size_t bytes = sizeof(struct control);
    int fd = memfd_create("queue-bench", MFD_CLOEXEC);
    char *shared;

    for (unsigned d = 0; d < bench->design_count; d++)
        bytes += bench->designs[d]->bytes(bench->world.ranks);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        bench_die("queue-bench: memfd");
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        bench_die("queue-bench: mmap");
    close(fd);
    return shared;
}

/* Ends the other ranks when one died: they would wait for it for ever. */
static int bench_reap(const pid_t *pids, unsigned ranks)
{
    int worst = 0;

    for (unsigned left = ranks; left > 0; left--) {
        int status = 0;

        if (wait(&status) < 0)
            return 2;
        if (status == 0 || worst != 0)
            continue;
        worst = 2;
        for (unsigned i = 0; i < ranks; i++)
            kill(pids[i], SIGKILL);
    }
    return worst;
}

/* One job of `ranks` processes through all kernels. */
static int bench_job(const struct settings *settings, unsigned ranks)
{
    struct bench bench = { .settings = *settings };
    pid_t pids[BENCH_MAX_RANKS], parent = getpid();
    cpu_set_t allowed;
    char *shared;
    int rc;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        bench_die("queue-bench: sched_getaffinity");
    bench.world.ranks = ranks;
    bench.world.dedicated = ranks <= (unsigned)CPU_COUNT(&allowed);
    bench.world.patience.spins = settings->spins;
    bench.world.patience.yields = settings->yields;
    bench_choose_designs(&bench);
    shared = bench_map(&bench);
    bench.control = (struct control *)(void *)shared;
    bench.control->broken = MAX_DESIGNS;
    bench.world.wake = bench.control->wake;
    fflush(NULL);
    for (unsigned i = 0; i < ranks; i++) {
        pids[i] = fork();
        if (pids[i] < 0)
            bench_die("queue-bench: fork");
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent)
                _exit(2);
            if (bench.world.dedicated)
                bench_pin(i, &allowed);
            bench_run_rank(&bench, i, shared + sizeof(struct control));
        }
    }
    rc = bench_reap(pids, ranks);
    if (rc == 0 && bench.control->broken != MAX_DESIGNS) {
        fprintf(stderr, "queue-bench: %s lost messages or their order\n",
                bench.designs[bench.control->broken]->name);
        rc = 1;
    }
    return rc;
}

static _Noreturn void bench_usage(int code)
{
    fputs("usage: queue-bench [options] [RANKS...]      (2 to 64; default 2 8 64)\n"
          "  -s, --slices N      slices for each design and kernel (default 60)\n"
          "  -u, --slice-us N    length of a slice in microseconds (default 2000)\n"
          "  -d, --design NAME   only this design or variant, beside the limit\n"
          "  -k, --kernel NAME   only this kernel: pairs pairs-2-lines flood fan-in random idle\n"
          "      --spins N       empty polls before yielding, if ranks outnumber cores (20)\n"
          "      --yields N      yields before sleeping (4)\n"
          "      --tsv           ranks, kernel, design, ns, ratio, quartiles, slices; by tabs\n",
          code == 0 ? stdout : stderr);
    exit(code);
}

static void bench_options(int argc, char **argv, struct settings *settings)
{
    enum { OPT_SPINS = 256, OPT_YIELDS, OPT_TSV };
    static const struct option options[] = {
        { "slices", required_argument, NULL, 's' },    { "slice-us", required_argument, NULL, 'u' },
        { "design", required_argument, NULL, 'd' },    { "kernel", required_argument, NULL, 'k' },
        { "spins", required_argument, NULL, OPT_SPINS }, { "yields", required_argument, NULL, OPT_YIELDS },
        { "tsv", no_argument, NULL, OPT_TSV },         { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "s:u:d:k:h", options, NULL)) != -1) {
        switch (opt) {
        case 's': settings->slices = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'u': settings->slice_ns = strtoull(optarg, NULL, 10) * 1000; break;
        case 'd': settings->design = optarg; break;
        case 'k': settings->kernel = optarg; break;
        case OPT_SPINS: settings->spins = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_YIELDS: settings->yields = (unsigned)strtoul(optarg, NULL, 10); break;
        case OPT_TSV: settings->tsv = true; break;
        case 'h': bench_usage(0);
        default: bench_usage(2);
        }
    }
    if (settings->slices < 1 || settings->slices > MAX_SLICES || settings->slice_ns == 0)
        bench_usage(2);
}

int main(int argc, char **argv)
{
    static const unsigned usual[] = { 2, 8, 64 };
    struct settings settings = {
        .slices = 60, .slice_ns = 2000000, .spins = 20, .yields = 4,
    };
    int rc = 0;

    bench_options(argc, argv, &settings);
    if (!settings.tsv)
        printf("ranks  kernel         design             ns        / limit  quartiles           slices\n");
    for (unsigned i = 0; rc == 0 && optind == argc && i < 3; i++)
        rc = bench_job(&settings, usual[i]);
    for (int i = optind; rc == 0 && i < argc; i++) {
        unsigned ranks = (unsigned)strtoul(argv[i], NULL, 10);

        if (ranks < 2 || ranks > BENCH_MAX_RANKS)
            bench_usage(2);
        rc = bench_job(&settings, ranks);
    }
    return rc;
}
