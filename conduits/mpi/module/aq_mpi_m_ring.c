/*
 * aq_mpi_m_ring.c - receives packets by posted receives only.
 *
 * Each channel has a communicator and a ring of persistent receives from any source. MPI fills them
 * in the order in which they were started, so that a test of the oldest one of a channel finds what
 * has arrived. A packet that MPI transfers by rendezvous may wait for its sender while the ones
 * behind it are complete: a test of every slot, now and then, finds those.
 *
 * This serves an MPI that matches within a communicator, where the client's own messages are not
 * compared with these receives.
 *
 * Owns      the receives
 * Threads   one at a time
 * Uses      MPI. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "conduits/mpi/module/aq_mpi_m_am.h"
#include "base/aq_platform.h"

#define AQ_M_ROW 4u /* tests of one channel in a row for each test of both */

struct aq_m_ring {
    MPI_Request *request; /* [slots], by slot */
    MPI_Request *looked;  /* [slots], scratch for one call: the waiting ones, the oldest first */
    uint32_t *order;      /* [slots]: waiting slots, the oldest at head & mask */
    uint32_t head, tail;
};

static struct {
    struct aq_m_ring ring[AQ_MPI_CHANNELS];
    MPI_Request oldest[AQ_MPI_CHANNELS]; /* the ring's oldest, or MPI_REQUEST_NULL */
    uint32_t slots, mask;                /* mask: slots - 1 */
    enum aq_mpi_channel expected;        /* the channel of the last packet */
    uint32_t row;                        /* tests of that channel since both were tested */
} aq_m_rings;

static inline void aq_m_set_oldest(enum aq_mpi_channel channel)
{
    const struct aq_m_ring *ring = &aq_m_rings.ring[channel];

    aq_m_rings.oldest[channel] = ring->head == ring->tail
                                     ? MPI_REQUEST_NULL
                                     : ring->request[ring->order[ring->head & aq_m_rings.mask]];
}

int aq_m_ring_restart(enum aq_mpi_channel channel, uint32_t slot)
{
    struct aq_m_ring *ring = &aq_m_rings.ring[channel];
    const int error = MPI_Start(&ring->request[slot]);

    ring->order[ring->tail++ & aq_m_rings.mask] = slot;
    if (ring->tail - ring->head == 1)
        aq_m_set_oldest(channel);
    return -error;
}

int aq_m_ring_open(char *const memory[AQ_MPI_CHANNELS], uint32_t slots, size_t stride,
                   size_t nbytes)
{
    int error = -aq_m_packets_open(true);

    if ((slots & (slots - 1)) != 0)
        return -MPI_ERR_ARG;
    aq_m_rings.slots = slots;
    aq_m_rings.mask = slots - 1;
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        struct aq_m_ring *ring = &aq_m_rings.ring[channel];

        ring->request = malloc(slots * sizeof(*ring->request));
        ring->looked = malloc(slots * sizeof(*ring->looked));
        ring->order = malloc(slots * sizeof(*ring->order));
        if (ring->request == NULL || ring->looked == NULL || ring->order == NULL)
            return -MPI_ERR_NO_MEM;
        for (uint32_t i = 0; i < slots && error == MPI_SUCCESS; i++)
            error =
                MPI_Recv_init(memory[channel] + i * stride, (int)nbytes, MPI_BYTE, MPI_ANY_SOURCE,
                              channel, aq_m_packets.comm[channel], &ring->request[i]);
        for (uint32_t i = 0; i < slots && error == MPI_SUCCESS; i++)
            error = -aq_m_ring_restart(channel, i);
    }
    return -error;
}

void aq_m_ring_close(void)
{
    for (int channel = 0; channel < AQ_MPI_CHANNELS; channel++) {
        struct aq_m_ring *ring = &aq_m_rings.ring[channel];

        for (; ring->head != ring->tail; ring->head++) {
            MPI_Request *request = &ring->request[ring->order[ring->head & aq_m_rings.mask]];

            MPI_Cancel(request);
            MPI_Wait(request,
                     MPI_STATUS_IGNORE); /* returns: the receive is cancelled, or complete */
        }
        for (uint32_t i = 0; ring->request != NULL && i < aq_m_rings.slots; i++)
            MPI_Request_free(&ring->request[i]);
        free(ring->request);
        free(ring->looked);
        free(ring->order);
        *ring = (struct aq_m_ring){ .request = NULL };
        aq_m_rings.oldest[channel] = MPI_REQUEST_NULL;
    }
    aq_m_packets_close();
}

/* The receive at this place of the order has completed. The order of the others does not change. */
static inline int aq_m_take_at(enum aq_mpi_channel channel, uint32_t at, const MPI_Status *status,
                               struct aq_mpi_arrival *out)
{
    struct aq_m_ring *ring = &aq_m_rings.ring[channel];
    const uint32_t slot = ring->order[at & aq_m_rings.mask];

    for (; AQ_UNLIKELY(at != ring->head); at--)
        ring->order[at & aq_m_rings.mask] = ring->order[(at - 1) & aq_m_rings.mask];
    ring->head++;
    aq_m_set_oldest(channel);
    return aq_m_arrived(channel, channel, slot, status, out);
}

/* Tests every waiting slot with one call. */
static int aq_m_take_hard(enum aq_mpi_channel channel, struct aq_mpi_arrival *out)
{
    struct aq_m_ring *ring = &aq_m_rings.ring[channel];
    const uint32_t waiting = ring->tail - ring->head;
    MPI_Status status;
    int error, flag, at;

    for (uint32_t i = 0; i < waiting; i++)
        ring->looked[i] = ring->request[ring->order[(ring->head + i) & aq_m_rings.mask]];
    error = MPI_Testany((int)waiting, ring->looked, &at, &flag, &status);
    if (error != MPI_SUCCESS || !flag || at == MPI_UNDEFINED)
        return -error;
    return aq_m_take_at(channel, ring->head + (uint32_t)at, &status, out);
}

/* Tests the oldest receive of one channel. MPI_Test tests again after it has made progress. */
static inline int aq_m_take_oldest(enum aq_mpi_channel channel, struct aq_mpi_arrival *out)
{
    struct aq_m_ring *ring = &aq_m_rings.ring[channel];
    MPI_Status status;
    int error, flag;

    if (AQ_UNLIKELY(aq_m_rings.oldest[channel] == MPI_REQUEST_NULL))
        return 0;
    error = MPI_Test(&aq_m_rings.oldest[channel], &flag, &status);
    if (!flag || AQ_UNLIKELY(error != MPI_SUCCESS))
        return -error;
    return aq_m_take_at(channel, ring->head, &status, out);
}

/* Tests the oldest receives of both channels with one call. The call tests, makes progress, and
 * with Open MPI does not test again: the next poll finds what arrived. A rank that receives many
 * packets profits, because their sender keeps its cache lines in the meantime. */
static __attribute__((noinline)) int aq_m_take_either(struct aq_mpi_arrival *out)
{
    MPI_Status status;
    int error, flag, channel;

    aq_m_rings.row = 0;
    error = MPI_Testany(AQ_MPI_CHANNELS, aq_m_rings.oldest, &channel, &flag, &status);
    if (!flag || error != MPI_SUCCESS || channel == MPI_UNDEFINED)
        return -error;
    aq_m_rings.expected = (enum aq_mpi_channel)channel;
    return aq_m_take_at((enum aq_mpi_channel)channel, aq_m_rings.ring[channel].head, &status, out);
}

/* The caller waits: tests the channel of the last packet, after one test of the other. A packet of
 * the expected channel that arrives during that test is found at once. */
static inline int aq_m_take_waited(unsigned looks, struct aq_mpi_arrival *out)
{
    const enum aq_mpi_channel other =
        aq_m_rings.expected == AQ_MPI_REPLY ? AQ_MPI_REQUEST : AQ_MPI_REPLY;
    int found = aq_m_take_oldest(other, out);

    aq_m_rings.row = 0;
    if (found > 0)
        aq_m_rings.expected = other;
    for (; looks > 1 && found == 0; looks--)
        found = aq_m_take_oldest(aq_m_rings.expected, out);
    return found;
}

/* A requester receives replies and a server receives requests: tests go to the channel of the last
 * packet, and the first of several to the other. A single test covers both now and then, so that a
 * busy channel does not hide the other. */
static inline int aq_m_take_any(unsigned looks, struct aq_mpi_arrival *out)
{
    if (looks > 1)
        return aq_m_take_waited(looks, out);
    return AQ_LIKELY(++aq_m_rings.row < AQ_M_ROW) ? aq_m_take_oldest(aq_m_rings.expected, out)
                                                  : aq_m_take_either(out);
}

int aq_m_ring_take(unsigned channels, unsigned looks, struct aq_mpi_arrival *out)
{
    int found = 0;

    if (AQ_LIKELY(channels == (1u << AQ_MPI_CHANNELS) - 1 && looks != 0))
        return aq_m_take_any(looks, out);
    for (int channel = 0; channel < AQ_MPI_CHANNELS && found == 0; channel++)
        if ((channels & 1u << channel) != 0)
            found = looks == 0 ? aq_m_take_hard((enum aq_mpi_channel)channel, out)
                               : aq_m_take_oldest((enum aq_mpi_channel)channel, out);
    return found;
}
