/*
 * aq_udp_link.c - the reliable engine, transmit side. aq_udp_link_in.c: the receive side.
 *
 * Numbers   every channel numbers its datagrams from 0 in 64 bits, of which 32 are sent. The keyed
 *           hash covers all 64 bits of the datagram's number and of its acknowledgements, so that a
 *           recorded datagram is worthless once any channel's lower 32 bits have wrapped. Control
 *           datagrams are numbered too, for the hash, but are not acknowledged
 * Order     none. A datagram is delivered when it arrives, once. Messages have no order in the
 *           interface, and waiting for a lost one would add its delay to all that follow. The owner
 *           reassembles what is larger than a datagram
 * Progress  three channels avoid deadlock. A request handler may wait for space for its reply.
 *           While it waits, no request handlers run, but every poll still receives REPLY and RMA
 *           datagrams and the acknowledgements in every header. Reply handlers send nothing, and
 *           RMA data needs no handler. A peer's REPLY and RMA channels therefore always move,
 *           whatever its REQUEST channel does: replies find space in the end, then requests.
 *           REQUEST datagrams that arrive in the meantime are deferred, up to a bound. Beyond it
 *           they are refused: not acknowledged, and retransmitted later
 * Losses    are inferred from evidence, never from silence. Each datagram echoes the newest
 *           timestamp that its sender has seen (RFC 7323). A datagram that is unacknowledged, and
 *           was sent earlier than the echoed timestamp by more than a tolerance of reordering, is
 *           lost: the idea of RFC 8985. With timestamps a retransmission is unambiguous, and every
 *           echo is a round-trip sample. Silence means that the last datagrams are lost, or that
 *           the peer computes and does not poll, which is the usual case here. It is therefore
 *           answered by a probe, a datagram of 48 bytes. The first probe is sent after two round
 *           trips, as RFC 8985's tail loss probe, and the distance grows. The answer to a probe is
 *           the evidence. A peer that computes for an hour receives a few probes, not copies of
 *           the data
 * Rates     one congestion window for the three channels, clocked by acknowledgements, grows as in
 *           RFC 9002 (NewReno), so that it shares a network with TCP. A loss cuts it at most once a
 *           round trip: to 0.7 (CUBIC's factor) if the round trip shows a queue, to 0.9 if it shows
 *           none, because such a loss was not congestion (Veno, Fu and Liew 2003). CUBIC's own
 *           growth is meant for round trips of 100 ms; at those of a local network it equals
 *           NewReno's. In addition the receiver advertises how many bytes its socket has space for
 * Acks      are sent with data. A sender that is about to be blocked by its window asks for one at
 *           once (ACK_NOW). Otherwise an acknowledgement waits at most ack_delay_ns for data
 * Uses      aq_udp_link.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp_link.h"

#include <stdlib.h>

#define AQ_UDP_FIRST_RING 16u     /* records */
#define AQ_UDP_FIRST_CWND 10u     /* datagrams, RFC 6928 */
#define AQ_UDP_RETRY_NS   200000u /* delay before the next try after a full socket */
#define AQ_UDP_MAX_CWND   ((uint64_t)64 << 20)

void aq_udp_link_init(struct aq_udp_link *link, const struct aq_udp_link_config *config,
                      const struct aq_udp_link_ops *ops, void *owner, uint32_t src, uint32_t dst,
                      uint32_t mtu, uint32_t rwnd)
{
    memset(link, 0, sizeof(*link));
    link->config = config;
    link->ops = ops;
    link->owner = owner;
    link->src = src;
    link->dst = dst;
    link->mtu = mtu;
    link->rwnd_advertised = rwnd;
    link->rwnd = UINT64_MAX;
    link->cwnd = (uint64_t)AQ_UDP_FIRST_CWND * mtu;
    link->ssthresh = UINT64_MAX;
    link->reo_mult = 1;
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        struct aq_udp_channel_tx *tx = &link->tx[channel];

        tx->una = tx->next = tx->end = config->first_seq;
        link->rx[channel].next = link->rx[channel].top = config->first_seq;
    }
    link->control_next = link->control_seen = config->first_seq;
}

void aq_udp_link_fini(struct aq_udp_link *link)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        free(link->tx[channel].ring);
        link->tx[channel].ring = NULL;
    }
}

static inline struct aq_udp_tx *aq_udp_record(struct aq_udp_channel_tx *tx, uint64_t seq)
{
    return &tx->ring[seq & tx->mask];
}

/* --- queueing --- */

uint32_t aq_udp_link_free_slots(const struct aq_udp_link *link, enum aq_udp_channel channel)
{
    const struct aq_udp_channel_tx *tx = &link->tx[channel];
    const uint32_t used = (uint32_t)(tx->end - tx->una), window = link->config->window[channel];

    return used >= window ? 0 : window - used;
}

/* Doubles the ring; records keep their numbers. */
static bool aq_udp_channel_grow(struct aq_udp_channel_tx *tx)
{
    const uint32_t size = tx->ring == NULL ? AQ_UDP_FIRST_RING : 2 * (tx->mask + 1);
    struct aq_udp_tx *ring = calloc(size, sizeof(*ring));

    if (ring == NULL)
        return false;
    for (uint64_t seq = tx->una; seq != tx->end; seq++)
        ring[seq & (size - 1)] = *aq_udp_record(tx, seq);
    free(tx->ring);
    tx->ring = ring;
    tx->mask = size - 1;
    return true;
}

struct aq_udp_tx *aq_udp_link_add(struct aq_udp_link *link, enum aq_udp_channel channel)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];
    struct aq_udp_tx *record;

    if (aq_udp_link_free_slots(link, channel) == 0)
        return NULL;
    if ((tx->ring == NULL || tx->end - tx->una > tx->mask) && !aq_udp_channel_grow(tx))
        return NULL;
    record = aq_udp_record(tx, tx->end++);
    memset(record, 0, sizeof(*record));
    record->state = AQ_UDP_TX_QUEUED;
    tx->open = false;
    return record;
}

void aq_udp_link_open(struct aq_udp_link *link, enum aq_udp_channel channel)
{
    link->tx[channel].open = true;
}

struct aq_udp_tx *aq_udp_link_opened(struct aq_udp_link *link, enum aq_udp_channel channel)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];

    return tx->open ? aq_udp_record(tx, tx->end - 1) : NULL;
}

void aq_udp_link_close(struct aq_udp_link *link)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        link->tx[channel].open = false;
}

void aq_udp_link_move_bodies(struct aq_udp_link *link, enum aq_udp_channel channel, uint32_t count,
                             const void *from, const void *to)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];

    for (uint64_t seq = tx->end - count; seq != tx->end; seq++) {
        struct aq_udp_tx *record = aq_udp_record(tx, seq);

        record->body = (const char *)to + ((const char *)record->body - (const char *)from);
    }
}

/* --- headers --- */

static inline void aq_udp_link_header(struct aq_udp_link *link, struct aq_udp_packet *packet,
                                      uint8_t flags, uint64_t now_ns)
{
    const uint32_t rwnd = link->rwnd_advertised >> 10;
    struct aq_udp_header header = { .channel = packet->channel,
                                    .flags = flags,
                                    .src = link->src,
                                    .dst = link->dst,
                                    .seq = (uint32_t)packet->seq,
                                    .ts = (uint32_t)aq_udp_tick(now_ns),
                                    .rwnd = (uint16_t)(rwnd > UINT16_MAX ? UINT16_MAX : rwnd),
                                    .hashed = (uint16_t)packet->head_len };

    if (AQ_UNLIKELY(link->refusing))
        header.flags |= AQ_UDP_FULL;
    packet->above = packet->seq >> 32; /* aq_udp_above(): here the full numbers are known */
    for (int data = 0; data < AQ_UDP_CHANNELS; data++) {
        header.ack[data] = (uint32_t)link->rx[data].next;
        packet->above += link->rx[data].next >> 32;
    }
    if (link->seen) {
        const uint64_t ts_delay = (now_ns - link->ts_echo_ns) >> 10;

        header.flags |=
            ts_delay < UINT32_MAX / 2 ? AQ_UDP_TS_ECHO : 0; /* an older number cannot be expanded */
        header.ts_echo = link->ts_echo;
        header.ts_delay =
            (uint16_t)(ts_delay > AQ_UDP_TS_DELAY_MAX ? AQ_UDP_TS_DELAY_MAX : ts_delay);
    }
    aq_udp_header_encode(packet->head, &header);
}

static inline bool aq_udp_link_has_holes(const struct aq_udp_link *link)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        if (link->rx[channel].top != link->rx[channel].next)
            return true;
    return false;
}

static inline void aq_udp_link_acknowledged(struct aq_udp_link *link)
{
    link->ack_now = false;
    link->ack_ns = 0;
    link->unacked_bytes = 0;
}

/* --- deadlines --- */

static uint64_t aq_udp_link_probe_distance(const struct aq_udp_link *link)
{
    const struct aq_udp_link_config *config = link->config;
    const uint64_t delay =
        link->since_asked == 0 ? 0 : config->ack_delay_ns; /* 0: ACK_NOW was sent last */
    uint64_t distance = link->srtt == 0 ? config->probe_first_ns : 2 * link->srtt + delay;

    if (distance < config->probe_min_ns)
        distance = config->probe_min_ns;
    for (uint32_t i = 0; AQ_UNLIKELY(i < link->probes) && distance < config->probe_max_ns; i++)
        distance = (uint64_t)((double)distance * config->probe_backoff);
    return distance > config->probe_max_ns ? config->probe_max_ns : distance;
}

void aq_udp_link_arm_probe(struct aq_udp_link *link, uint64_t now_ns)
{
    link->probe_ns = now_ns + aq_udp_link_probe_distance(link);
    if (link->silent_ns == 0)
        link->silent_ns = now_ns;
}

uint64_t aq_udp_link_deadline(const struct aq_udp_link *link)
{
    const uint64_t deadlines[] = { link->ack_ns, link->loss_ns, link->probe_ns, link->retry_ns };
    uint64_t first = UINT64_MAX;

    if (link->ack_now)
        return 0;
    for (unsigned i = 0; i < sizeof(deadlines) / sizeof(deadlines[0]); i++)
        if (deadlines[i] != 0 && deadlines[i] < first)
            first = deadlines[i];
    return first;
}

/* --- sending data --- */

static inline uint32_t aq_udp_tx_len(const struct aq_udp_tx *record)
{
    return record->head_len + record->body_len;
}

/* Returns true if len bytes of a channel, behind `before` others, are within the windows. Each
 * channel always has a quarter of the window, and at least one datagram: unacknowledged requests,
 * which the peer may be refusing, must not block the replies that the peer may wait for. */
static inline bool aq_udp_link_admits(const struct aq_udp_link *link, int channel, uint64_t before,
                                      uint64_t len)
{
    const uint64_t limit = link->cwnd < link->rwnd ? link->cwnd : link->rwnd;
    const uint64_t own = link->channel_flight[channel] + before;

    return own == 0 || link->in_flight + before + len <= limit || own + len <= limit / 4;
}

/* True while bulk data that the windows blocked waits until they admit a whole batch. It does not
 * leave datagram by datagram with each acknowledgement. */
static inline bool aq_udp_link_waits(const struct aq_udp_link *link)
{
    const uint64_t limit = link->cwnd < link->rwnd ? link->cwnd : link->rwnd;

    return link->was_stuck && link->in_flight > limit - limit / 4
           && link->channel_flight[AQ_UDP_RMA] > limit / 8;
}

/* The next record of a channel to send, from number *at on, or NULL. */
static struct aq_udp_tx *aq_udp_channel_next(struct aq_udp_channel_tx *tx, bool again, uint64_t *at)
{
    const uint64_t limit = again ? tx->next : tx->end - (tx->open ? 1 : 0);

    for (; *at < limit; ++*at)
        if (aq_udp_record(tx, *at)->state == (again ? AQ_UDP_TX_LOST : AQ_UDP_TX_QUEUED))
            return aq_udp_record(tx, *at);
    return NULL;
}

struct aq_udp_gso_batch {
    struct aq_udp_packet packet[AQ_UDP_GSO_BATCH];
    unsigned count;
    bool stuck; /* the windows block the next record */
};

/* Collects consecutive records of one size, as far as the windows admit. */
static void aq_udp_gso_fill(struct aq_udp_link *link, int channel, bool again,
                            struct aq_udp_gso_batch *batch)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];
    uint64_t at = again ? tx->una : tx->next, bytes = 0;
    uint32_t size = 0;
    struct aq_udp_tx *record;

    batch->count = 0;
    batch->stuck = channel == AQ_UDP_RMA && !again && aq_udp_link_waits(link);
    if (batch->stuck)
        return;
    while (batch->count < AQ_UDP_GSO_BATCH
           && (record = aq_udp_channel_next(tx, again, &at)) != NULL) {
        struct aq_udp_packet *packet = &batch->packet[batch->count];
        uint32_t len;

        if (again && record->padded)
            record->body_len = 0; /* padding may have caused the loss */
        len = aq_udp_tx_len(record);
        if (batch->count != 0 && (len > size || bytes + len > AQ_UDP_GSO_BYTES))
            break;
        if (!aq_udp_link_admits(link, channel, bytes, len)) {
            batch->stuck = true;
            break;
        }
        *packet = (struct aq_udp_packet){ .head = record->head,
                                          .body = record->body,
                                          .head_len = record->head_len,
                                          .body_len = record->body_len,
                                          .seq = at,
                                          .channel = (uint8_t)channel,
                                          .again = record->sends != 0 };
        batch->count++;
        bytes += len;
        at++;
        if (batch->count == 1)
            size = len;
        else if (len < size)
            break;
        if (len > link->mtu) /* is sent alone: the path's limit has become smaller */
            break;
    }
}

/* Writes headers as late as possible, so that they carry the newest acknowledgements. */
static void aq_udp_gso_write(struct aq_udp_link *link, struct aq_udp_gso_batch *batch,
                             uint64_t now_ns)
{
    const uint64_t limit = link->cwnd < link->rwnd ? link->cwnd : link->rwnd;
    const uint8_t holes = aq_udp_link_has_holes(link) ? AQ_UDP_HOLES : 0;

    for (unsigned i = 0; i < batch->count; i++) {
        struct aq_udp_packet *packet = &batch->packet[i];
        struct aq_udp_channel_tx *tx = &link->tx[packet->channel];
        const bool full = packet->seq - tx->una == link->config->window[packet->channel] / 2
                          || packet->seq - tx->una + 1 == link->config->window[packet->channel];
        uint8_t flags = holes;

        link->since_asked += packet->head_len + packet->body_len;
        if (aq_udp_record(tx, packet->seq)->urgent || packet->again || full
            || (batch->stuck && i + 1 == batch->count) || link->since_asked >= limit / 4) {
            flags |= AQ_UDP_ACK_NOW;
            link->since_asked = 0;
        }
        aq_udp_link_header(link, packet, flags, now_ns);
    }
}

static void aq_udp_gso_sent(struct aq_udp_link *link, const struct aq_udp_gso_batch *batch,
                            unsigned taken, uint64_t now_ns)
{
    for (unsigned i = 0; i < taken; i++) {
        const struct aq_udp_packet *packet = &batch->packet[i];
        struct aq_udp_channel_tx *tx = &link->tx[packet->channel];
        struct aq_udp_tx *record = aq_udp_record(tx, packet->seq);

        if (record->state == AQ_UDP_TX_LOST) {
            tx->lost--;
            link->counts.resent++;
        } else {
            tx->next = packet->seq + 1;
        }
        record->state = AQ_UDP_TX_FLIGHT;
        record->sent = aq_udp_tick(now_ns);
        record->sends += record->sends != UINT8_MAX;
        link->in_flight += aq_udp_tx_len(record);
        link->channel_flight[packet->channel] += aq_udp_tx_len(record);
        link->counts.sent++;
        link->counts.sent_bytes += aq_udp_tx_len(record);
    }
    if (taken != 0) {
        link->sent_ns = now_ns;
        aq_udp_link_arm_probe(link, now_ns);
        if (!aq_udp_link_has_holes(link))
            aq_udp_link_acknowledged(link);
    }
}

static inline bool aq_udp_channel_has_queued(const struct aq_udp_channel_tx *tx)
{
    return tx->end - (tx->open ? 1 : 0) != tx->next;
}

/* Sends batches of a channel while the windows admit them. Returns false if the socket is full. */
static __attribute__((noinline)) bool aq_udp_channel_pump(struct aq_udp_link *link, int channel,
                                                          bool again, uint64_t now_ns)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];
    struct aq_udp_gso_batch batch;

    while (again ? tx->lost != 0 : aq_udp_channel_has_queued(tx)) {
        unsigned taken;

        aq_udp_gso_fill(link, channel, again, &batch);
        if (channel == AQ_UDP_RMA && !again)
            link->was_stuck = batch.stuck;
        if (batch.stuck)
            link->was_full = true;
        if (batch.count == 0)
            return true;
        aq_udp_gso_write(link, &batch, now_ns);
        taken = link->ops->output(link, batch.packet, batch.count);
        aq_udp_gso_sent(link, &batch, taken, now_ns);
        if (taken < batch.count) {
            link->retry_ns = now_ns + AQ_UDP_RETRY_NS;
            return false;
        }
    }
    return true;
}

/* --- control --- */

/* Writes the bitmap, in words of 64 bits, of the datagrams that have been placed from `next` on. */
static uint8_t aq_udp_channel_sack(const struct aq_udp_channel_rx *rx,
                                   uint64_t bits_out[AQ_UDP_SACK_WORDS])
{
    uint8_t words = 0;

    memset(bits_out, 0, AQ_UDP_SACK_WORDS * sizeof(*bits_out));
    for (uint64_t seq = rx->next; seq != rx->top; seq++) {
        const unsigned bit = (unsigned)(seq % AQ_UDP_WINDOW), at = (unsigned)(seq - rx->next);

        if ((rx->placed[bit / 64] >> bit % 64 & 1) != 0) {
            bits_out[at / 64] |= UINT64_C(1) << at % 64;
            words = (uint8_t)(at / 64 + 1);
        }
    }
    return words;
}

static void aq_udp_link_control(struct aq_udp_link *link, uint8_t flags, uint64_t now_ns)
{
    uint8_t datagram[AQ_UDP_HEADER + AQ_UDP_CHANNELS * (8 + 8 * AQ_UDP_SACK_WORDS)]
        __attribute__((aligned(16)));
    uint8_t *at = datagram + AQ_UDP_HEADER;
    struct aq_udp_packet packet = { .head = datagram, .channel = AQ_UDP_CONTROL };

    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        const struct aq_udp_channel_rx *rx = &link->rx[channel];
        uint64_t bits[AQ_UDP_SACK_WORDS];
        const uint8_t words = rx->top == rx->next ? 0 : aq_udp_channel_sack(rx, bits);

        if (words != 0)
            at = aq_udp_sack_encode(at, (uint8_t)channel, words, (uint32_t)rx->next, bits);
    }
    if (link->placing != 0)
        flags |= AQ_UDP_HOLES;
    packet.seq = link->control_next++;
    packet.head_len = (uint32_t)(at - datagram);
    aq_udp_link_header(link, &packet, flags, now_ns);
    link->counts.controls++;
    if (link->ops->output(link, &packet, 1) == 1) {
        aq_udp_link_acknowledged(link);
        if (link->placing != 0) /* what other threads are still placing is acknowledged later */
            link->ack_ns = now_ns + link->config->ack_delay_ns;
        return;
    }
    if (link->ack_now || link->ack_ns != 0) { /* repeat it after a while */
        link->ack_now = false;
        link->ack_ns = now_ns + AQ_UDP_RETRY_NS;
    }
}

void aq_udp_link_ack(struct aq_udp_link *link, uint64_t now_ns)
{
    if ((link->ack_now || link->ack_ns != 0) && !link->disconnected)
        aq_udp_link_control(link, 0, now_ns);
}

void aq_udp_link_disconnect(struct aq_udp_link *link, uint64_t now_ns)
{
    aq_udp_link_control(link, AQ_UDP_DISCONNECT, now_ns);
}

/* --- the owner's calls --- */

void aq_udp_link_pump(struct aq_udp_link *link, uint64_t now_ns)
{
    /* replies first, because requests wait for them; bulk data last */
    static const uint8_t order[AQ_UDP_CHANNELS] = { AQ_UDP_REPLY, AQ_UDP_REQUEST, AQ_UDP_RMA };
    bool go = !link->disconnected && (link->retry_ns == 0 || now_ns >= link->retry_ns);

    if (go)
        link->retry_ns = 0;
    for (int i = 0; go && i < AQ_UDP_CHANNELS; i++) {
        const struct aq_udp_channel_tx *tx = &link->tx[order[i]];

        if (AQ_UNLIKELY(tx->lost != 0))
            go = aq_udp_channel_pump(link, order[i], true, now_ns);
        if (go && aq_udp_channel_has_queued(tx))
            go = aq_udp_channel_pump(link, order[i], false, now_ns);
    }
    if (link->ack_now || (link->ack_ns != 0 && now_ns >= link->ack_ns))
        aq_udp_link_ack(link, now_ns);
}

void aq_udp_link_probe(struct aq_udp_link *link, uint64_t now_ns)
{
    link->counts.probes++;
    aq_udp_link_control(link, AQ_UDP_ACK_NOW, now_ns);
}

void aq_udp_link_timer(struct aq_udp_link *link, uint64_t now_ns)
{
    if (link->loss_ns != 0 && now_ns >= link->loss_ns) {
        link->loss_ns = 0;
        aq_udp_link_find_lost(link, 0);
    }
    if (link->probe_ns != 0 && now_ns >= link->probe_ns) {
        if (link->in_flight == 0) {
            link->probe_ns = 0;
            link->silent_ns = 0;
        } else {
            link->probes++;
            aq_udp_link_probe(link, now_ns);
            aq_udp_link_arm_probe(link, now_ns);
        }
    }
    aq_udp_link_pump(link, now_ns);
}

bool aq_udp_link_is_idle(const struct aq_udp_link *link)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        if (link->tx[channel].una != link->tx[channel].end)
            return false;
    return true;
}

void aq_udp_link_abandon(struct aq_udp_link *link)
{
    link->disconnected = true;
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        struct aq_udp_channel_tx *tx = &link->tx[channel];

        tx->open = false;
        tx->lost = 0;
        while (tx->una != tx->end) {
            struct aq_udp_tx *record = aq_udp_record(tx, tx->una++);

            if (record->state != AQ_UDP_TX_ACKED && record->head != NULL)
                link->ops->acked(link, (enum aq_udp_channel)channel, record);
            record->state = AQ_UDP_TX_FREE;
        }
        tx->next = tx->end;
    }
    link->in_flight = 0;
    memset(link->channel_flight, 0, sizeof(link->channel_flight));
    link->ack_now = false;
    link->ack_ns = link->loss_ns = link->probe_ns = link->retry_ns = link->silent_ns = 0;
}
