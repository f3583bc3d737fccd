/*
 * test_am_nesting.c - where handlers may run: not inside Test, queries, HSL calls or
 * registration-free calls; inside polls and waits. In SEQ (and with no hidden threads) that is
 * exact. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, legal contexts and progress.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

enum { H_S = AQ_TEST_FREE };

static aq_test_count_t ran;
static atomic_int forbidden, violations;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

static void h_s(gex_Token_t token)
{
    (void)token;
    if (atomic_load(&forbidden))
        atomic_fetch_add(&violations, 1);
    atomic_fetch_add(&ran, 1);
}

static gex_AM_Entry_t table[] = { AQ_ENTRY(H_S, h_s, AQ_SQ, 0) };

/* Every call here is legal under an HSL and so must not run handlers. */
static void quiet_calls(gex_Event_t pending)
{
    gex_RankInfo_t *info;
    gex_Rank_t a, b, c, d;
    void *owner, *local;
    uintptr_t size;
    gex_Event_t evs[2];

    if (pending != GEX_EVENT_INVALID)
        AQ_CHECK_EQ(gex_Event_Test(pending), GASNET_ERR_NOT_READY);
    evs[0] = pending;
    evs[1] = GEX_EVENT_INVALID;
    if (pending != GEX_EVENT_INVALID) {
        AQ_CHECK_EQ(gex_Event_TestAll(evs, 2, 0), GASNET_ERR_NOT_READY);
        AQ_CHECK_EQ(gex_Event_TestSome(evs, 2, 0), GASNET_ERR_NOT_READY);
    }
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    gex_HSL_Lock(&lock);
    gex_System_QueryNbrhdInfo(&info, &a, &b);
    gex_System_QueryHostInfo(&info, &a, &b);
    gex_System_QueryMyPosition(&a, &b, &c, &d);
    gex_TM_SetCData(aq_test_tm, gex_TM_QueryCData(aq_test_tm));
    gex_EP_SetCData(aq_test_ep, gex_EP_QueryCData(aq_test_ep));
    gex_Client_SetCData(aq_test_client, gex_Client_QueryCData(aq_test_client));
    AQ_CHECK(gex_AM_MaxRequestMedium(aq_test_tm, aq_test_peer(1), GEX_EVENT_NOW, 0, 16) >= 512);
    AQ_CHECK(gex_AM_LUBRequestLong() >= 512);
    AQ_CHECK(gex_TM_Pair(aq_test_ep, 0) != GEX_TM_INVALID);
    AQ_CHECK(gex_EP_QueryBoundSegmentNB(aq_test_tm, aq_test_me, &owner, &local, &size,
                                        GEX_FLAG_IMMEDIATE)
             == GEX_EVENT_INVALID);
    gex_HSL_Unlock(&lock);
    if (gex_HSL_Trylock(&lock) == GASNET_OK)
        gex_HSL_Unlock(&lock);
    (void)gex_System_GetVerboseErrors();
    (void)gex_System_QueryMaxThreads();
}

int main(int argc, char **argv)
{
    gex_Event_t pending;
    int round;

    aq_test_start(&argc, &argv, 2);
    aq_test_handlers(table, AQ_LENGTH(table));
    rule("core 22, extended 16: Test, queries and HSL calls run no handlers");
    for (round = 1; round <= 20; round++) {
        gex_AM_RequestShort0(aq_test_tm, aq_test_peer(1), H_S, 0);
        /* Not complete before everybody calls; rank 0 is the last to do so. */
        if (aq_test_me == 0) {
            quiet_calls(GEX_EVENT_INVALID);
            aq_test_wait(&ran, round);
            pending = gex_Coll_BarrierNB(aq_test_tm, 0);
        } else {
            pending = gex_Coll_BarrierNB(aq_test_tm, 0);
            if (atomic_load(&ran) < round && gex_System_QueryHiddenAMConcurrencyLevel() == 0) {
                atomic_store(&forbidden, 1);
                quiet_calls(GEX_EVENT_INVALID);
                atomic_store(&forbidden, 0);
            }
            aq_test_wait(&ran, round);
        }
        aq_test_sync(pending);
        aq_test_barrier();
    }
    AQ_CHECK_EQ(atomic_load(&violations), 0);
    rule("extended 4.1: Test of a barrier that cannot be complete says NOT_READY, also in arrays");
    pending = GEX_EVENT_INVALID;
    if (aq_test_me != 0)
        pending = gex_Coll_BarrierNB(aq_test_tm, 0);
    else /* the others cannot be through before rank 0 calls */
        aq_test_wait(&ran, 20 + (int)aq_test_n - 1);
    if (aq_test_me != 0) {
        quiet_calls(pending);
        gex_AM_RequestShort0(aq_test_tm, 0, H_S, 0);
    } else {
        pending = gex_Coll_BarrierNB(aq_test_tm, 0);
    }
    aq_test_sync(pending);
    return aq_test_finish();
}
