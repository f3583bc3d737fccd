/*
 * aq_udp_link_in.c - what a received datagram changes: acknowledgements, round trips, losses of own
 *                    datagrams, the congestion window.
 *
 * The head of aq_udp_link.c explains the rules.
 *
 * Promise   no sequence of datagrams with a right hash, in any order and however often repeated,
 *           makes the engine lose or duplicate one: acknowledgements are facts and only accumulate
 * Uses      aq_udp_link.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/udp/aq_udp_link.h"

/* minimum tolerance of reordering: what the scheduling of two cores can differ by */
#define AQ_UDP_REO_TICKS 24u
#define AQ_UDP_REO_MAX   16u     /* maximum of reo_mult */
#define AQ_UDP_ASK_BYTES 262144u /* unacknowledged bytes after which an acknowledgement is sent */

uint64_t aq_udp_link_expand(const struct aq_udp_link *link, uint8_t channel, uint32_t seq)
{
    return aq_udp_seq_expand(
        channel < AQ_UDP_CHANNELS ? link->rx[channel].next : link->control_seen, seq);
}

uint64_t aq_udp_link_above(const struct aq_udp_link *link, const struct aq_udp_header *header,
                           uint64_t seq)
{
    uint64_t una[AQ_UDP_CHANNELS];

    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        una[channel] = link->tx[channel].una;
    return aq_udp_above(header, seq, una);
}

static inline struct aq_udp_tx *aq_udp_record(struct aq_udp_channel_tx *tx, uint64_t seq)
{
    return &tx->ring[seq & tx->mask];
}

/* --- the congestion window --- */

/* Grows the window by acknowledged bytes: NewReno, RFC 9002 7.3, only while the window limits the
 * sender. */
static void aq_udp_rate_grow(struct aq_udp_link *link, uint64_t bytes)
{
    const uint64_t max = (uint64_t)64 << 20;

    if (!link->was_full && link->in_flight + bytes < link->cwnd / 2)
        return;
    link->was_full = false;
    if (link->cwnd < link->ssthresh)
        link->cwnd += bytes;
    else
        link->cwnd += (uint64_t)link->mtu * bytes / link->cwnd;
    if (link->cwnd > max)
        link->cwnd = max;
}

/* Cuts the window after a loss, at most once a round trip. Without a queue the loss was not
 * congestion. */
static void aq_udp_rate_cut(struct aq_udp_link *link, uint64_t sent, uint64_t now)
{
    const uint64_t min = 2 * (uint64_t)link->mtu;
    bool queue;

    if (sent <= link->cut)
        return; /* it was sent before the last cut */
    link->cut = now;
    link->counts.cuts++;
    /* a link that started behind a queue has never seen a round trip without one: so a small excess
     * over the minimum counts as a queue */
    queue = link->min_rtt == 0 || link->last_rtt > link->min_rtt + link->min_rtt / 4 + 100000;
    link->cwnd = link->cwnd / 10 * (queue ? 7 : 9);
    if (link->cwnd < min)
        link->cwnd = min;
    link->ssthresh = link->cwnd;
}

/* --- losses --- */

/* Returns the ticks by which a datagram may be overtaken before it counts as lost. */
static uint32_t aq_udp_link_tolerance(const struct aq_udp_link *link)
{
    uint64_t ticks = (link->min_rtt >> 10) / 4;

    if (ticks < AQ_UDP_REO_TICKS)
        ticks = AQ_UDP_REO_TICKS;
    ticks *= link->reo_mult;
    return ticks > UINT32_C(1) << 20 ? UINT32_C(1) << 20 : (uint32_t)ticks;
}

/* Marks records of a channel that were sent more than tolerance before loss_ts_echo. Returns the
 * age of the oldest record that is not yet late enough, or 0. */
static uint32_t aq_udp_channel_find_lost(struct aq_udp_link *link, struct aq_udp_channel_tx *tx,
                                         uint32_t tolerance)
{
    const int channel = (int)(tx - link->tx);
    const bool full = channel == AQ_UDP_REQUEST && link->peer_full;
    uint32_t oldest = 0;

    for (uint64_t seq = tx->una; seq != tx->next; seq++) {
        struct aq_udp_tx *record = aq_udp_record(tx, seq);

        if (record->state != AQ_UDP_TX_FLIGHT)
            continue;
        if (link->loss_ts_echo > record->sent + tolerance) {
            record->state = AQ_UDP_TX_LOST;
            tx->lost++;
            link->in_flight -= record->head_len + record->body_len;
            link->channel_flight[channel] -= record->head_len + record->body_len;
            /* the peer refuses requests: this record tests whether that has changed, the others
             * wait for its answer */
            if (full)
                break;
            link->counts.lost++;
            aq_udp_rate_cut(link, record->sent, aq_udp_tick(link->last_seen_ns));
        } else if (link->loss_ts_echo > record->sent) {
            const uint32_t age = (uint32_t)(link->loss_ts_echo - record->sent);

            oldest = age > oldest ? age : oldest;
        } else if (record->sends == 1) {
            break; /* the records behind it were sent later */
        }
    }
    return oldest;
}

void aq_udp_link_find_lost(struct aq_udp_link *link, uint64_t now_ns)
{
    const uint32_t tolerance = now_ns == 0 ? 0 : aq_udp_link_tolerance(link);
    uint32_t oldest = 0;

    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        const uint32_t age = aq_udp_channel_find_lost(link, &link->tx[channel], tolerance);

        oldest = age > oldest ? age : oldest;
    }
    if (now_ns == 0)
        return;
    link->loss_ns = oldest == 0 ? 0 : now_ns + ((uint64_t)(tolerance - oldest + 1) << 10);
}

/* --- acknowledgements --- */

/* One record is acknowledged. echo: the newest own timestamp that the peer had seen when it
 * answered. */
static void aq_udp_record_acked(struct aq_udp_link *link, int channel, struct aq_udp_tx *record,
                                const struct aq_udp_header *header)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];
    const uint32_t bytes = record->head_len + record->body_len;
    bool spurious = false;

    if (record->state == AQ_UDP_TX_FLIGHT) {
        link->in_flight -= bytes;
        link->channel_flight[channel] -= bytes;
        /* the first transmission had arrived: the retransmission was spurious */
        spurious = record->sends > 1 && (header->flags & AQ_UDP_TS_ECHO) != 0
                   && (int32_t)((uint32_t)record->sent - header->ts_echo) > 0;
    } else if (record->state == AQ_UDP_TX_LOST) {
        tx->lost--;
        spurious = true;
    }
    if (spurious) {
        link->counts.spurious++;
        if (link->reo_mult < AQ_UDP_REO_MAX)
            link->reo_mult++;
    }
    record->state = AQ_UDP_TX_ACKED;
    aq_udp_rate_grow(link, bytes);
    link->ops->acked(link, (enum aq_udp_channel)channel, record);
}

static inline bool aq_udp_record_is_out(const struct aq_udp_tx *record)
{
    return record->state == AQ_UDP_TX_FLIGHT || record->state == AQ_UDP_TX_LOST;
}

/* Acknowledges all records below a number. */
static void aq_udp_channel_acked(struct aq_udp_link *link, int channel,
                                 const struct aq_udp_header *header)
{
    struct aq_udp_channel_tx *tx = &link->tx[channel];
    const uint64_t upto = aq_udp_seq_expand(tx->una, header->ack[channel]);

    if (upto > tx->next) {
        link->counts.bad_acks++;
        return;
    }
    for (; tx->una < upto; tx->una++) {
        struct aq_udp_tx *record = aq_udp_record(tx, tx->una);

        if (aq_udp_record_is_out(record))
            aq_udp_record_acked(link, channel, record, header);
        record->state = AQ_UDP_TX_FREE;
    }
}

/* Acknowledges the records that a SACK frame names. */
static void aq_udp_channel_sacked(struct aq_udp_link *link, const struct aq_udp_frame *sack,
                                  const struct aq_udp_header *header)
{
    struct aq_udp_channel_tx *tx = &link->tx[sack->channel];
    const uint64_t base = aq_udp_seq_expand(tx->una, sack->base);

    for (unsigned word = 0; word < sack->words; word++)
        for (uint64_t bits = sack->bits[word]; bits != 0; bits &= bits - 1) {
            const uint64_t seq = base + 64 * word + (unsigned)__builtin_ctzll(bits);

            if (seq < tx->una)
                continue;
            if (seq >= tx->next) {
                link->counts.bad_acks++;
                return;
            }
            if (aq_udp_record_is_out(aq_udp_record(tx, seq)))
                aq_udp_record_acked(link, sack->channel, aq_udp_record(tx, seq), header);
        }
}

/* --- round trips --- */

/* RFC 6298. Every echo that is newer than the last one is a sample. */
static void aq_udp_link_sample(struct aq_udp_link *link, uint64_t ts_echo, uint16_t ts_delay,
                               uint64_t now_ns)
{
    int64_t ticks;
    uint64_t rtt, away;

    if (ts_delay == AQ_UDP_TS_DELAY_MAX || ts_echo <= link->last_ts_echo)
        return;
    ticks = (int64_t)(aq_udp_tick(now_ns) - ts_echo - ts_delay);
    rtt = ticks < 1 ? 1024 : (uint64_t)ticks << 10;
    link->last_ts_echo = ts_echo;
    link->last_rtt = rtt;
    if (link->min_rtt == 0 || rtt < link->min_rtt)
        link->min_rtt = rtt;
    if (link->srtt == 0) {
        link->srtt = rtt;
        link->rttvar = rtt / 2;
        return;
    }
    away = rtt > link->srtt ? rtt - link->srtt : link->srtt - rtt;
    link->rttvar += away / 4 - link->rttvar / 4;
    link->srtt += rtt / 8 - link->srtt / 8;
}

static void aq_udp_link_sacks(struct aq_udp_link *link, const struct aq_udp_header *header,
                              const uint8_t *datagram, size_t len)
{
    struct aq_udp_frame sack = { .words = 0 };
    size_t at = AQ_UDP_HEADER;

    while (aq_udp_frame_decode(datagram, len, header, &at, &sack) > 0)
        aq_udp_channel_sacked(link, &sack, header);
}

/* Returns true if a timestamp of the peer is newer than all before. The peer's clock has run since
 * the newest arrived, so a timestamp that is behind the expected one by less than that time is
 * newer. */
static bool aq_udp_link_is_newer(const struct aq_udp_link *link, uint32_t ts, uint64_t now_ns)
{
    const uint64_t since = (now_ns - link->ts_echo_ns) >> 10;
    const int32_t behind = (int32_t)(link->ts_echo + (uint32_t)since - ts);

    return !link->seen || behind < (int64_t)since;
}

/* The same for a datagram whose number has arrived before, which may be a recording of any age.
 * Its timestamp must be close to the peer's present clock; the right half of 73 minutes is not
 * enough. */
static bool aq_udp_link_is_again(const struct aq_udp_link *link, uint32_t ts, uint64_t now_ns)
{
    const uint64_t since = (now_ns - link->ts_echo_ns) >> 10,
                   drift = (since >> 8) + (UINT64_C(1) << 20);
    const int32_t behind = (int32_t)(link->ts_echo + (uint32_t)since - ts);

    return aq_udp_link_is_newer(link, ts, now_ns) && behind > -(int64_t)drift;
}

/* Processes an echo: an own timestamp of which 32 bits came back. */
static void aq_udp_link_echoed(struct aq_udp_link *link, const struct aq_udp_header *header,
                               uint64_t now_ns)
{
    const uint64_t now = aq_udp_tick(now_ns),
                   ts_echo = now - (uint32_t)((uint32_t)now - header->ts_echo);

    if (ts_echo > now) /* before this clock began: a forged or broken echo */
        return;
    aq_udp_link_sample(link, ts_echo, header->ts_delay, now_ns);
    link->peer_full = (header->flags & AQ_UDP_FULL) != 0;
    if (link->in_flight != 0 && (header->flags & AQ_UDP_HOLES) == 0) {
        link->loss_ts_echo = ts_echo;
        aq_udp_link_find_lost(link, now_ns);
    }
}

/* Updates the link from a header that is no recording. take: the datagram's data is taken over. */
static void aq_udp_link_learn(struct aq_udp_link *link, const struct aq_udp_header *header,
                              const uint8_t *datagram, size_t len, bool take, uint64_t now_ns)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        if ((uint32_t)link->tx[channel].una != header->ack[channel])
            aq_udp_channel_acked(link, channel, header);
    if (header->channel == AQ_UDP_CONTROL && len > AQ_UDP_HEADER)
        aq_udp_link_sacks(link, header, datagram, len);
    link->last_seen_ns = now_ns;
    link->probes = 0;
    if ((header->flags & AQ_UDP_TS_ECHO) != 0)
        aq_udp_link_echoed(link, header, now_ns);
    if (link->in_flight == 0) {
        link->probe_ns = link->loss_ns = link->silent_ns = 0;
    } else {
        link->silent_ns = now_ns; /* what is unanswered now counts as unanswered from now on */
        aq_udp_link_arm_probe(link, now_ns);
    }
    /* a refused datagram must not be counted as lost by its sender, so its timestamp is not
     * echoed */
    if (take && aq_udp_link_is_newer(link, header->ts, now_ns)) {
        link->seen = true;
        link->ts_echo = header->ts;
        link->ts_echo_ns = now_ns;
        link->rwnd = (uint64_t)header->rwnd << 10;
    }
    if (header->channel == AQ_UDP_CONTROL && (header->flags & AQ_UDP_DISCONNECT) != 0)
        aq_udp_link_abandon(link);
}

/* --- taking over --- */

static inline bool aq_udp_bit(const uint64_t *bits, uint64_t seq)
{
    return (bits[seq % AQ_UDP_WINDOW / 64] >> seq % 64 & 1) != 0;
}

static inline void aq_udp_set_bit(uint64_t *bits, uint64_t seq)
{
    bits[seq % AQ_UDP_WINDOW / 64] |= UINT64_C(1) << seq % 64;
}

static inline void aq_udp_clear_bit(uint64_t *bits, uint64_t seq)
{
    bits[seq % AQ_UDP_WINDOW / 64] &= ~(UINT64_C(1) << seq % 64);
}

static void aq_udp_channel_placed(struct aq_udp_channel_rx *rx, uint64_t seq)
{
    aq_udp_set_bit(rx->placed, seq);
    while (rx->next != rx->top && aq_udp_bit(rx->placed, rx->next)) {
        aq_udp_clear_bit(rx->placed, rx->next);
        aq_udp_clear_bit(rx->claimed, rx->next);
        rx->next++;
    }
}

void aq_udp_link_placed(struct aq_udp_link *link, uint64_t seq)
{
    link->placing--;
    aq_udp_channel_placed(&link->rx[AQ_UDP_RMA], seq);
}

/* Records that an acknowledgement is due within delay. */
static void aq_udp_link_ack_within(struct aq_udp_link *link, uint64_t now_ns, uint64_t delay)
{
    if (link->ack_ns == 0 || link->ack_ns > now_ns + delay)
        link->ack_ns = now_ns + delay;
}

static enum aq_udp_verdict aq_udp_channel_claim(struct aq_udp_link *link,
                                                const struct aq_udp_header *header, uint64_t seq,
                                                size_t len, uint64_t now_ns)
{
    struct aq_udp_channel_rx *rx = &link->rx[header->channel];
    const bool in_order = seq == rx->top;

    if (seq >= rx->top)
        rx->top = seq + 1;
    aq_udp_set_bit(rx->claimed, seq);
    if (header->channel == AQ_UDP_RMA)
        link->placing++;
    else
        aq_udp_channel_placed(rx, seq);
    link->counts.received++;
    link->unacked_bytes += len;
    if ((header->flags & AQ_UDP_ACK_NOW) != 0 || !in_order
        || link->unacked_bytes >= AQ_UDP_ASK_BYTES)
        link->ack_now = true;
    else
        aq_udp_link_ack_within(link, now_ns, link->config->ack_delay_ns);
    return AQ_UDP_NEW;
}

/* Only the newest control datagram counts. A replayed older one gets no answer. */
static enum aq_udp_verdict aq_udp_link_control_in(struct aq_udp_link *link, uint64_t now_ns,
                                                  const struct aq_udp_header *header, uint64_t seq,
                                                  const uint8_t *datagram, size_t len)
{
    if (seq < link->control_seen) {
        link->counts.duplicates++;
        return AQ_UDP_DUPLICATE;
    }
    link->control_seen = seq + 1;
    aq_udp_link_learn(link, header, datagram, len, true, now_ns);
    if ((header->flags & AQ_UDP_ACK_NOW) != 0 && !link->disconnected)
        link->ack_now = true;
    return AQ_UDP_SEEN;
}

enum aq_udp_verdict aq_udp_link_receive(struct aq_udp_link *link, uint64_t now_ns,
                                        const struct aq_udp_header *header, uint64_t seq,
                                        const uint8_t *datagram, size_t len, bool take)
{
    struct aq_udp_channel_rx *rx;

    if (link->disconnected) {
        link->counts.late++;
        return AQ_UDP_SEEN;
    }
    if (header->channel == AQ_UDP_CONTROL)
        return aq_udp_link_control_in(link, now_ns, header, seq, datagram, len);
    rx = &link->rx[header->channel];
    if (seq < rx->next || (seq < rx->top && aq_udp_bit(rx->claimed, seq))) {
        link->counts.duplicates++;
        /* A retransmission, sent because this rank's acknowledgement was lost, has a new timestamp.
         * A recording has an old one and is ignored. */
        if (!aq_udp_link_is_again(link, header->ts, now_ns))
            return AQ_UDP_DUPLICATE;
        aq_udp_link_learn(link, header, datagram, len, true, now_ns);
        aq_udp_link_ack_within(link, now_ns, link->config->ack_delay_ns / 4);
        return AQ_UDP_DUPLICATE;
    }
    if (seq - rx->next >= AQ_UDP_WINDOW) {
        link->counts.outside++;
        return AQ_UDP_OUTSIDE;
    }
    aq_udp_link_learn(link, header, datagram, len, take, now_ns);
    if (header->channel == AQ_UDP_REQUEST)
        link->refusing = !take;
    if (!take)
        return AQ_UDP_REFUSED;
    return aq_udp_channel_claim(link, header, seq, len, now_ns);
}
