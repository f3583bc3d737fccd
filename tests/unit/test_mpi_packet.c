/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_packet.c - packets of the mpi conduit: what is encoded is decoded, what is not exactly a packet is refused
 * and no byte outside is looked at (each lies in memory of just its size, so that sanitizers and valgrind see); and the
 * arithmetic of credit, round the end of its counters, with packets that come late and with false ones.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_credit.h"
#include "conduits/mpi/aq_mpi_packet.h"

#define MEDIUM 65536u
#define LONG (1u << 20)

static uint64_t random_of(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* A copy in memory of just its size. */
static char *exactly(const char *packet, size_t len)
{
    char *copy = aligned_alloc(AQ_MPI_ALIGN, len == 0 ? AQ_MPI_ALIGN : aq_mpi_packet_padded(len));
    char *exact = realloc(copy, len == 0 ? 1 : len);

    assert_non_null(exact);
    memcpy(exact, packet, len);
    return exact;
}

static void check_message(uint8_t kind, unsigned nargs, size_t nbytes)
{
    static char packet[AQ_MPI_PACKET], src[LONG];
    gex_AM_Arg_t args[AQ_MPI_ARGS];
    struct aq_mpi_message back;
    struct aq_am_out out = { .handler = 200, .nargs = (uint8_t)nargs, .kind = kind, .args = args, .src = src,
                             .nbytes = nbytes, .dest = (void *)(uintptr_t)UINT64_C(0x123456789abcdef0) };
    const bool apart = nbytes > AQ_MPI_INLINE;
    size_t len;
    char *at;

    for (unsigned i = 0; i < AQ_MPI_ARGS; i++)
        args[i] = (gex_AM_Arg_t)(i * 0x01010101u + nargs);
    for (size_t i = 0; i < nbytes; i++)
        src[i] = (char)(i * 7 + nbytes);
    len = aq_mpi_packet_encode(packet, &out, 0xfffffffe, 0x8001, apart ? AQ_MPI_TAGS : 0);
    assert_true(len <= sizeof(packet));
    assert_int_equal(len, aq_mpi_packet_bytes(kind, nargs, nbytes));
    at = exactly(packet, len);
    assert_true(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
    assert_int_equal(back.head.handler, 200);
    assert_int_equal(back.head.units, 0xfffffffe);
    assert_int_equal(back.head.messages, 0x8001);
    assert_int_equal(back.nbytes, nbytes);
    assert_int_equal(back.head.apart, apart);
    assert_memory_equal(back.args, args, nargs * sizeof(*args));
    assert_ptr_equal(back.dest, kind == AQ_AM_LONG ? out.dest : NULL);
    if (!apart && nbytes != 0) {
        assert_int_equal((uintptr_t)back.payload % AQ_MPI_ALIGN, 0);
        assert_memory_equal(back.payload, src, nbytes);
    } else {
        assert_null(back.payload);
    }
    /* any other length is refused */
    assert_false(aq_mpi_packet_decode(at, len - 1, MEDIUM, LONG, &back));
    assert_false(aq_mpi_packet_decode(at, len / 2, MEDIUM, LONG, &back));
    assert_false(aq_mpi_packet_decode(packet, len + 1, MEDIUM, LONG, &back));
    free(at);
}

static void test_messages(void **state)
{
    static const size_t sizes[] = { 0, 1, 8, 15, 16, 17, 255, 4096, AQ_MPI_INLINE - 1, AQ_MPI_INLINE, AQ_MPI_INLINE + 1,
                                    MEDIUM };

    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            check_message(AQ_AM_MEDIUM, nargs, sizes[i]);
            check_message(AQ_AM_LONG, nargs, sizes[i]);
        }
    check_message(AQ_AM_LONG, 3, LONG);
}

static void test_shorts(void **state)
{
    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++) {
        const size_t len = AQ_MPI_HEAD + 4 * nargs;
        struct aq_mpi_head head = { .kind = AQ_AM_SHORT, .handler = 7, .nargs = (uint8_t)nargs };
        char packet[AQ_MPI_HEAD + 4 * AQ_MPI_ARGS + 4] = { 0 };
        struct aq_mpi_message back;
        char *at;

        aq_mpi_head_put(packet, head);
        at = exactly(packet, len);
        assert_true(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
        assert_false(aq_mpi_packet_decode(at, len - 1, MEDIUM, LONG, &back));
        assert_false(aq_mpi_packet_decode(packet, len + 4, MEDIUM, LONG, &back));
        head.apart = true; /* a short one has no payload */
        aq_mpi_head_put(at, head);
        assert_false(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
        free(at);
    }
}

static bool refused(const struct aq_mpi_head *head, const struct aq_mpi_place *place, size_t len)
{
    char packet[AQ_MPI_PACKET] = { 0 };
    struct aq_mpi_message back;
    char *at;
    bool refused;

    aq_mpi_head_put(packet, *head);
    memcpy(packet + AQ_MPI_HEAD + 4 * (size_t)head->nargs, place, sizeof(*place));
    at = exactly(packet, len);
    refused = !aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back);
    free(at);
    return refused;
}

/* What a rank that means ill, or a broken one, may send. */
static void test_false(void **state)
{
    struct aq_mpi_head head = { .kind = AQ_AM_MEDIUM, .handler = 200 };
    struct aq_mpi_place place = { .nbytes = 16 };

    (void)state;
    for (size_t len = 0; len < AQ_MPI_HEAD + 8; len++)
        assert_true(refused(&head, &place, len));
    assert_false(refused(&head, &place, 32));
    place.nbytes = 17; /* more than is there */
    assert_true(refused(&head, &place, 32));
    place.nbytes = UINT32_MAX;
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    head.apart = true;
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    place.nbytes = MEDIUM; /* the most; but no tag, or one too large */
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    place.tag = AQ_MPI_TAGS + 1;
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    place.tag = AQ_MPI_TAGS;
    assert_false(refused(&head, &place, AQ_MPI_HEAD + 8));
    place.nbytes = MEDIUM + 1;
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    place.nbytes = AQ_MPI_INLINE; /* belongs into the packet */
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 8));
    head = (struct aq_mpi_head){ .kind = AQ_MPI_CREDIT };
    assert_false(refused(&head, &place, AQ_MPI_HEAD));
    head = (struct aq_mpi_head){ .kind = AQ_AM_SHORT, .nargs = AQ_MPI_ARGS + 1 };
    assert_true(refused(&head, &place, AQ_MPI_HEAD + 4 * (AQ_MPI_ARGS + 1)));
}

/* Whatever the bytes, what is accepted lies inside. */
static void test_noise(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        const size_t len = random_of(&seed) % 160;
        char packet[160];
        struct aq_mpi_message back;
        char *at;

        for (size_t i = 0; i < sizeof(packet); i += 8) {
            const uint64_t word = random_of(&seed);

            memcpy(packet + i, &word, 8);
        }
        at = exactly(packet, len);
        if (aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back)) {
            assert_true((const char *)(const void *)(back.args + back.head.nargs) <= at + len);
            if (back.payload != NULL)
                assert_true((char *)back.payload + back.nbytes == at + len);
        }
        free(at);
    }
}

static void test_cost(void **state)
{
    (void)state;
    assert_int_equal(aq_mpi_credit_cost(0), 1);
    assert_int_equal(aq_mpi_credit_cost(AQ_MPI_UNIT - 1), 1);
    assert_int_equal(aq_mpi_credit_cost(AQ_MPI_UNIT), 2);
    for (size_t nbytes = 0; nbytes <= LONG; nbytes += 511)
        assert_true(aq_mpi_credit_cost(nbytes) >= 1 && aq_mpi_credit_cost(nbytes) <= AQ_MPI_COST_MOST);
    assert_int_equal(aq_mpi_credit_window(128, 1, UINT64_C(64) << 20), 128);
    assert_int_equal(aq_mpi_credit_window(1, 1, UINT64_C(64) << 20), AQ_MPI_WINDOW_LEAST);
    assert_int_equal(aq_mpi_credit_window(128, 1024, UINT64_C(64) << 20), 64);
    assert_int_equal(aq_mpi_credit_window(128, 1000000, UINT64_C(64) << 20), AQ_MPI_WINDOW_LEAST);
    assert_int_equal(aq_mpi_credit_window(1u << 30, 1, UINT64_C(1) << 60), AQ_MPI_WINDOW_MOST);
    assert_int_equal(aq_mpi_credit_window(128, 0, UINT64_C(64) << 20), 128);
}

/* Requests of random cost between two ranks, acknowledged late: never more than a window is out, whoever has no
 * credit gets some once all that is out is done with, and counts agree at the end. */
static void test_flow(void **state)
{
    const uint32_t window = AQ_MPI_WINDOW_LEAST;
    /* the counters pass their end on the way */
    struct aq_mpi_peer here = { .sent = UINT32_MAX - 1000, .acked = UINT32_MAX - 1000 };
    struct aq_mpi_peer there = { .told = UINT32_MAX - 1000, .done_units = UINT32_MAX - 1000 };
    uint32_t out_units = 0, sent = 0, units = UINT32_MAX - 1000, old_units;
    uint16_t messages = 0, old_messages;
    uint64_t seed = 2;

    (void)state;
    while (sent < 200000) {
        const uint32_t cost = 1 + (uint32_t)(random_of(&seed) % AQ_MPI_COST_MOST);

        if (aq_mpi_credit_has(&here, window, cost)) {
            aq_mpi_credit_spend(&here, cost);
            out_units += cost;
            assert_true(out_units <= window);
            sent++;
            aq_mpi_credit_done(&there, cost); /* run at once; told when it is due */
        } else {
            assert_true(aq_mpi_credit_due(&there, window)); /* else nobody would ever tell */
        }
        if (aq_mpi_credit_due(&there, window)) {
            old_units = units;
            old_messages = messages;
            aq_mpi_credit_tell(&there, &units, &messages);
            assert_false(aq_mpi_credit_due(&there, window));
            assert_true(aq_mpi_credit_take(&here, units, messages));
            assert_true(aq_mpi_credit_take(&here, old_units, old_messages)); /* one that was overtaken says nothing */
            assert_int_equal(here.acked, units);
            out_units = 0;
        }
    }
    aq_mpi_credit_tell(&there, &units, &messages);
    assert_true(aq_mpi_credit_take(&here, units, messages));
    assert_int_equal(here.requests, sent);
    assert_int_equal(here.handled, sent);
    /* more than was sent */
    assert_false(aq_mpi_credit_take(&here, units + 1, messages));
    assert_int_equal(here.acked, units);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_shorts), cmocka_unit_test(test_false),
        cmocka_unit_test(test_noise),    cmocka_unit_test(test_cost),   cmocka_unit_test(test_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
