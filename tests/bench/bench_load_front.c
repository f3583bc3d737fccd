/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_load_front.c - in front: rows on a machine with other work.
 * Owns      the busy processes: children of this one, which end with it whatever ends it
 * Threads   one
 * Uses      bench.h
 *
 * With 0, 1, 2 and 4 busy processes a core a job of 2 ranks and one of 4 run beside programs that
 * spin and that yield; jobs of 16 and 64 ranks compare barriers with an all-reduce; jobs of 64
 * ranks alternate with jobs of 2 in how many messages they handle; and many short runs tell whether
 * each of them is like the others. They take minutes and all cores: --only has to name them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define AQ_LOAD_LIMIT_S   300.0
#define AQ_LOAD_RUNS      50
#define AQ_LOAD_RUNS_FEW  2
#define AQ_LOAD_RUN_KINDS 3
#define AQ_LOAD_RUNS_MAX  3.0 /* budget: the worst run's median over that of all runs */
#define AQ_LOAD_CROWD     64  /* ranks */
#define AQ_LOAD_DEFERRED  2.0 /* budget: half of the rate is twice the time */
#define AQ_LOAD_PAIRS     5   /* of jobs with few and with many ranks */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const unsigned aq_load_busy[] = { 0, 1, 2, 4 };
static const unsigned aq_load_few[] = { 2, 4 };
static const unsigned aq_load_many[] = { 16, AQ_LOAD_CROWD };
static const char *const aq_load_names[] = { "short",      "short_p99", "polled",
                                             "polled_p99", "barrier",   "barrier_p99" };
static const char *const aq_load_many_names[] = { "barrier", "barrier_named" };
static const char *const aq_load_run_names[AQ_LOAD_RUN_KINDS] = { "runs_short", "runs_polled",
                                                                  "runs_barrier" };

/* --- busy processes --- */

static pid_t *aq_load_pids;
static unsigned aq_load_started;

static _Noreturn void aq_load_spin(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    for (volatile unsigned k = 0;; k++)
        ;
}

static void aq_load_end_busy(void)
{
    for (unsigned i = 0; i < aq_load_started; i++)
        kill(aq_load_pids[i], SIGKILL);
    for (unsigned i = 0; i < aq_load_started; i++)
        waitpid(aq_load_pids[i], NULL, 0);
    free(aq_load_pids);
    aq_load_pids = NULL;
    aq_load_started = 0;
}

/* So many busy processes a core; false, with a message, if not all of them can be started. */
static bool aq_load_start_busy(unsigned per_core)
{
    cpu_set_t usable;
    const int cores = sched_getaffinity(0, sizeof(usable), &usable) == 0 ? CPU_COUNT(&usable) : 1;
    const unsigned count = per_core * (unsigned)cores;
    const pid_t self = getpid();

    aq_load_pids = calloc(count + 1, sizeof(*aq_load_pids));
    while (aq_load_pids != NULL && aq_load_started < count) {
        pid_t pid = fork();

        if (pid == 0)
            aq_load_spin(self);
        if (pid < 0)
            break;
        aq_load_pids[aq_load_started++] = pid;
    }
    if (aq_load_pids == NULL || aq_load_started < count)
        fprintf(stderr, "aq-bench: %u of %u busy processes could be started: %s\n", aq_load_started,
                count, strerror(errno));
    return aq_load_pids != NULL && aq_load_started == count;
}

/* --- which rows --- */

/* The row's name with so many busy processes a core. */
static void aq_load_name(char *buf, size_t size, unsigned busy, const char *name)
{
    snprintf(buf, size, "load%u_%.30s", busy, name);
}

static bool aq_load_needs(const struct aq_options *options, unsigned busy, const char *name)
{
    char full[48];

    aq_load_name(full, sizeof(full), busy, name);
    return aq_row_name_wanted(options, full);
}

/* Rows of a job that options ask for. */
static size_t aq_load_wanted(const struct aq_options *options, unsigned busy,
                             const char *const *names, size_t count)
{
    size_t wanted = 0;

    for (size_t i = 0; i < count; i++)
        wanted += aq_load_needs(options, busy, names[i]);
    return wanted;
}

static bool aq_load_on(const struct aq_options *options)
{
    return options->only != NULL && !options->raw;
}

static size_t aq_load_many_count(const struct aq_options *options)
{
    return options->quick ? 1 : COUNT(aq_load_many);
}

/* Rows of one host only. */
static size_t aq_load_count_local(const struct aq_options *options, unsigned busy)
{
    size_t count = 0;

    if (options->remote)
        return 0;
    if (busy < 2)
        count = aq_load_many_count(options)
                * aq_load_wanted(options, busy, aq_load_many_names, COUNT(aq_load_many_names));
    if (busy == 0)
        count += aq_load_needs(options, 0, "rate");
    if (busy == 1)
        count += aq_load_wanted(options, 1, aq_load_run_names, AQ_LOAD_RUN_KINDS);
    return count;
}

/* All rows with so many busy processes a core. */
static size_t aq_load_count_with(const struct aq_options *options, unsigned busy)
{
    return 2 * COUNT(aq_load_few)
               * aq_load_wanted(options, busy, aq_load_names, COUNT(aq_load_names))
           + aq_load_count_local(options, busy);
}

size_t aq_load_count(const struct aq_options *options)
{
    size_t count = 0;

    if (!aq_load_on(options))
        return 0;
    for (size_t i = 0; i < COUNT(aq_load_busy); i++)
        count += aq_load_count_with(options, aq_load_busy[i]);
    return count;
}

void aq_load_list(const struct aq_options *options)
{
    if (options->raw)
        return;
    printf("and, on a machine with B = 0, 1, 2, 4 busy processes a core, if --only names them:\n"
           "loadB_short loadB_polled loadB_barrier and each with _p99%s\n",
           options->remote ? "" : "; loadB_barrier_named load0_rate load1_runs");
}

/* --- jobs --- */

struct aq_load_sink {
    const struct aq_options *options;
    struct aq_out *out;
    unsigned busy;
};

/* A row as the job has it, under the name that says how busy the machine was. */
static void aq_load_line(void *arg, const char *line)
{
    struct aq_load_sink *sink = arg;
    struct aq_result r;
    char name[48];

    if (!aq_record_read(line, &r) || !aq_load_needs(sink->options, sink->busy, r.name))
        return;
    aq_load_name(name, sizeof(name), sink->busy, r.name);
    memcpy(r.name, name, sizeof(r.name));
    aq_out_result(sink->out, &r);
}

/* A job of each of these sizes; false if one failed. */
static bool aq_load_jobs(struct aq_load_sink *sink, const char *task, const unsigned *sizes,
                         size_t count)
{
    char what[32];

    for (size_t i = 0; i < count && !aq_front_stop(); i++) {
        snprintf(what, sizeof(what), "load%u, %u ranks", sink->busy, sizes[i]);
        aq_out_running(sink->out, what);
        if (aq_front_job(sink->options, task, sizes[i], AQ_LOAD_LIMIT_S, aq_load_line, sink) != 0)
            return false;
    }
    return true;
}

/* --- run against run --- */

struct aq_load_runs {
    double median[AQ_LOAD_RUN_KINDS][AQ_LOAD_RUNS];
    unsigned count;
};

static void aq_load_run_line(void *arg, const char *line)
{
    struct aq_load_runs *v = arg;
    double m[AQ_LOAD_RUN_KINDS];

    if (v->count == AQ_LOAD_RUNS
        || sscanf(line, "LOADRUN %lf %lf %lf", &m[0], &m[1], &m[2]) != AQ_LOAD_RUN_KINDS)
        return;
    for (unsigned k = 0; k < AQ_LOAD_RUN_KINDS; k++)
        v->median[k][v->count] = m[k];
    v->count++;
}

static void aq_load_describe(struct aq_result *r, unsigned busy, const char *name, unsigned ranks,
                             const char *limit_name)
{
    memset(r, 0, sizeof(*r));
    snprintf(r->who, sizeof(r->who), "aqueduct");
    aq_load_name(r->name, sizeof(r->name), busy, name);
    snprintf(r->unit, sizeof(r->unit), "ns");
    snprintf(r->limit_name, sizeof(r->limit_name), "%s", limit_name);
    r->size = ranks;
}

/* The worst run's median beside that of all. */
static void aq_load_run_result(struct aq_out *out, const char *name, const double *median,
                               unsigned count)
{
    struct aq_result r;
    double worst = 0;

    for (unsigned i = 0; i < count; i++)
        worst = MAX(worst, median[i]);
    aq_load_describe(&r, 1, name, aq_load_few[0], "the median run");
    r.subject = (struct aq_quart){ worst, worst, worst };
    r.limit = aq_stat_quart(median, count);
    r.ratio.median = worst / MAX(r.limit.median, 1);
    r.ratio.q1 = worst / MAX(r.limit.q3, 1);
    r.ratio.q3 = worst / MAX(r.limit.q1, 1);
    r.slices = count;
    r.budget = AQ_LOAD_RUNS_MAX;
    aq_out_result(out, &r);
}

static void aq_load_runs(const struct aq_options *options, struct aq_out *out)
{
    static struct aq_load_runs v;
    const unsigned runs = options->quick ? AQ_LOAD_RUNS_FEW : AQ_LOAD_RUNS;

    if (aq_load_wanted(options, 1, aq_load_run_names, AQ_LOAD_RUN_KINDS) == 0)
        return;
    v.count = 0;
    aq_out_running(out, "load1_runs");
    for (unsigned i = 0; i < runs && !aq_front_stop(); i++)
        aq_front_job(options, "load-run", aq_load_few[0], AQ_LOAD_LIMIT_S, aq_load_run_line, &v);
    if (v.count == 0)
        aq_front_missing("load1_runs");
    for (unsigned k = 0; k < AQ_LOAD_RUN_KINDS && v.count > 0; k++)
        if (aq_load_needs(options, 1, aq_load_run_names[k]))
            aq_load_run_result(out, aq_load_run_names[k], v.median[k], v.count);
}

/* --- many ranks --- */

static void aq_load_rate_line(void *arg, const char *line)
{
    sscanf(line, "LOADRATE %lf", (double *)arg);
}

static double aq_load_rate_job(const struct aq_options *options, unsigned ranks)
{
    double ns = 0;

    aq_front_job(options, "load-rate", ranks, AQ_LOAD_LIMIT_S, aq_load_rate_line, &ns);
    return ns;
}

/* Nanoseconds a message of all, beside the same of the smallest job. */
static void aq_load_rates(const struct aq_options *options, struct aq_out *out)
{
    const unsigned pairs = options->quick ? 1 : AQ_LOAD_PAIRS;
    double few[AQ_LOAD_PAIRS], many[AQ_LOAD_PAIRS], ratio[AQ_LOAD_PAIRS];
    unsigned count = 0;
    struct aq_result r;

    if (!aq_load_needs(options, 0, "rate"))
        return;
    aq_out_running(out, "load0_rate");
    for (unsigned i = 0; i < pairs && !aq_front_stop(); i++) {
        few[count] = aq_load_rate_job(options, aq_load_few[0]);
        many[count] = aq_load_rate_job(options, AQ_LOAD_CROWD);
        if (few[count] <= 0 || many[count] <= 0)
            break;
        ratio[count] = many[count] / few[count];
        count++;
    }
    if (count == 0) {
        aq_front_missing("load0_rate");
        return;
    }
    aq_load_describe(&r, 0, "rate", AQ_LOAD_CROWD, "2 ranks");
    r.subject = aq_stat_quart(many, count);
    r.limit = aq_stat_quart(few, count);
    r.ratio = aq_stat_quart(ratio, count);
    r.slices = count;
    r.budget = AQ_LOAD_DEFERRED;
    aq_out_result(out, &r);
}

/* --- all of them --- */

/* The rows with so many busy processes a core; false if a job failed. */
static bool aq_load_with(const struct aq_options *options, struct aq_out *out, unsigned busy)
{
    struct aq_load_sink sink = { options, out, busy };
    bool ok = aq_load_start_busy(busy);

    if (!ok)
        aq_front_missing("rows on a busy machine");
    if (ok && aq_load_wanted(options, busy, aq_load_names, COUNT(aq_load_names)) > 0)
        ok = aq_load_jobs(&sink, "load", aq_load_few, COUNT(aq_load_few));
    if (ok && !options->remote && busy < 2
        && aq_load_wanted(options, busy, aq_load_many_names, COUNT(aq_load_many_names)) > 0)
        ok = aq_load_jobs(&sink, "load-many", aq_load_many, aq_load_many_count(options));
    if (ok && !options->remote && busy == 0)
        aq_load_rates(options, out);
    if (ok && !options->remote && busy == 1)
        aq_load_runs(options, out);
    aq_load_end_busy();
    return ok;
}

void aq_load_run(const struct aq_options *options, struct aq_out *out)
{
    if (aq_load_count(options) == 0)
        return;
    for (size_t i = 0; i < COUNT(aq_load_busy) && !aq_front_stop(); i++)
        if (aq_load_count_with(options, aq_load_busy[i]) > 0
            && !aq_load_with(options, out, aq_load_busy[i]))
            break;
}
