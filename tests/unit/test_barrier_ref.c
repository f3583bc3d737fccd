/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_barrier_ref.c - reference barriers seen by rank 0 of five: which messages are sent when,
 * messages that overtake each other or find no credit, many open phases, matching of names.
 * Source: GASNet-EX specification 0.19, Collectives; GASNet specification 1.8, Barriers.
 */
#include "tests/unit/aq_unit.h"

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "core/aq_tm.h"
#include "core/aq_callback.h"
#include "extended/aq_ref.h"

/* Five ranks: rounds 0, 1, 2; rank 0 sends to 1, 2, 4 and receives from 4, 3, 1. */
enum { RANKS = 5, ROUNDS = 3, LOG = 64 };

static struct {
    gex_Rank_t to;
    unsigned handler;
    gex_AM_Arg_t args[5];
} sent[LOG];
static unsigned sent_count;
static unsigned no_space; /* so many sends are declined first */

static int fake_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                      const gex_AM_Arg_t *args)
{
    if (no_space > 0) {
        no_space--;
        return 2; /* AQ_RETRY */
    }
    assert_false(is_reply);
    assert_true(sent_count < LOG);
    sent[sent_count].to = jobrank;
    sent[sent_count].handler = handler;
    for (unsigned i = 0; i < nargs; i++)
        sent[sent_count].args[i] = args[i];
    sent_count++;
    return 0;
}

static void fake_ring(void)
{
}

static const struct aq_conduit_info fake_info = { .name = "fake" };
static const struct aq_conduit_ops fake_conduit = { .info = &fake_info,
                                                    .am_short = fake_short,
                                                    .sleep_wake = fake_ring };

static void deliver(gex_Rank_t from, unsigned handler, unsigned nargs, const gex_AM_Arg_t *args)
{
    struct aq_am_in in = { .token = { .jobrank = from,
                                      .handler = (uint8_t)handler,
                                      .nargs = (uint8_t)nargs,
                                      .kind = AQ_AM_SHORT },
                           .args = args };

    aq_am_deliver(&in);
}

static void hear(int round, uint64_t k)
{
    static const gex_Rank_t from[ROUNDS] = { 4, 3, 1 };
    const gex_AM_Arg_t args[] = { round, (gex_AM_Arg_t)(k >> 32), (gex_AM_Arg_t)k };

    deliver(from[round], AQ_HIDX_BARRIER, 3, args);
}

static void expect_sent(unsigned index, gex_Rank_t to, int round, uint64_t k)
{
    assert_true(index < sent_count);
    assert_int_equal(sent[index].to, to);
    assert_int_equal(sent[index].handler, AQ_HIDX_BARRIER);
    assert_int_equal(sent[index].args[0], round);
    assert_int_equal(sent[index].args[2], (gex_AM_Arg_t)k);
}

static uint64_t phase; /* EX phases this rank has entered, all tests together */

static void test_rounds_in_order(void **state)
{
    gex_Rank_t missing;

    (void)state;
    sent_count = 0;
    aq_ref_barrier_arrive(++phase);
    assert_int_equal(sent_count, 1);
    expect_sent(0, 1, 0, phase);
    assert_false(aq_ref_barrier_done(phase, &missing));
    assert_int_equal(missing, 4);
    assert_int_not_equal(aq_callback_pending, 0);

    hear(2, phase); /* early */
    aq_ref_barrier_progress();
    assert_int_equal(sent_count, 1);
    hear(0, phase);
    aq_ref_barrier_progress();
    assert_int_equal(sent_count, 2);
    expect_sent(1, 2, 1, phase);
    assert_false(aq_ref_barrier_done(phase, &missing));
    assert_int_equal(missing, 3);
    hear(1, phase);
    assert_int_not_equal(aq_ref_barrier_progress(), 0);
    expect_sent(2, 4, 2, phase);
    assert_true(aq_ref_barrier_done(phase, &missing));
    assert_int_equal(aq_callback_pending, 0);
}

/* Many phases open at once: one message catches up for all, old news change nothing. */
static void test_cumulative(void **state)
{
    const uint64_t first = phase + 1;
    gex_Rank_t missing;

    (void)state;
    sent_count = 0;
    for (int i = 0; i < 50; i++)
        aq_ref_barrier_arrive(++phase);
    assert_int_equal(sent_count, 50); /* there was room for each */
    hear(0, first + 19);
    hear(0, first + 4);
    hear(1, phase);
    hear(2, first + 9);
    aq_ref_barrier_progress();
    assert_int_equal(sent_count, 52);
    expect_sent(50, 2, 1, first + 19);
    expect_sent(51, 4, 2, first + 19);
    assert_true(aq_ref_barrier_done(first, &missing));
    assert_true(aq_ref_barrier_done(first + 9, &missing));
    assert_false(aq_ref_barrier_done(first + 10, &missing));
    assert_int_equal(missing, 1);
    hear(2, phase);
    hear(0, phase);
    aq_ref_barrier_progress();
    assert_true(aq_ref_barrier_done(phase, &missing));
}

/* Not done before our own news have left: nobody else would send them. */
static void test_no_space(void **state)
{
    gex_Rank_t missing;

    (void)state;
    sent_count = 0;
    no_space = 2;
    aq_ref_barrier_arrive(++phase);
    assert_int_equal(sent_count, 0);
    for (int round = 0; round < ROUNDS; round++)
        hear(round, phase);
    assert_int_not_equal(aq_ref_barrier_progress(), 0);
    assert_false(aq_ref_barrier_done(phase, &missing));
    assert_int_not_equal(aq_callback_pending, 0);
    assert_int_equal(sent_count, 2); /* rounds 1 and 2 had room */
    aq_ref_barrier_progress();
    assert_int_equal(sent_count, 3);
    expect_sent(2, 1, 0, phase);
    assert_true(aq_ref_barrier_done(phase, &missing));
    assert_int_equal(aq_callback_pending, 0);
}

/* --- names --- */

enum { ANON = 0, MISMATCH = 1, NAMED = 2 }; /* as on the wire */

static uint64_t named_phase;

static void hear_name(int round, uint64_t k, int what, int id)
{
    static const gex_Rank_t from[ROUNDS] = { 4, 3, 1 };
    const gex_AM_Arg_t args[] = { round, (gex_AM_Arg_t)(k >> 32), (gex_AM_Arg_t)k, what, id };

    deliver(from[round], AQ_HIDX_NAMED_BARRIER, 5, args);
}

struct said {
    int what, id;
};

/* One phase: what we say, what the three rounds bring, in an order that varies. */
static struct aq_barrier_name handshake(int flags, int id, const struct said seen[ROUNDS])
{
    struct aq_barrier_name name = { false, false, -1 };
    const uint64_t k = ++named_phase;
    const int early = (int)(k % ROUNDS);
    gex_Rank_t missing;

    hear_name(early, k, seen[early].what, seen[early].id); /* before this rank arrives */
    aq_ref_named_arrive(k, id, flags);
    assert_false(aq_ref_named_done(k, &name, &missing));
    for (int round = ROUNDS; round-- > 0;)
        if (round != early)
            hear_name(round, k, seen[round].what, seen[round].id);
    for (int i = 0; i < ROUNDS; i++)
        aq_ref_barrier_progress();
    assert_true(aq_ref_named_done(k, &name, &missing));
    assert_int_equal(aq_callback_pending, 0);
    return name;
}

static void test_names(void **state)
{
    static const struct {
        int flags, id;
        struct said seen[ROUNDS];
        bool mismatch, named;
        int name;
    } cases[] = {
        { GASNET_BARRIERFLAG_ANONYMOUS, 7, { { 0, 0 }, { 0, 0 }, { 0, 0 } }, false, false, 0 },
        { GASNET_BARRIERFLAG_UNNAMED, 7, { { 0, 0 }, { 0, 0 }, { 0, 0 } }, false, false, 0 },
        { 0, 7, { { 0, 0 }, { 0, 0 }, { 0, 0 } }, false, true, 7 },
        { 0, 0, { { NAMED, 0 }, { 0, 9 }, { NAMED, 0 } }, false, true, 0 },
        { GASNET_BARRIERFLAG_ANONYMOUS,
          7,
          { { 0, 0 }, { NAMED, INT32_MIN }, { 0, 0 } },
          false,
          true,
          INT32_MIN },
        { 0, 7, { { NAMED, 7 }, { NAMED, 8 }, { NAMED, 7 } }, true, false, 0 },
        { GASNET_BARRIERFLAG_ANONYMOUS,
          7,
          { { NAMED, -1 }, { 0, 0 }, { NAMED, 1 } },
          true,
          false,
          0 },
        { 0, 7, { { NAMED, 7 }, { NAMED, 7 }, { MISMATCH, 0 } }, true, false, 0 },
        { GASNET_BARRIERFLAG_MISMATCH,
          7,
          { { NAMED, 7 }, { 0, 0 }, { NAMED, 7 } },
          true,
          false,
          0 },
        { 0, -5, { { NAMED, -5 }, { NAMED, -5 }, { NAMED, -5 } }, false, true, -5 },
    };

    (void)state;
    for (size_t i = 0; i < 5 * sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t c = i % (sizeof(cases) / sizeof(cases[0]));
        struct aq_barrier_name name;

        sent_count = 0;
        no_space = (unsigned)(i % 4);
        name = handshake(cases[c].flags, cases[c].id, cases[c].seen);
        assert_int_equal(name.mismatch, cases[c].mismatch);
        if (!cases[c].mismatch) {
            assert_int_equal(name.named, cases[c].named);
            if (cases[c].named)
                assert_int_equal(name.id, cases[c].name);
        }
        assert_int_equal(sent_count, ROUNDS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_in_order),
        cmocka_unit_test(test_cumulative),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_names),
    };

    aq_job.local = &fake_conduit;
    aq_job.remote = &aq_conduit_none;
    aq_job.nbrhd_in_a_row = true;
    aq_job.rank = 0;
    aq_job.size = aq_job.nbrhd_size = RANKS;
    aq_tm_create_primordial();
    aq_callback_init();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
