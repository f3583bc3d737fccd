/*
 * aq_mpi_lib.h - what the mpi conduit asks of an MPI library: a table that the module fills in.
 *
 * The module (module/) is the only code that sees mpi.h, whose types differ from one MPI to the
 * next. Here its handles are numbers and opaque pointers; a call does as much as can be said in
 * one, so that the way through the table costs little.
 *
 * Threads   as each group says; what thread level the MPI gives is aq_mpi_lib_job's to tell
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LIB_H
#define AQ_MPI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MPI's thread levels, in their order. */
enum aq_mpi_level { AQ_MPI_SINGLE, AQ_MPI_FUNNELED, AQ_MPI_SERIALIZED, AQ_MPI_MULTIPLE };

/* Start, exchange at start, end. Everything returns 0, or MPI's error code, which text() explains.
 * */
struct aq_mpi_lib_job {
    /* Before init: the library's name and version, one line; NULL and a reason in why[len] if the
     * MPI in this process is not the one that the module was compiled for. */
    const char *(*about)(char *why, size_t len);
    void (*text)(int error, char *text, size_t len);
    bool (*is_initialized)(void);
    bool (*is_finalized)(void);
    int (*init)(int *argc, char ***argv, enum aq_mpi_level wanted); /* MPI_Init_thread */
    enum aq_mpi_level (*level)(void); /* what we have; after init, ours or the client's */
    bool (*is_main_thread)(void);
    /* Collective: makes the communicators that are the conduit's own. From then on: */
    int (*open)(void);
    uint32_t (*rank)(void);
    uint32_t (*size)(void);
    int (*allgather)(const void *own, size_t len, void *all);
    int (*bcast)(void *buf, size_t len, uint32_t root);
    int (*barrier)(void);
    /* All ranks meet: starts it, looks whether all have come. */
    int (*ibarrier)(void);
    int (*ibarrier_test)(bool *all_out);
    /* At the beginning of MPI_Finalize, whoever calls it, fn is called on every rank, and may call
     * MPI. */
    int (*on_finalize)(void (*fn)(void));
    void (*close)(void); /* frees the communicators; collective */
    int (*finalize)(void);
    void (*abort)(int code);
    const void *code; /* some instruction of the MPI library's */
    bool pmi;         /* it speaks PMI-1 with its launcher, through PMI_FD */
};

struct aq_mpi_lib_am;  /* aq_mpi_lib_am.h: messages */
struct aq_mpi_lib_rma; /* aq_mpi_lib_rma.h: windows */

#define AQ_MPI_LIB_VERSION 1u /* changes with the table */

struct aq_mpi_lib {
    uint32_t version; /* AQ_MPI_LIB_VERSION */
    struct aq_mpi_lib_job job;
    const struct aq_mpi_lib_am *am; /* [AQ_MPI_RECEIVERS] */
    const struct aq_mpi_lib_rma *rma;
};

#endif
