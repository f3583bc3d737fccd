/*
 * aq_mpi_ring.h - the slots that packets are received into.
 *
 * A slot that MPI has filled is taken until its handler has run. The thread that ran the handler
 * marks the slot done. The next owner of the lock restarts the slot's receive. It restarts one slot
 * at a time while nothing else is to be done, so that no MPI call for a slot lies between a request
 * and its reply. It restarts all slots that are done when half of a channel's slots are taken.
 *
 * Owns      the slots' memory, whose pages are touched as packets arrive
 * Threads   with the lock, except aq_mpi_ring_done()
 * Uses      aq_mpi_lib_am.h, aq_mpi_packet.h, aq_mpi_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RING_H
#define AQ_MPI_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_platform.h"
#include "conduits/mpi/aq_mpi_lib_am.h"
#include "conduits/mpi/aq_mpi_packet.h"

#define AQ_MPI_SLOTS       64u /* slots of a channel; further packets wait inside MPI */
#define AQ_MPI_RING_STRIDE ((AQ_MPI_PACKET + AQ_CACHE_LINE - 1) / AQ_CACHE_LINE * AQ_CACHE_LINE)

struct aq_mpi_rings {
    const struct aq_mpi_lib_am *lib;
    uint32_t low; /* number of taken slots at which all that are done are restarted */
    struct aq_mpi_ring {
        char *memory;
        uint32_t first, last;         /* taken slots: running numbers */
        uint32_t taken[AQ_MPI_SLOTS]; /* number % AQ_MPI_SLOTS is the place of a number's slot */
        atomic_bool done[AQ_MPI_SLOTS];
    } ring[AQ_MPI_CHANNELS];
};

/* Starts to receive. AQ_OK or negative, logged. */
int aq_mpi_ring_init(struct aq_mpi_rings *rings, const struct aq_mpi_lib_am *lib);
/* Unmaps the slots. The job has ended, and nothing is received. */
void aq_mpi_ring_fini(struct aq_mpi_rings *rings);
/* Restarts receives of slots that are done: all of a channel that has `low` slots taken, otherwise
 * one if idle. */
void aq_mpi_ring_restart(struct aq_mpi_rings *rings, bool idle);
/* A receive has failed: ends the job. */
_Noreturn void aq_mpi_ring_fail(int rc) __attribute__((cold));

/* As aq_mpi_lib_am.take(): true if there is a packet. */
static inline bool aq_mpi_ring_take(struct aq_mpi_rings *rings, unsigned channels, unsigned looks,
                                    struct aq_mpi_arrival *arrival_out)
{
    const int rc = rings->lib->take(channels, looks, arrival_out);
    struct aq_mpi_ring *ring;

    if (rc <= 0) {
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_ring_fail(rc);
        return false;
    }
    ring = &rings->ring[arrival_out->ring];
    ring->taken[ring->last++ % AQ_MPI_SLOTS] = arrival_out->slot;
    return true;
}

static inline char *aq_mpi_ring_packet(const struct aq_mpi_rings *rings,
                                       const struct aq_mpi_arrival *arrival)
{
    return rings->ring[arrival->ring].memory + (size_t)arrival->slot * AQ_MPI_RING_STRIDE;
}

/* Marks the packet's slot as done. Any thread, with or without the lock. */
static inline void aq_mpi_ring_done(struct aq_mpi_rings *rings,
                                    const struct aq_mpi_arrival *arrival)
{
    /* release: the handler's reads precede MPI's next write; pairs with aq_mpi_ring_start() */
    atomic_store_explicit(&rings->ring[arrival->ring].done[arrival->slot], true,
                          memory_order_release);
}

static inline bool aq_mpi_ring_is_low(const struct aq_mpi_rings *rings, enum aq_mpi_channel channel)
{
    return rings->ring[channel].last - rings->ring[channel].first >= rings->low;
}

/* Called when a packet has been taken: either channel may have too few waiting slots left. */
static inline void aq_mpi_ring_check(struct aq_mpi_rings *rings)
{
    if (AQ_UNLIKELY(aq_mpi_ring_is_low(rings, AQ_MPI_REPLY)
                    || aq_mpi_ring_is_low(rings, AQ_MPI_REQUEST)))
        aq_mpi_ring_restart(rings, false);
}

#endif
