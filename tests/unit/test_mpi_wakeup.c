/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mpi_wakeup.c - when a rank of the mpi conduit may sleep for long, and when it sends a peer a
 * wake-up: a clock and two ranks in a test, a packet or a datagram of which may be lost or late.
 */
#include "tests/unit/aq_unit.h"

#include <string.h>

#include "conduits/mpi/aq_mpi_wakeup.h"
#include "core/aq_job.h"

#define PEERS  4u
#define PEER   1u
#define MS     UINT64_C(1000000)
#define BEGIN  (1000 * MS)
#define WINDOW 64u

static struct aq_mpi_wakeup self;
static struct aq_mpi_wakeup_peer peers[PEERS];
static struct aq_mpi_peer credit[PEERS];
static unsigned sent[PEERS], wakes;
static uint64_t now;

static void fake_send(gex_Rank_t jobrank)
{
    sent[jobrank]++;
}

static void fake_wake(void)
{
    wakes++;
}

static const struct aq_conduit_ops fake_local = { .sleep_wake = fake_wake };

static int start(void **state)
{
    (void)state;
    memset(&self, 0, sizeof(self));
    memset(peers, 0, sizeof(peers));
    memset(credit, 0, sizeof(credit));
    memset(sent, 0, sizeof(sent));
    wakes = 0;
    now = BEGIN;
    aq_job.local = &fake_local;
    aq_mpi_wakeup_open(&self, peers, credit, fake_send, now, 4 * MS);
    return 0;
}

/* A poll that finds nothing, ms later. */
static void poll_after(uint64_t ms)
{
    now += ms * MS;
    aq_mpi_wakeup_look(&self, now);
}

/* Polls that find nothing, 1 ms apart. */
static void polls(unsigned count)
{
    while (count-- != 0)
        poll_after(1);
}

/* A packet of this rank to the peer, as aq_mpi_wakeup_sent() does it at this test's time. */
static void packet_to(gex_Rank_t jobrank)
{
    if (now >= credit[jobrank].awake_ns)
        aq_mpi_wakeup_send(&self, jobrank, now, true);
}

static void packet_from(gex_Rank_t jobrank)
{
    aq_mpi_wakeup_seen(&self, &credit[jobrank]);
}

static bool may_sleep(void)
{
    return aq_mpi_wakeup_limit(&self) == AQ_MPI_ASLEEP_NS;
}

/* --- sleeping --- */

/* A rank sleeps for long once nothing has passed through it for 50 ms. */
static void test_idle(void **state)
{
    (void)state;
    polls(50);
    assert_false(may_sleep());
    polls(2);
    assert_true(may_sleep());
    packet_from(PEER);
    assert_false(may_sleep());
    polls(50);
    assert_false(may_sleep());
    polls(2);
    assert_true(may_sleep());
}

/* A rank that was not polled for long may have packets that nobody has found: two polls come
 * first. */
static void test_computing(void **state)
{
    (void)state;
    now += 1000 * MS;
    assert_false(may_sleep());
    poll_after(0);
    assert_false(may_sleep());
    poll_after(0);
    assert_true(may_sleep());
}

/* A wake-up keeps the rank awake, whether its packet is there or not. */
static void test_woken(void **state)
{
    (void)state;
    polls(100);
    assert_true(may_sleep());
    aq_mpi_wakeup_came(&self);
    assert_false(may_sleep());
    polls(51);
    assert_false(may_sleep());
    assert_int_equal(wakes, 1); /* another thread that sleeps for long */
    polls(1);
    assert_true(may_sleep());
}

/* Progress of MPI's collective calls takes polls. */
static void test_collective(void **state)
{
    (void)state;
    polls(100);
    self.collectives = 1;
    assert_false(may_sleep());
    self.collectives = 0;
    assert_true(may_sleep());
}

/* Wake-ups do not reach all ranks: none sleeps for long. */
static void test_switched_off(void **state)
{
    (void)state;
    self.works = false;
    now = UINT64_MAX / 2;
    self.empty_ns = now;
    assert_false(may_sleep());
    aq_mpi_wakeup_sent(&self, PEER, &credit[PEER], false);
    aq_mpi_wakeup_empty(&self);
    aq_mpi_wakeup_begin(&self, PEER, now);
    aq_mpi_wakeup_end(&self, PEER);
    assert_int_equal(sent[PEER], 0);
}

/* --- waking --- */

/* The first packet to a silent peer is followed by a wake-up, the next ones are not. */
static void test_silent_peer(void **state)
{
    (void)state;
    packet_to(PEER);
    assert_int_equal(sent[PEER], 1);
    for (unsigned i = 0; i < 100; i++)
        packet_to(PEER);
    assert_int_equal(sent[PEER], 1);
    packet_to(2);
    assert_int_equal(sent[2], 1);
    assert_int_equal(sent[3], 0);
}

/* A peer that answers gets none for as long as it does, and for 8 ms more. */
static void test_attentive_peer(void **state)
{
    (void)state;
    packet_to(PEER);
    packet_from(PEER);
    polls(2);
    for (unsigned i = 0; i < 1000; i++) {
        packet_from(PEER);
        packet_to(PEER);
        poll_after(1);
    }
    assert_int_equal(sent[PEER], 1);
    packet_from(PEER);
    poll_after(6);
    packet_to(PEER);
    assert_int_equal(sent[PEER], 1);
    poll_after(3);
    packet_to(PEER);
    assert_int_equal(sent[PEER], 2);
}

/* A packet that was found after a second may have come at the beginning of it. */
static void test_old_packet(void **state)
{
    (void)state;
    polls(10);
    now += 1000 * MS;
    packet_from(PEER);
    packet_to(PEER);
    assert_int_equal(sent[PEER], 1);
    /* and what is found now may have come during the first poll after it */
    poll_after(0);
    packet_from(2);
    packet_to(2);
    assert_int_equal(sent[2], 1);
    poll_after(0);
    packet_from(3);
    packet_to(3);
    assert_int_equal(sent[3], 0);
}

/* Without an answer wake-ups are repeated, ever more rarely, and not for ever. The rank does not
 * sleep for long meanwhile. */
static void test_again(void **state)
{
    static const uint64_t after_ms[] = { 1, 2, 4, 8, 8 };

    (void)state;
    packet_to(PEER);
    for (unsigned i = 0; i < AQ_MPI_AGAIN_TIMES; i++) {
        aq_mpi_wakeup_look(&self, now + after_ms[i] * MS - 1);
        assert_int_equal(sent[PEER], 1 + i);
        poll_after(after_ms[i]);
        assert_int_equal(sent[PEER], 2 + i);
        assert_false(may_sleep());
    }
    polls(50);
    assert_false(may_sleep());
    polls(50);
    assert_int_equal(sent[PEER], 1 + AQ_MPI_AGAIN_TIMES);
    assert_true(may_sleep());
    packet_to(PEER);
    poll_after(1);
    assert_int_equal(sent[PEER], 3 + AQ_MPI_AGAIN_TIMES);
}

/* Nobody answers a reply. */
static void test_reply(void **state)
{
    (void)state;
    aq_mpi_wakeup_send(&self, PEER, now, false);
    assert_int_equal(sent[PEER], 1);
    polls(50);
    assert_false(may_sleep());
    polls(2);
    assert_int_equal(sent[PEER], 1);
    assert_true(may_sleep());
}

/* An answer ends that, in the same moment too; other peers are still woken. */
static void test_answered(void **state)
{
    (void)state;
    poll_after(0);
    poll_after(0);
    for (gex_Rank_t rank = 1; rank < PEERS; rank++)
        packet_to(rank);
    packet_from(2);
    polls(3);
    assert_int_equal(sent[1], 3);
    assert_int_equal(sent[2], 1);
    assert_int_equal(sent[3], 3);
    packet_from(1);
    packet_from(3);
    polls(200);
    assert_int_equal(sent[1], 3);
    assert_int_equal(sent[2], 1);
    assert_int_equal(sent[3], 3);
    assert_true(may_sleep());
}

/* Transfers that need polls of their target keep it awake and lively until they are complete,
 * without a packet. */
static void test_transfers(void **state)
{
    unsigned before;

    (void)state;
    aq_mpi_wakeup_begin(&self, PEER, now);
    aq_mpi_wakeup_begin(&self, PEER, now);
    assert_int_equal(sent[PEER], 1);
    polls(1000);
    before = sent[PEER];
    assert_true(before >= 990);
    assert_true(before <= 1001);
    aq_mpi_wakeup_end(&self, PEER);
    polls(100);
    assert_true(sent[PEER] >= before + 95);
    before = sent[PEER];
    aq_mpi_wakeup_end(&self, PEER);
    polls(200);
    assert_int_equal(sent[PEER], before);
    assert_true(may_sleep());
}

/* Many transfers in a row share wake-ups. */
static void test_many_transfers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        aq_mpi_wakeup_begin(&self, PEER, now);
        now += MS / 100;
        aq_mpi_wakeup_end(&self, PEER);
    }
    assert_true(sent[PEER] >= 30);
    assert_true(sent[PEER] <= 35);
}

/* A rank that never finds nothing has no newer knowledge of its peers than from before; its replies
 * do not wake them each time. */
static void test_busy_server(void **state)
{
    (void)state;
    polls(2);
    now += 20 * MS;
    for (unsigned i = 0; i < 1000; i++) {
        packet_from(PEER);
        if (now >= credit[PEER].awake_ns)
            aq_mpi_wakeup_send(&self, PEER, now, false);
        now += MS / 50;
    }
    assert_true(sent[PEER] >= 1);
    assert_true(sent[PEER] <= 21);
}

/* Where the clock ticks rarely, two ticks pass before a peer is asleep. */
static void test_rare_ticks(void **state)
{
    (void)state;
    aq_mpi_wakeup_open(&self, peers, credit, fake_send, now, 10 * MS);
    polls(2);
    packet_from(PEER);
    now += 18 * MS;
    packet_to(PEER);
    assert_int_equal(sent[PEER], 0);
    now += 2 * MS;
    packet_to(PEER);
    assert_int_equal(sent[PEER], 1);
}

/* Sleeps grow with the time since the last message. */
static void test_backoff(void **state)
{
    (void)state;
    assert_int_equal(aq_mpi_wakeup_backoff(0), AQ_MPI_BACKOFF_MIN_NS);
    assert_int_equal(aq_mpi_wakeup_backoff(MS / 10), AQ_MPI_BACKOFF_MIN_NS);
    assert_int_equal(aq_mpi_wakeup_backoff(4 * MS), MS / 4);
    assert_int_equal(aq_mpi_wakeup_backoff(100 * MS), AQ_MPI_BACKOFF_MAX_NS);
}

/* A rank that sends is awake at its peer's: its thread that sleeps for long is woken, once. */
static void test_sender_rises(void **state)
{
    (void)state;
    polls(100);
    assert_true(may_sleep());
    packet_to(PEER);
    packet_to(2);
    assert_int_equal(wakes, 1);
    assert_false(may_sleep());
    packet_from(PEER);
    packet_from(2);
    polls(100);
    assert_true(may_sleep());
    packet_from(PEER); /* found by a poll of another thread */
    poll_after(1);
    assert_int_equal(wakes, 2);
}

/* --- two ranks --- */

static struct aq_mpi_wakeup rank[2];

static void send_to_rank(gex_Rank_t jobrank)
{
    sent[jobrank]++;
    aq_mpi_wakeup_came(&rank[jobrank]);
}

/* Whatever the times between packets of two ranks, and between their polls: a rank that sleeps for
 * long when a packet arrives gets a wake-up with it. */
static void test_promise(void **state)
{
    struct aq_mpi_wakeup_peer of[2][2] = { 0 };
    struct aq_mpi_peer links[2][2];
    unsigned seed = 7, asleep = 0, woken = 0;
    bool pending[2] = { false, false };

    (void)state;
    memset(rank, 0, sizeof(rank));
    memset(links, 0, sizeof(links));
    for (unsigned me = 0; me < 2; me++)
        aq_mpi_wakeup_open(&rank[me], of[me], links[me], send_to_rank, now, 4 * MS);
    for (unsigned step = 0; step < 400000; step++) {
        const unsigned me = (seed = seed * 1664525u + 1013904223u) >> 31, other = 1 - me;
        const unsigned before = sent[other];
        bool sleeps;

        /* steps of up to 2 ms, and now and then of 64 ms */
        now += (seed >> 8) % ((seed >> 4) % 64 == 0 ? 64 * MS : 2 * MS);
        if (pending[me]) { /* a poll finds the packet, which is answered or not */
            pending[me] = false;
            aq_mpi_wakeup_seen(&rank[me], &links[me][other]);
            if ((seed >> 18) % 4 == 0)
                continue;
        } else if ((seed >> 20) % (step / 64 % 4 == 0 ? 4 : 128) != 0) {
            aq_mpi_wakeup_look(&rank[me], now);
            continue;
        }
        if (pending[other])
            continue;
        /* the other rank is about to sleep, after polls that have found nothing */
        sleeps = aq_mpi_wakeup_limit(&rank[other]) != 0;
        if (now >= links[me][other].awake_ns)
            aq_mpi_wakeup_send(&rank[me], other, now, (seed & 1 << 17) != 0);
        asleep += sleeps;
        woken += sleeps && sent[other] != before;
        pending[other] = true;
    }
    assert_true(asleep > 100);
    assert_int_equal(woken, asleep);
}

/* A poll that looks at one channel finds nothing there: it says nothing of when a packet of the
 * other one came, but a wake-up that is due is sent. */
static void test_partial_look(void **state)
{
    uint64_t alive;

    (void)state;
    packet_to(PEER);
    polls(1);
    alive = self.alive_ns;
    assert_int_equal(sent[PEER], 2);
    for (unsigned i = 0; i < AQ_MPI_AGAIN_TIMES; i++) {
        peers[PEER].again_ns = self.again_ns = 1; /* due by the real clock */
        aq_mpi_wakeup_repeat_due(&self);
    }
    assert_int_equal(self.alive_ns, alive);
    assert_int_equal(sent[PEER], 1 + AQ_MPI_AGAIN_TIMES);
}

/* A thread that sleeps for long learns of what this rank begins. */
static void test_rises(void **state)
{
    (void)state;
    aq_mpi_wakeup_rise(&self);
    assert_int_equal(wakes, 0);
    polls(100);
    assert_true(may_sleep());
    aq_mpi_wakeup_rise(&self);
    aq_mpi_wakeup_rise(&self);
    assert_int_equal(wakes, 1);
}

#define OF(test) cmocka_unit_test_setup(test, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        OF(test_idle),           OF(test_computing),    OF(test_woken),
        OF(test_collective),     OF(test_switched_off), OF(test_silent_peer),
        OF(test_attentive_peer), OF(test_old_packet),   OF(test_again),
        OF(test_reply),          OF(test_answered),     OF(test_transfers),
        OF(test_many_transfers), OF(test_busy_server),  OF(test_rare_ticks),
        OF(test_backoff),        OF(test_sender_rises), OF(test_partial_look),
        OF(test_rises),          OF(test_promise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
