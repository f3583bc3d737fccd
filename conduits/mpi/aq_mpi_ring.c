/*
 * aq_mpi_ring.c - the slots that packets are received into: their memory, and their receives.
 *
 * Threads   with the lock
 * Uses      aq_mpi_ring.h, aq_mpi_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_ring.h"

#include <sys/mman.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_lock.h"

int aq_mpi_ring_init(struct aq_mpi_rings *rings, const struct aq_mpi_lib_am *lib)
{
    const size_t bytes = (size_t)AQ_MPI_SLOTS * AQ_MPI_RING_STRIDE;
    const uint32_t slots = lib->slots < AQ_MPI_SLOTS ? lib->slots : AQ_MPI_SLOTS;
    char *memory[AQ_MPI_CHANNELS];
    int rc;

    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        memory[channel] =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[channel] == MAP_FAILED)
            return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u packets of %u bytes", AQ_MPI_SLOTS,
                           (unsigned)AQ_MPI_RING_STRIDE);
        rings->ring[channel].memory = memory[channel];
    }
    rings->lib = lib;
    rings->low = (slots + 1) / 2;
    aq_mpi_lock();
    rc = lib->open(memory, slots, AQ_MPI_RING_STRIDE, AQ_MPI_PACKET);
    aq_mpi_unlock();
    if (rc < 0)
        aq_mpi_fatal(-rc, "receives for messages");
    return AQ_OK;
}

void aq_mpi_ring_fail(int rc)
{
    aq_mpi_fatal(-rc, "a message cannot be received");
}

/* Starts the receives of up to max slots that are done. A slot whose handler still runs is skipped:
 * it changes places with one that is done. */
static void aq_mpi_ring_start(struct aq_mpi_rings *rings, enum aq_mpi_channel channel, uint32_t max)
{
    struct aq_mpi_ring *ring = &rings->ring[channel];
    int rc;

    for (uint32_t at = ring->first; at != ring->last && max != 0; at++) {
        const uint32_t slot = ring->taken[at % AQ_MPI_SLOTS];

        /* acquire: pairs with aq_mpi_ring_done() */
        if (!atomic_load_explicit(&ring->done[slot], memory_order_acquire))
            continue;
        /* relaxed: no other thread has the slot until it is taken again */
        atomic_store_explicit(&ring->done[slot], false, memory_order_relaxed);
        ring->taken[at % AQ_MPI_SLOTS] = ring->taken[ring->first++ % AQ_MPI_SLOTS];
        rc = rings->lib->restart(channel, slot);
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_fatal(-rc, "a receive for messages");
        max--;
    }
}

void aq_mpi_ring_restart(struct aq_mpi_rings *rings, bool idle)
{
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        const uint32_t taken = rings->ring[channel].last - rings->ring[channel].first;

        if (taken >= rings->low)
            aq_mpi_ring_start(rings, (enum aq_mpi_channel)channel, taken);
        else if (idle && taken != 0)
            aq_mpi_ring_start(rings, (enum aq_mpi_channel)channel, 1);
    }
}

void aq_mpi_ring_fini(struct aq_mpi_rings *rings)
{
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        if (rings->ring[channel].memory != NULL)
            munmap(rings->ring[channel].memory, (size_t)AQ_MPI_SLOTS * AQ_MPI_RING_STRIDE);
}
