/*
 * aq_mpi_rma.h - what the files of the mpi conduit's transfers share.
 *
 *   aq_mpi_rma.c         put and get: which way each goes; polls
 *   aq_mpi_rma_xfer.c    transfers on their way: requests, flushes, those that wait
 *   aq_mpi_rma_direct.c  transfers straight between two ranks' buffers, outside windows
 *   aq_mpi_atomic.c      atomic operations
 *   aq_mpi_window.c      attaching a segment
 *   aq_mpi_choose.c      which ways are open, and which is the fastest
 *
 * Depends on aq_mpi.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RMA_H
#define AQ_MPI_RMA_H

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_lib_rma.h"

enum aq_mpi_xfer_type {
    AQ_MPI_X_PUT,   /* into a window */
    AQ_MPI_X_GET,   /* out of one */
    AQ_MPI_X_FETCH, /* atomic operation in one */
    AQ_MPI_X_SEND,  /* direct: a put's data leaves, */
    AQ_MPI_X_ACK,   /* and has arrived */
    AQ_MPI_X_RECV,  /* direct: a get's data comes */
    AQ_MPI_X_TAKE,  /* direct, for a peer: its put's data comes, */
    AQ_MPI_X_THANK, /* it hears that it has */
    AQ_MPI_X_GIVE   /* direct, for a peer: its get's data leaves */
};

/* An atomic operation as MPI has it. */
struct aq_mpi_atomic {
    void *result_p;   /* NULL: not wanted */
    uint64_t operand; /* in the low bytes' place of memory, as result */
    uint64_t result;
    uint8_t type, op; /* enum aq_mpi_type, aq_mpi_op */
    uint8_t category; /* a gex_EC_t */
    uint8_t size;
};

/* A piece of a transfer, from its start to its end. */
struct aq_mpi_xfer {
    struct aq_mpi_xfer *next;
    struct aq_op *op;
    char *here;            /* this process's memory */
    uint64_t there;        /* windows: distance from the beginning of the peer's segment */
    size_t nbytes;
    void *copy;            /* what is sent if the source had to be free at once, or NULL */
    atomic_bool *left_out; /* or: who waits in the call that started it sees it set; NULL */
    uint64_t born;         /* settled ones: starts before it */
    gex_Rank_t rank;
    uint16_t tag;          /* direct: of their messages */
    uint8_t type;          /* enum aq_mpi_xfer_type */
    bool counts_lc;        /* the operation counts its local completion */
    struct aq_mpi_atomic atomic;
    char tiny[64];         /* room for copies that small */
};

/* Which way transfers go; the same during the whole job once segments are attached. */
struct aq_mpi_paths {
    bool window;     /* there is one */
    bool one_sided;  /* it moves data whatever the target does, so that a flush is short */
    uint64_t put;    /* bit i: puts of 2^i and more bytes, up to twice that, go by the window */
    uint64_t get;
    size_t direct;   /* bytes from which what is not for the window goes directly */
    bool atomics;    /* domains that can use it use the window */
};

struct aq_mpi_rma {
    const struct aq_mpi_lib_rma *lib;
    struct aq_mpi_paths paths;
    aq_counter busy; /* pieces on their way */
};
extern struct aq_mpi_rma aq_mpi_rma;

/* --- aq_mpi_rma_xfer.c; all inside aq_mpi_enter() --- */

int aq_mpi_xfer_init(void);
/* A piece to fill in; ends the job if memory is out. Its start counts it as busy. */
struct aq_mpi_xfer *aq_mpi_xfer_new(void);
/* Start it now, or when there is room; the engine's from here on. */
void aq_mpi_xfer_start(struct aq_mpi_xfer *xfer);
/* A small put or get of a one-sided window without a request: complete after the next flush. */
void aq_mpi_xfer_post(struct aq_mpi_xfer *xfer);
/* One whose request is in the module's list already. */
void aq_mpi_xfer_adopt(struct aq_mpi_xfer *xfer);
/* So many wait already that the caller should, too. */
bool aq_mpi_xfer_is_full(void);
/* Would one to this rank start at once? */
bool aq_mpi_xfer_has_room(gex_Rank_t rank);
/* And would a flush to it wait for that one only? */
bool aq_mpi_xfer_is_alone(gex_Rank_t rank);
unsigned aq_mpi_xfer_poll(void);

/* --- aq_mpi_rma_direct.c --- */

void aq_mpi_direct_init(void);
/* As the table's put and get. */
int aq_mpi_direct_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes, bool lc_now,
                      gex_Flags_t flags);
int aq_mpi_direct_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
                      gex_Flags_t flags);
/* The transfer that used it is over. */
void aq_mpi_direct_give_tag(uint16_t tag);

/* --- aq_mpi_rma.c --- */

/* Enter with room for a transfer with this rank, or AQ_RETRY with IMMEDIATE. */
int aq_mpi_xfer_enter(gex_Rank_t rank, gex_Flags_t flags);

/* --- aq_mpi_choose.c --- */

/* No window: messages, and directly. */
void aq_mpi_choose_none(struct aq_mpi_paths *paths);
/* May segments have a window at all? */
bool aq_mpi_choose_wants_window(void);
/* Collective, with the job's window open or not: fills aq_mpi_rma.paths. AQ_OK or negative, logged. */
int aq_mpi_choose(bool window);

static inline bool aq_mpi_paths_say_window(uint64_t sizes, size_t nbytes)
{
    return (sizes >> (63 - __builtin_clzll(nbytes | 1)) & 1) != 0;
}

static inline void aq_mpi_check(int error, const char *what)
{
    if (AQ_UNLIKELY(error != 0))
        aq_mpi_fatal(error, what);
}

#endif
