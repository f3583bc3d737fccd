/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_attention.c - which peers of the mpi conduit count as attentive: a peer that has
 * answered a moment ago; who is asked, and how often; what a late answer brings.
 */
#include "tests/unit/aq_unit.h"
#include "tests/unit/mpi_am_unit.h"

#include "conduits/mpi/aq_mpi_attention.h"
#include "core/aq_am.h"
#include "core/aq_am_deliver.h"

#define PEER   1u
#define WINDOW 64u

/* --- an MPI, and a rank that polls --- */

static struct {
    unsigned questions, polls;
    gex_AM_Arg_t args[AQ_MPI_ARGS]; /* of the last question */
} mpi;

static int fake_send(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                     void *owner)
{
    struct aq_mpi_message message = { .nbytes = 0 };
    static char copy[AQ_MPI_PACKET];

    (void)channel, (void)owner;
    assert_int_equal(dest, PEER);
    memcpy(copy, packet, nbytes);
    assert_true(aq_mpi_packet_decode(copy, nbytes, AQ_MPI_MAX_MEDIUM, AQ_MPI_MAX_LONG, &message));
    assert_int_equal(message.head.handler, AQ_HIDX_ATTENTION);
    memcpy(mpi.args, message.args, message.head.nargs * sizeof(mpi.args[0]));
    mpi.questions++;
    return AQ_MPI_DONE;
}

static unsigned fake_poll(enum aq_poll_kind kind)
{
    (void)kind;
    mpi.polls++;
    return 0;
}

static void fake_wake(void)
{
}

static const struct aq_mpi_lib_am fake_am = { .send = fake_send };
static const struct aq_mpi_lib fake_lib = { .version = AQ_MPI_LIB_VERSION };
static const struct aq_conduit_ops fake_local = { .poll = fake_poll, .sleep_wake = fake_wake };
static const struct aq_conduit_ops fake_remote = { .probe = NULL };
static struct aq_mpi_peer peers[2];
static struct aq_mpi_attention peer;

static int start(void **state)
{
    (void)state;
    memset(&mpi, 0, sizeof(mpi));
    memset(&peer, 0, sizeof(peer));
    mpi_am_start(&fake_am, &fake_lib, peers, WINDOW);
    aq_job.nbrhd_in_a_row = true;
    aq_job.nbrhd_size = 1;
    aq_job.local = &fake_local;
    aq_job.remote = &fake_remote;
    aq_mpi_attention_init();
    return 0;
}

/* The answer to the last question. */
static void answer(void)
{
    struct aq_token token = { .jobrank = PEER,
                              .handler = AQ_HIDX_ATTENTION_PAID,
                              .nargs = 2,
                              .kind = AQ_AM_SHORT,
                              .is_reply = true };

    aq_am_deliver_short(&token, mpi.args);
}

static bool is_paid(uint64_t now_ns)
{
    return aq_mpi_attention_is_paid(&peer, PEER, now_ns);
}

/* The peer is wanted again and again. */
static void want(uint64_t now_ns)
{
    is_paid(now_ns - 1);
    is_paid(now_ns);
}

/* A peer is asked once; its answer counts for a moment, and so does any other answer. The times are
 * an hour ahead of the clock, so that the answer is in time however long this process waits. */
static void test_answers(void **state)
{
    const uint64_t now = aq_now_ns() + UINT64_C(3600000000000);
    uint64_t answered;

    (void)state;
    assert_false(is_paid(now - 1));
    assert_int_equal(mpi.questions, 0); /* it may never be wanted again */
    assert_false(is_paid(now));
    assert_int_equal(mpi.questions, 1);
    assert_false(is_paid(now + 1));
    assert_int_equal(mpi.questions, 1);
    assert_int_equal(mpi.polls, 1); /* for the answer */
    answer();
    answered = atomic_load(&peer.answered_ns);
    assert_true(is_paid(answered + AQ_MPI_FRESH_NS - 1));
    assert_false(is_paid(answered + AQ_MPI_FRESH_NS));
    aq_mpi_attention_answered(&peer, now, now + 10 * AQ_MPI_FRESH_NS, true);
    assert_true(is_paid(now + 10 * AQ_MPI_FRESH_NS + 1));
}

/* Without an answer there is no further question, and a poll now and then. */
static void test_silence(void **state)
{
    const uint64_t now = aq_now_ns();
    unsigned polls;

    (void)state;
    want(now);
    for (uint64_t ns = 1; ns < AQ_MPI_FRESH_NS; ns += 1000)
        is_paid(now + ns);
    polls = mpi.polls;
    assert_int_equal(polls, AQ_MPI_FRESH_NS / 1000);
    for (uint64_t ns = AQ_MPI_FRESH_NS; ns < 100 * AQ_MPI_POLLED_NS; ns += 1000)
        assert_false(is_paid(now + ns));
    assert_int_equal(mpi.questions, 1);
    assert_true(mpi.polls - polls >= 90);
    assert_true(mpi.polls - polls <= 100);
}

/* An answer that took long tells nothing; the next question waits for its time. */
static void test_late_answer(void **state)
{
    const uint64_t now = aq_now_ns() - 2 * AQ_MPI_LATE_NS; /* the question was long ago */

    (void)state;
    want(now);
    answer();
    want(now + AQ_MPI_ASK_NS - 1);
    assert_int_equal(mpi.questions, 1);
    assert_false(is_paid(now + AQ_MPI_ASK_NS));
    assert_int_equal(mpi.questions, 2);
}

/* Transfers that are far apart are none that a question pays for. */
static void test_seldom(void **state)
{
    const uint64_t now = aq_now_ns();

    (void)state;
    for (uint64_t i = 1; i < 100; i++)
        assert_false(is_paid(now + i * AQ_MPI_ASK_NS));
    assert_int_equal(mpi.questions, 0);
}

/* A peer that was expected to answer and did not is left alone, each time for longer. */
static void test_leave(void **state)
{
    uint64_t now = aq_now_ns();

    (void)state;
    for (unsigned times = 1; times <= 4; times *= 2) {
        const uint64_t late = now + AQ_MPI_LATE_NS + 1;

        aq_mpi_attention_answered(&peer, now, now, true);
        assert_true(is_paid(now));
        aq_mpi_attention_answered(&peer, now, late, true);
        aq_mpi_attention_answered(&peer, now, late + 1, true); /* another one, late with it */
        aq_mpi_attention_answered(&peer, late, late, true);    /* is back at once */
        assert_false(is_paid(late + 1));
        assert_false(is_paid(late + times * AQ_MPI_LEAVE_NS - 1));
        assert_int_equal(mpi.questions, 0);
        now = late + times * AQ_MPI_LEAVE_NS;
    }
    now += 1000 * AQ_MPI_LEAVE_NS; /* long after that, the first time again */
    aq_mpi_attention_answered(&peer, now - 2 * AQ_MPI_LATE_NS, now, true);
    now += AQ_MPI_LEAVE_NS;
    aq_mpi_attention_answered(&peer, now, now, true);
    assert_true(is_paid(now));
}

/* Absences of a second: each costs that once, and they become rarer. */
static void test_long_absences(void **state)
{
    const uint64_t second = 1000000000;
    uint64_t now = aq_now_ns(), alone = 0;

    (void)state;
    for (unsigned i = 0; i < 7; i++) {
        uint64_t until = now + second;

        aq_mpi_attention_answered(&peer, now, now, true);
        assert_true(is_paid(now));
        aq_mpi_attention_answered(&peer, now, until, true);
        while (!aq_mpi_attention_is_fresh(&peer, until)) {
            until += AQ_MPI_LEAVE_NS / 2;
            aq_mpi_attention_answered(&peer, until, until, true);
        }
        assert_true(until - now - second > alone);
        alone = until - now - second;
        now = until;
    }
    assert_true(alone > second);
}

/* Nobody expected an answer of a peer that was not known to pay attention. */
static void test_unexpected(void **state)
{
    const uint64_t now = aq_now_ns();

    (void)state;
    aq_mpi_attention_answered(&peer, now, now + 100 * AQ_MPI_LATE_NS, false);
    aq_mpi_attention_answered(&peer, now + 100 * AQ_MPI_LATE_NS, now + 100 * AQ_MPI_LATE_NS, true);
    assert_true(is_paid(now + 100 * AQ_MPI_LATE_NS));
}

/* Without credit nobody is asked, and nobody waits. */
static void test_no_credit(void **state)
{
    const uint64_t now = aq_now_ns();

    (void)state;
    aq_mpi_credit_spend(&peers[PEER], WINDOW);
    want(now);
    assert_int_equal(mpi.questions, 0);
    assert_true(aq_mpi_credit_take(&peers[PEER], WINDOW, 32, 0));
    want(now + AQ_MPI_ASK_NS);
    assert_int_equal(mpi.questions, 1);
}

#define OF(test) cmocka_unit_test_setup(test, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_answers),    OF(test_silence),   OF(test_late_answer), OF(test_leave),
        OF(test_unexpected), OF(test_no_credit), OF(test_seldom),      OF(test_long_absences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
