/*
 * aq_mpi_rma.h - what the files of the mpi conduit's transfers share.
 *
 *   aq_mpi_rma.c         put and get: which way each goes; polls
 *   aq_mpi_rma_xfer.c    transfers on their way: requests, flushes, those that wait
 *   aq_mpi_rma_direct.c  transfers straight between two ranks' buffers, outside windows
 *   aq_mpi_rndv.c        large parts of collectives, in the same way
 *   aq_mpi_atomic.c      atomic operations
 *   aq_mpi_window.c      attaching a segment
 *   aq_mpi_choose.c      which ways are open, and which is the fastest
 *   aq_mpi_measure.h     what two ranks find out about that
 *   aq_mpi_pairs.h       which two: classes of pairs
 *
 * Depends on aq_mpi.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RMA_H
#define AQ_MPI_RMA_H

#include "conduits/mpi/aq_mpi.h"
#include "conduits/mpi/aq_mpi_lib_rma.h"
#include "conduits/mpi/aq_mpi_pairs.h"
#include "core/aq_job.h"

#define AQ_MPI_DIRECT_TAGS 64u /* direct transfers of a rank's at a time */
#define AQ_MPI_RNDV_TAGS \
    256u /* receives for parts of collectives that a rank has posted at a time */
#define AQ_MPI_RNDV_TAG_BASE  512u                     /* of the first of them */
#define AQ_MPI_DIRECT_TAG_END (3 * AQ_MPI_DIRECT_TAGS) /* three kinds of messages belong to each */

#define AQ_MPI_NO_TAG UINT16_MAX

/* The lowest of so many tags (a multiple of 64) whose bit in used is not set, which it is then;
 * AQ_MPI_NO_TAG if there is none. Inside aq_mpi_lock(), as all that looks at such bits. */
static inline uint16_t aq_mpi_tag_take(uint64_t used[], unsigned tags)
{
    for (unsigned i = 0; i < tags / 64; i++)
        if (used[i] != UINT64_MAX) {
            const unsigned bit = (unsigned)__builtin_ctzll(~used[i]);

            used[i] |= UINT64_C(1) << bit;
            return (uint16_t)(64 * i + bit);
        }
    return AQ_MPI_NO_TAG;
}

static inline void aq_mpi_tag_give(uint64_t used[], uint16_t tag)
{
    used[tag / 64] &= ~(UINT64_C(1) << tag % 64);
}

enum aq_mpi_xfer_type {
    AQ_MPI_X_PUT,       /* into a window */
    AQ_MPI_X_GET,       /* out of one */
    AQ_MPI_X_FETCH,     /* atomic operation in one */
    AQ_MPI_X_SEND,      /* direct: a put's data leaves, */
    AQ_MPI_X_ACK,       /* and has arrived */
    AQ_MPI_X_RECV,      /* direct: a get's data comes */
    AQ_MPI_X_SERVE_PUT, /* direct, for a peer: its put's data comes, */
    AQ_MPI_X_SERVE_ACK, /* it hears that it has */
    AQ_MPI_X_SERVE_GET, /* direct, for a peer: its get's data leaves */
    AQ_MPI_X_RNDV_RECV, /* of a collective: its data comes, */
    AQ_MPI_X_RNDV_SEND  /* and leaves */
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
    union {
        struct aq_op *op;
        struct aq_rndv *rndv; /* of a collective */
    };
    char *local;     /* this process's memory */
    uint64_t remote; /* windows: distance from the beginning of the peer's segment */
    size_t nbytes;
    void *copy;            /* what is sent if the source had to be free at once, or NULL */
    atomic_bool *left_out; /* or: who waits in the call that started it sees it set; NULL */
    uint64_t born;         /* settled ones: starts before it */
    gex_Rank_t rank;
    uint16_t tag;   /* direct: of their messages */
    uint8_t type;   /* enum aq_mpi_xfer_type */
    bool counts_lc; /* the operation counts its local completion */
    struct aq_mpi_atomic atomic;
    char tiny[64]; /* room for copies that small */
};

/* Which way transfers of a class of pairs go; the same during the whole job once segments are
 * attached. */
struct aq_mpi_paths {
    bool one_sided; /* the window moves data whatever the target does, so that a flush is short */
    uint64_t put;   /* bit i: puts of 2^i and more bytes, up to twice that, go by the window */
    uint64_t get;
    size_t direct; /* bytes from which what is not for the window goes directly */
};

struct aq_mpi_rma {
    const struct aq_mpi_lib_rma *lib;
    struct aq_mpi_paths paths[AQ_MPI_CLASSES];
    bool window;     /* there is one */
    bool atomics;    /* domains that can use it use it */
    aq_counter busy; /* pieces on their way */
};
extern struct aq_mpi_rma aq_mpi_rma;

/* --- aq_mpi_rma_xfer.c; all inside aq_mpi_lock() --- */

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
bool aq_mpi_xfer_has_space(gex_Rank_t rank);
/* And would a flush to it wait for that one only? */
bool aq_mpi_xfer_is_alone(gex_Rank_t rank);
unsigned aq_mpi_xfer_poll(void);

/* --- aq_mpi_rma_direct.c --- */

void aq_mpi_direct_init(void);
/* As the table's put and get. */
int aq_mpi_direct_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags);
int aq_mpi_direct_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags);
/* The transfer that used it is over. */
void aq_mpi_direct_give_tag(uint16_t tag);

/* --- aq_mpi_rndv.c --- */

/* As the table's entries. */
uint32_t aq_mpi_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv);
void aq_mpi_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv);
/* It is over. */
void aq_mpi_rndv_end(const struct aq_mpi_xfer *xfer);

/* --- aq_mpi_rma.c --- */

/* Enter with room for a transfer with this rank, or AQ_RETRY with IMMEDIATE. */
int aq_mpi_xfer_lock(gex_Rank_t rank, gex_Flags_t flags);

/* --- aq_mpi_choose.c --- */

/* No window: messages, and directly. */
void aq_mpi_choose_none(void);
/* May segments have a window at all? */
bool aq_mpi_choose_needs_window(void);
/* Collective, with the job's window open or not: fills in aq_mpi_rma. AQ_OK or negative, logged. */
int aq_mpi_choose(bool window);

static inline const struct aq_mpi_paths *aq_mpi_paths_to(gex_Rank_t rank)
{
    return &aq_mpi_rma
                .paths[aq_job.host_of[rank] == aq_job.host_of[aq_job.rank] ? AQ_MPI_SAME_HOST
                                                                           : AQ_MPI_OTHER_HOST];
}

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
