/*
 * aq_mpi_ring.c - the slots that packets come in: their memory, and giving them back to MPI.
 *
 * Owns      aq_mpi_ring
 * Threads   under the MPI lock
 * Uses      aq_mpi_ring.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_ring.h"

#include <sys/mman.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"

struct aq_mpi_ring aq_mpi_ring[AQ_MPI_CHANNELS];
uint32_t aq_mpi_ring_low;

int aq_mpi_ring_init(void)
{
    const size_t bytes = (size_t)AQ_MPI_SLOTS * AQ_MPI_RING_STRIDE;
    char *memory[AQ_MPI_CHANNELS];
    uint32_t slots;
    int rc;

    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        memory[channel] =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[channel] == MAP_FAILED)
            return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u packets of %u bytes", AQ_MPI_SLOTS,
                           (unsigned)AQ_MPI_RING_STRIDE);
        aq_mpi_ring[channel].memory = memory[channel];
    }
    aq_mpi_lock();
    slots = aq_mpi_am.lib->slots < AQ_MPI_SLOTS ? aq_mpi_am.lib->slots : AQ_MPI_SLOTS;
    aq_mpi_ring_low = (slots + 1) / 2;
    rc = aq_mpi_am.lib->open(memory, slots, AQ_MPI_RING_STRIDE, AQ_MPI_PACKET);
    aq_mpi_unlock();
    if (rc < 0)
        aq_mpi_fatal(-rc, "receives for messages");
    return AQ_OK;
}

void aq_mpi_ring_fail(int rc)
{
    aq_mpi_fatal(-rc, "a message cannot be received");
}

/* Up to most slots. One whose handler still runs is passed over: it changes places with one that is
 * done. */
static void aq_ring_restart(enum aq_mpi_channel channel, uint32_t max)
{
    struct aq_mpi_ring *ring = &aq_mpi_ring[channel];
    int rc;

    for (uint32_t at = ring->first; at != ring->last && max != 0; at++) {
        const uint32_t slot = ring->taken[at % AQ_MPI_SLOTS];

        if (!atomic_load_explicit(&ring->done[slot],
                                  memory_order_acquire)) /* pairs with aq_mpi_ring_done() */
            continue;
        atomic_store_explicit(&ring->done[slot], false,
                              memory_order_relaxed); /* until it is taken again, ours */
        ring->taken[at % AQ_MPI_SLOTS] = ring->taken[ring->first++ % AQ_MPI_SLOTS];
        rc = aq_mpi_am.lib->restart(channel, slot);
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_fatal(-rc, "a receive for messages");
        max--;
    }
}

void aq_mpi_ring_restart(bool idle)
{
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        const uint32_t taken = aq_mpi_ring[channel].last - aq_mpi_ring[channel].first;

        if (taken >= aq_mpi_ring_low)
            aq_ring_restart((enum aq_mpi_channel)channel, taken);
        else if (idle && taken != 0)
            aq_ring_restart((enum aq_mpi_channel)channel, 1);
    }
}
