/*
 * aq_mpi_am_in.h - receiving active messages.
 *
 * Threads   as each call says
 * Uses      aq_mpi_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_AM_IN_H
#define AQ_MPI_AM_IN_H

#include "conduits/mpi/aq_mpi_am.h"

#define AQ_MPI_BATCH 4u /* requests in a row for each poll of MPI */

/* Returns true if this poll may leave MPI out. The poll that follows each request exists so that a
 * rank that only sends still serves others; during a batch of requests one in AQ_MPI_BATCH is
 * enough. A rank that waits polls again without a request in between, and then polls MPI. */
static inline bool aq_mpi_am_is_skipped(enum aq_poll_kind kind)
{
    struct aq_mpi_am_batch *batch = &aq_mpi_am_batch;
    const bool just_sent = batch->just_sent;

    batch->just_sent = false;
    return AQ_UNLIKELY(just_sent) && kind == AQ_POLL_OF_SEND && batch->sent < AQ_MPI_BATCH;
}

/* Runs messages that have arrived. Returns how many. Any thread, without the lock. hurried:
 * transfers are under way, which the caller tests next, so each channel is tested once only. */
unsigned aq_mpi_am_poll(struct aq_mpi_am *am, bool replies_only, bool hurried);

/* The next two are called with the lock. */

/* Returns true if a send or a payload is under way, or a complete message waits for its handler. */
bool aq_mpi_am_is_moving(const struct aq_mpi_am *am);
/* Called at shutdown: receives and drops messages, and completes sends. Returns true if no send is
 * under way. */
bool aq_mpi_am_drain(struct aq_mpi_am *am);

#endif
