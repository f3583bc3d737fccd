/*
 * aq_mpi_xfer.h - outstanding transfers: requests, flushes, and transfers that wait for either.
 *
 * The users of this engine (window, direct, rendezvous, atomic) fill in a struct aq_mpi_xfer and
 * start it; polls complete it.
 *
 * Threads   with the lock around MPI, except as stated
 * Uses      aq_mpi_lib_rma.h, core/aq_op.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_XFER_H
#define AQ_MPI_XFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_lock.h"
#include "conduits/mpi/aq_mpi_lib_rma.h"
#include "core/aq_op.h"
#include "gasnetex.h"

enum aq_mpi_xfer_type {
    AQ_MPI_X_PUT,   /* into the window */
    AQ_MPI_X_GET,   /* out of the window */
    AQ_MPI_X_FETCH, /* atomic operation in the window */
    AQ_MPI_X_SEND,  /* MPI message to rank */
    AQ_MPI_X_RECV   /* MPI message from rank */
};

/* An atomic operation in MPI's terms. */
struct aq_mpi_atomic {
    void *result_p;   /* NULL: the old value is not wanted */
    uint64_t operand; /* in the first bytes, as in memory; likewise the result */
    uint64_t result;
    uint8_t type, op; /* enum aq_mpi_type, aq_mpi_op */
    uint8_t category; /* a gex_EC_t */
    uint8_t size;
};

/* One MPI operation, from its start to its completion. */
struct aq_mpi_xfer {
    struct aq_mpi_xfer *next;
    /* Called when the operation is complete; returns true if the callback has started the struct
     * again (aq_mpi_xfer_restart). May be NULL. It is NULL for window operations, which complete
     * `op`. */
    bool (*ended)(struct aq_mpi_xfer *xfer);
    union {
        struct aq_op *op;
        struct aq_rndv *rndv; /* of a chunk of a collective */
    };
    char *local;     /* this process's memory */
    uint64_t remote; /* windows: offset in rank's segment */
    size_t nbytes;
    void *copy;            /* the copy of the source that MPI reads, or NULL */
    atomic_bool *left_out; /* set when the source may be reused, for a caller that waits; or NULL */
    uint64_t born;         /* settled puts: transfers started before this one */
    gex_Rank_t rank;
    uint16_t tag;     /* of an MPI message */
    uint8_t type;     /* enum aq_mpi_xfer_type */
    bool counts_lc;   /* op counts its local completion */
    bool needs_polls; /* completes only while its target polls MPI */
    struct aq_mpi_atomic atomic;
    char tiny[64]; /* space for a copy of few bytes */
};

struct aq_mpi_xfer_list {
    struct aq_mpi_xfer *first, **last;
    unsigned length;
};

struct aq_mpi_xfers {
    const struct aq_mpi_lib_rma *lib;
    aq_counter busy;                     /* transfers under way; read without the lock */
    struct aq_mpi_xfer **active, **done; /* [capacity]: with a request; completed in this poll */
    unsigned count, capacity;
    unsigned windows; /* active ones that use the window */
    struct aq_mpi_xfer_list settled, queue;
    struct aq_mpi_xfer *free, *blocks; /* blocks: what was allocated */
    uint32_t *outstanding;             /* [size]: window requests to that rank */
    uint64_t starts;
};

/* size: number of ranks. AQ_OK or negative, logged. */
int aq_mpi_xfer_init(struct aq_mpi_xfers *xs, const struct aq_mpi_lib_rma *lib, gex_Rank_t size);
/* The job has ended, and no transfer is under way: frees all. */
void aq_mpi_xfer_fini(struct aq_mpi_xfers *xs);

/* Waits until a transfer with rank may start, and takes the lock. With IMMEDIATE returns AQ_RETRY
 * if it would have to wait. Any thread, without the lock. */
int aq_mpi_xfer_lock(struct aq_mpi_xfers *xs, gex_Rank_t rank, gex_Flags_t flags);

/* Returns true if a transfer is under way. Any thread. */
static inline bool aq_mpi_xfer_is_busy(const struct aq_mpi_xfers *xs)
{
    return aq_counter_get(&xs->busy) != 0;
}

/* Returns a transfer to fill in; without memory the job ends. It is not counted as busy before it
 * starts. */
struct aq_mpi_xfer *aq_mpi_xfer_new(struct aq_mpi_xfers *xs);
/* Starts the transfer now, or later if it uses a window for which others wait. */
void aq_mpi_xfer_start(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer);
/* For `ended` only: starts the next step of the same transfer. */
void aq_mpi_xfer_restart(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer);
/* Starts a small put or get by a one-sided window, without a request: the next flush completes it.
 */
void aq_mpi_xfer_post(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer);
/* Takes over a transfer whose request is the last of the module's list. */
void aq_mpi_xfer_adopt(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer);
/* True if a transfer to rank would start at once. */
bool aq_mpi_xfer_has_space(const struct aq_mpi_xfers *xs, gex_Rank_t rank);
/* Returns true if, in addition, a flush of rank would wait for that transfer only. */
bool aq_mpi_xfer_is_alone(const struct aq_mpi_xfers *xs, gex_Rank_t rank);
/* Completes transfers; returns how many. */
unsigned aq_mpi_xfer_poll(struct aq_mpi_xfers *xs);

#endif
