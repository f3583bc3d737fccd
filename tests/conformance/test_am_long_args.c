/*
 * test_am_long_args.c - every argument count of AM Long, Request and Reply, numbered and counting
 * forms: arguments intact, bytes at dest before the handler starts, buf == dest.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_am_args.h"

/*
 * Segment: a cell for each (reply?, count, round, sender's place k). Rank s sends to s and to s+1,
 * so a cell is written once.
 */
enum { REQ = AQ_TEST_FREE, REP = REQ + 17, ROUNDS = AQ_ARGS_ROUNDS, CELL = 640 };

static size_t cell(int reply, int n, int round, int k)
{
    return (size_t)(((reply * 17 + n) * ROUNDS + round) * 2 + k) * CELL;
}

static gex_AM_Arg_t value(int n, int i)
{
    return (gex_AM_Arg_t)((uint32_t)(n * 61 + i + 3) * 3266489917u);
}

static size_t length(int n, int reply)
{
    return (size_t)(n * 37 + reply * 5 + 1) % (CELL - 8);
}

static void check_message(int n, const gex_AM_Arg_t *got, int reply, const char *buf, size_t nbytes)
{
    const char *base = aq_test_base(aq_test_me);
    size_t off = (size_t)(buf - base);

    AQ_CHECK_EQ(nbytes, length(n, reply));
    AQ_CHECK(off >= cell(reply, n, 0, 0) && off < cell(reply, n, 0, 0) + 2 * ROUNDS * CELL);
    AQ_CHECK_EQ(off % CELL, 3);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(n + 20 * reply)));
    check_args(n, got, reply);
}

/* Where the answer goes: the same place of the requester's segment, in the reply half. */
static void *reply_dest(gex_Token_t token, const char *buf, int n)
{
    gex_Token_Info_t info;
    size_t off = (size_t)(buf - (const char *)aq_test_base(aq_test_me));

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return (char *)aq_test_base(info.gex_srcrank) + off + cell(1, n, 0, 0) - cell(0, n, 0, 0);
}

#define HANDLERS(N)                                                                           \
    static void reply_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))            \
    {                                                                                         \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                       \
        (void)token;                                                                          \
        check_message(N, got + 1, 1, buf, nbytes);                                            \
    }                                                                                         \
    static void request_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))          \
    {                                                                                         \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                       \
        gex_AM_Arg_t v[17];                                                                   \
        char data[CELL];                                                                      \
        void *dest = reply_dest(token, buf, N);                                               \
        int rc;                                                                               \
        check_message(N, got + 1, 0, buf, nbytes);                                            \
        make_args(N, v, 1);                                                                   \
        aq_test_fill(data, length(N, 1), N + 20);                                             \
        if (N % 2)                                                                            \
            rc = gex_AM_ReplyLong##N(token, REP + N, data, length(N, 1), dest, GEX_EVENT_NOW, \
                                     0 AQ_GIVEN(N));                                          \
        else                                                                                  \
            rc = gex_AM_ReplyLong(token, REP + N, data, length(N, 1), dest, GEX_EVENT_NOW,    \
                                  0 AQ_GIVEN(N));                                             \
        AQ_CHECK_EQ(rc, 0);                                                                   \
        memset(data, 0xee, sizeof(data));                                                     \
    }                                                                                         \
    static int send_##N(int k, int round)                                                     \
    {                                                                                         \
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)k);                                    \
        char *dest = (char *)aq_test_base(to) + cell(0, N, round, k) + 3;                     \
        gex_AM_Arg_t v[17];                                                                   \
        char data[CELL];                                                                      \
        int rc;                                                                               \
        make_args(N, v, 0);                                                                   \
        aq_test_fill(data, length(N, 0), N);                                                  \
        if (round)                                                                            \
            rc = gex_AM_RequestLong(aq_test_tm, to, REQ + N, data, length(N, 0), dest,        \
                                    GEX_EVENT_NOW, 0 AQ_GIVEN(N));                            \
        else                                                                                  \
            rc = gex_AM_RequestLong##N(aq_test_tm, to, REQ + N, data, length(N, 0), dest,     \
                                       GEX_EVENT_NOW, 0 AQ_GIVEN(N));                         \
        memset(data, 0xee, sizeof(data));                                                     \
        return rc;                                                                            \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N) AQ_ENTRY(REQ + N, request_##N, AQ_LQ, N), AQ_ENTRY(REP + N, reply_##N, AQ_LP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

static int (*const senders[])(int, int) = { AQ_EACH(AQ_ARGS_SENDER) };

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(cell(2, 0, 0, 0));
    send_each(senders,
              "core 20.1: RequestLong0..16, numbered and counting: arguments and payload intact",
              "core 20.1: ReplyLong0..16, numbered and counting: arguments and payload intact");
    return aq_test_finish();
}
