/*
 * aq_mpi_credit.h - flow control between two ranks: how many requests may be in flight.
 *
 * A request costs one unit, or more if it can take more memory in the MPI queues of a receiver that
 * makes no MPI calls. A rank may have a window of units in flight to a peer. The peer counts the
 * units whose requests it has run. It advertises the count in every packet that it sends back, or
 * in a credit message once half a window is not advertised. The sender's limit (core/aq_credit.h)
 * is that count and its own window, so a peer with another window does not matter. All ranks
 * compute the same window, if GASNET_NETWORKDEPTH is the same. Replies cost nothing, since each
 * answers a request that was paid for.
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
 * Uses      aq_mpi_packet.h, core/aq_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_CREDIT_H
#define AQ_MPI_CREDIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conduits/mpi/aq_mpi_packet.h"
#include "core/aq_credit.h"

#define AQ_MPI_UNIT       1024u /* payload bytes for one unit, of a payload that fits a packet */
#define AQ_MPI_UNIT_APART 4096u /* of a longer one: the maximum that a unit stands for */
#define AQ_MPI_COST_MAX   17u
#define AQ_MPI_WINDOW_MIN 48u
#define AQ_MPI_WINDOW_MAX 8192u /* messages are counted in 16 bits; this uses few of them */
_Static_assert((AQ_MPI_WINDOW_MIN + 1) / 2 + AQ_MPI_COST_MAX <= AQ_MPI_WINDOW_MIN,
               "see the head of this file");

struct aq_mpi_peer {
    struct aq_credit_out out; /* own requests */
    struct aq_credit_in in;   /* the peer's requests; its limit counts from 0: what is done */
    _Atomic uint16_t done_messages;
    uint16_t acked_messages;
    uint16_t tag
        /* tag of the last payload behind a packet, 1 to AQ_MPI_TAGS; 0: none */
        [AQ_MPI_CHANNELS];
    uint64_t awake_ns;          /* until then the peer counts as awake: aq_mpi_wakeup.h */
    uint64_t requests, handled; /* for reports: messages sent; messages known to be handled */
};

static inline void aq_mpi_credit_open(struct aq_mpi_peer *peer, uint32_t window)
{
    aq_credit_out_open(&peer->out, window);
    aq_credit_in_open(&peer->in, 0);
}

/* Units that a request with this payload costs. */
static inline uint32_t aq_mpi_credit_cost(size_t nbytes)
{
    const size_t more =
        aq_mpi_packet_fits(nbytes) ? nbytes / AQ_MPI_UNIT : nbytes / AQ_MPI_UNIT_APART;

    return 1 + (uint32_t)(more < AQ_MPI_COST_MAX - 1 ? more : AQ_MPI_COST_MAX - 1);
}

static inline bool aq_mpi_credit_has(const struct aq_mpi_peer *peer, uint32_t cost)
{
    return aq_credit_covers(aq_credit_limit(&peer->out), peer->out.sent, cost);
}

static inline void aq_mpi_credit_spend(struct aq_mpi_peer *peer, uint32_t cost)
{
    peer->out.sent += cost;
    peer->requests++;
}

/* Takes the counts that the peer has advertised. Returns false if they exceed what this rank has
 * sent. */
static inline bool aq_mpi_credit_take(struct aq_mpi_peer *peer, uint32_t window, uint32_t done,
                                      uint16_t messages)
{
    const uint32_t limit = done + window;

    if (!aq_credit_after(limit, aq_credit_limit(&peer->out)))
        return true; /* nothing new, or a late packet */
    if (AQ_UNLIKELY(aq_credit_after(done, peer->out.sent)))
        return false;
    (void)aq_credit_learn(&peer->out, limit);
    peer->handled += (uint16_t)(messages - peer->acked_messages);
    peer->acked_messages = messages;
    return true;
}

/* A request of the peer has been run. Any thread. relaxed: only the count matters, and the lock
 * around MPI orders the packets that advertise it. */
static inline void aq_mpi_credit_done(struct aq_mpi_peer *peer, uint32_t cost)
{
#if AQ_THREADED
    atomic_fetch_add_explicit(&peer->done_messages, 1, memory_order_relaxed);
#else
    const unsigned messages = atomic_load_explicit(&peer->done_messages, memory_order_relaxed) + 1u;

    atomic_store_explicit(&peer->done_messages, (uint16_t)messages, memory_order_relaxed);
#endif
    aq_credit_add_shared(&peer->in, cost);
}

/* Returns true if the peer is due a credit message. Without the lock the result is a hint. */
static inline bool aq_mpi_credit_due(const struct aq_mpi_peer *peer, uint32_t window)
{
    return aq_credit_due(&peer->in, window);
}

/* Returns the counts for a packet to the peer, and records them as advertised. */
static inline void aq_mpi_credit_advertise(struct aq_mpi_peer *peer, uint32_t *done_out,
                                           uint16_t *messages_out)
{
    *done_out = aq_credit_latest(&peer->in);
    aq_credit_advertise(&peer->in, *done_out);
    *messages_out = atomic_load_explicit(&peer->done_messages, memory_order_relaxed);
}

/* Returns the window of each of up to `ranks` peers, so that together they can leave at most
 * `bytes` with a rank that makes no MPI calls. Of payloads of more than 64 KiB an MPI sends at most
 * the beginning. */
static inline uint32_t aq_mpi_credit_window(uint32_t wanted, uint32_t ranks, uint64_t bytes)
{
    const uint64_t fair = bytes / AQ_MPI_UNIT_APART / (ranks == 0 ? 1 : ranks);
    const uint64_t max = fair < wanted ? fair : wanted;

    return max < AQ_MPI_WINDOW_MIN ? AQ_MPI_WINDOW_MIN
                                   : (uint32_t)(max < AQ_MPI_WINDOW_MAX ? max : AQ_MPI_WINDOW_MAX);
}

#endif
