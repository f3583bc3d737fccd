/*
 * aq_mpi_m_am.h - what the files of the module's messages share.
 *
 *   aq_mpi_m_am.c     sends, and receives of payloads
 *   aq_mpi_m_ring.c   packets: all receives are posted
 *   aq_mpi_m_probe.c  packets: few receives are posted, the rest is probed for
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_M_AM_H
#define AQ_MPI_M_AM_H

#include "conduits/mpi/aq_mpi_lib_am.h"
#include "conduits/mpi/module/aq_mpi_m.h"

/* The communicators of packets, whose tag is the channel. */
struct aq_m_packets {
    MPI_Comm comm[AQ_MPI_CHANNELS]; /* MPI_COMM_NULL: not open */
};
extern struct aq_m_packets aq_m_packets;

/* Returns the bytes of a received packet; the status of the two MPIs shows them without
 * MPI_Get_count. */
static inline uint32_t aq_m_bytes(const MPI_Status *status)
{
#if defined(OPEN_MPI)
    return (uint32_t)status->_ucount;
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 30000000
    return (uint32_t)status->count_lo;
#else
    int count;

    MPI_Get_count(status, MPI_BYTE, &count);
    return (uint32_t)count;
#endif
}

static inline int aq_m_arrived(enum aq_mpi_channel channel, enum aq_mpi_channel ring, uint32_t slot,
                               const MPI_Status *status, struct aq_mpi_arrival *out)
{
    *out = (struct aq_mpi_arrival){ .channel = (uint16_t)channel,
                                    .ring = (uint16_t)ring,
                                    .slot = slot,
                                    .source = (uint32_t)status->MPI_SOURCE,
                                    .nbytes = aq_m_bytes(status) };
    return 1;
}

/* Collective, before the first send or receive: makes the communicators, one for each channel if
 * apart, else one for both. 0 or negative. */
int aq_m_packets_open(bool apart);
/* Collective: frees them. */
void aq_m_packets_close(void);

/* Entries of struct aq_mpi_lib_am. */
int aq_m_ring_open(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride,
                   size_t nbytes);
void aq_m_ring_close(void);
int aq_m_ring_take(unsigned channels, unsigned looks, struct aq_mpi_arrival *out);
int aq_m_ring_restart(enum aq_mpi_channel channel, uint32_t slot);
int aq_m_probe_open(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride,
                    size_t nbytes);
void aq_m_probe_close(void);
int aq_m_probe_take(unsigned channels, unsigned looks, struct aq_mpi_arrival *out);
int aq_m_probe_restart(enum aq_mpi_channel channel, uint32_t slot);

#endif
