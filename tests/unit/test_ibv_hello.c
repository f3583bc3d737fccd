/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_hello.c - how two ranks of the ibv conduit agree on a connection, over a simulated
 * network that loses, doubles, delays and reorders datagrams: both always get there, learn each
 * other's queue pairs, and neither sends before the other receives. Unauthenticated peers, changed
 * packets, and a second set of queue pairs are refused.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "conduits/ibv/aq_ibv_hello.h"

#define SLOTS   4096
#define STEP_NS 1000000u /* of the simulation */

static const struct aq_ibv_hello_times times = { 10000000, 1000000000 };
static const uint8_t job_key[32] = "a key of thirty-two bytes, or so";

static uint64_t random_of(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct side {
    struct aq_ibv_hello hello;
    bool joined, ready;
};

struct datagram {
    uint8_t packet[AQ_IBV_HELLO_BYTES];
    size_t len;
    uint64_t at_ns;
    unsigned to;
    bool used;
};

struct net {
    struct side side[2];
    struct datagram slots[SLOTS];
    unsigned on_the_way;
    uint64_t rng, now_ns;
    unsigned drop, dup; /* percent */
    uint64_t delay_ns;
    unsigned sent;
};

static void side_info(struct side *side, uint32_t rank)
{
    struct aq_ibv_hello_info *local = &side->hello.local;

    memset(side, 0, sizeof(*side));
    side->hello.me = rank;
    side->hello.peer = 11 - rank;
    aq_ibv_hello_key(job_key, rank, 11 - rank, side->hello.key);
    local->count = 3;
    local->rails = 2;
    local->cell = 0x7000 + rank;
    local->cell_rkey = rank;
    local->window = 4;
    for (uint32_t i = 0; i < local->count; i++) {
        memset(local->qps[i].gid, (int)(rank * 16 + i), 16);
        local->qps[i].number = rank * 100 + i;
        local->qps[i].psn = 0xfffff0 + i;
        local->qps[i].mtu = 5;
        local->qps[i].reads = 16;
    }
}

static void net_send(struct net *net, unsigned to, const uint8_t *packet, size_t len)
{
    const unsigned copies =
        random_of(&net->rng) % 100 < net->drop ? 0 : 1 + (random_of(&net->rng) % 100 < net->dup);

    net->sent++;
    for (unsigned copy = 0, i = 0; copy < copies && i < SLOTS; i++)
        if (!net->slots[i].used) {
            net->slots[i].used = true;
            net->slots[i].to = to;
            net->slots[i].len = len;
            net->slots[i].at_ns = net->now_ns + random_of(&net->rng) % (net->delay_ns + 1);
            memcpy(net->slots[i].packet, packet, len);
            net->on_the_way++;
            copy++;
        }
}

static void net_take(struct net *net, struct datagram *datagram)
{
    struct side *side = &net->side[datagram->to];
    unsigned events;

    datagram->used = false;
    if (side->hello.step == AQ_IBV_HELLO_NONE) /* as the connector: an unknown peer has sent */
        aq_ibv_hello_begin(&side->hello, net->now_ns, &times);
    events = aq_ibv_hello_take(&side->hello, datagram->packet, datagram->len);
    assert_int_equal(events & AQ_IBV_HELLO_BAD, 0);
    if ((events & AQ_IBV_HELLO_MET) != 0) {
        assert_false(side->joined);
        side->joined = true;
    }
    if ((events & AQ_IBV_HELLO_DONE) != 0) {
        assert_false(side->ready);
        assert_true(side->joined);
        assert_true(net->side[1 - datagram->to].joined); /* it may send: the peer receives */
        side->ready = true;
    }
}

static void net_step(struct net *net)
{
    uint8_t packet[AQ_IBV_HELLO_BYTES];

    for (unsigned i = 0; net->on_the_way != 0 && i < SLOTS; i++)
        if (net->slots[i].used && net->slots[i].at_ns <= net->now_ns) {
            net->on_the_way--;
            net_take(net, &net->slots[i]);
        }
    for (unsigned i = 0; i < 2; i++) {
        struct aq_ibv_hello *hello = &net->side[i].hello;

        if (hello->step == AQ_IBV_HELLO_NONE)
            continue;
        assert_true(aq_ibv_hello_deadline(hello) <= net->now_ns
                    || !aq_ibv_hello_due(hello, net->now_ns, &times));
        if (aq_ibv_hello_due(hello, net->now_ns, &times))
            net_send(net, 1 - i, packet, aq_ibv_hello_encode(hello, packet));
    }
    net->now_ns += STEP_NS;
}

/* Both, or one, begin; at which times. Returns how many packets were sent. */
static unsigned run(uint64_t seed, bool both, unsigned drop, unsigned dup, uint64_t delay_ns)
{
    static struct net net;
    const uint64_t second = random_of(&seed) % 30;
    uint64_t steps = 0;

    memset(&net, 0, sizeof(net));
    net.rng = seed;
    net.drop = drop;
    net.dup = dup;
    net.delay_ns = delay_ns;
    net.now_ns = 1000;
    side_info(&net.side[0], 4);
    side_info(&net.side[1], 7);
    aq_ibv_hello_begin(&net.side[0].hello, net.now_ns, &times);
    for (; !net.side[0].ready || !net.side[1].ready; steps++) {
        if (both && steps == second)
            aq_ibv_hello_begin(&net.side[1].hello, net.now_ns, &times);
        net_step(&net);
        assert_true(steps
                    < 600000); /* ten minutes: with half of all lost it takes some repetitions */
    }
    for (unsigned i = 0; i < 2; i++)
        assert_memory_equal(&net.side[i].hello.remote, &net.side[1 - i].hello.local,
                            sizeof(net.side[i].hello.remote));
    /* then silence: a packet that is still in flight is answered at most once */
    net.drop = net.dup = 0;
    for (int i = 0; i < 5000; i++)
        net_step(&net);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_false(net.slots[i].used);
    assert_true(aq_ibv_hello_deadline(&net.side[0].hello) == UINT64_MAX);
    assert_true(aq_ibv_hello_deadline(&net.side[1].hello) == UINT64_MAX);
    return net.sent;
}

static void test_good_network(void **state)
{
    (void)state;
    assert_int_equal(run(1, false, 0, 0, 0), 3); /* ASK, HAVE, READY */
    for (uint64_t seed = 0; seed < 50; seed++)
        assert_true(run(seed, true, 0, 0, 3000000) <= 8);
}

static void test_bad_network(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        run(seed, seed % 2 != 0, 30, 20, 30000000);
        run(seed, seed % 2 == 0, 60, 50, 200000000);
        run(seed, true, 0, 90, 100000000);
    }
}

/* --- what is refused --- */

static void test_changed_packets(void **state)
{
    uint8_t packet[AQ_IBV_HELLO_BYTES], changed[AQ_IBV_HELLO_BYTES];
    struct side a, b, fresh;
    size_t len;

    (void)state;
    side_info(&a, 4);
    side_info(&b, 7);
    aq_ibv_hello_begin(&a.hello, 1, &times);
    aq_ibv_hello_begin(&b.hello, 1, &times);
    fresh = b;
    len = aq_ibv_hello_encode(&a.hello, packet);
    assert_true(len <= AQ_IBV_HELLO_BYTES);
    for (size_t bit = 0; bit < len * 8; bit++) { /* every bit counts */
        memcpy(changed, packet, len);
        changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        b = fresh;
        assert_int_equal(aq_ibv_hello_take(&b.hello, changed, len), AQ_IBV_HELLO_BAD);
        assert_false(aq_ibv_hello_is_genuine(job_key, 7, 4, changed, len));
        assert_memory_equal(&b.hello, &fresh.hello, sizeof(b.hello)); /* and leaves no trace */
    }
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(aq_ibv_hello_take(&b.hello, packet, cut), AQ_IBV_HELLO_BAD);
    assert_true(aq_ibv_hello_is_genuine(job_key, 7, 4, packet, len));
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_MET);
}

static void test_unauthenticated_many(void **state)
{
    static const uint8_t other_key[32] = "another key of 32 bytes, not the";
    uint8_t packet[AQ_IBV_HELLO_BYTES];
    struct side a, b, c;
    uint32_t from = 0;
    size_t len;

    (void)state;
    side_info(&a, 4);
    side_info(&b, 7);
    aq_ibv_hello_begin(&a.hello, 1, &times);
    aq_ibv_hello_begin(&b.hello, 1, &times);
    /* one of another job */
    c = a;
    aq_ibv_hello_key(other_key, 4, 7, c.hello.key);
    len = aq_ibv_hello_encode(&c.hello, packet);
    assert_true(aq_ibv_hello_from(packet, len, 7, &from));
    assert_int_equal(from, 4);
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_BAD);
    assert_false(aq_ibv_hello_is_genuine(job_key, 7, 4, packet, len));
    /* one for somebody else; one's own */
    c = a;
    c.hello.peer = 6;
    len = aq_ibv_hello_encode(&c.hello, packet);
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_BAD);
    len = aq_ibv_hello_encode(&b.hello, packet);
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_BAD);
    /* a second set of queue pairs: the first description counts */
    len = aq_ibv_hello_encode(&a.hello, packet);
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_MET);
    c = a;
    c.hello.local.qps[1].number++;
    len = aq_ibv_hello_encode(&c.hello, packet);
    assert_int_equal(aq_ibv_hello_take(&b.hello, packet, len), AQ_IBV_HELLO_BAD);
    assert_int_equal(b.hello.remote.qps[1].number, a.hello.local.qps[1].number);
}

/* What could not be sent is tried again, without being taken for a repetition that doubles the
 * wait. */
static void test_again(void **state)
{
    struct side a;

    (void)state;
    side_info(&a, 4);
    aq_ibv_hello_begin(&a.hello, 1000, &times);
    assert_true(aq_ibv_hello_due(&a.hello, 1000, &times));
    assert_false(aq_ibv_hello_due(&a.hello, 1001, &times));
    aq_ibv_hello_again(&a.hello, 5000);
    assert_true(aq_ibv_hello_deadline(&a.hello) == 5000);
    assert_false(aq_ibv_hello_due(&a.hello, 4999, &times));
    assert_true(aq_ibv_hello_due(&a.hello, 5000, &times));
    assert_false(aq_ibv_hello_due(&a.hello, 5001, &times));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_network),    cmocka_unit_test(test_bad_network),
        cmocka_unit_test(test_changed_packets), cmocka_unit_test(test_unauthenticated_many),
        cmocka_unit_test(test_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
