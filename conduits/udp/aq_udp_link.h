/*
 * aq_udp_link.h - the reliable engine between two ranks: numbers, acknowledgements, losses, rates.
 *
 * A link knows neither sockets nor clocks: time is handed in (ns of any monotonic clock), datagrams
 * go out through a function, so that tests run it over a simulated network. It neither looks at
 * frames (but for the acknowledgements, which are its own) nor computes hashes.
 *
 * Owner     queues datagrams with aq_udp_link_add() and fills them in; calls aq_udp_link_pump() to
 *           let go what may go, and again after it has handed over what came in; calls
 *           aq_udp_link_timer() when aq_udp_link_deadline() has passed
 * In        decode header -> aq_udp_link_expand() -> check the hash over aq_udp_link_above() ->
 *           aq_udp_link_receive() -> if AQ_UDP_NEW: deal with the frames, for the RMA channel then
 *           aq_udp_link_placed() -> aq_udp_link_pump()
 * Threads   every call under the owner's lock of this link; callbacks run under it too
 * Promise   a datagram is NEW once, whatever the network does; one that was queued is acknowledged
 *           (the callback acked()) after the other side has taken it over, RMA channel: after it is
 *           placed
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

/* What all links of a process have in common. */
struct aq_udp_link_config {
    uint32_t
        window[AQ_UDP_CHANNELS]; /* datagrams queued or unacknowledged, at most AQ_UDP_WINDOW */
    uint64_t probe_first_ns;     /* silence before a probe while the round trip is unknown */
    uint64_t probe_min_ns, probe_max_ns;
    double probe_backoff;  /* factor from one probe to the next */
    uint64_t ack_delay_ns; /* longest that an acknowledgement waits for data to ride on */
    uint64_t first_seq;    /* 0 but in tests */
};

enum aq_udp_tx_state {
    AQ_UDP_TX_FREE,
    AQ_UDP_TX_QUEUED,
    AQ_UDP_TX_FLIGHT,
    AQ_UDP_TX_LOST,
    AQ_UDP_TX_ACKED
};

/* A datagram of ours that is not acknowledged. The owner fills in the first part. */
struct aq_udp_tx {
    uint8_t *head;    /* AQ_UDP_HEADER bytes for the link, then frames; the owner's, till acked() */
    const void *body; /* what follows head, in the client's memory; NULL if nothing does */
    void *tag;        /* the owner's */
    uint32_t head_len, body_len;
    uint32_t count; /* the owner's */
    bool urgent;    /* somebody waits for the acknowledgement itself */
    bool padded;    /* the piece fills only: is not sent again */
    /* the link's */
    uint8_t state; /* enum aq_udp_tx_state */
    uint8_t sends; /* how often it left, up to 255 */
    uint64_t sent; /* tick of the last time */
};

/* A datagram on its way out; head begins with a complete header but for the hash. */
struct aq_udp_packet {
    uint8_t *head;
    const void *body;
    uint32_t head_len, body_len;
    uint64_t seq;    /* all of it */
    uint64_t above;  /* aq_udp_above(), for the hash */
    uint8_t channel; /* AQ_UDP_CONTROL: head is gone when the call returns */
    bool again;      /* not the first time */
};

struct aq_udp_link;

struct aq_udp_link_ops {
    /* Send a batch: packets of one size, the last perhaps smaller. Returns how many it took; less
     * than count if there is no room now. What the network then does to them is the link's
     * business. */
    unsigned (*output)(struct aq_udp_link *link, const struct aq_udp_packet *packets,
                       unsigned count);
    /* A datagram is acknowledged; tx is valid during the call, its ring slot free afterwards. */
    void (*acked)(struct aq_udp_link *link, enum aq_udp_channel channel, struct aq_udp_tx *tx);
};

#define AQ_UDP_GSO_BATCH 64    /* packets in a call of output() */
#define AQ_UDP_GSO_BYTES 65000 /* together, if more than one */

struct aq_udp_channel_tx {
    struct aq_udp_tx *ring; /* [mask + 1], by number; grown as needed */
    uint32_t mask;
    uint32_t lost;           /* records in state LOST */
    uint64_t una, next, end; /* una..next: were sent; next..end: queued */
    bool open;               /* the last queued one may still grow: it stays here */
};

struct aq_udp_channel_rx {
    uint64_t next, top; /* everything below next has been placed, nothing from top on has come */
    uint64_t claimed[AQ_UDP_SACK_WORDS], placed[AQ_UDP_SACK_WORDS]; /* bit: number % window */
};

/* What a link has seen; read by anybody, exact only under the lock. */
struct aq_udp_link_counts {
    uint64_t sent, sent_bytes, resent, controls, probes;
    uint64_t received, duplicates, outside, late, bad_acks; /* late: after the end of the link */
    uint64_t lost, spurious, cuts;
};

struct aq_udp_link {
    const struct aq_udp_link_config *config;
    const struct aq_udp_link_ops *ops;
    void *owner;
    uint32_t src, dst; /* jobranks */
    uint32_t mtu;      /* most bytes of a datagram, a multiple of 16; may change at any time */
    uint32_t rwnd_advertised; /* bytes the peer may have on the way to us; may change at any time */
    bool disconnected;        /* the peer has disconnected, or was given up */

    struct aq_udp_channel_tx tx[AQ_UDP_CHANNELS];
    struct aq_udp_channel_rx rx[AQ_UDP_CHANNELS];
    uint64_t control_next,
        control_seen; /* numbers on the control channel: next to send, next to come */

    /* rates: bytes */
    uint64_t in_flight, channel_flight[AQ_UDP_CHANNELS], cwnd, ssthresh, rwnd;
    uint64_t since_asked; /* sent since an acknowledgement was last asked for */
    uint64_t cut;         /* tick of the last reduction; 0: none */
    bool was_full;        /* the window held something back lately */
    bool was_stuck;       /* it did so when bulk data was last to be sent */

    /* round trip, ns; 0: unknown */
    uint64_t srtt, rttvar, min_rtt, last_rtt;
    uint32_t reo_mult; /* tolerance of reordering */

    /* time */
    bool seen;        /* a datagram has come: echo is valid */
    uint32_t ts_echo; /* the newest timestamp of the peer */
    uint64_t last_ts_echo,
        loss_ts_echo;    /* ours that came back, in full: of the last sample, of the last search */
    uint64_t ts_echo_ns; /* when it came */
    uint64_t last_seen_ns, sent_ns;               /* last; 0: never */
    uint64_t silent_ns;                           /* since when an answer is owed; 0: none is */
    uint64_t ack_ns, loss_ns, probe_ns, retry_ns; /* deadlines; 0: none */
    uint32_t probes;                              /* since the peer was last heard */
    uint32_t placing;                             /* claimed, not placed yet */
    bool refusing;                                /* the last request that came was refused */
    bool peer_full;                               /* the peer says the same */
    uint64_t unacked_bytes;                       /* that came since our last acknowledgement */
    bool ack_now;

    struct aq_udp_link_counts counts;
};

/* Ages are differences of full ticks; 32 bits of them travel, which is 73 minutes. */
static inline uint64_t aq_udp_tick(uint64_t now_ns)
{
    return now_ns >> 10;
}

/** aq_udp_link_init - room: bytes that the peer may have on its way to us. No memory is taken yet.
 * */
void aq_udp_link_init(struct aq_udp_link *link, const struct aq_udp_link_config *config,
                      const struct aq_udp_link_ops *ops, void *owner, uint32_t src, uint32_t dst,
                      uint32_t mtu, uint32_t rwnd);

/** aq_udp_link_fini - free the rings; what is queued is forgotten without acked(). */
void aq_udp_link_fini(struct aq_udp_link *link);

/** aq_udp_link_free_slots - how many datagrams may be queued on a channel. */
uint32_t aq_udp_link_free_slots(const struct aq_udp_link *link, enum aq_udp_channel channel);

/**
 * aq_udp_link_add - queue a datagram, if there is a free slot: the caller fills in head and all.
 * Pointers to records are valid until the next add. The channel's open record, if any, is closed.
 * Returns NULL if memory is out or there is no slot.
 */
struct aq_udp_tx *aq_udp_link_add(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_open - keep the last queued record back: more is put into it. */
void aq_udp_link_open(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_opened - the record that is open, or NULL. */
struct aq_udp_tx *aq_udp_link_opened(struct aq_udp_link *link, enum aq_udp_channel channel);

/** aq_udp_link_close - nothing more is put into the open records of all channels. */
void aq_udp_link_close(struct aq_udp_link *link);

/** aq_udp_link_move_bodies - the bodies of the last count datagrams of a channel, which were read
 *  from `from` on, are now the same bytes from `to` on. */
void aq_udp_link_move_bodies(struct aq_udp_link *link, enum aq_udp_channel channel, uint32_t count,
                             const void *from, const void *to);

/** aq_udp_link_pump - send what may be sent now: what was lost, what is queued, acknowledgements.
 * */
void aq_udp_link_pump(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_ack - send an acknowledgement if one is owed, due or not. */
void aq_udp_link_ack(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_disconnect - tell the peer that we leave. */
void aq_udp_link_disconnect(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_probe - send a control datagram, which a peer that polls answers. */
void aq_udp_link_probe(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_timer - serve deadlines that have passed, then pump. */
void aq_udp_link_timer(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_deadline - when aq_udp_link_timer() wants to be called; UINT64_MAX: never. */
uint64_t aq_udp_link_deadline(const struct aq_udp_link *link);

/** aq_udp_link_expand - the full number of an arriving datagram. */
uint64_t aq_udp_link_expand(const struct aq_udp_link *link, uint8_t channel, uint32_t seq);

/** aq_udp_link_above - what the hash of an arriving datagram covers of its numbers besides the
 *  header; seq: all of its own. */
uint64_t aq_udp_link_above(const struct aq_udp_link *link, const struct aq_udp_header *header,
                           uint64_t seq);

enum aq_udp_verdict {
    AQ_UDP_NEW,       /* data that had not come before: the frames are the caller's to deal with */
    AQ_UDP_SEEN,      /* a control datagram, all done */
    AQ_UDP_DUPLICATE, /* came before, or on the control channel something newer did */
    AQ_UDP_OUTSIDE,   /* a number too far ahead to be true */
    AQ_UDP_REFUSED    /* new, but take was false: it will come again */
};

/**
 * aq_udp_link_receive - a datagram whose hash is right and whose frames are well-formed.
 * datagram  all of its len bytes; read only on the control channel
 * take      false: do not take data over (no place for it), only look at the acknowledgements
 * A NEW datagram of channels REQUEST and REPLY counts as taken over at once; one of RMA when
 * aq_udp_link_placed() is called.
 */
enum aq_udp_verdict aq_udp_link_receive(struct aq_udp_link *link, uint64_t now_ns,
                                        const struct aq_udp_header *header, uint64_t seq,
                                        const uint8_t *datagram, size_t len, bool take);

/** aq_udp_link_placed - a NEW datagram of the RMA channel is where it belongs. */
void aq_udp_link_placed(struct aq_udp_link *link, uint64_t seq);

/** aq_udp_link_is_idle - nothing queued, nothing unacknowledged. */
bool aq_udp_link_is_idle(const struct aq_udp_link *link);

/** aq_udp_link_find_lost - between the engine's two files: what was sent before loss_ts_echo is
 *  lost, unless it may only be late; now_ns 0: the time for being late is over. */
void aq_udp_link_find_lost(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_arm_probe - the same: something is on its way that must be answered; ask after a
 * while. */
void aq_udp_link_arm_probe(struct aq_udp_link *link, uint64_t now_ns);

/** aq_udp_link_abandon - the peer is gone: everything counts as acknowledged, nothing leaves. */
void aq_udp_link_abandon(struct aq_udp_link *link);

#endif
