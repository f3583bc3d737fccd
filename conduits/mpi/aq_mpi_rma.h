/*
 * aq_mpi_rma.h - put and get between ranks that share no memory.
 *
 * The parts, lowest first: aq_mpi_xfer.h (transfers under way), aq_mpi_path.h and aq_mpi_choose.h
 * (choice of the path), aq_mpi_window.h, aq_mpi_direct.h, aq_mpi_rndv.h and aq_mpi_atomic.h
 * (paths).
 *
 * Threads   as each call says
 * Uses      aq_mpi_path.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RMA_H
#define AQ_MPI_RMA_H

#include "conduits/mpi/aq_mpi_path.h"

/* Collective, at the end of the conduit's init, when messages work. AQ_OK or negative, logged. */
int aq_mpi_rma_init(void);
/* Collective, before MPI_Finalize, with the lock: frees windows and communicators. */
void aq_mpi_rma_fini(void);

/* The table's entries, for ranks that share no memory with this one. */
int aq_mpi_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_mpi_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);

/* Returns true if a transfer is under way, so that a poll must call MPI. Any thread, without the
 * lock. */
static inline bool aq_mpi_rma_busy(void)
{
    return aq_mpi_xfer_is_busy(&aq_mpi_rma.xfers);
}

/* With the lock: completes transfers, and runs no handler. Returns how many. */
unsigned aq_mpi_rma_poll(void);
/* The same at shutdown, where puts that wait for others leave first, as far as credit allows.
 * Returns true if no transfer is under way any more; puts in messages do not count. */
bool aq_mpi_rma_drain(void);

#endif
