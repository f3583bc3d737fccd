/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_rate.c - how fast the udp conduit's engine sends: the congestion window is cut by losses
 * and comes back, flows share a pipe fairly, a loss here and there costs little, and a pipe is kept
 * full.
 */
#include "tests/unit/udp_sim_run.h"

#define LENGTH 1400u

/* Send for so long; the rate in bytes/s at which end's peer got them. */
static double rate_of(struct sim *sim, struct sim_end *end, uint64_t duration)
{
    const uint64_t before = end->peer->got_bytes, began = sim->now;

    sim_run(sim, sim->now + duration);
    return (double)(end->peer->got_bytes - before) * 1e9 / (double)(sim->now - began);
}

static void endless(struct sim_end *end)
{
    end->to_send[AQ_UDP_RMA] = SIM_MESSAGES;
    end->length = LENGTH;
}

/* One flow fills a pipe, also a long one. */
static void test_fills_pipe(void **state)
{
    static const struct {
        uint64_t delay, bytes_per_s;
        double min;
    } pipes[] = {
        { 20 * SIM_US, 125000000, 0.9 },
        { 200 * SIM_US, 125000000, 0.9 },
        { SIM_MS, 125000000, 0.85 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pipes) / sizeof(pipes[0]); i++) {
        struct sim_pipe pipe = { .bytes_per_s = pipes[i].bytes_per_s, .queue_bytes = 250000 };
        struct sim *sim = sim_new(1, i, pipes[i].delay, 1472, NULL);
        double rate;

        sim->end[0].out.pipe = &pipe;
        endless(&sim->end[0]);
        (void)rate_of(sim, &sim->end[0], 50 * SIM_MS);
        rate = rate_of(sim, &sim->end[0], 200 * SIM_MS);
        print_message("%llu us each way: %.1f MB/s of %.1f\n",
                      (unsigned long long)(pipes[i].delay / 1000), rate / 1e6,
                      (double)pipes[i].bytes_per_s / 1e6);
        assert_true(rate > pipes[i].min * (double)pipes[i].bytes_per_s);
        sim_free(sim);
    }
}

/* Losses by a full queue cut the window to 0.7, by chance to 0.9, once a round trip; then it grows
 * again. */
static void test_cut(void **state)
{
    struct sim *sim = sim_new(1, 1, 200 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    uint64_t before, after;

    (void)state;
    endless(end);
    sim_run(sim, 20 * SIM_MS);
    before = end->link.cwnd;
    end->out.batch_left = 5; /* in one GSO batch */
    while (end->link.counts.cuts == 0 && sim_step(sim, sim->now + 20 * SIM_MS))
        continue;
    after = end->link.cwnd;
    assert_int_equal(end->link.counts.cuts, 1);
    assert_in_range(after, before * 85 / 100, before * 95 / 100);
    assert_int_equal(end->link.ssthresh <= after, 1);
    sim_run(sim, sim->now + 10 * SIM_MS);
    assert_int_equal(end->link.counts.cuts, 1);
    assert_int_equal(end->link.counts.lost, 5);
    assert_true(end->link.cwnd > after);
    sim_free(sim);
}

static void test_cut_by_queue(void **state)
{
    struct sim_pipe pipe = { .bytes_per_s = 50000000, .queue_bytes = 150000 };
    struct sim *sim = sim_new(1, 1, 200 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    uint64_t before = 0;

    (void)state;
    end->out.pipe = &pipe;
    endless(end);
    sim_feed(end);
    while (end->link.counts.cuts == 0 && sim->now < SIM_S) {
        before = end->link.cwnd;
        (void)sim_step(sim, SIM_S);
    }
    assert_int_equal(end->link.counts.cuts, 1);
    assert_in_range(end->link.cwnd, before * 65 / 100, before * 75 / 100);
    sim_run(sim, sim->now + SIM_S / 2);
    assert_true(end->link.counts.cuts > 1); /* it went on looking for space */
    assert_true(end->link.cwnd < 2 * (pipe.queue_bytes + 2 * 10000 + 20000));
    assert_true(end->link.counts.resent < end->link.counts.sent / 20);
    sim_free(sim);
}

/* Flows through one pipe get about the same, whoever began first and at whatever distance in time.
 * */
static void share(unsigned flows, uint64_t bytes_per_s, uint64_t queue, uint64_t delay)
{
    struct sim_pipe pipe = { .bytes_per_s = bytes_per_s, .queue_bytes = queue };
    struct sim *sim = sim_new(flows, flows, delay, 1472, NULL);
    double rate[SIM_ENDS / 2], min = 1e18, max = 0, sum = 0;
    uint64_t before[SIM_ENDS / 2];

    for (unsigned i = 0; i < flows; i++) {
        sim->end[2 * i].out.pipe = &pipe;
        sim->end[2 * i].out.jitter = 3000; /* or losses would be in step */
        endless(&sim->end[2 * i]);
        sim_run(sim, sim->now + 50 * SIM_MS);
    }
    sim_run(sim, sim->now + 300 * SIM_MS);
    for (unsigned i = 0; i < flows; i++)
        before[i] = sim->end[2 * i + 1].got_bytes;
    sim_run(sim, sim->now + 300 * SIM_MS);
    for (unsigned i = 0; i < flows; i++) {
        rate[i] = (double)(sim->end[2 * i + 1].got_bytes - before[i]) / 0.3;
        min = rate[i] < min ? rate[i] : min;
        max = rate[i] > max ? rate[i] : max;
        sum += rate[i];
    }
    print_message("%u flows through %.0f MB/s: least %.1f, most %.1f, in all %.1f MB/s\n", flows,
                  (double)bytes_per_s / 1e6, min / 1e6, max / 1e6, sum / 1e6);
    assert_true(max < 2 * min);
    assert_true(sum > 0.8 * (double)bytes_per_s);
    sim_free(sim);
}

static void test_fair(void **state)
{
    (void)state;
    share(2, 50000000, 100000, 200 * SIM_US);
    share(3, 50000000, 100000, 200 * SIM_US);
    share(2, 50000000, 250000, 500 * SIM_US);
}

/* One datagram in a hundred is lost by chance: at least half the rate is left. */
static void test_random_loss(void **state)
{
    static const uint64_t delays[] = { 25 * SIM_US, 100 * SIM_US, 200 * SIM_US };

    (void)state;
    for (size_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++) {
        double rate[2];

        for (int lossy = 0; lossy < 2; lossy++) {
            struct sim_pipe pipe = { .bytes_per_s = 125000000, .queue_bytes = 500000 };
            struct sim *sim = sim_new(1, 7, delays[i], 1472, NULL);

            sim->end[0].out.pipe = &pipe;
            sim->end[0].out.loss = lossy != 0 ? 100 : 0;
            endless(&sim->end[0]);
            (void)rate_of(sim, &sim->end[0], 50 * SIM_MS);
            rate[lossy] = rate_of(sim, &sim->end[0], 300 * SIM_MS);
            sim_free(sim);
        }
        print_message("%llu us each way: %.1f MB/s, with 1%% loss %.1f MB/s\n",
                      (unsigned long long)(delays[i] / 1000), rate[0] / 1e6, rate[1] / 1e6);
        assert_true(rate[1] > rate[0] / 2);
    }
}

/* Small datagrams open the window as well, also when it is large. */
static void test_small_datagrams_grow(void **state)
{
    struct sim *sim = sim_new(1, 1, 500 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];
    uint64_t before;

    (void)state;
    end->length = 32;
    end->link.cwnd = end->link.ssthresh = 20000;
    end->to_send[AQ_UDP_RMA] = SIM_MESSAGES;
    sim_run(sim, 20 * SIM_MS);
    before = end->link.cwnd;
    sim_run(sim, 60 * SIM_MS);
    assert_true(end->link.cwnd > before);
    sim_free(sim);
}

/* An idle or slow sender does not collect a window that it never tried. */
static void test_idle_does_not_grow(void **state)
{
    struct sim *sim = sim_new(1, 1, 100 * SIM_US, 1472, NULL);
    struct sim_end *end = &sim->end[0];

    (void)state;
    end->length = 200;
    for (int i = 0; i < 5000; i++) {
        end->to_send[AQ_UDP_REQUEST]++;
        sim_feed(end);
        sim_run(sim, sim->now + SIM_MS);
    }
    assert_true(end->link.cwnd < 3 * 10 * 1472);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills_pipe),         cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_by_queue),       cmocka_unit_test(test_fair),
        cmocka_unit_test(test_random_loss),        cmocka_unit_test(test_small_datagrams_grow),
        cmocka_unit_test(test_idle_does_not_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
