/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_mpi_info.c - what the mpi conduit says about itself.
 */
#include "base/aq_conduit_info.h"

extern const struct aq_conduit_info aq_mpi_info;
const struct aq_conduit_info aq_mpi_info = {
    .name = "mpi",
    .about = "any MPI-3 library: messages over point-to-point, transfers over windows",
    .spawner = AQ_SPAWNER_MPI,
    .why_not_spawned =
        "whose ranks find each other through MPI; use -spawner=mpi (MPIRUN_CMD), the "
        "default, or -spawner=pmi (PMIRUN_CMD)",
    .encodes_env = true,
    .names_mpirun = true,
};
