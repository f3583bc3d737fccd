/*
 * aq_udp_end.c - shutdown of the udp conduit: last acknowledgements, disconnects, freeing.
 *
 * Shutdown  a datagram that is still unacknowledged when the process exits could be lost for good,
 *           and its receiver would wait for ever. Shutdown therefore waits a bounded time for
 *           acknowledgements, then sends a disconnect to each peer
 * Job's end the processes continue, and wait for each other outside active messages before any
 *           socket is closed. So a rank also waits until its peers have disconnected, and repeats
 *           acknowledgements that the network has lost
 * Threads   aq_udp_exit() beside others of this process; aq_udp_fini() alone
 * Uses      aq_udp.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "core/aq_exit.h"

#define AQ_UDP_LOOK_NS  50000                /* between polls of the socket */
#define AQ_UDP_AGAIN    32u                  /* polls until a disconnect is sent again */
#define AQ_UDP_LAST     2u                   /* disconnects after the last poll: one may be lost */
#define AQ_UDP_AWAIT_NS UINT64_C(1000000000) /* for peers to disconnect at the end of a job */
#define AQ_UDP_LOCK_NS  UINT64_C(100000000)  /* for another thread to release a peer's lock */

static struct aq_udp_peer *aq_udp_first_peer(void)
{
    /* acquire: pairs with the release in aq_udp_peer_make() */
    return atomic_load_explicit(&aq_udp.active, memory_order_acquire);
}

/* Takes the lock of a peer. Returns false if its holder keeps it, who may be suspended for good; a
 * peer that is skipped sooner may lose what it has not acknowledged. */
static bool aq_udp_lock_peer(struct aq_udp_peer *peer)
{
    const struct timespec delay = { .tv_nsec = AQ_UDP_LOOK_NS };
    uint64_t end = 0;

    while (!aq_lock_try(&peer->lock)) {
        const uint64_t now = aq_now_ns();

        if (end == 0)
            end = now + AQ_UDP_LOCK_NS;
        else if (now >= end)
            return false;
        nanosleep(&delay, NULL);
    }
    return true;
}

/* --- while no handler may run --- */

/* One round of acknowledgements and retransmissions with a peer. Returns true if nothing remains to
 * be acknowledged by it. */
static bool aq_udp_drain_peer(struct aq_udp_peer *peer, bool leaving, uint64_t now_ns)
{
    aq_udp_link_close(&peer->link);
    if (leaving && aq_udp_peer_is_refused(peer, now_ns)) /* no process is left to acknowledge */
        aq_udp_link_abandon(&peer->link);
    aq_udp_link_timer(&peer->link, now_ns);
    return peer->link.disconnected || aq_udp_link_is_idle(&peer->link);
}

bool aq_udp_drain_once(bool leaving)
{
    const uint64_t now = aq_now_ns();
    bool idle = true;

    aq_udp_receive_acks(now);
    for (struct aq_udp_peer *peer = aq_udp_first_peer(); peer != NULL; peer = peer->next_active) {
        if (!aq_udp_lock_peer(peer))
            continue;
        idle = aq_udp_drain_peer(peer, leaving, now) && idle;
        aq_lock_release(&peer->lock);
    }
    if (aq_udp.inject)
        aq_udp_inject_timer(now);
    return idle;
}

/* --- reports --- */

static void aq_udp_report(void)
{
    const struct aq_udp_counters *c = &aq_udp.counts;
    struct aq_udp_link_counts all;
    uint32_t peers = 0;

    memset(&all, 0, sizeof(all));
    for (struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active, peers++) {
        const uint64_t *from = (const uint64_t *)(const void *)&peer->link.counts;
        uint64_t *to = (uint64_t *)(void *)&all;

        for (size_t i = 0; i < sizeof(all) / sizeof(*to); i++)
            to[i] += from[i];
    }
#define AQ_N(value) (unsigned long long)(value)
    aq_log_print(
        "udp: rank %u: %u peers; sent %llu datagrams, %llu bytes, %llu again, %llu control, "
        "%llu probes, %llu calls; received %llu datagrams, %llu bytes, %llu calls; lost %llu, "
        "spurious %llu, cuts %llu; duplicates %llu, outside %llu, unauthenticated %llu, "
        "badhash %llu, malformed %llu, badacks %llu, "
        "deferred %llu, refused %llu, errors %llu, toobig %llu\n",
        aq_job.rank, peers, AQ_N(all.sent), AQ_N(all.sent_bytes), AQ_N(all.resent),
        AQ_N(all.controls), AQ_N(all.probes), AQ_N(aq_counter_get(&c->sends)),
        AQ_N(aq_counter_get(&c->datagrams_in)), AQ_N(aq_counter_get(&c->bytes_in)),
        AQ_N(aq_counter_get(&c->receives)), AQ_N(all.lost), AQ_N(all.spurious), AQ_N(all.cuts),
        AQ_N(all.duplicates), AQ_N(all.outside), AQ_N(aq_counter_get(&c->unauthenticated)),
        AQ_N(aq_counter_get(&c->bad_hash)), AQ_N(aq_counter_get(&c->malformed)), AQ_N(all.bad_acks),
        AQ_N(aq_counter_get(&c->deferred)), AQ_N(aq_counter_get(&c->refused)),
        AQ_N(aq_counter_get(&c->errors)), AQ_N(aq_counter_get(&c->too_big)));
#undef AQ_N
}

/* --- shutdown --- */

/* Sends a disconnect to all peers, or only to those that have not disconnected. Returns true if all
 * of them have disconnected. */
static bool aq_udp_disconnect(bool all)
{
    bool left = true;

    for (struct aq_udp_peer *peer = aq_udp_first_peer(); peer != NULL; peer = peer->next_active) {
        if (!aq_udp_lock_peer(peer))
            continue;
        left = left && peer->link.disconnected;
        if (all || !peer->link.disconnected)
            aq_udp_link_disconnect(&peer->link, aq_now_ns());
        aq_lock_release(&peer->lock);
    }
    return left;
}

static bool aq_udp_have_all_left(void)
{
    for (struct aq_udp_peer *peer = aq_udp_first_peer(); peer != NULL; peer = peer->next_active) {
        bool left;

        aq_lock_acquire(&peer->lock);
        left = peer->link.disconnected;
        aq_lock_release(&peer->lock);
        if (!left)
            return false;
    }
    return true;
}

/* Waits for the peers to disconnect. All ranks call this at about the same time. */
static void aq_udp_await_peers(void)
{
    const struct timespec delay = { .tv_nsec = AQ_UDP_LOOK_NS };
    const uint64_t end = aq_now_ns() + AQ_UDP_AWAIT_NS;

    for (unsigned looks = 1; !aq_udp_have_all_left() && aq_now_ns() < end; looks++) {
        nanosleep(&delay, NULL);
        (void)aq_udp_drain_once(true);
        if (looks % AQ_UDP_AGAIN == 0)
            aq_udp_disconnect(false);
    }
    for (unsigned i = 0; i < AQ_UDP_LAST; i++)
        aq_udp_disconnect(true);
}

void aq_udp_exit(uint64_t max_ns)
{
    const struct timespec delay = { .tv_nsec = AQ_UDP_LOOK_NS };
    const uint64_t end = aq_now_ns() + max_ns;
    const bool goes_on = !aq_exit_in_progress(); /* the process */

    if (goes_on)
        aq_udp_flush_acks(aq_now_ns());
    while (!aq_udp_drain_once(true) && aq_now_ns() < end)
        nanosleep(&delay, NULL);
    aq_udp_disconnect(goes_on);
    if (goes_on)
        aq_udp_await_peers();
    if (aq_env_bool(AQ_ENV_AQ_UDP_STATS))
        aq_udp_report();
}

/* --- freeing --- */

void aq_udp_fini(void)
{
    aq_udp_flush_timer_fini();
    aq_udp_peers_fini();
    aq_udp_recv_fini();
    aq_udp_inject_fini();
    aq_udp_buf_fini();
    aq_udp_sock_close();
    free((void *)(uintptr_t)aq_udp.peers);
}
