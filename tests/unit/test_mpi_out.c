/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_out.c - the sending half of the mpi conduit over an MPI that counts: which payloads are
 * in the packet, which are split, put to their destination or sent by themselves; and what a
 * receiver takes for a split payload.
 */
#include "tests/unit/aq_unit.h"
#include "tests/unit/mpi_am_unit.h"

#include <string.h>

#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_am_out.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_job.h"

#define PEER    1u
#define WINDOW  64u
#define HANDLER 200u

/* --- an MPI --- */

static struct {
    unsigned sends, payloads;
    size_t packet_bytes; /* of the last packet, */
    uint32_t tag;        /* and of the payloads behind it */
    size_t payload_bytes;
    struct aq_mpi_head head;
    uint32_t packet_tag;
    char bytes[2 * AQ_MPI_SPLIT_MAX]; /* the payload, as a receiver puts it together */
    size_t length;
} mpi;

static int fake_send(enum aq_mpi_channel channel, uint32_t dest, const void *packet, size_t nbytes,
                     void *owner)
{
    (void)channel, (void)owner;
    assert_int_equal(dest, PEER);
    mpi.sends++;
    mpi.packet_bytes = nbytes;
    mpi.head = aq_mpi_head_get(packet);
    mpi.length = 0;
    if (mpi.head.kind != AQ_AM_SHORT) {
        struct aq_mpi_desc desc;

        memcpy(&desc, (const char *)packet + AQ_MPI_HEAD + 4 * (size_t)mpi.head.nargs,
               AQ_MPI_DESC_MEDIUM);
        mpi.packet_tag = desc.tag;
    }
    if (nbytes > aq_mpi_packet_payload(mpi.head.kind, mpi.head.nargs)) {
        const size_t at = aq_mpi_packet_payload(mpi.head.kind, mpi.head.nargs);

        mpi.length = nbytes - at;
        memcpy(mpi.bytes, (const char *)packet + at, mpi.length);
    }
    return AQ_MPI_DONE;
}

static int fake_send_payload(enum aq_mpi_channel channel, uint32_t dest, uint32_t tag,
                             const void *src, size_t nbytes, void *owner)
{
    (void)channel, (void)owner;
    assert_int_equal(dest, PEER);
    mpi.payloads++;
    mpi.payload_bytes += nbytes;
    mpi.tag = tag;
    memcpy(mpi.bytes + mpi.length, src, nbytes);
    mpi.length += nbytes;
    return AQ_MPI_DONE;
}

static const struct aq_mpi_lib_am fake_am = { .send = fake_send,
                                              .send_payload = fake_send_payload };
static const struct aq_mpi_lib fake_lib = { .version = AQ_MPI_LIB_VERSION };

/* What puts a payload to its destination. */
static struct {
    const void *dest, *src;
    size_t nbytes;
    bool serves;
    unsigned times;
} place;

static bool fake_place(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes)
{
    assert_int_equal(jobrank, PEER);
    place.dest = dest;
    place.src = src;
    place.nbytes = nbytes;
    place.times++;
    return place.serves;
}

/* --- a sender --- */

static struct aq_mpi_peer peers[2];
static gex_Rank_t one_host[2];
static char src[AQ_MPI_MAX_LONG], dest[1];

static int start(void **state)
{
    (void)state;
    memset(&mpi, 0, sizeof(mpi));
    memset(&place, 0, sizeof(place));
    mpi_am_start(&fake_am, &fake_lib, peers, WINDOW);
    aq_job.host_of = one_host;
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static int send_message(uint8_t kind, bool is_reply, size_t nbytes)
{
    const struct aq_am_out out = { .jobrank = PEER,
                                   .kind = kind,
                                   .is_reply = is_reply,
                                   .handler = HANDLER,
                                   .src = src,
                                   .nbytes = nbytes,
                                   .dest = kind == AQ_AM_LONG ? dest : NULL };

    return aq_mpi_am_send(&aq_mpi_am, &out);
}

/* The most of a payload that is in an eager packet. */
static size_t eager(uint8_t kind)
{
    return AQ_MPI_EAGER - aq_mpi_packet_payload(kind, 0);
}

/* --- cases --- */

/* A long that must be free at once is put; if that cannot be, it is copied and sent. */
static void test_places(void **state)
{
    (void)state;
    aq_mpi_am.place = fake_place;
    place.serves = true;
    assert_int_equal(send_message(AQ_AM_LONG, false, 2 * AQ_MPI_INLINE), AQ_OK);
    assert_ptr_equal(place.dest, dest);
    assert_ptr_equal(place.src, src);
    assert_int_equal(place.nbytes, 2 * AQ_MPI_INLINE);
    assert_int_equal(mpi.sends, 1);
    assert_int_equal(mpi.payloads, 0);
    assert_int_equal(mpi.packet_tag, AQ_MPI_PLACED);
    assert_int_equal(peers[PEER].out.sent, aq_mpi_credit_cost(2 * AQ_MPI_INLINE));
    place.serves = false;
    assert_int_equal(send_message(AQ_AM_LONG, false, 2 * AQ_MPI_INLINE), AQ_OK);
    assert_int_equal(mpi.payloads, 1);
    assert_memory_equal(mpi.bytes, src, 2 * AQ_MPI_INLINE);
    assert_int_equal(place.times, 2);
}

static void test_places_nothing_else(void **state)
{
    (void)state;
    aq_mpi_am.place = fake_place;
    place.serves = true;
    assert_int_equal(send_message(AQ_AM_LONG, true, AQ_MPI_INLINE), AQ_OK); /* fits its packet */
    assert_int_equal(send_message(AQ_AM_MEDIUM, true, 2 * AQ_MPI_INLINE), AQ_OK);
    while (aq_mpi_credit_has(&peers[PEER], 1)) /* no credit: the destination stays as it is */
        aq_mpi_credit_spend(&peers[PEER], 1);
    assert_int_equal(send_message(AQ_AM_LONG, false, 2 * AQ_MPI_INLINE), AQ_RETRY);
    aq_mpi_am.split_above[AQ_MPI_SAME_HOST] = AQ_MPI_EAGER;
    assert_int_equal(send_message(AQ_AM_LONG, true, AQ_MPI_SPLIT_MAX), AQ_OK);
    assert_int_equal(send_message(AQ_AM_LONG, false, AQ_MPI_SPLIT_MAX), AQ_RETRY);
    assert_int_equal(place.times, 0);
}

static void check_split(uint8_t kind, size_t nbytes)
{
    const size_t rest = nbytes - eager(kind);
    const unsigned before = mpi.payloads;

    mpi.payload_bytes = 0;
    assert_int_equal(send_message(kind, true, nbytes), AQ_OK);
    assert_int_equal(mpi.packet_bytes, AQ_MPI_EAGER);
    assert_true(mpi.head.apart);
    assert_int_equal(mpi.payloads - before, (rest + AQ_MPI_EAGER - 1) / AQ_MPI_EAGER);
    assert_int_equal(mpi.payload_bytes, rest);
    assert_int_equal(mpi.tag, mpi.packet_tag);
    assert_int_equal(mpi.length, nbytes);
    assert_memory_equal(mpi.bytes, src, nbytes);
}

static void test_splits(void **state)
{
    static const uint8_t kinds[] = { AQ_AM_MEDIUM, AQ_AM_LONG };

    (void)state;
    aq_mpi_am.split_above[AQ_MPI_SAME_HOST] = AQ_MPI_EAGER;
    for (unsigned k = 0; k < 2; k++) {
        mpi.payloads = 0;
        assert_int_equal(send_message(kinds[k], true, eager(kinds[k])), AQ_OK); /* just fits */
        assert_false(mpi.head.apart);
        assert_int_equal(mpi.payloads, 0);
        check_split(kinds[k], eager(kinds[k]) + 1);
        check_split(kinds[k], eager(kinds[k]) + AQ_MPI_EAGER);
        check_split(kinds[k], eager(kinds[k]) + AQ_MPI_EAGER + 1);
        check_split(kinds[k], AQ_MPI_INLINE);
        check_split(kinds[k], AQ_MPI_SPLIT_MAX);
        mpi.payloads = 0;
        assert_int_equal(send_message(kinds[k], true, AQ_MPI_SPLIT_MAX + 1), AQ_OK);
        assert_int_equal(mpi.payloads, 1);
    }
    aq_mpi_am.split_above[AQ_MPI_SAME_HOST] = AQ_MPI_EAGER + 1000; /* sent at once, too */
    mpi.payloads = 0;
    assert_int_equal(send_message(AQ_AM_MEDIUM, true, eager(AQ_AM_MEDIUM) + 1000), AQ_OK);
    assert_int_equal(mpi.payloads, 0);
    check_split(AQ_AM_MEDIUM, eager(AQ_AM_MEDIUM) + 1001);
    aq_mpi_am.split_above[AQ_MPI_SAME_HOST] = 0;
    mpi.payloads = 0;
    assert_int_equal(send_message(AQ_AM_MEDIUM, true, AQ_MPI_INLINE), AQ_OK);
    assert_int_equal(mpi.payloads, 0);
}

/* A packet of len bytes, of which a payload of nbytes is announced. */
static bool is_taken(uint8_t kind, uint32_t nbytes, uint32_t tag, size_t len)
{
    const struct aq_mpi_head head = { .kind = kind, .handler = HANDLER, .apart = true };
    const struct aq_mpi_desc desc = { .nbytes = nbytes, .tag = tag };
    static _Alignas(16) char packet[AQ_MPI_PACKET];
    struct aq_mpi_message back;

    aq_mpi_head_put(packet, head);
    memcpy(packet + AQ_MPI_HEAD, &desc, sizeof(desc));
    return aq_mpi_packet_decode(packet, len, AQ_MPI_MAX_MEDIUM, AQ_MPI_MAX_LONG, &back);
}

static void test_what_a_receiver_takes(void **state)
{
    const size_t head = aq_mpi_packet_payload(AQ_AM_MEDIUM, 0), len = head + 1;
    const uint32_t max = 1 + AQ_MPI_FRAGS * (uint32_t)len;

    (void)state;
    assert_true(is_taken(AQ_AM_MEDIUM, 2, 1, len));
    assert_false(is_taken(AQ_AM_MEDIUM, 1, 1, len)); /* nothing would follow */
    assert_true(is_taken(AQ_AM_MEDIUM, max, AQ_MPI_TAGS, len));
    assert_false(is_taken(AQ_AM_MEDIUM, max + 1, 1, len)); /* a fragment too many */
    assert_false(is_taken(AQ_AM_MEDIUM, max, 0, len));
    assert_false(is_taken(AQ_AM_MEDIUM, max, AQ_MPI_TAGS + 1, len));
    assert_true(is_taken(AQ_AM_MEDIUM, AQ_MPI_SPLIT_MAX, 1, AQ_MPI_EAGER));
    assert_false(is_taken(AQ_AM_MEDIUM, AQ_MPI_SPLIT_MAX + 1, 1, AQ_MPI_EAGER));
    assert_false(is_taken(AQ_AM_MEDIUM, AQ_MPI_MAX_MEDIUM, AQ_MPI_PLACED, head));
    assert_true(
        is_taken(AQ_AM_LONG, AQ_MPI_MAX_LONG, AQ_MPI_PLACED, aq_mpi_packet_head(AQ_AM_LONG, 0)));
    assert_false(is_taken(AQ_AM_LONG, AQ_MPI_MAX_LONG, AQ_MPI_PLACED,
                          aq_mpi_packet_payload(AQ_AM_LONG, 0) + 1));
}

#define OF(test) cmocka_unit_test_setup(test, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_places),
        OF(test_places_nothing_else),
        OF(test_splits),
        OF(test_what_a_receiver_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
