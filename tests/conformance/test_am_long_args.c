/*
 * test_am_long_args.c - every argument count of AM Long, Request and Reply, numbered and counting
 * forms: arguments intact, bytes at dest before the handler starts, buf == dest.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, active messages.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_args.h"
#include "aq_test.h"

/*
 * Segment: a cell for each (reply?, count, round, sender's place k). Rank s sends to s and to s+1, so
 * a cell is written once.
 */
enum { REQ = AQ_TEST_FREE, REP = REQ + 17, ROUNDS = 2, CELL = 640 };

static aq_test_count_t requests, replies;

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

/* The first two arguments, where there are any, tell the handler which cell is meant. */
static void make_args(int n, gex_AM_Arg_t *v, int reply)
{
    int i;

    for (i = 0; i < n; i++)
        v[i] = value(n + 20 * reply, i);
}

static void check_message(int n, const gex_AM_Arg_t *got, int reply, const char *buf, size_t nbytes)
{
    const char *base = aq_test_base(aq_test_me);
    size_t off = (size_t)(buf - base);
    int i;

    for (i = 0; i < n; i++)
        AQ_CHECK_EQ(got[i], value(n + 20 * reply, i));
    AQ_CHECK_EQ(nbytes, length(n, reply));
    AQ_CHECK(off >= cell(reply, n, 0, 0) && off < cell(reply, n, 0, 0) + 2 * ROUNDS * CELL);
    AQ_CHECK_EQ(off % CELL, 3);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(n + 20 * reply)));
    atomic_fetch_add(reply ? &replies : &requests, 1);
}

/* Where the answer goes: the same place of the requester's segment, in the reply half. */
static void *reply_dest(gex_Token_t token, const char *buf, int n)
{
    gex_Token_Info_t info;
    size_t off = (size_t)(buf - (const char *)aq_test_base(aq_test_me));

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    return (char *)aq_test_base(info.gex_srcrank) + off + cell(1, n, 0, 0) - cell(0, n, 0, 0);
}

#define HANDLERS(N)                                                                                \
    static void reply_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))                 \
    {                                                                                              \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                            \
        (void)token;                                                                               \
        check_message(N, got + 1, 1, buf, nbytes);                                                 \
    }                                                                                              \
    static void request_##N(gex_Token_t token, void *buf, size_t nbytes AQ_DECLS(N))               \
    {                                                                                              \
        const gex_AM_Arg_t got[17] = { 0 AQ_NAMES(N) };                                            \
        gex_AM_Arg_t v[17];                                                                        \
        char data[CELL];                                                                           \
        void *dest = reply_dest(token, buf, N);                                                    \
        int rc;                                                                                    \
        check_message(N, got + 1, 0, buf, nbytes);                                                 \
        make_args(N, v, 1);                                                                        \
        aq_test_fill(data, length(N, 1), N + 20);                                                  \
        if (N % 2)                                                                                 \
            rc = gex_AM_ReplyLong##N(token, REP + N, data, length(N, 1), dest, GEX_EVENT_NOW,      \
                                     0 AQ_GIVEN(N));                                               \
        else                                                                                       \
            rc = gex_AM_ReplyLong(token, REP + N, data, length(N, 1), dest, GEX_EVENT_NOW,         \
                                  0 AQ_GIVEN(N));                                                  \
        AQ_CHECK_EQ(rc, 0);                                                                        \
        memset(data, 0xee, sizeof(data));                                                          \
    }                                                                                              \
    static int send_##N(int k, int round)                                                          \
    {                                                                                              \
        const gex_Rank_t to = aq_test_peer((gex_Rank_t)k);                                         \
        char *dest = (char *)aq_test_base(to) + cell(0, N, round, k) + 3;                          \
        gex_AM_Arg_t v[17];                                                                        \
        char data[CELL];                                                                           \
        int rc;                                                                                    \
        make_args(N, v, 0);                                                                        \
        aq_test_fill(data, length(N, 0), N);                                                       \
        if (round)                                                                                 \
            rc = gex_AM_RequestLong(aq_test_tm, to, REQ + N, data, length(N, 0), dest,             \
                                    GEX_EVENT_NOW, 0 AQ_GIVEN(N));                                 \
        else                                                                                       \
            rc = gex_AM_RequestLong##N(aq_test_tm, to, REQ + N, data, length(N, 0), dest,          \
                                       GEX_EVENT_NOW, 0 AQ_GIVEN(N));                              \
        memset(data, 0xee, sizeof(data));                                                          \
        return rc;                                                                                 \
    }
AQ_EACH(HANDLERS)

#define ENTRIES(N)                                                                                 \
    AQ_ENTRY(REQ + N, request_##N, AQ_LQ, N), AQ_ENTRY(REP + N, reply_##N, AQ_LP, N),
static gex_AM_Entry_t table[] = { AQ_EACH(ENTRIES) };

#define SENDER(N) send_##N,
static int (*const senders[])(int, int) = { AQ_EACH(SENDER) };

int main(int argc, char **argv)
{
    int n, round, k;

    aq_test_start(&argc, &argv, 1);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(cell(2, 0, 0, 0));
    rule("core 20.1: RequestLong0..16, numbered and counting: arguments and payload intact");
    for (round = 0; round < ROUNDS; round++)
        for (n = 0; n <= 16; n++)
            for (k = 0; k < 2; k++)
                AQ_CHECK_EQ(senders[n](k, round), 0);
    aq_test_wait(&requests, 17 * ROUNDS * 2);
    rule("core 20.1: ReplyLong0..16, numbered and counting: arguments and payload intact");
    aq_test_wait(&replies, 17 * ROUNDS * 2);
    rule("core 22: each accepted message is delivered exactly once");
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&requests), 17 * ROUNDS * 2);
    AQ_CHECK_EQ(atomic_load(&replies), 17 * ROUNDS * 2);
    return aq_test_finish();
}
