/*
 * aq_mpi_attach.h - attaching segments, and the barrier that goes with collective MPI calls.
 *
 * Threads   one
 * Uses      nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_ATTACH_H
#define AQ_MPI_ATTACH_H

#include <stddef.h>
#include <stdint.h>

/* Collective barrier that serves messages until all ranks have called it. It precedes each
 * collective call, of MPI or in the job area, that serves no messages: inside such a call a rank
 * cannot process the messages that another rank may wait for. Does nothing before messages work. */
void aq_mpi_barrier(void);

/* The table's entry. */
int aq_mpi_segment_attach(uintptr_t size, void **base_io);
int aq_mpi_segment_discard(void *addr, size_t nbytes);

#endif
