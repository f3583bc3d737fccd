/*
 * aq_spawn_mpi_internal.h - what the files of the MPI provider share, lowest first.
 *
 *   aq_spawn_mpi_launcher.c   messages to the launcher that do not go through MPI
 *   aq_spawn_mpi_start.c      MPI itself: which one, who starts it, its thread level
 *   aq_spawn_mpi_shutdown.c   whether and when MPI_Finalize is called
 *   aq_spawn_mpi.c            the provider: ranks, hosts, exchange at start
 *
 * Threads   as each call says
 * Uses      aq_spawn_mpi.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SPAWN_MPI_INTERNAL_H
#define AQ_SPAWN_MPI_INTERNAL_H

#include "other/spawn/mpi/aq_spawn_mpi.h"

/* --- aq_spawn_mpi_launcher.c: any thread, while other threads may be inside MPI --- */

/** aq_spawn_mpi_launcher_fd - the PMI-1 connection to the launcher, or -1. */
int aq_spawn_mpi_launcher_fd(const struct aq_spawn_mpi_lib *lib);

/** aq_spawn_mpi_launcher_finalize - this process leaves in order, without MPI_Finalize. broken: a
 * rank has ended without doing so. */
void aq_spawn_mpi_launcher_finalize(const struct aq_spawn_mpi_lib *lib, bool broken);

/** aq_spawn_mpi_launcher_abort - asks the launcher to end the whole job. */
void aq_spawn_mpi_launcher_abort(const struct aq_spawn_mpi_lib *lib, int code, const char *text);

/* --- aq_spawn_mpi_start.c: one thread, at start --- */

struct aq_spawn_mpi {
    const struct aq_spawn_mpi_lib *lib; /* NULL: not loaded */
    const struct aq_spawn_mpi_conduit *conduit;
    enum aq_mpi_level level; /* the level that MPI gives */
    bool ours;               /* this library has called MPI_Init, and calls MPI_Finalize */
    bool known;              /* the MPI in this process is the module's */
    bool group;              /* the job is over a communicator of the program's */
};
extern struct aq_spawn_mpi aq_spawn_mpi;

/**
 * aq_spawn_mpi_start - loads the module, starts MPI unless the client has, makes the job's
 * communicator. Collective over the group's communicator, or MPI_COMM_WORLD. Fills aq_spawn_mpi;
 * AQ_OK or negative, logged.
 */
int aq_spawn_mpi_start(const struct aq_spawn_mpi_conduit *conduit);

/** aq_spawn_mpi_give_signals - the job has ended: MPI gets its handlers of crashes back. */
void aq_spawn_mpi_give_signals(void);

/** aq_spawn_mpi_failed - logs MPI's error code with its text; returns AQ_ERR_SYS. */
int aq_spawn_mpi_failed(const char *what, int error);

/* --- aq_spawn_mpi_shutdown.c --- */

/** aq_spawn_mpi_shutdown_init - after start: AQ_OK or negative, logged. */
int aq_spawn_mpi_shutdown_init(void);

/** aq_spawn_mpi_shutdown_set_jobarea - where the ranks of this host publish their votes. */
void aq_spawn_mpi_shutdown_set_jobarea(struct aq_jobarea *jobarea, uint32_t slot);

/** aq_spawn_mpi_shutdown_job - the job ends, its processes go on: completes what is under way, and
 * gives back what belongs to the conduit. Collective. AQ_OK or negative, logged. */
int aq_spawn_mpi_shutdown_job(void);

/** aq_spawn_mpi_shutdown_vote - publishes whether this process, which is about to leave, can take
 * part in MPI_Finalize. Any context. */
void aq_spawn_mpi_shutdown_vote(enum aq_shutdown_mode how);

/**
 * aq_spawn_mpi_shutdown_fence - waits until every rank of the job has come to its exit. Called by
 * the monitor thread after the vote. Negative if MPI cannot be used, or if the thread that leaves
 * has ended the wait.
 */
int aq_spawn_mpi_shutdown_fence(void);

/**
 * aq_spawn_mpi_shutdown_await_client - this process is about to end. Keeps the client's
 * MPI_Finalize on another thread from the launcher or, if MPI exchanges PMI-1 with it already,
 * waits until the call has returned, for a bounded time: hydra ends itself if a process cannot take
 * its answer, and the output that hydra has not passed on is lost. Any thread.
 */
void aq_spawn_mpi_shutdown_await_client(void);

/* As struct aq_kvs_ops has them. */
void aq_spawn_mpi_shutdown_disconnect(enum aq_shutdown_mode how);
void aq_spawn_mpi_shutdown_fini(void);

#endif
