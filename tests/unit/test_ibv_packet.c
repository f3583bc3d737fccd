/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ibv_packet.c - messages of the ibv conduit: encoded messages are decoded, with every type
 * and number of arguments, and everything that is not exactly of the format is refused, without an
 * access outside (each packet is in memory of exactly its size, so that sanitizers and valgrind
 * detect it).
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_am.h"

#define RANKS  8
#define MEDIUM 65536
#define LONG   1000000

static uint64_t random_of(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A fragment of a type, with data of its own; returns its length. */
static size_t make(uint8_t *at, unsigned type, unsigned nargs, size_t nbytes,
                   struct aq_ibv_fragment *fragment, gex_AM_Arg_t *args)
{
    uint8_t *data;

    for (unsigned i = 0; i < nargs; i++)
        args[i] = (gex_AM_Arg_t)(0x1000 * type + i);
    *fragment = (struct aq_ibv_fragment){ .head = { .type = (uint8_t)type,
                                                    .handler = 200,
                                                    .nargs = (uint8_t)nargs,
                                                    .flags = AQ_IBV_F_REPLY,
                                                    .from = 3,
                                                    .credits = { 7, UINT32_MAX },
                                                    .skip = 5,
                                                    .want = 9,
                                                    .nbytes = (uint32_t)nbytes },
                                          .address = UINT64_C(0x123456789abcdef0),
                                          .total = 60000,
                                          .at = 4096,
                                          .args = args };
    data = aq_ibv_packet_write(at, fragment);
    for (size_t i = 0; aq_ibv_type_has_data(type) && i < nbytes; i++)
        data[i] = (uint8_t)(i * 7 + type);
    return (size_t)(data - at) + (aq_ibv_type_has_data(type) ? nbytes : 0);
}

static void test_round_trip(void **state)
{
    uint8_t *at = aligned_alloc(64, AQ_IBV_BUF);
    gex_AM_Arg_t args[AQ_IBV_ARGS];

    (void)state;
    for (unsigned type = 1; type < AQ_IBV_T_COUNT; type++)
        for (unsigned nargs = 0; nargs <= AQ_IBV_ARGS; nargs++) {
            const size_t nbytes = aq_ibv_type_has_data(type) ? 1 + nargs * 31 : 12345;
            struct aq_ibv_fragment out, in;
            size_t len = make(at, type, nargs, nbytes, &out, args);

            assert_true(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
            assert_memory_equal(&in.head, &out.head, sizeof(in.head));
            assert_memory_equal(in.args, args, nargs * sizeof(*args));
            if (aq_ibv_type_has_address(type))
                assert_true(in.address == out.address);
            if (aq_ibv_type_is_frag(type))
                assert_true(in.total == out.total && in.at == out.at);
            if (aq_ibv_type_has_data(type)) {
                assert_int_equal((uintptr_t)in.data % 16, 0); /* handlers may rely on it */
                for (size_t i = 0; i < nbytes; i++)
                    assert_int_equal(in.data[i], (uint8_t)(i * 7 + type));
            }
            assert_false(aq_ibv_packet_read(at, len + 1, RANKS, MEDIUM, LONG, &in));
            while (len-- > 0) {
                uint8_t *tight = malloc(len != 0 ? len : 1);

                memcpy(tight, at, len);
                assert_false(aq_ibv_packet_read(tight, len, RANKS, MEDIUM, LONG, &in));
                free(tight);
            }
        }
    free(at);
}

static void test_limits(void **state)
{
    uint8_t *at = aligned_alloc(64, AQ_IBV_BUF);
    gex_AM_Arg_t args[AQ_IBV_ARGS];
    struct aq_ibv_fragment out, in;
    struct aq_ibv_head *head = (struct aq_ibv_head *)(void *)at;
    size_t len = make(at, AQ_IBV_T_MEDIUM_FRAG, 2, 100, &out, args);
    uint32_t word;

    (void)state;
    assert_false(aq_ibv_packet_read(at, len, 3, MEDIUM, LONG, &in)); /* rank 3 of 3 */
    assert_false(aq_ibv_packet_read(at, len, RANKS, 59999, LONG, &in));
    word = 60001 - 100; /* the last byte is outside */
    memcpy(at + sizeof(*head) + 4, &word, 4);
    assert_false(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
    word = UINT32_MAX - 50; /* nor does a sum that wraps pass */
    memcpy(at + sizeof(*head) + 4, &word, 4);
    assert_false(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
    len = make(at, AQ_IBV_T_PLACED, 0, LONG + 1, &out, args);
    assert_false(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
    len = make(at, AQ_IBV_T_SHORT, 0, 0, &out, args);
    head->nargs = 17;
    assert_false(aq_ibv_packet_read(at, len + 68, RANKS, MEDIUM, LONG, &in));
    head->nargs = 0;
    head->type = 0;
    assert_false(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
    head->type = AQ_IBV_T_COUNT;
    assert_false(aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in));
    free(at);
}

/* Heads fit the room that is kept for them, and the largest message the number of fragments. */
static void test_rooms(void **state)
{
    (void)state;
    assert_true(aq_ibv_data_at(AQ_IBV_T_MEDIUM, AQ_IBV_ARGS) <= AQ_IBV_HEADROOM);
    assert_true(aq_ibv_data_at(AQ_IBV_T_LONG, AQ_IBV_ARGS) <= AQ_IBV_HEADROOM);
    for (unsigned nargs = 0; nargs <= AQ_IBV_ARGS; nargs++) {
        assert_true((aq_ibv_data_space(AQ_IBV_T_MEDIUM_FRAG, nargs, AQ_IBV_BUF) & ~(size_t)15)
                        * AQ_IBV_MSG_FRAGS
                    >= AQ_IBV_MAX_MEDIUM);
        assert_true((aq_ibv_data_space(AQ_IBV_T_LONG_FRAG, nargs, AQ_IBV_BUF) & ~(size_t)15)
                        * AQ_IBV_MSG_FRAGS
                    >= AQ_IBV_MAX_MEDIUM);
    }
}

/* Any bytes: accepted or not, nothing outside is read, and what is accepted holds together. */
static void test_any_bytes(void **state)
{
    uint64_t rng = 4;

    (void)state;
    for (int round = 0; round < 300000; round++) {
        const size_t len = random_of(&rng) % 200;
        uint8_t *at = aligned_alloc(16, (len + 16) & ~(size_t)15);
        struct aq_ibv_fragment in;

        for (size_t i = 0; i < len; i++)
            at[i] = (uint8_t)(random_of(&rng) >> 40);
        if (len > 8) { /* near the format, or little would pass */
            at[0] = (uint8_t)(random_of(&rng) % 9);
            at[2] %= 20;
            memset(at + 4, 0, 4);
            at[4] = (uint8_t)(random_of(&rng) % 9);
        }
        if (len >= 24 && round % 2 == 0) {
            const uint32_t nbytes = (uint32_t)(random_of(&rng) % (len + 2));

            memcpy(at + 20, &nbytes, 4);
        }
        if (aq_ibv_packet_read(at, len, RANKS, MEDIUM, LONG, &in)) {
            assert_true(in.head.from < RANKS && in.head.nargs <= AQ_IBV_ARGS);
            assert_true((const uint8_t *)in.args + in.head.nargs * 4 <= at + len);
            if (aq_ibv_type_has_data(in.head.type))
                assert_true(in.data + in.head.nbytes == at + len);
            assert_true(in.total <= LONG);
        }
        free(at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_rooms),
        cmocka_unit_test(test_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
