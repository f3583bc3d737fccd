/*
 * test_am_alltoall.c - numbered messages of mixed kinds between all pairs: none lost, none doubled,
 * none damaged, and many-to-one traffic drains.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, delivery.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_S = AQ_TEST_FREE, H_M, PER_PAIR = 300, ROUND = 64 };

static aq_test_count_t arrived;
static atomic_uchar *seen; /* [rank][number]: how often it came */

static void mark(gex_AM_Arg_t from, gex_AM_Arg_t number)
{
    AQ_CHECK(from >= 0 && from < (gex_AM_Arg_t)aq_test_n && number >= 0 && number < 2 * PER_PAIR);
    atomic_fetch_add(&seen[from * 2 * PER_PAIR + number], 1);
    atomic_fetch_add(&arrived, 1);
}

static void h_s(gex_Token_t token, gex_AM_Arg_t from, gex_AM_Arg_t number)
{
    (void)token;
    mark(from, number);
}

static void h_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from, gex_AM_Arg_t number)
{
    (void)token;
    AQ_CHECK_EQ(nbytes, (number * 7) % 900);
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)(from * 100000 + number)));
    mark(from, number);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_S, h_s, AQ_SQ, 2),
    AQ_ENTRY(H_M, h_m, AQ_MQ, 2),
};

static void send(gex_Rank_t to, int number)
{
    char buf[900];
    const size_t len = (size_t)(number * 7) % 900;

    if (number % 2 == 0) {
        gex_AM_RequestShort2(aq_test_tm, to, H_S, 0, aq_test_me, number);
        return;
    }
    aq_test_fill(buf, len, (uint64_t)aq_test_me * 100000 + (uint64_t)number);
    gex_AM_RequestMedium2(aq_test_tm, to, H_M, buf, len, GEX_EVENT_NOW, 0, aq_test_me, number);
}

int main(int argc, char **argv)
{
    gex_Rank_t r;
    int i, each, once = 1;

    aq_test_start(&argc, &argv, 1);
    each = aq_test_n > 16 || aq_test_quick ? 40 : PER_PAIR;
    seen = calloc((size_t)aq_test_n * 2 * PER_PAIR, sizeof(*seen));
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 22: all-to-all traffic: every message arrives exactly once");
    for (i = 0; i < each; i++)
        for (r = 0; r < aq_test_n; r++)
            send(aq_test_peer(r), i);
    aq_test_wait(&arrived, each * (int)aq_test_n);
    aq_test_barrier();
    rule("core 22: many senders to one receiver");
    for (i = each; i < 2 * each; i++)
        send(0, i);
    aq_test_barrier();
    if (aq_test_me == 0)
        aq_test_wait(&arrived, 2 * each * (int)aq_test_n);
    aq_test_barrier();
    rule("core 22: all-to-all traffic: every message arrives exactly once");
    for (r = 0; r < aq_test_n; r++)
        for (i = 0; i < each; i++)
            once &= atomic_load(&seen[r * 2 * PER_PAIR + (gex_Rank_t)i]) == 1;
    AQ_CHECK(once);
    AQ_CHECK_EQ(atomic_load(&arrived), each * (int)aq_test_n * (aq_test_me == 0 ? 2 : 1));
    free(seen);
    return aq_test_finish();
}
