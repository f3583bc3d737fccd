/*
 * group.h - the processes that a job is started over, see aqueduct.h.
 *
 * Source: Aqueduct's own. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_GROUP_H
#define GASNET_GROUP_H 1

#include <stddef.h>

/*
 * The processes of a job to be, and how they reach each other before there is one. The functions
 * are called by aqueduct_job_start() and aqueduct_job_end(), on their caller's thread, in the same
 * order on every process of the group.
 */
struct aqueduct_group {
    int rank, size; /* of this process; 0 <= rank < size */
    /* all[i * len ..] becomes process i's mine[0 .. len); len > 0, the same on every process.
     * 0: done */
    int (*allgather)(void *ctx, const void *mine, size_t len, void *all);
    /* returns once all have called. 0: done */
    int (*barrier)(void *ctx);
    /* End all processes of the group, because the job has failed: called at most once, on a thread
     * of the library's, while others may wait in the functions above. May return; the process then
     * ends by itself. NULL: whoever started the processes ends them when one has failed */
    void (*abort)(void *ctx, int code);
    void *ctx; /* for the functions; valid until the job has ended */
};

#endif
