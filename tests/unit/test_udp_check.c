/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_udp_check.c - detection of lost peers on a simulated clock: a process and a host that are
 * gone are noticed in their time; short outages, forged notes, replayed quotes and a peer that
 * computes are not taken for one.
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/udp/aq_udp_check.h"
#include "tests/unit/aq_unit.h"

#define MS   UINT64_C(1000000)
#define S    UINT64_C(1000000000)
#define STEP (50 * MS) /* between two looks of the rank that waits */
#define LATE 16        /* probes whose notes are still to come */

/* A rank that waits for a peer, and the network between them. */
struct world {
    struct aq_udp_check check;
    uint64_t now, seen, hash;
    enum aq_udp_note back;   /* what the network says of each probe; NONE: nothing, it arrives */
    uint64_t delay;          /* after this time */
    bool answers;            /* the peer polls */
    bool idle;               /* nothing is unacknowledged */
    enum aq_udp_note forged; /* said every 500 ms, with a quote that is no probe's, or none */
    uint64_t quote;
    struct {
        uint64_t hash, due;
        enum aq_udp_note note;
    } late[LATE];
    unsigned probed;
};

static void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->now = 100 * S;
    w->hash = 1000;
}

static void probe(struct world *w)
{
    aq_udp_check_probed(&w->check, ++w->hash);
    w->probed++;
    if (w->back == AQ_UDP_NOTE_NONE) {
        w->seen = w->answers ? w->now + MS : w->seen;
        return;
    }
    w->late[w->hash % LATE].hash = w->hash;
    w->late[w->hash % LATE].due = w->now + w->delay;
    w->late[w->hash % LATE].note = w->back;
}

static void tell(struct world *w)
{
    for (unsigned i = 0; i < LATE; i++)
        if (w->late[i].hash != 0 && w->late[i].due <= w->now) {
            aq_udp_check_note(&w->check, w->late[i].note, w->late[i].hash);
            w->late[i].hash = 0;
        }
    if (w->forged != AQ_UDP_NOTE_NONE && w->now % (500 * MS) == 0)
        aq_udp_check_note(&w->check, w->forged, w->quote);
}

/* So long, or until the peer is lost. Returns how long it took. */
static uint64_t run(struct world *w, uint64_t duration)
{
    const uint64_t began = w->now, end = w->now + duration;

    while (w->now < end && aq_udp_check_lost(&w->check) == AQ_UDP_NOTE_NONE) {
        tell(w);
        if (aq_udp_check_step(&w->check, w->now, w->seen, !w->idle))
            probe(w);
        w->now += STEP;
    }
    return w->now - began;
}

static void hint(struct world *w, enum aq_udp_note note)
{
    aq_udp_check_note(&w->check, note, 0);
}

static void assert_lives(const struct world *w)
{
    assert_int_equal(aq_udp_check_lost(&w->check), AQ_UDP_NOTE_NONE);
}

static void test_process_lost(void **state)
{
    struct world w;
    uint64_t took;

    (void)state;
    world_init(&w);
    w.back = AQ_UDP_NOTE_REFUSED;
    hint(&w, AQ_UDP_NOTE_REFUSED);
    took = run(&w, 60 * S);
    assert_int_equal(aq_udp_check_lost(&w.check), AQ_UDP_NOTE_REFUSED);
    assert_in_range(took, 5 * S, 7 * S);
}

/* Neighbors that do not find it give a host up every 3 s. */
static void test_host_lost(void **state)
{
    struct world w;
    uint64_t took;

    (void)state;
    world_init(&w);
    w.back = AQ_UDP_NOTE_UNREACHABLE;
    w.delay = 3 * S;
    hint(&w, AQ_UDP_NOTE_UNREACHABLE);
    took = run(&w, 60 * S);
    assert_int_equal(aq_udp_check_lost(&w.check), AQ_UDP_NOTE_UNREACHABLE);
    assert_in_range(took, 10 * S, 13 * S);
}

static void test_own_kernel_knows_no_way(void **state)
{
    struct world w;
    uint64_t took = 0;

    (void)state;
    world_init(&w);
    while (took < 60 * S && aq_udp_check_lost(&w.check) == AQ_UDP_NOTE_NONE) {
        aq_udp_check_verified(&w.check, AQ_UDP_NOTE_UNREACHABLE);
        took += run(&w, 2 * S);
    }
    assert_in_range(took, 10 * S, 13 * S);
}

/* While the peer computes, so that nothing ever arrives from it. */
static void test_short_outages(void **state)
{
    static const enum aq_udp_note notes[] = { AQ_UDP_NOTE_REFUSED, AQ_UDP_NOTE_UNREACHABLE };

    (void)state;
    for (unsigned kind = 0; kind < 2; kind++)
        for (uint64_t apart = 7 * S; apart <= 60 * S; apart += 4 * S) {
            struct world w;

            world_init(&w);
            for (int i = 0; i < 20; i++) {
                w.back = notes[kind];
                hint(&w, notes[kind]);
                run(&w, 3 * S / 2);
                w.back = AQ_UDP_NOTE_NONE;
                run(&w, apart - 3 * S / 2);
                assert_lives(&w);
            }
        }
}

static void test_forged(void **state)
{
    static const enum aq_udp_note notes[] = { AQ_UDP_NOTE_REFUSED, AQ_UDP_NOTE_UNREACHABLE };

    (void)state;
    for (unsigned kind = 0; kind < 2; kind++)
        for (uint64_t quote = 0; quote < 2; quote++)
            for (int idle = 0; idle < 2; idle++) {
                struct world w;

                world_init(&w);
                w.idle = idle != 0;
                w.forged = notes[kind];
                w.quote = quote * 999; /* of something that was sent earlier */
                run(&w, 3600 * S);
                assert_lives(&w);
                assert_true(w.probed <= 3601); /* nor does it make us send much */
                assert_true(w.probed != 0 || (w.idle && w.forged == AQ_UDP_NOTE_REFUSED));
            }
}

/* One probe that was turned back, quoted again and again, while the others arrive. */
static void test_quote_counts_once(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    hint(&w, AQ_UDP_NOTE_REFUSED);
    run(&w, STEP);
    assert_int_equal(w.probed, 1);
    w.forged = AQ_UDP_NOTE_REFUSED;
    w.quote = w.hash;
    run(&w, 600 * S);
    assert_lives(&w);
}

static void test_seen(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    w.answers = true;
    for (int i = 0; i < 20; i++) {
        w.back = AQ_UDP_NOTE_REFUSED;
        hint(&w, AQ_UDP_NOTE_REFUSED);
        run(&w, 4 * S);
        w.back = AQ_UDP_NOTE_NONE;
        run(&w, 3 * S / 2);
        assert_lives(&w);
    }
    w.back = AQ_UDP_NOTE_REFUSED;
    hint(&w, AQ_UDP_NOTE_REFUSED);
    assert_in_range(run(&w, 60 * S), 5 * S, 7 * S);
}

/* This rank computes, and what arrived in the meantime says nothing about the time between. */
static void test_pauses_of_our_own(void **state)
{
    struct world w;

    (void)state;
    world_init(&w);
    w.back = AQ_UDP_NOTE_REFUSED;
    for (int i = 0; i < 20; i++) {
        hint(&w, AQ_UDP_NOTE_REFUSED);
        run(&w, 3 * S);
        assert_lives(&w);
        w.now += 100 * S;
    }
    hint(&w, AQ_UDP_NOTE_REFUSED);
    assert_in_range(run(&w, 60 * S), 5 * S, 7 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_lost),
        cmocka_unit_test(test_host_lost),
        cmocka_unit_test(test_own_kernel_knows_no_way),
        cmocka_unit_test(test_short_outages),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_quote_counts_once),
        cmocka_unit_test(test_seen),
        cmocka_unit_test(test_pauses_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
