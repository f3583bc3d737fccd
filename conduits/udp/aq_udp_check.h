/*
 * aq_udp_check.h - decides whether a peer is lost, from what the network reports about it.
 *
 * Anybody can forge the network's notes ("port unreachable", "host unreachable"), and a true note
 * may be about an outage of one second. A note therefore only starts a check: control datagrams
 * probe the peer, which answers them when it polls. A note is verified if it quotes one of these
 * probes with its keyed hash, which shows that the probe was refused. Each probe counts once. A
 * peer is lost if verified notes arrive for a bounded time without a gap while nothing arrives from
 * the peer. A peer that computes and does not answer is not lost: its host accepts our datagrams
 * silently.
 *
 * Knows     no sockets and no clock: time is an argument
 * Threads   aq_udp_check_note() and aq_udp_check_verified(): any; the others under the peer's lock
 * Promise   notes that quote no probe of this rank never lose a peer, whatever they say
 * Uses      nothing. See aq_udp_peer.c. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_UDP_CHECK_H
#define AQ_UDP_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AQ_UDP_CHECK_PROBES 8u /* probes whose hashes are kept */
/* time for the notice of the shutdown to arrive first */
#define AQ_UDP_REFUSED_NS     UINT64_C(5000000000)
#define AQ_UDP_UNREACHABLE_NS UINT64_C(10000000000)

enum aq_udp_note { AQ_UDP_NOTE_NONE, AQ_UDP_NOTE_REFUSED, AQ_UDP_NOTE_UNREACHABLE };

struct aq_udp_check {
    _Atomic uint64_t probe[AQ_UDP_CHECK_PROBES]; /* hashes; 0: none, or already quoted by a note */
    atomic_int hint, verified;                   /* enum aq_udp_note, since the last step */
    uint64_t begun_ns;     /* first hint, or first verified note of this kind; 0: no check */
    uint64_t probe_ns;     /* next probe */
    uint64_t verified_ns;  /* last verified note; begun_ns if there is none */
    uint32_t count;        /* verified notes */
    uint32_t probed;       /* probes sent */
    enum aq_udp_note kind; /* of the verified notes */
};

/** aq_udp_check_note - the network has sent a note. quoted: the hash of the datagram that the note
 * quotes, or 0 */
void aq_udp_check_note(struct aq_udp_check *check, enum aq_udp_note note, uint64_t quoted);

/** aq_udp_check_verified - this host's own kernel has reported the peer as unreachable. */
void aq_udp_check_verified(struct aq_udp_check *check, enum aq_udp_note note);

/** aq_udp_check_probed - a control datagram with this hash is about to leave. */
void aq_udp_check_probed(struct aq_udp_check *check, uint64_t hash);

/**
 * aq_udp_check_step - evaluate the notes since the last step.
 * last_seen_ns  when the last datagram of the peer arrived
 * waits     something is unacknowledged. If not, refusals are ignored: the peer may have shut down
 *           in order
 * Returns true if a probe is to be sent now.
 */
bool aq_udp_check_step(struct aq_udp_check *check, uint64_t now_ns, uint64_t last_seen_ns,
                       bool waits);

/** aq_udp_check_lost - returns why the peer is lost, or AQ_UDP_NOTE_NONE. */
enum aq_udp_note aq_udp_check_lost(const struct aq_udp_check *check);

/** aq_udp_check_deadline - returns when the next step is due; UINT64_MAX: after the next note. */
static inline uint64_t aq_udp_check_deadline(const struct aq_udp_check *check)
{
    return check->begun_ns == 0 ? UINT64_MAX : check->probe_ns;
}

#endif
