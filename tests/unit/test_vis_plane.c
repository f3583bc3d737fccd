/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vis_plane.c - strided copies within a process, by each set of loops that this processor can
 * run: elements of any size, rows and planes, at any alignment, and nothing written beside them.
 */
#include "tests/unit/aq_unit.h"

#include "extended/aq_vis_plane.c"

#define PITCH 4360 /* larger than the largest element */
#define ROWS  5
#define PLANE ((size_t)PITCH * ROWS * 2 + 64)

typedef void copy_fn(const struct aq_vis_shape *shape);

static char src[PLANE], dst[PLANE], want[PLANE];

static void fill(void)
{
    for (size_t i = 0; i < PLANE; i++)
        src[i] = (char)(i * 7 + i / 251);
    memset(dst, -1, PLANE);
    memset(want, -1, PLANE);
}

/* Two planes of n elements in a row of narrow places, in front of each other in the source. */
static struct aq_vis_shape shape_of(size_t size, size_t n, size_t gap, size_t from, size_t to)
{
    return (struct aq_vis_shape){ .dst = (uintptr_t)(dst + to),
                                  .src = (uintptr_t)(src + from),
                                  .elemsz = size,
                                  .levels = 2,
                                  .dim = { { n, (ptrdiff_t)(size + gap), (ptrdiff_t)size },
                                           { 2, PITCH * ROWS, PITCH * ROWS } } };
}

static void copy_bytes(const struct aq_vis_shape *shape, size_t from, size_t to)
{
    const struct aq_vis_dim *in = &shape->dim[0], *out = &shape->dim[1];

    for (size_t k = 0; k < out->count; k++)
        for (size_t i = 0; i < in->count; i++)
            for (size_t b = 0; b < shape->elemsz; b++)
                want[to + k * (size_t)out->dst + i * (size_t)in->dst + b] =
                    src[from + k * (size_t)out->src + i * (size_t)in->src + b];
}

static void check(copy_fn *copy, size_t size, size_t n, size_t gap, size_t from, size_t to)
{
    const struct aq_vis_shape shape = shape_of(size, n, gap, from, to);

    if (n < 2 || n * (size + gap) > PITCH * ROWS)
        return;
    fill();
    copy_bytes(&shape, from, to);
    copy(&shape);
    assert_memory_equal(dst, want, PLANE);
}

/* Every size to beyond three lines, then those at which the loops change. */
static void check_sizes(copy_fn *copy, size_t first)
{
    static const size_t others[] = { 255, 256, 257, 319, 320, 1023, 1024, 2047, 2048, 4095, 4352 };

    for (size_t size = first; size <= 200; size++) {
        check(copy, size, 2 + size % 3, 8, 16, 0);
        check(copy, size, 17, 1, size % 64, 64 - size % 64);
    }
    check(copy, 64, 130, 8, 16, 0); /* rows so long that lines are asked for */
    check(copy, 128, 140, 8, 1, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        check(copy, others[i], 3, 7, 0, 0);
        check(copy, others[i], 4, 8, 48, 16);
    }
}

static void test_any(void **state)
{
    (void)state;
    check_sizes(aq_vis_copy_planes, 1);
}

static void test_narrow(void **state)
{
    (void)state;
    check_sizes(aq_vis_copy_narrow, 32);
}

static void test_wide(void **state)
{
    (void)state;
    if (!aq_cpu_has_wide())
        skip();
    check_sizes(aq_vis_copy_wide, 32);
}

static void test_line(void **state)
{
    (void)state;
    if (!aq_cpu_has_line())
        skip();
    check_sizes(aq_vis_copy_line, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
