/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_link.c - the udp conduit's engine over a simulated network: everything sent arrives
 * once, undamaged, and is acknowledged afterwards, whatever the network and the other side do;
 * losses are found soon, and only lost datagrams are retransmitted. Rates are in test_udp_rate.c, a
 * silent peer in test_udp_silence.c, replays in test_udp_replay.c.
 */
#include "tests/unit/udp_sim_run.h"

/* Nothing wrong: nothing is sent twice, nothing taken for lost. */
static void test_clean(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);

    (void)state;
    send_all(sim, 3000, 3000, 3000);
    sim_finish(sim, 10 * SIM_S);
    for (int i = 0; i < 2; i++) {
        const struct aq_udp_link_counts *counts = &sim->end[i].link.counts;

        assert_int_equal(counts->sent, 9000);
        assert_int_equal(counts->received, 9000);
        assert_int_equal(counts->resent + counts->lost + counts->cuts + counts->duplicates
                             + counts->outside + counts->bad_acks + counts->spurious,
                         0);
        assert_true(counts->controls < 4500); /* most acknowledgements ride */
    }
    sim_free(sim);
}

struct weather {
    const char *name;
    uint64_t delay, jitter;
    unsigned loss, duplicate, reorder, damage, bunch;
    uint64_t bytes_per_s;
    uint64_t place_ns;
};

static void try_weather(const struct weather *w, uint64_t seed, uint64_t first_seq)
{
    struct aq_udp_link_config config = sim_config;
    struct sim_pipe pipe[2];
    struct sim *sim;

    config.first_seq = first_seq;
    sim = sim_new(1, seed, w->delay, 1472, &config);
    for (int i = 0; i < 2; i++) {
        struct sim_path *path = &sim->end[i].out;

        pipe[i] = (struct sim_pipe){ .bytes_per_s = w->bytes_per_s, .queue_bytes = 100000 };
        path->pipe = &pipe[i];
        path->jitter = w->jitter;
        path->loss = w->loss;
        path->duplicate = w->duplicate;
        path->reorder = w->reorder;
        path->damage = w->damage;
        path->bunch = w->bunch;
        sim->end[i].place_ns = w->place_ns;
    }
    send_all(sim, 600, 600, 600);
    sim_finish(sim, 300 * SIM_S);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sim->end[i].link.counts.received, 1800);
        assert_int_equal(sim->end[i].link.counts.outside, 0);
        assert_int_equal(sim->end[i].link.counts.bad_acks, 0);
        assert_true(sim->end[i].max_unacked <= 256);
    }
    sim_free(sim);
}

static const struct weather weathers[] = {
    { .name = "loss 1%", .delay = 50000, .loss = 100 },
    { .name = "loss 10%", .delay = 50000, .loss = 1000 },
    { .name = "loss 40%", .delay = 50000, .loss = 4000 },
    { .name = "loss in bursts", .delay = 50000, .loss = 100, .bunch = 30 },
    { .name = "duplicates", .delay = 50000, .duplicate = 3000 },
    { .name = "reordering", .delay = 50000, .reorder = 2000 },
    { .name = "jitter", .delay = 50000, .jitter = 200000 },
    { .name = "damage", .delay = 50000, .damage = 1000 },
    { .name = "narrow", .delay = 50000, .bytes_per_s = 1000000 },
    { .name = "slow to place", .delay = 50000, .loss = 300, .place_ns = 3000000 },
    { .name = "far away", .delay = 100 * SIM_MS, .loss = 100 },
    { .name = "very near", .delay = 3000, .loss = 200, .reorder = 500 },
    { .name = "all of it",
      .delay = 80000,
      .jitter = 100000,
      .loss = 1000,
      .duplicate = 1000,
      .reorder = 1000,
      .damage = 300,
      .bunch = 3,
      .bytes_per_s = 20000000,
      .place_ns = 200000 },
};

static void test_weather(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(weathers) / sizeof(weathers[0]); i++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            try_weather(&weathers[i], seed, 0);
}

/* Numbers pass 2^32 (and bitmaps and rings wrap with them). */
static void test_wrap(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        try_weather(&weathers[12], seed, (UINT64_C(1) << 32) - 300);
        try_weather(&weathers[1], seed, (UINT64_C(5) << 32) - 1);
        try_weather(&weathers[5], seed, (UINT64_C(1) << 31) - 77);
    }
}

/* The 32 bits of the clocks wrap while something is under way. */
static void test_clock_wrap(void **state)
{
    const uint64_t wrap = UINT64_C(1) << 42; /* 2^32 ticks of 1024 ns */

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sim *sim = sim_new(1, seed, 50 * SIM_US, 1472, NULL);

        for (int i = 0; i < 2; i++) {
            sim->end[i].clock = (i == 0 ? wrap : wrap / 2) - 3 * SIM_MS;
            sim->end[i].out.loss = 500;
        }
        send_all(sim, 2000, 2000, 2000);
        sim_finish(sim, 100 * SIM_S);
        assert_true(sim->end[0].link.srtt < 10 * SIM_MS);
        sim_free(sim);
    }
}

/* --- losses --- */

static bool drop_number(struct sim_path *path, const struct aq_udp_header *header, size_t len)
{
    (void)len;
    if (header->channel != AQ_UDP_RMA || header->seq != path->filter_count)
        return true;
    path->filter_count = UINT64_MAX;
    return false;
}

/* One of many is lost: that one is sent again, at once, and nothing else. */
static void test_one_loss(void **state)
{
    struct sim *sim = sim_new(1, 1, 500 * SIM_US, 1472, NULL);
    struct aq_udp_link_counts *counts = &sim->end[0].link.counts;

    (void)state;
    sim->end[0].to_send[AQ_UDP_RMA] = 100;
    sim_finish(sim, SIM_S); /* the round trip is known */
    sim->end[0].out.filter = drop_number;
    sim->end[0].out.filter_count = 150;
    sim->end[0].to_send[AQ_UDP_RMA] = 300;
    sim_run(sim, sim->now + 20 * SIM_MS);
    assert_int_equal(sim->end[0].acked[AQ_UDP_RMA], 300);
    assert_int_equal(counts->lost, 1);
    assert_int_equal(counts->resent, 1);
    assert_int_equal(counts->spurious, 0);
    assert_int_equal(counts->probes, 0);
    assert_int_equal(sim->end[1].link.counts.duplicates, 0);
    sim_free(sim);
}

static bool drop_odd(struct sim_path *path, const struct aq_udp_header *header, size_t len)
{
    (void)len;
    if (header->channel != AQ_UDP_RMA || header->seq < 100 || header->seq >= 300
        || header->seq < path->filter_count)
        return true;
    path->filter_count = header->seq + 1;
    return header->seq % 2 == 0;
}

/* Every other one is lost, once: exactly those are sent again. */
static void test_many_losses(void **state)
{
    struct sim *sim = sim_new(1, 1, 500 * SIM_US, 1472, NULL);

    (void)state;
    sim->end[0].to_send[AQ_UDP_RMA] = 100;
    sim_finish(sim, SIM_S);
    sim->end[0].out.filter = drop_odd;
    sim->end[0].to_send[AQ_UDP_RMA] = 400;
    sim_run(sim, sim->now + SIM_S);
    assert_int_equal(sim->end[0].acked[AQ_UDP_RMA], 400);
    assert_int_equal(sim->end[0].link.counts.lost, 100);
    assert_int_equal(sim->end[0].link.counts.resent, 100);
    assert_int_equal(sim->end[1].link.counts.duplicates, 0);
    sim_free(sim);
}

/* The last one is lost: nothing behind it tells, so a probe finds out, long before it would get
 * old. */
static void test_tail_loss(void **state)
{
    struct sim *sim = sim_new(1, 1, 100 * SIM_US, 1472, NULL);
    uint64_t began;

    (void)state;
    sim->end[0].to_send[AQ_UDP_RMA] = 200;
    sim_finish(sim, SIM_S);
    sim_run(sim, sim->now + 50 * SIM_MS);
    sim->end[0].out.filter = drop_number;
    sim->end[0].out.filter_count = 209;
    sim->end[0].to_send[AQ_UDP_RMA] = 210;
    began = sim->now;
    sim_finish(sim, SIM_S);
    /* the probe, after srtt + 4 rttvar or 500 us + the acknowledgement's delay, but at least 1 ms;
     * a round trip; the datagram again, which asks for its acknowledgement; all that from when the
     * others were acknowledged */
    assert_true(sim->now - began < 3 * SIM_MS);
    assert_int_equal(sim->end[0].link.counts.resent, 1);
    assert_int_equal(sim->end[0].link.counts.probes, 1);
    sim_free(sim);
}

/* A late datagram is not retransmitted once the engine has learnt how late datagrams can be. */
static void test_reordering_is_learnt(void **state)
{
    struct sim *sim = sim_new(1, 3, 500 * SIM_US, 1472, NULL);
    uint64_t early, late;

    (void)state;
    sim->end[0].out.jitter = 800 * SIM_US;
    sim->end[0].to_send[AQ_UDP_RMA] = 2000;
    sim_finish(sim, 60 * SIM_S);
    early = sim->end[0].link.counts.resent;
    sim->end[0].to_send[AQ_UDP_RMA] = 12000;
    sim_finish(sim, 60 * SIM_S);
    late = sim->end[0].link.counts.resent - early;
    assert_true(late <= 100); /* of 10,000 */
    sim_free(sim);
}

/* A datagram is lost, and then the other side computes so long that it got very old. */
static void test_old_loss(void **state)
{
    static const uint64_t minutes[] = { 1, 30, 36, 37, 40, 72, 73, 74, 110, 1000 };

    (void)state;
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        struct sim *sim = sim_new(1, i, 100 * SIM_US, 1472, NULL);

        sim->end[0].to_send[AQ_UDP_RMA] = 100;
        sim_finish(sim, SIM_S);
        sim->end[0].out.filter = drop_number;
        sim->end[0].out.filter_count = 104;
        sim->end[0].to_send[AQ_UDP_RMA] = 110;
        sim->end[1].busy_until = sim->now + minutes[i] * 60 * SIM_S;
        sim->end[1].inbox_limit = 100000;
        sim_run(sim, sim->end[1].busy_until + 5 * SIM_S);
        if (!sim_end_done(&sim->end[0]))
            fail_msg("a loss of %u minutes ago is not made good within 5 s", (unsigned)minutes[i]);
        sim_free(sim);
    }
}

/* --- round trips --- */

static void answer(struct sim_end *end, uint64_t rtt_ticks)
{
    static uint32_t newest = 100;
    struct aq_udp_header header = { .channel = AQ_UDP_CONTROL,
                                    .flags = AQ_UDP_TS_ECHO,
                                    .src = 1,
                                    .dst = 0,
                                    .hashed = AQ_UDP_HEADER,
                                    .seq = newest,
                                    .ts = newest,
                                    .ts_delay = 7 };
    uint8_t datagram[AQ_UDP_HEADER];
    uint64_t now;

    newest += 5;
    end->sim->now += 100 * SIM_MS;
    now = sim_clock(end);
    header.ts_echo = aq_udp_tick(now) - (uint32_t)rtt_ticks - 7;
    aq_udp_header_encode(datagram, &header);
    assert_int_equal(
        aq_udp_link_receive(&end->link, now, &header, header.seq, datagram, sizeof(datagram), true),
        AQ_UDP_SEEN);
}

/* RFC 6298, section 2: the first sample, then the rest; the time for which an echo was held is no
 * part of it. */
static void test_rtt_rfc6298(void **state)
{
    static const uint64_t samples[] = { 1000, 1000, 1400, 200, 5000, 1000, 1000, 999, 1 };
    struct sim *sim = sim_new(1, 1, 1000, 1472, NULL);
    const struct aq_udp_link *link = &sim->end[0].link;
    double srtt = 0, rttvar = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const double sample = (double)samples[i] * 1024;
        const double away = srtt > sample ? srtt - sample : sample - srtt;

        answer(&sim->end[0], samples[i]);
        if (i == 0) {
            srtt = sample;
            rttvar = sample / 2;
        } else {
            rttvar = 0.75 * rttvar + 0.25 * away; /* before srtt changes */
            srtt = 0.875 * srtt + 0.125 * sample;
        }
        assert_true((double)link->srtt - srtt < 16 && srtt - (double)link->srtt < 16);
        assert_true((double)link->rttvar - rttvar < 16 && rttvar - (double)link->rttvar < 16);
        assert_int_equal(link->last_rtt, samples[i] * 1024);
    }
    assert_int_equal(link->min_rtt, 1024);
    sim_free(sim);
}

/* The path's round trip is what is measured, whatever the receiver's delays are. */
static void test_rtt_measured(void **state)
{
    struct sim *sim = sim_new(1, 1, 700 * SIM_US, 1472, NULL);

    (void)state;
    sim->end[0].to_send[AQ_UDP_REQUEST] = 2000;
    sim_finish(sim, 10 * SIM_S);
    assert_in_range(sim->end[0].link.srtt, 1390 * SIM_US, 1420 * SIM_US);
    assert_in_range(sim->end[0].link.min_rtt, 1390 * SIM_US, 1410 * SIM_US);
    sim_free(sim);
}

/* --- who waits --- */

/* A side that serves no requests says so and takes everything else: refused requests are not lost,
 * and slow nothing down. Once it serves them, they come. */
static void test_refused_requests(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sim *sim = sim_new(1, seed, 50 * SIM_US, 1472, NULL);
        struct sim_end *end = &sim->end[0];

        end->out.loss = (unsigned)(seed - 1) * 200;
        end->to_send[AQ_UDP_REQUEST] = 1000;
        sim->end[1].refuses = true;
        sim_run(sim, 20 * SIM_MS);
        end->to_send[AQ_UDP_REPLY] = 500;
        end->to_send[AQ_UDP_RMA] = 500;
        sim_run(sim, SIM_S);
        assert_int_equal(end->acked[AQ_UDP_REQUEST], 0);
        assert_int_equal(end->acked[AQ_UDP_REPLY], 500);
        assert_int_equal(end->acked[AQ_UDP_RMA], 500);
        assert_true(end->link.peer_full);
        if (end->out.loss == 0) {
            assert_int_equal(end->link.counts.lost, 0);
            assert_int_equal(end->link.counts.cuts, 0);
        }
        sim->end[1].refuses = false;
        sim_finish(sim, 10 * SIM_S);
        assert_false(end->link.peer_full);
        sim_free(sim);
    }
}

/* A window's slots are what they say, and free again in order of numbers. */
static void test_windows(void **state)
{
    struct aq_udp_link_config config = sim_config;
    struct sim *sim;

    (void)state;
    config.window[AQ_UDP_REQUEST] = 1;
    config.window[AQ_UDP_REPLY] = 7;
    config.window[AQ_UDP_RMA] = 33;
    sim = sim_new(1, 1, 50 * SIM_US, 1472, &config);
    assert_int_equal(aq_udp_link_free_slots(&sim->end[0].link, AQ_UDP_RMA), 33);
    sim->end[0].to_send[AQ_UDP_RMA] = 40;
    sim_feed(&sim->end[0]);
    assert_int_equal(sim->end[0].queued[AQ_UDP_RMA], 33);
    assert_int_equal(aq_udp_link_free_slots(&sim->end[0].link, AQ_UDP_RMA), 0);
    assert_null(aq_udp_link_add(&sim->end[0].link, AQ_UDP_RMA));
    assert_int_equal(aq_udp_link_free_slots(&sim->end[0].link, AQ_UDP_REPLY), 7);
    send_all(sim, 500, 500, 500);
    for (int i = 0; i < 2; i++)
        sim->end[i].out.loss = 500;
    sim_finish(sim, 100 * SIM_S);
    sim_free(sim);
}

/* The receiver's advertised space bounds the bytes in flight. A channel whose share is used up by
 * the others may have a quarter more. */
static void test_space(void **state)
{
    struct sim *sim = sim_new(1, 1, 500 * SIM_US, 1472, NULL);

    (void)state;
    sim->end[1].link.rwnd_advertised = 20 << 10;
    send_all(sim, 500, 500, 500);
    sim_finish(sim, 10 * SIM_S); /* known after the first answer */
    sim->end[0].max_flight = 0;
    send_all(sim, 500, 500, 500);
    sim_finish(sim, 10 * SIM_S);
    assert_true(sim->end[0].max_flight <= (20 << 10) * 3 / 2);
    sim->end[1].link.rwnd_advertised = 0; /* one at a time always may */
    send_all(sim, 100, 100, 100);
    sim_finish(sim, 10 * SIM_S);
    sim_free(sim);
}

/* The socket takes nothing for a while: the rest is sent later, once. */
static void test_full_socket(void **state)
{
    struct sim *sim = sim_new(1, 1, 50 * SIM_US, 1472, NULL);

    (void)state;
    send_all(sim, 1000, 1000, 1000);
    for (int i = 0; i < 200; i++) {
        sim->end[i % 2].socket_limit = sim_random(sim) % 20;
        sim_run(sim, sim->now + 500 * SIM_US);
    }
    sim->end[0].socket_limit = sim->end[1].socket_limit = UINT64_MAX;
    sim_finish(sim, 10 * SIM_S);
    assert_int_equal(sim->end[0].link.counts.lost, 0);
    sim_free(sim);
}

/* Everything at once, as it comes: many small jobs of random networks and habits. */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1120; seed++) {
        struct aq_udp_link_config config = sim_config;
        struct sim *sim;

        for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
            config.window[channel] =
                1 + (uint32_t)((seed * 7919 + (unsigned)channel * 104729) % 256);
        config.first_seq = seed % 3 == 0 ? (UINT64_C(1) << 32) - 40 : 0;
        sim = sim_new(1, seed, 2000 + seed % 7 * 40000, seed % 2 == 0 ? 1472 : 8960, &config);
        for (int i = 0; i < 2; i++) {
            struct sim_path *path = &sim->end[i].out;

            path->loss = (unsigned)(sim_random(sim) % 2000);
            path->duplicate = (unsigned)(sim_random(sim) % 1000);
            path->reorder = (unsigned)(sim_random(sim) % 2000);
            path->damage = (unsigned)(sim_random(sim) % 500);
            path->bunch = (unsigned)(sim_random(sim) % 5);
            sim->end[i].place_ns = sim_random(sim) % (2 * SIM_MS);
            sim->end[i].inbox_limit = 10000 + sim_random(sim) % 200000;
        }
        send_all(sim, 150, 150, 150);
        for (int turn = 0; turn < 20; turn++) {
            struct sim_end *end = &sim->end[sim_random(sim) % 2];

            sim_run(sim, sim->now + sim_random(sim) % (4 * SIM_MS));
            if (turn % 3 == 0)
                end->busy_until = sim->now + sim_random(sim) % (40 * SIM_MS);
            else if (turn % 3 == 1)
                end->refuses = !end->refuses;
            else
                end->link.rwnd_advertised = (uint32_t)(sim_random(sim) % 100000);
        }
        sim->end[0].refuses = sim->end[1].refuses = false;
        sim_finish(sim, 600 * SIM_S);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),        cmocka_unit_test(test_weather),
        cmocka_unit_test(test_wrap),         cmocka_unit_test(test_clock_wrap),
        cmocka_unit_test(test_one_loss),     cmocka_unit_test(test_many_losses),
        cmocka_unit_test(test_tail_loss),    cmocka_unit_test(test_reordering_is_learnt),
        cmocka_unit_test(test_old_loss),     cmocka_unit_test(test_rtt_rfc6298),
        cmocka_unit_test(test_rtt_measured), cmocka_unit_test(test_refused_requests),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_space),
        cmocka_unit_test(test_full_socket),  cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
