/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_pool.c - payload blocks: the smallest that fits, no two in the same place, none lost.
 */
#include "tests/unit/aq_unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_rc.h"
#include "conduits/smp/aq_shm_ring.h"

static int setup(void **state)
{
    (void)state;
    aq_shm.size = 0; /* no peers to take blocks back from */
    aq_shm_pool_plan(4, 32, &aq_shm.layout.pool);
    return aq_shm_pool_init() == AQ_OK ? 0 : -1;
}

static uint32_t block_size(uint32_t block)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    int class = AQ_POOL_CLASSES - 1;

    while (block < plan->offset[class])
        class --;
    return plan->size[class];
}

static uint32_t block_count(void)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    uint32_t count = 0;

    for (int class = 0; class < AQ_POOL_CLASSES; class ++)
        count += plan->count[class];
    return count;
}

static void test_plan(void **state)
{
    struct aq_shm_pool_plan plan;

    (void)state;
    for (uint32_t ranks = 1; ranks <= 4096; ranks *= 8) {
        uint64_t end = 0;

        aq_shm_pool_plan(ranks, AQ_SHM_MAX_DEPTH, &plan);
        for (int class = 0; class < AQ_POOL_CLASSES; class ++) {
            assert_int_equal(plan.offset[class], end);
            assert_true(plan.count[class] > 0);
            assert_int_equal(plan.size[class] % AQ_CACHE_LINE, 0);
            end += (uint64_t)plan.size[class] * plan.count[class];
        }
        assert_int_equal(plan.channel_bytes, end);
        assert_int_equal(plan.size[AQ_POOL_CLASSES - 1], AQ_SHM_MAX_MEDIUM);
        assert_true(end < AQ_BLOCK_NONE);
    }
}

static void test_smallest_that_fits(void **state)
{
    static const size_t sizes[] = { 1, 512, 513, 4096, 4097, AQ_SHM_MAX_MEDIUM };

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t block = aq_shm_block_take(AQ_CHANNEL_REQUEST, sizes[i]);

        assert_int_not_equal(block, AQ_BLOCK_NONE);
        assert_true(block_size(block) >= sizes[i]);
        assert_true(block_size(block) / 16 < sizes[i] || block_size(block) == 512);
        aq_shm_block_release(AQ_CHANNEL_REQUEST, block);
    }
}

/* take all there are of a channel, twice: as many, apart from each other, in bounds */
static void test_take_all(void **state)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    uint32_t *taken = calloc(block_count(), sizeof(*taken));
    bool *used = calloc(plan->channel_bytes / 512, sizeof(*used));
    uint32_t other;

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        memset(used, 0, plan->channel_bytes / 512 * sizeof(*used));
        for (uint32_t i = 0; i < block_count(); i++) {
            uint32_t offset;

            taken[i] = aq_shm_block_take(AQ_CHANNEL_REPLY, 1); /* the small ones first, then any */
            assert_int_not_equal(taken[i], AQ_BLOCK_NONE);
            offset = taken[i];
            assert_true((uint64_t)offset + block_size(taken[i]) <= plan->channel_bytes);
            for (uint32_t part = 0; part < block_size(taken[i]) / 512; part++) {
                assert_false(used[offset / 512 + part]);
                used[offset / 512 + part] = true;
            }
        }
        assert_int_equal(aq_shm_block_take(AQ_CHANNEL_REPLY, 1), AQ_BLOCK_NONE);
        other = aq_shm_block_take(AQ_CHANNEL_REQUEST, 1); /* own channel */
        assert_int_not_equal(other, AQ_BLOCK_NONE);
        aq_shm_block_release(AQ_CHANNEL_REQUEST, other);
        for (uint32_t i = 0; i < block_count(); i++)
            aq_shm_block_release(AQ_CHANNEL_REPLY, taken[i]);
    }
    free(taken);
    free(used);
}

/* who can do with less gets the most there is, never less, and never the last of a size */
static void test_settle_for_less(void **state)
{
    const struct aq_shm_pool_plan *plan = &aq_shm.layout.pool;
    uint32_t *taken = calloc(block_count(), sizeof(*taken));
    uint32_t count = 0;

    (void)state;
    for (int class = AQ_POOL_CLASSES - 1; class >= 0; class --)
        for (uint32_t i = 1; i < plan->count[class]; i++) {
            const uint32_t block = aq_shm_block_lend(AQ_CHANNEL_REQUEST, 0, AQ_SHM_MAX_MEDIUM);

            assert_int_not_equal(block, AQ_BLOCK_NONE);
            assert_int_equal(block_size(block), plan->size[class]);
            assert_int_equal(aq_shm_block_size(block), plan->size[class]);
            taken[count++] = block;
        }
    assert_int_equal(aq_shm_block_lend(AQ_CHANNEL_REQUEST, 0, 1), AQ_BLOCK_NONE);
    aq_shm_block_release(AQ_CHANNEL_REQUEST, taken[--count]); /* a small one */
    assert_int_equal(aq_shm_block_lend(AQ_CHANNEL_REQUEST, plan->size[0] + 1, AQ_SHM_MAX_MEDIUM),
                     AQ_BLOCK_NONE);
    assert_int_equal(aq_shm_block_lend(AQ_CHANNEL_REQUEST, plan->size[0], AQ_SHM_MAX_MEDIUM),
                     taken[count]);
    count++;
    for (int class = 0; class < AQ_POOL_CLASSES; class ++) { /* a message may have the last ones */
        taken[count] = aq_shm_block_take(AQ_CHANNEL_REQUEST, 1);
        assert_int_equal(block_size(taken[count++]), plan->size[class]);
    }
    assert_int_equal(aq_shm_block_take(AQ_CHANNEL_REQUEST, 1), AQ_BLOCK_NONE);
    while (count > 0)
        aq_shm_block_release(AQ_CHANNEL_REQUEST, taken[--count]);
    free(taken);
}

/* the block given back last comes first: it is the one in the cache */
static void test_last_in_first_out(void **state)
{
    uint32_t one, two;

    (void)state;
    one = aq_shm_block_take(AQ_CHANNEL_REPLY, 100);
    two = aq_shm_block_take(AQ_CHANNEL_REPLY, 100);
    assert_int_not_equal(one, two);
    aq_shm_block_release(AQ_CHANNEL_REPLY, two);
    aq_shm_block_release(AQ_CHANNEL_REPLY, one);
    assert_int_equal(aq_shm_block_take(AQ_CHANNEL_REPLY, 100), one);
    assert_int_equal(aq_shm_block_take(AQ_CHANNEL_REPLY, 100), two);
    aq_shm_block_release(AQ_CHANNEL_REPLY, one);
    aq_shm_block_release(AQ_CHANNEL_REPLY, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_smallest_that_fits),
        cmocka_unit_test(test_take_all),
        cmocka_unit_test(test_settle_for_less),
        cmocka_unit_test(test_last_in_first_out),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, setup, NULL);
}
