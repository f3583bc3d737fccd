/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_in.c - the receiving half of the mpi conduit over an MPI that hands it what a test says:
 * messages run and are paid for, and what a broken or ill-meaning rank may send ends the job with a
 * message that names the rank and the reason, before anything in it was followed.
 */
#include "tests/unit/aq_unit.h"
#include "tests/unit/mpi_am_unit.h"

#include <stdio.h>
#include <string.h>

#include "base/aq_log.h"
#include "conduits/mpi/aq_mpi_am_in.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_am.h"
#include "core/aq_job.h"

#define SENDER       1u
#define WINDOW       64u
#define HANDLER      200u
#define FALSE_PACKET "mpi: rank 1 sent a packet that is not one of this library's: "

/* --- an MPI --- */

static struct {
    struct aq_mpi_arrival arrival; /* what the next look finds, */
    bool remote_addr;
    int error;           /* or comes to */
    void *payload_owner; /* of the receives for a payload that is under way */
    void *payload_dest;
    size_t payload_bytes, missing; /* of which so many will not come */
    unsigned receives;             /* of the payload, each directly behind the one before */
    size_t frag_bytes;             /* of each but the last */
    unsigned restarts, sends, payloads;
    size_t payload_sent;     /* bytes, in payloads */
    struct aq_mpi_head sent; /* the last packet's */
    uint32_t tag;
    unsigned looks; /* that the last poll was to take */
} mpi;

static int fake_take(unsigned channels, unsigned looks, struct aq_mpi_arrival *arrival_out)
{
    mpi.looks = looks == 0 ? mpi.looks : looks; /* 0: at every slot */
    if (mpi.error != 0)
        return -mpi.error;
    if (!mpi.remote_addr || (channels & 1u << mpi.arrival.channel) == 0)
        return 0;
    mpi.remote_addr = false;
    *arrival_out = mpi.arrival;
    return 1;
}

static int fake_restart(enum aq_mpi_channel ring, uint32_t slot)
{
    (void)ring, (void)slot;
    mpi.restarts++;
    return 0;
}

static int fake_send(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                     void *owner)
{
    (void)channel, (void)owner;
    assert_int_equal(dest, SENDER);
    assert_true(nbytes >= AQ_MPI_HEAD);
    mpi.sent = aq_mpi_head_get(packet);
    mpi.sends++;
    return AQ_MPI_DONE;
}

static int fake_receive_payload(enum aq_mpi_channel channel, uint32_t source, uint32_t tag,
                                void *dest, size_t nbytes, void *owner)
{
    (void)channel;
    assert_int_equal(source, SENDER);
    if (mpi.payload_owner == NULL) {
        mpi.tag = tag;
        mpi.payload_dest = dest;
        mpi.payload_bytes = mpi.receives = 0;
        mpi.payload_owner = owner;
        mpi.frag_bytes = nbytes;
    }
    assert_int_equal(tag, mpi.tag);
    assert_ptr_equal(owner, mpi.payload_owner);
    assert_ptr_equal(dest, (char *)mpi.payload_dest + mpi.payload_bytes);
    assert_true(nbytes <= mpi.frag_bytes);
    mpi.payload_bytes += nbytes;
    mpi.receives++;
    return AQ_MPI_BEGUN;
}

static uint32_t fake_pending(void)
{
    return mpi.payload_owner != NULL;
}

static int fake_completes(struct aq_mpi_completion *out, uint32_t max)
{
    size_t left = mpi.payload_bytes;
    void *owner = mpi.payload_owner;

    if (owner == NULL)
        return 0;
    assert_true(mpi.receives <= max);
    memset(mpi.payload_dest, 0x77, mpi.payload_bytes);
    mpi.payload_owner = NULL;
    for (unsigned i = 0; i < mpi.receives; i++) {
        const size_t nbytes = left < mpi.frag_bytes ? left : mpi.frag_bytes;

        left -= nbytes;
        out[i] = (struct aq_mpi_completion){ .owner = owner,
                                             .nbytes = nbytes - (left == 0 ? mpi.missing : 0) };
    }
    return (int)mpi.receives;
}

static void fake_text(int error, char *text, size_t len)
{
    snprintf(text, len, "error number %d", error);
}

static const struct aq_mpi_lib_am fake_am = {
    .slots = AQ_MPI_SLOTS,
    .take = fake_take,
    .restart = fake_restart,
    .send = fake_send,
    .receive_payload = fake_receive_payload,
    .pending = fake_pending,
    .completes = fake_completes,
};
static const struct aq_spawn_mpi_lib fake_job = { .text = fake_text };
static const struct aq_mpi_lib fake_lib = { .version = AQ_MPI_LIB_VERSION, .job = &fake_job };

/* --- a receiver --- */

static _Alignas(64) char slots[AQ_MPI_CHANNELS][AQ_MPI_SLOTS * AQ_MPI_RING_STRIDE];
static char segment[1 << 16];
static struct aq_bound bounds[2];
static struct aq_mpi_peer peers[2];

/* what the handler saw last */
static struct {
    unsigned times;
    gex_AM_Arg_t first;
    size_t nbytes;
    const void *payload;
    unsigned char last_byte;
} seen;

static void on_short(gex_Token_t token, gex_AM_Arg_t first)
{
    (void)token;
    seen.times++;
    seen.first = first;
}

static void on_payload(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t first)
{
    (void)token;
    seen.times++;
    seen.first = first;
    seen.payload = buf;
    seen.nbytes = nbytes;
    seen.last_byte = nbytes == 0 ? 0 : ((unsigned char *)buf)[nbytes - 1];
}

static int start(void **state)
{
    (void)state;
    memset(&mpi, 0, sizeof(mpi));
    memset(&seen, 0, sizeof(seen));
    mpi_am_start(&fake_am, &fake_lib, peers, WINDOW);
    for (unsigned channel = 0; channel < AQ_MPI_CHANNELS; channel++)
        aq_mpi_am.rings.ring[channel].memory = slots[channel];
    aq_mpi_am.rings.low = AQ_MPI_SLOTS / 2;
    aq_mpi_am.rings.lib = &fake_am;
    bounds[0] = (struct aq_bound){ segment, sizeof(segment) };
    aq_job.bound = bounds;
    aq_job.ep.entry[HANDLER] =
        (gex_AM_Entry_t){ .gex_flags = AQ_AM_ANY_KIND, .gex_nargs = AQ_AM_ANY_NARGS };
    aq_limits.max_medium = AQ_MPI_MAX_MEDIUM;
    aq_limits.max_long = AQ_MPI_MAX_LONG;
    return 0;
}

/* A packet of len bytes has come in a slot of the channel's. */
static char *arrive(enum aq_mpi_channel channel, size_t len)
{
    static uint32_t turn;

    mpi.arrival = (struct aq_mpi_arrival){ .channel = (uint16_t)channel,
                                           .ring = (uint16_t)channel,
                                           .slot = turn++ % AQ_MPI_SLOTS,
                                           .source = SENDER,
                                           .nbytes = (uint32_t)len };
    mpi.remote_addr = true;
    return slots[channel] + (size_t)mpi.arrival.slot * AQ_MPI_RING_STRIDE;
}

static void arrive_short(enum aq_mpi_channel channel, gex_AM_Arg_t arg)
{
    char *packet = arrive(channel, AQ_MPI_HEAD + 4);

    aq_job.ep.handler[HANDLER] = (gex_AM_Fn_t)on_short;
    aq_mpi_head_put(packet,
                    (struct aq_mpi_head){ .kind = AQ_AM_SHORT, .handler = HANDLER, .nargs = 1 });
    aq_mpi_packet_put_args(packet, 1, &arg);
}

/* A packet that announces a payload, and has the first `eager` bytes of it. */
static void arrive_payload(uint8_t kind, void *dest, size_t nbytes, uint32_t tag, size_t eager)
{
    static char src[AQ_MPI_INLINE];
    const gex_AM_Arg_t arg = 41;
    const struct aq_am_out out = { .kind = kind,
                                   .handler = HANDLER,
                                   .nargs = 1,
                                   .args = &arg,
                                   .src = src,
                                   .nbytes = nbytes,
                                   .dest = dest };
    char *packet = arrive(AQ_MPI_REQUEST, 0);

    memset(src, 0x66, sizeof(src));
    aq_job.ep.handler[HANDLER] = (gex_AM_Fn_t)on_payload;
    mpi.arrival.nbytes = (uint32_t)aq_mpi_packet_encode(packet, &out, 0, 0, tag, eager);
}

/* The payload is in the packet, if it fits. */
static void arrive_message(uint8_t kind, void *dest, size_t nbytes, uint32_t tag)
{
    const bool fits = aq_mpi_packet_fits(nbytes);

    arrive_payload(kind, dest, nbytes, fits ? 0 : tag, fits ? nbytes : 0);
}

/* Bytes before the payload of these packets. */
#define AQ_MPI_PREFIX 32u

/* The packet of a payload that is split: it is as long as MPI sends eagerly. */
static void arrive_split(uint8_t kind, void *dest, size_t nbytes)
{
    assert_int_equal(aq_mpi_packet_payload(kind, 1), AQ_MPI_PREFIX);
    arrive_payload(kind, dest, nbytes, 1, AQ_MPI_EAGER - AQ_MPI_PREFIX);
}

/* --- what is right --- */

static void test_short(void **state)
{
    (void)state;
    arrive_short(AQ_MPI_REQUEST, -5);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(seen.times, 1);
    assert_int_equal(seen.first, -5);
    assert_int_equal(peers[SENDER].in.limit, 1);
    arrive_short(AQ_MPI_REPLY, INT32_MAX);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, true, false), 1);
    assert_int_equal(seen.first, INT32_MAX);
    assert_int_equal(peers[SENDER].in.limit, 1); /* a reply is not paid for */
    arrive_short(AQ_MPI_REQUEST, 0);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, true, false),
                     0); /* no request for who can take replies only */
    assert_int_equal(seen.times, 2);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(seen.times, 3);
    for (unsigned idle = 0; idle < 3; idle++)
        assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 0);
    assert_int_equal(mpi.restarts, 3); /* every slot is MPI's again */
}

/* Sends a request and polls once: returns true if that poll calls MPI. */
static bool looks_after_request(enum aq_poll_kind kind)
{
    bool looks;

    aq_mpi_am_batch.sent++;
    aq_mpi_am_batch.just_sent = true;
    looks = !aq_mpi_am_is_skipped(kind);
    if (looks)
        (void)aq_mpi_am_poll(&aq_mpi_am, kind == AQ_POLL_REPLIES, false);
    return looks;
}

static void test_polls_left_out(void **state)
{
    (void)state;
    (void)aq_mpi_am_poll(&aq_mpi_am, false, false);
    for (unsigned bunch = 0; bunch < 3; bunch++) {
        for (unsigned i = 1; i < AQ_MPI_BATCH; i++)
            assert_false(looks_after_request(AQ_POLL_OF_SEND));
        assert_true(looks_after_request(AQ_POLL_OF_SEND));
    }
    assert_false(looks_after_request(AQ_POLL_OF_SEND));
    /* no request in between: somebody waits */
    assert_false(aq_mpi_am_is_skipped(AQ_POLL_OF_SEND));
    assert_false(aq_mpi_am_is_skipped(AQ_POLL_OF_SEND));
    assert_true(looks_after_request(AQ_POLL_ALL)); /* a poll of the client's own */
    for (unsigned i = 0; i < 2 * AQ_MPI_BATCH; i++)
        assert_true(looks_after_request(
            AQ_POLL_REPLIES)); /* nor may who waits with a reply be kept waiting */
}

static void test_payloads(void **state)
{
    (void)state;
    arrive_message(AQ_AM_MEDIUM, NULL, 100, 0);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(seen.nbytes, 100);
    assert_int_equal(seen.last_byte, 0x66);
    arrive_message(AQ_AM_LONG, segment + sizeof(segment) - 100, 100, 0); /* the last that fit */
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_ptr_equal(seen.payload, segment + sizeof(segment) - 100);
    assert_int_equal(seen.last_byte, 0x66);
    arrive_message(AQ_AM_LONG, segment, sizeof(segment),
                   AQ_MPI_TAGS); /* by itself, straight to its place */
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_ptr_equal(mpi.payload_dest, segment);
    assert_int_equal(mpi.tag, AQ_MPI_TAGS);
    assert_int_equal(seen.nbytes, sizeof(segment));
    assert_int_equal(seen.last_byte, 0x77);
    arrive_message(AQ_AM_MEDIUM, NULL, AQ_MPI_MAX_MEDIUM, 1);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(seen.nbytes, AQ_MPI_MAX_MEDIUM);
    assert_int_equal(seen.last_byte, 0x77);
    assert_int_equal(seen.times, 4);
    assert_int_equal(peers[SENDER].in.limit, 2 * aq_mpi_credit_cost(100)
                                                 + aq_mpi_credit_cost(sizeof(segment))
                                                 + aq_mpi_credit_cost(AQ_MPI_MAX_MEDIUM));
}

/* The payload is at its destination already: the handler runs in the poll that takes the packet. */
static void test_placed(void **state)
{
    (void)state;
    segment[2 * AQ_MPI_INLINE] = 0x55;
    arrive_message(AQ_AM_LONG, segment + 1, 2 * AQ_MPI_INLINE, AQ_MPI_PLACED);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_null(mpi.payload_dest); /* nothing is received */
    assert_int_equal(seen.times, 1);
    assert_ptr_equal(seen.payload, segment + 1);
    assert_int_equal(seen.last_byte, 0x55);
    assert_int_equal(peers[SENDER].in.limit, aq_mpi_credit_cost(2 * AQ_MPI_INLINE));
}

/* Several tests of MPI in a poll that follows one without a message, unless something else may have
 * come. */
static void test_looks(void **state)
{
    (void)state;
    arrive_short(AQ_MPI_REQUEST, 0);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 0);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 0);
    assert_true(mpi.looks > 2);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, true), 0);
    assert_int_equal(mpi.looks, 2);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 0);
    assert_true(mpi.looks > 2);
    aq_mpi_am.coming[AQ_MPI_REPLY] = 1;
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 0);
    assert_int_equal(mpi.looks, 2);
    aq_mpi_am.coming[AQ_MPI_REPLY] = 0;
}

/* As much of a payload as MPI sends eagerly is in the packet, the rest comes by itself. */
static void test_split(void **state)
{
    const size_t nbytes = 3 * AQ_MPI_EAGER + 1000;

    (void)state;
    arrive_split(AQ_AM_MEDIUM, NULL, nbytes);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(mpi.payload_bytes, nbytes - (AQ_MPI_EAGER - AQ_MPI_PREFIX));
    assert_int_equal(mpi.receives, 3);
    assert_int_equal(mpi.frag_bytes, AQ_MPI_EAGER);
    assert_int_equal(seen.nbytes, nbytes);
    assert_int_equal(((const char *)seen.payload)[AQ_MPI_EAGER - AQ_MPI_PREFIX - 1], 0x66);
    assert_int_equal(((const char *)seen.payload)[AQ_MPI_EAGER - AQ_MPI_PREFIX], 0x77);
    assert_int_equal(seen.last_byte, 0x77);
    arrive_split(AQ_AM_LONG, segment + 8, nbytes);
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_ptr_equal(seen.payload, segment + 8);
    assert_int_equal(segment[7 + nbytes], 0x77);
    assert_int_equal(seen.times, 2);
}

/* Half a window of requests to a rank that sends nothing else back: it sends one credit message. */
static void test_credit_is_reported(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= WINDOW; i++) {
        arrive_short(AQ_MPI_REQUEST, 0);
        assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
        assert_int_equal(mpi.sends, i / (WINDOW / 2));
    }
    assert_int_equal(mpi.sent.kind, AQ_MPI_CREDIT);
    assert_int_equal(mpi.sent.done, WINDOW);
    assert_int_equal(mpi.sent.messages, WINDOW);
}

/* Two ranks with other windows: each keeps to its own, and takes what the other advertises. */
static void test_credit_windows(void **state)
{
    const uint32_t windows[] = { AQ_MPI_WINDOW_MIN, AQ_MPI_WINDOW_MIN + 19 };
    struct aq_mpi_peer peer[2] = { { .tag = { 0 } },
                                   { .tag = { 0 } } }; /* as each sees the other */

    (void)state;
    for (unsigned rank = 0; rank < 2; rank++)
        aq_mpi_credit_open(&peer[rank], windows[rank]);
    for (unsigned round = 0; round < 1000; round++)
        for (unsigned rank = 0; rank < 2; rank++) {
            uint32_t sent = 0, done;
            uint16_t messages;

            for (; aq_mpi_credit_has(&peer[rank], 1); sent++) {
                aq_mpi_credit_spend(&peer[rank], 1);
                aq_mpi_credit_done(&peer[!rank], 1);
            }
            assert_int_equal(sent, windows[rank]);
            assert_true(aq_mpi_credit_due(&peer[!rank], windows[!rank]));
            aq_mpi_credit_advertise(&peer[!rank], &done, &messages);
            assert_true(aq_mpi_credit_take(&peer[rank], windows[rank], done, messages));
        }
}

/* --- what is wrong --- */

/* The poll that finds it ends the process, and says so. */
static void poll_once(void *arg)
{
    (void)arg;
    (void)aq_mpi_am_poll(&aq_mpi_am, false, false);
}

static void check_ends(const char *says)
{
    struct aq_unit_result result;

    aq_unit_run(poll_once, NULL, &result);
    aq_unit_contains(result.err, "FATAL ERROR");
    aq_unit_contains(result.err, says);
    assert_int_equal(aq_unit_exit_code(&result), AQ_LOG_FATAL_STATUS);
}

static void test_false_heads(void **state)
{
    (void)state;
    for (size_t len = 0; len < AQ_MPI_HEAD; len++) {
        memset(arrive(AQ_MPI_REQUEST, len), 0, AQ_MPI_HEAD);
        check_ends(FALSE_PACKET "its length or kind");
    }
    arrive_short(AQ_MPI_REQUEST, 1);
    mpi.arrival.nbytes--;
    check_ends(FALSE_PACKET "its length or kind");
    arrive_short(AQ_MPI_REPLY, 1);
    mpi.arrival.nbytes++;
    check_ends(FALSE_PACKET "its length or kind");
    aq_mpi_head_put(arrive(AQ_MPI_REQUEST, AQ_MPI_HEAD + 4 * 17),
                    (struct aq_mpi_head){ .kind = AQ_AM_SHORT, .nargs = 17 });
    check_ends(FALSE_PACKET "its length or kind");
    arrive_message(AQ_AM_MEDIUM, NULL, AQ_MPI_MAX_MEDIUM + 1, 1);
    check_ends(FALSE_PACKET "its length or kind");
    arrive_message(AQ_AM_LONG, segment, AQ_MPI_MAX_LONG + 1, 1);
    check_ends(FALSE_PACKET "its length or kind");
    arrive_message(AQ_AM_LONG, segment, AQ_MPI_INLINE + 1, 0); /* no tag */
    check_ends(FALSE_PACKET "its length or kind");
    arrive_message(AQ_AM_MEDIUM, NULL, AQ_MPI_INLINE + 1, AQ_MPI_PLACED); /* where to? */
    check_ends(FALSE_PACKET "its length or kind");
}

static void test_false_credit(void **state)
{
    char *packet;

    (void)state;
    packet = arrive(AQ_MPI_REPLY, AQ_MPI_HEAD);
    aq_mpi_head_put(packet,
                    (struct aq_mpi_head){ .kind = AQ_MPI_CREDIT, .done = 1, .messages = 1 });
    check_ends(FALSE_PACKET "credit for requests that were not sent");
    aq_mpi_credit_spend(&peers[SENDER], 1); /* now it was */
    assert_int_equal(aq_mpi_am_poll(&aq_mpi_am, false, false), 1);
    assert_int_equal(peers[SENDER].out.limit, WINDOW + 1);
    assert_int_equal(peers[SENDER].handled, 1);
}

static void test_false_places(void **state)
{
    static const struct {
        ptrdiff_t offset;
        size_t nbytes;
    } cases[] = {
        { -1, 1 },
        { sizeof(segment), 1 },
        { sizeof(segment) - 99, 100 },
        { -1, AQ_MPI_INLINE + 1 },
        { sizeof(segment) - AQ_MPI_INLINE, AQ_MPI_INLINE + 1 },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        arrive_message(AQ_AM_LONG, (char *)((uintptr_t)segment + (uintptr_t)cases[i].offset),
                       cases[i].nbytes, 1);
        check_ends("rank 1 sent a long message to [");
    }
    arrive_message(AQ_AM_LONG, segment + sizeof(segment) - AQ_MPI_INLINE, AQ_MPI_INLINE + 1,
                   AQ_MPI_PLACED);
    check_ends("rank 1 sent a long message to [");
    arrive_message(AQ_AM_LONG, (void *)UINTPTR_MAX, AQ_MPI_INLINE,
                   1); /* would pass the end of all addresses */
    check_ends("which is not inside a segment of this process");
    aq_job.bound = NULL; /* nobody has attached one yet */
    arrive_message(AQ_AM_LONG, segment, 8, 0);
    check_ends("which is not inside a segment of this process");
}

static void test_false_payload(void **state)
{
    (void)state;
    arrive_message(AQ_AM_MEDIUM, NULL, 9000, 1);
    mpi.missing = 1;
    check_ends("mpi: rank 1 announced a payload of 9000 bytes and sent 8999");
    arrive_split(AQ_AM_MEDIUM, NULL, 9000);
    check_ends("mpi: rank 1 announced a payload of 9000 bytes and sent 8999");
}

static void test_no_handler(void **state)
{
    (void)state;
    arrive_short(AQ_MPI_REQUEST, 1);
    aq_job.ep.handler[HANDLER] = NULL;
    check_ends("handler 200");
}

static void test_mpi_fails(void **state)
{
    (void)state;
    mpi.error = 17;
    check_ends("error number 17");
}

#define OF(test) cmocka_unit_test_setup(test, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_short),
        OF(test_polls_left_out),
        OF(test_payloads),
        OF(test_placed),
        OF(test_looks),
        OF(test_split),
        OF(test_credit_is_reported),
        OF(test_credit_windows),
        OF(test_false_heads),
        OF(test_false_credit),
        OF(test_false_places),
        OF(test_false_payload),
        OF(test_no_handler),
        OF(test_mpi_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
