/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_frag.c - fragments of the ibv conduit: every size and number of arguments is cut into
 * fragments that cover the payload once, in buffers of the given size, and is put together again
 * byte by byte; any other order, a repeated, a missing or a foreign fragment is refused and writes
 * nothing.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_device.h"
#include "conduits/ibv/aq_ibv_frag.h"

static uint8_t source[AQ_IBV_MAX_MEDIUM], target[AQ_IBV_MAX_MEDIUM + 64];

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 8) * 13 + 5);
}

/* The fragment of a payload that begins at byte at. */
static struct aq_ibv_fragment fragment_at(const struct aq_ibv_cut *cut, size_t nbytes, size_t at)
{
    struct aq_ibv_fragment fragment = { .head = { .type = cut->type,
                                                  .nbytes = (uint32_t)aq_fragment_len(
                                                      cut->base.each, nbytes, at) },
                                        .address = (uintptr_t)target,
                                        .total = (uint32_t)nbytes,
                                        .at = (uint32_t)at,
                                        .data = source + at };

    return fragment;
}

static void test_cut(void **state)
{
    (void)state;
    for (unsigned is_long = 0; is_long <= 1; is_long++)
        for (unsigned nargs = 0; nargs <= AQ_IBV_ARGS; nargs++)
            for (size_t nbytes = 0; nbytes <= AQ_IBV_MAX_MEDIUM; nbytes += nbytes < 9000 ? 1 : 61) {
                const struct aq_ibv_cut cut = aq_ibv_cut(is_long, nargs, nbytes, AQ_IBV_BUF);
                size_t covered = 0;

                assert_in_range(cut.base.count, 1, AQ_IBV_MSG_FRAGS);
                assert_int_equal(cut.base.count > 1, aq_ibv_type_is_frag(cut.type));
                for (unsigned i = 0; i < cut.base.count; i++) {
                    const size_t len = aq_fragment_len(cut.base.each, nbytes, covered);

                    assert_true(len > 0 || cut.base.count == 1);
                    assert_true(len % 16 == 0 || i + 1 == cut.base.count);
                    assert_true(aq_ibv_data_at(cut.type, nargs) + len <= AQ_IBV_BUF);
                    covered += len;
                }
                assert_int_equal(covered, nbytes);
            }
}

/* The largest payload of one fragment, and one byte more. */
static void test_cut_bounds(void **state)
{
    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_IBV_ARGS; nargs++) {
        const size_t upper = aq_ibv_data_space(AQ_IBV_T_MEDIUM, nargs, AQ_IBV_BUF);

        assert_int_equal(aq_ibv_cut(false, nargs, upper, AQ_IBV_BUF).base.count, 1);
        assert_int_equal(aq_ibv_cut(false, nargs, upper + 1, AQ_IBV_BUF).base.count, 2);
    }
    assert_int_equal(aq_ibv_cut(false, AQ_IBV_ARGS, AQ_IBV_MAX_MEDIUM, AQ_IBV_BUF).base.count,
                     AQ_IBV_MSG_FRAGS);
}

static void whole_message(bool is_long, unsigned nargs, size_t nbytes)
{
    const struct aq_ibv_cut cut = aq_ibv_cut(is_long, nargs, nbytes, AQ_IBV_BUF);
    struct aq_ibv_reasm *open = NULL, *whole = NULL;

    memset(target, 0xee, sizeof(target));
    for (unsigned i = 0; i < cut.base.count; i++) {
        const struct aq_ibv_fragment fragment = fragment_at(&cut, nbytes, i * cut.base.each);

        assert_null(whole);
        assert_int_equal(aq_ibv_reasm_add(&open, &fragment, &whole),
                         i + 1 < cut.base.count ? AQ_IBV_REASM_MORE : AQ_IBV_REASM_COMPLETE);
    }
    assert_null(open);
    assert_non_null(whole);
    assert_int_equal(whole->base.total, nbytes);
    assert_int_equal((uintptr_t)whole->own % 16, 0);
    assert_ptr_equal(whole->base.payload, is_long ? target : whole->own);
    assert_memory_equal(whole->base.payload, source, nbytes);
    for (size_t i = is_long ? nbytes : 0; i < sizeof(target); i++)
        assert_int_equal(target[i], 0xee); /* nothing beside the payload */
    aq_ibv_reasm_release(whole);
}

static void test_whole(void **state)
{
    (void)state;
    for (unsigned is_long = 0; is_long <= 1; is_long++)
        for (unsigned nargs = 0; nargs <= AQ_IBV_ARGS; nargs += 4)
            for (size_t nbytes = 8200; nbytes <= AQ_IBV_MAX_MEDIUM; nbytes += 919)
                whole_message(is_long, nargs, nbytes);
    whole_message(false, AQ_IBV_ARGS, AQ_IBV_MAX_MEDIUM);
}

/* After `expected` fragments came in order, fragment `next` comes: only the right one is taken. */
static void one_of(const struct aq_ibv_cut *cut, size_t nbytes, unsigned expected, unsigned next)
{
    struct aq_ibv_reasm *open = NULL, *whole = NULL;
    struct aq_ibv_fragment fragment;
    enum aq_ibv_reasm_result result;

    memset(target, 0, sizeof(target));
    for (unsigned i = 0; i < expected; i++) {
        fragment = fragment_at(cut, nbytes, i * cut->base.each);
        assert_int_equal(aq_ibv_reasm_add(&open, &fragment, &whole), AQ_IBV_REASM_MORE);
    }
    fragment = fragment_at(cut, nbytes, next * cut->base.each);
    result = aq_ibv_reasm_add(&open, &fragment, &whole);
    if (next == expected)
        assert_int_equal(result,
                         next + 1 < cut->base.count ? AQ_IBV_REASM_MORE : AQ_IBV_REASM_COMPLETE);
    else
        assert_int_equal(result, AQ_IBV_REASM_BAD);
    if (result == AQ_IBV_REASM_BAD) {
        assert_null(whole);
        assert_int_equal(open == NULL ? 0 : open->base.got, expected * cut->base.each);
        for (size_t i = expected * cut->base.each; i < sizeof(target); i++)
            assert_int_equal(target[i], 0);
    }
    if (whole != NULL || open != NULL)
        aq_ibv_reasm_release(whole != NULL ? whole : open);
}

static void test_order(void **state)
{
    const size_t nbytes = 40000;
    const struct aq_ibv_cut cut = aq_ibv_cut(true, 3, nbytes, AQ_IBV_BUF);

    (void)state;
    assert_true(cut.base.count >= 5);
    for (unsigned expected = 0; expected < cut.base.count; expected++)
        for (unsigned next = 0; next < cut.base.count; next++)
            one_of(&cut, nbytes, expected, next);
}

/* A fragment of another message, type or length does not join. */
static void test_foreign(void **state)
{
    const size_t nbytes = 20000;
    const struct aq_ibv_cut cut = aq_ibv_cut(false, 0, nbytes, AQ_IBV_BUF);
    struct aq_ibv_fragment first = fragment_at(&cut, nbytes, 0),
                           second = fragment_at(&cut, nbytes, cut.base.each), other;
    struct aq_ibv_reasm *open = NULL, *whole = NULL;

    (void)state;
    assert_int_equal(aq_ibv_reasm_add(&open, &first, &whole), AQ_IBV_REASM_MORE);
    other = second;
    other.head.type = AQ_IBV_T_LONG_FRAG;
    assert_int_equal(aq_ibv_reasm_add(&open, &other, &whole), AQ_IBV_REASM_BAD);
    other = second;
    other.total++;
    assert_int_equal(aq_ibv_reasm_add(&open, &other, &whole), AQ_IBV_REASM_BAD);
    other = second;
    other.head.nbytes = (uint32_t)(nbytes - cut.base.each + 1); /* past the end */
    assert_int_equal(aq_ibv_reasm_add(&open, &other, &whole), AQ_IBV_REASM_BAD);
    assert_int_equal(open->base.got, cut.base.each);
    assert_int_equal(aq_ibv_reasm_add(&open, &second, &whole), AQ_IBV_REASM_MORE);
    aq_ibv_reasm_release(open);
    /* larger than any medium message */
    open = NULL;
    other = first;
    other.total = AQ_IBV_MAX_MEDIUM + 1;
    assert_int_equal(aq_ibv_reasm_add(&open, &other, &whole), AQ_IBV_REASM_BAD);
    assert_null(open);
}

/* Messages of two channels at a time do not mix; the cache gives each memory of its own. */
static void test_two_open(void **state)
{
    const size_t nbytes = 30000;
    const struct aq_ibv_cut cut = aq_ibv_cut(false, 1, nbytes, AQ_IBV_BUF);
    struct aq_ibv_reasm *open[2] = { NULL, NULL }, *whole[2] = { NULL, NULL };

    (void)state;
    for (unsigned i = 0; i < cut.base.count; i++)
        for (unsigned channel = 0; channel < 2; channel++) {
            const struct aq_ibv_fragment fragment = fragment_at(&cut, nbytes, i * cut.base.each);

            assert_int_not_equal(aq_ibv_reasm_add(&open[channel], &fragment, &whole[channel]),
                                 AQ_IBV_REASM_BAD);
        }
    assert_ptr_not_equal(whole[0], whole[1]);
    for (unsigned channel = 0; channel < 2; channel++) {
        assert_memory_equal(whole[channel]->base.payload, source, nbytes);
        aq_ibv_reasm_release(whole[channel]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_cut_bounds),
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_foreign), cmocka_unit_test(test_two_open),
    };

    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = byte_at(i);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
