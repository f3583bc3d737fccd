/*
 * aq_mpi_am_out.h - sending active messages.
 *
 * Threads   as each call says
 * Uses      aq_mpi_am.h, core/aq_conduit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_AM_OUT_H
#define AQ_MPI_AM_OUT_H

#include "conduits/mpi/aq_mpi_am.h"
#include "core/aq_conduit.h"

/* The table's entries am_short and am_send. Any thread, without the lock. */
int aq_mpi_am_short(struct aq_mpi_am *am, gex_Rank_t jobrank, bool is_reply, uint8_t handler,
                    unsigned nargs, const gex_AM_Arg_t *args);
int aq_mpi_am_send(struct aq_mpi_am *am, const struct aq_am_out *out);

/* The next three are called with the lock. */

/* Sends a medium request of up to AQ_MPI_INLINE bytes whose payload is in its packet, at
 * aq_mpi_packet_payload(). out->src is not read. AQ_OK, and the packet is the conduit's; or
 * AQ_RETRY. */
int aq_mpi_am_send_filled(struct aq_mpi_am *am, const struct aq_am_out *out,
                          struct aq_mpi_buf *packet);

/* Sends a credit message. */
void aq_mpi_am_send_credit(struct aq_mpi_am *am, gex_Rank_t jobrank);
/* Asks MPI what has completed: frees buffers, and appends messages whose payload has arrived to
 * am->ready. Returns false if nothing has completed. */
bool aq_mpi_am_reclaim(struct aq_mpi_am *am);

#endif
