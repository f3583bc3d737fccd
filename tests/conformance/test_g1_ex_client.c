/*
 * test_g1_ex_client.c - a client of gex_Client_Init with GEX_FLAG_USES_GASNET1: all GASNet-1 calls
 * but init and attach, messages to handlers that were registered through EX. gasnetex.h comes
 * first. Ranks 1+. Conduits all. Source GASNet specification 1.8 beside GASNet-EX specification
 * 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet.h"

enum { H_SHORT = AQ_TEST_FREE, H_MEDIUM, H_LONG, H_BACK, LEN = 2000, SEGMENT = 4 * LEN };

static aq_test_count_t seen, back;
static char data[LEN], in[LEN];

static void h_short(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b)
{
    AQ_CHECK(a == 5 && b == -5);
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyShort2(token, H_BACK, a, b);
}

static void h_medium(gasnet_token_t token, void *buf, size_t nbytes)
{
    AQ_CHECK(nbytes == 77 && aq_test_same(buf, nbytes, 1));
    atomic_fetch_add(&seen, 1);
    gex_AM_ReplyShort2(token, H_BACK, 0, 5, -5);
}

static void h_long(gasnet_token_t token, void *buf, size_t nbytes)
{
    AQ_CHECK_PTR(buf, aq_test_base(aq_test_me));
    AQ_CHECK(nbytes == LEN && aq_test_same(buf, nbytes, 1));
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyShort(token, H_BACK, 2, 5, -5);
}

static void h_back(gasnet_token_t token, gasnet_handlerarg_t a, gasnet_handlerarg_t b)
{
    (void)token;
    AQ_CHECK(a == 5 && b == -5);
    atomic_fetch_add(&back, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_SHORT, h_short, AQ_SQ, 2),
    AQ_ENTRY(H_MEDIUM, h_medium, AQ_MQ, 0),
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 0),
    AQ_ENTRY(H_BACK, h_back, AQ_SP, 2),
};

static void check_objects(void)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;

    rule("gasnet-1 21: the objects are those of gex_Client_Init and gex_Segment_Attach");
    gasnet_QueryGexObjects(&client, &ep, &tm, &segment);
    AQ_CHECK(client == aq_test_client && ep == aq_test_ep && tm == aq_test_tm);
    AQ_CHECK(segment == aq_test_seg);
    AQ_CHECK_EQ(gex_Client_QueryFlags(client), GEX_FLAG_USES_GASNET1);
    rule("gasnet-1 7: gasnet_init and gasnet_attach are refused after gex_Client_Init");
    gex_System_SetVerboseErrors(0);
    AQ_CHECK_EQ(gasnet_init(NULL, NULL), GASNET_ERR_NOT_INIT);
    AQ_CHECK_EQ(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0), GASNET_ERR_NOT_INIT);
    gex_System_SetVerboseErrors(1);
}

static void check_calls(gasnet_node_t to)
{
    char *dest = aq_test_base(to);

    rule("gasnet-1 21: GASNet-1 messages to handlers of EX");
    aq_test_fill(data, LEN, 1);
    gasnet_AMRequestShort2(to, H_SHORT, 5, -5);
    gasnet_AMRequestMedium0(to, H_MEDIUM, data, 77);
    gasnet_AMRequestLong0(to, H_LONG, data, LEN, dest);
    aq_test_wait(&seen, 3);
    aq_test_wait(&back, 3);
    aq_test_barrier();
    atomic_store(&seen, 0);
    atomic_store(&back, 0);
    rule("gasnet-1 21: GASNet-1 transfers");
    gasnet_put(to, dest + LEN, data, LEN);
    gasnet_get(in, to, dest + LEN, LEN);
    AQ_CHECK(aq_test_same(in, LEN, 1));
    gasnet_memset(to, dest + LEN, 3, LEN);
    gasnet_wait_syncnb(gasnet_get_nb_bulk(in, to, dest + LEN, LEN));
    AQ_CHECK(aq_test_all(in, 3, LEN));
    gasnet_put_val(to, dest, 0x55, 1);
    AQ_CHECK_EQ(gasnet_wait_syncnb_valget(gasnet_get_nb_val(to, dest, 1)), 0x55);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start_flags(&argc, &argv, 1, GEX_FLAG_USES_GASNET1);
    rule("gasnet-1 9: mynode and nodes right after gex_Client_Init");
    AQ_CHECK_EQ(gasnet_mynode(), aq_test_me);
    AQ_CHECK_EQ(gasnet_nodes(), aq_test_n);
    aq_test_handlers(table, AQ_LENGTH(table));
    aq_test_segment(SEGMENT);
    check_objects();
    for (k = 0; k < 2; k++)
        check_calls(aq_test_peer(k));
    return aq_test_finish();
}
