/*
 * aq_mpi_wakeup.h - which rank may sleep for long, and which peer has to be woken.
 *
 * MPI offers nothing to block on. A rank that waits therefore sleeps for a part of the time since
 * its last message between two polls, 1 ms at most: it is awake. Once nothing has passed through it
 * for AQ_MPI_AWAKE_NS it sleeps for up to AQ_MPI_ASLEEP_NS, in the kernel, on a UDP socket as well
 * (aq_mpi_datagram.h). A datagram to that socket, a wake-up, ends the sleep.
 *
 * Sender    a peer is known to be awake for AQ_MPI_ALIVE_NS after a packet of it has arrived, and
 *           after a wake-up. A packet to any other peer is followed by a wake-up. Both times are
 *           counted from the last poll that had not found the packet, since a rank that computes
 *           finds it long after it was sent
 * Again     a datagram may be lost, and may arrive before the packet. The wake-up is repeated,
 *           after AQ_MPI_AGAIN_NS at first, until a packet of the peer arrives, at most
 *           AQ_MPI_AGAIN_TIMES. A woken rank stays awake for AQ_MPI_AWAKE_NS. Nobody answers a
 *           reply: its wake-up is sent once
 * Transfers by a window that needs polls of its target keep the target awake until they have
 *           ended, and wake it as often as it would sleep longer than a little
 * Asleep    a rank that sends to a peer counts as awake there. If a thread of it sleeps for long at
 *           that time, the sender ends that sleep
 * Promise   a rank sleeps for long only if polls of MPI have found nothing for AQ_MPI_AWAKE_NS. A
 *           packet that arrives later comes with a wake-up: its sender has had no packet of this
 *           rank for longer than AQ_MPI_ALIVE_NS, or two ticks of a clock that ticks more rarely.
 *           The difference allows for clocks of 10 ms and for the network. Where all of this fails
 *           the rank polls after AQ_MPI_ASLEEP_NS
 * Threads   with the lock around MPI, except aq_mpi_wakeup_came(): any
 * Uses      aq_mpi_credit.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_WAKEUP_H
#define AQ_MPI_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/aq_platform.h"
#include "conduits/mpi/aq_mpi_credit.h"
#include "gasnetex.h"

#define AQ_MPI_AWAKE_NS    UINT64_C(50000000)
#define AQ_MPI_ASLEEP_NS   UINT64_C(1000000000) /* what a lost datagram costs */
#define AQ_MPI_ALIVE_NS    UINT64_C(8000000)
#define AQ_MPI_AGAIN_NS    UINT64_C(1000000) /* twice as long each time, up to AQ_MPI_ALIVE_NS */
#define AQ_MPI_AGAIN_TIMES 5u
#define AQ_MPI_NUDGE_NS    UINT64_C(300000) /* between wake-ups for transfers that need polls */

#define AQ_MPI_BACKOFF_MIN_NS 20000u
#define AQ_MPI_BACKOFF_MAX_NS 1000000u
#define AQ_MPI_BACKOFF_PART   16u

/* How long a rank that is awake sleeps between two polls, so long after its last message: what
 * comes meanwhile waits for a small part of that time. */
static inline uint64_t aq_mpi_wakeup_backoff(uint64_t quiet_ns)
{
    const uint64_t part = quiet_ns / AQ_MPI_BACKOFF_PART;

    return part < AQ_MPI_BACKOFF_MIN_NS   ? AQ_MPI_BACKOFF_MIN_NS
           : part > AQ_MPI_BACKOFF_MAX_NS ? AQ_MPI_BACKOFF_MAX_NS
                                          : part;
}

/* What is known of a peer that has been sent a wake-up. */
struct aq_mpi_wakeup_peer {
    uint64_t again_ns;  /* the next wake-up is due */
    uint64_t woken_ns;  /* the last one */
    uint32_t transfers; /* under way, that need polls of the peer */
    gex_Rank_t next;    /* in the list */
    bool listed;
    uint8_t times; /* repeated wake-ups */
};

struct aq_mpi_wakeup {
    uint64_t attentive_ns; /* for so long a peer counts as awake: AQ_MPI_ALIVE_NS, or two ticks */
    bool works;  /* wake-ups reach every rank; else no rank sleeps for long, and none is sent */
    bool asleep; /* a thread of this rank may sleep for long */
    uint32_t collectives; /* nonblocking calls of MPI under way, whose progress needs polls */
    atomic_bool moved;    /* a packet or a wake-up has arrived since a poll that found nothing */
    uint64_t looked_ns;   /* when the last poll that found nothing had ended */
    uint64_t empty_ns;    /* the same of the one before: the last one has begun later */
    uint64_t alive_ns;    /* until then a peer whose packet arrives now counts as awake; even */
    uint64_t active_ns;   /* since when nothing has passed through this rank */
    uint64_t again_ns;    /* the first repeated wake-up is due */
    gex_Rank_t first;     /* listed peer; GEX_RANK_INVALID: none */
    struct aq_mpi_wakeup_peer *peers; /* [size], by jobrank; NULL unless works */
    struct aq_mpi_peer *credit;       /* the same; what each packet needs is in here */
    void (*send)(gex_Rank_t jobrank); /* sends the datagram */
};

/* From now on ranks sleep for long. peers: zeroed. tick_ns: of aq_now_coarse_ns(). */
void aq_mpi_wakeup_open(struct aq_mpi_wakeup *w, struct aq_mpi_wakeup_peer *peers,
                        struct aq_mpi_peer *credit, void (*send)(gex_Rank_t jobrank),
                        uint64_t now_ns, uint64_t tick_ns);

/* The peer may be asleep: wakes it. again: until it answers; else, for a reply, not twice within
 * AQ_MPI_AGAIN_NS: a rank that is always busy may have no newer knowledge of its peers. */
void aq_mpi_wakeup_send(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns, bool again);

/* A packet has been sent to the peer. The compare is with a word of what the packet needed. */
static inline void aq_mpi_wakeup_sent(struct aq_mpi_wakeup *w, gex_Rank_t jobrank,
                                      const struct aq_mpi_peer *peer, bool is_reply)
{
    if (w->works && AQ_UNLIKELY(aq_now_coarse_ns() >= peer->awake_ns))
        aq_mpi_wakeup_send(w, jobrank, aq_now_ns(), !is_reply);
}

/* A wake-up has arrived, or something else after which this rank is to stay awake. Any thread.
 * relaxed: the next poll finds it, or the one after that */
static inline void aq_mpi_wakeup_came(struct aq_mpi_wakeup *w)
{
    atomic_store_explicit(&w->moved, true, memory_order_relaxed);
}

/* A packet of the peer has arrived. */
static inline void aq_mpi_wakeup_seen(struct aq_mpi_wakeup *w, struct aq_mpi_peer *peer)
{
    peer->awake_ns = w->alive_ns;
    aq_mpi_wakeup_came(w);
}

/* A poll that has ended at this time has found nothing. */
void aq_mpi_wakeup_look(struct aq_mpi_wakeup *w, uint64_t now_ns);

/* The same, now. The clock of a tick is good enough unless a wake-up may be due. */
static inline void aq_mpi_wakeup_empty(struct aq_mpi_wakeup *w)
{
    if (w->works)
        aq_mpi_wakeup_look(w, AQ_LIKELY(w->first == GEX_RANK_INVALID) ? aq_now_coarse_ns()
                                                                      : aq_now_ns());
}

/* A poll has found nothing, but has not looked everywhere. */
void aq_mpi_wakeup_repeat_due(struct aq_mpi_wakeup *w);

/* A thread of this rank that sleeps for long is to poll, since this rank has begun something. */
void aq_mpi_wakeup_rise(struct aq_mpi_wakeup *w);

/* A transfer that needs polls of the peer begins, or is complete. */
void aq_mpi_wakeup_begin(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns);
void aq_mpi_wakeup_end(struct aq_mpi_wakeup *w, gex_Rank_t jobrank);

/* Returns how long a thread that is about to sleep may do so, and notes that it does; 0: it is to
 * poll soon. */
uint64_t aq_mpi_wakeup_limit(struct aq_mpi_wakeup *w);

#endif
