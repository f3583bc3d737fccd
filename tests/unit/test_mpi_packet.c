/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_packet.c - packets of the mpi conduit: encoded packets are decoded, of every kind, up to
 * the limits of each field. Everything that is not exactly a packet is refused, without an access
 * outside (each is in memory of exactly its size, so that sanitizers and valgrind detect it). The
 * arithmetic of credit is tested around the wrap of its counters, with late packets and with false
 * ones. test_mpi_in.c tests a receiver's message about a false packet.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_credit.h"
#include "conduits/mpi/aq_mpi_packet.h"

#define MEDIUM 65536u
#define LONG   (1u << 20)

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

/* --- the head: a word of fields --- */

static uint64_t head_word(struct aq_mpi_head head)
{
    char packet[AQ_MPI_HEAD];
    uint64_t word;

    aq_mpi_head_put(packet, head);
    memcpy(&word, packet, sizeof(word));
    return word;
}

static void check_head(struct aq_mpi_head head)
{
    char packet[AQ_MPI_HEAD + 2] = { 0 };
    struct aq_mpi_head back;

    packet[0] = packet[AQ_MPI_HEAD + 1] = 0x5a; /* at any address, and nothing around it */
    aq_mpi_head_put(packet + 1, head);
    back = aq_mpi_head_get(packet + 1);
    assert_int_equal(packet[0], 0x5a);
    assert_int_equal(packet[AQ_MPI_HEAD + 1], 0x5a);
    assert_int_equal(back.kind, head.kind);
    assert_int_equal(back.nargs, head.nargs);
    assert_int_equal(back.apart, head.apart);
    assert_int_equal(back.handler, head.handler);
    assert_int_equal(back.messages, head.messages);
    assert_int_equal(back.done, head.done);
}

/* Each field alone has its bits, which are those that the header names, and together they are the
 * word. */
static void test_head_fields(void **state)
{
    const uint64_t kind = head_word((struct aq_mpi_head){ .kind = 3 });
    const uint64_t nargs = head_word((struct aq_mpi_head){ .nargs = 31 });
    const uint64_t apart = head_word((struct aq_mpi_head){ .apart = true });
    const uint64_t handler = head_word((struct aq_mpi_head){ .handler = UINT8_MAX });
    const uint64_t messages = head_word((struct aq_mpi_head){ .messages = UINT16_MAX });
    const uint64_t limit = head_word((struct aq_mpi_head){ .done = UINT32_MAX });

    (void)state;
    assert_int_equal(head_word((struct aq_mpi_head){ 0 }), 0);
    assert_int_equal(kind, 0x3);
    assert_int_equal(nargs, 0x7c);
    assert_int_equal(apart, 0x80);
    assert_int_equal(handler, 0xff00);
    assert_int_equal(messages, UINT64_C(0xffff0000));
    assert_int_equal(limit, UINT64_C(0xffffffff00000000));
}

static void test_head_limits(void **state)
{
    static const uint16_t messages[] = { 0, 1, 0x7fff, 0x8000, UINT16_MAX };
    static const uint32_t limits[] = { 0,         1, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 1,
                                       UINT32_MAX };
    uint64_t seed = 3;

    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned nargs = 0; nargs < 32; nargs++)
            for (unsigned i = 0; i < sizeof(limits) / sizeof(*limits); i++)
                for (unsigned k = 0; k < sizeof(messages) / sizeof(*messages); k++)
                    check_head((struct aq_mpi_head){ .kind = (uint8_t)kind,
                                                     .nargs = (uint8_t)nargs,
                                                     .apart = i % 2 != 0,
                                                     .handler = (uint8_t)(255 * (k % 2)),
                                                     .messages = messages[k],
                                                     .done = limits[i] });
    for (unsigned i = 0; i < 100000; i++) {
        const uint64_t word = random_of(&seed);

        check_head((struct aq_mpi_head){ .kind = word & 3,
                                         .nargs = word >> 2 & 31,
                                         .apart = (word >> 7 & 1) != 0,
                                         .handler = (uint8_t)(word >> 8),
                                         .messages = (uint16_t)(word >> 16),
                                         .done = (uint32_t)(word >> 32) });
    }
}

/* A field that is larger than its bits spoils no other one. */
static void test_head_overflow(void **state)
{
    (void)state;
    assert_int_equal(head_word((struct aq_mpi_head){ .kind = UINT8_MAX }), 0x3);
    assert_int_equal(head_word((struct aq_mpi_head){ .nargs = UINT8_MAX }), 0x7c);
}

/* --- messages --- */

static void check_message(uint8_t kind, unsigned nargs, size_t nbytes)
{
    static char packet[AQ_MPI_PACKET], src[LONG];
    gex_AM_Arg_t args[AQ_MPI_ARGS];
    struct aq_mpi_message back;
    struct aq_am_out out = { .handler = 200,
                             .nargs = (uint8_t)nargs,
                             .kind = kind,
                             .args = args,
                             .src = src,
                             .nbytes = nbytes,
                             .dest = (void *)(uintptr_t)UINT64_C(0x123456789abcdef0) };
    const bool apart = nbytes > AQ_MPI_INLINE;
    size_t len;
    char *at;

    for (unsigned i = 0; i < AQ_MPI_ARGS; i++)
        args[i] = (gex_AM_Arg_t)(i * 0x01010101u + nargs);
    for (size_t i = 0; i < nbytes; i++)
        src[i] = (char)(i * 7 + nbytes);
    len = aq_mpi_packet_encode(packet, &out, 0xfffffffe, 0x8001, apart ? AQ_MPI_TAGS : 0,
                               apart ? 0 : nbytes);
    assert_true(len <= sizeof(packet));
    assert_int_equal(len, aq_mpi_packet_bytes(kind, nargs, nbytes));
    at = exactly(packet, len);
    assert_true(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
    assert_int_equal(back.head.handler, 200);
    assert_int_equal(back.head.done, 0xfffffffe);
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
    static const size_t sizes[] = {
        0, 1, 8, 15, 16, 17, 255, 4096, AQ_MPI_INLINE - 1, AQ_MPI_INLINE, AQ_MPI_INLINE + 1, MEDIUM
    };

    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            check_message(AQ_AM_MEDIUM, nargs, sizes[i]);
            check_message(AQ_AM_LONG, nargs, sizes[i]);
        }
    check_message(AQ_AM_LONG, 3, LONG);
}

/* Arguments of every sign and size, addresses of every width, at every number of arguments: these
 * leave what follows them aligned to 8 or not. */
static void test_values(void **state)
{
    static const gex_AM_Arg_t values[] = {
        0, 1, -1, INT32_MAX, INT32_MIN, INT32_MIN + 1, 0x5a5a5a5a
    };
    static const uint64_t places[] = { 0,
                                       1,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       (UINT64_C(1) << 32) + 1,
                                       UINT64_C(0x7fffffffffff),
                                       UINT64_C(1) << 63,
                                       UINT64_MAX };
    static char packet[AQ_MPI_PACKET];
    char byte = 77;

    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++)
        for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++)
            for (size_t nbytes = 0; nbytes <= 1; nbytes++) {
                gex_AM_Arg_t args[AQ_MPI_ARGS];
                struct aq_am_out out = { .handler = (uint8_t)(255 - nargs),
                                         .nargs = (uint8_t)nargs,
                                         .kind = AQ_AM_LONG,
                                         .args = args,
                                         .src = &byte,
                                         .nbytes = nbytes,
                                         .dest = (void *)(uintptr_t)places[i] };
                struct aq_mpi_message back = { .nbytes = 0 };
                size_t len;
                char *at;

                for (unsigned k = 0; k < AQ_MPI_ARGS; k++)
                    args[k] = values[(k + nargs + i) % (sizeof(values) / sizeof(*values))];
                len = aq_mpi_packet_encode(packet, &out, 0, 0, 0, out.nbytes);
                at = exactly(packet, len);
                assert_true(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
                assert_int_equal(back.head.handler, 255 - nargs);
                assert_int_equal(back.head.nargs, nargs);
                assert_int_equal(back.head.kind, AQ_AM_LONG);
                for (unsigned k = 0; k < nargs; k++)
                    assert_int_equal(back.args[k], args[k]);
                assert_ptr_equal(back.dest, out.dest);
                assert_int_equal(back.nbytes, nbytes);
                if (nbytes != 0)
                    assert_int_equal(*(char *)back.payload, byte);
                free(at);
            }
}

/* No packet is larger than a slot, and none is written beyond its length. */
static void test_bounds(void **state)
{
    static char packet[AQ_MPI_PACKET + 16], src[LONG];
    static const size_t sizes[] = {
        0, 1, 15, 16, 17, AQ_MPI_INLINE - 1, AQ_MPI_INLINE, AQ_MPI_INLINE + 1, LONG
    };
    static const uint8_t kinds[] = { AQ_AM_MEDIUM, AQ_AM_LONG };
    gex_AM_Arg_t args[AQ_MPI_ARGS] = { 0 };
    size_t max = 0;

    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++) {
        assert_int_equal(aq_mpi_packet_bytes(AQ_AM_SHORT, nargs, 0), AQ_MPI_HEAD + 4 * nargs);
        assert_int_equal(aq_mpi_packet_bytes(AQ_MPI_CREDIT, nargs, 0), AQ_MPI_HEAD + 4 * nargs);
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            for (unsigned k = 0; k < 2; k++) {
                struct aq_am_out out = { .nargs = (uint8_t)nargs,
                                         .kind = kinds[k],
                                         .args = args,
                                         .src = src,
                                         .nbytes = sizes[i] };
                size_t len;

                memset(packet, 0x5a, sizeof(packet));
                len = aq_mpi_packet_encode(packet, &out, 1, 1, sizes[i] > AQ_MPI_INLINE,
                                           sizes[i] > AQ_MPI_INLINE ? 0 : sizes[i]);
                assert_int_equal(len, aq_mpi_packet_bytes(kinds[k], nargs, sizes[i]));
                max = len > max ? len : max;
                assert_true(max <= AQ_MPI_PACKET);
                for (unsigned b = 0; b < 16; b++)
                    assert_int_equal(packet[len + b], 0x5a);
            }
    }
    assert_int_equal(max, AQ_MPI_PACKET); /* and a slot is no larger than need be */
}

static void test_shorts(void **state)
{
    (void)state;
    for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++) {
        const size_t len = AQ_MPI_HEAD + 4 * nargs;
        struct aq_mpi_head head = { .kind = AQ_AM_SHORT, .handler = 7, .nargs = (uint8_t)nargs };
        gex_AM_Arg_t args[AQ_MPI_ARGS];
        char packet[AQ_MPI_HEAD + 4 * AQ_MPI_ARGS + 4] = { 0 };
        struct aq_mpi_message back;
        char *at;

        for (unsigned i = 0; i < AQ_MPI_ARGS; i++)
            args[i] = i % 2 == 0 ? INT32_MIN + (gex_AM_Arg_t)i : INT32_MAX - (gex_AM_Arg_t)i;
        aq_mpi_head_put(packet, head);
        aq_mpi_packet_put_args(packet, nargs, args);
        at = exactly(packet, len);
        assert_true(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
        assert_int_equal(back.head.handler, 7);
        assert_int_equal(back.head.nargs, nargs);
        assert_memory_equal(back.args, args, 4 * nargs);
        assert_null(back.payload);
        assert_null(back.dest);
        assert_int_equal(back.nbytes, 0);
        assert_false(aq_mpi_packet_decode(at, len - 1, MEDIUM, LONG, &back));
        assert_false(aq_mpi_packet_decode(packet, len + 4, MEDIUM, LONG, &back));
        head.apart = true; /* a short one has no payload */
        aq_mpi_head_put(at, head);
        assert_false(aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back));
        free(at);
    }
}

static bool refused(const struct aq_mpi_head *head, const struct aq_mpi_desc *desc, size_t len)
{
    char packet[AQ_MPI_PACKET] = { 0 };
    struct aq_mpi_message back;
    char *at;
    bool refused;

    aq_mpi_head_put(packet, *head);
    memcpy(packet + AQ_MPI_HEAD + 4 * (size_t)head->nargs, desc, sizeof(*desc));
    at = exactly(packet, len);
    refused = !aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back);
    free(at);
    return refused;
}

/* What a rank that means ill, or a broken one, may send. */
static void test_false(void **state)
{
    struct aq_mpi_head head = { .kind = AQ_AM_MEDIUM, .handler = 200 };
    struct aq_mpi_desc desc = { .nbytes = 16 };

    (void)state;
    for (size_t len = 0; len < AQ_MPI_HEAD + 8; len++)
        assert_true(refused(&head, &desc, len));
    assert_false(refused(&head, &desc, 32));
    desc.nbytes = 17; /* more than is there */
    assert_true(refused(&head, &desc, 32));
    desc.nbytes = UINT32_MAX;
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    head.apart = true;
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    desc.nbytes = MEDIUM; /* the most; but no tag, or one too large */
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    desc.tag = AQ_MPI_TAGS + 1;
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    desc.tag = AQ_MPI_TAGS;
    assert_false(refused(&head, &desc, AQ_MPI_HEAD + 8));
    desc.nbytes = MEDIUM + 1;
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    desc.nbytes = AQ_MPI_INLINE; /* belongs into the packet */
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 8));
    head = (struct aq_mpi_head){ .kind = AQ_MPI_CREDIT };
    assert_false(refused(&head, &desc, AQ_MPI_HEAD));
    head = (struct aq_mpi_head){ .kind = AQ_AM_SHORT, .nargs = AQ_MPI_ARGS + 1 };
    assert_true(refused(&head, &desc, AQ_MPI_HEAD + 4 * (AQ_MPI_ARGS + 1)));
}

/* The limits that a receiver gives, each from both sides, up to what the field can say. */
static void test_limits(void **state)
{
    static const struct {
        uint8_t kind;
        uint32_t nbytes, tag;
        size_t max; /* of this kind; the other has the rest of the field */
        bool accepted;
    } cases[] = {
        { AQ_AM_MEDIUM, AQ_MPI_INLINE + 1, 1, MEDIUM, true },
        { AQ_AM_MEDIUM, AQ_MPI_INLINE + 1, 1, AQ_MPI_INLINE + 1, true },
        { AQ_AM_MEDIUM, AQ_MPI_INLINE + 1, 1, AQ_MPI_INLINE, false },
        { AQ_AM_LONG, AQ_MPI_INLINE + 1, 1, AQ_MPI_INLINE + 1, true },
        { AQ_AM_LONG, AQ_MPI_INLINE + 1, 1, AQ_MPI_INLINE, false },
        { AQ_AM_LONG, LONG, AQ_MPI_TAGS, LONG, true },
        { AQ_AM_LONG, LONG, 0, LONG, false },
        { AQ_AM_LONG, LONG, AQ_MPI_TAGS + 1, LONG, false },
        { AQ_AM_LONG, LONG, AQ_MPI_PLACED, LONG, true },
        { AQ_AM_LONG, LONG, AQ_MPI_PLACED - 1, LONG, false },
        { AQ_AM_MEDIUM, MEDIUM, AQ_MPI_PLACED, MEDIUM, false },
        { AQ_AM_LONG, LONG + 1, 1, LONG, false },
        { AQ_AM_LONG, UINT32_MAX, 1, UINT32_MAX, true },
        { AQ_AM_LONG, UINT32_MAX, 1, SIZE_MAX, true },
        { AQ_AM_LONG, UINT32_MAX, 1, UINT32_MAX - 1, false },
        { AQ_AM_MEDIUM, UINT32_MAX, 1, SIZE_MAX, true },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++) {
            const bool is_long = cases[i].kind == AQ_AM_LONG;
            const struct aq_mpi_head head = { .kind = cases[i].kind,
                                              .nargs = (uint8_t)nargs,
                                              .apart = true };
            const struct aq_mpi_desc desc = { .nbytes = cases[i].nbytes, .tag = cases[i].tag };
            const size_t len = aq_mpi_packet_head(head.kind, nargs);
            char packet[AQ_MPI_HEAD_MAX] = { 0 }, *at;
            struct aq_mpi_message back;

            aq_mpi_head_put(packet, head);
            memcpy(packet + AQ_MPI_HEAD + 4 * nargs, &desc,
                   is_long ? AQ_MPI_DESC_LONG : AQ_MPI_DESC_MEDIUM);
            at = exactly(packet, len);
            assert_int_equal(aq_mpi_packet_decode(at, len, is_long ? 0 : cases[i].max,
                                                  is_long ? cases[i].max : 0, &back),
                             cases[i].accepted);
            if (cases[i].accepted) {
                assert_int_equal(back.nbytes, cases[i].nbytes);
                assert_int_equal(back.tag, cases[i].tag);
                assert_null(back.payload);
            }
            free(at);
        }
}

/* Packets of each kind with one bit of their head inverted are refused, or are another packet in
 * the same bytes. Bits of lengths and addresses make the packet false; bits of the handler and of
 * credit cannot. */
static void test_flipped(void **state)
{
    static char packet[AQ_MPI_PACKET], src[64];
    gex_AM_Arg_t args[AQ_MPI_ARGS] = { 0 };
    static const uint8_t kinds[] = { AQ_AM_MEDIUM, AQ_AM_LONG };

    (void)state;
    for (unsigned k = 0; k < 2; k++)
        for (unsigned nargs = 0; nargs <= AQ_MPI_ARGS; nargs++) {
            struct aq_am_out out = {
                .nargs = (uint8_t)nargs, .kind = kinds[k], .args = args, .src = src, .nbytes = 64
            };
            const size_t len = aq_mpi_packet_encode(packet, &out, 5, 5, 0, out.nbytes);
            const unsigned desc = 8 * (AQ_MPI_HEAD + 4 * nargs), bits = desc + 32;

            for (unsigned bit = 0; bit < bits; bit++) {
                char *at = exactly(packet, len);
                struct aq_mpi_message back;
                bool accepted;

                at[bit / 8] = (char)(at[bit / 8] ^ 1 << bit % 8);
                accepted = aq_mpi_packet_decode(at, len, MEDIUM, LONG, &back);
                if (bit == 7 || bit >= desc) /* apart; the payload's length */
                    assert_false(accepted);
                if (bit >= 8 && bit < desc)
                    assert_true(accepted);
                if (accepted && back.payload != NULL)
                    assert_true((char *)back.payload + back.nbytes == at + len);
                free(at);
            }
        }
}

/* For any bytes, what is accepted lies inside. */
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
        assert_true(aq_mpi_credit_cost(nbytes) >= 1
                    && aq_mpi_credit_cost(nbytes) <= AQ_MPI_COST_MAX);
    assert_int_equal(aq_mpi_credit_window(128, 1, UINT64_C(64) << 20), 128);
    assert_int_equal(aq_mpi_credit_window(1, 1, UINT64_C(64) << 20), AQ_MPI_WINDOW_MIN);
    assert_int_equal(aq_mpi_credit_window(128, 256, UINT64_C(64) << 20), 64);
    assert_int_equal(aq_mpi_credit_window(8192, 8, UINT64_C(64) << 20), 2048);
    for (size_t nbytes = 0; nbytes <= 65536; nbytes++)
        assert_true(nbytes <= (size_t)AQ_MPI_UNIT_APART * aq_mpi_credit_cost(nbytes));
    assert_int_equal(aq_mpi_credit_window(128, 1000000, UINT64_C(64) << 20), AQ_MPI_WINDOW_MIN);
    assert_int_equal(aq_mpi_credit_window(1u << 30, 1, UINT64_C(1) << 60), AQ_MPI_WINDOW_MAX);
    assert_int_equal(aq_mpi_credit_window(128, 0, UINT64_C(64) << 20), 128);
}

/* Requests of random cost between two ranks, acknowledged late: never more than a window is out,
 * whoever has no credit gets some once all that is out is done with, and counts agree at the end.
 * */
static void test_flow(void **state)
{
    const uint32_t window = AQ_MPI_WINDOW_MIN;
    /* the counters pass their end on the way */
    const uint32_t start = UINT32_MAX - 1000;
    struct aq_mpi_peer self = { .out = { .sent = start, .limit = start + window } };
    struct aq_mpi_peer remote_addr = { .in = { .limit = start, .advertised = start } };
    uint32_t out_units = 0, sent = 0, done = start, old_done;
    uint16_t messages = 0, old_messages;
    uint64_t seed = 2;

    (void)state;
    while (sent < 200000) {
        const uint32_t cost = 1 + (uint32_t)(random_of(&seed) % AQ_MPI_COST_MAX);

        if (aq_mpi_credit_has(&self, cost)) {
            aq_mpi_credit_spend(&self, cost);
            out_units += cost;
            assert_true(out_units <= window);
            sent++;
            aq_mpi_credit_done(&remote_addr, cost); /* run at once; told when it is due */
        } else {
            /* otherwise no rank would ever send an update */
            assert_true(aq_mpi_credit_due(&remote_addr, window));
        }
        if (aq_mpi_credit_due(&remote_addr, window)) {
            old_done = done;
            old_messages = messages;
            aq_mpi_credit_advertise(&remote_addr, &done, &messages);
            assert_false(aq_mpi_credit_due(&remote_addr, window));
            assert_true(aq_mpi_credit_take(&self, window, done, messages));
            assert_true(aq_mpi_credit_take(&self, window, old_done,
                                           old_messages)); /* one that was overtaken says nothing */
            assert_int_equal(self.out.limit, done + window);
            out_units = 0;
        }
    }
    aq_mpi_credit_advertise(&remote_addr, &done, &messages);
    assert_true(aq_mpi_credit_take(&self, window, done, messages));
    assert_int_equal(self.requests, sent);
    assert_int_equal(self.handled, sent);
    /* more than was sent */
    assert_false(aq_mpi_credit_take(&self, window, done + 1, messages));
    assert_int_equal(self.out.limit, done + window);
}

/* Counts that lie half the counter away, and just this and that side of it. */
static void test_credit_edges(void **state)
{
    static const uint32_t starts[] = { 0,         1, INT32_MAX, UINT32_C(1) << 31, UINT32_MAX - 47,
                                       UINT32_MAX };
    const uint32_t window = AQ_MPI_WINDOW_MIN;

    (void)state;
    for (unsigned i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
        const uint32_t limit = starts[i] + window;
        struct aq_mpi_peer peer = { .out = { .sent = starts[i], .limit = limit },
                                    .acked_messages = UINT16_MAX };

        assert_true(aq_mpi_credit_has(&peer, window));
        assert_false(aq_mpi_credit_has(&peer, window + 1));
        aq_mpi_credit_spend(&peer, window);
        assert_false(aq_mpi_credit_has(&peer, 1));
        /* more than was sent, by one and by half the counter; what lies before is late */
        assert_false(aq_mpi_credit_take(&peer, window, starts[i] + window + 1, 1));
        assert_false(aq_mpi_credit_take(&peer, window, starts[i] + INT32_MAX, 1));
        assert_true(aq_mpi_credit_take(&peer, window, starts[i] + (UINT32_C(1) << 31), 1));
        assert_true(aq_mpi_credit_take(&peer, window, starts[i] - 1, 1));
        assert_int_equal(peer.out.limit, limit);
        assert_int_equal(peer.handled, 0);
        /* all of it, and the 16 bits of messages pass their end */
        assert_true(aq_mpi_credit_take(&peer, window, starts[i] + window, 1));
        assert_int_equal(peer.out.limit, limit + window);
        assert_int_equal(peer.handled, 2);
        assert_true(aq_mpi_credit_has(&peer, window));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head_fields),   cmocka_unit_test(test_head_limits),
        cmocka_unit_test(test_head_overflow), cmocka_unit_test(test_messages),
        cmocka_unit_test(test_values),        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_shorts),        cmocka_unit_test(test_false),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_noise),         cmocka_unit_test(test_cost),
        cmocka_unit_test(test_flow),          cmocka_unit_test(test_credit_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
