/*
 * aq_mpi_credit.h - flow control between two ranks: how many requests may be in flight.
 *
 * A request costs one unit, or more if it can take more memory in the MPI queues of a receiver that
 * makes no MPI calls. A rank may have a window of units in flight to a peer. The peer counts the
 * units whose requests it has run. It advertises the count in every packet that it sends back, or
 * in a credit message once half a window is not advertised. Counts run modulo 2^32, so a late
 * packet advertises nothing new and nothing wrong. Replies cost nothing, since each answers a
 * request that was paid for.
 *
 * Progress    a window holds more than half a window and the most expensive request. A rank that
 *             waits for credit therefore has more than half a window in flight, and the peer
 *             returns credit for that as soon as it has run the requests. Credit messages and
 *             replies need no credit. For space in its own buffers a rank waits only until packets
 *             of replies are received; that runs only handlers of replies, which send nothing.
 *             Replies therefore always arrive, then handlers of requests end, then requests arrive.
 *             This does not depend on MPI's buffering: no rank waits inside MPI, so a send may last
 *             until its receiver takes the packet
 *
 * Threads   with the lock around MPI, except aq_mpi_credit_done() and aq_mpi_credit_due(): any
 * Uses      aq_mpi_packet.h, base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_CREDIT_H
#define AQ_MPI_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_packet.h"
#include "base/aq_lock.h"

#define AQ_MPI_UNIT 1024u /* payload bytes in a packet for one unit */
#define AQ_MPI_UNIT_APART \
    4096u /* rendezvous payload bytes for one unit: the maximum that a unit stands for */
#define AQ_MPI_COST_MAX   17u
#define AQ_MPI_WINDOW_MIN 48u
#define AQ_MPI_WINDOW_MAX 8192u /* messages are counted in 16 bits; this uses few of them */
_Static_assert(AQ_MPI_WINDOW_MIN / 2 + AQ_MPI_COST_MAX <= AQ_MPI_WINDOW_MIN,
               "see the head of this file");

struct aq_mpi_peer {
    uint32_t sent, acked; /* units of own requests: sent; advertised by the peer as done */
    /* units of the peer's requests that have been advertised to it as done */
    _Atomic uint32_t advertised;
    _Atomic uint32_t done_units; /* units of the peer's requests that are done */
    _Atomic uint16_t done_messages;
    uint16_t acked_messages;
    uint16_t tag
        /* tag of the last rendezvous payload, 1 to AQ_MPI_TAGS; 0: none */
        [AQ_MPI_CHANNELS];
    uint64_t requests, handled; /* for reports: messages sent; messages known to be handled */
};

/* Units that a request with this payload costs. */
static inline uint32_t aq_mpi_credit_cost(size_t nbytes)
{
    const size_t more =
        aq_mpi_packet_fits(nbytes) ? nbytes / AQ_MPI_UNIT : nbytes / AQ_MPI_UNIT_APART;

    return 1 + (uint32_t)(more < AQ_MPI_COST_MAX - 1 ? more : AQ_MPI_COST_MAX - 1);
}

static inline bool aq_mpi_credit_has(const struct aq_mpi_peer *peer, uint32_t window, uint32_t cost)
{
    return peer->sent - peer->acked + cost <= window;
}

static inline void aq_mpi_credit_spend(struct aq_mpi_peer *peer, uint32_t cost)
{
    peer->sent += cost;
    peer->requests++;
}

/* Takes the counts that the peer has advertised. Returns false if they exceed what this rank has
 * sent. */
static inline bool aq_mpi_credit_take(struct aq_mpi_peer *peer, uint32_t units, uint16_t messages)
{
    const uint32_t more = units - peer->acked;

    if (more == 0)
        return true;
    if (more > peer->sent - peer->acked)
        return more > UINT32_MAX / 2; /* a late packet, or an invalid one */
    peer->handled += (uint16_t)(messages - peer->acked_messages);
    peer->acked = units;
    peer->acked_messages = messages;
    return true;
}

/* A request of the peer has been run. Any thread. relaxed: only the counts matter, and the lock
 * around MPI orders the packets that advertise them. */
static inline void aq_mpi_credit_done(struct aq_mpi_peer *peer, uint32_t cost)
{
#if AQ_THREADED
    atomic_fetch_add_explicit(&peer->done_messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&peer->done_units, cost, memory_order_relaxed);
#else
    const unsigned messages = atomic_load_explicit(&peer->done_messages, memory_order_relaxed) + 1u;
    const uint32_t units = atomic_load_explicit(&peer->done_units, memory_order_relaxed) + cost;

    atomic_store_explicit(&peer->done_messages, (uint16_t)messages, memory_order_relaxed);
    atomic_store_explicit(&peer->done_units, units, memory_order_relaxed);
#endif
}

/* Returns true if the peer is due a credit message. Without the lock the result is a hint. */
static inline bool aq_mpi_credit_due(const struct aq_mpi_peer *peer, uint32_t window)
{
    const uint32_t done = atomic_load_explicit(&((struct aq_mpi_peer *)(uintptr_t)peer)->done_units,
                                               memory_order_relaxed);

    return done
               - atomic_load_explicit(&((struct aq_mpi_peer *)(uintptr_t)peer)->advertised,
                                      memory_order_relaxed)
           >= window / 2;
}

/* Returns the counts for a packet to the peer, and records them as advertised. */
static inline void aq_mpi_credit_advertise(struct aq_mpi_peer *peer, uint32_t *units_out,
                                           uint16_t *messages_out)
{
    *units_out = atomic_load_explicit(&peer->done_units, memory_order_relaxed);
    atomic_store_explicit(&peer->advertised, *units_out,
                          /* relaxed: readers without the lock take it as a hint */
                          memory_order_relaxed);
    *messages_out = atomic_load_explicit(&peer->done_messages, memory_order_relaxed);
}

/* Returns the window of each of `ranks` peers, so that together they can leave at most `bytes` with
 * a rank that makes no MPI calls. Of payloads of more than 64 KiB an MPI sends at most the
 * beginning. */
static inline uint32_t aq_mpi_credit_window(uint32_t wanted, uint32_t ranks, uint64_t bytes)
{
    const uint64_t fair = bytes / AQ_MPI_UNIT_APART / (ranks == 0 ? 1 : ranks);
    const uint64_t max = fair < wanted ? fair : wanted;

    return max < AQ_MPI_WINDOW_MIN ? AQ_MPI_WINDOW_MIN
                                   : (uint32_t)(max < AQ_MPI_WINDOW_MAX ? max : AQ_MPI_WINDOW_MAX);
}

#endif
