/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agent_frame.c - what gasnetrun and its agents read from each other: frames in any portions
 * arrive whole; cut, oversized and garbage ones end in an error or in waiting, never beyond the
 * buffer. Run it under valgrind or the address sanitizer to see the latter.
 */
#include "tests/unit/aq_unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "other/launcher/aq_agent_frame.c" /* gasnetrun's, in no library */

static void feed(struct aq_frame_in *in, const void *data, size_t len)
{
    uint8_t *at = aq_frame_space(in, len + 1);

    assert_non_null(at);
    memcpy(at, data, len);
    aq_frame_added(in, len);
}

static size_t make_frame(uint8_t *out, enum aq_frame_type type, uint8_t arg, const void *data,
                         uint32_t len)
{
    aq_frame_head(out, type, arg, len);
    memcpy(out + AQ_FRAME_HEAD, data, len);
    return AQ_FRAME_HEAD + len;
}

static void frames_in_portions(void **state)
{
    uint8_t bytes[256];
    size_t len;

    (void)state;
    len = make_frame(bytes, AQ_FRAME_OUT, 2, "hello", 5);
    len += make_frame(bytes + len, AQ_FRAME_PING, 0, "", 0);
    len += make_frame(bytes + len, AQ_FRAME_SAY, 0, "NOTICE\0text\n", 12);
    for (size_t portion = 1; portion <= len; portion++) {
        struct aq_frame_in in = { NULL, 0, 0, 0 };
        struct aq_frame f;
        int seen = 0;

        for (size_t at = 0; at < len; at += portion) {
            feed(&in, bytes + at, at + portion <= len ? portion : len - at);
            while (aq_frame_next(&in, &f) > 0) {
                seen++;
                assert_int_equal(f.type, seen == 1   ? AQ_FRAME_OUT
                                         : seen == 2 ? AQ_FRAME_PING
                                                     : AQ_FRAME_SAY);
                if (seen == 1) {
                    assert_int_equal(f.len, 5);
                    assert_int_equal(f.arg, 2);
                    assert_memory_equal(f.data, "hello", 5);
                }
            }
        }
        assert_int_equal(seen, 3);
        aq_frame_free(&in);
    }
}

static void bad_heads(void **state)
{
    static const uint8_t heads[][AQ_FRAME_HEAD] = {
        { 0, 0, 0, 0, 0, 0, 0, 0 },              /* type 0 */
        { 0, 0, 0, 0, AQ_FRAME_TYPES, 0, 0, 0 }, /* unknown */
        { 0, 0, 0, 0, 255, 0, 0, 0 },
        { 0, 0, 0, 0, AQ_FRAME_PING, 0, 1, 0 }, /* reserved bytes */
        { 0, 1, 0, 1, AQ_FRAME_OUT, 0, 0, 0 },  /* 65537 bytes of output */
        { 255, 255, 255, 255, AQ_FRAME_PING, 0, 0, 0 },
        { 4, 0, 0, 1, AQ_FRAME_SETUP, 0, 0, 0 }, /* beyond the larger limit */
        { 255, 255, 255, 255, AQ_FRAME_RESULT, 0, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct aq_frame_in in = { NULL, 0, 0, 0 };
        struct aq_frame f;

        feed(&in, heads[i], sizeof(heads[i]));
        assert_int_equal(aq_frame_next(&in, &f), -EPROTO);
        aq_frame_free(&in);
    }
}

static void cut_frames_wait(void **state)
{
    uint8_t bytes[64];
    size_t len = make_frame(bytes, AQ_FRAME_STATE, 0, "0123456789abcdef", 16);

    (void)state;
    for (size_t have = 0; have < len; have++) {
        struct aq_frame_in in = { NULL, 0, 0, 0 };
        struct aq_frame f;

        feed(&in, bytes, have);
        assert_int_equal(aq_frame_next(&in, &f), 0);
        aq_frame_free(&in);
    }
}

static void random_bytes(void **state)
{
    (void)state;
    srandom(4711);
    for (int round = 0; round < 20000; round++) {
        struct aq_frame_in in = { NULL, 0, 0, 0 };
        uint8_t bytes[200];
        struct aq_frame f;
        size_t total = 0;
        int rc;

        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(random() % (round % 2 == 0 ? 256 : AQ_FRAME_TYPES));
        for (int i = 0; i < 4 && round % 3 != 0; i++)
            bytes[i] = i == 3 ? (uint8_t)(random() % 64) : 0; /* so that some are accepted */
        bytes[6] = bytes[7] = 0;
        feed(&in, bytes, sizeof(bytes));
        while ((rc = aq_frame_next(&in, &f)) > 0) {
            total += AQ_FRAME_HEAD + f.len;
            assert_true(total <= sizeof(bytes));
            assert_true(f.data + f.len <= in.buf + in.have);
        }
        assert_true(rc == 0 || rc == -EPROTO);
        aq_frame_free(&in);
    }
}

static void hello_after_noise(void **state)
{
    static const char *const noises[] = { "", "Welcome!\n", "\xff", "\xff\0AQ-agen",
                                          "fortune: \xff\xff\xff" };
    uint8_t hello[AQ_HELLO_BYTES];

    (void)state;
    aq_frame_make_hello(hello, "0.1.0-a-long-version-text");
    for (size_t i = 0; i < sizeof(noises) / sizeof(noises[0]); i++) {
        for (size_t portion = 1; portion < 64; portion += 7) {
            struct aq_frame_in in = { NULL, 0, 0, 0 };
            char version[AQ_HELLO_VERSION + 1];
            const char *noise;
            uint32_t protocol = 0;
            size_t len, noise_len = strlen(noises[i]);
            struct aq_frame f;
            uint8_t ping[AQ_FRAME_HEAD];

            feed(&in, noises[i], noise_len);
            assert_int_equal(aq_frame_hello(&in, &protocol, version, &noise, &len), 0);
            assert_int_equal(len, noise_len);
            for (size_t at = 0; at < sizeof(hello); at += portion) {
                assert_int_equal(aq_frame_hello(&in, &protocol, version, &noise, &len), 0);
                feed(&in, hello + at, at + portion <= sizeof(hello) ? portion : sizeof(hello) - at);
            }
            aq_frame_head(ping, AQ_FRAME_PING, 0, 0);
            feed(&in, ping, sizeof(ping));
            assert_int_equal(aq_frame_hello(&in, &protocol, version, &noise, &len), 1);
            assert_int_equal(len, noise_len);
            assert_memory_equal(noise, noises[i], noise_len);
            assert_int_equal(protocol, AQ_AGENT_PROTOCOL);
            assert_string_equal(version, "0.1.0-a-long-ver");
            assert_int_equal(aq_frame_next(&in, &f), 1);
            assert_int_equal(f.type, AQ_FRAME_PING);
            aq_frame_free(&in);
        }
    }
}

static void packing(void **state)
{
    char *texts[] = { (char *)"one", (char *)"", (char *)"two\nlines", NULL }, **got;
    struct aq_pack p = { NULL, 0, 0, false };
    struct aq_unpack u;
    const uint8_t *block;
    size_t len;
    char *text;

    (void)state;
    aq_pack_u32(&p, 0xdeadbeef);
    aq_pack_text(&p, "text");
    aq_pack_texts(&p, texts);
    aq_pack_block(&p, "\0\1\2", 3);
    assert_false(p.failed);
    u = (struct aq_unpack){ p.buf, p.len, false };
    assert_int_equal(aq_unpack_u32(&u), 0xdeadbeef);
    text = aq_unpack_text(&u);
    assert_string_equal(text, "text");
    free(text);
    got = aq_unpack_texts(&u);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(got[i], texts[i]);
        free(got[i]);
    }
    assert_null(got[3]);
    free(got);
    block = aq_unpack_block(&u, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(block, "\0\1\2", 3);
    assert_false(u.failed);
    assert_int_equal(u.left, 0);
    assert_int_equal(aq_unpack_u32(&u), 0);
    assert_true(u.failed);
    free(p.buf);
}

/* every prefix of a payload, in a block of just that size, and with one byte changed */
static void unpacking_what_is_cut(void **state)
{
    char *texts[] = { (char *)"A=1", (char *)"B=2", NULL };
    struct aq_pack p = { NULL, 0, 0, false };

    (void)state;
    aq_pack_texts(&p, texts);
    aq_pack_text(&p, "end");
    for (size_t len = 0; len <= p.len; len++) {
        for (size_t change = 0; change <= len; change++) {
            uint8_t *copy = malloc(len + 1);
            struct aq_unpack u;
            char **got, *text;

            memcpy(copy, p.buf, len);
            if (change < len)
                copy[change] ^= 0xff;
            copy = realloc(copy, len > 0 ? len : 1);
            u = (struct aq_unpack){ copy, len, false };
            got = aq_unpack_texts(&u);
            text = aq_unpack_text(&u);
            assert_true(u.failed == (text == NULL));
            assert_true(len < p.len ? u.failed : true);
            for (int i = 0; got != NULL && got[i] != NULL; i++)
                free(got[i]);
            free(got);
            free(text);
            free(copy);
        }
    }
    free(p.buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_in_portions),    cmocka_unit_test(bad_heads),
        cmocka_unit_test(cut_frames_wait),       cmocka_unit_test(random_bytes),
        cmocka_unit_test(hello_after_noise),     cmocka_unit_test(packing),
        cmocka_unit_test(unpacking_what_is_cut),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
