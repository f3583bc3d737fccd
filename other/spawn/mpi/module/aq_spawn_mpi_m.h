/*
 * aq_spawn_mpi_m.h - what the MPI provider's half of the module offers to the conduit's half.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SPAWN_MPI_M_H
#define AQ_SPAWN_MPI_M_H

#include <mpi.h>

#include "other/spawn/mpi/aq_spawn_mpi_lib.h"

/* The job's communicator, for exchanges at start and end. */
struct aq_spawn_mpi_m {
    MPI_Comm comm; /* MPI_COMM_NULL before open and after close */
    int rank, size;
};
extern struct aq_spawn_mpi_m aq_spawn_mpi_m;

extern const struct aq_spawn_mpi_lib aq_spawn_mpi_m_lib;

/* Collective: a communicator of the job's ranks, whose errors are returned. Returns MPI's error
 * code. */
int aq_spawn_mpi_m_dup(MPI_Comm *comm_out);

#endif
