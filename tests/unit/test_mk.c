/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mk.c - memory kinds: the host's table does what core/aq_mk.h says; and what a message brings
 * for a segment goes through the table that the segment names, and for other memory through the
 * host's.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "core/aq_mk.h"

#define BYTES 4096

static char primordial[BYTES], further[BYTES], elsewhere[BYTES], payload[64];
static int copied_in, copied_out;

static void count_in(void *dest, const void *src, size_t nbytes)
{
    copied_in++;
    memcpy(dest, src, nbytes);
}

static void count_out(void *dest, const void *src, size_t nbytes)
{
    copied_out++;
    memcpy(dest, src, nbytes);
}

/* A kind that is not the host's, for the segment of a further endpoint. */
static const struct aq_mk_ops device = { .copy_in = count_in, .copy_out = count_out };

static void bind_segments(void)
{
    static struct aq_bound bound = { primordial, BYTES };
    static struct aq_segment host_segment = { .mk = &aq_mk_host, .base = primordial };
    static struct aq_segment device_segment = { .mk = &device, .base = further };
    static struct aq_ep ep;

    aq_segment_set_size(&host_segment, BYTES);
    aq_segment_set_size(&device_segment, BYTES);
    aq_job.size = 1;
    aq_job.bound = &bound;
    atomic_store(&aq_job.ep.segment, &host_segment);
    atomic_store(&ep.segment, &device_segment);
    atomic_store(&aq_job.further[1], &ep);
}

static void test_host(void **state)
{
    char *memory = NULL;
    void *base;
    uint64_t word = 0;

    (void)state;
    assert_ptr_equal(aq_mk_find(GEX_MK_HOST), &aq_mk_host);
    assert_null(aq_mk_find(GEX_MK_INVALID));
    assert_true(aq_mk_host.is_host);
    assert_int_equal(aq_mk_host.alloc(2 * BYTES, &base), 0);
    memory = base;
    assert_int_equal(memory[0] | memory[2 * BYTES - 1], 0);
    for (size_t n = 1; n <= sizeof(payload); n++)
        for (size_t at = 0; at < 8; at++) {
            memset(memory, 0, BYTES);
            memset(payload, (int)n, sizeof(payload));
            aq_mk_host.copy_in(memory + at, payload, n);
            assert_memory_equal(memory + at, payload, n);
            assert_int_equal(memory[at + n], 0);
        }
    memset(memory, 7, 8);
    aq_mk_host.copy_out(&word, memory, 8);
    assert_true(word == UINT64_C(0x0707070707070707));
    aq_mk_host.free(memory, 2 * BYTES);
    assert_int_not_equal(aq_mk_host.alloc(UINTPTR_MAX - BYTES, &base), 0);
}

static void test_of_an_address(void **state)
{
    (void)state;
    assert_null(aq_bound_kind(primordial, 1)); /* nothing is bound yet */
    assert_ptr_equal(aq_mk_at(primordial, 1), &aq_mk_host);
    bind_segments();
    assert_ptr_equal(aq_bound_kind(primordial, BYTES), &aq_mk_host);
    assert_ptr_equal(aq_bound_kind(further + 8, BYTES - 8), &device);
    assert_null(aq_bound_kind(further + 8, BYTES));
    assert_null(aq_bound_kind(elsewhere, 1));
    assert_ptr_equal(aq_mk_at(elsewhere, 1), &aq_mk_host);
    assert_true(aq_bound_is_self(further, BYTES) && !aq_bound_is_self(elsewhere, 1));
}

static void test_longs_go_through_the_kind(void **state)
{
    (void)state;
    memset(payload, 'x', sizeof(payload));
    aq_bound_place_long(0, further + 100, payload, sizeof(payload));
    assert_int_equal(copied_in, 1);
    assert_memory_equal(further + 100, payload, sizeof(payload));
    aq_bound_place_long(0, primordial, payload, sizeof(payload));
    assert_int_equal(copied_in, 1);
    assert_memory_equal(primordial, payload, sizeof(payload));
    aq_bound_place_long(0, elsewhere, payload, 0); /* nothing is placed, and nothing checked */
    assert_int_equal(copied_in + copied_out, 1);
}

static void body_outside(void *arg)
{
    (void)arg;
    aq_bound_place_long(3, elsewhere, payload, 8);
}

static void test_outside(void **state)
{
    struct aq_unit_result run;

    (void)state;
    aq_unit_run(body_outside, NULL, &run);
#if !GASNET_SEGMENT_EVERYTHING
    assert_int_not_equal(aq_unit_exit_code(&run), 0);
    aq_unit_contains(run.err, "rank 3 sent a long message to [");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_of_an_address),
        cmocka_unit_test(test_longs_go_through_the_kind),
        cmocka_unit_test(test_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
