/*
 * aq_mpi_coalesce.h - coalescing: small transfers with one peer share messages.
 *
 * Threads   as each call says
 * Uses      aq_mpi_attention.h, aq_mpi_puts.h, core/aq_op.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_COALESCE_H
#define AQ_MPI_COALESCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/aq_platform.h"
#include "conduits/mpi/aq_mpi_attention.h"
#include "conduits/mpi/aq_mpi_puts.h"
#include "core/aq_freelist.h"
#include "core/aq_op.h"

/* Batches to one peer that may be unanswered before further transfers wait for others. */
#define AQ_MPI_COALESCE_AT_ONCE 4u

struct aq_mpi_coalesce_peer;
struct aq_mpi_batch;

struct aq_mpi_coalesce {
    size_t max_put, max_get; /* bytes of the largest that is coalesced; 0: none is */
    struct aq_mpi_coalesce_peer *_Atomic *peers; /* [size], by jobrank; NULL: none was wanted yet */
    /* what changes, apart from what every transfer reads */
    _Alignas(AQ_CACHE_LINE) struct aq_mpi_coalesce_peer *listed; /* that may have an open batch */
    struct aq_mpi_batch *all;                                    /* that were allocated */
    atomic_bool pending;                                         /* the list is not empty */
    bool dropped;            /* aq_mpi_coalesce_drop() has dropped transfers */
    struct aq_freelist free; /* batches that are complete */
};
extern struct aq_mpi_coalesce aq_mpi_coalesce;

/* What a thread remembers between its transfers. */
struct aq_mpi_coalesce_pace {
    uint64_t polled_ns; /* when one last polled */
    unsigned count;     /* since then */
    bool keeps;         /* this poll is a transfer's: batches stay */
};
extern _Thread_local struct aq_mpi_coalesce_pace aq_mpi_coalesce_pace
    __attribute__((tls_model("initial-exec"))); /* avoids a call for each access */

/* Registers the handlers. Bytes of the largest put and get that are coalesced; 0: none is. AQ_OK or
 * negative, logged. */
int aq_mpi_coalesce_init(size_t max_put, size_t max_get);
/* The job has ended. */
void aq_mpi_coalesce_fini(void);

/* Returns true if a transfer is small enough. max: one of aq_mpi_coalesce; remote: the address at
 * the peer. Any thread. */
static inline bool aq_mpi_coalesce_fits(size_t max, const void *remote, size_t nbytes,
                                        gex_Flags_t flags)
{
    return nbytes - 1 < max && (flags & GEX_FLAG_IMMEDIATE) == 0 && aq_mpi_puts_can(remote, nbytes);
}

/* Returns true if the rank is likely to answer a message at once; see aq_mpi_attention.h. May poll.
 * Any thread, without the lock. */
bool aq_mpi_coalesce_is_attentive(gex_Rank_t jobrank);

/* Start a transfer for which aq_mpi_coalesce_fits() is true. src may be reused on return of a put.
 * May poll. Any thread, without the lock. */
void aq_mpi_coalesce_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes);
void aq_mpi_coalesce_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                         size_t nbytes);

/* Returns true if a batch may wait to be sent. Any thread. relaxed: a thread sees its own
 * transfers; those of another are that thread's to send, or for the next poll. */
static inline bool aq_mpi_coalesce_is_pending(void)
{
    return atomic_load_explicit(&aq_mpi_coalesce.pending, memory_order_relaxed);
}

/* With the lock: sends the batches that wait, as far as credit and buffers allow. */
void aq_mpi_coalesce_flush(void);
/* With the lock, at the end of the job: drops the batches that could not be sent. Nobody can wait
 * for their transfers any more. */
void aq_mpi_coalesce_drop(void);

#endif
