/*
 * aq_mpi_path.h - the paths that transfers use, and the state that all paths share.
 *
 * Owns      aq_mpi_rma, which aq_mpi_choose.c fills in
 * Threads   written when segments are attached, and at shutdown
 * Uses      aq_mpi_xfer.h, aq_mpi_pairs.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_PATH_H
#define AQ_MPI_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_pairs.h"
#include "conduits/mpi/aq_mpi_xfer.h"
#include "core/aq_job.h"

/* The paths of a class of pairs. They do not change once segments are attached. */
struct aq_mpi_paths {
    /* Transfers by the window complete whatever the target does, so that a flush is short. */
    bool one_sided;
    bool slow;       /* a message and its answer are faster than the shortest of them */
    size_t put_from; /* bytes from which puts use the window; AQ_MPI_NEVER */
    size_t get_from;
    /* bytes from which transfers without a window use the direct path */
    size_t direct_put, direct_get;
};

#define AQ_MPI_NEVER SIZE_MAX

struct aq_mpi_rma {
    const struct aq_mpi_lib_rma *lib; /* NULL: no rank outside shared memory */
    struct aq_mpi_paths paths[AQ_MPI_CLASSES];
    bool window;             /* the segments have a window */
    bool asks;               /* peers that pay attention get messages instead (aq_mpi_rma.c) */
    bool atomics;            /* atomic domains use it where they can */
    bool atomics_need_polls; /* of their targets: the user has forced them */
    struct aq_mpi_xfers xfers;
};
extern struct aq_mpi_rma aq_mpi_rma;

static inline const struct aq_mpi_paths *aq_mpi_paths_to(gex_Rank_t rank)
{
    return &aq_mpi_rma.paths[aq_mpi_class_of(aq_job.host_of, aq_job.rank, rank)];
}

#endif
