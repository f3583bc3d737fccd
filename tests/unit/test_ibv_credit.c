/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_credit.c - credits of the ibv conduit against a simulated receive queue: whatever the
 * order in which fragments arrive, are handled, granted, asked for and given up, no fragment ever
 * finds the queue empty; nobody waits for ever; windows grow under load and shrink when it ends;
 * counts may wrap, also while one way of telling is not used for thousands of millions of messages;
 * a word that is half written counts for nothing.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "conduits/ibv/aq_ibv_credit.h"

#define HIGHEST 32u
#define PARTS   9u

static uint64_t random_of(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* One channel: a sender, a wire that keeps the order, a receiver. */
struct channel {
    struct aq_ibv_credit_out out;
    struct aq_ibv_cell cell;
    struct aq_ibv_credit_in in;
    struct {
        uint32_t skip, want;
        bool low;
    } wire[4096];
    uint32_t wire_first, wire_last;
    uint32_t posted;  /* receive buffers */
    uint32_t waiting; /* arrived, not handled */
    uint32_t excess;  /* posted for nobody */
    uint32_t max_posted;
    uint64_t arrived;
};

static void channel_open(struct channel *channel, uint32_t base)
{
    memset(channel, 0, sizeof(*channel));
    aq_ibv_credit_open(&channel->in, AQ_IBV_WINDOW_MIN);
    channel->posted = AQ_IBV_WINDOW_MIN;
    /* as if 2^32 less a few had been sent before */
    channel->out.base.sent = channel->out.idle_at = channel->out.wanted = base;
    atomic_store(&channel->out.base.limit, base + AQ_IBV_WINDOW_MIN);
    channel->in.arrived = channel->in.retired = channel->in.want_at = base;
    atomic_store(&channel->in.base.limit, base + AQ_IBV_WINDOW_MIN);
    atomic_store(&channel->in.base.advertised, base + AQ_IBV_WINDOW_MIN);
}

static void channel_put(struct channel *channel, uint32_t skip, uint32_t want)
{
    const uint32_t at = channel->wire_last++ % 4096;

    channel->wire[at].skip = skip;
    channel->wire[at].want = want;
    channel->wire[at].low = aq_ibv_credit_left(&channel->out, &channel->cell, 0) == 0;
}

/* As aq_ibv_am_claim() and its callers. */
static bool channel_send(struct channel *channel, uint32_t parts)
{
    const uint32_t limit = aq_ibv_credit_limit(&channel->out, &channel->cell, 0);

    if (limit - channel->out.base.sent >= parts) {
        for (uint32_t i = 0; i < parts; i++) {
            channel->out.base.sent++;
            channel_put(channel, 0, 0);
        }
        return true;
    }
    if (parts > 1 && limit != channel->out.base.sent
        && !aq_ibv_credit_is_requested(&channel->out, limit)) {
        channel->out.base.sent++;
        channel->out.wanted = channel->out.base.sent + parts;
        channel_put(channel, 0, parts);
    }
    return false;
}

/* A tick on the sender's side. */
static void channel_idle(struct channel *channel)
{
    const uint32_t surplus = aq_ibv_credit_surplus(&channel->out, &channel->cell, 0);

    if (surplus == 0)
        return;
    channel->out.base.sent += surplus + 1;
    channel_put(channel, surplus, 0);
}

/* As aq_ibv_recv_accept(). */
static void channel_arrive(struct channel *channel)
{
    uint32_t more = 0, at;

    if (channel->wire_first == channel->wire_last)
        return;
    at = channel->wire_first++ % 4096;
    assert_true(channel->posted > 0); /* what it is all about */
    channel->posted--;
    channel->waiting++;
    channel->arrived++;
    assert_true(aq_ibv_credit_arrive(&channel->in, channel->wire[at].skip));
    channel->excess += channel->wire[at].skip;
    if (channel->wire[at].want != 0)
        more = aq_ibv_credit_request(&channel->in, channel->wire[at].want);
    else if (channel->wire[at].low)
        more = aq_ibv_credit_growth(&channel->in, HIGHEST, 1000);
    channel->posted += more;
    if (more != 0)
        aq_ibv_credit_grow(&channel->in, more);
    if (channel->posted + channel->waiting > channel->max_posted)
        channel->max_posted = channel->posted + channel->waiting;
}

static void channel_handle(struct channel *channel)
{
    if (channel->waiting == 0)
        return;
    channel->waiting--;
    aq_ibv_credit_return(&channel->in, channel->excess != 0);
    if (channel->excess != 0) {
        channel->excess--;
    } else {
        channel->posted++;
        aq_ibv_credit_add(&channel->in, 1);
    }
}

/* The news reach the sender: all, or what is due; in a head, or in the cell. */
static void channel_tell(struct channel *channel, bool all, bool in_head)
{
    const uint32_t update = aq_ibv_credit_latest(&channel->in);

    if (!all && !aq_ibv_credit_due(&channel->in))
        return;
    if (in_head) {
        aq_credit_advertise(&channel->in.base, update);
        aq_ibv_credit_learn(&channel->out, update);
    } else {
        aq_ibv_credit_wrote(&channel->in, update);
        atomic_store(&channel->cell.word[0], aq_ibv_cell_word(update));
    }
}

static void channel_settle(struct channel *channel)
{
    while (channel->wire_first != channel->wire_last || channel->waiting != 0) {
        channel_arrive(channel);
        channel_handle(channel);
    }
    channel_tell(channel, false, false); /* only what is due: no update is requested */
}

static void run(uint64_t seed, uint32_t base)
{
    struct channel channel;
    uint64_t rng = seed;

    channel_open(&channel, base);
    for (int step = 0; step < 20000; step++) {
        const uint64_t dice = random_of(&rng);

        switch (dice % 8) {
        case 0:
        case 1:
            (void)channel_send(&channel, dice >> 8 & 1 ? 1 : 1 + (dice >> 16) % PARTS);
            break;
        case 2:
        case 3:
            channel_arrive(&channel);
            break;
        case 4:
        case 5:
            channel_handle(&channel);
            break;
        case 6:
            channel_tell(&channel, dice >> 8 & 1, dice >> 9 & 1);
            break;
        default:
            if (dice >> 8 & 1)
                channel_idle(&channel);
            break;
        }
        /* what is granted is posted */
        assert_true((int32_t)(aq_ibv_credit_latest(&channel.in) - channel.in.arrived)
                    <= (int32_t)channel.posted);
        assert_true(channel.in.window >= AQ_IBV_WINDOW_MIN || channel.excess != 0
                    || channel.waiting != 0);
    }
    /* once the receiver serves what there is, every message gets through in the end */
    for (int i = 0; i < 100; i++) {
        const uint32_t parts = 1 + (uint32_t)(random_of(&rng) % PARTS);
        int tries = 0;

        while (!channel_send(&channel, parts)) {
            channel_settle(&channel);
            assert_true(++tries < 10);
        }
        channel_settle(&channel);
    }
    /* never more than the window's most, or what one message needed on top of it */
    assert_true(channel.max_posted <= 2 * HIGHEST + 2 * PARTS);
    /* it falls silent: what is not used is given back */
    for (int i = 0; i < 4; i++) {
        channel_idle(&channel);
        channel_settle(&channel);
        channel_tell(&channel, true, false);
    }
    assert_true(channel.in.window <= 2 * AQ_IBV_WINDOW_MIN);
    /* and the buffers go as a few more messages come by */
    for (int i = 0; i < 200; i++) {
        while (!channel_send(&channel, 1))
            channel_settle(&channel);
        channel_settle(&channel);
        channel_tell(&channel, true, true);
    }
    assert_int_equal(channel.excess, 0);
    assert_int_equal(channel.posted, channel.in.window);
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++)
        run(seed, 0);
}

static void test_wrap(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        run(seed * 77, (uint32_t)(0u - seed * 50));
}

/* A flood grows the window to its most, and no further. */
static void test_growth(void **state)
{
    struct channel channel;

    (void)state;
    channel_open(&channel, 0);
    for (int i = 0; i < 1000; i++) {
        while (channel_send(&channel, 1))
            ;
        channel_settle(&channel);
        channel_tell(&channel, true, false);
    }
    assert_int_equal(channel.in.window, HIGHEST);
    assert_int_equal(channel.posted, HIGHEST);
    /* within a budget */
    assert_int_equal(aq_ibv_credit_growth(&channel.in, 2 * HIGHEST, 5), 5);
    assert_int_equal(aq_ibv_credit_growth(&channel.in, HIGHEST, 5), 0);
}

/* Request and answer: the answer's head is enough, no cell is ever written. */
static void test_ping_pong(void **state)
{
    struct channel channel;

    (void)state;
    channel_open(&channel, 0);
    for (int i = 0; i < 1000; i++) {
        assert_true(channel_send(&channel, 1));
        channel_arrive(&channel);
        channel_tell(&channel, true,
                     true); /* the handler's reply leaves before its request's buffer is back */
        channel_handle(&channel);
        assert_false(aq_ibv_credit_due(&channel.in));
    }
    assert_int_equal(channel.in.window, AQ_IBV_WINDOW_MIN);
}

/* A sender that needs a little more credit than it has left is sent its credit although half the
 * window is not due. */
static void test_want(void **state)
{
    (void)state;
    for (uint32_t window = AQ_IBV_WINDOW_MIN; window <= HIGHEST; window++)
        for (uint32_t before = 0; before <= window; before++) {
            struct channel channel;
            int tries = 0;

            channel_open(&channel, 0);
            channel.posted += window - AQ_IBV_WINDOW_MIN;
            aq_ibv_credit_grow(&channel.in, window - AQ_IBV_WINDOW_MIN);
            channel_tell(&channel, true, false);
            for (uint32_t i = 0; i < before; i++)
                assert_true(channel_send(&channel, 1));
            while (!channel_send(&channel, PARTS)) {
                channel_settle(&channel);
                assert_true(++tries < 3);
            }
        }
}

/* As if so many more messages had been sent, handled and told of. */
static void channel_jump(struct channel *channel, uint32_t n, bool in_head)
{
    channel->out.base.sent += n;
    channel->in.arrived += n;
    channel->in.retired += n;
    atomic_fetch_add(&channel->in.base.limit, n);
    channel_tell(channel, true, in_head);
}

static void assert_window(struct channel *channel, uint32_t window)
{
    assert_int_equal(channel->in.window, window);
    assert_int_equal(aq_ibv_credit_left(&channel->out, &channel->cell, 0), window);
}

/* For 2^34 messages the sender hears by its cell only, then by heads only: credits are what they
 * are all the time. */
static void test_one_way_only(void **state)
{
    struct channel channel;

    (void)state;
    channel_open(&channel, 0);
    for (int i = 0; i < 2048; i++) {
        channel_jump(&channel, UINT32_C(1) << 23, false);
        assert_window(&channel, AQ_IBV_WINDOW_MIN);
    }
    for (int i = 0; i < 2048; i++) {
        channel_jump(&channel, UINT32_C(1) << 23, true);
        assert_window(&channel, AQ_IBV_WINDOW_MIN);
        assert_true(channel_send(&channel, 1));
        channel_arrive(&channel);
        channel_handle(&channel);
        if (aq_ibv_credit_due(&channel.in))
            channel_tell(&channel, true, false); /* the cell, once in a while */
        assert_true(atomic_load(&channel.in.base.advertised)
                        - (uint32_t)atomic_load(&channel.cell.word[0])
                    <= AQ_IBV_COUNT_APART + (UINT32_C(1) << 23));
    }
}

/* A message of many fragments, when so many others have gone by since the last one; with ticks
 * between them, or not. */
static void want_after(struct channel *channel, uint32_t since, bool ticks)
{
    int tries = 0;

    while (since != 0) {
        const uint32_t n = since < 1u << 23 ? since : 1u << 23;

        channel_jump(channel, n, true);
        if (ticks)
            (void)aq_ibv_credit_surplus(&channel->out, &channel->cell, 0);
        channel_tell(channel, true, false);
        since -= n;
    }
    while (!channel_send(channel, PARTS)) {
        channel_settle(channel);
        assert_true(++tries < 3);
    }
    channel_settle(channel);
    channel_tell(channel, true, false);
    for (int tick = 0; tick < 2; tick++) { /* it returns unused credit */
        channel_idle(channel);
        channel_settle(channel);
        channel_tell(channel, true, false);
    }
}

/* What was wanted long ago is not waited for any more, wherever the counts stand. */
static void test_want_anew(void **state)
{
    static const uint32_t since[] = {
        1, 1u << 16, 1u << 23, (1u << 31) + 64, UINT32_MAX - (1u << 16), UINT32_MAX - 8
    };

    (void)state;
    for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++) {
        struct channel channel;

        channel_open(&channel, 0);
        want_after(&channel, 0, true);
        want_after(&channel, since[i],
                   since[i] > 3u << 30); /* hundreds of messages a microsecond, and no tick: no */
    }
}

/* Who waits for more gives nothing up, however long that takes. */
static void test_want_keeps(void **state)
{
    const uint32_t window = 2 * AQ_IBV_WINDOW_MIN + 1;
    struct channel channel;

    (void)state;
    channel_open(&channel, 0);
    channel.posted = window;
    aq_ibv_credit_grow(&channel.in, window - AQ_IBV_WINDOW_MIN);
    channel_tell(&channel, true, false);
    channel.out.wanted = window + 1;
    for (int tick = 0; tick < 3; tick++)
        assert_int_equal(aq_ibv_credit_surplus(&channel.out, &channel.cell, 0), 0);
    channel.out.wanted = window;
    assert_int_equal(aq_ibv_credit_surplus(&channel.out, &channel.cell, 0),
                     window - AQ_IBV_WINDOW_MIN - 1);
}

/* Credits that were taken before a request, for messages that leave after it: the request is served
 * when they have arrived. */
static void test_want_overtakes(void **state)
{
    (void)state;
    for (uint32_t window = AQ_IBV_WINDOW_MIN; window <= HIGHEST; window++)
        for (uint32_t taken = 0; taken < window; taken++)
            for (uint32_t parts = 2; parts <= PARTS; parts++) {
                struct channel channel;
                int tries = 0;

                channel_open(&channel, 0);
                channel.posted += window - AQ_IBV_WINDOW_MIN;
                aq_ibv_credit_grow(&channel.in, window - AQ_IBV_WINDOW_MIN);
                channel_tell(&channel, true, false);
                channel.out.base.sent += taken;
                if (channel_send(&channel, parts))
                    continue;
                channel_settle(&channel);
                if (channel_send(&channel, parts))
                    continue; /* there was enough for both */
                for (uint32_t i = 0; i < taken; i++) {
                    channel_put(&channel, 0, 0);
                    channel_settle(&channel);
                }
                while (!channel_send(&channel, parts)) {
                    channel_settle(&channel);
                    assert_true(++tries < 3);
                }
            }
}

/* A peer that sends without credit, or returns more than it has, is detected. */
static void test_liar(void **state)
{
    struct aq_ibv_credit_in in;

    (void)state;
    aq_ibv_credit_open(&in, 4);
    for (int i = 0; i < 4; i++)
        assert_true(aq_ibv_credit_arrive(&in, 0));
    assert_false(aq_ibv_credit_arrive(&in, 0));
    aq_ibv_credit_open(&in, 4);
    assert_false(aq_ibv_credit_arrive(&in, 4));
    assert_false(aq_ibv_credit_arrive(&in, UINT16_MAX));
    assert_true(aq_ibv_credit_arrive(&in, 1));
}

static void test_torn_word(void **state)
{
    struct aq_ibv_credit_out out;
    struct aq_ibv_cell cell;

    (void)state;
    memset(&out, 0, sizeof(out));
    memset(&cell, 0, sizeof(cell));
    atomic_store(&out.base.limit, 4);
    assert_int_equal(aq_ibv_credit_limit(&out, &cell, 0), 4); /* zeros are no word */
    for (uint32_t count = 0xf0; count < 0x120; count++) {
        const uint64_t before = aq_ibv_cell_word(count), after = aq_ibv_cell_word(count + 1);

        for (unsigned bytes = 1; bytes < 8; bytes++) {
            const uint64_t mask = (UINT64_C(1) << 8 * bytes) - 1;

            atomic_store(&out.base.limit, count);
            atomic_store(&cell.word[0], (after & mask) | (before & ~mask));
            /* never more than was granted */
            assert_true(aq_ibv_credit_limit(&out, &cell, 0) - count <= 1);
            atomic_store(&cell.word[0], (before & mask) | (after & ~mask));
            assert_true(aq_ibv_credit_limit(&out, &cell, 0) - count <= 1);
        }
    }
    atomic_store(&cell.word[0], aq_ibv_cell_word(3)); /* old news */
    assert_int_equal(aq_ibv_credit_limit(&out, &cell, 0), atomic_load(&out.base.limit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),         cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_growth),         cmocka_unit_test(test_ping_pong),
        cmocka_unit_test(test_want),           cmocka_unit_test(test_liar),
        cmocka_unit_test(test_torn_word),      cmocka_unit_test(test_one_way_only),
        cmocka_unit_test(test_want_anew),      cmocka_unit_test(test_want_keeps),
        cmocka_unit_test(test_want_overtakes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
