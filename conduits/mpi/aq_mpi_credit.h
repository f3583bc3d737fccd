/*
 * aq_mpi_credit.h - flow control between two ranks: who may send how many requests.
 *
 * A request costs units: 1, and more the more memory it can take at a receiver that is not looking,
 * where it lies in MPI's own queues. A rank may have a window of units on their way to a peer. The
 * peer counts what it is done with, and tells the count in every packet it sends back, or, once
 * half a window is untold, in a packet of its own. Counts run on for ever, modulo 2^32, so that a
 * packet that is late says nothing new and nothing wrong.
 *
 * Replies cost nothing: each is the answer to a request that was paid for.
 *
 * Why nobody waits for ever: half a window and the dearest request fit the window, so who waits for
 * credit waits for more than half a window of requests that are on their way, and for those credit
 * comes as soon as the peer has run them. The peer sends it, and its replies, without waiting for
 * credit; for room in its own buffers it waits only until packets of replies are received, which
 * needs no handler but those of replies to run, and they send nothing. So replies always get
 * through, then handlers of requests end, then requests get through. None of it depends on what MPI
 * buffers: a send may last until its receiver takes the packet, since nobody waits inside MPI.
 *
 * Threads   under the MPI lock, but for aq_mpi_credit_done()
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_CREDIT_H
#define AQ_MPI_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_packet.h"
#include "base/aq_lock.h"

#define AQ_MPI_UNIT 1024u /* bytes in a packet that cost as much as the packet */
#define AQ_MPI_UNIT_APART \
    4096u /* the same of a payload that travels by itself: the most that a unit stands for */
#define AQ_MPI_COST_MAX   17u
#define AQ_MPI_WINDOW_MIN 48u
#define AQ_MPI_WINDOW_MAX 8192u /* messages are counted in 16 bits, of which this uses few */
_Static_assert(AQ_MPI_WINDOW_MIN / 2 + AQ_MPI_COST_MAX <= AQ_MPI_WINDOW_MIN,
               "see the head of this file");

struct aq_mpi_peer {
    uint32_t sent, acked;        /* units of our requests: sent, and told to be done with */
    _Atomic uint32_t advertised; /* units of its requests that we have told it to be done with */
    _Atomic uint32_t done_units; /* and how many we are done with, now */
    _Atomic uint16_t done_messages;
    uint16_t acked_messages;
    uint16_t tag
        /* of the last payload that went by itself, 1 to AQ_MPI_TAGS; 0: none did */
        [AQ_MPI_CHANNELS];
    uint64_t requests, handled; /* for reports: messages sent, and known to be handled */
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

/* What a packet of the peer's tells. False: it cannot be, we have not sent that many. */
static inline bool aq_mpi_credit_take(struct aq_mpi_peer *peer, uint32_t units, uint16_t messages)
{
    const uint32_t more = units - peer->acked;

    if (more == 0)
        return true;
    if (more > peer->sent - peer->acked)
        return more > UINT32_MAX / 2; /* an older packet that comes late, or nonsense */
    peer->handled += (uint16_t)(messages - peer->acked_messages);
    peer->acked = units;
    peer->acked_messages = messages;
    return true;
}

/* A request of the peer's has been run. Any thread; relaxed: only the numbers matter, and they
 * reach the peer in packets whose sending is ordered by the MPI lock. */
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

/* Is it time to tell without an occasion? Outside the lock a guess. */
static inline bool aq_mpi_credit_due(const struct aq_mpi_peer *peer, uint32_t window)
{
    const uint32_t done = atomic_load_explicit(&((struct aq_mpi_peer *)(uintptr_t)peer)->done_units,
                                               memory_order_relaxed);

    return done
               - atomic_load_explicit(&((struct aq_mpi_peer *)(uintptr_t)peer)->advertised,
                                      memory_order_relaxed)
           >= window / 2;
}

/* The counts for a packet to the peer, which are told from now on. */
static inline void aq_mpi_credit_advertise(struct aq_mpi_peer *peer, uint32_t *units_out,
                                           uint16_t *messages_out)
{
    *units_out = atomic_load_explicit(&peer->done_units, memory_order_relaxed);
    atomic_store_explicit(&peer->advertised, *units_out,
                          memory_order_relaxed); /* who reads it outside the lock guesses */
    *messages_out = atomic_load_explicit(&peer->done_messages, memory_order_relaxed);
}

/* The window of each of so many ranks, so that together they can leave no more than bytes with a
 * rank that is not looking: of payloads of more than 64 KiB an MPI sends the beginning at most. */
static inline uint32_t aq_mpi_credit_window(uint32_t wanted, uint32_t ranks, uint64_t bytes)
{
    const uint64_t fair = bytes / AQ_MPI_UNIT_APART / (ranks == 0 ? 1 : ranks);
    const uint64_t max = fair < wanted ? fair : wanted;

    return max < AQ_MPI_WINDOW_MIN ? AQ_MPI_WINDOW_MIN
                                   : (uint32_t)(max < AQ_MPI_WINDOW_MAX ? max : AQ_MPI_WINDOW_MAX);
}

#endif
