/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_coalesce.c - coalescing of the mpi conduit over an MPI that keeps what it is given:
 * which puts share a message, when the message leaves, what its reply completes; what its receiver
 * stores, and what ends the receiver's job.
 */
#include "tests/unit/aq_unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_choose.h"
#include "conduits/mpi/aq_mpi_coalesce.h"
#include "conduits/mpi/aq_mpi_lock.h"
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
static const struct aq_conduit_ops fake_remote = { .am_short = fake_short };
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
    memset(&aq_mpi_coalesce, 0, sizeof(aq_mpi_coalesce));
    return aq_mpi_coalesce_init(64);
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

static uint64_t missing(unsigned op)
{
    return aq_counter_get(&ops[op].pending[AQ_CELL_PUT - 1]);
}

static struct aq_mpi_message sent(unsigned i)
{
    struct aq_mpi_message message;

    assert_true(i < mpi.sends);
    assert_true(aq_mpi_packet_decode(mpi.sent[i].packet, mpi.sent[i].nbytes, AQ_MPI_MAX_MEDIUM,
                                     AQ_MPI_MAX_LONG, &message));
    assert_int_equal(message.head.kind, AQ_AM_MEDIUM);
    assert_int_equal(message.head.handler, AQ_HIDX_PUTS);
    return message;
}

/* Checks that message i has just `count` puts, of nbytes each, from word `first` on. */
static void check_sent(unsigned i, unsigned first, unsigned count, size_t nbytes)
{
    const struct aq_mpi_message message = sent(i);
    struct aq_mpi_puts_one one = { 0 };
    unsigned k = 0;

    for (size_t at = 0; at < message.nbytes; k++) {
        assert_true(aq_mpi_puts_read(message.payload, message.nbytes, &at, &one));
        assert_ptr_equal(one.dest, &segment[first + k]);
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

static void test_takes(void **state)
{
    static const struct aq_op_kind explicit = { .name = "explicit" };
    const struct aq_op nb = { .kind = &explicit };

    (void)state;
    assert_true(aq_mpi_coalesce_takes(&ops[0], segment, aq_mpi_coalesce.max, 0));
    assert_false(aq_mpi_coalesce_takes(&ops[0], segment, aq_mpi_coalesce.max + 1, 0));
    assert_false(aq_mpi_coalesce_takes(&ops[0], segment, 8, GEX_FLAG_IMMEDIATE));
    assert_false(aq_mpi_coalesce_takes(&nb, segment, 8, 0));
    assert_false(aq_mpi_coalesce_takes(&ops[0], (void *)(UINTPTR_MAX / 256 + 1), 8, 0));
    aq_mpi_coalesce.max = 0; /* GASNET_MPI_COALESCE=0 */
    assert_false(aq_mpi_coalesce_takes(&ops[0], segment, 1, 0));
}

struct settings {
    const char *rma, *put_from, *direct, *coalesce;
    size_t max;
};

static void set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Exits with 0 if max follows from the settings. */
static void check_settings(void *arg)
{
    const struct settings *s = arg;

    set("GASNET_MPI_RMA", s->rma);
    set("GASNET_MPI_PUT_FROM", s->put_from);
    set("GASNET_MPI_DIRECT", s->direct);
    set("GASNET_MPI_COALESCE", s->coalesce);
    aq_env_init();
    _exit(aq_mpi_choose_coalesced() == s->max ? 0 : 1);
}

/* Another way that the user has asked for wins, unless the user has asked for coalescing too. */
static void test_settings(void **state)
{
    static const struct settings all[] = {
        { NULL, NULL, NULL, NULL, 64 },       { "messages", NULL, NULL, NULL, 64 },
        { "window", NULL, NULL, NULL, 0 },    { "window", NULL, NULL, "64", 64 },
        { "window", "32", NULL, NULL, 31 },   { NULL, "4096", NULL, NULL, 64 },
        { NULL, "0", NULL, NULL, 0 },         { NULL, "0", NULL, "8", 8 },
        { "messages", NULL, "1", NULL, 0 },   { "messages", NULL, "1", "248", 248 },
        { "messages", "32", "16", NULL, 15 }, { NULL, NULL, NULL, "0", 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct settings one = all[i];
        struct aq_unit_result result;

        aq_unit_run(check_settings, &one, &result);
        assert_int_equal(aq_unit_exit_code(&result), 0);
    }
}

/* --- the receiver --- */

static void deliver(char *payload, size_t nbytes)
{
    const gex_AM_Arg_t args[] = { 11, 12 };
    struct aq_am_in in = {
        .token = { .jobrank = PEER, .handler = AQ_HIDX_PUTS, .nargs = 2, .kind = AQ_AM_MEDIUM },
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
    deliver(payload, 64);
    assert_memory_equal(segment, "12345678abc\0", 12);
    assert_memory_equal((char *)segment + sizeof(segment) - 20, "an end of 20 bytes..", 20);
    assert_int_equal(mpi.replies, 1);
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
    deliver(payload, puts->len);
}

static void check_ends(struct false_puts puts, const char *says)
{
    struct aq_unit_result result;

    aq_unit_run(deliver_false, &puts, &result);
    aq_unit_contains(result.err, says);
    assert_int_equal(aq_unit_exit_code(&result), 1);
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
        OF(test_alone),     OF(test_together), OF(test_full),   OF(test_operations),
        OF(test_no_credit), OF(test_takes),    OF(test_stores), OF(test_false),
        OF(test_settings),  OF(test_drop),     OF(test_pace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
