/*
 * test_am_short_args.c - every argument count of AM Short, Request and Reply, numbered and counting
 * forms: all arguments arrive intact and in order.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_args.h"
#include "aq_test.h"

enum { REQ = AQ_TEST_FREE, REP = REQ + 17, ROUNDS = 2 };

static aq_test_count_t requests, replies;
static aq_test_count_t count_of[2][17];

/* Values with every bit pattern that a wrong conversion would spoil. */
static gex_AM_Arg_t value(int n, int i)
{
    static const gex_AM_Arg_t edge[] = { INT32_MIN, INT32_MAX, -1, 0, 1 };

    return i % 3 == 0 ? edge[(n + i) % 5] : (gex_AM_Arg_t)((uint32_t)(n * 97 + i + 1) * 2654435761u);
}

static void check_args(int n, const gex_AM_Arg_t *got, int reply)
{
    int i;

    for (i = 0; i < n; i++)
        AQ_CHECK_EQ(got[i], value(n + 20 * reply, i));
    atomic_fetch_add(&count_of[reply][n], 1);
    atomic_fetch_add(reply ? &replies : &requests, 1);
}

static void make_args(int n, gex_AM_Arg_t *v, int reply)
{
    int i;

    for (i = 0; i < n; i++)
        v[i] = value(n + 20 * reply, i);
}

/* A request with an odd count is answered by the counting form, others by the numbered one. */
#define HANDLERS(N)                                                                                \
    static void reply_##N(gex_Token_t token AQ_DECLS(N))                                           \
    {                                                                                              \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                            \
        (void)token;                                                                               \
        check_args(N, got + 1, 1);                                                                 \
    }                                                                                              \
    static void request_##N(gex_Token_t token AQ_DECLS(N))                                         \
    {                                                                                              \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                            \
        gex_AM_Arg_t v[17];                                                                        \
        int rc;                                                                                    \
        check_args(N, got + 1, 0);                                                                 \
        make_args(N, v, 1);                                                                        \
        if (atomic_load(&count_of[0][N]) % 2)                                                      \
            rc = gex_AM_ReplyShort##N(token, REP + N, 0 AQ_GIVEN(N));                              \
        else                                                                                       \
            rc = gex_AM_ReplyShort(token, REP + N, 0 AQ_GIVEN(N));                                 \
        AQ_CHECK_EQ(rc, 0);                                                                        \
    }                                                                                              \
    static int send_##N(gex_Rank_t to, int counting)                                               \
    {                                                                                              \
        gex_AM_Arg_t v[17];                                                                        \
        make_args(N, v, 0);                                                                        \
        if (counting)                                                                              \
            return gex_AM_RequestShort(aq_test_tm, to, REQ + N, 0 AQ_GIVEN(N));                    \
        return gex_AM_RequestShort##N(aq_test_tm, to, REQ + N, 0 AQ_GIVEN(N));                     \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N)                                                                                 \
    AQ_ENTRY(REQ + N, request_##N, AQ_SQ, N), AQ_ENTRY(REP + N, reply_##N, AQ_SP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

#define SENDER(N) send_##N,
static int (*const senders[])(gex_Rank_t, int) = { AQ_EACH(SENDER) };

int main(int argc, char **argv)
{
    const gex_Rank_t targets[] = { 0, 1 };
    int n, round;
    size_t t;

    aq_test_start(&argc, &argv, 1);
    rule("core 18: gex_AM_MaxArgs is at least 16");
    AQ_CHECK(gex_AM_MaxArgs() >= 16);
    rule("core 20.1: RequestShort0..16, numbered and counting: arguments arrive intact");
    aq_test_handlers(table, AQ_LENGTH(table));
    for (round = 0; round < ROUNDS; round++)
        for (n = 0; n <= 16; n++)
            for (t = 0; t < AQ_LENGTH(targets); t++)
                AQ_CHECK_EQ(senders[n](aq_test_peer(targets[t]), round), 0);
    aq_test_wait(&requests, 17 * ROUNDS * 2);
    rule("core 20.1: ReplyShort0..16, numbered and counting: arguments arrive intact");
    aq_test_wait(&replies, 17 * ROUNDS * 2);
    rule("core 22: each accepted message is delivered exactly once");
    aq_test_barrier();
    for (n = 0; n <= 16; n++) {
        AQ_CHECK_EQ(atomic_load(&count_of[0][n]), ROUNDS * 2);
        AQ_CHECK_EQ(atomic_load(&count_of[1][n]), ROUNDS * 2);
    }
    return aq_test_finish();
}
