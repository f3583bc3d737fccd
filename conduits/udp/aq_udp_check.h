/*
 * aq_udp_check.h - is a peer lost? What the network says of it, and what of that is believed.
 *
 * Anybody can forge the network's notes ("port unreachable", "host unreachable"), and a true one
 * may be about an outage of a second. So a note starts a check: control datagrams that probe the
 * peer, which answers if it polls. A note that quotes one of these probes, with its keyed hash, is
 * verified: this datagram was turned back. Each probe counts once. A peer is lost if verified
 * notes follow each other for its time without a gap and the peer is not heard; a peer that
 * computes and does not answer is not lost, since its host takes what we send without a word.
 *
 * Knows     no sockets, no clock: time is handed in
 * Threads   aq_udp_check_note() and aq_udp_check_verified() any; the others under the peer's lock
 * Promise   no note that quotes no probe of ours, whatever it says and how often, loses a peer
 * Uses      nothing. See aq_udp_peer.c. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_UDP_CHECK_H
#define AQ_UDP_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AQ_UDP_CHECK_PROBES 8u /* that we remember */
/* for the news that the job ends to arrive here */
#define AQ_UDP_REFUSED_NS     UINT64_C(5000000000)
#define AQ_UDP_UNREACHABLE_NS UINT64_C(10000000000)

enum aq_udp_note { AQ_UDP_NOTE_NONE, AQ_UDP_NOTE_REFUSED, AQ_UDP_NOTE_UNREACHABLE };

struct aq_udp_check {
    _Atomic uint64_t probe[AQ_UDP_CHECK_PROBES]; /* hashes; 0: none, or it has counted */
    atomic_int hint, verified;                   /* enum aq_udp_note, since the last step */
    uint64_t begun_ns;     /* first hint, or first verified note of this kind; 0: no check */
    uint64_t probe_ns;     /* next probe */
    uint64_t verified_ns;  /* last verified note; begun_ns if there is none */
    uint32_t count;        /* verified notes */
    uint32_t probed;       /* probes sent */
    enum aq_udp_note kind; /* of the verified notes */
};

/** aq_udp_check_note - the network says something.
 *  quoted  the hash of the datagram that it quotes, 0: none */
void aq_udp_check_note(struct aq_udp_check *check, enum aq_udp_note note, uint64_t quoted);

/** aq_udp_check_verified - our own kernel says so. */
void aq_udp_check_verified(struct aq_udp_check *check, enum aq_udp_note note);

/** aq_udp_check_probed - a control datagram with this hash leaves. */
void aq_udp_check_probed(struct aq_udp_check *check, uint64_t hash);

/**
 * aq_udp_check_step - look at what has been said since the last step.
 * last_seen_ns  when the peer was last heard
 * waits     something is unacknowledged; if not, a refusal is of no interest: the peer may have
 *           left in order
 * Returns true if a probe is to be sent now.
 */
bool aq_udp_check_step(struct aq_udp_check *check, uint64_t now_ns, uint64_t last_seen_ns,
                       bool waits);

/** aq_udp_check_lost - what the peer is lost by, or AQ_UDP_NOTE_NONE. */
enum aq_udp_note aq_udp_check_lost(const struct aq_udp_check *check);

/** aq_udp_check_deadline - when the next step is due; UINT64_MAX: not before the next note. */
static inline uint64_t aq_udp_check_deadline(const struct aq_udp_check *check)
{
    return check->begun_ns == 0 ? UINT64_MAX : check->probe_ns;
}

#endif
