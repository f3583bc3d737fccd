/*
 * group.h - the processes that a job is started over, see aqueduct.h.
 *
 * Source: Aqueduct's own. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_GROUP_H
#define GASNET_GROUP_H 1

#include <stddef.h>

/*
 * The processes of a future job, and how they exchange data before the job exists.
 * aqueduct_job_start() and aqueduct_job_end() call the functions, on their caller's thread, in the
 * same order on every process of the group.
 */
struct aqueduct_group {
    int rank, size; /* of this process; 0 <= rank < size */
    /* all[i * len ..] receives process i's mine[0 .. len); len > 0, the same on every process.
     * Returns 0 on success */
    int (*allgather)(void *ctx, const void *mine, size_t len, void *all);
    /* returns once all processes have called it; 0 on success */
    int (*barrier)(void *ctx);
    /* Ends all processes of the group, because the job has failed. Called at most once, on a thread
     * of the library, while others may wait in the functions above. May return; the process then
     * ends by itself. NULL: the launcher of the processes ends them when one has failed */
    void (*abort)(void *ctx, int code);
    void *ctx; /* first argument of the functions; valid until the job has ended */
    /* The address of the group's MPI_Comm, which stays valid until the job has ended. The mpi
     * conduit works on duplicates of it. NULL: there is none, and that conduit cannot be used */
    void *mpi_comm;
};

#endif
