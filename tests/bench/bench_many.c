/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_many.c - rows that need jobs of many sizes: start-up, memory of a peer, message rate with
 * many peers.
 * Owns      nothing
 * Threads   one
 * Uses      bench.h
 *
 * Start-up alternates with its limit, fork + exec of as many processes of this very program, each
 * until it has ended. Memory of a peer is the slope between a small and a large job of what one
 * rank holds: pages of memory files count in equal shares for all who map them, files of programs
 * and libraries do not count.
 *
 * Where ranks share no memory, those that a rank speaks to in start-up and barriers cost it more
 * than the silent ones. So the two jobs are of sizes at which a barrier by dissemination speaks to
 * equally many: powers of two in both directions, 12 ranks in a job of 41 as in one of 63.
 *
 * Ranks of MPI have memory of MPI's own that says nothing of ours, and more of them than cores spin
 * against each other: over mpi there are no memory rows, and the jobs are small.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define AQ_MANY_LIMIT_S   60.0
#define AQ_PEER_BYTES     128.0 /* budget: memory per peer never spoken to */
#define AQ_STARTUP_BUDGET 2.0   /* budget: init to first barrier with 64 ranks */
#define AQ_FEW            8
#define AQ_MANY           64
#define AQ_REMOTE_FEW     41
#define AQ_REMOTE_MANY    63
#define AQ_REMOTE_JOBS    5
#define AQ_REST_US        20000 /* before each part: a process that has slept is scheduled better */
#define AQ_REPEAT_MIN     11    /* start-up: so many times at least */
#define AQ_REPEAT_MAX     25    /* more, until enough were steady */

static const unsigned aq_startup_sizes[] = { 64, 32, 16, 8, 4, 2 };
static const unsigned aq_remote_startup_sizes[] = { 16, 8, 4, 2 };
static const unsigned aq_raw_startup_sizes[] = { 4, 2 };
static const unsigned aq_rate_sizes[] = { 4, 8, 16 };
#define AQ_RAW_RATES 1 /* of these, over MPI */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A table other than all or budget does not ask for these; --quick takes the rows with a budget. */
static bool aq_many_wanted(const struct aq_options *options, const char *name)
{
    if (options->only != NULL)
        return aq_row_name_wanted(options, name);
    return options->table == NULL || strcmp(options->table, "all") == 0
           || strcmp(options->table, "budget") == 0;
}

static bool aq_many_startup(const struct aq_options *options)
{
    if (options->raw
        && (options->quick || (options->table != NULL && strcmp(options->table, "budget") == 0)))
        return false;
    return aq_many_wanted(options, "startup_init") || aq_many_wanted(options, "startup_launch");
}

static size_t aq_startup_count(const struct aq_options *options)
{
    bool few = options->quick || (options->table != NULL && strcmp(options->table, "budget") == 0);

    if (few)
        return 1;
    if (options->raw)
        return COUNT(aq_raw_startup_sizes);
    return options->remote ? COUNT(aq_remote_startup_sizes) : COUNT(aq_startup_sizes);
}

static unsigned aq_startup_size(const struct aq_options *options, size_t i)
{
    if (options->raw)
        return aq_raw_startup_sizes[i];
    return options->remote ? aq_remote_startup_sizes[i] : aq_startup_sizes[i];
}

static size_t aq_rate_count(const struct aq_options *options)
{
    return options->raw ? AQ_RAW_RATES : COUNT(aq_rate_sizes);
}

static bool aq_memory_wanted(const struct aq_options *options)
{
    return !options->raw && aq_many_wanted(options, "memory_per_peer");
}

size_t aq_many_count(const struct aq_options *options)
{
    size_t count = 0;

    if (aq_many_startup(options))
        count += 2 * aq_startup_count(options);
    if (aq_memory_wanted(options))
        count += 3;
    if (!options->quick && aq_many_wanted(options, "am_rate"))
        count += aq_rate_count(options);
    return count;
}

/* --- start-up --- */

struct aq_started {
    double longest, job, met;
};

static void aq_startup_line(void *arg, const char *line)
{
    struct aq_started *s = arg;

    sscanf(line, "STARTUP %lf %lf %lf", &s->longest, &s->job, &s->met);
}

/* fork + exec of n processes that end at once; nanoseconds per job. */
static double aq_startup_limit(unsigned n)
{
    const char *self = aq_front_self();
    pid_t pids[AQ_MANY];
    double start;

    usleep(AQ_REST_US);
    start = aq_bench_now();
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            execl(self, self, "--task", "exit", (char *)NULL);
            _exit(127);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (pids[i] > 0)
            waitpid(pids[i], NULL, 0);
    }
    return aq_bench_now() - start;
}

static void aq_startup_describe(struct aq_result *r, const char *name, unsigned ranks)
{
    memset(r, 0, sizeof(*r));
    snprintf(r->who, sizeof(r->who), "aqueduct");
    snprintf(r->name, sizeof(r->name), "%s", name);
    snprintf(r->unit, sizeof(r->unit), "ns");
    snprintf(r->limit_name, sizeof(r->limit_name), "fork + exec");
    r->size = ranks;
}

/* Raw figures of the start-up rows of one size. */
struct aq_startups {
    double before[AQ_REPEAT_MAX], after[AQ_REPEAT_MAX], init[AQ_REPEAT_MAX], launch[AQ_REPEAT_MAX];
    size_t count;
};

/* One job between two limits; false if it failed. */
static bool aq_startup_once(const struct aq_options *options, unsigned ranks, struct aq_startups *v)
{
    struct aq_started s = { 0, 0, 0 };
    double before = aq_startup_limit(ranks);
    double start;

    usleep(AQ_REST_US);
    start = aq_bench_now();
    if (aq_front_job(options, "startup", ranks, AQ_MANY_LIMIT_S, aq_startup_line, &s) != 0
        || s.job <= 0)
        return false;
    v->before[v->count] = before;
    v->after[v->count] = aq_startup_limit(ranks);
    v->init[v->count] = s.job;
    v->launch[v->count] = s.met - start;
    v->count++;
    return true;
}

static void aq_startup_run(const struct aq_options *options, struct aq_out *out, unsigned ranks)
{
    struct aq_startups v = { .count = 0 };
    struct aq_result r = { .unsteady = true };

    aq_out_running(out, "startup");
    aq_startup_limit(ranks);
    while (v.count < AQ_REPEAT_MAX && (v.count < AQ_REPEAT_MIN || r.unsteady) && !aq_front_stop()) {
        if (!aq_startup_once(options, ranks, &v))
            return;
        aq_stat_reduce(v.init, v.before, v.after, v.count, &r);
    }
    if (v.count == 0)
        return;
    aq_startup_describe(&r, "startup_init", ranks);
    r.budget = ranks == AQ_MANY ? AQ_STARTUP_BUDGET : 0;
    aq_stat_reduce(v.init, v.before, v.after, v.count, &r);
    aq_out_result(out, &r);
    aq_startup_describe(&r, "startup_launch", ranks);
    aq_stat_reduce(v.launch, v.before, v.after, v.count, &r);
    aq_out_result(out, &r);
}

/* --- memory --- */

static void aq_memory_line(void *arg, const char *line)
{
    double *bytes = arg;

    sscanf(line, "MEMORY %lf %lf", &bytes[0], &bytes[1]);
}

/* Bytes that one rank holds in a job of so many; 0 if the job failed. A network's conduit needs a
 * buffer more now and then, as messages happen to meet: the least of some jobs. */
static double aq_memory_rank(const struct aq_options *options, const char *task, unsigned ranks)
{
    double min = 0;

    for (int i = 0; i < (options->remote ? AQ_REMOTE_JOBS : 1); i++) {
        double bytes[2] = { 0, 0 };

        if (aq_front_job(options, task, ranks, AQ_MANY_LIMIT_S, aq_memory_line, bytes) != 0)
            return 0;
        if (i == 0 || bytes[0] < min)
            min = bytes[0];
    }
    return min / ranks;
}

static void aq_memory_result(struct aq_out *out, const char *name, unsigned ranks, double bytes,
                             double allowed)
{
    struct aq_result r;

    memset(&r, 0, sizeof(r));
    snprintf(r.who, sizeof(r.who), "aqueduct");
    snprintf(r.name, sizeof(r.name), "%s", name);
    snprintf(r.unit, sizeof(r.unit), "B");
    r.size = ranks;
    r.subject = (struct aq_quart){ bytes, bytes, bytes };
    r.slices = 1;
    if (allowed > 0) {
        snprintf(r.limit_name, sizeof(r.limit_name), "allowance");
        r.limit = (struct aq_quart){ allowed, allowed, allowed };
        r.ratio = (struct aq_quart){ bytes / allowed, bytes / allowed, bytes / allowed };
        r.budget = 1;
    }
    aq_out_result(out, &r);
}

static void aq_memory_run(const struct aq_options *options, struct aq_out *out)
{
    const unsigned small = options->remote ? AQ_REMOTE_FEW : AQ_FEW,
                   large = options->remote ? AQ_REMOTE_MANY : AQ_MANY;
    double few, many, talk_few, talk;

    aq_out_running(out, "memory");
    few = aq_memory_rank(options, "memory", small);
    many = aq_memory_rank(options, "memory", large);
    talk_few = options->remote ? aq_memory_rank(options, "talk", small) : few;
    talk = aq_memory_rank(options, "talk", large);
    if (few <= 0 || many <= 0 || talk_few <= 0 || talk <= 0)
        return;
    aq_memory_result(out, "memory_per_peer", large, MAX(0, (many - few) / (large - small)),
                     AQ_PEER_BYTES);
    aq_memory_result(out, "memory_active_peer", large, MAX(0, (talk - talk_few) / (large - small)),
                     0);
    aq_memory_result(out, "memory_per_rank", large, many, 0);
}

/* --- message rate --- */

static void aq_rate_line(void *arg, const char *line)
{
    struct aq_out *out = arg;
    struct aq_result r;

    if (aq_record_read(line, &r))
        aq_out_result(out, &r);
}

static void aq_rate_run(const struct aq_options *options, struct aq_out *out)
{
    struct aq_options rate = *options;

    rate.only = "am_rate";
    for (size_t i = 0; i < aq_rate_count(options) && !aq_front_stop(); i++) {
        aq_out_running(out, "am_rate");
        aq_front_job(&rate, "rows", aq_rate_sizes[i], AQ_MANY_LIMIT_S, aq_rate_line, out);
    }
}

void aq_many_run(const struct aq_options *options, struct aq_out *out)
{
    if (aq_many_startup(options)) {
        for (size_t i = 0; i < aq_startup_count(options) && !aq_front_stop(); i++)
            aq_startup_run(options, out, aq_startup_size(options, i));
    }
    if (aq_memory_wanted(options) && !aq_front_stop())
        aq_memory_run(options, out);
    if (!options->quick && aq_many_wanted(options, "am_rate") && !aq_front_stop())
        aq_rate_run(options, out);
}
