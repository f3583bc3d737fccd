/*
 * aqueduct_mpi.h - a group for aqueduct.h made of an MPI communicator. A program includes <mpi.h>
 * first, of any MPI; without it this header declares nothing.
 *
 *     MPI_Comm comm;                         valid until the job has ended
 *     struct aqueduct_group group;
 *
 *     MPI_Comm_dup(half_of_the_world, &comm);
 *     aqueduct_mpi_group(&comm, &group);
 *     aqueduct_job_start(&group, NULL, &client, &ep, &tm, "example", 0);
 *
 * The library uses the communicator only during aqueduct_job_start() and aqueduct_job_end(), on the
 * thread that calls them, so any MPI thread level is sufficient. The mpi conduit duplicates the
 * communicator and needs the level that GASNET_MPI_THREAD names.
 *
 * Source: Aqueduct's own; docs/aqueduct-h.md. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aqueduct.h"

#if !defined(AQUEDUCT_MPI_H) && defined(MPI_VERSION)
#define AQUEDUCT_MPI_H 1

static inline AQ_UNUSED int aqueduct_mpi_allgather(void *ctx, const void *mine, size_t len,
                                                   void *all)
{
    MPI_Comm comm = *(MPI_Comm *)ctx;

    return MPI_Allgather((void *)(uintptr_t)mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, comm)
           != MPI_SUCCESS;
}

static inline AQ_UNUSED int aqueduct_mpi_barrier(void *ctx)
{
    return MPI_Barrier(*(MPI_Comm *)ctx) != MPI_SUCCESS;
}

static inline AQ_UNUSED void aqueduct_mpi_abort(void *ctx, int code)
{
    MPI_Abort(*(MPI_Comm *)ctx, code);
}

/**
 * aqueduct_mpi_group - describe a communicator as a group.
 * comm       an intracommunicator of the program, preferably a duplicate. The variable comm points
 *            to stays where it is, and the communicator is not freed, until the job has ended
 * group_out  for aqueduct_job_start()
 * Context    MPI has been started; not collective
 * Errors     those of MPI, as the communicator's error handler says
 * Test: tests/restart.
 */
static inline AQ_UNUSED void aqueduct_mpi_group(MPI_Comm *comm, struct aqueduct_group *group_out)
{
    MPI_Comm_rank(*comm, &group_out->rank);
    MPI_Comm_size(*comm, &group_out->size);
    group_out->allgather = aqueduct_mpi_allgather;
    group_out->barrier = aqueduct_mpi_barrier;
    group_out->abort = aqueduct_mpi_abort;
    group_out->ctx = comm;
    group_out->mpi_comm = comm;
}

#endif
