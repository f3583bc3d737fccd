/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_replay.c - the udp conduit's engine and datagrams that its peer did not send just now:
 * after a disconnect, recordings sent again, acknowledgements of what was never sent. They achieve
 * nothing.
 */
#include "tests/unit/udp_sim_run.h"

static void test_disconnect(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);
    uint64_t seen;

    (void)state;
    send_all(sim, 2000, 2000, 2000);
    sim_run(sim, SIM_MS);
    aq_udp_link_disconnect(&sim->end[1].link, sim_clock(&sim->end[1]));
    sim_run(sim, sim->now + SIM_MS);
    assert_true(sim->end[0].link.disconnected);
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        assert_int_equal(sim->end[0].acked[channel],
                         sim->end[0].queued[channel]); /* buffers are given back */
    assert_int_equal(aq_udp_link_deadline(&sim->end[0].link), UINT64_MAX);
    seen = sim->end[0].out.seen;
    aq_udp_link_abandon(&sim->end[1].link);
    sim_run(sim, sim->now + 10 * SIM_S);
    assert_int_equal(sim->end[0].out.seen, seen); /* silence */
    sim_free(sim);
}

/* What a recording may not change: everything but counters. */
struct essence {
    uint64_t una[3], next[3], end[3], rx_next[3], rx_top[3];
    uint64_t in_flight, cwnd, ssthresh, rwnd, srtt, rttvar, min_rtt, last_seen_ns, silent_ns,
        probe_ns, ts_echo;
};

static void essence_of(const struct aq_udp_link *link, struct essence *essence_out)
{
    memset(essence_out, 0, sizeof(*essence_out));
    for (int channel = 0; channel < 3; channel++) {
        essence_out->una[channel] = link->tx[channel].una;
        essence_out->next[channel] = link->tx[channel].next;
        essence_out->end[channel] = link->tx[channel].end;
        essence_out->rx_next[channel] = link->rx[channel].next;
        essence_out->rx_top[channel] = link->rx[channel].top;
    }
    essence_out->in_flight = link->in_flight;
    essence_out->cwnd = link->cwnd;
    essence_out->ssthresh = link->ssthresh;
    essence_out->rwnd = link->rwnd;
    essence_out->srtt = link->srtt;
    essence_out->rttvar = link->rttvar;
    essence_out->min_rtt = link->min_rtt;
    essence_out->last_seen_ns = link->last_seen_ns;
    essence_out->silent_ns = link->silent_ns;
    essence_out->probe_ns = link->probe_ns;
    essence_out->ts_echo = link->ts_echo;
}

/* Recorded datagrams, sent again: nothing is handed over twice, no answers, no state but counters.
 * */
static void test_replay(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    struct essence before, after;
    uint64_t controls;

    (void)state;
    end->keep = true;
    send_all(sim, 300, 300, 300);
    sim_finish(sim, SIM_S);
    assert_int_equal(end->recorded, 64);
    end->keep = false;
    sim_run(sim, sim->now + SIM_S);
    controls = end->link.counts.controls;
    essence_of(&end->link, &before);
    for (int i = 0; i < 10000; i++) {
        const struct sim_event *old = &end->record[sim_random(sim) % end->recorded];

        sim->now += 10 * SIM_US;
        assert_int_not_equal(sim_receive(end, old->datagram, old->len), AQ_UDP_NEW);
        if (sim_timer_at(end) <= sim->now)
            aq_udp_link_timer(&end->link, sim_clock(end));
    }
    essence_of(&end->link, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(end->link.counts.controls, controls); /* nor an answer */
    sim_run(sim, sim->now + SIM_S);
    send_all(sim, 300, 300, 300);
    sim_finish(sim, SIM_S);
    sim_free(sim);
}

/* The RMA channels of both ends go on from numbers that are further by `by`. */
static void shift_rma(struct sim *sim, uint64_t by)
{
    for (unsigned i = 0; i < 2; i++) {
        struct aq_udp_channel_tx *tx = &sim->end[i].link.tx[AQ_UDP_RMA];
        struct aq_udp_channel_rx *rx = &sim->end[i].link.rx[AQ_UDP_RMA];

        tx->una = tx->next = tx->end += by;
        rx->next = rx->top += by;
    }
}

/* The RMA channel has passed 2^32, the others have not. Replayed datagrams of before acknowledge
 * lower numbers than those in flight, but with the same low 32 bits: they are ignored. */
static void test_replay_channels_wrap_apart(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    struct aq_udp_header header;
    struct essence before, after;
    uint64_t seq;

    (void)state;
    end->keep = true;
    end->to_send[AQ_UDP_RMA] = 300;
    sim->end[1].to_send[AQ_UDP_REQUEST] = 300;
    sim_finish(sim, SIM_S);
    assert_int_equal(end->recorded, 64);
    end->keep = false;
    shift_rma(sim, (UINT64_C(1) << 32) - 300);
    end->out.loss = 10000;
    end->to_send[AQ_UDP_RMA] += 200;
    sim_feed(end);
    assert_true(end->link.tx[AQ_UDP_RMA].next > UINT64_C(1) << 32);
    essence_of(&end->link, &before);
    for (unsigned i = 0; i < end->recorded; i++) { /* behind the hash */
        const struct sim_event *old = &end->record[i];

        assert_true(aq_udp_header_decode(old->datagram, old->len, &header));
        seq = aq_udp_link_expand(&end->link, header.channel, header.seq);
        assert_int_equal(aq_udp_link_receive(&end->link, sim_clock(end), &header, seq,
                                             old->datagram, old->len, true),
                         AQ_UDP_DUPLICATE);
    }
    essence_of(&end->link, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    /* when timestamps, too, have wrapped, a replay looks like a retransmission */
    sim_run(sim, sim->now + (UINT64_C(1) << 42) + SIM_S);
    essence_of(&end->link, &before);
    for (unsigned i = 0; i < end->recorded; i++)
        (void)sim_receive(end, end->record[i].datagram, end->record[i].len);
    essence_of(&end->link, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(end->bad_hash, end->recorded);
    end->out.loss = 0;
    sim_finish(sim, 10 * SIM_S);
    sim_free(sim);
}

/* Recordings of a peer that is dead do not keep it alive. */
static void test_replay_of_the_dead(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    uint64_t silent;

    (void)state;
    end->keep = true;
    send_all(sim, 300, 300, 300);
    sim_finish(sim, SIM_S);
    end->keep = false;
    sim_run(sim, sim->now + SIM_S);
    end->out.loss = sim->end[1].out.loss = 10000; /* it died */
    end->to_send[AQ_UDP_REQUEST]++;
    sim_feed(end);
    silent = end->link.silent_ns;
    assert_int_not_equal(silent, 0);
    for (int i = 0; i < 1000; i++) {
        const struct sim_event *old = &end->record[sim_random(sim) % end->recorded];

        (void)sim_receive(end, old->datagram, old->len);
        sim_run(sim, sim->now + 5 * SIM_MS);
    }
    assert_int_equal(end->link.silent_ns, silent);
    sim_free(sim);
}

/* Acknowledgements of what was never sent are counted and believed no further. */
static void test_false_acks(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    struct aq_udp_header header = {
        .channel = AQ_UDP_CONTROL, .src = 1, .dst = 0, .seq = 0, .ack = { 5, 5, 5 }
    };
    uint8_t datagram[256];
    const uint64_t bits[4] = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };
    size_t len;

    (void)state;
    end->to_send[AQ_UDP_RMA] = 3;
    sim_feed(end);
    for (int i = 0; i < 1000; i++) {
        len = (size_t)(aq_udp_sack_encode(datagram + AQ_UDP_HEADER, (uint8_t)(i % 3),
                                          (uint8_t)(i % 4 + 1),
                                          3 + (uint32_t)(sim_random(sim) % 1000), bits)
                       - datagram);
        for (int channel = 0; channel < 3; channel++)
            header.ack[channel] = (uint32_t)(sim_random(sim) % UINT32_C(0x7fffff00)) + 4;
        header.hashed = (uint16_t)len;
        header.seq++;
        aq_udp_header_encode(datagram, &header);
        (void)aq_udp_link_receive(&end->link, sim_clock(end), &header, header.seq, datagram, len,
                                  true);
    }
    assert_true(end->link.counts.bad_acks >= 1000);
    assert_int_equal(end->acked[AQ_UDP_RMA], 0);
    end->link.control_seen = 0; /* those were not the peer's */
    sim_finish(sim, SIM_S);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disconnect),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_channels_wrap_apart),
        cmocka_unit_test(test_replay_of_the_dead),
        cmocka_unit_test(test_false_acks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
