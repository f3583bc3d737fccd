/*
 * test_g1_mix.c - a client of gasnet_init that uses EX calls: the objects, handlers added later,
 * tokens and handles across the interfaces, one implicit set, one kind of lock, types that are the
 * same. Ranks 1+. Conduits all. Source GASNet specification 1.8 beside GASNet-EX specification
 * 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test_g1.h"

enum {
    H_OLD = AQ_TEST_FREE,
    H_OLD_MEDIUM,
    H_OLD_BACK,
    H_NEW,
    H_NEW_BACK,
    LEN = 3000,
    SEGMENT = 8 * LEN
};

static aq_test_count_t seen, back;
static gasnet_hsl_t old_lock = GASNET_HSL_INITIALIZER;
static gex_HSL_t new_lock = GEX_HSL_INITIALIZER;
static char data[LEN], in[LEN];

/* An old handler that answers with the new call, to a new handler. */
static void h_old(gasnet_token_t token, gasnet_handlerarg_t a)
{
    gex_Token_Info_t info;
    gex_Client_t client;
    gasnet_node_t source;

    gasnet_hsl_lock(&old_lock);
    gex_Token_Info(token, &info, GEX_TI_ALL);
    gasnet_AMGetMsgSource(token, &source);
    AQ_CHECK_EQ(info.gex_srcrank, source);
    AQ_CHECK(info.gex_entry != NULL && info.gex_ep == aq_test_ep);
    gasnet_QueryGexObjects(&client, NULL, NULL, NULL);
    AQ_CHECK(client == aq_test_client);
    gasnet_hsl_unlock(&old_lock);
    atomic_fetch_add(&seen, 1);
    gex_AM_ReplyShort1(token, H_NEW_BACK, 0, a + 1);
}

static void h_old_medium(gasnet_token_t token, void *buf, size_t nbytes)
{
    AQ_CHECK(nbytes == 100 && aq_test_same(buf, nbytes, 1));
    atomic_fetch_add(&seen, 1);
    gex_AM_ReplyMedium1(token, H_OLD_BACK, buf, nbytes, GEX_EVENT_NOW, 0, 7);
}

static void h_old_back(gasnet_token_t token, void *buf, size_t nbytes, gasnet_handlerarg_t a)
{
    (void)token;
    AQ_CHECK(nbytes == 100 && aq_test_same(buf, nbytes, 1) && a == 7);
    atomic_fetch_add(&back, 1);
}

/* A new handler that answers with the old call, to an old handler. */
static void h_new(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t a)
{
    atomic_fetch_add(&seen, 1);
    gasnet_AMReplyMedium1(token, H_OLD_BACK, buf, nbytes, a);
}

static void h_new_back(gex_Token_t token, gex_AM_Arg_t a)
{
    (void)token;
    AQ_CHECK_EQ(a, 42);
    atomic_fetch_add(&back, 1);
}

static gasnet_handlerentry_t table[] = {
    { H_OLD, h_old },
    { H_OLD_MEDIUM, h_old_medium },
    { H_OLD_BACK, h_old_back },
};
static gex_AM_Entry_t later[] = {
    AQ_ENTRY(H_NEW, h_new, AQ_MQ, 1),
    AQ_ENTRY(H_NEW_BACK, h_new_back, AQ_SP, 1),
    AQ_ENTRY(0, h_new_back, AQ_SP, 1),
};

static void check_objects(void)
{
    gex_Client_t client = GEX_CLIENT_INVALID;
    gex_EP_t ep = GEX_EP_INVALID;
    gex_TM_t tm = GEX_TM_INVALID;
    gex_Segment_t segment = (gex_Segment_t)(void *)&tm;
    gasnet_seginfo_t *info = calloc(gasnet_nodes(), sizeof(*info));

    rule("gasnet-1 21: gasnet_QueryGexObjects, each output for itself and none");
    gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
    gasnet_QueryGexObjects(&client, NULL, NULL, NULL);
    gasnet_QueryGexObjects(NULL, &ep, NULL, NULL);
    gasnet_QueryGexObjects(NULL, NULL, &tm, NULL);
    gasnet_QueryGexObjects(NULL, NULL, NULL, &segment);
    AQ_CHECK(gex_EP_QueryClient(ep) == client && gex_TM_QueryClient(tm) == client);
    AQ_CHECK(gex_TM_QueryEP(tm) == ep);
    AQ_CHECK(gex_EP_QuerySegment(ep) == segment);
    AQ_CHECK_EQ(gex_TM_QueryRank(tm), gasnet_mynode());
    AQ_CHECK_EQ(gex_TM_QuerySize(tm), gasnet_nodes());
    AQ_CHECK_EQ(gex_System_QueryJobRank(), gasnet_mynode());
    AQ_CHECK(gex_Client_QueryFlags(client) & GEX_FLAG_USES_GASNET1);
    AQ_CHECK(gex_EP_QueryFlags(ep) & GEX_FLAG_USES_GASNET1);
    AQ_CHECK(gex_TM_QueryFlags(tm) & GEX_FLAG_USES_GASNET1);
    AQ_CHECK(strcmp(gex_Client_QueryName(client), "LEGACY") == 0);
    gasnet_getSegmentInfo(info, (int)gasnet_nodes());
#if GASNET_SEGMENT_EVERYTHING
    AQ_CHECK(segment == GEX_SEGMENT_INVALID);
#else
    AQ_CHECK(gex_Segment_QueryFlags(segment) & GEX_FLAG_USES_GASNET1);
    AQ_CHECK_PTR(gex_Segment_QueryAddr(segment), info[gasnet_mynode()].addr);
    AQ_CHECK_EQ(gex_Segment_QuerySize(segment), info[gasnet_mynode()].size);
#endif
    free(info);
}

static void check_messages(gasnet_node_t to)
{
    rule("gasnet-1 21: one index space; tokens go through either interface");
    aq_test_fill(data, 100, 1);
    gasnet_AMRequestShort1(to, H_OLD, 41);
    gex_AM_RequestShort1(aq_test_tm, to, H_OLD, 0, 41);
    gasnet_AMRequestMedium0(to, H_OLD_MEDIUM, data, 100);
    gex_AM_RequestMedium0(aq_test_tm, to, H_OLD_MEDIUM, data, 100, GEX_EVENT_NOW, 0);
    gasnet_AMRequestMedium1(to, H_NEW, data, 100, 7);
    gex_AM_RequestMedium1(aq_test_tm, to, H_NEW, data, 100, GEX_EVENT_NOW, 0, 7);
    aq_test_wait(&seen, 6);
    aq_test_wait(&back, 6);
    aq_test_barrier();
    atomic_store(&seen, 0);
    atomic_store(&back, 0);
    aq_test_barrier();
}

static void check_transfers(gasnet_node_t to)
{
    char *dest = aq_test_base(to);
    gasnet_handle_t h[3], region;
    gex_Event_t *events = h; /* the same type */

    rule("gasnet-1 21: handles are events, synced through either interface");
    aq_test_fill(data, LEN, 2);
    gex_Event_Wait(gasnet_put_nb(to, dest, data, LEN));
    gasnet_wait_syncnb(gex_RMA_PutNB(aq_test_tm, to, dest + LEN, data, LEN, GEX_EVENT_DEFER, 0));
    h[0] = gasnet_get_nb(in, to, dest, LEN);
    h[1] = GASNET_INVALID_HANDLE;
    h[2] = gex_RMA_PutNB(aq_test_tm, to, dest + 2 * LEN, data, LEN, GEX_EVENT_NOW, 0);
    gex_Event_WaitAll(events, 3, 0);
    AQ_CHECK(h[0] == GEX_EVENT_INVALID && h[1] == GEX_EVENT_INVALID
             && h[2] == GASNET_INVALID_HANDLE);
    AQ_CHECK(aq_test_same(in, LEN, 2));
    rule("gasnet-1 21: one implicit set and one kind of region");
    gex_RMA_PutNBI(aq_test_tm, to, dest + 3 * LEN, data, LEN, GEX_EVENT_DEFER, 0);
    gasnet_wait_syncnbi_puts();
    gasnet_get_nbi(in, to, dest + 3 * LEN, LEN);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(aq_test_same(in, LEN, 2));
    gasnet_begin_nbi_accessregion();
    gex_RMA_PutNBI(aq_test_tm, to, dest + 4 * LEN, data, LEN, GEX_EVENT_DEFER, 0);
    gasnet_memset_nbi(to, dest + 5 * LEN, 1, LEN);
    region = gex_NBI_EndAccessRegion(0);
    gasnet_wait_syncnb(region);
    gex_RMA_GetBlocking(aq_test_tm, in, to, dest + 4 * LEN, LEN, 0);
    AQ_CHECK(aq_test_same(in, LEN, 2));
    gasnet_get(in, to, dest + 5 * LEN, LEN);
    AQ_CHECK(aq_test_all(in, 1, LEN));
}

static void check_locks(void)
{
    gex_HSL_t *as_new = &old_lock;
    gasnet_hsl_t *as_old = &new_lock;

    rule("gasnet-1 21: locks are the same locks");
    gex_HSL_Lock(as_new);
    gasnet_hsl_unlock(&old_lock);
    gasnet_hsl_lock(as_old);
    gex_HSL_Unlock(&new_lock);
    AQ_CHECK_EQ(gasnet_hsl_trylock(&new_lock), GASNET_OK);
    gasnet_hsl_unlock(&new_lock);
}

int main(int argc, char **argv)
{
    gex_Rank_t k;

    aq_test_start_gasnet1(&argc, &argv, 1, table, AQ_LENGTH(table), SEGMENT);
    rule("gasnet-1 21: handlers added after attach; indices in use are refused");
    aq_test_handlers(later, AQ_LENGTH(later));
    AQ_CHECK_EQ(later[2].gex_index, 255);
    gex_System_SetVerboseErrors(0);
    later[0].gex_index = H_OLD;
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(aq_test_ep, later, 1), GASNET_ERR_BAD_ARG);
    check_objects();
    for (k = 0; k < 2; k++) {
        check_messages(aq_test_peer(k));
        check_transfers(aq_test_peer(k));
        check_locks();
        rule("gasnet-1 17: barriers of both interfaces in turn");
        AQ_CHECK_EQ(gasnet_barrier((int)k, 0), GASNET_OK);
        gex_Event_Wait(gex_Coll_BarrierNB(aq_test_tm, 0));
        gasnet_barrier_notify(5, GASNET_BARRIERFLAG_UNNAMED);
        AQ_CHECK_EQ(gasnet_barrier_wait(5, GASNET_BARRIERFLAG_UNNAMED), GASNET_OK);
    }
    return aq_test_finish();
}
