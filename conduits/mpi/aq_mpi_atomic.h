/*
 * aq_mpi_atomic.h - atomic domains by MPI's accumulate operations.
 *
 * Threads   any, without the lock
 * Uses      core/aq_conduit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_ATOMIC_H
#define AQ_MPI_ATOMIC_H

#include "core/aq_conduit.h"

/* The table's entries. */
bool aq_mpi_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
int aq_mpi_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);

#endif
