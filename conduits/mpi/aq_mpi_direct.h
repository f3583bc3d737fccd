/*
 * aq_mpi_direct.h - transfers between the buffers of two ranks by one MPI message.
 *
 * Threads   any, without the lock
 * Uses      aq_mpi_path.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_DIRECT_H
#define AQ_MPI_DIRECT_H

#include "conduits/mpi/aq_mpi_path.h"

#define AQ_MPI_DIRECT_TAGS    64u                      /* direct transfers of a rank at a time */
#define AQ_MPI_DIRECT_TAG_END (3 * AQ_MPI_DIRECT_TAGS) /* each has three MPI messages */

/* Registers the handlers. */
void aq_mpi_direct_init(void);
/* The table's put and get. */
int aq_mpi_direct_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags);
int aq_mpi_direct_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags);

#endif
