/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_error.c - names and descriptions of return codes.
 * Source: GASNet-EX specification 0.19, errors.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "gasnetex.h"

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(gasnet_ErrorName(GASNET_OK), "GASNET_OK");
    assert_string_equal(gasnet_ErrorName(GASNET_ERR_NOT_INIT), "GASNET_ERR_NOT_INIT");
    assert_string_equal(gasnet_ErrorName(GASNET_ERR_RESOURCE), "GASNET_ERR_RESOURCE");
    assert_string_equal(gasnet_ErrorName(GASNET_ERR_BAD_ARG), "GASNET_ERR_BAD_ARG");
    assert_string_equal(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY");
    assert_string_equal(gasnet_ErrorName(GASNET_ERR_BARRIER_MISMATCH),
                        "GASNET_ERR_BARRIER_MISMATCH");
}

static void test_never_null(void **state)
{
    static const int codes[] = { INT32_MIN, -1, 0, 1, 10000, 10001, 10005, 10006, INT32_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_true(strlen(gasnet_ErrorName(codes[i])) > 5);
        assert_true(strlen(gasnet_ErrorDesc(codes[i])) > 5);
    }
    assert_ptr_equal(gasnet_ErrorName(12), gasnet_ErrorName(-77));
}

static void test_verbose_switch(void **state)
{
    (void)state;
    assert_int_equal(gex_System_GetVerboseErrors(), 1);
    gex_System_SetVerboseErrors(0);
    assert_int_equal(gex_System_GetVerboseErrors(), 0);
    gex_System_SetVerboseErrors(1);
    assert_int_equal(gex_System_GetVerboseErrors(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_never_null),
        cmocka_unit_test(test_verbose_switch),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
