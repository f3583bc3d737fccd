/*
 * world.h - the processes that the tests of aqueduct.h make groups of: forked ones that share a
 * piece of memory, or with TEST_MPI those of MPI_COMM_WORLD. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef WORLD_H
#define WORLD_H

#ifdef TEST_MPI
#include <mpi.h>
#endif

#include "aqueduct.h"
#include "aqueduct_mpi.h"

extern int world_rank, world_size;

/** world_start - make the processes (argument 1 of main: how many, if they are forked). */
void world_start(int *argc, char ***argv);

/** world_end - wait for all; the exit status of the program is not 0 if one of them fails. */
int world_end(int status);

/** world_conduit_is_right - 1 if aqueduct_job_conduit() names the running job's conduit; without a
 * job, that of the environment, in any case of letters. */
int world_conduit_is_right(void);

/** world_barrier - outside of any job. */
void world_barrier(void);

/**
 * world_split - collective over the world: the processes of one color, by rank or from the last to
 * the first, are a group; color -1: in none.
 */
void world_split(int color, int reversed, struct aqueduct_group *group_out);

/** world_join - collective over the world, with the group of this process: it is used no more. */
void world_join(struct aqueduct_group *group);

#endif
