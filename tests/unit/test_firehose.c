/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_firehose.c - individual cases of firehose: hits, misses and the data they carry, growth of
 * regions, victims, budgets, read-only memory, foreign messages. Unmapped memory:
 * test_firehose_recall.c; random traffic: test_firehose_random.c.
 */
#include "tests/unit/firehose_cases.h"

#include <unistd.h>

#include "other/firehose/aq_fh_budget.h"
#include "other/firehose/aq_fh_wire.h"

static void test_hit_and_miss(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh_request request = request_for(sim, 7, 100, true);

    (void)state;
    answers = 0;
    assert_true(ask(sim, &request));
    assert_int_equal(answers, 1);
    assert_int_equal(request.rc, AQ_OK);
    assert_int_equal(request.carried, 0); /* there were no data to carry */
    assert_int_equal(request.hold.addr, at(sim, 1, 7));
    assert_int_equal(request.hold.len, 100);
    assert_true(sim->rank[1].reg[request.hold.reg->key[0]]->live);
    aq_fh_release(sim->rank[0].fh, &request.hold);
    assert_false(touch(sim, 7, true));
    assert_false(touch(sim, 7, false));
    assert_true(touch(sim, 100, false));
    assert_int_equal(counts_of(sim, 0).moves, 2);
    assert_int_equal(counts_of(sim, 0).remote_hits, 2);
    assert_int_equal(counts_of(sim, 1).remote_charged, 2 * PAGE);
    assert_int_equal(sim->sends, 2);
    sim_free(sim);
}

/* The first bytes travel with the message: a small transfer needs nothing else. */
static void test_carry(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    uint8_t bytes[5000];
    struct aq_fh_request request = request_for(sim, 3, 5000, true);

    (void)state;
    memset(bytes, 0x5a, sizeof(bytes));
    request.put = bytes;
    assert_true(ask(sim, &request));
    assert_int_equal(request.carried, 3072);
    assert_memory_equal((void *)at(sim, 1, 3), bytes, 3072);
    assert_int_equal(((uint8_t *)at(sim, 1, 3))[3072], 0);
    assert_int_equal(request.hold.addr, at(sim, 1, 3) + 3072);
    assert_int_equal(request.hold.len, 5000 - 3072);
    aq_fh_release(sim->rank[0].fh, &request.hold);
    request = request_for(sim, 40, 16, false);
    request.get = bytes;
    memset((void *)at(sim, 1, 40), 0x77, 16);
    assert_true(ask(sim, &request));
    assert_int_equal(request.carried, 16);
    assert_null(request.hold.region);
    assert_memory_equal(bytes, (void *)at(sim, 1, 40), 16);
    assert_int_equal(counts_of(sim, 0).carried, 1);
    assert_false(touch(sim, 40, true)); /* and the firehose is there */
    sim_free(sim);
}

/* A second request for a region that is being moved waits for the same message. */
static void test_joins(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh_request request[3] = { request_for(sim, 9, 64, true),
                                        request_for(sim, 9, 16, false),
                                        request_for(sim, 9, 3 * PAGE, true) };

    (void)state;
    answers = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request[i]), AQ_PENDING);
    sim_drain(sim);
    assert_int_equal(answers, 3);
    assert_int_equal(sim->sends, 1);
    assert_int_equal(counts_of(sim, 0).remote_waits, 2);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(request[i].rc, AQ_OK);
        assert_int_equal(request[i].hold.len, i == 0 ? 64 : i == 1 ? 16 : PAGE);
        aq_fh_release(sim->rank[0].fh, &request[i].hold);
    }
    sim_free(sim);
}

/* A message that cannot be sent has no effect; who waited for it asks again. */
static void test_refused(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh_request request = request_for(sim, 9, 64, true);

    (void)state;
    touch(sim, 8, true);
    sim->refuse = 100;
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request), AQ_RETRY);
    assert_false(touch(sim, 8, true)); /* was to be taken in, and is there still */
    sim->refuse = 0;
    assert_true(touch(sim, 9, true));
    sim_free(sim);
}

/* A sequential stream of small accesses misses at growing distances; so does one downwards. */
static void test_streams(void **state)
{
    static const uint32_t up[] = { 0, 1, 3, 7, 15, 31, 32, 64, 96 };
    struct sim *sim = sim_new(2, &config, false);
    size_t next = 0;

    (void)state;
    for (uint32_t page = 0; page < 100; page++) {
        const bool missed = touch(sim, page, true);

        assert_int_equal(missed, next < sizeof(up) / sizeof(up[0]) && page == up[next]);
        next += missed;
    }
    assert_int_equal(next, sizeof(up) / sizeof(up[0]));
    next = 0;
    for (uint32_t page = 500; page > 300; page--)
        next += touch(sim, page, false);
    assert_int_equal(next, 12); /* 500 499 497 493 485 469; then each 32 pages */
    sim_free(sim);
}

/* What lies between two small regions is taken in with them if it is no larger than they are. The
 * target unpins the two: nothing would ever use them. */
static void test_coalescing(void **state)
{
    struct sim *sim = sim_new(2, &config, false);

    (void)state;
    assert_true(touch(sim, 64, true));
    assert_true(touch(sim, 67, true)); /* 65 and 66 lie between: two pages beside two */
    assert_false(touch(sim, 65, true));
    assert_true(touch(sim, 75, true)); /* seven pages beside five: no */
    assert_true(touch(sim, 71, true));
    assert_false(touch(sim, 73, true)); /* all of 64 to 75 is one region now */
    assert_int_equal(counts_of(sim, 1).remote_charged, 12 * PAGE);
    assert_int_equal(counts_of(sim, 1).reg_bytes, 12 * PAGE);
    assert_int_equal(counts_of(sim, 1).reg_regions, 1);
    sim_free(sim);
}

/* Pages that are not there, or read-only, beside the one that is asked for. */
static void test_holes(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh_request request;

    (void)state;
    sim->rank[1].page[12] = SIM_HOLE;
    assert_true(touch(sim, 9, true));
    assert_true(touch(sim, 10, true)); /* would take page 11 as well, and does */
    assert_false(touch(sim, 11, true));
    request = request_for(sim, 12, 8, false);
    assert_true(ask(sim, &request));
    assert_true(request.rc < 0);
    assert_null(request.hold.region);
    assert_true(touch(sim, 13, true));
    assert_true(touch(sim, 14, true));
    sim->rank[1].page[300] = SIM_READ_ONLY;
    request = request_for(sim, 300, 8, true);
    assert_true(ask(sim, &request));
    assert_true(request.rc < 0);
    assert_true(touch(sim, 300, false)); /* a get works */
    assert_false(touch(sim, 300, false));
    request = request_for(sim, 300, 8, true);
    assert_true(ask(sim, &request)); /* and a put does not hit it */
    assert_true(request.rc < 0);
    sim_free(sim);
}

/* Our share is full: the region that was not used for longest goes, and stays pinned as a victim of
 * the target. */
static void test_victims(void **state)
{
    struct aq_fh_config small = config;
    struct sim *sim;

    (void)state;
    small.remote_bytes = 4 * PAGE;
    sim = sim_new(2, &small, false);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(touch(sim, i * 40, true));
    assert_int_equal(sim->sends, 4);
    assert_true(touch(sim, 400, true)); /* 0 goes */
    assert_false(touch(sim, 40, true));
    assert_false(touch(sim, 80, true));
    /* 120 is evicted: the only one that was not used since */
    assert_true(touch(sim, 0, true));
    assert_int_equal(sim->sends, 6);             /* never a message more than the misses */
    assert_int_equal(counts_of(sim, 1).regs, 5); /* 0 was still pinned */
    assert_false(touch(sim, 40, true));
    assert_true(touch(sim, 120, true));
    assert_int_equal(counts_of(sim, 1).regs, 5);
    assert_int_equal(counts_of(sim, 1).deregs, 0);
    sim_free(sim);
}

/* Regions in use cannot be given up: the request must wait. */
static void test_share_in_use(void **state)
{
    struct aq_fh_config small = config;
    struct aq_fh_request request[3];
    struct sim *sim;

    (void)state;
    small.remote_bytes = 2 * PAGE;
    sim = sim_new(2, &small, false);
    for (uint32_t i = 0; i < 3; i++)
        request[i] = request_for(sim, i * 40, 8, true);
    assert_true(ask(sim, &request[0]));
    assert_true(ask(sim, &request[1]));
    assert_int_equal(aq_fh_remote(sim->rank[0].fh, &request[2]), AQ_RETRY);
    aq_fh_release(sim->rank[0].fh, &request[0].hold);
    assert_true(ask(sim, &request[2]));
    aq_fh_release(sim->rank[0].fh, &request[1].hold);
    aq_fh_release(sim->rank[0].fh, &request[2].hold);
    sim_free(sim);
}

static void test_local(void **state)
{
    struct aq_fh_config small = config;
    struct aq_fh_hold hold[5];
    struct aq_fh *fh;
    struct sim *sim;

    (void)state;
    small.local_bytes = 16 * PAGE;
    sim = sim_new(2, &small, false);
    fh = sim->rank[0].fh;
    for (uint32_t i = 0; i < 4; i++) { /* a quarter of the budget at most in one */
        assert_int_equal(aq_fh_local(fh, at(sim, 0, i * 64), 6 * PAGE, false, &hold[i]), AQ_OK);
        assert_int_equal(hold[i].len, 4 * PAGE);
    }
    assert_int_equal(aq_fh_local(fh, at(sim, 0, 2), 8, true, &hold[4]), AQ_OK); /* a hit */
    aq_fh_release(fh, &hold[4]);
    assert_int_equal(aq_fh_local(fh, at(sim, 0, 400), 8, true, &hold[4]), AQ_RETRY);
    aq_fh_release(fh, &hold[0]);
    assert_int_equal(aq_fh_local(fh, at(sim, 0, 400), 8, true, &hold[4]), AQ_OK);
    assert_int_equal(counts_of(sim, 0).deregs, 1);
    for (uint32_t i = 1; i < 5; i++)
        aq_fh_release(fh, &hold[i]);
    /* read-only memory is a source, not a destination */
    sim->rank[0].page[500] = SIM_READ_ONLY;
    assert_true(aq_fh_local(fh, at(sim, 0, 500), 8, true, &hold[0]) < 0);
    assert_int_equal(aq_fh_local(fh, at(sim, 0, 500), 8, false, &hold[0]), AQ_OK);
    aq_fh_release(fh, &hold[0]);
    sim->rank[0].page[501] = SIM_HOLE;
    assert_true(aq_fh_local(fh, at(sim, 0, 501), 8, false, &hold[0]) < 0);
    sim_free(sim);
}

/* A region that a peer has a reference to serves our own transfers, counts for both, and is
 * registered once. */
static void test_shared_region(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh *fh = sim->rank[1].fh;
    struct aq_fh_hold hold;

    (void)state;
    touch(sim, 20, true);
    assert_int_equal(counts_of(sim, 1).local_charged, 0);
    assert_int_equal(aq_fh_local(fh, at(sim, 1, 20), 8, true, &hold), AQ_OK);
    assert_int_equal(counts_of(sim, 1).local_charged, PAGE);
    assert_int_equal(counts_of(sim, 1).remote_charged, PAGE);
    assert_int_equal(counts_of(sim, 1).regs, 1);
    aq_fh_release(fh, &hold);
    assert_int_equal(counts_of(sim, 1).local_charged, 0);
    /* and the other way round: what we have pinned is what the peer gets */
    assert_int_equal(aq_fh_local(fh, at(sim, 1, 99), 8, true, &hold), AQ_OK);
    aq_fh_release(fh, &hold);
    touch(sim, 99, true);
    assert_int_equal(counts_of(sim, 1).regs, 2);
    assert_int_equal(counts_of(sim, 1).local_charged, 0);
    sim_free(sim);
}

/* A region that a peer references may be larger than the own budget allows: the conduit is told so,
 * and copies. */
static void test_shared_region_too_large(void **state)
{
    struct aq_fh_config small = config;
    struct aq_fh_request request;
    struct aq_fh_hold hold;
    struct sim *sim;

    (void)state;
    small.local_bytes = 16 * PAGE;
    sim = sim_new(2, &small, false);
    request = request_for(sim, 20, 20 * PAGE, true);
    assert_true(ask(sim, &request));
    assert_int_equal(request.rc, AQ_OK);
    assert_int_equal(aq_fh_local(sim->rank[1].fh, at(sim, 1, 20), 8, true, &hold), AQ_ERR_RESOURCE);
    assert_int_equal(counts_of(sim, 1).local_charged, 0);
    aq_fh_release(sim->rank[0].fh, &request.hold);
    sim_free(sim);
}

/* --- unauthenticated peers, settings --- */

static void test_bad_messages(void **state)
{
    struct sim *sim = sim_new(2, &config, false);
    struct aq_fh *fh = sim->rank[1].fh;
    struct aq_fh_wire_move move = { .kind = AQ_FH_MOVE,
                                    .write = 1,
                                    .id = 5,
                                    .start = at(sim, 1, 4),
                                    .pages = 4,
                                    .first = 1,
                                    .min = 2,
                                    .addr = at(sim, 1, 5) + 12 };
    struct aq_fh_wire_move good = move;
    uint8_t answer[AQ_FH_MESSAGE];

    (void)state;
    assert_int_not_equal(aq_fh_serve(fh, 0, &good, sizeof(good), answer), 0);
#define REFUSED(change)                                                       \
    do {                                                                      \
        move = good;                                                          \
        move.id = 6;                                                          \
        change;                                                               \
        assert_int_equal(aq_fh_serve(fh, 0, &move, sizeof(move), answer), 0); \
    } while (0)
    REFUSED(move.id = 5);                   /* used */
    REFUSED(move.id = AQ_FH_SLOTS_MAX - 1); /* no such slot */
    REFUSED(move.kind = 0);
    REFUSED(move.kind = 77);
    REFUSED(move.victims = 1);
    REFUSED(move.data = 1);
    REFUSED(move.start += 8);
    REFUSED(move.first = 3);
    REFUSED(move.min = 0);
    REFUSED(move.pages = UINT32_MAX);
    REFUSED(move.pages = 1020 + 5); /* more than its share */
    REFUSED(move.pages = 1021);     /* what is left of it */
    REFUSED(move.addr = at(sim, 1, 4));
    REFUSED(move.addr = at(sim, 1, 7));
    REFUSED(move.start = UINTPTR_MAX - PAGE + 1);
    REFUSED((move.write = 0, move.data = AQ_FH_MESSAGE));
#undef REFUSED
    for (size_t len = 0; len < sizeof(good); len++)
        assert_int_equal(aq_fh_serve(fh, 0, &good, len, answer), 0);
    assert_int_equal(aq_fh_serve(fh, 9, &good, sizeof(good), answer), 0); /* no such rank */
    aq_fh_answered(fh, 0, answer, 3);
    memset(answer, 0, sizeof(answer));
    answer[0] = AQ_FH_MOVE;
    aq_fh_answered(fh, 0, answer, sizeof(struct aq_fh_wire_reply));
    answer[0] = AQ_FH_RECALL;
    aq_fh_answered(fh, 0, answer, sizeof(struct aq_fh_wire_recall));
    assert_int_equal(counts_of(sim, 1).regs, 1);
    move = good;
    move.kind = AQ_FH_RELEASE; /* so that the books agree */
    move.victims = 1;
    memcpy(answer, &move, sizeof(move));
    memcpy(answer + sizeof(move), &move.id, sizeof(move.id));
    assert_int_not_equal(aq_fh_serve(fh, 0, answer, sizeof(move) + sizeof(move.id), answer + 512),
                         0);
    assert_int_equal(aq_fh_serve(fh, 0, answer, sizeof(move) + sizeof(move.id), answer + 512), 0);
    sim_free(sim);
}

static void open_small(void *arg)
{
    const struct aq_fh_ops ops = { .reg = sim_op_pin,
                                   .dereg = sim_op_unpin,
                                   .send_request = sim_op_request };
    struct aq_fh_config small = config;
    struct aq_fh *fh;

    (void)arg;
    small.size = small.peers = 100;
    small.remote_bytes = 99 * PAGE;
    if (aq_fh_open(&small, &ops, NULL, &fh) == AQ_OK)
        _exit(1);
    small = config;
    small.local_bytes = PAGE;
    if (aq_fh_open(&small, &ops, NULL, &fh) == AQ_OK)
        _exit(1);
}

static void test_too_small(void **state)
{
    struct aq_unit_result result;

    (void)state;
    aq_unit_run(open_small, NULL, &result);
    assert_int_equal(aq_unit_exit_code(&result), 0);
    aq_unit_contains(result.err, "raise GASNET_FIREHOSE_M (at least 400 KB)");
    aq_unit_contains(result.err, "GASNET_FIREHOSE_MAXVICTIM_M");
}

static void check_split(uint64_t remote, uint64_t local, uint32_t peers, uint64_t want_remote,
                        uint64_t want_local)
{
    const struct aq_fh_budget budget = aq_fh_budget_split(400, remote, local, peers);

    assert_int_equal(budget.remote, want_remote);
    assert_int_equal(budget.local, want_local);
}

static void test_budget(void **state)
{
    (void)state;
    check_split(0, 0, 3, 300, 100);
    check_split(0, 0, 0, 0, 400);
    check_split(200, 0, 3, 200, 200);
    check_split(390, 0, 3, 390, 100);
    check_split(1000, 0, 3, 1000, 100);
    check_split(0, 100, 3, 300, 100);
    check_split(0, 399, 3, 100, 399);
    check_split(10, 20, 3, 10, 20);
    check_split(10, 20, 0, 0, 20);
}

static void test_chunks(void **state)
{
    struct aq_fh_chunks chunks = { 0 };
    const size_t max = 1024 * PAGE;
    uintptr_t addr = 7 * PAGE + 100;
    size_t left = 20 * (size_t)max, want = AQ_FH_WHOLE;
    const size_t first = AQ_FH_WHOLE + PAGE - 100; /* no less, to the end of a page */

    (void)state;
    assert_int_equal(aq_fh_chunk(&chunks, addr, AQ_FH_WHOLE, max), AQ_FH_WHOLE);
    assert_int_equal(aq_fh_chunk(&chunks, addr, left, max), first);
    for (addr += first, left -= first; left > 0;) {
        const size_t len = aq_fh_chunk(&chunks, addr, left, max);

        want = want < max ? want * 2 : max;
        assert_int_equal(len, want < left ? want : left);
        addr += len;
        left -= len;
    }
}

/* Peers that may reach a part of the memory get nothing beyond it, and no region grows past its
 * ends. */
static void test_reach(void **state)
{
    static const uint32_t outside[] = { 9, 20, 300 };
    struct sim *sim = sim_new(2, &config, false);
    unsigned missed = 0;

    (void)state;
    aq_fh_limit_remote(sim->rank[1].fh, at(sim, 1, 10), at(sim, 1, 20));
    for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
        struct aq_fh_request request = request_for(sim, outside[i], 8, true);

        assert_true(ask(sim, &request));
        assert_true(request.rc < 0);
        assert_null(request.hold.region);
        assert_int_equal(request.carried, 0);
    }
    for (uint32_t page = 10; page < 20; page++)
        missed += touch(sim, page, true);
    assert_int_equal(missed, 4); /* at 10, 11, 13 and 17, which would take the pages up to 24 */
    assert_int_equal(counts_of(sim, 1).remote_charged, 10 * PAGE);
    sim_free(sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hit_and_miss),  cmocka_unit_test(test_carry),
        cmocka_unit_test(test_joins),         cmocka_unit_test(test_refused),
        cmocka_unit_test(test_streams),       cmocka_unit_test(test_coalescing),
        cmocka_unit_test(test_holes),         cmocka_unit_test(test_victims),
        cmocka_unit_test(test_share_in_use),  cmocka_unit_test(test_local),
        cmocka_unit_test(test_shared_region), cmocka_unit_test(test_shared_region_too_large),
        cmocka_unit_test(test_bad_messages),  cmocka_unit_test(test_too_small),
        cmocka_unit_test(test_budget),        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_reach),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
