/*
 * aq_mpi_choose.h - chooses the way of transfers, by measurement and by the client's settings.
 *
 * Threads   one, at start; none: also at the end, with the lock
 * Uses      aq_mpi_path.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_CHOOSE_H
#define AQ_MPI_CHOOSE_H

#include <stdbool.h>

/* No window: transfers use messages, and go directly. */
void aq_mpi_choose_none(void);
/* True if a window over the segments is to be made. */
bool aq_mpi_choose_needs_window(void);
/* Collective. window: it has been made. Fills in aq_mpi_rma; AQ_OK or negative, logged. */
int aq_mpi_choose(bool window);

#endif
