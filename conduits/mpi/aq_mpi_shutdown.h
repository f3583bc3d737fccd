/*
 * aq_mpi_shutdown.h - the conduit and the MPI provider share one MPI, up to MPI_Finalize.
 *
 * Threads   as each call says
 * Uses      other/spawn/mpi. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_SHUTDOWN_H
#define AQ_MPI_SHUTDOWN_H

#include <stdint.h>

#include "other/spawn/mpi/aq_spawn_mpi.h"

/* For the conduit's table: starts jobs by MPI and ends them. */
extern const struct aq_spawn_provider aq_mpi_spawn;
extern const struct aq_spawn_provider aq_mpi_spawn_group;

/** aq_mpi_shutdown_flush - makes progress for at most max_ns on what other ranks wait for. The
 * table's entry `exit`. */
void aq_mpi_shutdown_flush(uint64_t max_ns);

#endif
