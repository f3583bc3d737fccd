/*
 * test_npam_interval.c - between Prepare and Commit: no handler runs on the thread, the calls of a
 * reply handler are legal; a Commit that waits runs handlers which prepare and commit replies
 * themselves. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, contexts, negotiated
 * payload. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_PING = AQ_TEST_FREE, H_ASK, H_ANS, PINGS = 40, LEN = 6000 };

static aq_test_count_t pings, asked, answered;
static _Thread_local int closed; /* no handler may run on this thread */
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

static void h_ping(gex_Token_t token)
{
    (void)token;
    AQ_CHECK(!closed);
    atomic_fetch_add(&pings, 1);
}

/* Everything that is legal here. */
static void permitted(gex_Token_t token)
{
    gex_Token_Info_t info;
    void *owner, *local;
    uintptr_t size;
    gex_Event_t event;

    AQ_CHECK_EQ(gex_System_QueryJobRank(), aq_test_me);
    AQ_CHECK_EQ(gex_System_QueryJobSize(), aq_test_n);
    AQ_CHECK_EQ(gex_TM_QueryRank(aq_test_tm), aq_test_me);
    AQ_CHECK_EQ(gex_TM_QuerySize(aq_test_tm), aq_test_n);
    if (aq_test_seg != GEX_SEGMENT_INVALID) /* where everything is the segment there is none */
        AQ_CHECK(gex_Segment_QueryAddr(aq_test_seg) == aq_test_base(aq_test_me));
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == aq_test_seg);
    AQ_CHECK(gex_TM_Pair(aq_test_ep, 0) == gex_TM_Pair(aq_test_ep, 0));
    AQ_CHECK(gex_AM_LUBRequestMedium() >= 512);
    AQ_CHECK(gex_AM_MaxRequestMedium(aq_test_tm, aq_test_peer(1), GEX_EVENT_NOW, 0, 3) >= 512);
    AQ_CHECK(gex_AM_MaxReplyLong(aq_test_tm, aq_test_peer(1), GEX_EVENT_NOW, 0, 3) >= 512);
    AQ_CHECK_EQ(gex_AM_MaxArgs(), 16);
    gex_TM_SetCData(aq_test_tm, &pings);
    AQ_CHECK(gex_TM_QueryCData(aq_test_tm) == &pings);
    gex_HSL_Lock(&lock);
    gex_HSL_Unlock(&lock);
    if (gex_HSL_Trylock(&lock) == GASNET_OK)
        gex_HSL_Unlock(&lock);
    event = gex_EP_QueryBoundSegmentNB(aq_test_tm, aq_test_me, &owner, &local, &size,
                                       GEX_FLAG_IMMEDIATE);
    AQ_CHECK(event == GEX_EVENT_INVALID || event == GEX_EVENT_NO_OP);
    if (token != NULL)
        AQ_CHECK(gex_Token_Info(token, &info, GEX_TI_SRCRANK) & GEX_TI_SRCRANK);
}

static void h_ask(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    gex_AM_SrcDesc_t sd;

    AQ_CHECK(!closed);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    sd = gex_AM_PrepareReplyMedium(token, NULL, nbytes, nbytes, NULL, 0, 1);
    closed++;
    permitted(token);
    AQ_CHECK(gex_AM_SrcDescAddr(sd) != buf);
    memcpy(gex_AM_SrcDescAddr(sd), buf, nbytes);
    closed--;
    gex_AM_CommitReplyMedium1(sd, H_ANS, nbytes, seed);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    permitted(token);
    atomic_fetch_add(&asked, 1);
}

static void h_ans(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(!closed);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&answered, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_PING, h_ping, AQ_SQ, 0),
    AQ_ENTRY(H_ASK, h_ask, AQ_MQ, 1),
    AQ_ENTRY(H_ANS, h_ans, AQ_MP, 1),
};

/* Messages are waiting here while the interval is open. */
static void quiet_interval(int is_long)
{
    gex_AM_SrcDesc_t sd;
    int before, i;

    for (i = 0; i < PINGS; i++)
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_PING, GEX_FLAG_IMMEDIATE);
    sd =
        is_long
            ? gex_AM_PrepareRequestLong(aq_test_tm, aq_test_peer(1), NULL, 8, LEN, NULL, NULL, 0, 0)
            : gex_AM_PrepareRequestMedium(aq_test_tm, aq_test_peer(1), NULL, 8, LEN, NULL, 0, 0);
    closed++;
    before = atomic_load(&pings);
    for (i = 0; i < 20; i++) {
        permitted(NULL);
        memset(gex_AM_SrcDescAddr(sd), i, gex_AM_SrcDescSize(sd));
    }
    if (is_long)
        gex_AM_CancelRequestLong(sd, 0);
    else
        gex_AM_CancelRequestMedium(sd, 0);
    AQ_CHECK_EQ(atomic_load(&pings), before);
    closed--;
}

/* All ranks send requests without polling: Commits must wait, and serve what arrives. */
static void flood(int rounds)
{
    gex_AM_SrcDesc_t sd;
    int i;

    for (i = 0; i < rounds; i++) {
        const gex_Rank_t to = (gex_Rank_t)(i % 3 ? aq_test_peer(1) : (gex_Rank_t)i % aq_test_n);
        const size_t len = (size_t)(i * 97) % LEN;

        sd = gex_AM_PrepareRequestMedium(aq_test_tm, to, NULL, len, len, NULL, 0, 1);
        closed++;
        aq_test_fill(gex_AM_SrcDescAddr(sd), len, (uint64_t)i);
        closed--;
        gex_AM_CommitRequestMedium1(sd, H_ASK, len, i);
    }
}

int main(int argc, char **argv)
{
    int rounds, i;

    aq_test_start(&argc, &argv, 1);
    rounds = aq_test_quick ? 300 : 4000;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(4096);
    rule("core 6: between Prepare and Cancel no handler runs on the thread; queries and locks are "
         "legal");
    for (i = 0; i < 10; i++)
        quiet_interval(i % 2);
    aq_test_barrier();
    rule("core 30.12: Commits that wait run handlers that prepare replies on the same thread");
    flood(rounds);
    rule("core 22: everybody sends, nobody polls, and nobody waits for ever");
    aq_test_wait(&answered, rounds);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&answered), rounds);
    return aq_test_finish();
}
