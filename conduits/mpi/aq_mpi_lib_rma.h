/*
 * aq_mpi_lib_rma.h - the MPI functions for transfers: windows, and messages on a communicator.
 *
 * Requests  a call that starts a request appends it to a list. The request's index is the list's
 *           length before. test() returns the indices of completed requests, falling; each is
 *           removed by moving the last of the list to its place, in the order returned. The caller
 *           keeps a list of its own in step
 * Windows   AQ_MPI_WIN_JOB covers the segments of all ranks, AQ_MPI_WIN_PAIR a few bytes of two
 *           ranks, for measurement. Both allow access by all their ranks to all from open on
 * Threads   with the lock around MPI
 * Returns   0, or MPI's error code
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_RMA_H
#define AQ_MPI_LIB_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_MPI_FRAG_MAX ((size_t)1 << 30) /* bytes: most of one call, whose counts are an int's */

enum aq_mpi_win { AQ_MPI_WIN_JOB, AQ_MPI_WIN_PAIR, AQ_MPI_WINS };

/* Types and operations of accumulates. */
enum aq_mpi_type {
    AQ_MPI_I32,
    AQ_MPI_U32,
    AQ_MPI_I64,
    AQ_MPI_U64,
    AQ_MPI_FLT,
    AQ_MPI_DBL,
    AQ_MPI_TYPES
};
enum aq_mpi_op {
    AQ_MPI_SUM,
    AQ_MPI_PROD,
    AQ_MPI_MIN,
    AQ_MPI_MAX,
    AQ_MPI_BAND,
    AQ_MPI_BOR,
    AQ_MPI_BXOR,
    AQ_MPI_REPLACE,
    AQ_MPI_NO_OP,
    AQ_MPI_OPS
};

struct aq_mpi_lib_rma {
    /* Collective over the job: the communicator of send and receive. */
    int (*start)(void);
    /* Collective: *done_out once everybody has called it; until then to be called again. Does not
     * wait. */
    int (*ibarrier)(bool *done_out);
    /* Collective over the job, or over this rank and peer (and then *me_out is which of the two, 0
     * or 1, this one is): make a window of this rank's [base, base+size). *usable_out: it can be
     * used beside loads and stores. If not, or if MPI fails, there is none. */
    int (*open)(void *base, size_t size, bool *usable_out);
    int (*open_pair)(uint32_t peer, void *base, size_t size, bool *usable_out, uint32_t *me_out);
    /* Collective in the same way; nothing if there is none. */
    int (*close)(enum aq_mpi_win win);
    /* Collective over the job: undoes start(). */
    int (*stop)(void);

    /* Between here and the bytes at a distance from the beginning of rank's part; done after a
     * flush. */
    int (*put)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes);
    int (*get)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes);
    int (*flush)(enum aq_mpi_win win, uint32_t rank);

    /* With a request: of a put, and of an accumulate, it says that the local memory is free; of
     * others, that data is there. */
    int (*rput)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes);
    int (*rget)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes);
    /* The same, tested a few times at once: if *done_out, it is not in the list; a put is at the
     * target, too. */
    int (*rput_now)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes,
                    bool *done_out);
    int (*rget_now)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes,
                    bool *done_out);
    /* The word at that place becomes (word op *operand); *result what it was. */
    int (*fetch)(enum aq_mpi_win win, uint32_t rank, uint64_t at, enum aq_mpi_type type,
                 enum aq_mpi_op op, const void *operand, void *result);
    /* Messages on the transfers' own communicator. */
    int (*send)(uint32_t rank, int tag, const void *src, size_t nbytes);
    int (*recv)(uint32_t rank, int tag, void *dest, size_t nbytes);
    int (*test)(const unsigned **done_out,
                unsigned *count_out); /* the module's, until the next call */
};

#endif
