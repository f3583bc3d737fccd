/*
 * test_am_lc_long.c - local completion of large AM Long payloads, which a conduit may go on reading
 * after the call: NOW, GROUP and an event variable, requests and replies, sources in and out of the
 * segment, many under way at a time. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19,
 * active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_REQ = AQ_TEST_FREE, H_REP, BIG = 200 * 1024, AT_ONCE = 4, SIZES = 4 };

#define AQ_LC_BYTES   BIG
#define AQ_LC_SOURCES (2 * AT_ONCE)
#include "aq_am_lc.h"

/* Segment: AT_ONCE slots that requests to me go to, AT_ONCE for replies to me, AT_ONCE as sources.
 * */
static const size_t sizes[SIZES] = { 5000, 32768, 70000, BIG };

static char *slot_of(gex_Rank_t rank, int part, int i)
{
    return (char *)aq_test_base(rank) + ((size_t)part * AT_ONCE + (size_t)i) * BIG;
}

/* slot < AT_ONCE: answer into the sender's slot at that address, with an event; else with NOW. */
static void h_req(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed,
                  gex_AM_Arg_t with_event, gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    static char now[BIG];
    struct aq_lc_source *source;

    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    if (with_event) {
        source = aq_lc_fill(nbytes, seed + 1);
        gex_AM_ReplyLong1(token, H_REP, source->data, nbytes, aq_test_pointer(hi, lo),
                          &source->event, 0, seed + 1);
        aq_lc_hand_over(source);
    } else {
        aq_test_fill(now, nbytes, (uint64_t)seed + 1);
        gex_AM_ReplyLong1(token, H_REP, now, nbytes, aq_test_pointer(hi, lo), GEX_EVENT_NOW, 0,
                          seed + 1);
        memset(now, 0x33, nbytes);
    }
    atomic_fetch_add(&requests, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_REQ, h_req, AQ_LQ, 4),
    AQ_ENTRY(H_REP, aq_lc_reply, AQ_LP, 1),
};

/* lc 0: NOW, 1: GROUP, 2: events. As many requests as there are slots, then their sources are
 * overwritten. */
static void send(gex_Rank_t to, size_t nbytes, int lc, char *const *source)
{
    gex_Event_t events[AT_ONCE];
    int i;

    for (i = 0; i < AT_ONCE; i++) {
        char *self = slot_of(aq_test_me, 1, i);
        const int seed = 1000 * lc + 10 * i + (int)(nbytes % 7);

        aq_test_fill(source[i], nbytes, (uint64_t)seed);
        events[i] = GEX_EVENT_NO_OP;
        gex_AM_RequestLong4(aq_test_tm, to, H_REQ, source[i], nbytes, slot_of(to, 0, i),
                            lc == 0   ? GEX_EVENT_NOW
                            : lc == 1 ? GEX_EVENT_GROUP
                                      : &events[i],
                            0, seed, i % 2, AQ_HI(self), AQ_LO(self));
        if (lc == 0)
            memset(source[i], 0x11, nbytes);
    }
    if (lc == 1)
        gex_NBI_Wait(GEX_EC_AM, 0);
    if (lc == 2) {
        AQ_CHECK(events[0] != GEX_EVENT_NO_OP);
        gex_Event_WaitAll(events, AT_ONCE, 0);
    }
    for (i = 0; i < AT_ONCE; i++)
        memset(source[i], 0x22, nbytes);
}

/* One pair at a time: only this rank uses the next rank's slots, and the last one's answers arrive
 * here. */
static void round_of(gex_Rank_t to, size_t nbytes, int lc, char *const *source)
{
    static int done;

    send(to, nbytes, lc, source);
    done += AT_ONCE;
    aq_test_wait(&replies, done);
    aq_test_wait(&requests, done);
    aq_lc_collect();
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    static char outside[AT_ONCE][BIG];
    char *in[AT_ONCE], *out[AT_ONCE];
    const gex_Event_t *const any = NULL;
    size_t max;
    int i, lc, s;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    max = gex_AM_MaxRequestLong(aq_test_tm, GEX_RANK_INVALID, any, 0, 4);
    if (gex_AM_MaxReplyLong(aq_test_tm, GEX_RANK_INVALID, any, 0, 1) < max)
        max = gex_AM_MaxReplyLong(aq_test_tm, GEX_RANK_INVALID, any, 0, 1);
    aq_test_segment(3 * AT_ONCE * (size_t)BIG);
    for (i = 0; i < AT_ONCE; i++) {
        in[i] = slot_of(aq_test_me, 2, i);
        out[i] = outside[i];
    }
    rule("core 20.3: large Long sources may be changed after their local completion; peers get "
         "what they were");
    for (s = 0; s < SIZES; s++)
        for (lc = 0; lc < 3; lc++) {
            round_of((aq_test_me + 1) % gex_TM_QuerySize(aq_test_tm),
                     sizes[s] < max ? sizes[s] : max, lc, in);
            round_of((aq_test_me + 1) % gex_TM_QuerySize(aq_test_tm),
                     sizes[s] < max ? sizes[s] : max, lc, out);
        }
    return aq_test_finish();
}
