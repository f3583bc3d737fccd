/*
 * aq_mpi_ring.c - the slots that packets come in.
 *
 * A slot that has been filled is taken; when the handler has run, the thread that ran it marks the slot, and whoever
 * has the lock later gives it back to MPI: one at a time when there is nothing else to do, so that the way from a
 * request to its reply, and on to the next request, has no call of MPI for that on it; all, when half are gone.
 *
 * Owns      the slots' memory, touched as packets come
 * Threads   under the MPI lock, but for aq_mpi_ring_done()
 * Uses      aq_mpi_lib_am.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <sys/mman.h>

#include "conduits/mpi/aq_mpi_am.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"

#define AQ_RING_STRIDE ((AQ_MPI_PACKET + AQ_CACHE_LINE - 1) / AQ_CACHE_LINE * AQ_CACHE_LINE)

static struct aq_mpi_ring {
    char *memory;
    uint32_t first, last;          /* of taken, running on */
    uint32_t taken[AQ_MPI_SLOTS];  /* slots, at number % AQ_MPI_SLOTS */
    atomic_bool done[AQ_MPI_SLOTS];
} aq_mpi_ring[AQ_MPI_LANES];
static uint32_t aq_mpi_slots; /* of them in use */

int aq_mpi_ring_init(void)
{
    const size_t bytes = (size_t)AQ_MPI_SLOTS * AQ_RING_STRIDE;
    char *memory[AQ_MPI_LANES];
    int rc;

    for (int lane = 0; lane < AQ_MPI_LANES; lane++) {
        memory[lane] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[lane] == MAP_FAILED)
            return aq_fail(AQ_ERR_NOMEM, "mpi: no memory for %u packets of %u bytes", AQ_MPI_SLOTS,
                           (unsigned)AQ_RING_STRIDE);
        aq_mpi_ring[lane].memory = memory[lane];
    }
    aq_mpi_enter();
    aq_mpi_slots = aq_mpi_am.lib->slots < AQ_MPI_SLOTS ? aq_mpi_am.lib->slots : AQ_MPI_SLOTS;
    rc = aq_mpi_am.lib->open(memory, aq_mpi_slots, AQ_RING_STRIDE, AQ_MPI_PACKET);
    aq_mpi_leave();
    if (rc < 0)
        aq_mpi_fatal(-rc, "receives for messages");
    return AQ_OK;
}

char *aq_mpi_ring_packet(const struct aq_mpi_arrival *arrival)
{
    return aq_mpi_ring[arrival->ring].memory + (size_t)arrival->slot * AQ_RING_STRIDE;
}

int aq_mpi_ring_take(unsigned lanes, unsigned looks, struct aq_mpi_arrival *arrival_out)
{
    const int rc = aq_mpi_am.lib->take(lanes, looks, arrival_out);
    struct aq_mpi_ring *ring;

    if (rc <= 0) {
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_fatal(-rc, "a message cannot be received");
        return 0;
    }
    ring = &aq_mpi_ring[arrival_out->ring];
    ring->taken[ring->last++ % AQ_MPI_SLOTS] = arrival_out->slot;
    return 1;
}

void aq_mpi_ring_done(const struct aq_mpi_arrival *arrival)
{
    /* release: the handler's reads come before MPI writes there again; pairs with aq_ring_restart() */
    atomic_store_explicit(&aq_mpi_ring[arrival->ring].done[arrival->slot], true, memory_order_release);
}

/* Up to most slots. One whose handler still runs is passed over: it changes places with one that is done. */
static void aq_ring_restart(enum aq_mpi_lane lane, uint32_t most)
{
    struct aq_mpi_ring *ring = &aq_mpi_ring[lane];
    int rc;

    for (uint32_t at = ring->first; at != ring->last && most != 0; at++) {
        const uint32_t slot = ring->taken[at % AQ_MPI_SLOTS];

        if (!atomic_load_explicit(&ring->done[slot], memory_order_acquire)) /* pairs with aq_mpi_ring_done() */
            continue;
        atomic_store_explicit(&ring->done[slot], false, memory_order_relaxed); /* until it is taken again, ours */
        ring->taken[at % AQ_MPI_SLOTS] = ring->taken[ring->first++ % AQ_MPI_SLOTS];
        rc = aq_mpi_am.lib->restart(lane, slot);
        if (AQ_UNLIKELY(rc < 0))
            aq_mpi_fatal(-rc, "a receive for messages");
        most--;
    }
}

void aq_mpi_ring_restart(bool idle)
{
    for (int lane = 0; lane < AQ_MPI_LANES; lane++) {
        const uint32_t taken = aq_mpi_ring[lane].last - aq_mpi_ring[lane].first;

        if (taken >= (aq_mpi_slots + 1) / 2)
            aq_ring_restart((enum aq_mpi_lane)lane, taken);
        else if (idle && taken != 0)
            aq_ring_restart((enum aq_mpi_lane)lane, 1);
    }
}
