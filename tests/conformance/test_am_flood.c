/*
 * test_am_flood.c - ranks that send to each other as fast as they can and never poll must not hang,
 * with requests of each category that are all answered.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, progress.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_S = AQ_TEST_FREE, H_M, H_L, H_SP, H_MP, H_LP, LEN = 2000 };

static aq_test_count_t requests, replies;
static char payload[LEN];

static void *place(gex_Rank_t owner, gex_Rank_t writer, int reply)
{
    return (char *)aq_test_base(owner) + ((size_t)writer * 2 + (size_t)reply) * LEN;
}

static void h_s(gex_Token_t token, gex_AM_Arg_t a)
{
    gex_AM_ReplyShort1(token, H_SP, 0, a);
    atomic_fetch_add(&requests, 1);
}

static void h_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    AQ_CHECK(nbytes == LEN && memcmp(buf, payload, LEN) == 0);
    gex_AM_ReplyMedium1(token, H_MP, buf, nbytes, GEX_EVENT_NOW, 0, a);
    atomic_fetch_add(&requests, 1);
}

static void h_l(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from)
{
    AQ_CHECK(nbytes == LEN && memcmp(buf, payload, LEN) == 0);
    gex_AM_ReplyLong1(token, H_LP, buf, nbytes, place((gex_Rank_t)from, aq_test_me, 1),
                      GEX_EVENT_NOW, 0, from);
    atomic_fetch_add(&requests, 1);
}

static void h_sp(gex_Token_t token, gex_AM_Arg_t a)
{
    (void)token;
    AQ_CHECK_EQ(a, aq_test_me);
    atomic_fetch_add(&replies, 1);
}

static void h_mp(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    (void)token;
    AQ_CHECK_EQ(a, aq_test_me);
    AQ_CHECK(nbytes == LEN && memcmp(buf, payload, LEN) == 0);
    atomic_fetch_add(&replies, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_S, h_s, AQ_SQ, 1),   AQ_ENTRY(H_M, h_m, AQ_MQ, 1),   AQ_ENTRY(H_L, h_l, AQ_LQ, 1),
    AQ_ENTRY(H_SP, h_sp, AQ_SP, 1), AQ_ENTRY(H_MP, h_mp, AQ_MP, 1), AQ_ENTRY(H_LP, h_mp, AQ_LP, 1),
};

static void send_one(int kind, gex_Rank_t to)
{
    if (kind == 0)
        gex_AM_RequestShort1(aq_test_tm, to, H_S, 0, aq_test_me);
    else if (kind == 1)
        gex_AM_RequestMedium1(aq_test_tm, to, H_M, payload, LEN, GEX_EVENT_NOW, 0, aq_test_me);
    else
        gex_AM_RequestLong1(aq_test_tm, to, H_L, payload, LEN, place(to, aq_test_me, 0),
                            GEX_EVENT_NOW, 0, aq_test_me);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "core 22: mutual flood of Shorts without polling, all answered, no deadlock",
        "core 22: mutual flood of Mediums without polling, all answered, no deadlock",
        "core 22: mutual flood of Longs without polling, all answered, no deadlock",
        "core 22: mutual flood of all kinds to all ranks without polling, no deadlock",
    };
    int kind, i, each, total = 0;
    gex_Rank_t r;

    aq_test_start(&argc, &argv, 1);
    aq_test_fill(payload, LEN, 5);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment((size_t)aq_test_n * 2 * LEN);
    each = aq_test_n > 16 || aq_test_quick ? 400 : 4000;
    for (kind = 0; kind < 3; kind++) {
        rule(names[kind]);
        for (i = 0; i < each; i++)
            send_one(kind, aq_test_peer(1));
        total += each;
        aq_test_wait(&replies, total);
        aq_test_wait(&requests, total);
        aq_test_barrier();
    }
    rule(names[3]);
    for (i = 0; i < each / (int)aq_test_n + 1; i++)
        for (r = 0; r < aq_test_n; r++)
            send_one(i % 3, r);
    total += (each / (int)aq_test_n + 1) * (int)aq_test_n;
    aq_test_wait(&replies, total);
    aq_test_wait(&requests, total);
    rule("core 22: nothing is delivered twice");
    aq_test_barrier();
    AQ_CHECK_EQ(atomic_load(&requests), total);
    AQ_CHECK_EQ(atomic_load(&replies), total);
    return aq_test_finish();
}
