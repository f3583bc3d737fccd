/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fragment.c - fragments: any size is cut into fragments that fit, are aligned and cover the
 * payload once; they are put together in order and in any order; a message with a missing fragment
 * is not complete; in order, a repeated, a missing, a foreign and a too long fragment is refused.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "core/aq_fragment.h"

#define TYPE 7u

static uint8_t source[1 << 12], target[1 << 12];

static void check_cut(size_t nbytes, size_t whole, size_t space)
{
    const struct aq_fragment_cut cut = aq_fragment_cut(nbytes, whole, space);
    size_t covered = 0;

    assert_int_equal(cut.count == 1, nbytes <= whole || nbytes <= (space & ~(size_t)15));
    for (unsigned i = 0; i < cut.count; i++) {
        const size_t len = aq_fragment_len(cut.each, nbytes, covered);

        assert_true(len <= (cut.count == 1 ? (whole > space ? whole : space) : space));
        assert_true(len > 0 || nbytes == 0);
        if (i + 1 < cut.count) {
            assert_int_equal(len, cut.each);
            assert_int_equal(len % AQ_FRAGMENT_ALIGN, 0);
        }
        covered += len;
    }
    assert_int_equal(covered, nbytes);
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t space = 16; space <= 50; space++)
        for (size_t whole = space; whole <= space + 20; whole++)
            for (size_t nbytes = 0; nbytes <= 200; nbytes++)
                check_cut(nbytes, whole, space);
}

/* 0, 1, one less than the limit, the limit, one more. */
static void test_bounds(void **state)
{
    (void)state;
    assert_int_equal(aq_fragment_cut(0, 100, 96).count, 1);
    assert_int_equal(aq_fragment_cut(0, 100, 96).each, 0);
    assert_int_equal(aq_fragment_cut(1, 100, 96).each, 1);
    assert_int_equal(aq_fragment_cut(99, 100, 96).count, 1);
    assert_int_equal(aq_fragment_cut(100, 100, 96).count, 1);
    assert_int_equal(aq_fragment_cut(100, 100, 96).each, 100);
    assert_int_equal(aq_fragment_cut(101, 100, 96).count, 2);
    assert_int_equal(aq_fragment_cut(101, 100, 96).each, 96);
    assert_int_equal(aq_fragment_cut(191, 100, 96).count, 2);
    assert_int_equal(aq_fragment_cut(192, 100, 96).count, 2);
    assert_int_equal(aq_fragment_cut(193, 100, 96).count, 3);
    assert_int_equal(aq_fragment_len(96, 193, 0), 96);
    assert_int_equal(aq_fragment_len(96, 193, 96), 96);
    assert_int_equal(aq_fragment_len(96, 193, 192), 1);
    assert_int_equal(aq_fragment_len(96, 193, 193), 0);
}

/* --- putting together --- */

#define NBYTES 193u
#define SPACE  48u

static unsigned orders;

/* The fragments arrive in this order: only the last one completes the message. */
static void put_together(const unsigned *order, unsigned count)
{
    const struct aq_fragment_cut cut = aq_fragment_cut(NBYTES, SPACE, SPACE);
    struct aq_reassembly message;

    memset(target, 0, NBYTES);
    aq_reassembly_open(&message, TYPE, NBYTES, target);
    for (unsigned i = 0; i < count; i++) {
        const size_t at = order[i] * cut.each, len = aq_fragment_len(cut.each, NBYTES, at);

        assert_true(aq_reassembly_matches(&message, TYPE, NBYTES));
        memcpy((uint8_t *)message.payload + at, source + at, len);
        assert_int_equal(aq_reassembly_add(&message, (uint32_t)len), i + 1 == count);
    }
    assert_int_equal(message.got, NBYTES);
    assert_memory_equal(target, source, NBYTES);
    orders++;
}

static void permute(unsigned *order, unsigned first, unsigned count)
{
    if (first == count)
        put_together(order, count);
    for (unsigned i = first; i < count; i++) {
        const unsigned chosen = order[i];

        memmove(order + first + 1, order + first, (i - first) * sizeof(*order));
        order[first] = chosen;
        permute(order, first + 1, count);
        memmove(order + first, order + first + 1, (i - first) * sizeof(*order));
        order[i] = chosen;
    }
}

static void test_any_order(void **state)
{
    unsigned order[5] = { 0, 1, 2, 3, 4 };

    (void)state;
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 7 + 1);
    assert_int_equal(aq_fragment_cut(NBYTES, SPACE, SPACE).count, 5);
    permute(order, 0, 5);
    assert_int_equal(orders, 120);
}

/* Each of the fragments is lost once. */
static void test_missing(void **state)
{
    const struct aq_fragment_cut cut = aq_fragment_cut(NBYTES, SPACE, SPACE);

    (void)state;
    for (unsigned lost = 0; lost < cut.count; lost++) {
        struct aq_reassembly message;

        aq_reassembly_open(&message, TYPE, NBYTES, target);
        for (unsigned i = 0; i < cut.count; i++)
            if (i != lost)
                assert_false(aq_reassembly_add(
                    &message, (uint32_t)aq_fragment_len(cut.each, NBYTES, i * cut.each)));
        assert_true(message.got < NBYTES);
    }
}

/* In order: after `expected` fragments only the next one follows. */
static void test_in_order(void **state)
{
    const struct aq_fragment_cut cut = aq_fragment_cut(NBYTES, SPACE, SPACE);
    struct aq_reassembly message;

    (void)state;
    aq_reassembly_open(&message, TYPE, NBYTES, target);
    for (unsigned expected = 0; expected < cut.count; expected++) {
        const uint32_t len = (uint32_t)aq_fragment_len(cut.each, NBYTES, message.got);

        for (unsigned next = 0; next < cut.count; next++)
            assert_int_equal(aq_reassembly_follows(&message, (uint32_t)(next * cut.each), 1),
                             next == expected);
        assert_true(aq_reassembly_follows(&message, message.got, len));
        assert_true(aq_reassembly_follows(&message, message.got, NBYTES - message.got));
        assert_false(aq_reassembly_follows(&message, message.got, NBYTES - message.got + 1));
        assert_false(aq_reassembly_follows(&message, message.got, UINT32_MAX));
        assert_false(aq_reassembly_follows(&message, message.got + 1, 1));
        assert_int_equal(aq_reassembly_add(&message, len), expected + 1 == cut.count);
    }
    assert_false(aq_reassembly_follows(&message, NBYTES, 1)); /* it is complete */
    assert_false(aq_reassembly_follows(&message, 0, 1));
}

static void test_foreign(void **state)
{
    struct aq_reassembly message;

    (void)state;
    aq_reassembly_open(&message, TYPE, NBYTES, target);
    assert_true(aq_reassembly_matches(&message, TYPE, NBYTES));
    assert_false(aq_reassembly_matches(&message, TYPE + 1, NBYTES));
    assert_false(aq_reassembly_matches(&message, TYPE, NBYTES - 1));
    assert_false(aq_reassembly_matches(&message, TYPE, NBYTES + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_any_order), cmocka_unit_test(test_missing),
        cmocka_unit_test(test_in_order),  cmocka_unit_test(test_foreign),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
