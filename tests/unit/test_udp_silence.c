/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_silence.c - the udp conduit's engine over a simulated network whose other side does not
 * answer for a while: probes are few, the owner sees since when, and all goes on afterwards.
 */
#include "tests/unit/udp_sim_run.h"

static bool note_probe(struct sim_path *path, const struct aq_udp_header *header, size_t len)
{
    (void)header;
    assert_true(path->filter_count == 0 || len == AQ_UDP_HEADER); /* no copies of the data */
    path->filter_count++;
    return false;
}

/* Nobody answers: a few probes, ever farther apart, and the owner sees since when. */
static void test_silence(void **state)
{
    struct sim *sim = sim_new(1, 1, 100 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    uint64_t began, last, distance = 0;

    (void)state;
    send_all(sim, 100, 0, 0);
    sim_finish(sim, SIM_S);
    sim_run(sim, sim->now + SIM_S);
    assert_int_equal(end->link.silent_ns, 0);

    end->out.filter = note_probe;
    end->to_send[AQ_UDP_REQUEST]++;
    began = last = sim->now;
    sim_feed(end);
    assert_int_equal(end->link.silent_ns, sim_clock(end));
    while (sim->now < began + 60 * SIM_S) {
        const uint64_t probes = end->out.filter_count;

        if (!sim_step(sim, began + 60 * SIM_S))
            break;
        if (end->out.filter_count == probes)
            continue;
        if (distance != 0) {
            assert_true(sim->now - last >= distance); /* never closer again */
            assert_true(sim->now - last <= 2 * distance + 1);
        }
        distance = sim->now - last;
        assert_true(distance <= sim_config.probe_max_ns);
        last = sim->now;
    }
    assert_in_range(end->out.filter_count, 60,
                    75); /* the datagram, a few close ones, then one a second */
    assert_int_equal(end->link.silent_ns,
                     began + end->clock); /* its own sending is no sign of life */
    assert_int_equal(end->link.counts.resent, 0);

    end->out.filter = NULL; /* back again */
    sim_run(sim, sim->now + 2 * SIM_S);
    assert_true(sim_end_done(end));
    assert_int_equal(end->link.counts.resent, 1);
    assert_int_equal(end->link.silent_ns, 0);
    sim_free(sim);
}

/* The other side computes for a while: it finds the data once and some probes, and all goes on. */
static void test_computing(void **state)
{
    static const uint64_t lengths[] = { 5 * SIM_MS, 300 * SIM_MS, 20 * SIM_S, 600 * SIM_S };

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct sim *sim = sim_new(1, i, 50 * SIM_US, 1472, NULL);

        send_all(sim, 50, 50, 50);
        sim_finish(sim, SIM_S);
        sim->end[1].busy_until = sim->now + lengths[i];
        sim->end[0].to_send[AQ_UDP_REQUEST] = 200;
        sim_finish(sim, lengths[i] + SIM_S);
        assert_true(sim->now < sim->end[1].busy_until + 10 * SIM_MS);
        assert_int_equal(sim->end[0].link.counts.resent, 0);
        assert_true(sim->end[0].link.counts.probes < 12 + lengths[i] / SIM_S * 11 / 10);
        sim_free(sim);
    }
}

/* The same, and its socket holds but a part of what is sent to it. */
static void test_small_socket(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sim *sim = sim_new(1, seed, 50 * SIM_US, 1472, NULL);

        sim->end[1].inbox_limit = 20000;
        send_all(sim, 2000, 0, 2000);
        for (int i = 0; i < 40; i++) {
            sim_run(sim, sim->now + sim_random(sim) % (3 * SIM_MS));
            sim->end[1].busy_until = sim->now + sim_random(sim) % (30 * SIM_MS);
        }
        sim_finish(sim, 100 * SIM_S);
        sim_free(sim);
    }
}

/* Between two messages pass minutes, or more than the 32-bit clocks can tell; then all is as
 * before. */
static void test_long_pause(void **state)
{
    static const uint64_t minutes[] = { 1, 20, 36, 37, 50, 70, 73, 74, 90, 110, 600, 6000 };

    (void)state;
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        struct sim *sim = sim_new(1, i, 100 * SIM_US, 1472, NULL);
        struct aq_udp_link_counts *counts = &sim->end[0].link.counts;

        send_all(sim, 200, 200, 200);
        sim->end[0].out.loss = 300;
        sim_finish(sim, 10 * SIM_S);
        sim_run(sim, sim->now + minutes[i] * 60 * SIM_S);
        sim->end[0].out.loss = 0;
        counts->resent = counts->lost = counts->cuts = 0;
        send_all(sim, 500, 500, 500);
        sim_finish(sim, SIM_S);
        if (counts->lost != 0)
            fail_msg("%llu datagrams taken for lost after %u minutes",
                     (unsigned long long)counts->lost, (unsigned)minutes[i]);
        /* losses are found, and count */
        sim->end[0].out.loss = 1000;
        send_all(sim, 500, 500, 500);
        sim_finish(sim, SIM_S);
        if (counts->cuts == 0)
            fail_msg("no cut of the window after %u minutes", (unsigned)minutes[i]);
        sim_free(sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_computing),
        cmocka_unit_test(test_small_socket),
        cmocka_unit_test(test_long_pause),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
