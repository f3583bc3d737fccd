/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_firehose_memory.c - memory for firehose's own tables is out: what is pinned counts until it
 * is unpinned, nothing is lost, and the next try succeeds. The table is compiled into the test,
 * with an allocation that can fail.
 */
#include "tests/unit/firehose_cases.h"

static unsigned allocations; /* that succeed before they fail, while failing */
static bool failing;

static void *scarce(size_t nbytes)
{
    if (failing && allocations-- == 0) {
        allocations = 0;
        return NULL;
    }
    return malloc(nbytes);
}

#define malloc scarce
#include "other/firehose/aq_fh_table.c"
#undef malloc

#define LARGE \
    64u /* pages: so many granules that a region needs memory for its places in the index */

static struct sim *sim;
static unsigned unpinned;

/* Everything that is still pinned counts against the budget, since no peer uses it. */
static void unpin_checked(void *arg, const struct aq_fh_reg *reg)
{
    struct aq_fh *fh = sim->rank[0].fh;

    assert_true(fh->charged >= sim->rank[0].reg_bytes);
    assert_true(fh->charged_regions >= sim->rank[0].reg_regions);
    unpinned++;
    sim_op_unpin(arg, reg);
}

static void fill(struct aq_fh *fh, uint32_t first)
{
    for (uint32_t i = 0; i < config.local_bytes / (LARGE * PAGE); i++) {
        struct aq_fh_hold hold;

        assert_int_equal(aq_fh_local(fh, at(sim, 0, first + i * LARGE), LARGE * PAGE, true, &hold),
                         AQ_OK);
        aq_fh_release(fh, &hold);
    }
}

static void start(void)
{
    sim = sim_new(2, &config, false);
    sim->rank[0].fh->ops.dereg = unpin_checked;
    unpinned = 0;
}

static void check(uint64_t pages, uint64_t regions)
{
    const struct aq_fh_counts counts = counts_of(sim, 0);

    assert_int_equal(counts.local_charged, pages * PAGE);
    assert_int_equal(counts.reg_bytes, pages * PAGE);
    assert_int_equal(sim->rank[0].fh->charged_regions, regions);
    assert_int_equal(counts.reg_regions, regions);
}

/* The budget is full of victims; the region that is to replace one does not come to be. */
static void test_index_of_new_region(void **state)
{
    struct aq_fh_hold hold;

    (void)state;
    start();
    fill(sim->rank[0].fh, 0);
    check(256, 4);
    failing = true;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 1024), LARGE * PAGE, true, &hold),
                     AQ_ERR_NOMEM);
    failing = false;
    assert_int_equal(unpinned, 1);
    check(192, 3);
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 1024), LARGE * PAGE, true, &hold),
                     AQ_OK);
    check(256, 4);
    aq_fh_release(sim->rank[0].fh, &hold);
    sim_free(sim);
}

/* The same with enough space, so that no victim is evicted. */
static void test_index_without_victim(void **state)
{
    struct aq_fh_hold hold;

    (void)state;
    start();
    failing = true;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 1024), LARGE * PAGE, true, &hold),
                     AQ_ERR_NOMEM);
    failing = false;
    assert_int_equal(unpinned, 0);
    check(0, 0);
    fill(sim->rank[0].fh, 0);
    check(256, 4);
    sim_free(sim);
}

/* It came to be smaller than planned, and there is no memory to enter it as it is: a neighbour and
 * the pages ahead were to be in it, and one of these is a hole. */
static void test_index_of_smaller_region(void **state)
{
    struct aq_fh_config wide = config;
    struct aq_fh_hold hold;

    (void)state;
    wide.max_region = 128 * PAGE;
    wide.local_bytes = 1024 * PAGE;
    sim = sim_new(2, &wide, false);
    sim->rank[0].fh->ops.dereg = unpin_checked;
    unpinned = 0;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 0), 48 * PAGE, true, &hold), AQ_OK);
    aq_fh_release(sim->rank[0].fh, &hold);
    sim->rank[0].page[96] =
        SIM_HOLE; /* pages 48 to 96 follow, of which all but the last are needed */
    failing = true;
    allocations = 1;
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 48), 48 * PAGE, true, &hold),
                     AQ_RETRY);
    failing = false;
    assert_int_equal(unpinned, 2);
    check(0, 0);
    assert_int_equal(aq_fh_local(sim->rank[0].fh, at(sim, 0, 48), 48 * PAGE, true, &hold), AQ_OK);
    assert_int_equal(hold.len, 48 * PAGE);
    check(48, 1);
    aq_fh_release(sim->rank[0].fh, &hold);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_of_new_region),
        cmocka_unit_test(test_index_without_victim),
        cmocka_unit_test(test_index_of_smaller_region),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
