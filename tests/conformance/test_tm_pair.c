/*
 * test_tm_pair.c - TM-pairs: equality, difference from teams, jobrank meaning, use for AMs, RMA and
 * queries, in handlers too.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, TM-pairs.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_S = AQ_TEST_FREE, H_M, H_L, H_ACK };

static aq_test_count_t acks;
static gex_TM_t pair;

static void h_s(gex_Token_t token, gex_AM_Arg_t to)
{
    AQ_CHECK_EQ(to, aq_test_me);
    AQ_CHECK(gex_TM_Pair(aq_test_ep, 0) == pair); /* legal in handlers */
    gex_AM_ReplyShort0(token, H_ACK, 0);
}

static void h_m(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t to)
{
    AQ_CHECK_EQ(to, aq_test_me);
    AQ_CHECK(nbytes == 6 && memcmp(buf, "paired", 6) == 0);
    gex_AM_ReplyShort0(token, H_ACK, 0);
}

static void h_ack(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&acks, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_S, h_s, AQ_SQ, 1),
    AQ_ENTRY(H_M, h_m, AQ_MQ, 1),
    AQ_ENTRY(H_L, h_m, AQ_LQ, 1),
    AQ_ENTRY(H_ACK, h_ack, AQ_SP, 0),
};

static void use_rma(gex_Rank_t r)
{
    char *remote_addr = (char *)aq_test_base(r) + 64 * (size_t)aq_test_me;
    char back[16] = "", value[9] = "12345678";
    gex_RMA_Value_t v = 0, w;

    memcpy(&v, value, 8);
    AQ_CHECK_EQ(gex_RMA_PutBlocking(pair, r, remote_addr, "through a pair", 15, 0), 0);
    AQ_CHECK_EQ(gex_RMA_GetBlocking(pair, back, r, remote_addr, 15, 0), 0);
    AQ_CHECK(strcmp(back, "through a pair") == 0);
    memset(back, 0, sizeof(back));
    AQ_CHECK_EQ(gex_RMA_PutBlockingVal(pair, r, remote_addr + 16, v, 8, 0), 0);
    w = gex_RMA_GetBlockingVal(pair, r, remote_addr + 16, 8, 0);
    AQ_CHECK(w == v);
    gex_Event_Wait(gex_RMA_PutNB(pair, r, remote_addr + 32, "nb", 3, GEX_EVENT_NOW, 0));
    gex_Event_Wait(gex_RMA_GetNB(aq_test_tm, back, r, remote_addr + 32, 3, 0));
    AQ_CHECK(strcmp(back, "nb") == 0);
    gex_RMA_PutNBI(pair, r, remote_addr + 48, "nbi", 4, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    gex_RMA_GetNBI(pair, back, r, remote_addr + 48, 4, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(strcmp(back, "nbi") == 0);
}

static int by_value(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const gex_TM_t *)a, y = (uintptr_t) * (const gex_TM_t *)b;

    return x < y ? -1 : x > y;
}

/* Every pair there can be, of all the endpoints there can be. */
static void check_every_pair(void)
{
    const size_t n = (size_t)GASNET_MAXEPS * GASNET_MAXEPS;
    gex_TM_t *const pairs = malloc(n * sizeof(*pairs));
    gex_EP_t eps[GASNET_MAXEPS];
    gex_EP_Index_t i, j;
    size_t k;

    eps[0] = aq_test_ep;
    for (i = 1; i < GASNET_MAXEPS; i++)
        AQ_CHECK_EQ(gex_EP_Create(&eps[i], aq_test_client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
    for (i = 0; i < GASNET_MAXEPS; i++)
        for (j = 0; j < GASNET_MAXEPS; j++)
            pairs[(size_t)i * GASNET_MAXEPS + j] = gex_TM_Pair(eps[i], j);
    rule("core 16: made again, in another order, each pair is the same");
    for (j = GASNET_MAXEPS; j-- > 0;)
        for (i = 0; i < GASNET_MAXEPS; i++)
            AQ_CHECK(gex_TM_Pair(eps[i], j) == pairs[(size_t)i * GASNET_MAXEPS + j]);
    AQ_CHECK(pairs[0] == pair); /* as it was before there were other endpoints */
    rule("core 16: all pairs of all endpoints differ; none is a team or INVALID");
    qsort(pairs, n, sizeof(*pairs), by_value);
    for (k = 0; k < n; k++) {
        AQ_CHECK(k == 0 || pairs[k] != pairs[k - 1]);
        AQ_CHECK(pairs[k] != aq_test_tm && pairs[k] != GEX_TM_INVALID);
    }
    free(pairs);
}

int main(int argc, char **argv)
{
    gex_EP_Index_t i, j;
    gex_Rank_t r;
    char *dest;

    aq_test_start(&argc, &argv, 1);
    pair = gex_TM_Pair(aq_test_ep, 0);
    rule("core 16: equal arguments give equal pairs, different ones different; never a team or "
         "INVALID");
    for (i = 0; i < GASNET_MAXEPS; i++)
        for (j = 0; j < GASNET_MAXEPS; j++)
            AQ_CHECK_EQ(gex_TM_Pair(aq_test_ep, i) == gex_TM_Pair(aq_test_ep, j), i == j);
    AQ_CHECK(pair != aq_test_tm && pair != GEX_TM_INVALID);
    check_every_pair();
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(64 * (size_t)aq_test_n + 64 * (size_t)aq_test_n);
    rule("core 16: AM requests of each category through a pair; rank is a jobrank; replies work");
    for (r = 0; r < aq_test_n; r++) {
        dest = (char *)aq_test_base(r) + 64 * (size_t)(aq_test_n + aq_test_me);
        gex_AM_RequestShort1(pair, r, H_S, 0, r);
        gex_AM_RequestMedium1(pair, r, H_M, "paired", 6, GEX_EVENT_NOW, 0, r);
        gex_AM_RequestLong1(pair, r, H_L, "paired", 6, dest, GEX_EVENT_NOW, 0, r);
    }
    aq_test_wait(&acks, 3 * (int)aq_test_n);
    rule("core 16: every kind of RMA through a pair");
    for (r = 0; r < aq_test_n; r++)
        use_rma(r);
    return aq_test_finish();
}
