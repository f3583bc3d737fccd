/*
 * aq_mpi_lib.h - the tables of MPI functions that the module fills in.
 *
 * The module (module/, other/spawn/mpi/module/) is the only code that includes mpi.h, whose types
 * differ between MPIs. In the tables MPI's handles are numbers and opaque pointers, and one call
 * does as much as possible, so that the call through the table costs little.
 *
 * Threads   as each table says
 * Uses      aq_spawn_mpi_lib.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_H
#define AQ_MPI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "other/spawn/mpi/aq_spawn_mpi_lib.h"

struct aq_mpi_lib_am;  /* aq_mpi_lib_am.h: messages */
struct aq_mpi_lib_rma; /* aq_mpi_lib_rma.h: windows */

#define AQ_MPI_LIB_VERSION 3u /* changes with the table */

struct aq_mpi_lib {
    uint32_t version;                   /* AQ_MPI_LIB_VERSION */
    const struct aq_spawn_mpi_lib *job; /* start and end */
    const struct aq_mpi_lib_am *am;     /* [AQ_MPI_RECEIVERS] */
    const struct aq_mpi_lib_rma *rma;
};

#endif
