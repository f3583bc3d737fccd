/*
 * aq_mpi_am_in.h - receiving active messages.
 *
 * Threads   as each call says
 * Uses      aq_mpi_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_AM_IN_H
#define AQ_MPI_AM_IN_H

#include "conduits/mpi/aq_mpi_am.h"

#define AQ_MPI_BATCH 4u /* requests in a row for one look at MPI */

/* May this poll leave MPI out? The poll right after a request exists so that a rank that only sends
 * serves others too. Of the polls in a batch of requests one in AQ_MPI_BATCH is enough. A rank that
 * waits polls again, with no request in between. */
static inline bool aq_mpi_am_is_skipped(bool replies_only)
{
    struct aq_mpi_am_batch *batch = &aq_mpi_am_batch;
    const bool just_sent = batch->just_sent;

    batch->just_sent = false;
    return AQ_UNLIKELY(just_sent) && !replies_only && batch->sent < AQ_MPI_BATCH;
}

/* Any thread, without the lock: runs messages that have arrived. Returns how many. */
unsigned aq_mpi_am_poll(struct aq_mpi_am *am, bool replies_only);

/* With the lock. */

/* Is a send or a payload under way, or does a complete message wait to be run? */
bool aq_mpi_am_is_moving(const struct aq_mpi_am *am);
/* As the process leaves: receives and drops messages, and completes sends. True: none is under way.
 */
bool aq_mpi_am_drain(struct aq_mpi_am *am);

#endif
