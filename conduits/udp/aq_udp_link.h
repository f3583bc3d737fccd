/*
 * aq_udp_link.h - the reliable engine between two ranks: sequence numbers, acknowledgements, loss
 * recovery, congestion control.
 *
 * A link knows neither sockets nor clocks. Time is an argument (ns of any monotonic clock), and
 * datagrams leave through a callback, so that tests can run links over a simulated network. The
 * link reads no frames except its own acknowledgements, and computes no hashes.
 *
 * No credits (core/aq_credit.h): the network loses and reorders, so what limits a sender is in
 * bytes, and follows from acknowledgements, the round trip and losses.
 *
 * Owner     queues datagrams with aq_udp_link_add() and fills them in. Calls aq_udp_link_pump() to
 *           send what the windows admit, and again after it has passed on received datagrams. Calls
 *           aq_udp_link_timer() when aq_udp_link_deadline() has passed
 * Receive   decode the header -> aq_udp_link_expand() -> check the hash over aq_udp_link_above() ->
 *           aq_udp_link_receive() -> if AQ_UDP_NEW: process the frames; for the RMA channel then
 *           aq_udp_link_placed() -> aq_udp_link_pump()
 * Threads   every call under the owner's lock of this link; callbacks run under it too
 * Promise   a datagram is NEW once, whatever the network does. A queued datagram is reported to
 *           acked() after the peer has taken it over; on the RMA channel after its data is in place
 * Uses      aq_udp_wire.h. SPDX-License-Identifier: BSD-3-Clause
 * See       aq_udp_link.c for the reasons, docs/design/udp.md
 */
#ifndef AQ_UDP_LINK_H
#define AQ_UDP_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_platform.h"
#include "conduits/udp/aq_udp_wire.h"

/* The settings that all links of a process share. */
struct aq_udp_link_config {
    uint32_t
        window[AQ_UDP_CHANNELS]; /* datagrams queued or unacknowledged, at most AQ_UDP_WINDOW */
    /* silence before the first probe, while the round trip is unknown */
    uint64_t probe_first_ns;
    uint64_t probe_min_ns, probe_max_ns;
    double probe_backoff;  /* factor between the delays of two probes */
    uint64_t ack_delay_ns; /* longest time that an acknowledgement waits for data */
    uint64_t first_seq;    /* 0 except in tests */
};

enum aq_udp_tx_state {
    AQ_UDP_TX_FREE,
    AQ_UDP_TX_QUEUED,
    AQ_UDP_TX_FLIGHT,
    AQ_UDP_TX_LOST,
    AQ_UDP_TX_ACKED
};

/* A datagram of this rank that is not acknowledged. The owner fills in the first part. */
struct aq_udp_tx {
    /* AQ_UDP_HEADER bytes for the link, then frames; belongs to the owner, valid until acked() */
    uint8_t *head;
    const void *body; /* data behind the head, in the client's memory, or NULL */
    void *tag;        /* the owner's */
    uint32_t head_len, body_len;
    uint32_t count; /* the owner's */
    bool urgent;    /* the client waits for this acknowledgement: ask for it at once */
    bool padded;    /* body is padding, which is not retransmitted */
    /* the link's */
    uint8_t state; /* enum aq_udp_tx_state */
    uint8_t sends; /* times it was sent, up to 255 */
    uint64_t sent; /* tick of the last transmission */
};

/* A datagram for output(). head begins with a header that is complete but for the hash. */
struct aq_udp_packet {
    uint8_t *head;
    const void *body;
    uint32_t head_len, body_len;
    uint64_t seq;    /* all 64 bits */
    uint64_t above;  /* aq_udp_above() of the header, for the hash */
    uint8_t channel; /* AQ_UDP_CONTROL: head is valid only during the call */
    bool again;      /* a retransmission */
};

struct aq_udp_link;

struct aq_udp_link_ops {
    /* Sends a batch: packets of one size, the last perhaps smaller. Returns how many were taken;
     * fewer than count if there is no space now. A taken packet that is lost is the link's to
     * recover. */
    unsigned (*output)(struct aq_udp_link *link, const struct aq_udp_packet *packets,
                       unsigned count);
    /* A datagram is acknowledged. tx is valid during the call; its ring slot is free afterwards. */
    void (*acked)(struct aq_udp_link *link, enum aq_udp_channel channel, struct aq_udp_tx *tx);
};

#define AQ_UDP_GSO_BATCH 64    /* packets in a call of output() */
#define AQ_UDP_GSO_BYTES 65000 /* bytes of a batch of more than one */

struct aq_udp_channel_tx {
    struct aq_udp_tx *ring; /* [mask + 1], by number; grown as needed */
    uint32_t mask;
    uint32_t lost;           /* records in state LOST */
    uint64_t una, next, end; /* una..next: were sent; next..end: queued */
    bool open;               /* the last queued record may still grow, so it is not sent yet */
};

struct aq_udp_channel_rx {
    /* next: all numbers below are in place; top: none from here on has arrived */
    uint64_t next, top;
    uint64_t claimed[AQ_UDP_SACK_WORDS], placed[AQ_UDP_SACK_WORDS]; /* bit: number % window */
};

/* Statistics of a link. Any thread may read them; they are exact only under the lock. */
struct aq_udp_link_counts {
    uint64_t sent, sent_bytes, resent, controls, probes;
    uint64_t received, duplicates, outside, late, bad_acks; /* late: after the link's end */
    uint64_t lost, spurious, cuts;
};

struct aq_udp_link {
    const struct aq_udp_link_config *config;
    const struct aq_udp_link_ops *ops;
    void *owner;
    uint32_t src, dst; /* jobranks */
    uint32_t mtu;      /* largest datagram, bytes, a multiple of 16; may change at any time */
    /* bytes that the peer may have in flight to this rank; may change at any time */
    uint32_t rwnd_advertised;
    bool disconnected; /* the peer has disconnected, or is abandoned */

    struct aq_udp_channel_tx tx[AQ_UDP_CHANNELS];
    struct aq_udp_channel_rx rx[AQ_UDP_CHANNELS];
    uint64_t control_next,
        control_seen; /* control channel: next number to send; next number expected */

    /* rates: bytes */
    uint64_t in_flight, channel_flight[AQ_UDP_CHANNELS], cwnd, ssthresh, rwnd;
    uint64_t since_asked; /* bytes sent since an acknowledgement was last requested */
    uint64_t cut;         /* tick of the last reduction; 0: none */
    bool was_full;        /* the window has recently blocked something */
    bool was_stuck;       /* the window blocked bulk data at the last attempt */

    /* round trip, ns; 0: unknown */
    uint64_t srtt, rttvar, min_rtt, last_rtt;
    uint32_t reo_mult; /* multiplier of the tolerance of reordering */

    /* time */
    bool seen;        /* a datagram has arrived: ts_echo is valid */
    uint32_t ts_echo; /* newest timestamp of the peer */
    uint64_t last_ts_echo,
        /* own timestamps that came back, in full: of the last sample, of the last loss search */
        loss_ts_echo;
    uint64_t ts_echo_ns; /* when it came */
    /* of the last datagram received, sent; 0: never */
    uint64_t last_seen_ns, sent_ns;
    /* since when an answer of the peer is pending; 0: none is */
    uint64_t silent_ns;
    uint64_t ack_ns, loss_ns, probe_ns, retry_ns; /* deadlines; 0: none */
    uint32_t probes;                              /* probes since the peer's last datagram */
    uint32_t placing;                             /* claimed, not placed yet */
    bool refusing;                                /* the last request that arrived was refused */
    bool peer_full;                               /* the peer refuses requests */
    /* bytes received since this rank's last acknowledgement */
    uint64_t unacked_bytes;
    bool ack_now;

    struct aq_udp_link_counts counts;
};

/* Timestamps are compared as full ticks; the 32 bits on the wire wrap after 73 minutes. */
static inline uint64_t aq_udp_tick(uint64_t now_ns)
{
    return now_ns >> 10;
}

/** aq_udp_link_init - rwnd: bytes that the peer may have in flight to this rank. Allocates nothing
 * yet. */
void aq_udp_link_init(struct aq_udp_link *link, const struct aq_udp_link_config *config,
                      const struct aq_udp_link_ops *ops, void *owner, uint32_t src, uint32_t dst,
                      uint32_t mtu, uint32_t rwnd);

/** aq_udp_link_fini - frees the rings. Queued datagrams are dropped without acked(). */
void aq_udp_link_fini(struct aq_udp_link *link);

/** aq_udp_link_free_slots - returns how many datagrams may be queued on a channel. */
uint32_t aq_udp_link_free_slots(const struct aq_udp_link *link, enum aq_udp_channel channel);

/**
 * aq_udp_link_add - queue a datagram. The caller fills in head, body, tag and their lengths.
 * Pointers to records are valid until the next add. The channel's open record, if any, is closed.
 * Returns NULL if memory is exhausted or no slot is free.
 */
struct aq_udp_tx *aq_udp_link_add(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_open - keeps the last queued record unsent, so that more frames can join it. */
void aq_udp_link_open(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_opened - returns the open record of a channel, or NULL. */
struct aq_udp_tx *aq_udp_link_opened(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_close - closes the open records of all channels: they may be sent. */
void aq_udp_link_close(struct aq_udp_link *link);

/** aq_udp_link_move_bodies - the bodies of the last count datagrams of a channel, which began at
 * `from`, have been copied and now begin at `to`. */
void aq_udp_link_move_bodies(struct aq_udp_link *link, enum aq_udp_channel channel, uint32_t count,
                             const void *from, const void *to);

/** aq_udp_link_pump - sends what may be sent now: retransmissions, queued datagrams,
 * acknowledgements. */
void aq_udp_link_pump(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_ack - sends an acknowledgement if one is pending, due or not. */
void aq_udp_link_ack(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_disconnect - tells the peer that this rank shuts down. */
void aq_udp_link_disconnect(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_probe - sends a control datagram, which a peer that polls answers. */
void aq_udp_link_probe(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_timer - serves deadlines that have passed, then pumps. */
void aq_udp_link_timer(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_deadline - returns when aq_udp_link_timer() is to be called; UINT64_MAX: never. */
uint64_t aq_udp_link_deadline(const struct aq_udp_link *link);

/** aq_udp_link_expand - returns the full 64-bit number of an arriving datagram. */
uint64_t aq_udp_link_expand(const struct aq_udp_link *link, uint8_t channel, uint32_t seq);

/** aq_udp_link_above - returns the upper halves of the numbers that the hash of an arriving
 * datagram covers. seq: all 64 bits of its own number. */
uint64_t aq_udp_link_above(const struct aq_udp_link *link, const struct aq_udp_header *header,
                           uint64_t seq);

enum aq_udp_verdict {
    AQ_UDP_NEW,       /* data that has not arrived before: the caller processes the frames */
    AQ_UDP_SEEN,      /* a control datagram, processed */
    AQ_UDP_DUPLICATE, /* a repetition; on the control channel also anything older than the newest */
    AQ_UDP_OUTSIDE,   /* the number is outside the window */
    AQ_UDP_REFUSED    /* new, but take was false: the sender will retransmit it */
};

/**
 * aq_udp_link_receive - process a datagram whose hash is right and whose frames are well-formed.
 * datagram  all of its len bytes; read only on the control channel
 * take      false: no space for the data; only the acknowledgements are processed
 * A NEW datagram of channel REQUEST or REPLY counts as taken over at once, one of RMA when
 * aq_udp_link_placed() is called.
 */
enum aq_udp_verdict aq_udp_link_receive(struct aq_udp_link *link, uint64_t now_ns,
                                        const struct aq_udp_header *header, uint64_t seq,
                                        const uint8_t *datagram, size_t len, bool take);

/** aq_udp_link_placed - the data of a NEW datagram of the RMA channel is in its place. */
void aq_udp_link_placed(struct aq_udp_link *link, uint64_t seq);

/** aq_udp_link_is_idle - returns true if nothing is queued or unacknowledged. */
bool aq_udp_link_is_idle(const struct aq_udp_link *link);

/** aq_udp_link_find_lost - for the engine's two files only: marks as lost what was sent before
 * loss_ts_echo and is later than the tolerance allows. now_ns 0: the tolerance has passed. */
void aq_udp_link_find_lost(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_arm_probe - for the engine's two files only: something that must be answered is in
 * flight; sets the time of the next probe. */
void aq_udp_link_arm_probe(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_abandon - the peer is lost or has shut down: everything counts as acknowledged,
 * nothing is sent any more. */
void aq_udp_link_abandon(struct aq_udp_link *link);

#endif
