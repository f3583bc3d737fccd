/*
 * aq_mpi_ring.h - the slots that packets come in.
 *
 * A slot that has been filled is taken; when the handler has run, the thread that ran it marks the
 * slot, and whoever has the lock later gives it back to MPI: one at a time when there is nothing
 * else to do, so that the way from a request to its reply, and on to the next request, has no call
 * of MPI for that on it; all, when half are gone.
 *
 * Owns      the slots' memory, touched as packets come
 * Threads   under the MPI lock, but for aq_mpi_ring_done()
 * Uses      aq_mpi_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_RING_H
#define AQ_MPI_RING_H

#include "conduits/mpi/aq_mpi_am.h"

#define AQ_MPI_RING_STRIDE ((AQ_MPI_PACKET + AQ_CACHE_LINE - 1) / AQ_CACHE_LINE * AQ_CACHE_LINE)

struct aq_mpi_ring {
    char *memory;
    uint32_t first, last;         /* of taken, running on */
    uint32_t taken[AQ_MPI_SLOTS]; /* slots, at number % AQ_MPI_SLOTS */
    atomic_bool done[AQ_MPI_SLOTS];
};
extern struct aq_mpi_ring aq_mpi_ring[AQ_MPI_CHANNELS];
extern uint32_t
    aq_mpi_ring_low; /* so many of a lane gone, and all that are done with are given back */

/* AQ_OK or negative, logged. */
int aq_mpi_ring_init(void);
/* Gives slots that are done with back to MPI: one, or if many of a lane are gone, all of that
 * one's. */
void aq_mpi_ring_restart(bool idle);
/* A receive has failed: ends the job. */
_Noreturn void aq_mpi_ring_fail(int rc) __attribute__((cold));

/* As aq_mpi_lib_am.take(): is there a packet? */
static inline bool aq_mpi_ring_take(unsigned channels, unsigned looks,
                                    struct aq_mpi_arrival *arrival_out)
{
    const int rc = aq_mpi_am.lib->take(channels, looks, arrival_out);
    struct aq_mpi_ring *ring;

    if (rc <= 0) {
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_ring_fail(rc);
        return false;
    }
    ring = &aq_mpi_ring[arrival_out->ring];
    ring->taken[ring->last++ % AQ_MPI_SLOTS] = arrival_out->slot;
    return true;
}

static inline char *aq_mpi_ring_packet(const struct aq_mpi_arrival *arrival)
{
    return aq_mpi_ring[arrival->ring].memory + (size_t)arrival->slot * AQ_MPI_RING_STRIDE;
}

/* The packet is not needed any more. Any thread, outside the lock, too. */
static inline void aq_mpi_ring_done(const struct aq_mpi_arrival *arrival)
{
    /* release: the handler's reads come before MPI writes there again; pairs with aq_ring_restart()
     * */
    atomic_store_explicit(&aq_mpi_ring[arrival->ring].done[arrival->slot], true,
                          memory_order_release);
}

/* A packet has been taken: gives back what is done with, if many are gone of either lane, whose own
 * packets may be what waits for slots. */
static inline void aq_mpi_ring_check(void)
{
    const struct aq_mpi_ring *ring = aq_mpi_ring;

    if (AQ_UNLIKELY(ring[AQ_MPI_REPLY].last - ring[AQ_MPI_REPLY].first >= aq_mpi_ring_low
                    || ring[AQ_MPI_REQUEST].last - ring[AQ_MPI_REQUEST].first >= aq_mpi_ring_low))
        aq_mpi_ring_restart(false);
}

#endif
