/*
 * tools_env.c - environment variables and numbers: every row of a table for gasnett_parse_int and
 * gasnett_format_number, getters, setting and removing. What GASNET_VERBOSEENV prints is checked by
 * tools.sh, which runs "tools_env show"; wrong values by "tools_env bad GETTER".
 * Source: GASNet tools specification 1.20, environment. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"

#include <inttypes.h>

#include "aq_tap.h"

#define K UINT64_C(1024)
#define M (K * K)
#define G (K * M)
#define T (K * G)

static const struct {
    const char *text;
    uint64_t mult;
    int64_t value;
} parse[] = {
    { NULL, 1, 0 },
    { "", 1, 0 },
    { "abc", 1, 0 },
    { "-", 1, 0 },
    { "0", 1, 0 },
    { "7", 0, 7 },
    { "7", 1, 7 },
    { "7", K, 7 * 1024 },
    { "+7", 1, 7 },
    { "-7", 1, -7 },
    { "-7", K, -7168 },
    { "0x10", 1, 16 },
    { "0X1f", 0, 31 },
    { "-0x10", 1, -16 },
    { "0x10", K, 16384 },
    { "0x1B", 1, 27 },
    { "0x2K", 1, 2048 },
    { "10B", M, 10 },
    { "10b", M, 10 },
    { "2K", 1, 2048 },
    { "2k", M, 2048 },
    { "2KB", 1, 2048 },
    { "2KiB", 1, 2048 },
    { "3M", 1, 3 * 1048576 },
    { "1.5MB", 1, 1572864 },
    { "1.5", M, 1572864 },
    { ".5K", 1, 512 },
    { "2 GB", 1, INT64_C(2) << 30 },
    { "1T", 1, INT64_C(1) << 40 },
    { "1t", K, INT64_C(1) << 40 },
    { "  42", 1, 42 },
    { "42 apples", 0, 42 },
    { "12 Bananas", 0, 12 },
    { "4K", 0, 4 },
    { "2.75", 0, 2 },
    { "-1.5K", 1, -1536 },
    { "9223372036854775807", 0, INT64_MAX },
    { "-9223372036854775808", 0, INT64_MIN },
    { "9999999999999999999", 0, INT64_MAX },
    { "99999999T", 1, INT64_MAX },
    { "-99999999T", 1, INT64_MIN },
    { "1e3", 0, 1 },
};

static const struct {
    int64_t value;
    int is_mem;
    const char *text;
} format[] = {
    { 0, 0, "0" },
    { 0, 1, "0" },
    { 1, 1, "1 B" },
    { 1536, 1, "1536 B" },
    { 1024, 1, "1 KB" },
    { 2048, 1, "2 KB" },
    { 10240, 1, "10 KB" },
    { 10241, 1, "10 KB" },
    { 2097152, 1, "2 MB" },
    { 2097153, 1, "2048 KB" },
    { -2097152, 1, "-2 MB" },
    { 5, 0, "5" },
    { -5, 0, "-5" },
    { 1536, 0, "1536" },
    { INT64_C(3) << 30, 1, "3 GB" },
    { INT64_C(1) << 40, 1, "1 TB" },
    { INT64_C(1) << 50, 1, "0x4000000000000" },
    { INT64_C(1) << 50, 0, "0x4000000000000" },
    { -(INT64_C(1) << 50), 0, "-0x4000000000000" },
    { (INT64_C(1) << 50) - 1, 0, "1125899906842623" },
    { INT64_MIN, 1, "-0x8000000000000000" },
};

static void check_numbers(void)
{
    char buf[64];

    rule("gasnett_parse_int: units, signs, fractions, hexadecimal, no number, too large");
    for (size_t i = 0; i < sizeof(parse) / sizeof(parse[0]); i++)
        if (gasnett_parse_int(parse[i].text, parse[i].mult) != parse[i].value) {
            CHECK(!"a row of the table");
            printf("#   \"%s\" mult %" PRIu64 ": %" PRId64 ", not %" PRId64 "\n",
                   parse[i].text ? parse[i].text : "(NULL)", parse[i].mult,
                   gasnett_parse_int(parse[i].text, parse[i].mult), parse[i].value);
        }

    rule("gasnett_format_number");
    for (size_t i = 0; i < sizeof(format) / sizeof(format[0]); i++) {
        CHECK_STR(gasnett_format_number(format[i].value, buf, sizeof(buf), format[i].is_mem),
                  format[i].text);
        CHECK(gasnett_format_number(format[i].value, buf, sizeof(buf), format[i].is_mem) == buf);
    }
    CHECK(strlen(gasnett_format_number(123456789, buf, 5, 0)) == 4); /* cut, not overrun */

    rule("what is formatted can be parsed");
    for (int shift = 0; shift < 50; shift++) {
        gasnett_format_number(INT64_C(1) << shift, buf, sizeof(buf), 1);
        CHECK_EQ(gasnett_parse_int(buf, 1), INT64_C(1) << shift);
    }
}

static void check_getters(void)
{
    static const char *const yes[] = { "Y", "y", "YES", "yes", "Yes", "1" };
    static const char *const no[] = { "N", "n", "NO", "no", "No", "0" };

    rule("a variable that is not set");
    gasnett_unsetenv("TOOLS_TEST");
    CHECK(gasnett_getenv("TOOLS_TEST") == NULL);
    CHECK_STR(gasnett_getenv_withdefault("TOOLS_TEST", "dflt"), "dflt");
    CHECK(gasnett_getenv_withdefault("TOOLS_TEST", NULL) == NULL);
    CHECK_EQ(gasnett_getenv_yesno_withdefault("TOOLS_TEST", 1), 1);
    CHECK_EQ(gasnett_getenv_yesno_withdefault("TOOLS_TEST", 0), 0);
    CHECK_EQ(gasnett_getenv_int_withdefault("TOOLS_TEST", -12, K), -12);
    CHECK(gasnett_getenv_dbl_withdefault("TOOLS_TEST", 1.5) == 1.5);

    rule("setting and removing, seen by libc too; what libc sets is seen");
    gasnett_setenv("TOOLS_TEST", "one");
    CHECK_STR(gasnett_getenv("TOOLS_TEST"), "one");
    CHECK_STR(getenv("TOOLS_TEST"), "one");
    gasnett_setenv("TOOLS_TEST", "");
    CHECK_STR(gasnett_getenv("TOOLS_TEST"), "");
    CHECK_STR(gasnett_getenv_withdefault("TOOLS_TEST", "dflt"), "");
    gasnett_unsetenv("TOOLS_TEST");
    CHECK(getenv("TOOLS_TEST") == NULL && gasnett_getenv("TOOLS_TEST") == NULL);
    setenv("TOOLS_TEST_LIBC", "later", 1);
    CHECK_STR(gasnett_getenv("TOOLS_TEST_LIBC"), "later");
    unsetenv("TOOLS_TEST_LIBC");
    CHECK(gasnett_getenv("TOOLS_TEST_LIBC") == NULL);

    rule("yes and no in every spelling");
    for (int i = 0; i < 6; i++) {
        gasnett_setenv("TOOLS_TEST", yes[i]);
        CHECK(gasnett_getenv_yesno_withdefault("TOOLS_TEST", 0) != 0);
        gasnett_setenv("TOOLS_TEST", no[i]);
        CHECK(gasnett_getenv_yesno_withdefault("TOOLS_TEST", 1) == 0);
    }

    rule("numbers: plain, with a unit, fractions");
    gasnett_setenv("TOOLS_TEST", "3");
    CHECK_EQ(gasnett_getenv_int_withdefault("TOOLS_TEST", 0, M), 3 * 1048576);
    CHECK_EQ(gasnett_getenv_int_withdefault("TOOLS_TEST", 0, 0), 3);
    CHECK(gasnett_getenv_dbl_withdefault("TOOLS_TEST", 0) == 3);
    gasnett_setenv("TOOLS_TEST", "3/4");
    CHECK(gasnett_getenv_dbl_withdefault("TOOLS_TEST", 0) == 0.75);
    gasnett_setenv("TOOLS_TEST", "-0.125");
    CHECK(gasnett_getenv_dbl_withdefault("TOOLS_TEST", 0) == -0.125);

    rule("a launcher's encoding is decoded, unless that is switched off");
    setenv("TOOLS_CODED", "a%020b%0", 1);
    CHECK_STR(gasnett_getenv("TOOLS_CODED"), "a b%0");
    CHECK(gasnett_getenv("TOOLS_CODED") == gasnett_getenv("TOOLS_CODED"));
    setenv("GASNET_DISABLE_ENVDECODE", "1", 1);
    CHECK_STR(gasnett_getenv("TOOLS_CODED"), "a%020b%0");
    unsetenv("GASNET_DISABLE_ENVDECODE");
}

/* for tools.sh: lines on stderr */
static int show(void)
{
    gasnett_setenv("TOOLS_TEXT", "some text");
    gasnett_setenv("TOOLS_EMPTY", "");
    gasnett_setenv("TOOLS_SIZE", "10KB");
    gasnett_setenv("TOOLS_FLAG", "y");
    gasnett_getenv("TOOLS_SILENT");
    for (int twice = 0; twice < 2; twice++) {
        gasnett_getenv_withdefault("TOOLS_TEXT", "other");
        gasnett_getenv_withdefault("TOOLS_UNSET", NULL);
        gasnett_getenv_withdefault("TOOLS_EMPTY", "other");
        gasnett_getenv_withdefault("TOOLS_DEFAULT", "usual");
        gasnett_getenv_int_withdefault("TOOLS_SIZE", 0, 1);
        gasnett_getenv_int_withdefault("TOOLS_COUNT", 12, 0);
        gasnett_getenv_yesno_withdefault("TOOLS_FLAG", 0);
        gasnett_getenv_dbl_withdefault("TOOLS_REAL", 0.25);
        gasnett_envstr_display("TOOLS_OWN", "mine", 1);
        gasnett_envint_display("TOOLS_OWN_SIZE", 2097152, 0, 1);
        gasnett_envint_display("TOOLS_OWN_INT", -3, 1, 0);
        gasnett_envdbl_display("TOOLS_OWN_REAL", 0.5, 1);
    }
    printf("%d\n", gasnett_verboseenv());
    return 0;
}

static int bad(const char *getter)
{
    gasnett_setenv("TOOLS_TEST", "perhaps");
    if (strcmp(getter, "yesno") == 0)
        return gasnett_getenv_yesno_withdefault("TOOLS_TEST", 1);
    return (int)gasnett_getenv_dbl_withdefault("TOOLS_TEST", 1);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "show") == 0)
        return show();
    if (argc > 2 && strcmp(argv[1], "bad") == 0)
        return bad(argv[2]) * 0;
    check_numbers();
    check_getters();
    return tap_finish();
}
