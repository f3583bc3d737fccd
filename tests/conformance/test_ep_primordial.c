/*
 * test_ep_primordial.c - a segment that is created and bound to the primordial endpoint, not
 * attached: queries, put and get, long messages, atomics and strided transfers between all ranks,
 * through teams made before and after, and through TM-pairs.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Endpoints; bound-segment
 * publication. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

enum { H_LONG = AQ_TEST_FREE, H_LONG_REPLY };

#define SLOT   ((size_t)200000) /* what a peer writes into: more than one message */
#define PEERS  3                /* each rank has so many slots and talks to so many others */
#define LENGTH (SLOT * (PEERS + 1) + 64) /* one more slot for replies */

static char memory[LENGTH + 64];
static char out[SLOT], in[SLOT];
static aq_test_count_t arrived, replied;

static gex_Rank_t peers(void)
{
    return aq_test_n < PEERS ? aq_test_n : PEERS;
}

static char *base_of(gex_Rank_t r, uintptr_t *size_out)
{
    void *owner = NULL;

    *size_out = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(aq_test_tm, r, &owner, NULL, size_out, 0));
    return owner;
}

/* Where the rank that is `away` ranks below r writes. */
static char *slot_of(gex_Rank_t r, gex_Rank_t away)
{
    uintptr_t size;

    return base_of(r, &size) + 64 + SLOT * away;
}

/* Replies with as much to where it came from in the asking rank's segment. */
static void h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t high, gex_AM_Arg_t low,
                   gex_AM_Arg_t seed)
{
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    gex_AM_ReplyLong1(token, H_LONG_REPLY, buf, nbytes, aq_test_pointer(high, low), GEX_EVENT_NOW,
                      0, seed);
    atomic_fetch_add(&arrived, 1);
}

static void h_long_reply(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t seed)
{
    (void)token;
    AQ_CHECK(aq_test_same(buf, nbytes, (uint64_t)seed));
    atomic_fetch_add(&replied, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_LONG, h_long, AQ_LQ, 3),
    AQ_ENTRY(H_LONG_REPLY, h_long_reply, AQ_LP, 1),
};

/* Half of the ranks have the library's memory, the others their own, at an odd place. */
static gex_Segment_t bind(void)
{
    gex_Segment_t segment = GEX_SEGMENT_INVALID, second;
    void *owner = NULL, *local = NULL, *addr = aq_test_me % 2 == 0 ? NULL : memory + 8;
    uintptr_t size = 0;

    rule("core 13: the primordial endpoint can have a segment that is bound to it");
    AQ_CHECK_EQ(gex_Segment_Create(&segment, aq_test_client, addr, LENGTH, GEX_MK_HOST, 0),
                GASNET_OK);
    AQ_CHECK_EQ(gex_EP_BindSegment(aq_test_ep, segment, 0), GASNET_OK);
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == segment);
    AQ_CHECK_EQ(gex_Segment_QueryBound(aq_test_tm, aq_test_me, &owner, &local, &size), 0);
    AQ_CHECK(owner == gex_Segment_QueryAddr(segment) && local == owner && size >= LENGTH);
    if (aq_test_n > 1)
        AQ_CHECK(gex_Segment_QueryBound(aq_test_tm, aq_test_peer(1), &owner, &local, &size) != 0);
    rule("core 13: it keeps that segment");
    AQ_CHECK_EQ(gex_Segment_Create(&second, aq_test_client, NULL, 4096, GEX_MK_HOST, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_BindSegment(aq_test_ep, second, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == segment);
    gex_Segment_Destroy(second, 0);
    return segment;
}

static void check_queries(void)
{
    gasnet_seginfo_t *all = calloc(aq_test_n, sizeof(*all));
    gex_Rank_t r;

    rule("core 14: published, it is known to all");
    AQ_CHECK_EQ(gasnet_getSegmentInfo(all, (int)aq_test_n), GASNET_OK);
    for (r = 0; r < aq_test_n; r++) {
        void *owner = NULL, *local = all;
        uintptr_t size = 0;

        AQ_CHECK_EQ(gex_Segment_QueryBound(aq_test_tm, r, &owner, &local, &size), 0);
        AQ_CHECK(owner == all[r].addr && size == all[r].size && size >= LENGTH);
        AQ_CHECK(r == aq_test_me ? local == owner : local != all);
    }
    free(all);
}

/* Puts and gets of all sizes to the peers; rank of r in tm. */
static void check_rma(gex_TM_t tm, gex_Rank_t r, char *remote_addr, uint64_t seed)
{
    const size_t sizes[] = { 1, 2, 3, 4, 8, 100, 4096, 70001, SLOT };
    size_t i;

    for (i = 0; i < AQ_LENGTH(sizes); i++) {
        const size_t n = sizes[i];

        aq_test_fill(out, n, seed + i);
        AQ_CHECK_EQ(gex_RMA_PutBlocking(tm, r, remote_addr, out, n, 0), 0);
        memset(in, 0, n);
        gex_Event_Wait(gex_RMA_GetNB(tm, in, r, remote_addr, n, 0));
        AQ_CHECK(aq_test_same(in, n, seed + i));
        aq_test_fill(out, n, seed + i + 50);
        gex_RMA_PutNBI(tm, r, remote_addr, out, n, GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        gex_RMA_GetBlocking(tm, in, r, remote_addr, n, 0);
        AQ_CHECK(aq_test_same(in, n, seed + i + 50));
    }
    AQ_CHECK_EQ(gex_RMA_PutBlockingVal(tm, r, remote_addr, 0x1122334455667788u, 8, 0), 0);
    AQ_CHECK(gex_RMA_GetBlockingVal(tm, r, remote_addr, 8, 0) == 0x1122334455667788u);
}

static void check_strided(gex_Rank_t r, char *remote_addr)
{
    const ptrdiff_t remote[1] = { 64 }, local_side[1] = { 16 };
    const size_t count[1] = { 1000 };

    rule("ext VIS: transfers that are not contiguous reach it");
    aq_test_fill(out, 16000, 7);
    gex_VIS_StridedPutBlocking(aq_test_tm, r, remote_addr, remote, out, local_side, 16, count, 1,
                               0);
    gex_VIS_StridedGetBlocking(aq_test_tm, in, local_side, r, remote_addr, remote, 16, count, 1, 0);
    AQ_CHECK(aq_test_same(in, 16000, 7));
}

/* Requests to the peer's slot, replies to a slot of this rank's own. */
static void check_long(gex_Rank_t r, gex_Rank_t away)
{
    const size_t max = gex_AM_MaxRequestLong(aq_test_tm, r, GEX_EVENT_NOW, 0, 3);
    const size_t upper = max < SLOT ? max : SLOT;
    const size_t sizes[] = { 1, 64, 5000, upper < 65536 ? upper : 65536, upper };
    char *back = slot_of(aq_test_me, PEERS);
    size_t i;

    rule("core 20: long messages and replies reach it");
    for (i = 0; i < AQ_LENGTH(sizes); i++) {
        const int before = atomic_load(&replied);

        aq_test_fill(out, sizes[i], i + 3);
        gex_AM_RequestLong3(aq_test_tm, r, H_LONG, out, sizes[i], slot_of(r, away), GEX_EVENT_NOW,
                            0, AQ_HI(back), AQ_LO(back), (gex_AM_Arg_t)i + 3);
        aq_test_wait(&replied, before + 1);
        AQ_CHECK(aq_test_same(back, sizes[i], i + 3));
    }
}

/* Every rank adds to words of every rank, and owners do so too. */
static void check_atomics(void)
{
    gex_AD_t ad;
    gex_Rank_t r;
    uint64_t sum = 0;
    uintptr_t size;
    int i;

    rule("ext AD: atomics reach it, and go with its owner's own");
    gex_AD_Create(&ad, aq_test_tm, GEX_DT_U64, GEX_OP_ADD | GEX_OP_FADD | GEX_OP_GET, 0);
    for (i = 0; i < 100; i++)
        for (r = 0; r < aq_test_n; r++)
            gex_AD_OpNBI_U64(ad, NULL, r, base_of(r, &size) + 8, GEX_OP_ADD, aq_test_me + 1, 0, 0);
    gex_NBI_Wait(GEX_EC_RMW, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &sum, aq_test_me, base_of(aq_test_me, &size) + 8,
                                   GEX_OP_FADD, 0, 0, 0));
    AQ_CHECK(sum >= 100u * (aq_test_me + 1));
    aq_test_barrier();
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &sum, aq_test_peer(1), base_of(aq_test_peer(1), &size) + 8,
                                   GEX_OP_GET, 0, 0, 0));
    AQ_CHECK(sum == 100u * (uint64_t)aq_test_n * (aq_test_n + 1) / 2);
    aq_test_barrier();
    gex_AD_Destroy(ad);
}

int main(int argc, char **argv)
{
    gex_TM_t before = GEX_TM_INVALID, after = GEX_TM_INVALID;
    gex_Rank_t away, last;
    int rc;

    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    aq_test_handlers(table, AQ_LENGTH(table));
    last = aq_test_n - 1;
    gex_TM_Split(&before, aq_test_tm, 0, (int)(last - aq_test_me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    memset(gex_Segment_QueryAddr(bind()), 0, LENGTH);
    rc = gex_EP_PublishBoundSegment(aq_test_tm, &aq_test_ep, 1, 0);
    if (rc == GASNET_ERR_RESOURCE)
        aq_test_skip("the kernel lets no rank write to another's memory");
    AQ_CHECK_EQ(rc, GASNET_OK);
    gex_TM_Split(&after, aq_test_tm, 0, (int)(last - aq_test_me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    check_queries();
    rule("ext RMA: put and get reach it, through teams made before and after, and through pairs");
    for (away = 0; away < peers(); away++) {
        const gex_Rank_t r = aq_test_peer(away);
        char *remote_addr = slot_of(r, away);

        check_rma(aq_test_tm, r, remote_addr, 1000);
        check_rma(before, last - r, remote_addr, 2000);
        check_rma(after, last - r, remote_addr, 3000);
        check_rma(gex_TM_Pair(aq_test_ep, 0), r, remote_addr, 4000);
        check_strided(r, remote_addr);
        aq_test_barrier();
        check_long(r, away);
        aq_test_barrier();
    }
    check_atomics();
    gex_TM_Destroy(before, NULL, 0);
    gex_TM_Destroy(after, NULL, 0);
    return aq_test_finish();
}
