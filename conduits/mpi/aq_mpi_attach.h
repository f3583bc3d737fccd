/*
 * aq_mpi_attach.h - attaching segments, and the barrier that goes with collective MPI calls.
 *
 * Threads   one
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_ATTACH_H
#define AQ_MPI_ATTACH_H

#include <stdint.h>

/* Collective: returns when all ranks have called it, and serves messages until then. It precedes
 * each collective call that serves none, of MPI or in the job area: a rank in such a call cannot
 * move on the messages that another rank may wait for. Does nothing before messages work. */
void aq_mpi_barrier(void);

/* As the table's entry. */
int aq_mpi_segment_attach(uintptr_t size, void **base_io);

#endif
