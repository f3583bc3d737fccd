/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ad_paths.c - atomics by this processor's instructions and atomics by messages are atomic
 * with each other: a job of one rank in which some threads take the one way and some the other, to
 * the same words. And what categories count, and that a declined operation leaves no trace in any
 * count. Source: GASNet-EX specification 0.19, Remote atomics.
 */
#include "tests/unit/aq_unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/aq_job.h"
#include "core/aq_poll.h"
#include "extended/aq_ad.h"
#include "core/aq_op.h"

/* Local threads go on while remote ones have something left to do, up to a limit. */
enum { THREADS = 4, REMOTE_OPS = 3000, LOCAL_OPS = 1 << 20, TYPES = 6 };

static gex_TM_t tm;
static char *base;
static intptr_t unmapped = AQ_NOT_MAPPED;
static gex_AD_t local_ad[TYPES], remote_ad[TYPES]; /* by instructions, by messages */
static atomic_uchar taken[2 * (REMOTE_OPS + LOCAL_OPS)];
static atomic_int running, remote_running, wrong; /* wrong: match ids that were given out twice */
static atomic_uint_fast64_t given;

static gex_OP_t all_ops(gex_DT_t dt)
{
    return aq_ad_ops_of(dt);
}

static int start_job(void **state)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    void *self;

    (void)state;
    if (gex_Client_Init(&client, &ep, &tm, "UNIT", NULL, NULL, 0) != GASNET_OK
        || gex_Segment_Attach(&segment, tm, 65536) != GASNET_OK)
        return -1;
    gex_Segment_QueryBound(tm, 0, &self, NULL, NULL);
    base = self;
    for (int i = 0; i < TYPES; i++) {
        const gex_DT_t dt = (gex_DT_t)1 << i;
        struct aq_ad *remote;

        gex_AD_Create(&local_ad[i], tm, dt, all_ops(dt), 0);
        gex_AD_Create(&remote_ad[i], tm, dt, all_ops(dt), 0);
        remote = (struct aq_ad *)(void *)remote_ad[i];
        remote->native = false;
        remote->head.delta = remote->head.jobdelta = &unmapped;
    }
    return 0;
}

/* --- both ways at once --- */

static void claim(uint64_t number)
{
    if (number >= sizeof(taken) || atomic_fetch_add(&taken[number], 1) != 0)
        atomic_fetch_add(&wrong, 1);
}

static bool goes_on(int thread, int done)
{
    if (thread % 2)
        return done < REMOTE_OPS;
    return done < LOCAL_OPS && atomic_load(&remote_running) > 0;
}

#define NUMBERS(T, t, C, word)                                                                   \
    static void *numbers_##t(void *arg)                                                          \
    {                                                                                            \
        const int thread = (int)(intptr_t)arg;                                                   \
        const gex_AD_t ad = (thread % 2 ? remote_ad : local_ad)[__builtin_ctz(GEX_DT_##T)];      \
        volatile gex_OP_t add = GEX_OP_FADD; /* local: in the library, every other one inline */ \
        int done;                                                                                \
                                                                                                 \
        for (done = 0; goes_on(thread, done); done++) {                                          \
            C old;                                                                               \
                                                                                                 \
            if (done % 2)                                                                        \
                gex_Event_Wait(gex_AD_OpNB_##T(ad, &old, 0, base, add, 1, 0, 0));                \
            else                                                                                 \
                gex_Event_Wait(gex_AD_OpNB_##T(ad, &old, 0, base, GEX_OP_FINC, 0, 0, 0));        \
            claim((uint64_t)old);                                                                \
        }                                                                                        \
        atomic_fetch_add(&given, (uint64_t)done);                                                \
        atomic_fetch_sub(&remote_running, thread % 2);                                           \
        atomic_fetch_sub(&running, 1);                                                           \
        return NULL;                                                                             \
    }
AQ_AD_TYPES(NUMBERS)

static void run(void *(*fn)(void *))
{
    pthread_t threads[THREADS];

    memset(base, 0, 64);
    memset(taken, 0, sizeof(taken));
    atomic_store(&given, 0);
    atomic_store(&running, THREADS);
    atomic_store(&remote_running, THREADS / 2);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fn, (void *)i), 0);
    while (atomic_load(&running) > 0)
        aq_poll();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void test_ways_are_atomic_together(void **state)
{
    (void)state;
#define RUN_NUMBERS(T, t, C, word)                   \
    run(numbers_##t);                                \
    assert_int_equal(atomic_exchange(&wrong, 0), 0); \
    assert_true(*(C *)(void *)base == (C)atomic_load(&given));
    AQ_AD_TYPES(RUN_NUMBERS)
}

/* --- both ways agree on every operation --- */

static uint64_t one_op(gex_AD_t ad, gex_OP_t op, uint64_t a, uint64_t b)
{
    uint64_t old = 0xdead;

    gex_Event_Wait(gex_AD_OpNB_U64(ad, &old, 0, base, op, a, b, GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL));
    return old;
}

static void test_ways_agree(void **state)
{
    const gex_AD_t ads[] = { local_ad[3], remote_ad[3] };
    uint64_t *const at = (uint64_t *)(void *)base;

    (void)state;
    for (gex_OP_t op = 1; op <= GEX_OP_GET; op <<= 1) {
        uint64_t old[2], now[2];

        if ((all_ops(GEX_DT_U64) & op) == 0)
            continue;
        for (int way = 0; way < 2; way++) {
            *at = 0xf0f0f0f0f0f0f0f1;
            old[way] = one_op(ads[way], op, 0x123456789abcdef1, 7);
            now[way] = *at;
        }
        assert_true(old[0] == old[1]);
        assert_true(now[0] == now[1]);
    }
}

/* --- counts --- */

static uint64_t pending(enum aq_op_cell cell)
{
    return aq_counter_get(&aq_pool_self()->implicit.pending[cell - 1]);
}

static void expect_pending(uint64_t put, uint64_t get, uint64_t rmw)
{
    assert_int_equal(pending(AQ_CELL_PUT), put);
    assert_int_equal(pending(AQ_CELL_GET), get);
    assert_int_equal(pending(AQ_CELL_RMW), rmw);
    assert_int_equal(pending(AQ_CELL_LC), 0);
}

/* With IMMEDIATE nothing is polled: messages to this rank itself stay in flight. */
static void test_categories(void **state)
{
    uint64_t old;

    (void)state;
    expect_pending(0, 0, 0);
    assert_int_equal(
        gex_AD_OpNBI_U64(remote_ad[3], NULL, 0, base, GEX_OP_SET, 1, 0, GEX_FLAG_IMMEDIATE), 0);
    expect_pending(1, 0, 0);
    assert_int_equal(
        gex_AD_OpNBI_U64(remote_ad[3], &old, 0, base, GEX_OP_GET, 0, 0, GEX_FLAG_IMMEDIATE), 0);
    expect_pending(1, 1, 0);
    assert_int_equal(
        gex_AD_OpNBI_U64(remote_ad[3], &old, 0, base, GEX_OP_SWAP, 1, 0, GEX_FLAG_IMMEDIATE), 0);
    expect_pending(1, 1, 1);
    assert_int_equal(
        gex_AD_OpNBI_U64(remote_ad[3], &old, 0, base, GEX_OP_INC, 1, 0, GEX_FLAG_IMMEDIATE), 0);
    expect_pending(1, 1, 2);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    expect_pending(0, 0, 0);
    assert_int_equal(*(uint64_t *)(void *)base, 2);
}

/* A full queue declines; until then operations are accepted, whichever form they have. */
static void test_declined(void **state)
{
    uint64_t nbi = 0, nb = 0;
    gex_Event_t events[1000];

    (void)state;
    *(uint64_t *)(void *)base = 0;
    for (int declined = 0; declined < 100;) { /* nothing is polled: it has to come to that */
        if (gex_AD_OpNBI_U64(remote_ad[3], NULL, 0, base, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE)
            == 0)
            nbi++;
        else
            declined++;
        expect_pending(0, 0, nbi);
        assert_true(nb < 1000);
        events[nb] =
            gex_AD_OpNB_U64(remote_ad[3], NULL, 0, base, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE);
        assert_ptr_not_equal(events[nb], GEX_EVENT_INVALID);
        nb += events[nb] != GEX_EVENT_NO_OP;
        expect_pending(0, 0, nbi);
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
    gex_Event_WaitAll(events, nb, 0);
    expect_pending(0, 0, 0);
    assert_int_equal(*(uint64_t *)(void *)base, nbi + nb);
}

/* The same inside an access region: what is declined is not counted, by the region or outside. */
static void test_declined_in_region(void **state)
{
    struct aq_op *region;
    uint64_t accepted = 0;
    gex_Event_t root;

    (void)state;
    *(uint64_t *)(void *)base = 0;
    gex_NBI_BeginAccessRegion(0);
    region = aq_op_implicit(0);
    for (int declined = 0; declined < 100;) {
        if (gex_AD_OpNBI_U64(remote_ad[3], NULL, 0, base, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE)
            == 0)
            accepted++;
        else
            declined++;
        assert_int_equal(aq_counter_get(&region->pending[AQ_CELL_RMW - 1]), accepted);
        expect_pending(0, 0, 0);
    }
    assert_true(accepted > 0);
    root = gex_NBI_EndAccessRegion(0);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    assert_int_equal(gex_Event_Test(root), GASNET_ERR_NOT_READY);
    gex_Event_Wait(root);
    assert_int_equal(*(uint64_t *)(void *)base, accepted);
    /* a region of which everything was declined is an empty one */
    while (gex_AD_OpNBI_U64(remote_ad[3], NULL, 0, base, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE) == 0)
        accepted++;
    gex_NBI_BeginAccessRegion(0);
    assert_int_not_equal(
        gex_AD_OpNBI_U64(remote_ad[3], NULL, 0, base, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE), 0);
    root = gex_NBI_EndAccessRegion(0);
    assert_int_equal(gex_Event_Test(root), GASNET_OK);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    assert_int_equal(*(uint64_t *)(void *)base, accepted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways_agree),         cmocka_unit_test(test_ways_are_atomic_together),
        cmocka_unit_test(test_categories),         cmocka_unit_test(test_declined),
        cmocka_unit_test(test_declined_in_region),
    };

    gasnet_exit(cmocka_run_group_tests(tests, start_job, NULL));
}
