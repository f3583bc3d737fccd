/*
 * aq_mpi_wakeup.c - which rank may sleep for long, and which peer has to be woken.
 *
 * A peer that has been sent a wake-up is in a list until a packet of it has arrived. That is known
 * by the time until which the peer counts as awake: it is odd after a wake-up, even after a packet.
 *
 * Threads   with the lock around MPI
 * Uses      aq_mpi_wakeup.h, core/aq_poll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_wakeup.h"

#include "core/aq_poll.h"

#define AQ_MPI_AGAIN_DOUBLED 3u /* times that the time between two wake-ups is doubled */

_Static_assert(AQ_MPI_AGAIN_NS << AQ_MPI_AGAIN_DOUBLED <= AQ_MPI_ALIVE_NS,
               "a peer that is woken again and again stays awake");
_Static_assert(2 * AQ_MPI_ALIVE_NS < AQ_MPI_AWAKE_NS, "see the promise of aq_mpi_wakeup.h");

void aq_mpi_wakeup_open(struct aq_mpi_wakeup *w, struct aq_mpi_wakeup_peer *peers,
                        struct aq_mpi_peer *credit, void (*send)(gex_Rank_t jobrank),
                        uint64_t now_ns, uint64_t tick_ns)
{
    w->attentive_ns = MAX(AQ_MPI_ALIVE_NS, 2 * tick_ns);
    w->peers = peers;
    w->credit = credit;
    w->send = send;
    w->first = GEX_RANK_INVALID;
    w->looked_ns = w->empty_ns = w->active_ns = now_ns;
    w->alive_ns = now_ns & ~UINT64_C(1);
    w->works = true;
}

/* --- sending --- */

void aq_mpi_wakeup_rise(struct aq_mpi_wakeup *w)
{
    if (!w->asleep)
        return;
    w->asleep = false;
    aq_wait_wake();
}

static void aq_mpi_wakeup_list(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns)
{
    struct aq_mpi_wakeup_peer *peer = &w->peers[jobrank];

    if (peer->listed)
        return;
    peer->listed = true;
    peer->times = 0;
    peer->again_ns = now_ns + AQ_MPI_AGAIN_NS;
    if (w->first == GEX_RANK_INVALID || peer->again_ns < w->again_ns)
        w->again_ns = peer->again_ns;
    peer->next = w->first;
    w->first = jobrank;
}

static void aq_mpi_wakeup_send_one(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns)
{
    w->send(jobrank);
    w->peers[jobrank].woken_ns = now_ns;
    w->credit[jobrank].awake_ns = (now_ns + w->attentive_ns) | 1;
    w->active_ns = now_ns; /* for the packets that the peer gets without a wake-up until then */
}

void aq_mpi_wakeup_send(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns, bool again)
{
    if (again || now_ns - w->peers[jobrank].woken_ns >= AQ_MPI_AGAIN_NS)
        aq_mpi_wakeup_send_one(w, jobrank, now_ns);
    if (again)
        aq_mpi_wakeup_list(w, jobrank, now_ns);
    aq_mpi_wakeup_rise(w);
}

/* --- again --- */

static inline bool aq_mpi_wakeup_is_answered(const struct aq_mpi_wakeup *w, gex_Rank_t jobrank)
{
    return (w->credit[jobrank].awake_ns & 1) == 0;
}

/* The peer's time has come. Returns false if it needs no further wake-up. */
static bool aq_mpi_wakeup_repeat(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns)
{
    struct aq_mpi_wakeup_peer *peer = &w->peers[jobrank];
    const bool answered = aq_mpi_wakeup_is_answered(w, jobrank);
    unsigned doubled;

    if (peer->transfers == 0 && (answered || peer->times == AQ_MPI_AGAIN_TIMES))
        return false;
    aq_mpi_wakeup_send_one(w, jobrank, now_ns);
    if (peer->times < AQ_MPI_AGAIN_TIMES)
        peer->times++;
    doubled = peer->transfers != 0 ? 0 : MIN((unsigned)peer->times, AQ_MPI_AGAIN_DOUBLED);
    peer->again_ns = now_ns + (AQ_MPI_AGAIN_NS << doubled);
    return true;
}

static void aq_mpi_wakeup_again(struct aq_mpi_wakeup *w, uint64_t now_ns)
{
    gex_Rank_t *at = &w->first;

    w->again_ns = UINT64_MAX;
    while (*at != GEX_RANK_INVALID) {
        struct aq_mpi_wakeup_peer *peer = &w->peers[*at];

        if (now_ns >= peer->again_ns && !aq_mpi_wakeup_repeat(w, *at, now_ns)) {
            peer->listed = false;
            *at = peer->next;
            continue;
        }
        w->again_ns = MIN(w->again_ns, peer->again_ns);
        at = &peer->next;
    }
}

void aq_mpi_wakeup_begin(struct aq_mpi_wakeup *w, gex_Rank_t jobrank, uint64_t now_ns)
{
    if (!w->works)
        return;
    w->peers[jobrank].transfers++;
    if (now_ns - w->peers[jobrank].woken_ns >= AQ_MPI_NUDGE_NS) {
        aq_mpi_wakeup_send_one(w, jobrank, now_ns);
        aq_mpi_wakeup_rise(w);
    }
    aq_mpi_wakeup_list(w, jobrank, now_ns);
}

void aq_mpi_wakeup_end(struct aq_mpi_wakeup *w, gex_Rank_t jobrank)
{
    if (w->works)
        w->peers[jobrank].transfers--;
}

/* --- polls and sleeps --- */

void aq_mpi_wakeup_look(struct aq_mpi_wakeup *w, uint64_t now_ns)
{
    w->empty_ns = w->looked_ns;
    w->looked_ns = now_ns;
    w->alive_ns = (w->empty_ns + w->attentive_ns) & ~UINT64_C(1);
    /* relaxed: see aq_mpi_wakeup_came() */
    if (atomic_load_explicit(&w->moved, memory_order_relaxed)) {
        atomic_store_explicit(&w->moved, false, memory_order_relaxed);
        w->active_ns = now_ns;
        aq_mpi_wakeup_rise(w);
    }
    if (AQ_UNLIKELY(w->first != GEX_RANK_INVALID) && now_ns >= w->again_ns)
        aq_mpi_wakeup_again(w, now_ns);
}

void aq_mpi_wakeup_repeat_due(struct aq_mpi_wakeup *w)
{
    if (AQ_LIKELY(!w->works || w->first == GEX_RANK_INVALID))
        return;
    const uint64_t now_ns = aq_now_ns();

    if (now_ns >= w->again_ns)
        aq_mpi_wakeup_again(w, now_ns);
}

uint64_t aq_mpi_wakeup_limit(struct aq_mpi_wakeup *w)
{
    /* relaxed: a wake-up that arrives now is in the socket, or wakes this thread by the next poll
     * of the thread that has taken it */
    if (!w->works || w->collectives != 0 || w->first != GEX_RANK_INVALID
        || atomic_load_explicit(&w->moved, memory_order_relaxed)
        || w->empty_ns < w->active_ns + AQ_MPI_AWAKE_NS)
        return 0;
    w->asleep = true;
    return AQ_MPI_ASLEEP_NS;
}
