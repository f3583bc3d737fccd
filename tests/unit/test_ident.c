/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ident.c - the "$Key: value $" strings are well-formed and in the executable.
 * Source: documented identification strings; scanners split the file at '$'.
 */
#include "tests/unit/aq_unit.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_ident.h"
#include "gasnetex.h"

static void expect(const char *key, const char *text)
{
    unsigned len = 0;
    const char *value = aq_ident_value(key, &len);

    if (value == NULL)
        fail_msg("no %s", key);
    if (len != strlen(text) || strncmp(value, text, len) != 0)
        fail_msg("%s is \"%.*s\", not \"%s\"", key, (int)len, value, text);
}

static void test_values(void **state)
{
    unsigned len;

    (void)state;
    expect("GASNetConduitName", GASNET_CONDUIT_NAME_STR);
    expect("GASNetFORKSpawner", "1");
    expect("GASNetConfig", GASNET_CONFIG_STRING);
    expect("GASNetEXAPIVersion", "0.19");
    expect("GASNetThreadModel", "GASNET_" AQ_MODE_STR);
    assert_null(aq_ident_value("GASNetConduit", &len)); /* a prefix is not the key */
    expect("GASNetTracingEnabled", "1");
}

static void test_form(void **state)
{
    int count = 0;

    (void)state;
    for (const char *at = aq_ident_strings; *at != '\0'; at += strlen(at) + 1, count++) {
        const char *dollar = strchr(at, '$'), *colon, *end = strrchr(at, '$');

        assert_non_null(dollar);
        colon = strchr(dollar, ':');
        assert_non_null(colon);
        for (const char *p = dollar + 1; p < colon; p++)
            assert_true(isalnum((unsigned char)*p));
        assert_true(colon[1] == ' ');
        assert_true(end > colon + 2 && end[-1] == ' ' && end[1] == '\0');
        assert_null(strchr(at, '\n'));
    }
    assert_true(count > 10);
}

/* the executable's bytes contain them, as a scanner sees it */
static void test_in_file(void **state)
{
    /* without its dollar, lest this very constant be found */
    char wanted[] = "#GASNetConduitName: " GASNET_CONDUIT_NAME_STR " $";
    FILE *self = fopen("/proc/self/exe", "rb");
    size_t at = 0;
    int c;

    (void)state;
    assert_non_null(self);
    wanted[0] = '$';
    while (at < sizeof(wanted) - 1 && (c = getc(self)) != EOF)
        at = c == wanted[at] ? at + 1 : c == wanted[0];
    fclose(self);
    assert_int_equal(at, sizeof(wanted) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_in_file),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
