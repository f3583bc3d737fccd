/*
 * test_am_lc_medium.c - local completion of large AM Medium payloads, which a conduit may go on
 * reading after the call: NOW, GROUP and an event variable, requests and replies, fixed and
 * negotiated payloads, many under way at a time. Ranks 1+. Conduits all. Source GASNet-EX
 * specification 0.19, active messages. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_REQ = AQ_TEST_FREE, H_REP, HIGHEST = 65536, AT_ONCE = 6, ROUNDS = 3 };

#define AQ_LC_BYTES   HIGHEST
#define AQ_LC_SOURCES AT_ONCE
#include "aq_am_lc.h"

/* How the source is asked for; the last one by Prepare and Commit. */
enum { LC_NOW, LC_GROUP, LC_EVENT, LC_PREPARED, LC_KINDS };

static void answer(gex_Token_t token, size_t nbytes, gex_AM_Arg_t seed)
{
    struct aq_lc_source *source = aq_lc_fill(nbytes, seed + 1);

    gex_AM_ReplyMedium1(token, H_REP, source->data, nbytes, &source->event, 0, seed + 1);
    aq_lc_hand_over(source);
}

static void h_req(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed,
                  gex_AM_Arg_t with_event)
{
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    if (with_event) {
        answer(token, nbytes, seed);
    } else { /* the payload's own buffer is the source, and is gone after the handler */
        aq_test_fill(buf, nbytes, (uint64_t)seed + 1);
        gex_AM_ReplyMedium1(token, H_REP, buf, nbytes, GEX_EVENT_NOW, 0, seed + 1);
        memset(buf, 0x33, nbytes);
    }
    atomic_fetch_add(&requests, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_REQ, h_req, AQ_MQ, 2),
    AQ_ENTRY(H_REP, aq_lc_reply, AQ_MP, 1),
};

static void send_one(gex_Rank_t to, char *source, size_t nbytes, int lc, int seed,
                     gex_Event_t *event)
{
    gex_Event_t *const lc_opt = lc == LC_NOW     ? GEX_EVENT_NOW
                                : lc == LC_GROUP ? GEX_EVENT_GROUP
                                                 : event;
    gex_AM_SrcDesc_t sd;

    *event = lc >= LC_EVENT ? GEX_EVENT_NO_OP : GEX_EVENT_INVALID;
    if (lc != LC_PREPARED) {
        gex_AM_RequestMedium2(aq_test_tm, to, H_REQ, source, nbytes, lc_opt, 0, seed, seed % 2);
    } else {
        sd = gex_AM_PrepareRequestMedium(aq_test_tm, to, source, nbytes, nbytes, lc_opt, 0, 2);
        gex_AM_CommitRequestMedium2(sd, H_REQ, nbytes, seed, seed % 2);
    }
    AQ_CHECK(*event != GEX_EVENT_NO_OP);
    if (lc == LC_NOW)
        memset(source, 0x11, nbytes);
}

/* As many requests as there are sources, which are overwritten after their local completion. */
static void send_all(gex_Rank_t to, size_t nbytes, int lc)
{
    static char source[AT_ONCE][HIGHEST];
    gex_Event_t events[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        const int seed = 1000 * lc + i + 10 * (int)(nbytes % 7);

        aq_test_fill(source[i], nbytes, (uint64_t)seed);
        send_one(to, source[i], nbytes, lc, seed, &events[i]);
    }
    if (lc == LC_GROUP)
        gex_NBI_Wait(GEX_EC_AM, 0);
    gex_Event_WaitAll(events, AT_ONCE, 0);
    memset(source, 0x22, sizeof(source));
}

int main(int argc, char **argv)
{
    const gex_Event_t *const any = NULL;
    size_t sizes[] = { 8192, 8193, 20000, HIGHEST };
    size_t max;
    int done = 0;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    max = gex_AM_MaxRequestMedium(aq_test_tm, GEX_RANK_INVALID, any, 0, 2);
    if (gex_AM_MaxReplyMedium(aq_test_tm, GEX_RANK_INVALID, any, 0, 1) < max)
        max = gex_AM_MaxReplyMedium(aq_test_tm, GEX_RANK_INVALID, any, 0, 1);
    rule("core 20.3: large Medium sources may be changed after their local completion; peers get "
         "what they were");
    for (int round = 0; round < ROUNDS; round++)
        for (int lc = 0; lc < LC_KINDS; lc++)
            for (size_t s = 0; s < AQ_LENGTH(sizes); s++) {
                send_all((aq_test_me + 1) % gex_TM_QuerySize(aq_test_tm),
                         sizes[s] < max ? sizes[s] : max, lc);
                done += AT_ONCE;
                aq_test_wait(&replies, done);
                aq_test_wait(&requests, done);
                aq_lc_collect();
                aq_test_barrier();
            }
    return aq_test_finish();
}
