/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_shm_marks.c - many ranks on few cores: a poll looks where a sender has left its mark, and no
 * message is left behind, however often the marks come round and whoever sends or polls at the same
 * time. The ranks are views of one process that take turns; threads share one view that sends to
 * itself.
 */
#include "tests/unit/aq_unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/aq_rc.h"
#include "conduits/smp/aq_shm.h"
#include "conduits/smp/aq_shm_ring.h"
#include "core/aq_conduit.h"
#include "core/aq_job.h"

enum {
    RANKS = 20, /* no multiple of eight */
    SLOTS = 8,
    H_COUNT = 200,
    SENDERS = 2,
    POLLERS = 2,
    EACH = 20000, /* messages of a thread that sends */
    LIMIT_S = 60,
    SENDER = 7
};

static struct aq_shm_rings views[RANKS];
static uint32_t ranks[RANKS];
static uint32_t sent[RANKS];          /* by each rank to rank 0 */
static _Atomic uint32_t count[RANKS]; /* of messages from each that rank 0 has handled */
static bool in_order;                 /* the next message of each source has the next number */

static void h_count(gex_Token_t token, gex_AM_Arg_t source, gex_AM_Arg_t number)
{
    const uint32_t before = atomic_fetch_add_explicit(&count[source], 1, memory_order_relaxed);

    (void)token;
    if (in_order)
        assert_int_equal(number, before);
}

static void view(uint32_t rank)
{
    views[aq_shm.me] = aq_rings;
    aq_rings = views[rank];
    aq_shm.me = rank;
    aq_shm.self = aq_shm_control(rank);
}

static int setup(void **state)
{
    struct aq_shm_layout *layout = &aq_shm.layout;

    (void)state;
    in_order = true;
    memset(sent, 0, sizeof(sent));
    memset(count, 0, sizeof(count));
    memset(&aq_rings, 0, sizeof(aq_rings));
    layout->slots = SLOTS;
    layout->mark_bytes = AQ_SHM_PAIR;
    layout->ring_bytes = sizeof(struct aq_shm_ring) + SLOTS * sizeof(struct aq_shm_slot)
                         + SLOTS * AQ_CHANNELS * sizeof(struct aq_shm_more);
    layout->control = AQ_PAGE_SIZE;
    /* the marks have pages of their own: a test protects them */
    layout->marks =
        aq_round_up(layout->control + RANKS * sizeof(struct aq_shm_control), AQ_PAGE_SIZE);
    layout->rings =
        aq_round_up(layout->marks + RANKS * AQ_CHANNELS * layout->mark_bytes, AQ_PAGE_SIZE);
    layout->pools = aq_round_up(layout->rings + RANKS * RANKS * layout->ring_bytes, AQ_PAGE_SIZE);
    aq_shm_pool_plan(RANKS, 4, &layout->pool);
    layout->bytes = layout->pools + RANKS * AQ_CHANNELS * (uint64_t)layout->pool.channel_bytes;
    aq_shm.arena = aligned_alloc(AQ_PAGE_SIZE, layout->bytes);
    if (aq_shm.arena == NULL)
        return -1;
    memset(aq_shm.arena, 0, layout->pools);
    if (aq_shm_pool_init() != AQ_OK)
        return -1;
    aq_shm.size = RANKS;
    aq_shm.me = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        view(rank);
        if (aq_shm_ring_init() != AQ_OK)
            return -1;
    }
    view(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        view(rank);
        aq_shm_ring_fini();
        memset(&aq_rings, 0, sizeof(aq_rings));
    }
    aq_shm_pool_fini();
    memset(aq_shm_pools, 0, sizeof(aq_shm_pools));
    free(aq_shm.arena);
    return 0;
}

/* One message from a rank to rank 0; false if there is no room. */
static bool send_from(uint32_t rank)
{
    const gex_AM_Arg_t args[] = { (gex_AM_Arg_t)rank, (gex_AM_Arg_t)sent[rank] };
    int rc;

    view(rank);
    rc = aq_shm_am_short(0, false, H_COUNT, 2, args);
    view(0);
    sent[rank] += rc == AQ_OK;
    return rc == AQ_OK;
}

static void expect_all_handled(void)
{
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(atomic_load_explicit(&count[rank], memory_order_relaxed), sent[rank]);
}

/* polls until none is served; a channel may be drained in several polls */
static unsigned poll_all(void)
{
    unsigned served, all = 0;

    while ((served = aq_shm_poll(AQ_POLL_ALL)) != 0)
        all += served;
    return all;
}

static void test_each_source_is_served(void **state)
{
    (void)state;
    assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_true(send_from(rank));
        assert_int_equal(aq_shm_poll(AQ_POLL_REPLIES),
                         0); /* a request, and only replies are wanted */
        assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 1);
        assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 0);
    }
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_true(send_from(rank));
    assert_int_equal(poll_all(), RANKS);
    expect_all_handled();
}

/* a poll that finds nothing looks at no ring: the marks alone tell */
static void test_without_a_mark_nothing_is_looked_at(void **state)
{
    _Atomic uint8_t *mark = &aq_shm_marks(0, AQ_CHANNEL_REQUEST)[3];

    (void)state;
    assert_true(send_from(3));
    assert_int_equal(
        atomic_exchange_explicit(mark, aq_shm_mark(AQ_SHM_FIRST), memory_order_relaxed),
        aq_shm_mark(AQ_SHM_FIRST + 1));
    assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 0);
    atomic_store_explicit(mark, aq_shm_mark(AQ_SHM_FIRST + 1), memory_order_relaxed);
    assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 1);
}

/* rings full and empty by turns, through all values that a mark has */
static void test_marks_come_round(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 1000; turn++) {
        for (unsigned i = 0; i <= SLOTS; i++)
            assert_int_equal(send_from(7), i < SLOTS);
        assert_int_equal(poll_all(), SLOTS);
    }
    expect_all_handled();
}

static void test_at_random(void **state)
{
    uint32_t random = 1;

    (void)state;
    for (unsigned step = 0; step < 200000; step++) {
        random = random * 1103515245u + 12345u;
        if (random >> 28 == 0)
            aq_shm_poll((random >> 27 & 1) != 0 ? AQ_POLL_REPLIES : AQ_POLL_ALL);
        else
            send_from((random >> 16) % RANKS);
    }
    poll_all();
    expect_all_handled();
}

/* Rank 0 is done with all messages of a channel, and the sender of the next one has to ask. */
static void ask(struct aq_shm_tx *tx)
{
    const gex_AM_Arg_t args[] = { 0, 0 };
    const uint32_t number = tx->sent;

    tx->space = 0;
    atomic_store_explicit(&tx->ring->done[AQ_CHANNEL_REQUEST].count, number - AQ_SHM_FIRST,
                          memory_order_relaxed);
    assert_int_equal(aq_shm_am_short(0, false, H_COUNT, 2, args), AQ_OK);
    assert_int_equal(tx->freed, number);
    assert_int_equal(tx->blocks_out, 0);
}

/* The same many messages later, none of which needed a block. */
static void come_to(struct aq_shm_tx *tx, uint32_t number)
{
    ask(tx);
    tx->sent = number;
    tx->freed = number - 1;
    ask(tx);
}

/* After 2^31 messages the answers of long ago, or the lack of any, tell nothing new. */
static void test_no_answers(void **state)
{
    static const char payload[600];
    struct aq_shm_tx *tx;

    (void)state;
    view(SENDER);
    tx = aq_shm_tx(0, AQ_CHANNEL_REQUEST);
    for (uint32_t steps = 1; steps <= 16; steps++) {
        come_to(tx, AQ_SHM_FIRST + steps * (1u << 28));
        assert_int_equal(aq_shm_am_medium(0, false, H_COUNT, payload, sizeof(payload), 0, NULL),
                         AQ_OK);
        assert_int_equal(tx->freed, AQ_SHM_FIRST + steps * (1u << 28));
        assert_int_equal(tx->space, SLOTS - 2);
        assert_int_equal(tx->blocks_out, 1);
    }
    view(0);
}

static void send_long_to_nowhere(void *arg)
{
    static intptr_t map[RANKS];
    const struct aq_am_out out = { .kind = AQ_AM_LONG,
                                   .handler = H_COUNT,
                                   .src = arg,
                                   .nbytes = AQ_SHM_MAX_MEDIUM + 1,
                                   .dest = arg };

    for (uint32_t rank = 0; rank < RANKS; rank++)
        map[rank] = AQ_NOT_MAPPED;
    aq_job.map = map;
    view(SENDER);
    aq_shm_am_send(&out);
}

/* No block is as large, and none would do: the receiver could not write there either. */
static void test_long_to_nowhere(void **state)
{
    struct aq_unit_result result;

    (void)state;
    aq_unit_run(send_long_to_nowhere, &result, &result);
    assert_int_not_equal(aq_unit_exit_code(&result), 0);
    aq_unit_contains(result.err, "a Long of 65537 bytes to rank 0");
}

/* --- another thread sends at the worst moment --- */

static struct {
    void *page; /* who touches it gives way to the other thread */
    unsigned touched;
    bool sent; /* the other thread found the channel free */
} other;

/* A fault on the page stops a sender where the next one could come; so this sends what a thread
 * that does not wait for the channel's lock would. */
static void send_another(int signal)
{
    const gex_AM_Arg_t args[] = { SENDER, (gex_AM_Arg_t)sent[SENDER] + 1 };
    struct aq_shm_tx *tx = aq_shm_tx(0, AQ_CHANNEL_REQUEST);

    (void)signal;
    if (mprotect(other.page, AQ_PAGE_SIZE, PROT_READ | PROT_WRITE) != 0)
        abort();
    other.touched++;
    if (!aq_lock_try(&tx->lock))
        return;
    aq_lock_release(&tx->lock);
    other.sent = aq_shm_am_short(0, false, H_COUNT, 2, args) == AQ_OK;
}

/* Rank SENDER sends two messages, or one if the other has to wait until the first is out. */
static void send_two_at_page(void *page, int protection)
{
    struct sigaction before;
    const struct sigaction action = { .sa_handler = send_another };

    memset(&other, 0, sizeof(other));
    other.page = page;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    assert_int_equal(mprotect(page, AQ_PAGE_SIZE, protection), 0);
    assert_true(send_from(SENDER));
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_int_equal(other.touched, 1);
    sent[SENDER] += other.sent;
}

/* The first message is out, its mark not yet: the other's mark tells of both, and is not undone. */
static void test_another_sends_before_the_mark(void **state)
{
    _Atomic uint32_t *page =
        mmap(NULL, AQ_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(page, MAP_FAILED);
    atomic_init(page, 1);
    view(SENDER);
    aq_shm_tx(0, AQ_CHANNEL_REQUEST)->attention = page;
    view(0);
    send_two_at_page(page, PROT_NONE);
    assert_true(other.sent);
    assert_int_equal(poll_all(), 2);
    expect_all_handled();
    assert_int_equal(munmap(page, AQ_PAGE_SIZE), 0);
}

/* The first message's mark has been computed: nobody sends until it is stored, since it would take
 * back the other's mark, and the other message would stay. */
static void test_another_sends_at_the_mark(void **state)
{
    (void)state;
    send_two_at_page(aq_shm.arena + aq_shm.layout.marks, PROT_READ);
    poll_all();
    expect_all_handled();
}

/* --- threads --- */

static time_t deadline;

static bool all_handled(void)
{
    return atomic_load_explicit(&count[0], memory_order_relaxed) == SENDERS * EACH;
}

static void *send_many(void *arg)
{
    const gex_AM_Arg_t args[] = { 0, 0 };

    for (unsigned i = 0; i < EACH && time(NULL) < deadline;)
        if (aq_shm_am_short(0, false, H_COUNT, 2, args) == AQ_OK)
            i++;
        else
            sched_yield();
    return arg;
}

static void *poll_many(void *arg)
{
    while (!all_handled() && time(NULL) < deadline)
        if (aq_shm_poll(AQ_POLL_ALL) == 0)
            sched_yield();
    return arg;
}

static void test_threads(void **state)
{
    pthread_t thread[SENDERS + POLLERS];

    (void)state;
    deadline = time(NULL) + LIMIT_S;
    in_order = false; /* two pollers run two handlers in any order */
    for (unsigned i = 0; i < SENDERS + POLLERS; i++)
        assert_int_equal(
            pthread_create(&thread[i], NULL, i < SENDERS ? send_many : poll_many, NULL), 0);
    for (unsigned i = 0; i < SENDERS + POLLERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_true(all_handled());
    assert_int_equal(aq_shm_poll(AQ_POLL_ALL), 0);
}

int main(void)
{
    static const struct aq_conduit_ops ops = { .poll = aq_shm_poll };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_source_is_served, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_mark_nothing_is_looked_at, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks_come_round, setup, teardown),
        cmocka_unit_test_setup_teardown(test_at_random, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_to_nowhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_sends_before_the_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_sends_at_the_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
    };

    for (uint32_t rank = 0; rank < RANKS; rank++)
        ranks[rank] = rank;
    aq_shm.jobrank_of = ranks;
    aq_job.local = aq_job.remote = &ops;
    aq_job.nbrhd_in_a_row = true;
    aq_job.size = aq_job.nbrhd_size = RANKS;
    atomic_store_explicit(&aq_job.ep.handler[H_COUNT], (gex_AM_Fn_t)h_count, memory_order_relaxed);
    aq_job.ep.entry[H_COUNT] = (gex_AM_Entry_t){
        .gex_index = H_COUNT,
        .gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY,
        .gex_nargs = 2,
        .gex_name = "count",
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
