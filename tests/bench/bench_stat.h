/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_stat.h - what a benchmark row measures and how: slices, quartiles, ratios, verdicts,
 * records.
 * Owns      nothing; every call works on the caller's data
 * Threads   any, on distinct data
 * Uses      the C library only, so that the MPI and OpenSHMEM peers measure with the very same code
 *
 * A row compares a subject with its limit. Both run in slices of about a millisecond, longer where
 * a stream would not get going in that time, in the same processes, in the order limit, subject,
 * limit; the ratio of a slice is subject over the mean of the two limits around it, and second over
 * first limit is the noise control (A/A) of that slice.
 *
 * What disturbs is left out. A slice during which the kernel took a processor away from one of the
 * processes measured somebody else's work. A slice whose two limits differ by more than 10% saw
 * the machine itself change (a virtual core moved, the clock changed): its ratio compares two
 * machines. The control is the median A/A of all uninterrupted slices, unsteady ones included. If
 * it is off by more than 10%, or fewer than 9 slices were steady, or the quartiles of the ratio
 * are more than a quarter apart with the budget between them, the row's verdict is noise.
 */
#ifndef AQ_BENCH_STAT_H
#define AQ_BENCH_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define AQ_BENCH_NOISE        0.10 /* limits of a slice, or their median, further apart: noise */
#define AQ_BENCH_LEAST_SLICES 9    /* a median of fewer is not worth printing */
#define AQ_BENCH_MAX_SLICES   256

/* Median and quartiles of one series. */
struct aq_quart {
    double q1, median, q3;
};

/* Does iters operations and returns the nanoseconds they took. */
typedef double (*aq_side_fn)(void *arg, uint64_t iters);

struct aq_side {
    aq_side_fn run; /* NULL: the row has no such side */
    void *arg;
};

struct aq_measure {
    struct aq_side subject, limit;
    double slice_ns;   /* aimed length of one slice of one side */
    unsigned slices;   /* triples limit, subject, limit */
    double longest_ns; /* stop taking slices after this much time (at least 9 are taken) */
    /* how often the kernel interrupted these processes so far; or NULL */
    uint64_t (*switches)(void *arg);
    void *switches_arg;
    uint64_t min; /* operations of a slice, however long they take */
};

#define AQ_BENCH_SPREAD 1.25 /* quartiles of the ratio further apart than this: measure again */

/* One finished row. Times are per operation; lower is better. */
struct aq_result {
    char who[16]; /* aqueduct, openmpi, mpich, oshmem */
    char name[48];
    char unit[8];        /* ns or B */
    char limit_name[48]; /* empty: no limit */
    uint64_t size;       /* bytes of one operation; ranks in a start-up row */
    struct aq_quart subject, limit, ratio;
    double aa;       /* median of limit against itself; 0 when not measured */
    double budget;   /* 0: none */
    unsigned slices; /* that count */
    bool unsteady;   /* too few slices during which the limit stayed what it was */
};

enum aq_verdict { AQ_VERDICT_NONE, AQ_VERDICT_OK, AQ_VERDICT_OVER, AQ_VERDICT_NOISE };

/** aq_bench_now - monotonic clock, nanoseconds. */
double aq_bench_now(void);

/** aq_bench_switches - how often the kernel gave this thread's processor to somebody else. */
uint64_t aq_bench_switches(void *unused);

/** aq_stat_quart - median and quartiles (linear interpolation) of n >= 1 values; v is left as it
 *  was. */
struct aq_quart aq_stat_quart(const double *v, size_t n);

/** aq_stat_verdict - ok or over against the row's budget; noise when the control is off; none
 *  without budget. */
enum aq_verdict aq_stat_verdict(const struct aq_result *r);

/** aq_stat_spread - third over first quartile of the ratio (of the time, if there is no limit). */
double aq_stat_spread(const struct aq_result *r);

/** aq_stat_ratio - the ratio with two digits, or as many more as show it above its budget (0: none)
 *  if it is; buf of AQ_STAT_RATIO bytes. Returns buf. */
#define AQ_STAT_RATIO 16
const char *aq_stat_ratio(double ratio, double budget, char *buf);

/** aq_stat_word - the verdict as the table prints it; "" for none. */
const char *aq_stat_word(enum aq_verdict verdict);

/** aq_stat_reduce - quartiles, ratios and control from raw slices: subject s, limits before (a) and
 *  after (b), both NULL if there is no limit. */
void aq_stat_reduce(const double *s, const double *a, const double *b, size_t n,
                    struct aq_result *out);

/** aq_bench_measure - calibrates both sides, takes the slices and fills the figures of *out. */
void aq_bench_measure(const struct aq_measure *m, struct aq_result *out);

/** aq_bench_settle - measures up to attempts times until the row is quiet; keeps the attempt with
 *  the least spread, whatever its ratio. */
void aq_bench_settle(const struct aq_measure *m, unsigned attempts, struct aq_result *out);

/** aq_record_write - one line of text that aq_record_read() understands; flushed. */
void aq_record_write(FILE *f, const struct aq_result *r);

/** aq_bench_report - measures a row that has no limit, and writes its record to standard output. */
void aq_bench_report(const char *who, const char *name, uint64_t size, struct aq_side side,
                     bool quick);

/** aq_record_read - parses such a line; false when it is something else. */
bool aq_record_read(const char *line, struct aq_result *out);

#endif
