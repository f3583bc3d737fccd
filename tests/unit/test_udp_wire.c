/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_wire.c - datagrams of the udp conduit: encoded datagrams are decoded, everything that is
 * not exactly of the format is refused, no byte outside is read (each datagram is in memory of
 * exactly its size, so that sanitizers and valgrind detect it), and the hash covers every bit, both
 * ranks and the full number.
 */
#include "tests/unit/aq_unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp.h"
#include "base/aq_rc.h"

static const struct aq_udp_header plain = {
    .channel = AQ_UDP_REQUEST, .hashed = AQ_UDP_HEADER, .src = 1, .dst = 2
};

static uint64_t random_of(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static void test_header(void **state)
{
    const struct aq_udp_header header = { .channel = AQ_UDP_RMA,
                                          .flags = AQ_UDP_HOLES | AQ_UDP_TS_ECHO,
                                          .ts_delay = 0x1234,
                                          .rwnd = 0xfedc,
                                          .hashed = 60,
                                          .src = 0x01020304,
                                          .dst = 0xfffffffe,
                                          .seq = 0x80000001,
                                          .ack = { 1, 0x7fffffff, 0xffffffff },
                                          .ts = 0xdeadbeef,
                                          .ts_echo = 0xcafebabe,
                                          .hash = UINT64_C(0x0123456789abcdef) };
    struct aq_udp_header back;
    uint8_t at[AQ_UDP_MAX_DATAGRAM + 1] = { 0 };

    (void)state;
    memset(&back, 0, sizeof(back));
    aq_udp_header_encode(at, &header);
    assert_int_equal(at[0], AQ_UDP_MAGIC);
    assert_int_equal(at[4], 4); /* little endian, whoever sends */
    assert_int_equal(at[40], 0xef);
    assert_true(aq_udp_header_decode(at, 60, &back));
    assert_int_equal(back.channel, header.channel);
    assert_int_equal(back.flags, header.flags);
    assert_int_equal(back.ts_delay, header.ts_delay);
    assert_int_equal(back.rwnd, header.rwnd);
    assert_int_equal(back.hashed, header.hashed);
    assert_int_equal(back.src, header.src);
    assert_int_equal(back.dst, header.dst);
    assert_int_equal(back.seq, header.seq);
    for (int channel = 0; channel < AQ_UDP_CHANNELS; channel++)
        assert_int_equal(back.ack[channel], header.ack[channel]);
    assert_int_equal(back.ts, header.ts);
    assert_int_equal(back.ts_echo, header.ts_echo);
    assert_true(back.hash == header.hash);

    for (size_t len = 0; len < 60; len++)
        assert_false(aq_udp_header_decode(at, len, &back)); /* hashed is 60 */
    assert_true(aq_udp_header_decode(at, AQ_UDP_MAX_DATAGRAM, &back));
    assert_false(aq_udp_header_decode(at, AQ_UDP_MAX_DATAGRAM + 1, &back));
    at[0] ^= 1;
    assert_false(aq_udp_header_decode(at, 60, &back));
    at[0] ^= 1;
    at[1] |= 0x80; /* a flag that does not exist */
    assert_false(aq_udp_header_decode(at, 60, &back));
    at[1] &= 0x7f;
    aq_udp_put16(at + 30, AQ_UDP_HEADER - 1);
    assert_false(aq_udp_header_decode(at, 60, &back));
}

static void test_seq_expand(void **state)
{
    uint64_t rng = 1;

    (void)state;
    for (int i = 0; i < 1000000; i++) {
        const uint64_t local_side = random_of(&rng) >> random_of(&rng) % 62;
        const int64_t away = (int32_t)random_of(&rng) >> random_of(&rng) % 31;
        const uint64_t seq = local_side + (uint64_t)away;

        if (away < 0 && local_side < (uint64_t)-away)
            continue; /* before the first */
        assert_true(aq_udp_seq_expand(local_side, (uint32_t)seq) == seq);
    }
    assert_true(aq_udp_seq_expand(5, 0xffffffff)
                == 0xffffffff); /* ahead: there is nothing before 0 */
    assert_true(aq_udp_seq_expand((UINT64_C(1) << 32) + 5, 0xffffffff) == 0xffffffff);
    assert_true(aq_udp_seq_expand(0xffffffff, 5) == (UINT64_C(1) << 32) + 5);
}

/* --- datagrams with frames --- */

struct sample {
    uint8_t *at; /* len bytes of their own */
    size_t len;
    struct aq_udp_header header;
};

static void sample_free(struct sample *sample)
{
    free(sample->at);
}

static uint8_t *fill_data(uint8_t *at, uint32_t nbytes)
{
    for (uint32_t i = 0; i < nbytes; i++)
        at[i] = (uint8_t)(i * 7 + nbytes);
    memset(at + nbytes, 0, aq_udp_pad8(nbytes) - nbytes);
    return at + aq_udp_pad8(nbytes);
}

static bool data_is_filled(const uint8_t *at, uint32_t nbytes)
{
    for (uint32_t i = 0; i < nbytes; i++)
        if (at[i] != (uint8_t)(i * 7 + nbytes))
            return false;
    return true;
}

/* A datagram of a channel with one frame of each of its types; the last one's data is behind the
 * hashed part if open_end. */
static void sample_make(struct sample *sample, uint8_t channel, unsigned nargs, uint32_t nbytes,
                        bool open_end)
{
    static uint8_t buffer[AQ_UDP_MAX_DATAGRAM] __attribute__((aligned(16)));
    const uint64_t bits[AQ_UDP_SACK_WORDS] = { 1, 2, UINT64_MAX, UINT64_C(1) << 63 };
    int32_t args[AQ_UDP_MAX_ARGS];
    struct aq_udp_frame frag = { .type = AQ_UDP_F_MEDIUM_FRAG,
                                 .handler = 200,
                                 .nargs = (uint8_t)nargs,
                                 .nbytes = nbytes,
                                 .message = 77,
                                 .total = nbytes + 1000,
                                 .frag_offset = 1000,
                                 .addr = 0x1000 };
    uint8_t *at = buffer + AQ_UDP_HEADER;
    size_t hashed;

    for (unsigned i = 0; i < AQ_UDP_MAX_ARGS; i++)
        frag.args[i] = args[i] = (int32_t)(i * 0x01010101u) - 5;
    sample->header = plain;
    sample->header.channel = channel;
    if (channel == AQ_UDP_CONTROL) {
        for (uint8_t words = 1; words <= 3; words++)
            at = aq_udp_sack_encode(at, (uint8_t)(words - 1), words, 1000u * words, bits);
        hashed = (size_t)(at - buffer);
    } else if (channel == AQ_UDP_RMA) {
        at = aq_udp_get_encode(at, 9, 0x123456789abc, 1 << 20);
        at = fill_data(aq_udp_data_encode(at, nbytes, 10, 4096), nbytes);
        at = aq_udp_put_encode(at, nbytes, UINT64_C(0xffffffffffffff00), 11);
        hashed = (size_t)(at - buffer);
        at = fill_data(at, nbytes);
    } else {
        at = aq_udp_am_encode(at, AQ_UDP_F_SHORT, 1, nargs, args, 0, 0);
        at = fill_data(aq_udp_am_encode(at, AQ_UDP_F_MEDIUM, 2, nargs, args, nbytes, 0), nbytes);
        at = fill_data(aq_udp_frag_encode(at, &frag), nbytes);
        frag.type = AQ_UDP_F_LONG_FRAG;
        at = fill_data(aq_udp_frag_encode(at, &frag), nbytes);
        at = aq_udp_am_encode(at, AQ_UDP_F_LONG, 3, nargs, args, nbytes, 0x2000);
        hashed = (size_t)(at - buffer);
        at = fill_data(at, nbytes);
    }
    sample->len =
        open_end ? hashed + (channel == AQ_UDP_CONTROL ? 0 : nbytes) : (size_t)(at - buffer);
    sample->header.hashed = (uint16_t)(open_end ? hashed : sample->len);
    aq_udp_header_encode(buffer, &sample->header);
    sample->at = malloc(sample->len);
    assert_non_null(sample->at);
    memcpy(sample->at, buffer, sample->len);
}

static void check_am(const struct aq_udp_frame *frame, unsigned index, unsigned nargs,
                     uint32_t nbytes, const struct sample *sample)
{
    static const uint8_t types[] = { AQ_UDP_F_SHORT, AQ_UDP_F_MEDIUM, AQ_UDP_F_MEDIUM_FRAG,
                                     AQ_UDP_F_LONG_FRAG, AQ_UDP_F_LONG };

    assert_int_equal(frame->type, types[index]);
    assert_int_equal(frame->nargs, nargs);
    assert_int_equal(frame->nbytes, index == 0 ? 0 : nbytes);
    for (unsigned i = 0; i < nargs; i++)
        assert_int_equal(frame->args[i], (int32_t)(i * 0x01010101u) - 5);
    assert_true(data_is_filled(frame->data, frame->nbytes));
    if (frame->type == AQ_UDP_F_MEDIUM) /* handlers read it in place */
        assert_int_equal((frame->data - sample->at) % 16, 0);
    if (index == 2 || index == 3) {
        assert_int_equal(frame->message, 77);
        assert_int_equal(frame->total, nbytes + 1000);
        assert_int_equal(frame->frag_offset, 1000);
    }
    if (index >= 3)
        assert_int_equal(frame->addr, index == 3 ? 0x1000 : 0x2000);
}

static void check_rma(const struct aq_udp_frame *frame, unsigned index, uint32_t nbytes)
{
    if (index == 0) {
        assert_int_equal(frame->type, AQ_UDP_F_GET);
        assert_int_equal(frame->id, 9);
        assert_true(frame->addr == 0x123456789abc && frame->length == 1 << 20
                    && frame->nbytes == 0);
        return;
    }
    assert_int_equal(frame->type, index == 1 ? AQ_UDP_F_DATA : AQ_UDP_F_PUT);
    assert_int_equal(frame->nbytes, nbytes);
    assert_true(data_is_filled(frame->data, nbytes));
    if (index == 1)
        assert_true(frame->id == 10 && frame->length == 4096);
    else
        assert_true(frame->addr == UINT64_C(0xffffffffffffff00) && frame->cookie == 11);
}

static void check_sample(uint8_t channel, unsigned nargs, uint32_t nbytes, bool open_end)
{
    static const unsigned frames[] = { 5, 5, 3, 3 };
    struct aq_udp_frame frame = { .type = 0 };
    struct aq_udp_header header = plain;
    struct sample sample;
    size_t at = AQ_UDP_HEADER;

    sample_make(&sample, channel, nargs, nbytes, open_end);
    assert_true(aq_udp_header_decode(sample.at, sample.len, &header));
    for (unsigned i = 0; i < frames[channel]; i++) {
        assert_int_equal(aq_udp_frame_decode(sample.at, sample.len, &header, &at, &frame), 1);
        if (channel <= AQ_UDP_REPLY) {
            check_am(&frame, i, nargs, nbytes, &sample);
        } else if (channel == AQ_UDP_RMA) {
            check_rma(&frame, i, nbytes);
        } else {
            assert_int_equal(frame.channel, i);
            assert_int_equal(frame.words, i + 1);
            assert_int_equal(frame.base, 1000 * (i + 1));
            assert_true(frame.bits[i] == (i == 2 ? UINT64_MAX : i + 1));
        }
    }
    assert_int_equal(aq_udp_frame_decode(sample.at, sample.len, &header, &at, &frame), 0);
    assert_true(aq_udp_frames_check(sample.at, sample.len, &header));
    sample_free(&sample);
}

static void test_frames(void **state)
{
    (void)state;
    for (uint8_t channel = 0; channel <= AQ_UDP_CONTROL; channel++)
        for (unsigned nargs = 0; nargs <= AQ_UDP_MAX_ARGS; nargs++)
            for (uint32_t nbytes = 1; nbytes < 70; nbytes++) {
                check_sample(channel, nargs, nbytes, false);
                check_sample(channel, nargs, nbytes, true);
            }
}

/* A copy of a datagram in memory of just its size, looked at in full; is it well-formed? */
static bool looks_good(const uint8_t *datagram, size_t len)
{
    struct aq_udp_header header = plain;
    uint8_t *copy = malloc(len + 1); /* malloc(0) may be NULL */
    bool good;

    assert_non_null(copy);
    copy = realloc(copy, len != 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, datagram, len);
    good = aq_udp_header_decode(copy, len, &header) && aq_udp_frames_check(copy, len, &header);
    free(copy);
    return good;
}

/* Cut off anywhere: refused, but where a frame ends. */
static void test_truncated(void **state)
{
    (void)state;
    for (uint8_t channel = 0; channel <= AQ_UDP_CONTROL; channel++)
        for (int open_end = 0; open_end < 2; open_end++) {
            struct sample sample;
            unsigned good = 0;

            sample_make(&sample, channel, 3, 21, open_end != 0);
            for (size_t len = 0; len < sample.len; len++) {
                assert_false(looks_good(sample.at, len)); /* hashed is beyond, or data is missing */
                if (len < AQ_UDP_HEADER)
                    continue;
                aq_udp_put16(sample.at + 30, (uint16_t)len);
                good += looks_good(sample.at, len);
                aq_udp_put16(sample.at + 30, sample.header.hashed);
            }
            /* at the end of the header, of each frame but the last, and within paddings (up to 3 a
             * frame) */
            assert_in_range(good, channel == AQ_UDP_CONTROL ? 3 : 2, 25);
            sample_free(&sample);
        }
}

/* Any bit may be wrong: no access outside (sanitizers detect it), and the parser ends. */
static void test_flipped(void **state)
{
    uint64_t rng = 3;

    (void)state;
    for (uint8_t channel = 0; channel <= AQ_UDP_CONTROL; channel++)
        for (unsigned nargs = 0; nargs <= AQ_UDP_MAX_ARGS; nargs += 5) {
            struct sample sample;

            sample_make(&sample, channel, nargs, 33, nargs % 2 != 0);
            for (size_t bit = 0; bit < 8 * sample.len; bit++) {
                sample.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
                (void)looks_good(sample.at, sample.len);
                sample.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            for (int i = 0; i < 20000; i++) { /* several bytes of heads */
                uint8_t keep[6];
                size_t where[6];

                for (int k = 0; k < 6; k++) {
                    where[k] = random_of(&rng) % sample.len;
                    keep[k] = sample.at[where[k]];
                    sample.at[where[k]] = (uint8_t)random_of(&rng);
                }
                (void)looks_good(sample.at, sample.len);
                for (int k = 5; k >= 0; k--)
                    sample.at[where[k]] = keep[k];
            }
            sample_free(&sample);
        }
}

/* Numbers at their limits, and frames of another channel. */
static void test_refused(void **state)
{
    uint8_t at[256] __attribute__((aligned(16))) = { 0 };
    struct aq_udp_header header = plain;
    const uint64_t bits[5] = { 0 };
    struct aq_udp_frame frag = {
        .type = AQ_UDP_F_MEDIUM_FRAG, .nbytes = 8, .total = 10, .frag_offset = 3
    };
    size_t len;

    (void)state;
#define ENDS(expression)                                             \
    (len = (size_t)((expression)-at), header.hashed = (uint16_t)len, \
     aq_udp_header_encode(at, &header), looks_good(at, len))
    assert_true(ENDS(at + AQ_UDP_HEADER)); /* none at all */
    assert_true(ENDS(aq_udp_am_encode(at + AQ_UDP_HEADER, AQ_UDP_F_SHORT, 0, 16, frag.args, 0, 0)));
    at[AQ_UDP_HEADER + 2] = 17;
    assert_false(ENDS(at + AQ_UDP_HEADER + 8 + 72));
    assert_false(ENDS(aq_udp_am_encode(at + AQ_UDP_HEADER, AQ_UDP_F_SHORT, 0, 0, NULL, 1, 0) + 8));
    assert_false(ENDS(aq_udp_am_encode(at + AQ_UDP_HEADER, AQ_UDP_F_MEDIUM, 0, 0, NULL, 9, 0) + 8));
    assert_false(
        ENDS(aq_udp_am_encode(at + AQ_UDP_HEADER, AQ_UDP_F_MEDIUM, 0, 0, NULL, UINT32_MAX, 0) + 8));
    assert_false(ENDS(aq_udp_frag_encode(at + AQ_UDP_HEADER, &frag) + 8)); /* 3 + 8 > 10 */
    frag.frag_offset = 2;
    assert_true(ENDS(aq_udp_frag_encode(at + AQ_UDP_HEADER, &frag) + 8));
    frag.frag_offset = UINT32_MAX;
    assert_false(ENDS(aq_udp_frag_encode(at + AQ_UDP_HEADER, &frag) + 8));
    frag.frag_offset = 2;
    frag.nbytes = 0;
    assert_false(ENDS(aq_udp_frag_encode(at + AQ_UDP_HEADER, &frag)));
    assert_false(ENDS(aq_udp_get_encode(at + AQ_UDP_HEADER, 1, 1, 1))); /* not on this channel */
    assert_false(ENDS(aq_udp_sack_encode(at + AQ_UDP_HEADER, 0, 1, 1, bits)));
    header.channel = AQ_UDP_RMA;
    assert_true(ENDS(aq_udp_get_encode(at + AQ_UDP_HEADER, 1, 1, 1)));
    assert_false(ENDS(aq_udp_get_encode(at + AQ_UDP_HEADER, 1, 1, 0)));
    assert_false(ENDS(aq_udp_put_encode(at + AQ_UDP_HEADER, 0, 1, 0)));
    assert_false(ENDS(aq_udp_am_encode(at + AQ_UDP_HEADER, AQ_UDP_F_SHORT, 0, 0, NULL, 0, 0)));
    header.channel = AQ_UDP_CONTROL;
    assert_true(ENDS(aq_udp_sack_encode(at + AQ_UDP_HEADER, 2, 4, 1, bits)));
    assert_false(ENDS(aq_udp_sack_encode(at + AQ_UDP_HEADER, 3, 1, 1, bits)));
    at[AQ_UDP_HEADER] = AQ_UDP_F_SACK;
    assert_false(ENDS(aq_udp_sack_encode(at + AQ_UDP_HEADER, 0, 0, 1, bits)));
    assert_false(ENDS(aq_udp_sack_encode(at + AQ_UDP_HEADER, 0, 5, 1, bits)));
    at[AQ_UDP_HEADER] = 0;
    assert_false(ENDS(at + AQ_UDP_HEADER + 8));
    at[AQ_UDP_HEADER] = 200;
    assert_false(ENDS(at + AQ_UDP_HEADER + 8));
#undef ENDS
}

/* --- the hash --- */

static void sign(const struct sample *sample, const uint8_t *key, uint64_t above)
{
    struct aq_udp_packet packet = { .head = sample->at,
                                    .head_len = sample->header.hashed,
                                    .body = sample->at + sample->header.hashed,
                                    .body_len = (uint32_t)(sample->len - sample->header.hashed),
                                    .above = above };

    aq_udp_auth_sign(key, &packet);
}

static bool passes(const struct sample *sample, const uint8_t *key, uint64_t above)
{
    struct aq_udp_header header = plain;
    uint8_t *copy = malloc(sample->len);
    bool good;

    assert_non_null(copy);
    memcpy(copy, sample->at, sample->len);
    good = aq_udp_header_decode(copy, sample->len, &header)
           && aq_udp_auth_check(key, copy, sample->len, &header, above);
    free(copy);
    return good;
}

static void test_hash(void **state)
{
    uint8_t remote_addr[AQ_UDP_KEY], back[AQ_UDP_KEY], other[AQ_UDP_KEY];
    const uint64_t above = 7;
    struct sample sample;

    (void)state;
    assert_int_equal(aq_udp_auth_init(), AQ_OK);
    aq_udp_auth_key(1, 2, remote_addr);
    aq_udp_auth_key(2, 1, back);
    aq_udp_auth_key(1, 3, other);
    assert_memory_not_equal(remote_addr, back, AQ_UDP_KEY);
    assert_memory_not_equal(remote_addr, other, AQ_UDP_KEY);
    for (int all = 0; all < 2; all++) {
        aq_udp.hash_all = all != 0;
        for (uint8_t channel = 0; channel <= AQ_UDP_CONTROL; channel++) {
            sample_make(&sample, channel, 4, 40, true);
            sign(&sample, remote_addr, above);
            assert_true(passes(&sample, remote_addr, above));
            assert_false(passes(&sample, back, above));  /* not to be sent back */
            assert_false(passes(&sample, other, above)); /* nor to somebody else */
            assert_false(
                passes(&sample, remote_addr, above + 1)); /* nor when numbers have wrapped */
            for (size_t bit = 0; bit < 8 * sample.len; bit++) {
                const bool covered = bit / 8 < sample.header.hashed || all != 0;

                sample.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
                if (covered == passes(&sample, remote_addr, above))
                    fail_msg("bit %zu of byte %zu of %zu, channel %u", bit % 8, bit / 8, sample.len,
                             channel);
                sample.at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            sample_free(&sample);
        }
    }
    aq_udp.hash_all = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),  cmocka_unit_test(test_seq_expand),
        cmocka_unit_test(test_frames),  cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_flipped), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
