/*
 * test_event_sync.c - Test, Wait, Some and All: INVALID entries, empty arrays, entries consumed one
 * by one while others are pending. The pending events are barriers that rank 0 holds back.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, events.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_GO = AQ_TEST_FREE, DEFERRED = 6 };

static aq_test_count_t going;

static void h_go(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&going, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_GO, h_go, AQ_SQ, 0) };

static void check_empty(void)
{
    gex_Event_t evs[5];
    size_t n;

    AQ_CHECK_EQ(gex_Event_Test(GEX_EVENT_INVALID), GASNET_OK);
    gex_Event_Wait(GEX_EVENT_INVALID);
    AQ_CHECK_EQ(gex_Event_TestSome(NULL, 0, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_Event_TestAll(NULL, 0, 0), GASNET_OK);
    gex_Event_WaitSome(NULL, 0, 0);
    gex_Event_WaitAll(NULL, 0, 0);
    for (n = 0; n <= 5; n++) {
        memset(evs, 0, sizeof(evs));
        AQ_CHECK_EQ(gex_Event_TestSome(evs, n, 0), GASNET_OK);
        AQ_CHECK_EQ(gex_Event_TestAll(evs, n, 0), GASNET_OK);
        gex_Event_WaitSome(evs, n, 0);
        gex_Event_WaitAll(evs, n, 0);
        AQ_CHECK(aq_test_all(evs, 0, sizeof(evs)));
    }
}

/* Rank 0's side: enters `count` barriers once every other rank has said so. */
static void release(int round, int count)
{
    aq_test_wait(&going, round * ((int)aq_test_n - 1));
    for (; count > 0; count--)
        aq_test_barrier();
}

static void say_go(void)
{
    gex_AM_RequestShort0(aq_test_tm, 0, H_GO, 0);
}

static void hold(gex_Event_t *evs, gex_Event_t *copy)
{
    int i;

    for (i = 0; i < DEFERRED; i++)
        copy[i] = evs[i] = gex_Coll_BarrierNB(aq_test_tm, 0);
}

/* Two rounds of three, seen through TestAll. */
static void deferred_test_all(void)
{
    gex_Event_t evs[DEFERRED + 2], copy[DEFERRED];
    int i;

    hold(evs, copy);
    evs[DEFERRED] = evs[DEFERRED + 1] = GEX_EVENT_INVALID;
    AQ_CHECK_EQ(gex_Event_TestAll(evs, DEFERRED + 2, 0), GASNET_ERR_NOT_READY);
    AQ_CHECK(memcmp(evs, copy, sizeof(copy)) == 0);
    say_go();
    while (evs[0] != GEX_EVENT_INVALID || evs[1] != GEX_EVENT_INVALID
           || evs[2] != GEX_EVENT_INVALID) {
        aq_test_relax();
        AQ_CHECK_EQ(gex_Event_TestAll(evs, DEFERRED + 2, 0), GASNET_ERR_NOT_READY);
    }
    for (i = 3; i < DEFERRED; i++) {
        AQ_CHECK(evs[i] == copy[i]);
        AQ_CHECK_EQ(gex_Event_Test(evs[i]), GASNET_ERR_NOT_READY);
    }
    say_go();
    while (gex_Event_TestAll(evs, DEFERRED + 2, 0) != GASNET_OK)
        aq_test_relax();
    AQ_CHECK(aq_test_all(evs, 0, sizeof(evs)));
}

static int count_done(const gex_Event_t *evs)
{
    int i, done = 0;

    for (i = 0; i < DEFERRED; i++)
        done += evs[i] == GEX_EVENT_INVALID;
    return done;
}

static void deferred_test_some(void)
{
    gex_Event_t evs[DEFERRED], copy[DEFERRED];
    int done = 0;

    hold(evs, copy);
    AQ_CHECK_EQ(gex_Event_TestSome(evs, DEFERRED, 0), GASNET_ERR_NOT_READY);
    AQ_CHECK(memcmp(evs, copy, sizeof(copy)) == 0);
    say_go();
    while (done < 3) {
        int before = done, rc;

        aq_test_relax();
        rc = gex_Event_TestSome(evs, DEFERRED, 0);
        done = count_done(evs);
        AQ_CHECK_EQ(rc, done > before ? GASNET_OK : GASNET_ERR_NOT_READY);
    }
    AQ_CHECK_EQ(done, 3);
    say_go();
    while (done < DEFERRED) {
        int before = done;

        gex_Event_WaitSome(evs, DEFERRED, 0);
        done = count_done(evs);
        AQ_CHECK(done > before);
    }
    gex_Event_WaitSome(evs, DEFERRED, 0);
}

static void deferred_wait(void)
{
    gex_Event_t evs[DEFERRED], copy[DEFERRED];
    int i;

    hold(evs, copy);
    say_go();
    for (i = 2; i >= 0; i--) { /* not in the order of initiation */
        gex_Event_Wait(evs[i]);
        evs[i] = GEX_EVENT_INVALID;
    }
    AQ_CHECK_EQ(gex_Event_Test(evs[DEFERRED - 1]), GASNET_ERR_NOT_READY);
    say_go();
    gex_Event_WaitAll(evs, DEFERRED, 0);
    AQ_CHECK(aq_test_all(evs, 0, sizeof(evs)));
}

int main(int argc, char **argv)
{
    int round;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("extended 4.2: INVALID counts as complete; n == 0, NULL and all-INVALID arrays succeed at "
         "once");
    check_empty();
    if (aq_test_me == 0) {
        for (round = 1; aq_test_n > 1 && round <= 6; round++)
            release(round, 3);
        if (aq_test_n == 1) {
            rule("extended 14.1: a barrier of one");
            for (round = 0; round < 100; round++)
                gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
        }
    } else {
        rule("extended 4.2: a failing TestAll consumes what is finished and nothing else");
        deferred_test_all();
        rule("extended 4.1: TestSome, WaitSome: succeed when one or more completed, and only then");
        deferred_test_some();
        rule("extended 4.1: Wait in any order; WaitAll leaves only INVALID");
        deferred_wait();
    }
    aq_test_barrier();
    return aq_test_finish();
}
