/*
 * aq_udp_peer.c - the state of a remote rank: first contact, flushing, timers, loss of a peer.
 *
 * A peer is made when this rank first sends to it, or when a datagram with a right hash arrives
 * from it; before that it costs one pointer. Its address is always the one that it published in the
 * modex, never the source address of a datagram: a replayed datagram cannot divert traffic.
 *
 * Lost      silence is no evidence: a rank that computes for an hour does not poll and does not
 *           answer. The evidence comes from the network. The peer's host refuses datagrams when the
 *           process has ended (ICMP port unreachable); routers and neighbors do so when the host
 *           is down. aq_udp_check.h says which of these notes are believed. A rank that shut down
 *           in order and whose disconnect was lost looks the same, and a launcher reports a lost
 *           rank more precisely. Refusals must therefore follow each other for AQ_UDP_REFUSED_NS
 *           while something is unacknowledged, and the job must not be shutting down by then. An
 *           unreachable host has AQ_UDP_UNREACHABLE_NS to come back. A host that stops without any
 *           note is detected by the launcher's heartbeats. Silence counts only if the user sets
 *           GASNET_REQUESTTIMEOUT_MAX, which says that all ranks poll that often
 * Owns      the peers, until the job ends; the list of peers with something to flush
 * Threads   any; the lists have their own locks
 * Uses      aq_udp.h, other/spawn. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conduits/udp/aq_udp.h"
#include "core/aq_exit.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn.h"

#define AQ_NEVER_SEEN_NS UINT64_C(20000000000) /* at start-up, when every rank polls */
/* how long a thread may wait for a rank that has disconnected */
#define AQ_MISSED_NS      UINT64_C(2000000000)
#define AQ_WIDEN_BYTES    4096u /* bytes sent to a peer before longer datagrams are tried */
#define AQ_WIDEN_TRIES    3u    /* lost padded datagrams after which a size is given up */
#define AQ_TOGETHER_NS    3000u /* calls at a smaller distance form a run */
#define AQ_TOGETHER_BYTES 4096u /* largest datagram that collects several frames */
#define AQ_TOGETHER_PUTS  32u   /* puts and gets that leave without a poll */
#define AQ_ALONE          3u    /* messages of a run that leave at once */

const char *aq_udp_address_text(const union aq_udp_address *address, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
        snprintf(buf, size, "%s:%u", host, ntohs(address->v4.sin_port));
    } else {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
        snprintf(buf, size, "[%s]:%u", host, ntohs(address->v6.sin6_port));
    }
    return buf;
}

/* --- first contact --- */

bool aq_udp_peer_is_same_host(const struct aq_udp_peer *peer)
{
    return peer->address.any.sa_family == AF_INET
               ? memcmp(&peer->address.v4.sin_addr, &aq_udp.self.v4.sin_addr, 4) == 0
               : memcmp(&peer->address.v6.sin6_addr, &aq_udp.self.v6.sin6_addr, 16) == 0;
}

/* Looks up the peer's address and its datagram size limit. Returns the size to begin with. */
static uint32_t aq_udp_peer_find(struct aq_udp_peer *peer)
{
    struct aq_udp_modex modex;
    uint32_t mtu;

    if (aq_spawn_lookup(peer->rank, &modex, sizeof(modex)) != AQ_OK)
        aq_fatal("udp: the address of rank %u cannot be learnt from the launcher", peer->rank);
    if (modex.family == 4) {
        peer->address.v4.sin_family = AF_INET;
        memcpy(&peer->address.v4.sin_addr, modex.address, 4);
        memcpy(&peer->address.v4.sin_port, modex.port, 2);
    } else {
        peer->address.v6.sin6_family = AF_INET6;
        memcpy(&peer->address.v6.sin6_addr, modex.address, 16);
        memcpy(&peer->address.v6.sin6_port, modex.port, 2);
    }
    peer->address_len = aq_udp_address_len(&peer->address);
    if (peer->address.any.sa_family != aq_udp.self.any.sa_family)
        aq_fatal("udp: rank %u has an address of IPv%u and this rank one of the other kind; choose "
                 "the same "
                 "network on all hosts with GASNET_UDP_INTERFACE, for example GASNET_UDP_INTERFACE="
                 "10.0.0.0/24",
                 peer->rank, modex.family);
    mtu = (uint32_t)modex.mtu[0] << 8 | modex.mtu[1];
    mtu = mtu < aq_udp.mtu ? mtu : aq_udp.mtu;
    peer->mtu_goal = mtu < AQ_UDP_MIN_MTU ? AQ_UDP_MIN_MTU : mtu & ~15u;
    return aq_udp.mtu_named || aq_udp_peer_is_same_host(peer) ? peer->mtu_goal : AQ_UDP_MIN_MTU;
}

static unsigned aq_udp_output(struct aq_udp_link *link, const struct aq_udp_packet *packets,
                              unsigned count)
{
    struct aq_udp_peer *peer = link->owner;

    for (unsigned i = 0; i < count; i++) {
        aq_udp_auth_sign(peer->key_out, &packets[i]);
        if (packets[i].channel == AQ_UDP_CONTROL)
            aq_udp_check_probed(&peer->check, aq_udp_get64(packets[i].head + AQ_UDP_HASH_AT));
    }
    if (AQ_UNLIKELY(aq_udp.inject))
        return aq_udp_inject_send(peer, packets, count);
    return aq_udp_sock_send(peer, packets, count);
}

/* --- path MTU --- */

/* The next smaller usual datagram size. */
static uint32_t aq_udp_mtu_below(size_t len)
{
    static const uint32_t sizes[] = { 32768, 16384, 8944, 4064, 1472, 1440, 1392 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i] < len)
            return sizes[i];
    return AQ_UDP_MIN_MTU;
}

void aq_udp_peer_narrow(struct aq_udp_peer *peer, size_t len)
{
    const uint32_t below = aq_udp_mtu_below(len);

    aq_counter_add(&aq_udp.counts.too_big, 1);
    if (below < peer->mtu_goal)
        peer->mtu_goal = below;
    if (below < peer->link.mtu)
        peer->link.mtu = below;
}

/* Tests whether the path carries what both interfaces carry. Some paths drop long datagrams without
 * a note, so a padded datagram tests the size, as soon as the peer gets enough data to profit. */
static void aq_udp_peer_widen(struct aq_udp_peer *peer)
{
    static const uint8_t zeros[AQ_UDP_MAX_DATAGRAM];
    struct aq_udp_tx *tx;

    if (peer->mtu_asked || peer->link.disconnected
        || (peer->link.counts.sent_bytes < AQ_WIDEN_BYTES && peer->own.first == NULL
            && peer->serve.first == NULL))
        return;
    tx = aq_udp_link_add(&peer->link, AQ_UDP_RMA);
    if (tx == NULL)
        return;
    tx->head = aq_udp_buf_take(AQ_UDP_HEADER + 8);
    tx->head_len = (uint32_t)(aq_udp_pad_encode(tx->head + AQ_UDP_HEADER) - tx->head);
    tx->body = zeros;
    tx->body_len = peer->mtu_goal - tx->head_len;
    tx->padded = tx->urgent = true;
    peer->mtu_asked = true;
}

static void aq_udp_peer_widened(struct aq_udp_peer *peer, const struct aq_udp_tx *tx)
{
    const uint32_t len = tx->head_len + tx->body_len;

    peer->mtu_asked = false;
    if (tx->body_len != 0) {
        peer->link.mtu = len < peer->mtu_goal ? len : peer->mtu_goal;
        peer->mtu_goal = peer->link.mtu;
    } else if (++peer->mtu_tries == AQ_WIDEN_TRIES) {
        AQ_LOG(INFO, UDP, "datagrams of %u bytes do not reach rank %u", peer->mtu_goal, peer->rank);
        peer->mtu_goal = aq_udp_mtu_below(peer->mtu_goal);
        peer->mtu_tries = 0;
    }
}

/* Several records may point into one payload buffer, so its references are counted. */
static void aq_udp_acked(struct aq_udp_link *link, enum aq_udp_channel channel,
                         struct aq_udp_tx *tx)
{
    struct aq_udp_peer *peer = link->owner;

    if (tx->padded) {
        aq_udp_peer_widened(peer, tx);
    } else if (channel == AQ_UDP_RMA) {
        aq_udp_rma_acked(peer, tx);
    } else {
        peer->handled += tx->count;
        if (tx->tag != NULL && --*(uint32_t *)tx->tag == 0)
            aq_udp_buf_give(tx->tag);
    }
    aq_udp_buf_give(tx->head);
    tx->head = NULL;
}

static const struct aq_udp_link_ops aq_udp_link_ops = { .output = aq_udp_output,
                                                        .acked = aq_udp_acked };

/* Returns the share of the socket's receive buffer that a peer may fill. The buffer serves all
 * ranks that send at the same time; it is divided as if a few did. The share is advertised in every
 * header. */
static uint32_t aq_udp_peer_quota(void)
{
    const uint32_t sharers = aq_udp.peer_count > 8 ? 8 : aq_udp.peer_count;
    const uint32_t quota = aq_udp.rx_space / sharers;

    for (struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_relaxed);
         peer != NULL; peer = peer->next_active) {
        aq_lock_acquire(&peer->lock);
        peer->link.rwnd_advertised = quota;
        aq_lock_release(&peer->lock);
    }
    return quota;
}

struct aq_udp_peer *aq_udp_peer_make(gex_Rank_t rank)
{
    struct aq_udp_peer *peer;
    uint32_t mtu;
    char text[64];

    aq_lock_acquire(&aq_udp.make_lock);
    peer = aq_udp_peer_look(rank);
    if (peer == NULL) {
        peer = aligned_alloc(AQ_CACHE_LINE, aq_round_up(sizeof(*peer), AQ_CACHE_LINE));
        if (peer == NULL)
            aq_fatal("udp: no memory for a peer: %zu bytes", sizeof(*peer));
        memset(peer, 0, sizeof(*peer));
        peer->rank = rank;
        mtu = aq_udp_peer_find(peer);
        aq_udp_auth_key(aq_job.rank, rank, peer->key_out);
        aq_udp_auth_key(rank, aq_job.rank, peer->key_in);
        peer->own.last = &peer->own.first;
        peer->serve.last = &peer->serve.first;
        aq_udp.peer_count++;
        aq_udp_link_init(&peer->link, &aq_udp.config, &aq_udp_link_ops, peer, aq_job.rank, rank,
                         mtu, aq_udp_peer_quota());
        /* relaxed: under the lock; release: a reader that finds the peer sees all of it */
        peer->next_active = atomic_load_explicit(&aq_udp.active, memory_order_relaxed);
        atomic_store_explicit(&aq_udp.active, peer, memory_order_release);
        atomic_store_explicit(&aq_udp.peers[rank], peer, memory_order_release);
        AQ_LOG(DEBUG, UDP, "rank %u is at %s", rank,
               aq_udp_address_text(&peer->address, text, sizeof(text)));
    }
    aq_lock_release(&aq_udp.make_lock);
    return peer;
}

/* --- flushing --- */

void aq_udp_peer_pump(struct aq_udp_peer *peer, uint64_t now_ns)
{
    if (AQ_UNLIKELY(peer->link.mtu < peer->mtu_goal))
        aq_udp_peer_widen(peer);
    aq_udp_rma_feed(peer);
    aq_udp_link_close(&peer->link);
    aq_udp_link_pump(&peer->link, now_ns);
    aq_udp_note_deadline(aq_udp_link_deadline(&peer->link));
}

void aq_udp_peer_mark(struct aq_udp_peer *peer)
{
    if (peer->dirty)
        return;
    peer->dirty = true;
    aq_lock_acquire(&aq_udp.dirty_lock);
    peer->next_dirty = atomic_load_explicit(&aq_udp.dirty, memory_order_relaxed);
    atomic_store_explicit(&aq_udp.dirty, peer, memory_order_relaxed);
    aq_lock_release(&aq_udp.dirty_lock);
}

static struct aq_udp_peer *aq_udp_dirty_pop(void)
{
    struct aq_udp_peer *peer;

    /* relaxed: a peer that another thread marks is flushed by that thread */
    if (atomic_load_explicit(&aq_udp.dirty, memory_order_relaxed) == NULL)
        return NULL;
    aq_lock_acquire(&aq_udp.dirty_lock);
    peer = atomic_load_explicit(&aq_udp.dirty, memory_order_relaxed);
    if (peer != NULL)
        atomic_store_explicit(&aq_udp.dirty, peer->next_dirty, memory_order_relaxed);
    aq_lock_release(&aq_udp.dirty_lock);
    return peer;
}

void aq_udp_flush(uint64_t now_ns)
{
    struct aq_udp_peer *peer;

    while ((peer = aq_udp_dirty_pop()) != NULL) {
        aq_lock_acquire(&peer->lock);
        peer->dirty = false;
        aq_udp_peer_pump(peer, now_ns);
        aq_lock_release(&peer->lock);
    }
}

/* A message has left at once: the batches of other peers end with the next poll; in seq, where no
 * thread would send them if there is none, now. */
static inline void aq_udp_end_batches(uint64_t now_ns)
{
    /* relaxed: as in aq_udp_note_batch() */
    if (AQ_LIKELY(atomic_load_explicit(&aq_udp.send_batch, memory_order_relaxed) == 0))
        return;
    atomic_store_explicit(&aq_udp.send_batch, 0, memory_order_relaxed);
#if !AQ_THREADED
    aq_udp_flush(now_ns);
#else
    (void)now_ns;
#endif
}

/* A batch has grown: polls of sends defer, and count. */
static inline void aq_udp_note_batch(void)
{
    /* relaxed: a hint for this thread's own next poll */
    if (atomic_load_explicit(&aq_udp.send_batch, memory_order_relaxed) == 0)
        atomic_store_explicit(&aq_udp.send_batch, 1, memory_order_relaxed);
}

/* A single message leaves at once, and so do the next two. A message of a run, whose predecessors
 * are not even acknowledged, waits to be coalesced. It leaves at the next poll that is not part of
 * a send, after AQ_UDP_SEND_BATCH_MAX of those that are, or with the AQ_TOGETHER_PUTS-th put. */
void aq_udp_peer_queued(struct aq_udp_peer *peer, enum aq_udp_delay delay, uint64_t now_ns)
{
    const bool together = aq_udp.coalesce && (peer->run != 0 || peer->link.in_flight != 0)
                          && now_ns - peer->touched_ns < AQ_TOGETHER_NS;

    peer->run = together ? peer->run + 1 : 0;
    if (delay == AQ_UDP_NO_DELAY || peer->run < AQ_ALONE
        || (delay == AQ_UDP_DELAY_PUT && peer->run % AQ_TOGETHER_PUTS == 0)) {
        aq_udp_peer_pump(peer, now_ns);
        if (aq_udp.coalesce)
            peer->touched_ns = aq_now_ns(); /* the send call took some time */
        aq_udp_end_batches(now_ns);
        return;
    }
    peer->touched_ns = now_ns;
    if (!peer->dirty) { /* otherwise a flush of this peer is already pending */
        aq_udp_peer_mark(peer);
        aq_udp_flush_timer_note();
    }
    aq_udp_note_batch();
}

void aq_udp_flush_acks(uint64_t now_ns)
{
    aq_udp_flush(now_ns);
    for (struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active) {
        if (!aq_lock_try(&peer->lock))
            continue;
        aq_udp_link_ack(&peer->link, now_ns);
        aq_lock_release(&peer->lock);
    }
}

/* --- space for frames --- */

uint8_t *aq_udp_peer_reserve(struct aq_udp_peer *peer, enum aq_udp_channel channel, size_t size,
                             struct aq_udp_tx **tx_out)
{
    const size_t max = peer->link.mtu < AQ_TOGETHER_BYTES ? peer->link.mtu : AQ_TOGETHER_BYTES;
    struct aq_udp_tx *tx =
        /* never a record whose data lies in a separate buffer */
        aq_udp_link_opened(&peer->link, channel);
    size_t at = tx == NULL ? 0 : aq_udp_pad8(tx->head_len);

    if (tx != NULL && at + size <= max) {
        if (at + size > aq_udp_buf_size(tx->head)) {
            uint8_t *larger = aq_udp_buf_take(AQ_TOGETHER_BYTES);

            memcpy(larger, tx->head, tx->head_len);
            aq_udp_buf_give(tx->head);
            tx->head = larger;
        }
        memset(tx->head + tx->head_len, 0, at - tx->head_len);
    } else {
        tx = aq_udp_link_add(&peer->link, channel);
        if (tx == NULL)
            return NULL;
        at = AQ_UDP_HEADER;
        tx->head = aq_udp_buf_take(at + size);
    }
    tx->head_len = (uint32_t)(at + size);
    *tx_out = tx;
    return tx->head + at;
}

/* --- lost peers --- */

void aq_udp_peer_note(const union aq_udp_address *address, enum aq_udp_note note, uint64_t quoted)
{
    for (struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active) {
        const bool same = peer->address.any.sa_family != address->any.sa_family ? false
                          : address->any.sa_family == AF_INET
                              ? memcmp(&peer->address.v4.sin_addr, &address->v4.sin_addr, 4) == 0
                                    && peer->address.v4.sin_port == address->v4.sin_port
                              : memcmp(&peer->address.v6.sin6_addr, &address->v6.sin6_addr, 16) == 0
                                    && peer->address.v6.sin6_port == address->v6.sin6_port;

        if (same) {
            aq_udp_check_note(&peer->check, note, quoted);
            aq_udp_note_deadline(0);
        }
    }
}

static void aq_udp_peer_lost(struct aq_udp_peer *peer, const char *what, uint64_t since,
                             uint64_t now_ns)
{
    char why[400], text[64];

    /* the peer has only been faster, or the exit agreement reports it */
    if (aq_exit_in_progress()) {
        aq_udp_link_abandon(&peer->link);
        return;
    }
    snprintf(why, sizeof(why), "%s at %s for %.1f s; %llu datagrams sent again, %llu probes", what,
             aq_udp_address_text(&peer->address, text, sizeof(text)),
             (double)(now_ns - since) * 1e-9, (unsigned long long)peer->link.counts.resent,
             (unsigned long long)peer->link.counts.probes);
    aq_exit_peer_lost(peer->rank, why);
}

/* Lock held: notes start and feed the check. */
static void aq_udp_peer_look_at_notes(struct aq_udp_peer *peer, uint64_t now_ns)
{
    struct aq_udp_link *link = &peer->link;

    if (peer->fd > 0 && peer->check.begun_ns != 0)
        (void)aq_udp_sock_notes(peer->fd); /* the notes of this socket wake no poll */
    if (aq_udp_check_step(&peer->check, now_ns, link->last_seen_ns, link->in_flight != 0))
        aq_udp_link_probe(link, now_ns);
    aq_udp_note_deadline(aq_udp_check_deadline(&peer->check));
}

bool aq_udp_peer_is_refused(struct aq_udp_peer *peer, uint64_t now_ns)
{
    if (peer->link.disconnected)
        return false;
    aq_udp_peer_look_at_notes(peer, now_ns);
    return peer->check.begun_ns != 0 && peer->check.count != 0;
}

/* Lock held. */
static void aq_udp_peer_look_lost(struct aq_udp_peer *peer, uint64_t now_ns)
{
    const struct aq_udp_link *link = &peer->link;
    enum aq_udp_note lost;

    if (link->disconnected)
        return;
    aq_udp_peer_look_at_notes(peer, now_ns);
    lost = aq_udp_check_lost(&peer->check);
    if (lost == AQ_UDP_NOTE_REFUSED)
        aq_udp_peer_lost(peer,
                         "its process has ended, or a firewall rejects its packets: its port "
                         "answers as closed",
                         peer->check.begun_ns, now_ns);
    else if (lost == AQ_UDP_NOTE_UNREACHABLE)
        aq_udp_peer_lost(
            peer,
            link->last_seen_ns == 0
                ? "never reached; if hosts see each other by another network, name it with "
                  "GASNET_UDP_INTERFACE; no route to its host"
                : "no route to its host",
            peer->check.begun_ns, now_ns);
    if (AQ_UNLIKELY(!aq_job_has_started()) && link->last_seen_ns == 0 && link->silent_ns != 0
        && now_ns > link->silent_ns + AQ_NEVER_SEEN_NS)
        aq_udp_peer_lost(
            peer,
            "never answered, though ssh or the launcher reaches its host: a packet filter may "
            "drop UDP between the hosts, or GASNET_UDP_INTERFACE should name another network; no "
            "answer",
            link->silent_ns, now_ns);
    if (aq_udp.lost_after_ns != 0 && link->silent_ns != 0 && now_ns > link->silent_ns
        && now_ns - link->silent_ns >= aq_udp.lost_after_ns)
        aq_udp_peer_lost(peer, "no answer (GASNET_REQUESTTIMEOUT_MAX)", link->silent_ns, now_ns);
}

/* Everything that a rank sent before its disconnect has arrived by then. Operations that target it
 * afterwards never complete. */
void aq_udp_wait_look(gex_Rank_t rank)
{
    struct aq_udp_peer *peer = rank == GEX_RANK_INVALID ? NULL : aq_udp_peer_look(rank);
    uint64_t now_ns;
    bool missed;

    if (peer == NULL || aq_exit_in_progress())
        return;
    now_ns = aq_now_ns();
    aq_lock_acquire(&peer->lock);
    if (peer->link.disconnected && peer->missed_ns == 0)
        peer->missed_ns = now_ns;
    missed = peer->missed_ns != 0 && now_ns - peer->missed_ns >= AQ_MISSED_NS;
    aq_lock_release(&peer->lock);
    if (missed)
        aq_exit_peer_lost(rank, "it has left the job, and this rank waits for it");
}

/* --- timers --- */

void aq_udp_timers(uint64_t now_ns)
{
    /* relaxed: a thread that finds an earlier deadline in the meantime lowers it again */
    atomic_store_explicit(&aq_udp.deadline, UINT64_MAX, memory_order_relaxed);
    for (struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_acquire);
         peer != NULL; peer = peer->next_active) {
        if (!aq_lock_try(&peer->lock)) {
            /* another thread holds the lock: try again soon */
            aq_udp_note_deadline(now_ns + 50000);
            continue;
        }
        aq_udp_peer_look_lost(peer, now_ns);
        if (aq_udp_link_deadline(&peer->link) <= now_ns) {
            aq_udp_link_timer(&peer->link, now_ns);
        }
        aq_udp_note_deadline(aq_udp_link_deadline(&peer->link));
        aq_lock_release(&peer->lock);
    }
    if (AQ_UNLIKELY(aq_udp.inject))
        aq_udp_inject_timer(now_ns);
}

/* --- the end of the job --- */

static void aq_udp_frags_free(struct aq_udp_frag *frag)
{
    while (frag != NULL) {
        struct aq_udp_frag *next = frag->next;

        if (frag->base.type == AQ_UDP_F_MEDIUM_FRAG)
            aq_udp_buf_give(frag->base.payload);
        free(frag);
        frag = next;
    }
}

static void aq_udp_queue_free(struct aq_udp_queue *queue)
{
    while (queue->first != NULL) {
        struct aq_udp_xfer *next = queue->first->next;

        free(queue->first);
        queue->first = next;
    }
}

static void aq_udp_peer_free(struct aq_udp_peer *peer)
{
    aq_udp_link_abandon(&peer->link);
    aq_udp_link_fini(&peer->link);
    for (int channel = 0; channel < 2; channel++)
        aq_udp_frags_free(peer->frags[channel]);
    aq_udp_queue_free(&peer->own);
    aq_udp_queue_free(&peer->serve);
    free(peer->gets);
    if (peer->fd > 0)
        close(peer->fd);
    free(peer);
}

void aq_udp_peers_fini(void)
{
    /* relaxed: no other thread is here */
    struct aq_udp_peer *peer = atomic_load_explicit(&aq_udp.active, memory_order_relaxed);

    while (peer != NULL) {
        struct aq_udp_peer *next = peer->next_active;

        aq_udp_peer_free(peer);
        peer = next;
    }
}
