/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_sim.h - a simulated network with virtual time, and ends that run the udp conduit's engine
 * over it.
 *
 * An end owns one struct aq_udp_link and is connected with its peer by a path in each direction:
 * delay, jitter, loss, duplication, reordering, damage, and a pipe of some bandwidth with a queue,
 * which paths may share. An end has a clock of its own, may compute (poll nothing) for a while,
 * refuse requests, and be slow to place data. Every message has a number and a pattern. The
 * receiver fails the test if a message arrives twice or damaged, the sender if one is acknowledged
 * that the other side has not taken over. Events at the same time happen in the order in which they
 * were made, so that a seed determines everything.
 */
#ifndef UDP_SIM_H
#define UDP_SIM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp_link.h"
#include "tests/unit/aq_unit.h"

#define SIM_ENDS     8
#define SIM_MESSAGES 60000u /* of a channel, each way */
#define SIM_US       UINT64_C(1000)
#define SIM_MS       UINT64_C(1000000)
#define SIM_S        UINT64_C(1000000000)

struct sim_pipe {
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t queue_bytes; /* 0: no limit */
    uint64_t free_at;     /* when what is queued has passed */
    uint64_t dropped;
};

struct sim_path {
    struct sim_pipe *pipe; /* NULL: none */
    uint64_t delay, jitter;
    unsigned loss, duplicate, reorder, damage; /* of 10000 */
    unsigned bunch;                            /* of so many datagrams is a loss */
    unsigned batch_left;
    /* Looks at each datagram: false drops it. */
    bool (*filter)(struct sim_path *path, const struct aq_udp_header *header, size_t len);
    uint64_t seen, lost;
    uint64_t filter_count;
};

struct sim_event {
    uint64_t time, order;
    struct sim_end *to;
    uint8_t *datagram; /* NULL: the RMA datagram `seq` is placed now */
    size_t len;
    uint64_t seq;
};

struct sim_end {
    struct aq_udp_link link;
    struct aq_udp_link_config config;
    struct sim *sim;
    struct sim_end *peer;
    struct sim_path out;
    uint64_t clock;                    /* what its clock shows at time 0 */
    uint64_t busy_until;               /* computes: looks at nothing */
    uint64_t place_ns;                 /* how long RMA data take to be placed */
    bool refuses;                      /* requests */
    uint64_t socket_limit;             /* output() takes so many datagrams more; UINT64_MAX: all */
    uint64_t inbox_bytes, inbox_limit; /* that wait while it computes */
    /* messages */
    uint32_t to_send[AQ_UDP_CHANNELS], queued[AQ_UDP_CHANNELS], acked[AQ_UDP_CHANNELS],
        taken[AQ_UDP_CHANNELS];
    uint32_t length;               /* bytes of each message; 0: of random lengths */
    uint8_t *got[AQ_UDP_CHANNELS]; /* by number: 1 taken over, 2 placed */
    uint64_t got_bytes;
    uint64_t max_unacked, max_flight;
    uint64_t bad_hash;
    struct sim_event record[64]; /* the first that came, kept for replaying, if keep */
    unsigned recorded;
    bool keep;
};

struct sim {
    uint64_t now, order, rng;
    uint64_t still; /* steps since time last went on */
    struct sim_event *heap;
    size_t count, space;
    struct sim_end end[SIM_ENDS];
    unsigned ends;
};

/* as in conduits/udp/aq_udp.c, with the widest windows */
static const struct aq_udp_link_config sim_config = {
    .window = { 256, 256, 256 },
    .probe_first_ns = 20 * SIM_MS,
    .probe_min_ns = 200 * SIM_US,
    .probe_max_ns = SIM_S,
    .probe_backoff = 2.0,
    .ack_delay_ns = 250 * SIM_US,
};

static inline uint64_t sim_random(struct sim *sim)
{
    uint64_t x = sim->rng += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline bool sim_chance(struct sim *sim, unsigned of_10000)
{
    return of_10000 != 0 && sim_random(sim) % 10000 < of_10000;
}

/* --- events --- */

static inline bool sim_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static inline void sim_swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event keep = *a;

    *a = *b;
    *b = keep;
}

static inline void sim_add(struct sim *sim, struct sim_event event)
{
    size_t at = sim->count++;

    if (sim->count > 100000)
        fail_msg("a storm: 100,000 datagrams are under way");
    if (sim->count > sim->space) {
        sim->space = sim->space == 0 ? 1024 : 2 * sim->space;
        sim->heap = realloc(sim->heap, sim->space * sizeof(*sim->heap));
        assert_non_null(sim->heap);
    }
    event.order = sim->order++;
    sim->heap[at] = event;
    for (; at != 0 && sim_before(&sim->heap[at], &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim_swap(&sim->heap[at], &sim->heap[(at - 1) / 2]);
}

static inline struct sim_event sim_take(struct sim *sim)
{
    struct sim_event first = sim->heap[0];
    size_t at = 0;

    sim->heap[0] = sim->heap[--sim->count];
    for (;;) {
        size_t min = at;

        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < sim->count; child++)
            if (sim_before(&sim->heap[child], &sim->heap[min]))
                min = child;
        if (min == at)
            return first;
        sim_swap(&sim->heap[at], &sim->heap[min]);
        at = min;
    }
}

static inline uint64_t sim_clock(const struct sim_end *end)
{
    return end->sim->now + end->clock;
}

/* --- what is sent: a frame whose data are a number and a pattern --- */

/* Stands for the keyed hash: over all of the datagram but the hash, and the upper halves of its
 * numbers. */
static inline uint64_t sim_hash(const uint8_t *at, size_t len, uint64_t above)
{
    uint64_t hash = above * UINT64_C(0x9e3779b97f4a7c15) + len;

    for (size_t i = 0; i < len; i++)
        if (i < 40 || i >= 48)
            hash = (hash ^ at[i]) * UINT64_C(0x100000001b3) ^ hash >> 29;
    return hash;
}

static inline void sim_pattern(uint8_t *at, size_t len, uint32_t channel, uint32_t number)
{
    uint32_t word = number * 2654435761u + channel;

    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)((word = word * 1664525u + 1013904223u) >> 24);
}

/* Queue message `number` of a channel. False: no space. */
static inline bool sim_queue(struct sim_end *end, enum aq_udp_channel channel, uint32_t number)
{
    uint32_t length = end->length != 0 ? end->length : 16 + (uint32_t)(sim_random(end->sim) % 1200);
    struct aq_udp_tx *tx = aq_udp_link_add(&end->link, channel);
    uint8_t *data;

    if (tx == NULL)
        return false;
    tx->head_len = AQ_UDP_HEADER + AQ_UDP_RMA_HEAD + length;
    tx->head = malloc(tx->head_len + 8);
    assert_non_null(tx->head);
    tx->body = NULL;
    tx->body_len = 0;
    tx->count = number;
    if (channel == AQ_UDP_RMA) {
        data = aq_udp_put_encode(tx->head + AQ_UDP_HEADER, length, 0, 0);
    } else {
        const int32_t args[2] = { 0, 0 };

        data = aq_udp_am_encode(tx->head + AQ_UDP_HEADER, AQ_UDP_F_LONG, 0, 2, args, length, 0);
    }
    aq_udp_put32(data, number);
    sim_pattern(data + 4, length - 4, channel, number);
    return true;
}

/* --- the network --- */

static inline void sim_deliver(struct sim_end *from, const uint8_t *datagram, size_t len,
                               uint64_t time)
{
    struct sim_path *path = &from->out;
    struct sim *sim = from->sim;
    uint8_t *copy = malloc(len);

    assert_non_null(copy);
    memcpy(copy, datagram, len);
    if (sim_chance(sim, path->damage))
        copy[sim_random(sim) % len] ^= (uint8_t)(1u << sim_random(sim) % 8);
    if (path->jitter != 0)
        time += sim_random(sim) % path->jitter;
    if (sim_chance(sim, path->reorder))
        time += sim_random(sim) % (2 * path->delay + 1000);
    sim_add(sim,
            (struct sim_event){ .time = time, .to = from->peer, .datagram = copy, .len = len });
}

static inline bool sim_drops(struct sim *sim, struct sim_path *path)
{
    if (path->batch_left != 0) {
        path->batch_left--;
        return true;
    }
    if (!sim_chance(sim, path->loss))
        return false;
    path->batch_left = path->bunch > 1 ? path->bunch - 1 : 0;
    return true;
}

static inline void sim_transmit(struct sim_end *from, const uint8_t *datagram, size_t len)
{
    struct sim *sim = from->sim;
    struct sim_path *path = &from->out;
    struct sim_pipe *pipe = path->pipe;
    struct aq_udp_header header;
    uint64_t time = sim->now;

    assert_true(aq_udp_header_decode(datagram, len, &header));
    path->seen++;
    if (path->filter != NULL && !path->filter(path, &header, len)) {
        path->lost++;
        return;
    }
    if (sim_drops(sim, path)) {
        path->lost++;
        return;
    }
    if (pipe != NULL && pipe->bytes_per_s != 0) {
        const uint64_t begin = pipe->free_at > time ? pipe->free_at : time;

        if (pipe->queue_bytes != 0
            && (begin - time) * pipe->bytes_per_s / SIM_S + len > pipe->queue_bytes) {
            pipe->dropped++;
            path->lost++;
            return;
        }
        pipe->free_at = begin + (len + 42) * SIM_S / pipe->bytes_per_s;
        time = pipe->free_at;
    }
    sim_deliver(from, datagram, len, time + path->delay);
    if (sim_chance(sim, path->duplicate))
        sim_deliver(from, datagram, len, time + path->delay + sim_random(sim) % (path->delay + 1));
}

static inline unsigned sim_output(struct aq_udp_link *link, const struct aq_udp_packet *packets,
                                  unsigned count)
{
    struct sim_end *end = link->owner;
    unsigned taken = 0;

    assert_in_range(count, 1, AQ_UDP_GSO_BATCH);
    for (unsigned i = 0; i < count; i++) {
        static uint8_t datagram[AQ_UDP_MAX_DATAGRAM];
        const struct aq_udp_packet *packet = &packets[i];
        const size_t len = packet->head_len + packet->body_len;

        assert_true(len <= AQ_UDP_MAX_DATAGRAM);
        if (i != 0) { /* a GSO batch is cut up by its size */
            assert_true(len <= packets[0].head_len + packets[0].body_len);
            assert_true(packets[i - 1].head_len + packets[i - 1].body_len
                        == packets[0].head_len + packets[0].body_len);
        }
        if (end->socket_limit == 0)
            break;
        if (end->socket_limit != UINT64_MAX)
            end->socket_limit--;
        taken++;
        memcpy(datagram, packet->head, packet->head_len);
        if (packet->body_len != 0)
            memcpy(datagram + packet->head_len, packet->body, packet->body_len);
        aq_udp_put64(datagram + 40, sim_hash(datagram, len, packet->above));
        sim_transmit(end, datagram, len);
    }
    return taken;
}

static inline void sim_acked(struct aq_udp_link *link, enum aq_udp_channel channel,
                             struct aq_udp_tx *tx)
{
    struct sim_end *end = link->owner;

    if (!link->disconnected) /* a fact: the other side has it */
        assert_int_equal(end->peer->got[channel][tx->count], 2);
    end->acked[channel]++;
    free(tx->head);
    tx->head = NULL;
}

static const struct aq_udp_link_ops sim_ops = { .output = sim_output, .acked = sim_acked };

/* --- receiving --- */

static inline void sim_placed(struct sim_end *end, size_t number, uint64_t seq)
{
    assert_int_equal(end->got[AQ_UDP_RMA][number], 1);
    end->got[AQ_UDP_RMA][number] = 2;
    if (!end->link.disconnected)
        aq_udp_link_placed(&end->link, seq);
}

/* A new datagram: everything in it is what was sent, for the first time. */
static inline void sim_check(struct sim_end *end, const struct aq_udp_header *header, uint64_t seq,
                             const uint8_t *datagram, size_t len)
{
    struct aq_udp_frame frame = { 0 };
    size_t at = AQ_UDP_HEADER;
    uint32_t number;
    uint8_t *expected;

    assert_int_equal(aq_udp_frame_decode(datagram, len, header, &at, &frame), 1);
    number = aq_udp_get32(frame.data);
    assert_true(number < end->peer->queued[header->channel]);
    expected = malloc(frame.nbytes);
    assert_non_null(expected);
    sim_pattern(expected, frame.nbytes - 4, header->channel, number);
    assert_memory_equal(expected, frame.data + 4, frame.nbytes - 4);
    free(expected);
    assert_int_equal(end->got[header->channel][number], 0);
    end->taken[header->channel]++;
    end->got_bytes += frame.nbytes;
    end->got[header->channel][number] = header->channel == AQ_UDP_RMA ? 1 : 2;
    if (header->channel != AQ_UDP_RMA)
        return;
    if (end->place_ns == 0)
        sim_placed(end, number, seq);
    else
        sim_add(end->sim,
                (struct sim_event){ .time = end->sim->now + sim_random(end->sim) % end->place_ns,
                                    .to = end,
                                    .len = number,
                                    .seq = seq });
}

static inline enum aq_udp_verdict sim_receive(struct sim_end *end, const uint8_t *datagram,
                                              size_t len)
{
    struct aq_udp_header header;
    enum aq_udp_verdict verdict;
    uint64_t seq;

    if (!aq_udp_header_decode(datagram, len, &header) || header.src != end->link.dst
        || header.dst != end->link.src) {
        end->bad_hash++;
        return AQ_UDP_OUTSIDE;
    }
    seq = aq_udp_link_expand(&end->link, header.channel, header.seq);
    if (sim_hash(datagram, len, aq_udp_link_above(&end->link, &header, seq)) != header.hash
        || !aq_udp_frames_check(datagram, len, &header)) {
        end->bad_hash++;
        return AQ_UDP_OUTSIDE;
    }
    verdict = aq_udp_link_receive(&end->link, sim_clock(end), &header, seq, datagram, len,
                                  !(end->refuses && header.channel == AQ_UDP_REQUEST));
    if (verdict == AQ_UDP_NEW)
        sim_check(end, &header, seq, datagram, len);
    return verdict;
}

static inline void sim_event_run(struct sim *sim, struct sim_event *event)
{
    struct sim_end *end = event->to;

    if (event->datagram == NULL) {
        sim_placed(end, event->len, event->seq);
        return;
    }
    if (sim->now < end->busy_until) { /* it waits in the socket */
        if (end->inbox_limit == 0 || end->inbox_bytes + event->len <= end->inbox_limit) {
            end->inbox_bytes += event->len;
            event->time = end->busy_until;
            sim_add(sim, *event);
            return;
        }
    } else {
        if (event->len <= end->inbox_bytes)
            end->inbox_bytes -= event->len;
        if (end->keep && end->recorded < 64) {
            struct sim_event *deferred = &end->record[end->recorded++];

            *deferred = *event;
            deferred->datagram = malloc(event->len);
            assert_non_null(deferred->datagram);
            memcpy(deferred->datagram, event->datagram, event->len);
        }
        (void)sim_receive(end, event->datagram, event->len);
    }
    free(event->datagram);
}

#endif
