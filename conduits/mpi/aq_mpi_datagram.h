/*
 * aq_mpi_datagram.h - the UDP socket by which other ranks wake this one.
 *
 * Wire      wake-up: the receiver's number, 8 bytes; at start also a verification: the same and 4
 *           bytes with the index of the address that it was sent to, or the sender's host. The
 *           number follows from the job's key
 * Trust     a datagram changes nothing but how soon its receiver polls MPI. Without the number it
 *           ends a sleep, and no more
 * Owns      the socket, the addresses of the ranks
 * Threads   start and end: one; the others: any
 * Uses      aq_mpi_lock.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_DATAGRAM_H
#define AQ_MPI_DATAGRAM_H

#include <stdbool.h>

#include "gasnetex.h"

/* Collective, before any message: opens the socket, exchanges addresses, and has each rank receive
 * a datagram, from another host if there are several, and each host one of every other host. AQ_OK
 * or negative, logged. *works_out: all have received theirs, within AQ_MPI_DATAGRAM_MS for each
 * AQ_MPI_DATAGRAM_HOSTS. Otherwise, and unless wanted on all ranks, there is no socket. */
int aq_mpi_datagram_open(bool wanted, bool *works_out);
void aq_mpi_datagram_close(void);

/* Never blocks. A failure counts as a lost datagram. */
void aq_mpi_datagram_send(gex_Rank_t jobrank);
/* Takes what has arrived. Returns false if nothing has. *genuine_out: a wake-up was among it. */
bool aq_mpi_datagram_take(bool *genuine_out);

/* The descriptor; -1: none. */
int aq_mpi_datagram_fd(void);

#endif
