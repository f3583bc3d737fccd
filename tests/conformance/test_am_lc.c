/*
 * test_am_lc.c - local completion of AM payloads: NOW, GROUP, and an event variable.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_MED = AQ_TEST_FREE, H_LONG, H_MED_REP, H_LONG_REP, LEN = 4000, MANY = 40 };

static aq_test_count_t arrived, answered;

/* A reply's event is handed to ordinary code, with its buffer. */
static struct {
    gex_Event_t event;
    char data[64];
} handed[MANY];
static aq_test_count_t n_handed;

static void h_med(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed,
                  gex_AM_Arg_t answer)
{
    int slot;

    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    if (answer) {
        slot = atomic_fetch_add(&n_handed, 1);
        aq_test_fill(handed[slot].data, 64, (uint64_t)seed);
        handed[slot].event = GEX_EVENT_NO_OP;
        gex_AM_ReplyMedium1(token, H_MED_REP, handed[slot].data, 64, &handed[slot].event, 0, seed);
        AQ_CHECK(handed[slot].event != GEX_EVENT_NO_OP);
    }
    atomic_fetch_add(&arrived, 1);
}

static void h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed, gex_AM_Arg_t hi,
                   gex_AM_Arg_t lo)
{
    int slot;

    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    if (hi != 0 || lo != 0) {
        slot = atomic_fetch_add(&n_handed, 1);
        aq_test_fill(handed[slot].data, 64, (uint64_t)seed);
        handed[slot].event = GEX_EVENT_NO_OP;
        gex_AM_ReplyLong1(token, H_LONG_REP, handed[slot].data, 64, aq_test_pointer(hi, lo),
                          &handed[slot].event, 0, seed);
        AQ_CHECK(handed[slot].event != GEX_EVENT_NO_OP);
    }
    atomic_fetch_add(&arrived, 1);
}

static void h_rep(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, 64);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&answered, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_MED, h_med, AQ_MQ, 2),
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 3),
    AQ_ENTRY(H_MED_REP, h_rep, AQ_MP, 1),
    AQ_ENTRY(H_LONG_REP, h_rep, AQ_LP, 1),
};

/* What each peer writes into: slot i of the part meant for the sender at distance k. */
static char *slot_of(gex_Rank_t rank, gex_Rank_t k, int i)
{
    return (char *)aq_test_base(rank) + ((size_t)k * 5 + (size_t)i) * LEN;
}

static void send_now(gex_Rank_t k, char *buf)
{
    const gex_Rank_t to = aq_test_peer(k);

    aq_test_fill(buf, LEN, 1);
    gex_AM_RequestMedium2(aq_test_tm, to, H_MED, buf, 500, GEX_EVENT_NOW, 0, 1, 0);
    memset(buf, 0, LEN);
    aq_test_fill(buf, LEN, 2);
    gex_AM_RequestLong3(aq_test_tm, to, H_LONG, buf, LEN, slot_of(to, k, 0), GEX_EVENT_NOW, 0, 2, 0,
                        0);
    memset(buf, 0, LEN);
}

static void send_group(gex_Rank_t k, char *buf)
{
    const gex_Rank_t to = aq_test_peer(k);

    aq_test_fill(buf, 500, 3);
    aq_test_fill(buf + 500, LEN, 4);
    gex_AM_RequestMedium2(aq_test_tm, to, H_MED, buf, 500, GEX_EVENT_GROUP, 0, 3, 0);
    gex_AM_RequestLong3(aq_test_tm, to, H_LONG, buf + 500, LEN, slot_of(to, k, 1), GEX_EVENT_GROUP,
                        0, 4, 0, 0);
    gex_NBI_Wait(GEX_EC_AM, 0);
    memset(buf, 0, LEN + 500);
    aq_test_fill(buf, 500, 5);
    gex_AM_RequestMedium2(aq_test_tm, to, H_MED, buf, 500, GEX_EVENT_GROUP, 0, 5, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    memset(buf, 0, LEN + 500);
}

static void send_event(gex_Rank_t k, char *buf)
{
    const gex_Rank_t to = aq_test_peer(k);
    gex_Event_t ev[2] = { GEX_EVENT_NO_OP, GEX_EVENT_NO_OP };

    aq_test_fill(buf, 500, 6);
    aq_test_fill(buf + 500, LEN, 7);
    gex_AM_RequestMedium2(aq_test_tm, to, H_MED, buf, 500, &ev[0], 0, 6, 0);
    gex_AM_RequestLong3(aq_test_tm, to, H_LONG, buf + 500, LEN, slot_of(to, k, 2), &ev[1], 0, 7, 0,
                        0);
    AQ_CHECK(ev[0] != GEX_EVENT_NO_OP && ev[1] != GEX_EVENT_NO_OP);
    gex_Event_WaitAll(ev, 2, 0);
    AQ_CHECK(ev[0] == GEX_EVENT_INVALID && ev[1] == GEX_EVENT_INVALID);
    memset(buf, 0, LEN + 500);
}

static void ask_for_replies(gex_Rank_t k, char *buf)
{
    const gex_Rank_t to = aq_test_peer(k);
    char *back = slot_of(aq_test_me, k, 4);

    aq_test_fill(buf, 100, 8);
    gex_AM_RequestMedium2(aq_test_tm, to, H_MED, buf, 100, GEX_EVENT_NOW, 0, 8, 1);
    aq_test_fill(buf, 100, 9);
    gex_AM_RequestLong3(aq_test_tm, to, H_LONG, buf, 100, slot_of(to, k, 3), GEX_EVENT_NOW, 0, 9,
                        AQ_HI(back), AQ_LO(back));
}

int main(int argc, char **argv)
{
    static char buf[LEN + 500];
    gex_Rank_t k;
    int i;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(10 * LEN);
    for (k = 0; k < 2; k++) {
        rule("core 20.3: NOW: Medium and Long sources may be reused at return");
        send_now(k, buf);
        rule("core 20.3: GROUP: sources may be reused after gex_NBI_Wait(GEX_EC_AM or ALL)");
        send_group(k, buf);
        rule("core 20.3: event: written at return, never NO_OP; sources reusable after its sync");
        send_event(k, buf);
        rule("core 20.3: replies with an event, synchronised later in ordinary code");
        ask_for_replies(k, buf);
    }
    aq_test_wait(&arrived, 2 * 9);
    aq_test_wait(&answered, 2 * 2);
    for (i = 0; i < atomic_load(&n_handed); i++)
        gex_Event_Wait(handed[i].event);
    AQ_CHECK_EQ(atomic_load(&n_handed), 4);
    return aq_test_finish();
}
