/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_credit.c - credits: a sender never exceeds its window and never waits for ever, from every
 * place of the counts, also where they pass 2^32 and half of it; a limit that arrives late or twice
 * changes nothing; an update is due at half a window, not before, and not once it is advertised.
 */
#include "tests/unit/aq_unit.h"

#include <pthread.h>

#include "core/aq_credit.h"

/* counts that pass their end soon, or half of it */
static const uint32_t starts[] = {
    0, 1, INT32_MAX - 5, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 5, UINT32_MAX
};
#define STARTS (sizeof(starts) / sizeof(*starts))

struct channel {
    struct aq_credit_out out;
    struct aq_credit_in in;
    uint32_t window;
    uint32_t unhandled; /* sent, not handled */
};

/* As if `start` had been sent and handled before. */
static struct channel channel_from(uint32_t start, uint32_t window)
{
    struct channel channel = { .window = window };

    aq_credit_out_open(&channel.out, window);
    aq_credit_in_open(&channel.in, window);
    channel.out.sent += start;
    aq_credit_add(&channel.in, start);
    aq_credit_advertise(&channel.in, aq_credit_latest(&channel.in));
    atomic_store(&channel.out.limit, aq_credit_latest(&channel.in));
    return channel;
}

static bool channel_send(struct channel *channel, uint32_t cost)
{
    if (!aq_credit_covers(aq_credit_limit(&channel->out), channel->out.sent, cost))
        return false;
    channel->out.sent += cost;
    channel->unhandled += cost;
    assert_true(channel->unhandled <= channel->window);
    return true;
}

static void channel_handle(struct channel *channel, uint32_t cost)
{
    channel->unhandled -= cost;
    aq_credit_add(&channel->in, cost);
}

static uint32_t channel_advertise(struct channel *channel)
{
    const uint32_t limit = aq_credit_latest(&channel->in);

    aq_credit_advertise(&channel->in, limit);
    assert_false(aq_credit_due(&channel->in, channel->window));
    return limit;
}

static void test_after(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STARTS; i++) {
        assert_false(aq_credit_after(starts[i], starts[i]));
        assert_true(aq_credit_after(starts[i] + 1, starts[i]));
        assert_false(aq_credit_after(starts[i] - 1, starts[i]));
        assert_true(aq_credit_after(starts[i] + INT32_MAX, starts[i]));
        assert_false(aq_credit_after(starts[i] - INT32_MAX, starts[i]));
    }
}

/* A window is spent to the last unit, and not one unit more. */
static void test_exhaustion(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STARTS; i++)
        for (uint32_t window = 0; window <= 9; window++) {
            struct channel channel = channel_from(starts[i], window);

            assert_false(channel_send(&channel, window + 1));
            for (uint32_t sent = 0; sent < window; sent++)
                assert_true(channel_send(&channel, 1));
            assert_false(channel_send(&channel, 1));
            assert_true(channel_send(&channel, 0));
            for (uint32_t handled = 1; handled <= window; handled++) {
                channel_handle(&channel, 1);
                assert_false(channel_send(&channel, handled)); /* not told yet */
                assert_true(aq_credit_learn(&channel.out, channel_advertise(&channel)));
                assert_true(
                    aq_credit_covers(aq_credit_limit(&channel.out), channel.out.sent, handled));
                assert_false(
                    aq_credit_covers(aq_credit_limit(&channel.out), channel.out.sent, handled + 1));
            }
        }
}

/* Half a window and not less, for odd windows as well; nothing at all is never due. */
static void test_due(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STARTS; i++)
        for (uint32_t window = 0; window <= 9; window++) {
            struct channel channel = channel_from(starts[i], window);

            assert_false(aq_credit_due(&channel.in, window));
            for (uint32_t handled = 1; handled <= window; handled++) {
                aq_credit_add(&channel.in, 1);
                assert_int_equal(aq_credit_due(&channel.in, window), 2 * handled >= window);
            }
        }
}

/* A thread may read a limit that is older than what another thread has advertised: all of it is on
 * its way. */
static void test_not_due(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STARTS; i++)
        for (uint32_t later = 0; later <= 9; later++) {
            struct channel channel = channel_from(starts[i], 8);

            aq_credit_advertise(&channel.in, aq_credit_latest(&channel.in) + later);
            assert_false(aq_credit_due(&channel.in, 8));
            aq_credit_add(&channel.in, later + 3);
            assert_false(aq_credit_due(&channel.in, 8));
            aq_credit_add(&channel.in, 1);
            assert_true(aq_credit_due(&channel.in, 8));
        }
}

/* Limits arrive in any order, some twice: the latest one counts. */
static void test_late(void **state)
{
    static const uint32_t order[] = { 3, 1, 3, 5, 4, 0, 5, 7, 6, 2 };

    (void)state;
    for (unsigned i = 0; i < STARTS; i++) {
        struct channel channel = channel_from(starts[i], 8);
        const uint32_t first = aq_credit_limit(&channel.out);
        uint32_t latest = 0;

        for (unsigned j = 0; j < sizeof(order) / sizeof(*order); j++) {
            assert_int_equal(aq_credit_learn(&channel.out, first + order[j]), order[j] > latest);
            latest = order[j] > latest ? order[j] : latest;
            assert_int_equal(aq_credit_limit(&channel.out), first + latest);
        }
    }
}

/* Requests of any cost, handled late and told only when due: whoever has no credit gets some. */
static void test_flow(void **state)
{
    const uint32_t window = 20, cost_max = 10; /* half a window and the highest cost fit */
    uint32_t random = 1, waits = 0;

    (void)state;
    for (unsigned i = 0; i < STARTS; i++) {
        struct channel channel = channel_from(starts[i] - 5000, window);

        for (unsigned step = 0; step < 20000; step++) {
            const uint32_t cost =
                1 + (random = random * 1103515245 + 12345, random >> 16) % cost_max;

            if (channel_send(&channel, cost))
                continue;
            waits++;
            channel_handle(&channel, channel.unhandled);
            assert_true(aq_credit_due(&channel.in, window));
            assert_true(aq_credit_learn(&channel.out, channel_advertise(&channel)));
            assert_true(channel_send(&channel, cost));
        }
    }
    assert_true(waits > 1000);
}

#define ADDS 1000000u

static pthread_barrier_t begin;

static void *add_many(void *arg)
{
    pthread_barrier_wait(&begin);
    for (unsigned i = 0; i < ADDS; i++)
        aq_credit_add_shared(arg, 3);
    return NULL;
}

/* Handlers end in several threads: no credit is lost. */
static void test_threads(void **state)
{
    enum { THREADS = AQ_THREADED ? 4 : 1 };
    struct channel channel = channel_from(UINT32_MAX - ADDS, 8);
    const uint32_t first = aq_credit_latest(&channel.in);
    pthread_t threads[THREADS];

    (void)state;
    assert_int_equal(pthread_barrier_init(&begin, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &channel.in), 0);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&begin);
    assert_int_equal(aq_credit_latest(&channel.in), first + THREADS * 3 * ADDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after),   cmocka_unit_test(test_exhaustion),
        cmocka_unit_test(test_due),     cmocka_unit_test(test_not_due),
        cmocka_unit_test(test_late),    cmocka_unit_test(test_flow),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
