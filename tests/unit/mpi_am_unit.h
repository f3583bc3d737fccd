/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_am_unit.h - for unit tests of either half of the mpi conduit's messages: its state over an
 * MPI that a test supplies, in a job of two ranks.
 *
 * Uses      conduits/mpi/aq_mpi_am_out.h, conduits/mpi/aq_mpi_lock.h
 */
#ifndef MPI_AM_UNIT_H
#define MPI_AM_UNIT_H

#include <string.h>

#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"

/* Messages begin anew, with a window of credit for each of the two peers. */
static inline void mpi_am_start(const struct aq_mpi_lib_am *lib_am, const struct aq_mpi_lib *lib,
                                struct aq_mpi_peer peers[2], uint32_t window)
{
    memset(peers, 0, 2 * sizeof(*peers));
    for (unsigned rank = 0; rank < 2; rank++)
        aq_mpi_credit_open(&peers[rank], window);
    if (aq_mpi_am.reserve != NULL)
        aq_mpi_buf_give(aq_mpi_am.reserve);
    memset(&aq_mpi_am, 0, sizeof(aq_mpi_am));
    aq_mpi_am.lib = lib_am;
    aq_mpi_am.peers = peers;
    aq_mpi_am.window = window;
    aq_mpi.lib = lib;
    aq_job.rank = 0;
    aq_job.size = 2;
}

#endif
