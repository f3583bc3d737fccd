/*
 * aq_mpi_lib.h - what the mpi conduit asks of an MPI library: a table that the module fills in.
 *
 * The module (module/) is the only code that sees mpi.h, whose types differ from one MPI to the
 * next. Here its handles are numbers and opaque pointers; a call does as much as can be said in
 * one, so that the way through the table costs little.
 *
 * Threads   as each group says; what thread level the MPI gives is aq_mpi_lib_job's to tell
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_H
#define AQ_MPI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "other/spawn/mpi/aq_spawn_mpi_lib.h"

struct aq_mpi_lib_am;  /* aq_mpi_lib_am.h: messages */
struct aq_mpi_lib_rma; /* aq_mpi_lib_rma.h: windows */

#define AQ_MPI_LIB_VERSION 2u /* changes with the table */

struct aq_mpi_lib {
    uint32_t version;                   /* AQ_MPI_LIB_VERSION */
    const struct aq_spawn_mpi_lib *job; /* start and end */
    const struct aq_mpi_lib_am *am;     /* [AQ_MPI_RECEIVERS] */
    const struct aq_mpi_lib_rma *rma;
};

#endif
