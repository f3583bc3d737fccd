/*
 * aq_mpi_rndv.h - large chunks of collectives, each by one MPI message into a posted receive.
 *
 * Threads   any, without the lock
 * Uses      core/aq_conduit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RNDV_H
#define AQ_MPI_RNDV_H

#include "core/aq_conduit.h"

/* The table's entries. */
uint32_t aq_mpi_rndv_recv(gex_Rank_t jobrank, void *dest, size_t nbytes, struct aq_rndv *rndv);
void aq_mpi_rndv_send(gex_Rank_t jobrank, uint32_t match_id, const void *src, size_t nbytes,
                      struct aq_rndv *rndv);

#endif
