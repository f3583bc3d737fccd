/*
 * bench_armci.h - the programs of aq-bench armci: rank 0 measures, the others sleep or do as they
 * are told.
 *
 * A row is the middle of the ratios of interleaved slices: the subject, then what it is compared
 * with, in the same processes. A row is written as
 *     name|size|subject ns|what it is compared with|its ns|ratio|spread|goal|verdict
 * where the times are lower quartiles, the ratio is time of the subject over time of the other, the
 * spread the ratio of the upper and the lower quarter of the ratios, and the goal "<= 1.1" or
 * "-". With a spread above 1.5 a verdict that is not ok says noise, else MISSED. Only libarmci has
 * goals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef BENCH_ARMCI_H
#define BENCH_ARMCI_H 1

#include <stdbool.h>
#include <stddef.h>

struct bench_side {
    const char *name;
    void (*run)(void *state, long iters);
    void *state;
};

extern int bench_me, bench_nproc;
extern bool bench_quick;

/* Starts MPI and ARMCI and a common memory of bytes a rank; returns the address of rank's. */
void bench_start(int *argc, char ***argv, size_t bytes);
char *bench_memory(int rank);
void bench_finish(void);

/* What the ranks above 0 do while rank 0 measures: sleep until it says otherwise, in which case
 * answer() is called with the number of iterations and a size. Rank 0 calls bench_release() at the
 * end. */
typedef void (*bench_answer_fn)(int how, long iters, long size);
void bench_attend(bench_answer_fn answer);
void bench_call(int how, long iters, long size);
void bench_release(void);

/* Measures and writes a row; goal 0: none. bench_at_min turns the comparison round: how many
 * times as fast the subject is. Returns the ratio. */
double bench_row(const char *name, long size, struct bench_side subject, struct bench_side other,
                 double goal);
double bench_at_min(const char *name, long size, struct bench_side subject, struct bench_side other,
                    double goal);
/* The middle time of an iteration, ns; no row. */
double bench_time(struct bench_side side);
/* A row of a number that has been measured otherwise:
 *     name|size|value|unit||||goal|verdict */
void bench_figure(const char *name, long size, double value, const char *unit, double limit);
void bench_figure_at_min(const char *name, long size, double value, const char *unit, double limit);
/* The middle one; sorts them. */
double bench_middle(double *values, int n);
/* Of a clock, ns. */
double bench_now(void);

/* Settings of libarmci: "NAME=VALUE NAME=VALUE", and those that a program starts with. */
void bench_apply(const char *settings);
#define BENCH_DEFAULTS                                                              \
    "AQ_ARMCI_GET=auto AQ_ARMCI_PUT=auto AQ_ARMCI_STRIDED=auto AQ_ARMCI_BUFFERS=4 " \
    "AQ_ARMCI_CHUNK=65536 AQ_ARMCI_FIRST_CHUNK=16384"

#endif
