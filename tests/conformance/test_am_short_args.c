/*
 * test_am_short_args.c - every argument count of AM Short, Request and Reply, numbered and counting
 * forms: all arguments arrive intact and in order.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_am_args.h"

enum { REQ = AQ_TEST_FREE, REP = REQ + 17 };

static aq_test_count_t count_of[2][17];

/* Values with every bit pattern that a wrong conversion would spoil. */
static gex_AM_Arg_t value(int n, int i)
{
    static const gex_AM_Arg_t edge[] = { INT32_MIN, INT32_MAX, -1, 0, 1 };

    return i % 3 == 0 ? edge[(n + i) % 5]
                      : (gex_AM_Arg_t)((uint32_t)(n * 97 + i + 1) * 2654435761u);
}

static void check_message(int n, const gex_AM_Arg_t *got, int reply)
{
    atomic_fetch_add(&count_of[reply][n], 1);
    check_args(n, got, reply);
}

/* A request with an odd count is answered by the counting form, others by the numbered one. */
#define HANDLERS(N)                                                             \
    static void reply_##N(gex_Token_t token AQ_DECLS(N))                        \
    {                                                                           \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                         \
        (void)token;                                                            \
        check_message(N, got + 1, 1);                                           \
    }                                                                           \
    static void request_##N(gex_Token_t token AQ_DECLS(N))                      \
    {                                                                           \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                         \
        gex_AM_Arg_t v[17];                                                     \
        int rc;                                                                 \
        check_message(N, got + 1, 0);                                           \
        make_args(N, v, 1);                                                     \
        if (atomic_load(&count_of[0][N]) % 2)                                   \
            rc = gex_AM_ReplyShort##N(token, REP + N, 0 AQ_GIVEN(N));           \
        else                                                                    \
            rc = gex_AM_ReplyShort(token, REP + N, 0 AQ_GIVEN(N));              \
        AQ_CHECK_EQ(rc, 0);                                                     \
    }                                                                           \
    static int send_##N(int place, int counting)                                \
    {                                                                           \
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)place);                  \
        gex_AM_Arg_t v[17];                                                     \
        make_args(N, v, 0);                                                     \
        if (counting)                                                           \
            return gex_AM_RequestShort(aq_test_tm, to, REQ + N, 0 AQ_GIVEN(N)); \
        return gex_AM_RequestShort##N(aq_test_tm, to, REQ + N, 0 AQ_GIVEN(N));  \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N) AQ_ENTRY(REQ + N, request_##N, AQ_SQ, N), AQ_ENTRY(REP + N, reply_##N, AQ_SP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

static int (*const senders[])(int, int) = { AQ_EACH(AQ_ARGS_SENDER) };

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    rule("core 18: gex_AM_MaxArgs is at least 16");
    AQ_CHECK(gex_AM_MaxArgs() >= 16);
    aq_test_handlers(table, AQ_LENGTH(table));
    send_each(senders,
              "core 20.1: RequestShort0..16, numbered and counting: arguments arrive intact",
              "core 20.1: ReplyShort0..16, numbered and counting: arguments arrive intact");
    for (int n = 0; n <= 16; n++) {
        AQ_CHECK_EQ(atomic_load(&count_of[0][n]), AQ_ARGS_ROUNDS * AQ_ARGS_PLACES);
        AQ_CHECK_EQ(atomic_load(&count_of[1][n]), AQ_ARGS_ROUNDS * AQ_ARGS_PLACES);
    }
    return aq_test_finish();
}
