/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_firehose.h - what the parts of bench-firehose share; see bench_firehose.c.
 */
#ifndef BENCH_FIREHOSE_H
#define BENCH_FIREHOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "other/firehose/aq_fh_internal.h"

#define BENCH_FH_CURVES 9
#define BENCH_FH_POINTS 16

/* Two ranks over a device that pins nothing and a network that takes no time. */
struct bench_fh_pair {
    struct aq_fh *fh[2];
};

struct bench_fh_plot {
    const char *title, *x, *y, *set;
    unsigned curves, points;
    const char *name[BENCH_FH_CURVES];
    double at[BENCH_FH_POINTS], value[BENCH_FH_CURVES][BENCH_FH_POINTS];
};

uint64_t bench_fh_random(void);
void bench_fh_open(struct bench_fh_pair *pair, uint64_t quota, uint64_t local);
void bench_fh_close(struct bench_fh_pair *pair);
/* Rank 0 takes a reference to rank 1's memory and drops it again: was it a hit? */
bool bench_fh_touch(struct bench_fh_pair *pair, uintptr_t addr, size_t nbytes);
/* dir NULL: no plot. */
void bench_fh_plot(const char *dir, const char *file, const struct bench_fh_plot *plot);

void bench_fh_rates(const char *dir);   /* bench_firehose_rates.c */
void bench_fh_overlap(const char *dir); /* bench_firehose_overlap.c */

#endif
