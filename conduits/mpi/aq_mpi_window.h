/*
 * aq_mpi_window.h - put and get by MPI's one-sided calls, into the segment of the peer.
 *
 * Threads   any, without the lock
 * Uses      aq_mpi_path.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_WINDOW_H
#define AQ_MPI_WINDOW_H

#include "conduits/mpi/aq_mpi_path.h"

/* bytes: a transfer up to this size completes in the call or is copied; a longer one is waited
 * for */
#define AQ_MPI_SHORT ((size_t)32768)

/* The table's put and get. The remote memory lies in the peer's segment. */
int aq_mpi_window_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags);
int aq_mpi_window_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags);

/* Puts a payload, complete on return. Returns false, and has done nothing, if the window is not
 * one-sided or does not cover the destination, or if a flush would wait for other operations. With
 * the lock. */
bool aq_mpi_window_place(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes);

#endif
