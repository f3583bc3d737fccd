/*
 * aq_mpi_m.c - the module's table of MPI functions, and the command that starts jobs of this MPI.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/module/aq_mpi_m.h"

#define AQ_MPI_M_TEXT(x) #x
#define AQ_MPI_M_WORD(x) AQ_MPI_M_TEXT(x)

/* gasnetrun looks for this text in the module's file. */
static const char aq_mpi_m_mpirun[] __attribute__((used)) =
    "$AqueductMpirun: " AQ_MPIRUN
    " $\0$MPIVersion: " AQ_MPI_M_WORD(MPI_VERSION) "." AQ_MPI_M_WORD(MPI_SUBVERSION) " $";

extern const struct aq_mpi_lib aq_mpi_lib;
const struct aq_mpi_lib aq_mpi_lib __attribute__((visibility("default"))) = {
    .version = AQ_MPI_LIB_VERSION,
    .job = &aq_spawn_mpi_m_lib,
    .am = aq_mpi_m_am,
    .rma = &aq_mpi_m_rma,
};
