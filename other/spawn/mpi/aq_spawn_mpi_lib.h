/*
 * aq_spawn_mpi_lib.h - the MPI functions that starting and ending a job need, as a table.
 *
 * The table is filled by module/, which is compiled with mpi.h into the module of the mpi conduit.
 *
 * Threads   one at a time, but for is_initialized, is_finalized, level and abort: any
 * Returns   0, or MPI's error code, which text() explains
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SPAWN_MPI_LIB_H
#define AQ_SPAWN_MPI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPI's thread levels, in MPI's order. */
enum aq_mpi_level { AQ_MPI_SINGLE, AQ_MPI_FUNNELED, AQ_MPI_SERIALIZED, AQ_MPI_MULTIPLE };

struct aq_spawn_mpi_lib {
    /* Name and version of the MPI in this process, one line. NULL, and the reason in why[len], if
     * the module was compiled for another MPI. May be called before init. */
    const char *(*about)(char *why, size_t len);
    void (*text)(int error, char *text, size_t len);
    bool (*is_initialized)(void);
    bool (*is_finalized)(void);
    int (*init)(int *argc, char ***argv, enum aq_mpi_level wanted); /* MPI_Init_thread */
    enum aq_mpi_level (*level)(void); /* the level in force, whoever called MPI_Init */
    bool (*is_main_thread)(void);
    /* Collective: makes the job's own communicator, which the calls below use: a duplicate of the
     * one that comm points to, or of MPI_COMM_WORLD for NULL. */
    int (*open)(const void *comm);
    uint32_t (*rank)(void);
    uint32_t (*size)(void);
    int (*allgather)(const void *own, size_t len, void *all);
    int (*bcast)(void *buf, size_t len, uint32_t root);
    int (*barrier)(void);
    /* A barrier that does not wait: ibarrier starts it, ibarrier_test asks whether all ranks have
     * started it. */
    int (*ibarrier)(void);
    int (*ibarrier_test)(bool *all_out);
    /* fn is called on every rank at the beginning of MPI_Finalize, and may call MPI. */
    int (*on_finalize)(void (*fn)(void));
    void (*close)(void); /* frees the communicator; collective */
    int (*finalize)(void);
    void (*abort)(int code);
    const void *code; /* an address inside the MPI library */
    bool pmi;         /* this MPI speaks PMI-1 with its launcher, on the descriptor in PMI_FD */
};

#endif
