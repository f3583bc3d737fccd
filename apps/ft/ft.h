/*
 * ft.h - what the files of ft share.
 *
 *   ft.c            options, the run, the report
 *   ft_problem.c    the benchmark's definition: classes, random numbers, evolution, checksums
 *   ft_transpose.c  a 3-D FFT over all ranks, in three ways
 *   ft_comm.c       everything that calls the communication library
 *
 * Threads   one
 * Uses      gasnetex.h (in ft_comm.c only) and FFTW 3
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FT_H
#define FT_H 1

#include <complex.h> /* before fftw3.h, so that fftw_complex is the language's own type */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fftw3.h>

typedef double complex ft_value;

enum ft_method { FT_EXCHANGE, FT_SLABS, FT_PENCILS, FT_METHODS };

/* Distribution of one dimension in blocks that differ by at most one element; the first ranks have
 * the larger blocks. */
struct ft_split {
    int total;
    int ranks;
};

static inline int ft_split_first(struct ft_split s, int rank)
{
    int extra = s.total % s.ranks;

    return rank * (s.total / s.ranks) + (rank < extra ? rank : extra);
}

static inline int ft_split_count(struct ft_split s, int rank)
{
    return s.total / s.ranks + (rank < s.total % s.ranks ? 1 : 0);
}

static inline bool ft_split_owns(struct ft_split s, int rank, int index)
{
    int first = ft_split_first(s, rank);

    return index >= first && index < first + ft_split_count(s, rank);
}

/* ---- ft_problem.c ------------------------------------------------------------------- */

struct ft_class {
    char name;
    int nx, ny, nz;
    int steps;
    const double (*reference)[2]; /* [steps]: real and imaginary part */
};

/* What a rank sends in one transpose. */
struct ft_counts {
    uint64_t messages;
    uint64_t bytes;
    uint64_t smallest, largest; /* bytes of the smallest and the largest message */
};

const struct ft_class *ft_class_find(const char *name);
const char *ft_method_name(enum ft_method method);
size_t ft_class_points(const struct ft_class *cls);

/* Sets field[z][y - first][x] to the initial values of this rank's share of y. */
void ft_problem_start(const struct ft_class *cls, struct ft_split y, int rank, ft_value *field,
                      size_t y_stride, size_t z_stride);

/* Sets factor[i] to exp(-4 alpha pi^2 step i'^2) for one dimension of n points. */
void ft_problem_factors(int n, int step, double *factor);

/* Returns the relative error of a step's checksum: the larger error of real and imaginary part. */
double ft_problem_error(const struct ft_class *cls, int step, ft_value checksum);

/* Gives the published numbers for four ranks; returns false if the table has no such row. */
bool ft_problem_counts(const struct ft_class *cls, enum ft_method method, int ranks,
                       struct ft_counts *counts_out);

/* ---- ft_transpose.c ----------------------------------------------------------------- */

/*
 * One direction of the 3-D FFT.
 *
 * Before: each rank has some planes, work[plane][row][x]. After: each rank has some rows of
 * every plane, at result[row * row_stride + plane * plane_stride + x], x running fastest.
 * row_stride depends on the method only; in exchange and slabs plane_stride depends on how
 * many rows the owner has.
 */
struct ft_transform {
    enum ft_method method;
    int nx;
    int pad; /* unused elements behind each step of plane_stride */
    int rank, ranks;
    struct ft_split planes; /* the dimension that is distributed before */
    struct ft_split rows;   /* the dimension that is distributed after */
    ft_value *work;
    ft_value *pack; /* exchange: messages ready to go, one behind the other; else NULL */
    ft_value *result;
    size_t result_offset; /* of result, in bytes, in every rank's memory */
    size_t row_stride, plane_stride;
    fftw_plan along_rows, along_x, along_planes;
    double last_seconds; /* spent in transforms along_planes so far; for the report */
};

/* Returns the number of elements that the largest share of each array needs. */
size_t ft_transform_work_size(const struct ft_transform *tf);
size_t ft_transform_pack_size(const struct ft_transform *tf);
size_t ft_transform_result_size(const struct ft_transform *tf);

/* Sets strides and creates the FFTW plans; overwrites the arrays. Returns false if FFTW failed. */
bool ft_transform_plan(struct ft_transform *tf, int sign);
void ft_transform_destroy(struct ft_transform *tf);

/* Transforms work into result. Collective. */
void ft_transform_run(struct ft_transform *tf);

/* Returns what this rank must send in one transpose. */
struct ft_counts ft_transform_counts(const struct ft_transform *tf);

/* Transfers the same volume without computing; returns the seconds in start and completion
 * calls. */
double ft_transform_alone(struct ft_transform *tf);

/* ---- ft_comm.c ---------------------------------------------------------------------- */

/* Times of one rank in seconds, and what it sent, since ft_comm_stats_reset(). */
struct ft_comm_stats {
    double start;      /* in calls that start transfers */
    double completion; /* in calls that wait for transfers */
    double barrier;    /* waiting for other ranks */
    struct ft_counts sent;
};

void ft_comm_init(int *argc, char ***argv);
int ft_comm_rank(void);
int ft_comm_ranks(void);
size_t ft_comm_memory_limit(void);

/* Returns bytes of memory that every rank can reach. On failure prints the reason and returns
 * NULL. */
void *ft_comm_memory(size_t bytes);

/* Starts a copy of bytes from src to an offset in the memory of rank. */
void ft_comm_put(int rank, size_t offset, const void *src, size_t bytes);
/* Waits until all puts of this rank are complete at their targets. */
void ft_comm_put_wait(void);

/* A split barrier. The end returns when all ranks have started the barrier; it returns at once if
 * this rank has not started one. */
void ft_comm_barrier_start(void);
void ft_comm_barrier_end(void);
void ft_comm_barrier(void);

/* Gathers the bytes of every rank in all on rank 0, in rank order; other ranks may pass NULL. bytes
 * is at most FT_GATHER_MAX. A barrier must separate two gathers. */
#define FT_GATHER_MAX 256
void ft_comm_gather(const void *own, size_t bytes, void *all);

/* Returns rank 0's number on every rank; callable once per run of the program. */
int ft_comm_agree(int number);

double ft_comm_now(void);
struct ft_comm_stats *ft_comm_stats(void);
void ft_comm_stats_reset(void);
/* ft_comm_exit() is collective; ft_comm_abort() ends the job from one rank. */
_Noreturn void ft_comm_exit(int code);
_Noreturn void ft_comm_abort(void);

#endif
