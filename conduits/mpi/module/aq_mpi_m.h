/*
 * aq_mpi_m.h - what the files of the module share. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_M_H
#define AQ_MPI_M_H

#include <mpi.h>

#include "conduits/mpi/aq_mpi_lib.h"
#include "conduits/mpi/aq_mpi_lib_am.h"
#include "other/spawn/mpi/module/aq_spawn_mpi_m.h"

extern const struct aq_mpi_lib_am aq_mpi_m_am[AQ_MPI_RECEIVERS];
extern const struct aq_mpi_lib_rma aq_mpi_m_rma;

/* Returns the error of a call for several requests; the error of one of them says more than the
 * call's. */
static inline int aq_mpi_m_error_of(int error, const MPI_Status *statuses, int count)
{
    for (int i = 0; error == MPI_ERR_IN_STATUS && i < count; i++)
        if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING)
            error = statuses[i].MPI_ERROR;
    return error;
}

#endif
