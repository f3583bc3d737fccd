/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_sim_run.h - making, feeding and running the simulated network of udp_sim.h.
 */
#ifndef UDP_SIM_RUN_H
#define UDP_SIM_RUN_H

#include "tests/unit/udp_sim.h"

/* --- running --- */

/* The application: queues what it still has to send, in random order of channels, then sends it. */
static inline void sim_feed(struct sim_end *end)
{
    const unsigned first = (unsigned)(sim_random(end->sim) % AQ_UDP_CHANNELS);

    if (end->sim->now < end->busy_until)
        return;
    for (unsigned i = 0; i < AQ_UDP_CHANNELS; i++) {
        const enum aq_udp_channel channel = (enum aq_udp_channel)((first + i) % AQ_UDP_CHANNELS);

        while (end->queued[channel] < end->to_send[channel] && !end->link.disconnected) {
            end->queued[channel]++; /* before it may be acknowledged */
            if (!sim_queue(end, channel, end->queued[channel] - 1)) {
                end->queued[channel]--;
                break;
            }
        }
    }
    aq_udp_link_pump(&end->link, sim_clock(end));
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++) {
        const uint64_t unacked = end->link.tx[channel].end - end->link.tx[channel].una;

        assert_true(unacked <= end->config.window[channel]);
        if (unacked > end->max_unacked)
            end->max_unacked = unacked;
    }
    if (end->link.in_flight > end->max_flight)
        end->max_flight = end->link.in_flight;
}

static inline uint64_t sim_timer_at(const struct sim_end *end)
{
    const uint64_t deadline = aq_udp_link_deadline(&end->link);
    uint64_t at = deadline == UINT64_MAX   ? UINT64_MAX
                  : deadline <= end->clock ? 0
                                           : deadline - end->clock;

    return at < end->busy_until ? end->busy_until : at;
}

/* One event or timer. False: nothing would ever happen again, or not before `until`. */
static inline bool sim_step(struct sim *sim, uint64_t until)
{
    uint64_t next = sim->count == 0 ? UINT64_MAX : sim->heap[0].time;
    struct sim_end *timer = NULL;

    for (unsigned i = 0; i < sim->ends; i++) {
        const uint64_t at = sim_timer_at(&sim->end[i]);

        if (at < next) {
            next = at;
            timer = &sim->end[i];
        }
    }
    if (next > until || next == UINT64_MAX) {
        if (until != UINT64_MAX && until > sim->now)
            sim->now = until;
        return false;
    }
    if (next > sim->now) {
        sim->now = next;
        sim->still = 0;
    } else if (++sim->still > 100000) {
        fail_msg("a timer that never ends its turn");
    }
    if (timer != NULL) {
        aq_udp_link_timer(&timer->link, sim_clock(timer));
        sim_feed(timer);
    } else {
        struct sim_event event = sim_take(sim);

        sim_event_run(sim, &event);
        sim_feed(event.to);
    }
    return true;
}

static inline void sim_run(struct sim *sim, uint64_t until)
{
    for (unsigned i = 0; i < sim->ends; i++)
        sim_feed(&sim->end[i]);
    while (sim_step(sim, until))
        continue;
}

static inline bool sim_end_done(const struct sim_end *end)
{
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        if (end->acked[channel] != end->to_send[channel])
            return false;
    return true;
}

static inline bool sim_done(const struct sim *sim)
{
    for (unsigned i = 0; i < sim->ends; i++)
        if (!sim_end_done(&sim->end[i]))
            return false;
    return true;
}

/* Until everybody's messages are acknowledged; fails if that takes longer than limit (of virtual
 * time). */
static inline void sim_finish(struct sim *sim, uint64_t limit)
{
    const uint64_t until = sim->now + limit;

    for (unsigned i = 0; i < sim->ends; i++)
        sim_feed(&sim->end[i]);
    while (!sim_done(sim) && sim_step(sim, until))
        continue;
    for (unsigned i = 0; i < sim->ends; i++) {
        const struct sim_end *end = &sim->end[i];

        if (!sim_end_done(end))
            fail_msg("end %u, at %llu ms: acknowledged %u of %u requests, %u of %u replies, %u of "
                     "%u RMA",
                     i, (unsigned long long)(sim->now / SIM_MS), end->acked[0], end->to_send[0],
                     end->acked[1], end->to_send[1], end->acked[2], end->to_send[2]);
        assert_true(aq_udp_link_is_idle(&end->link));
        assert_int_equal(end->link.in_flight, 0);
        for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
            assert_int_equal(end->taken[channel], end->peer->to_send[channel]);
    }
}

/* --- setting up --- */

static inline void sim_end_open(struct sim *sim, unsigned i, unsigned peer, uint32_t mtu,
                                const struct aq_udp_link_config *config)
{
    struct sim_end *end = &sim->end[i];

    end->config = *config;
    end->sim = sim;
    end->peer = &sim->end[peer];
    end->socket_limit = UINT64_MAX;
    end->clock = 5 * SIM_S + 77 * SIM_S * i;
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        end->got[channel] = calloc(1, SIM_MESSAGES);
    aq_udp_link_init(&end->link, &end->config, &sim_ops, end, i, peer, mtu, 4 << 20);
}

/* Pairs of ends: 0 and 1, 2 and 3, ...; paths of so much delay each way. */
static inline struct sim *sim_new(unsigned pairs, uint64_t seed, uint64_t delay, uint32_t mtu,
                                  const struct aq_udp_link_config *config)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    assert_non_null(sim);
    sim->rng = seed;
    sim->ends = 2 * pairs;
    for (unsigned i = 0; i < sim->ends; i++) {
        sim_end_open(sim, i, i ^ 1, mtu, config == NULL ? &sim_config : config);
        sim->end[i].out.delay = delay;
    }
    return sim;
}

static inline void sim_free(struct sim *sim)
{
    for (unsigned i = 0; i < sim->ends; i++) {
        struct sim_end *end = &sim->end[i];

        if (!end->link.disconnected)
            aq_udp_link_abandon(&end->link);
        aq_udp_link_fini(&end->link);
        for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
            free(end->got[channel]);
        for (unsigned k = 0; k < end->recorded; k++)
            free(end->record[k].datagram);
    }
    while (sim->count != 0)
        free(sim_take(sim).datagram);
    free(sim->heap);
    free(sim);
}

/* So many messages more on each channel of each end. */
static inline void send_all(struct sim *sim, uint32_t requests, uint32_t replies, uint32_t rma)
{
    for (unsigned i = 0; i < sim->ends; i++) {
        sim->end[i].to_send[AQ_UDP_REQUEST] += requests;
        sim->end[i].to_send[AQ_UDP_REPLY] += replies;
        sim->end[i].to_send[AQ_UDP_RMA] += rma;
    }
}

#endif
