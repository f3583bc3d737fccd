/*
 * test_am_medium_args.c - every argument count of AM Medium, Request and Reply, numbered and
 * counting forms, each with a payload: arguments and bytes arrive intact.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_am_args.h"

enum { REQ = AQ_TEST_FREE, REP = REQ + 17, HIGHEST = 600 };

static aq_test_count_t count_of[2][17];

static gex_AM_Arg_t value(int n, int i)
{
    return (gex_AM_Arg_t)((uint32_t)(n * 131 + i + 7) * 2246822519u);
}

static size_t length(int n, int reply)
{
    return (size_t)(n * 37 + reply * 5) % HIGHEST;
}

static void check_message(int n, const gex_AM_Arg_t *got, int reply, const void *buf, size_t nbytes)
{
    AQ_CHECK_EQ(nbytes, length(n, reply));
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(n + 20 * reply)));
    atomic_fetch_add(&count_of[reply][n], 1);
    check_args(n, got, reply);
}

#define HANDLERS(N)                                                                              \
    static void reply_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                            \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                          \
        (void)token;                                                                             \
        check_message(N, got + 1, 1, buf, nbytes);                                               \
    }                                                                                            \
    static void request_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))             \
    {                                                                                            \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                          \
        gex_AM_Arg_t v[17];                                                                      \
        char data[HIGHEST];                                                                      \
        const size_t len = length(N, 1);                                                         \
        int rc;                                                                                  \
        check_message(N, got + 1, 0, buf, nbytes);                                               \
        make_args(N, v, 1);                                                                      \
        aq_test_fill(data, len, N + 20);                                                         \
        if (atomic_load(&count_of[0][N]) % 2)                                                    \
            rc = gex_AM_ReplyMedium##N(token, REP + N, data, len, GEX_EVENT_NOW, 0 AQ_GIVEN(N)); \
        else                                                                                     \
            rc = gex_AM_ReplyMedium(token, REP + N, data, len, GEX_EVENT_NOW, 0 AQ_GIVEN(N));    \
        AQ_CHECK_EQ(rc, 0);                                                                      \
        memset(data, 0xee, sizeof(data)); /* NOW: ours again at return */                        \
    }                                                                                            \
    static int send_##N(int place, int counting)                                                 \
    {                                                                                            \
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)place);                                   \
        gex_AM_Arg_t v[17];                                                                      \
        char data[HIGHEST];                                                                      \
        const size_t len = length(N, 0);                                                         \
        int rc;                                                                                  \
        make_args(N, v, 0);                                                                      \
        aq_test_fill(data, len, N);                                                              \
        if (counting)                                                                            \
            rc = gex_AM_RequestMedium(aq_test_tm, to, REQ + N, data, len, GEX_EVENT_NOW,         \
                                      0 AQ_GIVEN(N));                                            \
        else                                                                                     \
            rc = gex_AM_RequestMedium##N(aq_test_tm, to, REQ + N, data, len, GEX_EVENT_NOW,      \
                                         0 AQ_GIVEN(N));                                         \
        memset(data, 0xee, sizeof(data));                                                        \
        return rc;                                                                               \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N) AQ_ENTRY(REQ + N, request_##N, AQ_MQ, N), AQ_ENTRY(REP + N, reply_##N, AQ_MP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

static int (*const senders[])(int, int) = { AQ_EACH(AQ_ARGS_SENDER) };

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    send_each(senders,
              "core 20.1: RequestMedium0..16, numbered and counting: arguments and payload intact",
              "core 20.1: ReplyMedium0..16, numbered and counting: arguments and payload intact");
    for (int n = 0; n <= 16; n++) {
        AQ_CHECK_EQ(atomic_load(&count_of[0][n]), AQ_ARGS_ROUNDS * AQ_ARGS_PLACES);
        AQ_CHECK_EQ(atomic_load(&count_of[1][n]), AQ_ARGS_ROUNDS * AQ_ARGS_PLACES);
    }
    return aq_test_finish();
}
