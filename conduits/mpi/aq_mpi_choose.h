/*
 * aq_mpi_choose.h - chooses the path of transfers, by measurement and by the client's settings.
 *
 * Threads   one, at start; aq_mpi_choose_none(): also at shutdown, with the lock
 * Uses      aq_mpi_path.h, aq_mpi_measure.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_CHOOSE_H
#define AQ_MPI_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "conduits/mpi/aq_mpi_measure.h"
#include "conduits/mpi/aq_mpi_path.h"

/* Without a window, transfers use messages or the direct path, and payloads are split if the user
 * says so. */
void aq_mpi_choose_none(void);
/* Returns true if a window over the segments is to be made. */
bool aq_mpi_choose_needs_window(void);
/* Return the size of the largest put and get that is to share a message, which may be 0. */
size_t aq_mpi_choose_coalesced_put(void);
size_t aq_mpi_choose_coalesced_get(void);
/* Returns the size of packets, in bytes, above which they are split, by the measurement; 0: none
 * is. */
size_t aq_mpi_choose_split(const struct aq_mpi_latency *min);
/* Writes what follows for a class of pairs from the measurement. */
void aq_mpi_choose_paths(const struct aq_mpi_cost *cost, struct aq_mpi_paths *paths);
/* Collective. window: the window exists. Fills in aq_mpi_rma. AQ_OK or negative, logged. */
int aq_mpi_choose(bool window);

#endif
