/*
 * test_am_replies.c - a reply is optional, of any category, reaches the requester only, may be sent
 * to a handler registered for both; handlers nest at most two deep and never inside calls that may
 * not; a payload stays until its handler returns, also after the reply. Ranks 1+. Conduits all.
 * Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum {
    H_ASK_S = AQ_TEST_FREE,
    H_ASK_M,
    H_ASK_L,
    H_ANS_S,
    H_ANS_M,
    H_ANS_L,
    H_BOTH,
    H_SILENT,
    H_READ_ON,
    H_NEXT,
    NONE = 3,
    ROUNDS = 20,
    WORDS = 1000, /* of a large payload; a small one has 100 */
    READS = 40
};

static aq_test_count_t asked, answers[3], both, silent, next;
static _Thread_local int depth, in_request, in_reply;
static atomic_int too_deep, wrong_nest;

static void enter(int request)
{
    if (++depth > 2)
        atomic_fetch_add(&too_deep, 1);
    if (request && (in_request || in_reply)) /* a request handler may interrupt no handler */
        atomic_fetch_add(&wrong_nest, 1);
    if (!request && in_reply)
        atomic_fetch_add(&wrong_nest, 1);
    if (request)
        in_request++;
    else
        in_reply++;
}

static void leave(int request)
{
    depth--;
    if (request)
        in_request--;
    else
        in_reply--;
}

static void answer(gex_Token_t token, gex_AM_Arg_t how, gex_AM_Arg_t from)
{
    static const char text[] = "an answer";
    gex_Token_Info_t info;
    char *dest;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    AQ_CHECK_EQ(info.gex_srcrank, from);
    dest = (char *)aq_test_base(info.gex_srcrank) + 64 * (size_t)(1 + aq_test_me);
    if (how == 0)
        gex_AM_ReplyShort1(token, H_ANS_S, 0, from);
    else if (how == 1)
        gex_AM_ReplyMedium1(token, H_ANS_M, text, sizeof(text), GEX_EVENT_NOW, 0, from);
    else if (how == 2)
        gex_AM_ReplyLong1(token, H_ANS_L, text, sizeof(text), dest, GEX_EVENT_NOW, 0, from);
    atomic_fetch_add(&asked, 1);
}

static void h_ask_s(gex_Token_t token, gex_AM_Arg_t how, gex_AM_Arg_t from)
{
    enter(1);
    answer(token, how, from);
    leave(1);
}

static void h_ask_ml(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t how,
                     gex_AM_Arg_t from)
{
    enter(1);
    AQ_CHECK(nbytes == 4 && memcmp(buf, "ask", 4) == 0);
    answer(token, how, from);
    leave(1);
}

static void h_ans_s(gex_Token_t token, gex_AM_Arg_t to)
{
    (void)token;
    enter(0);
    AQ_CHECK_EQ(to, aq_test_me);
    atomic_fetch_add(&answers[0], 1);
    leave(0);
}

static void h_ans_ml(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t to)
{
    (void)token;
    enter(0);
    AQ_CHECK_EQ(to, aq_test_me);
    AQ_CHECK(nbytes == 10 && strcmp(buf, "an answer") == 0);
    atomic_fetch_add(&answers[1], 1);
    leave(0);
}

/* Registered for both directions: first comes as a request, then as the reply to itself. */
static void h_both(gex_Token_t token, gex_AM_Arg_t is_request)
{
    gex_Token_Info_t info;

    enter(is_request);
    if (gex_Token_Info(token, &info, GEX_TI_IS_REQ) & GEX_TI_IS_REQ)
        AQ_CHECK_EQ(info.gex_is_req, is_request);
    if (is_request)
        gex_AM_ReplyShort1(token, H_BOTH, 0, 0);
    else
        atomic_fetch_add(&both, 1);
    leave(is_request);
}

static void h_silent(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&silent, 1);
}

/* Are all words of a payload this number? */
static int all_are(const void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    const volatile gex_AM_Arg_t *words = buf;
    size_t i;

    for (i = 0; i < nbytes / sizeof(*words); i++)
        if (words[i] != number)
            return 0;
    return 1;
}

/* Replies and reads on, while the requester, which has the reply, sends its next payloads. */
static void h_read_on(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    gex_AM_Arg_t answer[WORDS];
    int intact = 1, i;

    for (i = 0; i < WORDS; i++)
        answer[i] = ~number;
    gex_AM_ReplyMedium1(token, H_NEXT, answer, nbytes, GEX_EVENT_NOW, 0, ~number);
    for (i = 0; i < READS; i++)
        intact &= all_are(buf, nbytes, number);
    AQ_CHECK(intact);
}

static void h_next(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    (void)token;
    AQ_CHECK(all_are(buf, nbytes, number));
    atomic_fetch_add(&next, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK_S, h_ask_s, AQ_SQ, 2),
    AQ_ENTRY(H_ASK_M, h_ask_ml, AQ_MQ, 2),
    AQ_ENTRY(H_ASK_L, h_ask_ml, AQ_LQ, 2),
    AQ_ENTRY(H_ANS_S, h_ans_s, AQ_SP, 1),
    AQ_ENTRY(H_ANS_M, h_ans_ml, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 1),
    AQ_ENTRY(H_ANS_L, h_ans_ml, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP, 1),
    AQ_ENTRY(H_BOTH, h_both, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 1),
    AQ_ENTRY(H_SILENT, h_silent, AQ_SQ, 0),
    AQ_ENTRY(H_READ_ON, h_read_on, AQ_MQ, 1),
    AQ_ENTRY(H_NEXT, h_next, AQ_MP, 1),
};

/* Sizes take turns, so that blocks of one size come back between those of another. */
static void ask_for_next(gex_Rank_t to, gex_AM_Arg_t number)
{
    gex_AM_Arg_t payload[WORDS];
    size_t words = number % 5 == 4 ? 1 : number % 5 == 3 ? 100 : WORDS, i;

    for (i = 0; i < words; i++)
        payload[i] = number;
    gex_AM_RequestMedium1(aq_test_tm, to, H_READ_ON, payload, words * sizeof(payload[0]),
                          GEX_EVENT_NOW, 0, number);
    aq_test_wait(&next, number + 1);
}

static void ask_all(gex_Rank_t to, int how)
{
    char *dest = (char *)aq_test_base(to) + 64 * (size_t)(1 + aq_test_n + aq_test_me);

    gex_AM_RequestShort2(aq_test_tm, to, H_ASK_S, 0, how, aq_test_me);
    gex_AM_RequestMedium2(aq_test_tm, to, H_ASK_M, "ask", 4, GEX_EVENT_NOW, 0, how, aq_test_me);
    gex_AM_RequestLong2(aq_test_tm, to, H_ASK_L, "ask", 4, dest, GEX_EVENT_NOW, 0, how, aq_test_me);
}

int main(int argc, char **argv)
{
    int round, how;
    gex_Rank_t r;
    int all;

    aq_test_start(&argc, &argv, 1);
    all = (int)aq_test_n;
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(64 * (size_t)(2 * aq_test_n + 2));
    rule("core 20.5: replies of each category to requests of each category reach the requester");
    for (round = 0; round < ROUNDS; round++)
        for (r = 0; r < aq_test_n; r++)
            for (how = 0; how <= NONE; how++)
                ask_all(r, how);
    aq_test_wait(&asked, 3 * (NONE + 1) * all * ROUNDS);
    aq_test_wait(&answers[0], 3 * all * ROUNDS);
    aq_test_wait(&answers[1], 6 * all * ROUNDS);
    rule("core 20.5: replying is optional");
    for (r = 0; r < aq_test_n; r++)
        gex_AM_RequestShort0(aq_test_tm, r, H_SILENT, 0);
    aq_test_wait(&silent, all);
    rule("core 17: REQREP and MEDLONG handlers serve both");
    for (round = 0; round < ROUNDS; round++)
        for (r = 0; r < aq_test_n; r++)
            gex_AM_RequestShort1(aq_test_tm, r, H_BOTH, 0, 1);
    aq_test_wait(&both, all * ROUNDS);
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&answers[0]), 3 * all * ROUNDS);
    AQ_CHECK_EQ(atomic_load(&answers[1]), 6 * all * ROUNDS);
    rule("core 22: handlers nest at most two deep on one thread");
    AQ_CHECK_EQ(atomic_load(&too_deep), 0);
    rule("core 20.5: a reply never runs request handlers on its thread");
    AQ_CHECK_EQ(atomic_load(&wrong_nest), 0);
    rule("core 2: a payload is the handler's until it returns, also after its reply");
    for (round = 0; round < 20 * ROUNDS; round++)
        ask_for_next((aq_test_me + 1) % aq_test_n, round);
    return aq_test_finish();
}
