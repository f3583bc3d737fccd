/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_against.h - aq-bench --against: the same program over two implementations, run in turn.
 *
 *   bench_against.c        options of this mode; finds, builds, runs in turn, prints
 *   bench_against_build.c  the two trees, their pkg-config files, the programs
 *   bench_against_job.c    one job of one program under its own launcher, with a time limit
 *   bench_against_out.c    the table, the CSV file, the page and its plot
 *   bench_portable.c       the program: installed as source, compiled against each tree
 */
#ifndef AQ_BENCH_AGAINST_H
#define AQ_BENCH_AGAINST_H

#include "bench.h"

#define AQ_AGAINST_CONDUITS 6
#define AQ_AGAINST_ROWS     64
#define AQ_AGAINST_ROUNDS   101

enum { AQ_OURS, AQ_PEERS, AQ_TREES };

/* An installed implementation. */
struct aq_tree {
    char prefix[4096];
    const char *label; /* how the output calls it */
};

/* One row over one conduit: nanoseconds of each round; 0 where there is no figure. */
struct aq_cell {
    double ns[AQ_TREES][AQ_AGAINST_ROUNDS];
};

struct aq_against_row {
    char name[48], text[64];
    struct aq_cell cells[AQ_AGAINST_CONDUITS];
};

struct aq_against {
    const struct aq_options *options;
    struct aq_tree trees[AQ_TREES];
    char temp[4096]; /* the folder of the programs */
    char conduits[AQ_AGAINST_CONDUITS][16];
    size_t conduit_count, row_count;
    unsigned rounds;
    struct aq_against_row rows[AQ_AGAINST_ROWS];
};

/* What a cell comes to over all rounds in which both trees have a figure. */
struct aq_verdict_cell {
    double ours, peers;    /* medians */
    struct aq_quart ratio; /* of the rounds' ratios */
    unsigned rounds;       /* 0: no figure */
};

/** aq_against_find - the two trees and the conduits that both have, or the options name; 0, or -1
 *  with a message. */
int aq_against_find(struct aq_against *against);

/** aq_against_build - compiles the program for a tree and conduit; 0, or -1 with what the compiler
 *  said. */
int aq_against_build(const struct aq_against *against, unsigned tree, size_t conduit);

/** aq_against_program - the program's path. */
void aq_against_program(const struct aq_against *against, unsigned tree, size_t conduit, char *path,
                        size_t size);

/** aq_against_log - where a compiler's or job's own messages go. aq_against_show - its first lines,
 *  on standard error. */
void aq_against_log(const struct aq_against *against, char *path, size_t size);
void aq_against_show(const struct aq_against *against);

/** aq_against_job - runs it once, as that round; 0, or -1 with a message. */
int aq_against_job(struct aq_against *against, unsigned tree, size_t conduit, unsigned round);

/** aq_against_cell - the verdict over a cell. */
struct aq_verdict_cell aq_against_cell(const struct aq_against *against, size_t row,
                                       size_t conduit);

/** aq_against_print - the table, then the cells above 1.0; returns their number. */
size_t aq_against_print(const struct aq_against *against, FILE *f);

/** aq_against_files - what --csv and --plot ask for; 0, or -1 with a message. */
int aq_against_files(const struct aq_against *against);

/** aq_against_run - the whole mode; returns the exit code. */
int aq_against_run(const struct aq_options *options);

#endif
