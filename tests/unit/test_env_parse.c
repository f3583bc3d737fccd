/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_env_parse.c - the forms of values: base/aq_env_parse.c.
 * Source: documented forms of GASNet's environment variables (sizes, ranges, MAX_SEGSIZE).
 */
#include "tests/unit/aq_unit.h"

#include <locale.h>
#include <math.h>

#include "base/aq_env.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_bool(void **state)
{
    static const char *const yes[] = { "1", "y", "Y", "yes", "YES", "true", "On", " yes " };
    static const char *const no[] = { "0", "n", "N", "no", "NO", "False", "off", "no\n" };
    static const char *const bad[] = { "", " ", "2", "ja", "yes!", "yes no", "yesyesyesyes", "10" };
    bool value;

    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++) {
        value = false;
        assert_true(aq_env_parse_bool(yes[i], &value));
        assert_true(value);
    }
    for (size_t i = 0; i < COUNT(no); i++) {
        value = true;
        assert_true(aq_env_parse_bool(no[i], &value));
        assert_false(value);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(aq_env_parse_bool(bad[i], &value));
}

static void test_int(void **state)
{
    static const char *const bad[] = { "",
                                       "-",
                                       "x",
                                       "4x",
                                       "4 5",
                                       "0x",
                                       "0xg",
                                       "1.5",
                                       "--4",
                                       "9223372036854775808",
                                       "-9223372036854775809",
                                       "99999999999999999999999999" };
    int64_t value = 77;

    (void)state;
    assert_true(aq_env_parse_int("42", &value) && value == 42);
    assert_true(aq_env_parse_int(" -7 ", &value) && value == -7);
    assert_true(aq_env_parse_int("+7", &value) && value == 7);
    assert_true(aq_env_parse_int("007", &value) && value == 7);
    assert_true(aq_env_parse_int("0x1F", &value) && value == 31);
    assert_true(aq_env_parse_int("-0x10", &value) && value == -16);
    assert_true(aq_env_parse_int("9223372036854775807", &value) && value == INT64_MAX);
    assert_true(aq_env_parse_int("-9223372036854775808", &value) && value == INT64_MIN);
    value = 77;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(aq_env_parse_int(bad[i], &value));
    assert_int_equal(value, 77);
}

static void test_real(void **state)
{
    static const char *const bad[] = { "",      ".",   "-",   "1/0", "1/",  "/2",    "1e",
                                       "1e999", "1,5", "1 2", "nan", "inf", "0x1p3", "1/2/3" };
    double value;

    (void)state;
    assert_true(aq_env_parse_real("0.25", &value) && value == 0.25);
    assert_true(aq_env_parse_real(".5", &value) && value == 0.5);
    assert_true(aq_env_parse_real("3.", &value) && value == 3);
    assert_true(aq_env_parse_real("1/4", &value) && value == 0.25);
    assert_true(aq_env_parse_real("-1.5e3", &value) && value == -1500);
    assert_true(aq_env_parse_real("25E-2", &value) && fabs(value - 0.25) < 1e-15);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(aq_env_parse_real(bad[i], &value));
}

static void test_size(void **state)
{
    static const struct {
        const char *text, *unit;
        uint64_t bytes;
    } good[] = {
        { "4096", "B", 4096 },
        { "0", "B", 0 },
        { "4096B", "MB", 4096 },
        { "64KB", "B", 65536 },
        { "64kb", "B", 65536 },
        { "64 K", "B", 65536 },
        { "64KiB", "B", 65536 },
        { "128.0MB", "B", UINT64_C(128) << 20 },
        { "1.5G", "B", UINT64_C(3) << 29 },
        { "2TB", "B", UINT64_C(2) << 40 },
        { "0x1000", "B", 4096 },
        { "2", "MB", UINT64_C(2) << 20 },
        { ".5", "KB", 512 },
        { "18446744073709551615", "B", UINT64_MAX },
    };
    static const char *const bad[] = { "",     "MB",     "-4KB",       "4QB",
                                       "4KBs", "4K B",   "4MiX",       "1e3",
                                       "4..5", "0x10KB", "16777216TB", "18446744073709551616",
                                       "1/2",  "." };
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        bytes = 1;
        if (!aq_env_parse_size(good[i].text, good[i].unit, &bytes))
            fail_msg("%s refused", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (aq_env_parse_size(bad[i], "B", &bytes))
            fail_msg("\"%s\" accepted", bad[i]);
}

static void test_time(void **state)
{
    double value;

    (void)state;
    assert_true(aq_env_parse_time("30", "s", &value) && value == 30);
    assert_true(aq_env_parse_time("2m", "s", &value) && value == 120);
    assert_true(aq_env_parse_time("2 min", "s", &value) && value == 120);
    assert_true(aq_env_parse_time("0.5h", "s", &value) && value == 1800);
    assert_true(aq_env_parse_time("250ms", "s", &value) && value == 0.25);
    assert_true(aq_env_parse_time("1.5s", "us", &value) && value == 1.5e6);
    assert_true(aq_env_parse_time("50", "us", &value) && value == 50);
    assert_true(aq_env_parse_time("500ns", "us", &value) && value == 0.5);
    assert_true(aq_env_parse_time("0", "s", &value) && value == 0);
    assert_false(aq_env_parse_time("", "s", &value));
    assert_false(aq_env_parse_time("-1", "s", &value));
    assert_false(aq_env_parse_time("1 day", "s", &value));
    assert_false(aq_env_parse_time("1sx", "s", &value));
}

static void test_segsize(void **state)
{
    static const char *const bad[] = { "",       "/H",       "/P",    "0",     "0.0",
                                       "0.85/X", "0.85/HP",  "0.85H", "-0.5",  "abc",
                                       "128MB/", "128MB//P", "1/0",   "0KB/H", "4 4/P" };
    struct aq_env_segsize seg;

    (void)state;
    assert_true(aq_env_parse_segsize("0.85/H", &seg));
    assert_true(seg.is_fraction && seg.per_host && seg.fraction == 0.85);
    assert_true(aq_env_parse_segsize("0.5", &seg));
    assert_true(seg.is_fraction && !seg.per_host && seg.fraction == 0.5);
    assert_true(aq_env_parse_segsize("2/3/p", &seg));
    assert_true(seg.is_fraction && !seg.per_host && fabs(seg.fraction - 2.0 / 3) < 1e-12);
    assert_true(aq_env_parse_segsize("2/3", &seg));
    assert_true(seg.is_fraction && !seg.per_host);
    assert_true(aq_env_parse_segsize("128.0MB/P", &seg));
    assert_true(!seg.is_fraction && !seg.per_host && seg.bytes == UINT64_C(128) << 20);
    assert_true(aq_env_parse_segsize("16GB / h ", &seg));
    assert_true(!seg.is_fraction && seg.per_host && seg.bytes == UINT64_C(16) << 30);
    assert_true(aq_env_parse_segsize("0.5GB", &seg));
    assert_true(!seg.is_fraction && seg.bytes == UINT64_C(512) << 20);
    assert_true(aq_env_parse_segsize("1048576", &seg));
    assert_true(!seg.is_fraction && seg.bytes == 1048576);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (aq_env_parse_segsize(bad[i], &seg))
            fail_msg("\"%s\" accepted", bad[i]);
}

static void test_ranks(void **state)
{
    static const char *const bad[] = { "",   ",",          "1,",           ",1",  "1-",
                                       "-1", "3-2",        "1;2",          "1 2", "**",
                                       "a",  "4294967296", "0-4294967296", "*,1" };
    bool listed;

    (void)state;
    assert_true(aq_env_parse_ranks("*", 12345, &listed) && listed);
    assert_true(aq_env_parse_ranks("0,2-4,6", 0, &listed) && listed);
    assert_true(aq_env_parse_ranks("0,2-4,6", 1, &listed) && !listed);
    assert_true(aq_env_parse_ranks("0,2-4,6", 2, &listed) && listed);
    assert_true(aq_env_parse_ranks("0,2-4,6", 4, &listed) && listed);
    assert_true(aq_env_parse_ranks("0,2-4,6", 5, &listed) && !listed);
    assert_true(aq_env_parse_ranks(" 0 , 2 - 4 , 6 ", 6, &listed) && listed);
    assert_true(aq_env_parse_ranks("4294967295", UINT32_MAX, &listed) && listed);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (aq_env_parse_ranks(bad[i], 0, &listed))
            fail_msg("\"%s\" accepted", bad[i]);
}

static void test_choice(void **state)
{
    unsigned index = 9;

    (void)state;
    assert_true(aq_env_parse_choice("auto", "auto|off", &index) && index == 0);
    assert_true(aq_env_parse_choice(" OFF ", "auto|off", &index) && index == 1);
    assert_false(aq_env_parse_choice("of", "auto|off", &index));
    assert_false(aq_env_parse_choice("off2", "auto|off", &index));
    assert_false(aq_env_parse_choice("auto|off", "auto|off", &index));
    assert_false(aq_env_parse_choice("", "auto|off", &index));
    assert_int_equal(index, 1);
}

static void test_format_size(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { 1, "1 B" },
        { 1536, "1536 B" },
        { 2048, "2 KB" },
        { 10240, "10 KB" },
        { 10241, "10 KB" },
        { 2097152, "2 MB" },
        { 2097153, "2048 KB" },
        { UINT64_C(1) << 40, "1 TB" },
        { UINT64_C(1) << 50, "0x4000000000000" },
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(aq_env_format_size(cases[i].bytes, text, sizeof(text)), cases[i].text);
}

/* a client's locale must not change what 1.5 means; where no such locale is installed this
 * checks the C locale again */
static void test_locale(void **state)
{
    double value;
    uint64_t bytes;

    (void)state;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL)
        (void)setlocale(LC_ALL, "fr_FR.UTF-8");
    assert_true(aq_env_parse_real("1.5", &value) && value == 1.5);
    assert_true(aq_env_parse_size("1.5KB", "B", &bytes) && bytes == 1536);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bool),   cmocka_unit_test(test_int),
        cmocka_unit_test(test_real),   cmocka_unit_test(test_size),
        cmocka_unit_test(test_time),   cmocka_unit_test(test_segsize),
        cmocka_unit_test(test_ranks),  cmocka_unit_test(test_choice),
        cmocka_unit_test(test_locale), cmocka_unit_test(test_format_size),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
