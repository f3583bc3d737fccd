/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_op.c - operations, their events and pools, implicit sets and access regions, over a
 * conduit that does nothing but what a test tells its poll to do.
 * Source: GASNet-EX specification 0.19, Events.
 */
#include "tests/unit/aq_unit.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/aq_job.h"
#include "core/aq_callback.h"
#include "core/aq_op.h"
#include "core/aq_poll.h"

/* --- a conduit for one test at a time --- */

static unsigned polls;
static struct aq_op *poll_op; /* one part of it ends at poll number poll_at */
static gex_EC_t poll_category;
static unsigned poll_at;
static unsigned wakes; /* of this process's sleepers */

static unsigned fake_poll(enum aq_poll_kind kind)
{
    (void)kind;
    if (++polls == poll_at && poll_op != NULL) {
        aq_op_end(poll_op, poll_category, 1);
        return 1;
    }
    return 0;
}

static uint32_t fake_sleep_prepare(bool waits)
{
    (void)waits;
    return 0;
}

static void fake_sleep(uint32_t wakeup, uint64_t max_ns)
{
    (void)wakeup, (void)max_ns;
}

static void fake_sleep_cancel(bool waits)
{
    (void)waits;
}

static void fake_sleep_wake(void)
{
    wakes++;
}

static const struct aq_conduit_info fake_info = { .name = "fake" };

static const struct aq_conduit_ops fake_conduit = {
    .info = &fake_info,
    .poll = fake_poll,
    .sleep_prepare = fake_sleep_prepare,
    .sleep = fake_sleep,
    .sleep_cancel = fake_sleep_cancel,
    .sleep_wake = fake_sleep_wake,
};

static const struct aq_op_kind kind = { .waits_in = "a test", .name = "test operation" };

static void end_at_poll(struct aq_op *op, gex_EC_t category, unsigned at)
{
    poll_op = op;
    poll_category = category;
    poll_at = polls + at;
}

/* An exposed operation with one part of each named category under way. */
static gex_Event_t start(struct aq_op **op_out, gex_EC_t a, gex_EC_t b)
{
    struct aq_op *op = aq_op_create(&kind, 0);

    aq_op_begin(op, a, 1);
    if (b != 0)
        aq_op_begin(op, b, 1);
    *op_out = op;
    return aq_op_expose(op);
}

/* --- single events --- */

static void test_complete_at_once(void **state)
{
    struct aq_op *op = aq_op_create(&kind, 0);

    (void)state;
    aq_op_begin(op, GEX_EC_PUT, 3);
    aq_op_end(op, GEX_EC_PUT, 2);
    aq_op_end(op, GEX_EC_PUT, 1);
    assert_ptr_equal(aq_op_expose(op), GEX_EVENT_INVALID);
    assert_int_equal(gex_Event_Test(GEX_EVENT_INVALID), GASNET_OK);
}

static void test_root_waits_for_every_category(void **state)
{
    static const gex_EC_t all[] = { GEX_EC_LC, GEX_EC_PUT, GEX_EC_GET, GEX_EC_RMW };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct aq_op *op;
        gex_Event_t root = start(&op, all[i], all[(i + 1) % 4]);
        unsigned before = polls;

        assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
        aq_op_end(op, all[i], 1);
        assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
        aq_op_end(op, all[(i + 1) % 4], 1);
        assert_int_equal(gex_Event_Test(root), GASNET_OK);
        assert_int_equal(polls, before); /* Test never polls */
    }
}

static void test_leaf(void **state)
{
    struct aq_op *op;
    gex_Event_t root = start(&op, GEX_EC_PUT, GEX_EC_LC);
    gex_Event_t leaf = gex_Event_QueryLeaf(root, GEX_EC_LC);

    (void)state;
    assert_ptr_not_equal(leaf, GEX_EVENT_INVALID);
    assert_ptr_not_equal(leaf, root);
    assert_ptr_equal(gex_Event_QueryLeaf(root, GEX_EC_AM), leaf);
    assert_ptr_equal(gex_Event_QueryLeaf(root, GEX_EC_GET), GEX_EVENT_INVALID);
    assert_int_equal(gex_Event_Test(leaf), GASNET_ERR_NOT_READY);
    aq_op_end(op, GEX_EC_LC, 1);
    for (int i = 0; i < 3; i++) { /* synchronising a leaf consumes nothing */
        assert_int_equal(gex_Event_Test(leaf), GASNET_OK);
        gex_Event_Wait(leaf);
        assert_ptr_equal(gex_Event_QueryLeaf(root, GEX_EC_LC), leaf);
    }
    assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
    aq_op_end(op, GEX_EC_PUT, 1);
    assert_int_equal(gex_Event_Test(root), GASNET_OK);
    assert_ptr_equal(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_LC), GEX_EVENT_INVALID);
}

static void test_wait_polls(void **state)
{
    struct aq_op *op;
    gex_Event_t root = start(&op, GEX_EC_GET, 0);
    unsigned before = polls;

    (void)state;
    end_at_poll(op, GEX_EC_GET, 100);
    gex_Event_Wait(root);
    assert_int_equal(polls, before + 100);

    root = start(&op, GEX_EC_GET, 0);
    aq_op_end(op, GEX_EC_GET, 1);
    gex_Event_Wait(root); /* done already, yet others may need us */
    assert_int_equal(polls, before + 101);
    gex_Event_Wait(GEX_EVENT_INVALID);
    assert_int_equal(polls, before + 101);
}

/* --- arrays --- */

static void test_all_consumes_what_is_done(void **state)
{
    struct aq_op *ops[4];
    gex_Event_t events[6] = { 0 }, first;

    (void)state;
    for (int i = 0; i < 4; i++)
        events[i] = start(&ops[i], GEX_EC_GET, 0);
    first = events[0];
    aq_op_end(ops[1], GEX_EC_GET, 1);
    aq_op_end(ops[3], GEX_EC_GET, 1);
    assert_int_equal(gex_Event_TestAll(events, 6, 0), GASNET_ERR_NOT_READY);
    assert_ptr_equal(events[0], first);
    assert_ptr_equal(events[1], GEX_EVENT_INVALID);
    assert_ptr_equal(events[3], GEX_EVENT_INVALID);
    assert_int_equal(gex_Event_TestSome(events, 6, 0), GASNET_ERR_NOT_READY);
    aq_op_end(ops[2], GEX_EC_GET, 1);
    assert_int_equal(gex_Event_TestSome(events, 6, 0), GASNET_OK);
    assert_ptr_equal(events[2], GEX_EVENT_INVALID);
    end_at_poll(ops[0], GEX_EC_GET, 5);
    gex_Event_WaitSome(events, 6, 0);
    assert_ptr_equal(events[0], GEX_EVENT_INVALID);
    assert_int_equal(gex_Event_TestAll(events, 6, 0), GASNET_OK);
    assert_int_equal(gex_Event_TestSome(events, 6, 0), GASNET_OK);
    gex_Event_WaitSome(events, 6, 0);
    gex_Event_WaitAll(NULL, 0, 0);
}

/* The root is consumed by the call that also sees its leaf, in either order, done or not. */
static void test_leaf_beside_its_root(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct aq_op *op, *other;
        gex_Event_t events[3];

        events[order] = start(&op, GEX_EC_PUT, GEX_EC_LC);
        events[!order] = gex_Event_QueryLeaf(events[order], GEX_EC_LC);
        events[2] = start(&other, GEX_EC_GET, 0);
        aq_op_end(op, GEX_EC_PUT, 1);
        assert_int_equal(gex_Event_TestSome(events, 3, 0), GASNET_ERR_NOT_READY);
        aq_op_end(op, GEX_EC_LC, 1);
        assert_int_equal(gex_Event_TestSome(events, 3, 0), GASNET_OK);
        assert_ptr_equal(events[0], GEX_EVENT_INVALID);
        assert_ptr_equal(events[1], GEX_EVENT_INVALID);
        end_at_poll(other, GEX_EC_GET, 3);
        gex_Event_WaitAll(events, 3, 0);
        assert_ptr_equal(events[2], GEX_EVENT_INVALID);
    }
}

/* --- implicit operations --- */

static void test_categories(void **state)
{
    struct aq_op *op = aq_op_implicit(3);

    (void)state;
    assert_ptr_equal(aq_op_implicit(3), op);
    aq_op_begin(op, GEX_EC_PUT, 1);
    aq_op_begin(op, GEX_EC_LC, 1);
    aq_op_begin(op, GEX_EC_GET, 1);
    assert_int_equal(gex_NBI_Test(0, 0), GASNET_OK);
    assert_int_equal(gex_NBI_Test(GEX_EC_RMW, 0), GASNET_OK);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_ERR_NOT_READY);
    end_at_poll(op, GEX_EC_LC, 7);
    gex_NBI_Wait(GEX_EC_LC, 0);
    assert_int_equal(gex_NBI_Test(GEX_EC_AM, 0), GASNET_OK);
    assert_int_equal(gex_NBI_Test(GEX_EC_PUT, 0), GASNET_ERR_NOT_READY);
    aq_op_end(op, GEX_EC_PUT, 1);
    assert_int_equal(gex_NBI_Test(GEX_EC_PUT, 0), GASNET_OK);
    assert_int_equal(gex_NBI_Test(GEX_EC_GET | GEX_EC_RMW, 0), GASNET_ERR_NOT_READY);
    aq_op_end(op, GEX_EC_GET, 1);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
}

static void test_region(void **state)
{
    struct aq_op *implicit = aq_op_implicit(0), *region;
    gex_Event_t root, puts, lc;

    (void)state;
    gex_NBI_BeginAccessRegion(0);
    assert_ptr_equal(gex_NBI_EndAccessRegion(0), GEX_EVENT_INVALID);

    gex_NBI_BeginAccessRegion(0);
    region = aq_op_implicit(0);
    assert_ptr_not_equal(region, implicit);
    aq_op_begin(region, GEX_EC_PUT, 100000);
    aq_op_begin(region, GEX_EC_LC, 2);
    root = gex_NBI_EndAccessRegion(0);
    assert_ptr_equal(aq_op_implicit(0), implicit);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* members are not counted there */
    puts = gex_Event_QueryLeaf(root, GEX_EC_PUT);
    lc = gex_Event_QueryLeaf(root, GEX_EC_LC);
    aq_op_end(region, GEX_EC_LC, 2);
    assert_int_equal(gex_Event_Test(lc), GASNET_OK);
    assert_int_equal(gex_Event_Test(puts), GASNET_ERR_NOT_READY);
    aq_op_end(region, GEX_EC_PUT, 100000);
    assert_int_equal(gex_Event_Test(puts), GASNET_OK);
    assert_int_equal(gex_Event_Test(root), GASNET_OK);
}

/* --- pools --- */

static void test_many_outstanding(void **state)
{
    const size_t n = 70000;
    struct aq_op **ops = calloc(n, sizeof(ops[0]));
    gex_Event_t *events = calloc(n, sizeof(events[0]));
    size_t grown;

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < n; i++)
            events[i] = start(&ops[i], GEX_EC_PUT, 0);
        if (round == 0)
            grown = aq_pool_self()->grown;
        assert_int_equal(gex_Event_TestSome(events, n, 0), GASNET_ERR_NOT_READY);
        for (size_t i = n; i-- > 0;)
            aq_op_end(ops[i], GEX_EC_PUT, 1);
        gex_Event_WaitAll(events, n, 0);
    }
    assert_int_equal(aq_pool_self()->grown, grown); /* memory is used again */
    free(ops);
    free(events);
}

static void *sync_events(void *arg)
{
    gex_Event_t *events = arg;

    gex_Event_WaitAll(events, 64, 0);
    return NULL;
}

static void test_synced_by_another_thread(void **state)
{
    struct aq_op *op;
    gex_Event_t events[64];
    size_t grown = 0;

    (void)state;
    for (int round = 0; round < 200; round++) {
        pthread_t thread;

        for (int i = 0; i < 64; i++) {
            events[i] = start(&op, GEX_EC_GET, 0);
            aq_op_end(op, GEX_EC_GET, 1);
        }
        assert_int_equal(pthread_create(&thread, NULL, sync_events, events), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (round == 0)
            grown = aq_pool_self()->grown;
    }
    assert_int_equal(aq_pool_self()->grown, grown); /* what others retire comes back */
}

static void *leave_implicit(void *arg)
{
    struct aq_op *op = aq_op_implicit(0);

    aq_op_begin(op, GEX_EC_PUT, 1);
    *(struct aq_op **)arg = op;
    return NULL;
}

/* An assert outside the test's own thread ends the program without a message: the results are left
 * to that thread. */
struct found {
    struct aq_op *op;
    int before, after; /* of gex_NBI_Test() */
};

static void *find_implicit(void *arg)
{
    struct found *found = arg;

    found->op = aq_op_implicit(0); /* the pool of the thread that ended */
    found->before = gex_NBI_Test(GEX_EC_ALL, 0);
    aq_op_end(found->op, GEX_EC_PUT, 1);
    found->after = gex_NBI_Test(GEX_EC_ALL, 0);
    return NULL;
}

static void test_thread_ends_with_operations(void **state)
{
    struct found found = { 0 };
    struct aq_op *op = NULL;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, leave_implicit, &op), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK); /* not this thread's */
    assert_int_equal(pthread_create(&thread, NULL, find_implicit, &found), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(found.op, op);
    assert_int_equal(found.before, GASNET_ERR_NOT_READY);
    assert_int_equal(found.after, GASNET_OK);
}

/* Copies of leaf events that are never read again neither prevent the reuse of an operation's
 * memory nor disturb its next users, even after more uses than there are generations. */
static void test_untouched_stale_leaves(void **state)
{
    enum { TIMES = 40 };
    gex_Event_t stale[TIMES];
    struct aq_op *first = NULL, *op;

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        gex_Event_t root = start(&op, GEX_EC_PUT, GEX_EC_LC);

        if (i == 0)
            first = op;
        assert_ptr_equal(op, first); /* the same record each time */
        stale[i] = gex_Event_QueryLeaf(root, GEX_EC_LC);
        if (i > 0)
            assert_ptr_not_equal(stale[i], stale[i - 1]);
        assert_int_equal(gex_Event_Test(stale[i]), GASNET_ERR_NOT_READY);
        assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
        aq_op_end(op, GEX_EC_PUT, 1);
        assert_int_equal(gex_Event_Test(stale[i]), GASNET_ERR_NOT_READY);
        aq_op_end(op, GEX_EC_LC, 1);
        if (i % 2) /* with and without a look at the leaf while it is one */
            assert_int_equal(gex_Event_Test(stale[i]), GASNET_OK);
        assert_int_equal(gex_Event_Test(root), GASNET_OK);
        root = start(&op, GEX_EC_GET, 0); /* an operation that has no such leaf */
        assert_ptr_equal(op, first);
        assert_ptr_equal(gex_Event_QueryLeaf(root, GEX_EC_LC), GEX_EVENT_INVALID);
        assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
        aq_op_end(op, GEX_EC_GET, 1);
        gex_Event_Wait(root);
    }
}

/* --- misuse: debug builds only --- */

#if GASNET_DEBUG

static void misuse_stale_root(void *arg)
{
    struct aq_op *op;
    gex_Event_t root = start(&op, GEX_EC_GET, 0);

    (void)arg;
    aq_op_end(op, GEX_EC_GET, 1);
    gex_Event_Wait(root);
    gex_Event_Wait(root);
}

/* The same memory is in use again by then. */
static void misuse_stale_leaf(void *arg)
{
    struct aq_op *op;
    gex_Event_t root = start(&op, GEX_EC_PUT, GEX_EC_LC), leaf;

    (void)arg;
    leaf = gex_Event_QueryLeaf(root, GEX_EC_LC);
    aq_op_end(op, GEX_EC_LC, 1);
    aq_op_end(op, GEX_EC_PUT, 1);
    gex_Event_Wait(root);
    root = start(&op, GEX_EC_PUT, GEX_EC_LC);
    if (gex_Event_TestAll(&leaf, 1, 0) == GASNET_OK)
        gex_Event_Wait(root);
}

static void misuse_no_op(void *arg)
{
    (void)arg;
    gex_Event_Wait(GEX_EVENT_NO_OP);
}

static void misuse_root_twice(void *arg)
{
    struct aq_op *op;
    gex_Event_t events[2];

    (void)arg;
    events[0] = events[1] = start(&op, GEX_EC_GET, 0);
    aq_op_end(op, GEX_EC_GET, 1);
    gex_Event_WaitAll(events, 2, 0);
}

static void misuse_leaf_of_leaf(void *arg)
{
    struct aq_op *op;
    gex_Event_t root = start(&op, GEX_EC_PUT, GEX_EC_LC);

    (void)arg;
    gex_Event_Wait(gex_Event_QueryLeaf(gex_Event_QueryLeaf(root, GEX_EC_LC), GEX_EC_LC));
}

static void misuse_category(void *arg)
{
    struct aq_op *op;

    (void)arg;
    gex_Event_Wait(gex_Event_QueryLeaf(start(&op, GEX_EC_PUT, GEX_EC_LC), GEX_EC_ALL));
}

static void misuse_nested_region(void *arg)
{
    (void)arg;
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_BeginAccessRegion(0);
}

static void misuse_end_region(void *arg)
{
    (void)arg;
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
}

static void misuse_wait_in_region(void *arg)
{
    (void)arg;
    gex_NBI_BeginAccessRegion(0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void misuse_flags(void *arg)
{
    (void)arg;
    gex_NBI_Wait(GEX_EC_ALL, 4);
}

static void test_misuse(void **state)
{
    static const struct {
        void (*body)(void *arg);
        const char *call, *rule;
    } cases[] = {
        { misuse_stale_root, "gex_Event_Wait", "stale" },
        { misuse_stale_leaf, "gex_Event_TestAll", "stale" },
        { misuse_no_op, "gex_Event_Wait", "GEX_EVENT_NO_OP" },
        { misuse_root_twice, "gex_Event_WaitAll", "twice" },
        { misuse_leaf_of_leaf, "gex_Event_QueryLeaf", "is a leaf" },
        { misuse_category, "gex_Event_QueryLeaf", "not exactly one" },
        { misuse_nested_region, "gex_NBI_BeginAccessRegion", "inside an access region" },
        { misuse_end_region, "gex_NBI_EndAccessRegion", "no open access region" },
        { misuse_wait_in_region, "gex_NBI_Wait", "inside an access region" },
        { misuse_flags, "gex_NBI_Wait", "must be 0" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct aq_unit_result result;

        aq_unit_run(cases[i].body, NULL, &result);
        assert_int_not_equal(result.status, 0);
        aq_unit_contains(result.err, "FATAL ERROR");
        aq_unit_contains(result.err, cases[i].call);
        aq_unit_contains(result.err, cases[i].rule);
    }
}

#endif

/* A poll that has served something wakes threads that wait; where all ranks share memory it lets a
 * service thread sleep. */
static void test_a_poll_wakes_who_waits(void **state)
{
    static _Atomic uint32_t waiting;
    unsigned before = wakes;
    struct aq_op *op;
    gex_Event_t event = start(&op, GEX_EC_PUT, GEX_EC_PUT);

    (void)state;
    aq_job.waiting = &waiting;
    end_at_poll(op, GEX_EC_PUT, 1);
    gasnet_AMPoll();
    assert_int_equal(wakes, before);
    waiting = 1;
    end_at_poll(op, GEX_EC_PUT, 1);
    gasnet_AMPoll();
    assert_int_equal(wakes, before + 1);
    gex_Event_Wait(event);
    before = wakes;
    waiting = 0;
    event = start(&op, GEX_EC_PUT, GEX_EC_PUT);
    aq_op_end(op, GEX_EC_PUT, 1);
    aq_job.has_remote = true;
    end_at_poll(op, GEX_EC_PUT, 1);
    aq_poll_service();
    assert_int_equal(wakes, before + 1);
    aq_job.has_remote = false;
    gex_Event_Wait(event);
    aq_job.waiting = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete_at_once),
        cmocka_unit_test(test_root_waits_for_every_category),
        cmocka_unit_test(test_leaf),
        cmocka_unit_test(test_wait_polls),
        cmocka_unit_test(test_all_consumes_what_is_done),
        cmocka_unit_test(test_leaf_beside_its_root),
        cmocka_unit_test(test_categories),
        cmocka_unit_test(test_region),
        cmocka_unit_test(test_untouched_stale_leaves),
        cmocka_unit_test(test_many_outstanding),
        cmocka_unit_test(test_synced_by_another_thread),
        cmocka_unit_test(test_thread_ends_with_operations),
        cmocka_unit_test(test_a_poll_wakes_who_waits),
#if GASNET_DEBUG
        cmocka_unit_test(test_misuse),
#endif
    };

    aq_job.local = &fake_conduit;
    aq_job.remote = &aq_conduit_none;
    aq_job.nbrhd_in_a_row = true;
    aq_job.size = aq_job.nbrhd_size = 1; /* it has started */
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
