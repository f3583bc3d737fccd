/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_stat.c - slices, quartiles, verdicts and the record line of aq-bench.
 * Owns      nothing
 * Threads   any, on distinct data
 * Uses      the C library only
 * See       bench_stat.h for how a row is measured
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_stat.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define AQ_RECORD_TAG "AQBENCH1"

double aq_bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

uint64_t aq_bench_switches(void *unused)
{
    struct rusage usage;

    (void)unused;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

static int aq_stat_compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static double aq_stat_at(const double *sorted, size_t n, double fraction)
{
    double where = fraction * (double)(n - 1);
    size_t low = (size_t)where;
    size_t high = low + 1 < n ? low + 1 : low;

    return sorted[low] + (where - (double)low) * (sorted[high] - sorted[low]);
}

struct aq_quart aq_stat_quart(const double *v, size_t n)
{
    struct aq_quart q = { 0, 0, 0 };
    double *sorted = malloc(n * sizeof(*sorted));

    if (sorted == NULL || n == 0) {
        free(sorted);
        return q;
    }
    memcpy(sorted, v, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), aq_stat_compare);
    q.q1 = aq_stat_at(sorted, n, 0.25);
    q.median = aq_stat_at(sorted, n, 0.5);
    q.q3 = aq_stat_at(sorted, n, 0.75);
    free(sorted);
    return q;
}

/* Is the limit what it was, as far as its ratio to itself tells? */
static bool aq_stat_steady(double aa)
{
    return aa <= 1 + AQ_BENCH_NOISE && aa >= 1 - AQ_BENCH_NOISE;
}

double aq_stat_spread(const struct aq_result *r)
{
    const struct aq_quart *q = r->ratio.median > 0 ? &r->ratio : &r->subject;

    return q->q1 > 0 ? q->q3 / q->q1 : 1;
}

enum aq_verdict aq_stat_verdict(const struct aq_result *r)
{
    if (r->budget <= 0)
        return AQ_VERDICT_NONE;
    if (r->unsteady || (r->aa > 0 && !aq_stat_steady(r->aa)))
        return AQ_VERDICT_NOISE;
    if (aq_stat_spread(r) > AQ_BENCH_SPREAD && r->ratio.q1 <= r->budget && r->ratio.q3 > r->budget)
        return AQ_VERDICT_NOISE;
    return r->ratio.median <= r->budget ? AQ_VERDICT_OK : AQ_VERDICT_OVER;
}

const char *aq_stat_ratio(double ratio, double budget, char *buf)
{
    for (int digits = 2; digits < 7; digits++) {
        snprintf(buf, AQ_STAT_RATIO, "%.*f", digits, ratio);
        if (budget <= 0 || ratio <= budget || strtod(buf, NULL) > budget)
            break;
    }
    return buf;
}

const char *aq_stat_word(enum aq_verdict verdict)
{
    switch (verdict) {
    case AQ_VERDICT_OK:
        return "ok";
    case AQ_VERDICT_OVER:
        return "over";
    case AQ_VERDICT_NOISE:
        return "noise";
    default:
        return "";
    }
}

/* Ratios of the slices chosen: all of them, or the steady ones. Returns how many. */
static size_t aq_stat_ratios(const double *s, const double *a, const double *b, size_t n, bool all,
                             struct aq_result *out)
{
    double ratio[AQ_BENCH_MAX_SLICES], subject[AQ_BENCH_MAX_SLICES], limit[AQ_BENCH_MAX_SLICES];
    size_t deferred = 0;

    for (size_t i = 0; i < n; i++) {
        if (!all && !aq_stat_steady(b[i] / a[i]))
            continue;
        subject[deferred] = s[i];
        limit[deferred] = (a[i] + b[i]) / 2;
        ratio[deferred] = s[i] / limit[deferred];
        deferred++;
    }
    out->slices = (unsigned)deferred;
    out->subject = aq_stat_quart(subject, deferred);
    out->limit = aq_stat_quart(limit, deferred);
    out->ratio = aq_stat_quart(ratio, deferred);
    return deferred;
}

void aq_stat_reduce(const double *s, const double *a, const double *b, size_t n,
                    struct aq_result *out)
{
    double control[AQ_BENCH_MAX_SLICES];

    if (n > AQ_BENCH_MAX_SLICES)
        n = AQ_BENCH_MAX_SLICES;
    out->unsteady = false;
    if (a == NULL || b == NULL || n == 0) {
        out->slices = (unsigned)n;
        out->subject = aq_stat_quart(s, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        control[i] = b[i] / a[i];
    out->aa = aq_stat_quart(control, n).median;
    if (aq_stat_ratios(s, a, b, n, false, out)
        < (n < AQ_BENCH_LEAST_SLICES ? n : AQ_BENCH_LEAST_SLICES)) {
        out->unsteady = true;
        aq_stat_ratios(s, a, b, n, true, out);
    }
}

/* How many operations, at least so many, fill one slice; also the warm-up. Of two runs the shorter
 * one counts: an interruption must not pass for the time of few operations. */
static uint64_t aq_measure_calibrate(const struct aq_side *side, double slice_ns, uint64_t min)
{
    uint64_t iters = 1;

    for (int round = 0; round < 40; round++) {
        double first = side->run(side->arg, iters);
        double second = first < slice_ns / 8 ? first : side->run(side->arg, iters);
        double ns = second < first ? second : first;
        double grow = ns > 0 ? slice_ns / ns : 8;

        if (grow < 1.5) {
            iters = (uint64_t)((double)iters * grow);
            break;
        }
        iters = (uint64_t)((double)iters * (grow > 8 ? 8 : grow)) + 1;
    }
    return iters > min ? iters : min > 0 ? min : 1;
}

/* The triples of one row; the undisturbed ones first. */
struct aq_series {
    double s[AQ_BENCH_MAX_SLICES], a[AQ_BENCH_MAX_SLICES], b[AQ_BENCH_MAX_SLICES];
    unsigned count, clean;
};

static double aq_measure_slice(const struct aq_side *side, uint64_t iters)
{
    return side->run == NULL ? 0 : side->run(side->arg, iters) / (double)iters;
}

static void aq_series_add(struct aq_series *v, double a, double s, double b, bool disturbed)
{
    unsigned at = v->count++;

    if (!disturbed) { /* swap places with the first disturbed one */
        unsigned first = v->clean++;

        v->s[at] = v->s[first];
        v->a[at] = v->a[first];
        v->b[at] = v->b[first];
        at = first;
    }
    v->s[at] = s;
    v->a[at] = a;
    v->b[at] = b;
}

void aq_bench_measure(const struct aq_measure *m, struct aq_result *out)
{
    bool limited = m->limit.run != NULL;
    uint64_t limit_iters = limited ? aq_measure_calibrate(&m->limit, m->slice_ns, m->min) : 1;
    uint64_t iters = aq_measure_calibrate(&m->subject, m->slice_ns, m->min);
    double start = aq_bench_now();
    struct aq_series v;

    v.count = v.clean = 0;
    while (v.count < AQ_BENCH_MAX_SLICES && v.clean < m->slices
           && (v.count < AQ_BENCH_LEAST_SLICES || aq_bench_now() - start < m->longest_ns)) {
        uint64_t before = m->switches != NULL ? m->switches(m->switches_arg) : 0;
        double a = aq_measure_slice(&m->limit, limit_iters);
        double s = aq_measure_slice(&m->subject, iters);
        double b = aq_measure_slice(&m->limit, limit_iters);

        aq_series_add(&v, a, s, b, m->switches != NULL && m->switches(m->switches_arg) != before);
    }
    if (v.clean < AQ_BENCH_LEAST_SLICES)
        v.clean = v.count; /* too few were left alone: all count, and the control will tell */
    aq_stat_reduce(v.s, limited ? v.a : NULL, limited ? v.b : NULL, v.clean, out);
}

void aq_bench_settle(const struct aq_measure *m, unsigned attempts, struct aq_result *out)
{
    struct aq_result best;

    for (unsigned k = 0; k < attempts; k++) {
        struct aq_result r = *out;

        aq_bench_measure(m, &r);
        if (k == 0 || (best.unsteady && !r.unsteady)
            || (best.unsteady == r.unsteady && aq_stat_spread(&r) < aq_stat_spread(&best)))
            best = r;
        if (!best.unsteady && aq_stat_spread(&best) <= AQ_BENCH_SPREAD)
            break;
    }
    if (attempts > 0)
        *out = best;
}

void aq_record_write(FILE *f, const struct aq_result *r)
{
    fprintf(f,
            AQ_RECORD_TAG "\t%s\t%s\t%s\t%s\t%llu\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%.6g\t%."
                          "6g\t%.6g\t%.6g\t%.6g\t%u\t%d\n",
            r->who, r->name, r->unit, r->limit_name[0] != '\0' ? r->limit_name : "-",
            (unsigned long long)r->size, r->subject.q1, r->subject.median, r->subject.q3,
            r->limit.q1, r->limit.median, r->limit.q3, r->ratio.q1, r->ratio.median, r->ratio.q3,
            r->aa, r->budget, r->slices, r->unsteady);
    fflush(f);
}

bool aq_record_read(const char *line, struct aq_result *out)
{
    struct aq_result r;
    unsigned long long size;
    int got, unsteady;

    memset(&r, 0, sizeof(r));
    got = sscanf(line,
                 AQ_RECORD_TAG
                 " %15s %47s %7s %47[^\t] %llu %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %u %d",
                 r.who, r.name, r.unit, r.limit_name, &size, &r.subject.q1, &r.subject.median,
                 &r.subject.q3, &r.limit.q1, &r.limit.median, &r.limit.q3, &r.ratio.q1,
                 &r.ratio.median, &r.ratio.q3, &r.aa, &r.budget, &r.slices, &unsteady);
    if (got != 18)
        return false;
    if (strcmp(r.limit_name, "-") == 0)
        r.limit_name[0] = '\0';
    r.size = size;
    r.unsteady = unsteady != 0;
    *out = r;
    return true;
}

void aq_bench_report(const char *who, const char *name, uint64_t size, struct aq_side side,
                     bool quick)
{
    const struct aq_measure m = {
        .subject = side,
        .slice_ns = 1e6,
        .slices = quick ? 25 : 101,
        .longest_ns = quick ? 0.2e9 : 1e9,
        .switches = aq_bench_switches,
    };
    struct aq_result r;

    memset(&r, 0, sizeof(r));
    snprintf(r.who, sizeof(r.who), "%s", who);
    snprintf(r.name, sizeof(r.name), "%s", name);
    snprintf(r.unit, sizeof(r.unit), "ns");
    r.size = size;
    aq_bench_settle(&m, 3, &r);
    aq_record_write(stdout, &r);
}
