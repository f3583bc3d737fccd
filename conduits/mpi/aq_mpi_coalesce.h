/*
 * aq_mpi_coalesce.h - coalescing: small implicit puts to one peer share a message.
 *
 * Threads   as each call says
 * Uses      aq_mpi_puts.h, core/aq_op.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_COALESCE_H
#define AQ_MPI_COALESCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/aq_platform.h"
#include "conduits/mpi/aq_mpi_puts.h"
#include "core/aq_freelist.h"
#include "core/aq_op.h"

/* Batches to one peer that may be unanswered before further puts wait for others. */
#define AQ_MPI_COALESCE_AT_ONCE 4u

struct aq_mpi_coalesce_peer;
struct aq_mpi_batch;

struct aq_mpi_coalesce {
    size_t max;                         /* bytes of the largest put that is coalesced; 0: none is */
    struct aq_mpi_coalesce_peer *peers; /* [size], by jobrank */
    /* what changes, apart from what every put reads */
    _Alignas(AQ_CACHE_LINE) struct aq_mpi_coalesce_peer *listed; /* that may have an open batch */
    struct aq_mpi_batch *all;                                    /* that were allocated */
    atomic_bool pending;                                         /* the list is not empty */
    bool dropped;            /* aq_mpi_coalesce_drop() has dropped puts */
    struct aq_freelist free; /* batches that are complete */
};
extern struct aq_mpi_coalesce aq_mpi_coalesce;

/* What a thread remembers between its puts. */
struct aq_mpi_coalesce_pace {
    uint64_t polled_ns; /* when a put last polled */
    unsigned puts;      /* since then */
    bool keeps;         /* this poll is a put's: batches stay */
};
extern _Thread_local struct aq_mpi_coalesce_pace aq_mpi_coalesce_pace
    __attribute__((tls_model("initial-exec"))); /* avoids a call for each access */

/* Registers the handlers. max: bytes of the largest put that is coalesced; 0: none is. AQ_OK or
 * negative, logged. */
int aq_mpi_coalesce_init(size_t max);
/* The job has ended. */
void aq_mpi_coalesce_fini(void);

/* Returns true if a put may be coalesced: it is small, and nobody can wait for this put alone. Any
 * thread. */
static inline bool aq_mpi_coalesce_takes(const struct aq_op *op, const void *dest, size_t nbytes,
                                         gex_Flags_t flags)
{
    return nbytes - 1 < aq_mpi_coalesce.max && op->kind->counts_many
           && (flags & GEX_FLAG_IMMEDIATE) == 0 && aq_mpi_puts_can(dest, nbytes);
}

/* Starts a put for which aq_mpi_coalesce_takes() is true. src may be reused on return. May poll.
 * Any thread, without the lock. */
void aq_mpi_coalesce_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes);

/* Returns true if a batch may wait to be sent. Any thread. relaxed: a thread sees its own puts;
 * those of another are that thread's to send, or for the next poll. */
static inline bool aq_mpi_coalesce_is_pending(void)
{
    return atomic_load_explicit(&aq_mpi_coalesce.pending, memory_order_relaxed);
}

/* With the lock: sends the batches that wait, as far as credit and buffers allow. */
void aq_mpi_coalesce_flush(void);
/* With the lock, at the end of the job: drops the batches that could not be sent. Nobody can wait
 * for their puts any more. */
void aq_mpi_coalesce_drop(void);

#endif
