/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_copy.c - large copies are exact at any size and alignment, on both sides of the size from
 * which they stream, and touch nothing outside.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gasnetex.h"

enum { CANARY = 256 };

static void check(unsigned char *to, const unsigned char *from, size_t to_shift, size_t from_shift,
                  size_t nbytes)
{
    unsigned char *dest = to + CANARY + to_shift;

    memset(to, 0xa5, nbytes + 3 * CANARY);
    aq_copy_large(dest, from + from_shift, nbytes);
    assert_int_equal(memcmp(dest, from + from_shift, nbytes), 0);
    for (size_t i = 1; i <= CANARY; i++) {
        assert_int_equal(dest[-(ptrdiff_t)i], 0xa5);
        assert_int_equal(dest[nbytes + i - 1], 0xa5);
    }
}

static void test_sizes(void **state)
{
    static const size_t shifts[] = { 0, 1, 8, 15, 16, 63 };
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t streams = cache > 0 ? (size_t)cache / 2 : (size_t)16 << 20;
    size_t sizes[] = { 1, 4095, 70001, streams - 1, streams, streams + 1, streams + 127 };
    size_t space = streams + 4096;
    unsigned char *from = malloc(space), *to = malloc(space);
    uint32_t random = 12345;

    (void)state;
    if (streams > (size_t)256 << 20) /* do not take half a gigabyte for a test */
        sizes[3] = sizes[4] = sizes[5] = sizes[6] = 100000;
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < space; i++)
        from[i] = (unsigned char)((random = random * 1664525u + 1013904223u) >> 24);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (size_t a = 0; a < sizeof(shifts) / sizeof(shifts[0]); a++)
            check(to, from, shifts[a], shifts[sizeof(shifts) / sizeof(shifts[0]) - 1 - a],
                  sizes[s]);
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sizes) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
