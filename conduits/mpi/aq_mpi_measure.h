/*
 * aq_mpi_measure.h - what a window of MPI's is worth between two ranks that share no memory.
 *
 * Threads   one; inside aq_mpi_lock()
 * Uses      gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_MEASURE_H
#define AQ_MPI_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#define AQ_MPI_SIZES 5

/* What is measured, bytes; the first is a word. */
extern const size_t aq_mpi_sizes[AQ_MPI_SIZES];

/* Least times, ns: of a get and of an atomic operation by the window, and of a message with its
 * answer. */
struct aq_mpi_latency {
    uint64_t get[AQ_MPI_SIZES], message[AQ_MPI_SIZES], fetch;
};

struct aq_mpi_cost {
    bool known;             /* false: the two have no window */
    bool one_sided;         /* puts and gets are done though the target looks away, */
    bool atomics_one_sided; /* and atomic operations */
    struct aq_mpi_latency min;
};

/** aq_mpi_measure - collective over this rank and peer, of which one leads, and learns what it came
 * to. */
void aq_mpi_measure(gex_Rank_t peer, bool leads, struct aq_mpi_cost *cost_out);

#endif
