/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_coalesce.c - coalescing of the mpi conduit over an MPI that keeps what it is given:
 * which transfers share a message, when the message leaves, what its reply completes; what its
 * receiver stores or sends back, and what ends the receiver's job.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_coalesce.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_nosup.h"
#include "core/aq_am.h"
#include "core/aq_am_deliver.h"
#include "core/aq_job.h"

#define PEER   1u
#define WINDOW 64u
#define SENDS  16u
#define OPS    20u

/* --- an MPI, and a rank that polls --- */

static struct {
    unsigned sends;
    struct {
        size_t nbytes;
        _Alignas(AQ_MPI_ALIGN) char packet[AQ_MPI_PACKET];
    } sent[SENDS];
    unsigned replies, polls;
    unsigned flushes;        /* polls in which batches leave */
    uint32_t credit_at_poll; /* what a poll receives */
} mpi;

static int fake_send(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                     void *owner)
{
    (void)channel, (void)owner;
    assert_int_equal(dest, PEER);
    assert_true(mpi.sends < SENDS);
    mpi.sent[mpi.sends].nbytes = nbytes;
    memcpy(mpi.sent[mpi.sends++].packet, packet, nbytes);
    return AQ_MPI_DONE;
}

static struct aq_mpi_peer peers[2];

static unsigned fake_poll(enum aq_poll_kind kind)
{
    (void)kind;
    mpi.polls++;
    mpi.flushes += !aq_mpi_coalesce_pace.keeps;
    if (mpi.credit_at_poll == 0)
        return 0;
    assert_true(aq_mpi_credit_take(&peers[PEER], WINDOW, mpi.credit_at_poll, 0));
    mpi.credit_at_poll = 0;
    aq_mpi_coalesce_flush();
    return 1;
}

static void fake_wake(void)
{
}

static int fake_short(gex_Rank_t jobrank, bool is_reply, uint8_t handler, unsigned nargs,
                      const gex_AM_Arg_t *args)
{
    assert_int_equal(jobrank, PEER);
    assert_true(is_reply);
    assert_int_equal(handler, AQ_HIDX_PUTS_DONE);
    assert_int_equal(nargs, 2);
    assert_int_equal(args[0], 11);
    assert_int_equal(args[1], 12);
    mpi.replies++;
    return 0;
}

static const struct aq_mpi_lib_am fake_am = { .send = fake_send };
static const struct aq_conduit_ops fake_local = { .poll = fake_poll, .sleep_wake = fake_wake };
/* The reply to gets. */
static char reply_data[AQ_MPI_PUTS_BATCH];
static size_t reply_bytes;

static int fake_reply(const struct aq_am_out *out)
{
    assert_int_equal(out->jobrank, PEER);
    assert_true(out->is_reply);
    assert_int_equal(out->handler, AQ_HIDX_GETS_DATA);
    assert_int_equal(out->args[0], 11);
    assert_int_equal(out->args[1], 12);
    assert_true(out->nbytes <= sizeof(reply_data));
    memcpy(reply_data, out->src, out->nbytes);
    reply_bytes = out->nbytes;
    mpi.replies++;
    return 0;
}

static const struct aq_conduit_ops fake_remote = { .am_short = fake_short,
                                                   .am_send = fake_reply,
                                                   .am_medium = aq_nosup_am_medium };
static const struct aq_op_kind kind = { .name = "implicit", .counts_many = true };
static _Alignas(AQ_OP_SIZE) struct aq_op ops[OPS];
static uint64_t segment[1024];
static struct aq_bound bounds[2] = { { segment, sizeof(segment) }, { segment, sizeof(segment) } };

static int start(void **state)
{
    (void)state;
    memset(&mpi, 0, sizeof(mpi));
    memset(peers, 0, sizeof(peers));
    memset(segment, 0, sizeof(segment));
    memset(ops, 0, sizeof(ops));
    for (unsigned i = 0; i < OPS; i++)
        ops[i].kind = &kind;
    aq_mpi_credit_open(&peers[PEER], WINDOW);
    aq_mpi_am.lib = &fake_am;
    aq_mpi_am.peers = peers;
    aq_mpi_am.window = WINDOW;
    aq_job.rank = 0;
    aq_job.size = 2;
    aq_job.nbrhd_in_a_row = true;
    aq_job.nbrhd_size = 1;
    aq_job.local = &fake_local;
    aq_job.remote = &fake_remote;
    aq_job.bound = bounds;
    aq_limits.max_medium = AQ_MPI_MAX_MEDIUM;
    memset(&aq_mpi_coalesce, 0, sizeof(aq_mpi_coalesce));
    return aq_mpi_coalesce_init(64, 64);
}

static int stop(void **state)
{
    (void)state;
    aq_mpi_coalesce_fini();
    return 0;
}

/* --- the sender --- */

static void put(struct aq_op *op, unsigned word, size_t nbytes)
{
    uint64_t src[AQ_MPI_PUTS_MAX / 8] = { 0 };

    memset(src, (int)word % 251, sizeof(src));
    aq_mpi_coalesce_put(op, PEER, &segment[word], src, nbytes);
    memset(src, 0xff, sizeof(src)); /* the source is free on return */
}

/* As many batches as leave at once: further puts share one. */
#define BUSY AQ_MPI_COALESCE_AT_ONCE
static void busy(void)
{
    for (unsigned i = 0; i < BUSY; i++)
        put(&ops[OPS - 1], 1000 + i, 8);
    assert_int_equal(mpi.sends, BUSY);
}

static uint64_t missing_gets(unsigned op)
{
    return aq_counter_get(&ops[op].pending[AQ_CELL_GET - 1]);
}

static uint64_t missing(unsigned op)
{
    return aq_counter_get(&ops[op].pending[AQ_CELL_PUT - 1]);
}

static struct aq_mpi_message sent_to(unsigned i, unsigned handler)
{
    struct aq_mpi_message message;

    assert_true(i < mpi.sends);
    assert_true(aq_mpi_packet_decode(mpi.sent[i].packet, mpi.sent[i].nbytes, AQ_MPI_MAX_MEDIUM,
                                     AQ_MPI_MAX_LONG, &message));
    assert_int_equal(message.head.kind, AQ_AM_MEDIUM);
    assert_int_equal(message.head.handler, handler);
    return message;
}

static struct aq_mpi_message sent(unsigned i)
{
    return sent_to(i, AQ_HIDX_PUTS);
}

/* Checks that message i has just `count` puts, of nbytes each, from word `first` on. */
static void check_sent(unsigned i, unsigned first, unsigned count, size_t nbytes)
{
    const struct aq_mpi_message message = sent(i);
    struct aq_mpi_puts_one one = { 0 };
    unsigned k = 0;

    for (size_t at = 0; at < message.nbytes; k++) {
        assert_true(aq_mpi_puts_read(message.payload, message.nbytes, &at, &one));
        assert_ptr_equal(one.addr, &segment[first + k]);
        assert_int_equal(one.nbytes, nbytes);
        for (size_t b = 0; b < nbytes; b++)
            assert_int_equal((unsigned char)one.data[b], (first + k) % 251);
    }
    assert_int_equal(k, count);
}

static void answer(unsigned i)
{
    const struct aq_mpi_message message = sent(i);
    struct aq_token token = { .jobrank = PEER,
                              .handler = AQ_HIDX_PUTS_DONE,
                              .nargs = 2,
                              .kind = AQ_AM_SHORT,
                              .is_reply = true };

    aq_am_deliver_short(&token, message.args);
}

static void test_alone(void **state)
{
    (void)state;
    put(&ops[0], 5, 8);
    assert_int_equal(mpi.sends, 1); /* nothing is unanswered: it waits for no other */
    assert_int_equal(mpi.polls, 1); /* a request is followed by a poll */
    check_sent(0, 5, 1, 8);
    assert_false(aq_mpi_coalesce_is_pending());
    assert_int_equal(missing(0), 1);
    answer(0);
    assert_int_equal(missing(0), 0);
    put(&ops[0], 6, 8); /* nor is anything now */
    assert_int_equal(mpi.sends, 2);
    answer(1);
}

static void test_together(void **state)
{
    (void)state;
    busy();
    mpi.polls = 0;
    for (unsigned i = 1; i <= 100; i++)
        put(&ops[i % 2], i, 3);
    assert_int_equal(mpi.sends, BUSY);
    assert_true(mpi.polls >= 100 / 16); /* a rank that only puts serves others */
    assert_false(aq_mpi_coalesce_pace.keeps);
    assert_true(aq_mpi_coalesce_is_pending());
    aq_mpi_coalesce_flush();
    assert_false(aq_mpi_coalesce_is_pending());
    assert_int_equal(mpi.sends, BUSY + 1);
    check_sent(BUSY, 1, 100, 3);
    assert_int_equal(missing(0), 50);
    answer(BUSY);
    assert_int_equal(missing(0), 0);
    assert_int_equal(missing(1), 0);
    assert_int_equal(missing(OPS - 1), BUSY);
    answer(0);
    assert_int_equal(missing(OPS - 1), BUSY - 1);
    aq_mpi_coalesce_flush(); /* nothing waits */
    assert_int_equal(mpi.sends, BUSY + 1);
}

static void test_full(void **state)
{
    const unsigned each = AQ_MPI_PUTS_BATCH / 16;

    (void)state;
    busy();
    for (unsigned i = 1; i <= each + 1; i++)
        put(&ops[0], i, 8);
    assert_int_equal(mpi.sends, BUSY + 1); /* one more than fits: the others have left */
    check_sent(BUSY, 1, each, 8);
    assert_true(aq_mpi_coalesce_is_pending());
    aq_mpi_coalesce_flush();
    check_sent(BUSY + 1, each + 1, 1, 8);
    for (unsigned i = 0; i < BUSY + 2; i++)
        answer(i);
    assert_int_equal(missing(0), 0);
}

/* Operations of more threads or regions than a batch counts. */
static void test_operations(void **state)
{
    (void)state;
    for (unsigned i = 0; i < OPS; i++)
        put(&ops[i], i, 8);
    aq_mpi_coalesce_flush();
    assert_true(mpi.sends > 2);
    for (unsigned i = 0; i < mpi.sends; i++)
        answer(i);
    for (unsigned i = 0; i < OPS; i++)
        assert_int_equal(missing(i), 0);
}

/* Without credit a batch stays, and a put that finds it full waits in polls. */
static void test_no_credit(void **state)
{
    const unsigned each = AQ_MPI_PUTS_BATCH / 16;

    (void)state;
    busy();
    aq_mpi_credit_spend(&peers[PEER], WINDOW - BUSY);
    for (unsigned i = 1; i <= each; i++)
        put(&ops[0], i, 8);
    aq_mpi_coalesce_flush();
    assert_int_equal(mpi.sends, BUSY);
    assert_true(aq_mpi_coalesce_is_pending());
    mpi.credit_at_poll = 32;
    put(&ops[0], each + 1, 8);
    assert_int_equal(mpi.credit_at_poll, 0);
    assert_int_equal(mpi.sends, BUSY + 1);
    check_sent(BUSY, 1, each, 8);
    aq_mpi_coalesce_flush();
    assert_int_equal(mpi.sends, BUSY + 2);
    assert_int_equal(missing(0), each + 1);
}

/* What cannot be sent at the end of the job is dropped. */
static void test_drop(void **state)
{
    (void)state;
    busy();
    aq_mpi_credit_spend(&peers[PEER], WINDOW - BUSY);
    put(&ops[0], 1, 8);
    aq_mpi_coalesce_flush();
    assert_true(aq_mpi_coalesce_is_pending());
    assert_false(aq_mpi_coalesce.dropped);
    aq_mpi_coalesce_drop();
    assert_false(aq_mpi_coalesce_is_pending());
    assert_true(aq_mpi_coalesce.dropped);
    aq_mpi_coalesce_flush();
    assert_int_equal(mpi.sends, BUSY);
}

/* A put that comes long after the one before is followed by a poll that sends it. */
static void test_pace(void **state)
{
    (void)state;
    busy();
    put(&ops[0], 1, 8);
    mpi.polls = mpi.flushes = 0;
    usleep(100);
    put(&ops[0], 2, 8);
    assert_int_equal(mpi.polls, 1);
    assert_int_equal(mpi.flushes, 1);
}

static void test_fits(void **state)
{
    (void)state;
    assert_true(aq_mpi_coalesce_fits(64, segment, 64, 0));
    assert_false(aq_mpi_coalesce_fits(64, segment, 65, 0));
    assert_false(aq_mpi_coalesce_fits(64, segment, 8, GEX_FLAG_IMMEDIATE));
    assert_false(aq_mpi_coalesce_fits(64, (void *)(UINTPTR_MAX / 256 + 1), 8, 0));
    assert_true(aq_mpi_coalesce_fits(SIZE_MAX, segment, AQ_MPI_PUTS_MAX, 0));
    assert_false(aq_mpi_coalesce_fits(SIZE_MAX, segment, AQ_MPI_PUTS_MAX + 1, 0));
    assert_false(aq_mpi_coalesce_fits(0, segment, 1, 0)); /* GASNET_MPI_COALESCE=0 */
}

/* Lengths that stand beside the address, and longer ones. */
static void test_lengths(void **state)
{
    static const size_t lengths[] = { 1, 248, 255, 256, 511, 512, AQ_MPI_PUTS_MAX };

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        put(&ops[0], 3, lengths[i]);
        check_sent((unsigned)i, 3, 1, lengths[i]);
        answer((unsigned)i);
    }
    assert_int_equal(missing(0), 0);
}

/* The answer to message i: what a target with these words has. */
static void answer_gets(unsigned i, const void *data, size_t nbytes)
{
    const struct aq_mpi_message message = sent_to(i, AQ_HIDX_GETS);
    struct aq_am_in in = { .token = { .jobrank = PEER,
                                      .handler = AQ_HIDX_GETS_DATA,
                                      .nargs = 2,
                                      .kind = AQ_AM_MEDIUM,
                                      .is_reply = true },
                           .args = message.args,
                           .payload = (void *)(uintptr_t)data,
                           .nbytes = nbytes };

    aq_am_deliver(&in);
}

/* Gets share messages as puts do, of their own, and each gets its part of the answer. */
static void test_gets(void **state)
{
    uint64_t data[3] = { 100, 200, 300 }, word = 0, pair[2] = { 0 };

    (void)state;
    busy();
    aq_mpi_coalesce_get(&ops[0], PEER, &word, &segment[5], 8);
    aq_mpi_coalesce_get(&ops[1], PEER, pair, &segment[7], 12);
    put(&ops[0], 9, 8);
    assert_int_equal(mpi.sends, BUSY);
    assert_int_equal(missing_gets(0), 1);
    aq_mpi_coalesce_flush();
    assert_int_equal(mpi.sends, BUSY + 2);
    check_sent(BUSY, 9, 1, 8);
    answer_gets(BUSY + 1, data, sizeof(data));
    assert_int_equal(word, 100);
    assert_int_equal(pair[0], 200);
    assert_int_equal((uint32_t)pair[1], 300);
    assert_int_equal(pair[1] >> 32, 0); /* 12 bytes */
    assert_int_equal(missing_gets(0), 0);
    assert_int_equal(missing_gets(1), 0);
    assert_int_equal(missing(0), 1);
}

/* As many gets as a message asks for, by number and by bytes; one more is for the next. */
static void test_gets_full(void **state)
{
    static const struct {
        size_t nbytes;
        unsigned fit;
    } all[] = { { 8, 64 }, { 512, AQ_MPI_PUTS_BATCH / 512 } };
    static char dest[AQ_MPI_PUTS_BATCH];

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        mpi.sends = 0;
        busy();
        for (unsigned k = 0; k <= all[i].fit; k++)
            aq_mpi_coalesce_get(&ops[0], PEER, dest, &segment[5], all[i].nbytes);
        assert_int_equal(mpi.sends, BUSY + 1);
        answer_gets(BUSY, dest, all[i].fit * all[i].nbytes);
        assert_int_equal(missing_gets(0), 1);
        aq_mpi_coalesce_flush();
        answer_gets(BUSY + 1, dest, all[i].nbytes);
        assert_int_equal(missing_gets(0), 0);
        for (unsigned k = 0; k < BUSY; k++)
            answer(k);
    }
}

static void answer_short(void *arg)
{
    uint64_t word = 0;

    (void)arg;
    aq_mpi_coalesce_get(&ops[0], PEER, &word, &segment[5], 8);
    answer_gets(0, &word, 0);
}

static void test_false_answer(void **state)
{
    struct aq_unit_result result;

    (void)state;
    aq_unit_run(answer_short, NULL, &result);
    aq_unit_contains(result.err, "mpi: rank 1 sent answers to gets that are not in this library's");
    assert_int_equal(aq_unit_exit_code(&result), AQ_LOG_FATAL_STATUS);
}

/* --- the receiver --- */

static void deliver(uint8_t handler, char *payload, size_t nbytes)
{
    const gex_AM_Arg_t args[] = { 11, 12 };
    struct aq_am_in in = {
        .token = { .jobrank = PEER, .handler = handler, .nargs = 2, .kind = AQ_AM_MEDIUM },
        .args = args,
        .payload = payload,
        .nbytes = nbytes
    };

    aq_am_deliver(&in);
}

static void test_stores(void **state)
{
    _Alignas(16) char payload[48 + 16];

    (void)state;
    aq_mpi_puts_write(payload, segment, "12345678", 8);
    aq_mpi_puts_write(payload + 16, (char *)segment + 8, "abc", 3);
    aq_mpi_puts_write(payload + 32, (char *)segment + sizeof(segment) - 20, "an end of 20 bytes..",
                      20);
    deliver(AQ_HIDX_PUTS, payload, 64);
    assert_memory_equal(segment, "12345678abc\0", 12);
    assert_memory_equal((char *)segment + sizeof(segment) - 20, "an end of 20 bytes..", 20);
    assert_int_equal(mpi.replies, 1);
}

static void test_fetches(void **state)
{
    _Alignas(16) char payload[64];
    char *at = payload;

    (void)state;
    segment[3] = 33;
    memset(&segment[10], 7, 300);
    at = aq_mpi_puts_write_head(at, &segment[3], 8);
    at = aq_mpi_puts_write_head(at, &segment[10], 300);
    deliver(AQ_HIDX_GETS, payload, (size_t)(at - payload));
    assert_int_equal(mpi.replies, 1);
    assert_int_equal(reply_bytes, 8 + 304);
    assert_memory_equal(reply_data, &segment[3], 8);
    assert_memory_equal(reply_data + 8, &segment[10], 300);
}

struct false_puts {
    char *dest;
    size_t nbytes, len; /* of the put; of the payload */
};

static void deliver_false(void *arg)
{
    const struct false_puts *puts = arg;
    _Alignas(16) char payload[512] = "";

    aq_mpi_puts_write(payload, puts->dest, payload + 256, puts->nbytes);
    deliver(AQ_HIDX_PUTS, payload, puts->len);
}

static void deliver_false_gets(void *arg)
{
    const struct false_puts *gets = arg;
    _Alignas(16) char payload[512] = "";

    for (size_t at = 0; at < gets->len; at += AQ_MPI_PUTS_WORD)
        aq_mpi_puts_write_head(payload + at, gets->dest, gets->nbytes);
    deliver(AQ_HIDX_GETS, payload, gets->len);
}

static void check_ends_by(void (*deliver_them)(void *), struct false_puts puts, const char *says)
{
    struct aq_unit_result result;

    aq_unit_run(deliver_them, &puts, &result);
    aq_unit_contains(result.err, says);
    assert_int_equal(aq_unit_exit_code(&result), AQ_LOG_FATAL_STATUS);
}

static void check_ends(struct false_puts puts, const char *says)
{
    check_ends_by(deliver_false, puts, says);
}

static void test_false_gets(void **state)
{
    const char *form = "mpi: rank 1 sent gets that are not in this library's form";
    char *begin = (char *)segment;

    (void)state;
    check_ends_by(deliver_false_gets, (struct false_puts){ begin, 8, 15 }, form);
    check_ends_by(deliver_false_gets, (struct false_puts){ begin, 248, 16 * 8 },
                  form); /* too much */
    check_ends_by(deliver_false_gets, (struct false_puts){ begin + sizeof(segment), 8, 8 },
                  "rank 1 asked for a get of [");
}

static void test_false(void **state)
{
    const char *form = "mpi: rank 1 sent puts that are not in this library's form";
    char *end = (char *)(segment + 1024);

    (void)state;
    check_ends((struct false_puts){ (char *)segment, 0, 8 }, form);
    check_ends((struct false_puts){ (char *)segment, 8, 15 }, form);
    check_ends((struct false_puts){ (char *)segment, 8, 7 }, form);
    check_ends((struct false_puts){ (char *)segment, 8, 17 }, form);
    check_ends((struct false_puts){ (char *)segment, 248, 248 }, form);
    check_ends((struct false_puts){ end - 7, 8, 16 }, "rank 1 asked for a put of [");
    check_ends((struct false_puts){ end, 1, 16 }, "which is not inside a segment");
}

#define OF(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_alone),     OF(test_together),     OF(test_full),    OF(test_operations),
        OF(test_no_credit), OF(test_fits),         OF(test_stores),  OF(test_false),
        OF(test_drop),      OF(test_pace),         OF(test_lengths), OF(test_gets),
        OF(test_gets_full), OF(test_false_answer), OF(test_fetches), OF(test_false_gets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
