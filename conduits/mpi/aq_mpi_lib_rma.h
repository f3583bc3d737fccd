/*
 * aq_mpi_lib_rma.h - the MPI functions for transfers: windows, and messages on a communicator.
 *
 * Requests  a call that starts a request appends it to a list. The request's index is the list's
 *           length before. test() returns the indices of completed requests, in descending order;
 *           each is removed by moving the last of the list to its place, in the order returned. The
 *           caller keeps a list of its own in step
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

#define AQ_MPI_FRAG_MAX ((size_t)1 << 30) /* bytes of one call at most; MPI's counts are int */

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
    /* Collective and nonblocking: *done_out is true once all ranks have called it; call again until
     * then. */
    int (*ibarrier)(bool *done_out);
    /* Collective over the job, or over this rank and peer: makes a window of this rank's
     * [base, base+size). For a pair *me_out is this rank's index, 0 or 1. *usable_out: the window
     * works together with loads and stores. If not, or if MPI fails, there is no window. */
    int (*open)(void *base, size_t size, bool *usable_out);
    int (*open_pair)(uint32_t peer, void *base, size_t size, bool *usable_out, uint32_t *me_out);
    /* Collective over the same ranks; does nothing without a window. */
    int (*close)(enum aq_mpi_win win);
    /* Collective over the job: undoes start(). */
    int (*stop)(void);

    /* Transfers between local memory and rank's window at offset `at`; complete after a flush. */
    int (*put)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes);
    int (*get)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes);
    int (*flush)(enum aq_mpi_win win, uint32_t rank);

    /* With a request. For a put or an accumulate its completion says that the local memory is free,
     * for the others that the data has arrived. */
    int (*rput)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes);
    int (*rget)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes);
    /* The same, tested a few times at once. If *done_out, the request is not in the list; a put is
     * then complete at the target too. */
    int (*rput_now)(enum aq_mpi_win win, uint32_t rank, uint64_t at, const void *src, size_t nbytes,
                    bool *done_out);
    int (*rget_now)(enum aq_mpi_win win, uint32_t rank, uint64_t at, void *dest, size_t nbytes,
                    bool *done_out);
    /* The word at that offset becomes (word op *operand); *result is its old value. */
    int (*fetch)(enum aq_mpi_win win, uint32_t rank, uint64_t at, enum aq_mpi_type type,
                 enum aq_mpi_op op, const void *operand, void *result);
    /* Messages on the transfers' own communicator. */
    int (*send)(uint32_t rank, int tag, const void *src, size_t nbytes);
    int (*recv)(uint32_t rank, int tag, void *dest, size_t nbytes);
    int (*test)(const unsigned **done_out,
                unsigned *count_out); /* belongs to the module, valid until the next call */
};

#endif
