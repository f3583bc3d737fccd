/*
 * aq_mpi_job.h - start and end of the mpi conduit's jobs.
 *
 *   aq_mpi_start.c     MPI itself: which one, by whom it was started, its thread level
 *   aq_mpi_spawn.c     the ranks and their hosts: the provider aq_mpi_spawn
 *   aq_mpi_end.c       the way out
 *   aq_mpi_disconnect.c   the launcher is told without MPI
 *
 * Threads   as each call says
 * Uses      aq_mpi.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_JOB_H
#define AQ_MPI_JOB_H

#include "conduits/mpi/aq_mpi_lib.h"
#include "other/spawn/aq_spawn_kvs.h"

struct aq_mpi_job {
    enum aq_mpi_level level; /* what MPI gives */
    bool ours;               /* we have called MPI_Init: MPI_Finalize is ours, too */
    bool known; /* the MPI in this process is the one that the module was compiled for */
};
extern struct aq_mpi_job aq_mpi_job;

/* The conduit's way of starting, for its table. */
extern const struct aq_spawn_provider aq_mpi_spawn;

/**
 * aq_mpi_start - load the module, start MPI unless the program has, make the conduit's
 * communicators. One thread, collective over MPI_COMM_WORLD. Returns AQ_OK or negative, logged.
 */
int aq_mpi_start(void);

/** aq_mpi_end_init - prepare for the end, whoever brings it about; after aq_mpi_start(). AQ_OK or
 * negative, logged. */
int aq_mpi_end_init(void);

/** aq_mpi_end_set_jobarea - where the ranks of this host tell each other how they leave. */
void aq_mpi_end_set_jobarea(struct aq_jobarea *jobarea, uint32_t slot);

/** aq_mpi_end_decide - may this process, which is about to leave, take part in MPI_Finalize? Any
 * context. */
void aq_mpi_end_decide(enum aq_shutdown_mode how);

/** aq_mpi_end_is_cut_short - MPI_Finalize was begun, and left in the middle since it did not end.
 * */
bool aq_mpi_end_is_cut_short(void);

/** aq_mpi_disconnect - we leave in order: tell the launcher, unless MPI has. Any thread, once. */
void aq_mpi_disconnect(void);

/**
 * aq_mpi_end_fence - once the thread that leaves has voted: wait for all ranks that cannot hear
 * otherwise that all have come to their exit. A thread of the minder's. AQ_OK; or negative if MPI
 * is not ours, or the other thread has heard meanwhile.
 */
int aq_mpi_end_fence(void);

/* The provider's last calls, as struct aq_kvs_ops has them. */
void aq_mpi_end_disconnect(enum aq_shutdown_mode how);
void aq_mpi_end_fini(void);
void aq_mpi_end_abort(int code, const char *text);
int aq_mpi_end_life_fd(void);

#endif
