/*
 * lu.h - what the files of lu and lu-pthread share.
 *
 *   lu.c          options, the run, the report
 *   lu_grid.c     the owner of each block; number of blocks that each rank must fetch
 *   lu_factor.c   the factorisation, step by step
 *   lu_kernel.c   operations on one block
 *   lu_check.c    the matrix, and the check of its factors
 *   lu_armci.c    lu: ranks that are processes, over ARMCI
 *   lu_threads.c  lu-pthread: ranks that are threads
 *
 * Blocks    B x B doubles, row by row, contiguous; block (I,J) of nb x nb
 * Threads   a rank is one thread
 * Uses      armci.h and mpi.h in lu_armci.c only, pthreads in lu_threads.c only
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LU_H
#define LU_H 1

#include <stdbool.h>
#include <stddef.h>

enum lu_layout { LU_CYCLIC, LU_BLOCK, LU_HYBRID, LU_LAYOUTS };

/* How a rank gets a remote block. */
enum lu_fetch {
    LU_GET,   /* a blocking get when the block is first needed; kept until the step ends */
    LU_NBGET, /* non-blocking gets of all blocks of a step, each waited for when first needed */
    LU_ANEW,  /* a blocking get for every update that needs it */
    LU_LOAD,  /* in place on the same host, else as LU_NBGET */
    LU_FETCHES
};

struct lu_options {
    int n, block;
    int threads; /* of lu-pthread */
    enum lu_layout layout;
    enum lu_fetch fetch;
    bool serial; /* compare with a factorisation by one rank */
    bool tables; /* check the table of counts, and nothing else */
    bool help;
    const char *wrong; /* the invalid argument, or NULL */
};

/* --- lu_grid.c --- */

/* Counts of fetched blocks, or of updates that need no fetch. */
struct lu_counts {
    long diagonal[2]; /* diagonal blocks: [0] from the same host, [1] over the network */
    long panel[2];    /* blocks of the row and the column that a step updates with */
    long updates;
};

struct lu_grid {
    int nb; /* blocks a side */
    int ranks, hosts;
    enum lu_layout layout;
    int *owner; /* [I * nb + J]: a rank */
    int *index; /* [I * nb + J]: which of its owner's blocks it is, in row-major order */
    int *owned; /* [rank]: number of blocks */
};

/* Returns false without memory, or if hosts have different numbers of ranks. lu_grid_destroy()
 * frees the grid. */
bool lu_grid_create(struct lu_grid *grid, int nb, int ranks, int hosts, enum lu_layout layout);
void lu_grid_destroy(struct lu_grid *grid);

static inline int lu_owner(const struct lu_grid *grid, int row, int column)
{
    return grid->owner[row * grid->nb + column];
}

static inline int lu_index(const struct lu_grid *grid, int row, int column)
{
    return grid->index[row * grid->nb + column];
}

/* Sets counts[rank] of all ranks, by enumeration of all updates. */
bool lu_grid_counts(const struct lu_grid *grid, enum lu_fetch fetch, struct lu_counts *counts);

/* Gives the published sums over all ranks; returns false if the table has no such row. */
bool lu_grid_published(const struct lu_grid *grid, enum lu_fetch fetch, long *same_host_out,
                       long *network_out);

/* Compares the enumeration with every row of the published table; prints both. */
bool lu_grid_check_tables(void);

const char *lu_layout_name(enum lu_layout layout);
const char *lu_fetch_name(enum lu_fetch fetch);

/* --- lu_kernel.c: b is the side of a block --- */

void lu_kernel_factor(double *a, int b);                        /* a = L U, in place */
void lu_kernel_right(double *a, const double *diagonal, int b); /* a = a U^-1 */
void lu_kernel_left(double *a, const double *diagonal, int b);  /* a = L^-1 a */
void lu_kernel_update(double *c, const double *left, const double *right,
                      int b); /* c -= left right */

/* --- lu_factor.c --- */

struct lu_times {
    double total, get, barrier; /* seconds of one rank */
    double cpu; /* seconds that its thread has computed, waited by polling, or copied */
};

/* One rank's part of a factorisation. */
struct lu {
    const struct lu_options *opt;
    const struct lu_grid *grid;
    int rank;
    double *blocks; /* this rank's */
    struct lu_counts counts;
    struct lu_times times;
};

/* Collective. Returns false without memory. */
bool lu_factor(struct lu *lu);

/* Factors on one rank: a has all blocks in row-major order. Same operations in the same order as
 * lu_factor(). */
void lu_factor_serial(double *a, int nb, int b);

/* --- lu_check.c --- */

/* Sets block to its initial elements. */
void lu_matrix_block(double *block, int n, int b, int row, int column);

struct lu_verdict {
    double error;    /* max |x - 1| of the system whose solution is (1, ..., 1) */
    double residual; /* max |b - A x| / (max row sum of A x max |x| x n x epsilon) */
    double log_det;
    double log_det_error; /* against the published value; 0 if there is none */
    long different;       /* elements that differ from the serial factors; 0 if not compared */
    bool right;
};

/* Checks factors: a has their blocks in row-major order. Returns false without memory. */
bool lu_check(const double *a, int n, int b, bool serial, struct lu_verdict *verdict_out);

/* --- lu_armci.c or lu_threads.c: everything that differs between processes and threads --- */

/* Runs body on all ranks and returns the exit code, the largest that a body has returned. */
int lu_comm_run(int *argc, char ***argv, int threads, int (*body)(void *), void *arg);

int lu_comm_rank(void);
int lu_comm_ranks(void);
int lu_comm_hosts(void); /* 0: hosts have different numbers of ranks */
bool lu_comm_same_host(int rank);
const char *lu_comm_kind(void);
bool lu_comm_loads_only(void); /* ranks have one address space */

/* Collective. Returns bytes of memory that other ranks may fetch from, with slots for gets in
 * flight; NULL without memory. */
void *lu_comm_memory(size_t bytes, int slots);
void lu_comm_memory_free(void);
/* Returns the address of a rank's memory; loads from it are legal if the rank is on the same
 * host. */
const char *lu_comm_address(int rank);

void lu_comm_get(void *to, int rank, size_t offset, size_t bytes);
void lu_comm_get_start(void *to, int rank, size_t offset, size_t bytes, int slot);
void lu_comm_get_wait(int slot);

void lu_comm_barrier(void);
void lu_comm_sum(long *values, int count);
void lu_comm_max(double *values, int count);
double lu_comm_now(void);
_Noreturn void lu_comm_abort(const char *why);

#endif
