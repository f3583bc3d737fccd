/*
 * aq_spawn_mpi.h - the MPI provider: mpirun starts the ranks, MPI carries the exchange at start,
 * and MPI_Finalize ends the job.
 *
 * The mpi conduit sends through the same MPI. Its table names struct aq_spawn_provider with the
 * functions below, and struct aq_spawn_mpi_conduit tells the provider how to share MPI with it.
 *
 * Threads   as struct aq_spawn_provider has it
 * Uses      aq_spawn_mpi_lib.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SPAWN_MPI_H
#define AQ_SPAWN_MPI_H

#include "other/spawn/aq_spawn_provider.h"
#include "other/spawn/mpi/aq_spawn_mpi_lib.h"

/* What the provider asks of the conduit. */
struct aq_spawn_mpi_conduit {
    /* Loads the module. NULL, and the reason in why[len], if there is none. */
    const struct aq_spawn_mpi_lib *(*load)(char *why, size_t len);
    /* True if a thread of the library calls MPI beside the client's threads. */
    bool (*has_progress_thread)(void);
    /* The lock around MPI. try_lock never waits, and may be called in a signal handler. */
    void (*lock)(void);
    bool (*try_lock)(void);
    void (*unlock)(void);
    /* Collective: a barrier that serves the conduit's messages while it waits. */
    void (*barrier)(void);
    /* With the lock: a barrier on a communicator of the conduit's, which does not wait. The call is
     * repeated until *all_out or an error. Negative if the conduit has no communicator. */
    int (*ibarrier)(bool *all_out);
    /* With the lock: moves messages and transfers on. True if none is under way. */
    bool (*progress)(void);
    /* At the beginning of MPI_Finalize, or at the end of a job over a group, on every rank, with
     * the lock, which is never released again in the job: completes what is under way, and gives
     * back what belongs to the conduit. by_client: the client has called MPI_Finalize, and may go
     * on. */
    void (*close)(bool by_client);
};

/** aq_spawn_mpi_join - conduit must stay valid until the process ends. */
int aq_spawn_mpi_join(struct aq_spawn_state *st, const struct aq_spawn_mpi_conduit *conduit);

/* The other entries of a provider. */
bool aq_spawn_mpi_offered(void);
/** aq_spawn_mpi_is_ours - returns true if the library has started MPI, and not the program. */
bool aq_spawn_mpi_is_ours(void);
int aq_spawn_mpi_allgather(struct aq_spawn_state *st, const void *own, size_t len, void *all);
int aq_spawn_mpi_bcast(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root);
int aq_spawn_mpi_fence(struct aq_spawn_state *st);
void aq_spawn_mpi_notify(struct aq_spawn_state *st);
int aq_spawn_mpi_finish(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);
/* For a job over a group that is made of a communicator. */
void aq_spawn_mpi_disconnect(struct aq_spawn_state *st);
int aq_spawn_mpi_gather(struct aq_spawn_state *st);
void aq_spawn_mpi_fini(struct aq_spawn_state *st);

#endif
