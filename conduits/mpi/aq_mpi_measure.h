/*
 * aq_mpi_measure.h - measures MPI's windows and messages between two ranks.
 *
 * Threads   one, with the lock around MPI
 * Uses      aq_mpi_lib_rma.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_MEASURE_H
#define AQ_MPI_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_lib_rma.h"
#include "gasnetex.h"

#define AQ_MPI_SIZES 3

/* The sizes that are measured, bytes. */
extern const size_t aq_mpi_sizes[AQ_MPI_SIZES];

/* A put of so many bytes is known to be one-sided, if the window is; bytes. */
#define AQ_MPI_TRIED ((size_t)262144)
/* The one of aq_mpi_sizes that an MPI may send by rendezvous, and two eager messages of about half
 * of it not. */
#define AQ_MPI_SPLIT_SIZE 2

/* Packets of sizes in between, which an MPI may send at once too, bytes. */
#define AQ_MPI_WHOLES 2
extern const size_t aq_mpi_whole_sizes[AQ_MPI_WHOLES];

/* Minimum times, ns: of a get and of an atomic operation by the window, of a message with its
 * answer; of two eager messages with their answer and of the packets in between, or UINT64_MAX. */
struct aq_mpi_latency {
    uint64_t get[AQ_MPI_SIZES], message[AQ_MPI_SIZES], fetch, split, whole[AQ_MPI_WHOLES];
};

struct aq_mpi_cost {
    bool known;             /* false: the two ranks have no window */
    bool one_sided;         /* puts and gets complete while the target does not call MPI */
    bool atomics_one_sided; /* atomic operations complete while the target does not call MPI */
    struct aq_mpi_latency min;
};

/** aq_mpi_measure - collective over this rank and peer. The rank that leads gets the result. */
void aq_mpi_measure(const struct aq_mpi_lib_rma *lib, gex_Rank_t peer, bool leads,
                    struct aq_mpi_cost *cost_out);

#endif
