/*
 * test_ep_rma.c - put and get between the segments of further endpoints: both allocations, any
 * alignment, every pair of indices, every peer and oneself; publishing, unevenly and over parts of
 * the job; segments that are destroyed while traffic of others is served.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Endpoints; bound-segment
 * publication. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <time.h>

#define LENGTH ((size_t)300000) /* more than one message, of a segment at an odd address */
#define SLOT   8192             /* what a peer writes into */
#define REMOTE 16               /* so many peers */

static char memory[LENGTH + 64];
static gex_EP_t
    eps[4]; /* [1]: the library's memory, [2]: ours, [3]: a part of the attached segment */

/* Where index of rank r is, as everybody can compute once it has asked. */
static char *base_of(gex_Rank_t r, gex_EP_Index_t index, uintptr_t *size_out)
{
    void *owner = NULL;

    *size_out = 0;
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(gex_TM_Pair(eps[1], index), r, &owner, NULL, size_out, 0));
    return owner;
}

static void make_endpoints(void)
{
    gex_Segment_t segs[4] = { 0, 0, 0, 0 };
    gex_EP_Index_t i;

    eps[0] = aq_test_ep;
    AQ_CHECK_EQ(gex_Segment_Create(&segs[1], aq_test_client, NULL, LENGTH, GEX_MK_HOST, 0),
                GASNET_OK);
    AQ_CHECK_EQ(gex_Segment_Create(&segs[2], aq_test_client, memory + 13, LENGTH, GEX_MK_HOST, 0),
                GASNET_OK);
    AQ_CHECK_EQ(gex_Segment_Create(&segs[3], aq_test_client,
                                   (char *)aq_test_base(aq_test_me) + 4096 + 1, LENGTH, GEX_MK_HOST,
                                   0),
                GASNET_OK);
    for (i = 1; i < 4; i++) {
        AQ_CHECK_EQ(gex_EP_Create(&eps[i], aq_test_client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
        AQ_CHECK_EQ(gex_EP_BindSegment(eps[i], segs[i], 0), GASNET_OK);
    }
}

static uint64_t seed_of(gex_Rank_t from, gex_Rank_t to, gex_EP_Index_t index, size_t n)
{
    return from * UINT64_C(1000003) + to * 1009u + index * 31u + n;
}

/* How far away r is: its writers have places of their own up to REMOTE. */
static gex_Rank_t away(gex_Rank_t r)
{
    return (r + aq_test_n - aq_test_me) % aq_test_n;
}

/* Puts and gets of one size to one segment of one peer, from one local endpoint. */
static void move(gex_EP_t ep, gex_EP_Index_t index, gex_Rank_t r, size_t n, size_t shift)
{
    static char out[SLOT], in[SLOT + 16];
    const gex_TM_t pair = gex_TM_Pair(ep, index);
    const uint64_t seed = seed_of(aq_test_me, r, index, n);
    uintptr_t size;
    char *remote_addr = base_of(r, index, &size) + SLOT * away(r) + shift;
    gex_Event_t leaf = GEX_EVENT_INVALID, event;

    AQ_CHECK(size >= LENGTH);
    aq_test_fill(out, n, seed);
    AQ_CHECK_EQ(gex_RMA_PutBlocking(pair, r, remote_addr, out, n, 0), 0);
    memset(in, 1, sizeof(in));
    AQ_CHECK_EQ(gex_RMA_GetBlocking(pair, in + 8, r, remote_addr, n, 0), 0);
    AQ_CHECK(aq_test_same(in + 8, n, seed) && aq_test_all(in, 1, 8) && in[8 + n] == 1);
    aq_test_fill(out, n, seed + 1);
    event = gex_RMA_PutNB(pair, r, remote_addr, out, n, &leaf, 0);
    gex_Event_Wait(leaf);
    gex_Event_Wait(event);
    gex_Event_Wait(gex_RMA_GetNB(pair, in + 8, r, remote_addr, n, 0));
    AQ_CHECK(aq_test_same(in + 8, n, seed + 1));
    aq_test_fill(out, n, seed + 2);
    gex_RMA_PutNBI(pair, r, remote_addr, out, n, GEX_EVENT_DEFER, GEX_FLAG_PEER_SEG_BOUND);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    gex_RMA_GetNBI(pair, in + 8, r, remote_addr, n, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    AQ_CHECK(aq_test_same(in + 8, n, seed + 2));
    if (n >= 1 && n <= 8) {
        AQ_CHECK_EQ(gex_RMA_PutBlockingVal(pair, r, remote_addr, 0x0102030405060708u, n, 0), 0);
        AQ_CHECK(
            gex_RMA_GetBlockingVal(pair, r, remote_addr, n, 0)
            == (n == 8 ? 0x0102030405060708u : 0x0102030405060708u & ((UINT64_C(1) << 8 * n) - 1)));
    }
}

static void check_directions(gex_Rank_t r)
{
    const size_t sizes[] = { 1, 2, 3, 4, 7, 8, 64, 1001, SLOT - 64 };
    gex_EP_Index_t from, to;
    size_t i;

    for (from = 0; from < 4; from++)
        for (to = 1; to < 4; to++)
            for (i = 0; i < AQ_LENGTH(sizes); i++)
                move(eps[from], to, r, sizes[i], i * 5 % 8);
}

/* All of a segment, which takes many messages where it goes by messages; one writer at a time. */
static void check_large(void)
{
    static char out[LENGTH], in[LENGTH];
    gex_EP_Index_t index;
    gex_Rank_t writer;
    uintptr_t size;
    char *remote_addr;

    for (writer = 0; writer < aq_test_n && writer < 3; writer++) {
        for (index = 1; index < 4 && writer == aq_test_me; index++) {
            remote_addr = base_of(aq_test_peer(1), index, &size);
            aq_test_fill(out, LENGTH, writer + index);
            gex_RMA_PutBlocking(gex_TM_Pair(eps[2], index), aq_test_peer(1), remote_addr, out,
                                LENGTH, 0);
            gex_RMA_GetBlocking(gex_TM_Pair(eps[1], index), in, aq_test_peer(1), remote_addr,
                                LENGTH, 0);
            AQ_CHECK(memcmp(out, in, LENGTH) == 0);
        }
        aq_test_barrier();
        for (index = 1; index < 4 && aq_test_me == (writer + 1) % aq_test_n; index++)
            AQ_CHECK(aq_test_same(gex_Segment_QueryAddr(gex_EP_QuerySegment(eps[index])), LENGTH,
                                  writer + index));
        aq_test_barrier();
    }
}

static bool known(gex_Rank_t r, gex_EP_Index_t index)
{
    uintptr_t size;

    base_of(r, index, &size);
    return size != 0;
}

static void check_unpublished(void)
{
    void *owner = eps, *local = eps;
    uintptr_t size = 5;
    const gex_TM_t pair = gex_TM_Pair(eps[1], 1);

    if (aq_test_n == 1)
        return;
    AQ_CHECK(!known(aq_test_peer(1), 1));
    AQ_CHECK(gex_Segment_QueryBound(pair, aq_test_peer(1), &owner, &local, &size) != 0);
    AQ_CHECK(owner == eps && local == eps && size == 5);
}

/* --- segments that end while others are in use --- */

#if GASNET_PAR

enum { PASSING = 20, WORDS = 32 }; /* at 0: they end; the last endpoint's segment stays */

static gex_EP_t passing[PASSING + 1];
static uint64_t staying[WORDS * 4];
/* Both relaxed: they must not put the destroying in an order with the others' work. */
static aq_test_count_t ended, moved;

/* Makes segments and destroys them, each after some more of the other ranks' work, which continues
 * in the meantime. */
static void end_segments(void)
{
    const struct timespec some = { 0, 200000 };
    gex_Segment_t segment;
    int i, k, until;

    for (i = 0; i < PASSING; i++) {
        until = atomic_load_explicit(&moved, memory_order_relaxed) + 2;
        while (atomic_load_explicit(&moved, memory_order_relaxed) < until)
            nanosleep(&some, NULL);
        for (k = 0; k < 3; k++) { /* not bound to anything */
            AQ_CHECK_EQ(gex_Segment_Create(&segment, aq_test_client, NULL, 65536, GEX_MK_HOST, 0),
                        GASNET_OK);
            gex_Segment_Destroy(segment, 0);
        }
        segment = gex_EP_QuerySegment(passing[i]);
        memset(gex_Segment_QueryAddr(segment), 1, 65536);
        gex_Segment_Destroy(segment, 0);
    }
}

/* Thread 0 destroys, the others put and get through messages, which they serve as well. */
static void *closing(void *arg)
{
    const int me = (int)(intptr_t)arg;
    const gex_Rank_t next = aq_test_peer(1);
    const gex_TM_t pair = gex_TM_Pair(passing[PASSING], gex_EP_QueryIndex(passing[PASSING]));
    void *owner = NULL;
    uint64_t value = 0;

    if (me == 0) {
        end_segments();
        atomic_store_explicit(&ended, 1, memory_order_relaxed);
        return NULL;
    }
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, next, &owner, NULL, NULL, 0));
    while (atomic_load_explicit(&ended, memory_order_relaxed) == 0 || value < 20) {
        uint64_t *remote_addr = (uint64_t *)owner + WORDS * me;

        gex_RMA_PutBlocking(pair, next, remote_addr, &(uint64_t){ ++value }, sizeof(value), 0);
        AQ_CHECK_EQ(gex_RMA_GetBlockingVal(pair, next, remote_addr, sizeof(value), 0), value);
        atomic_fetch_add_explicit(&moved, 1, memory_order_relaxed);
    }
    return NULL;
}

static void check_shutdown(void)
{
    gex_Segment_t segment;
    int i;

    for (i = 0; i <= PASSING; i++) {
        AQ_CHECK_EQ(gex_EP_Create(&passing[i], aq_test_client, GEX_EP_CAPABILITY_RMA, 0),
                    GASNET_OK);
        AQ_CHECK_EQ(gex_Segment_Create(&segment, aq_test_client, i < PASSING ? NULL : staying,
                                       i < PASSING ? 65536 : sizeof(staying), GEX_MK_HOST, 0),
                    GASNET_OK);
        AQ_CHECK_EQ(gex_EP_BindSegment(passing[i], segment, 0), GASNET_OK);
    }
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, &passing[PASSING], 1, 0), GASNET_OK);
    aq_test_threads(3, closing);
    aq_test_barrier();
    for (i = 0; i < PASSING; i++) {
        uintptr_t size = 1;

        gex_Event_Wait(
            gex_EP_QueryBoundSegmentNB(gex_TM_Pair(aq_test_ep, gex_EP_QueryIndex(passing[i])),
                                       aq_test_me, NULL, NULL, &size, 0));
        AQ_CHECK_EQ(size, 0);
    }
}

#endif

int main(int argc, char **argv)
{
    gex_EP_t list[4];
    gex_TM_t half = GEX_TM_INVALID;
    gex_Rank_t r;

    aq_test_start(&argc, &argv, 1);
    aq_test_segment(4096 + 1 + LENGTH);
    make_endpoints();
    rule("core 14.1: a peer's endpoint that was never published is not known; outputs of "
         "QueryBound stay");
    check_unpublished();
    rule("core 14.2: nobody publishes anything; NULL with 0 is a participation like any other");
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, NULL, 0, 0), GASNET_OK);
    rule("core 14.2: over a part of the job, each with its own number of endpoints");
    gex_TM_Split(&half, aq_test_tm, (int)(aq_test_me % 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    list[0] = eps[2];
    list[1] = eps[1];
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(half, list, gex_TM_QueryRank(half) == 0 ? 2 : 1, 0),
                GASNET_OK);
    for (r = 0; r < aq_test_n; r++) {
        const bool ours = r % 2 == aq_test_me % 2;

        AQ_CHECK_EQ(known(r, 2), ours);
        AQ_CHECK_EQ(known(r, 1), r == aq_test_me || (ours && r < 2));
    }
    gex_TM_Destroy(half, NULL, 0);
    rule("core 14.2: known beyond the team's end; unbound and primordial endpoints may be listed");
    AQ_CHECK_EQ(gex_EP_Create(&list[3], aq_test_client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
    memcpy(list, eps, 3 * sizeof(*eps));
    for (r = aq_test_me % 2; r < aq_test_n; r += 2)
        if (away(r) < REMOTE)
            move(eps[1], 2, r, 100, 3);
    aq_test_barrier();
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, list, 4, 0), GASNET_OK);
    AQ_CHECK(!known(aq_test_peer(1), 4));
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, &eps[3], 1, 0), GASNET_OK);
    rule("core 13: put and get of every size and alignment, between every two endpoints, every "
         "direction");
    for (r = 0; r < aq_test_n; r++)
        if (aq_test_n <= REMOTE || away(r) < 2)
            check_directions(r);
    aq_test_barrier();
    rule("core 13: all of a segment at once");
    check_large();
    rule("core 14.2: a later publication brings what was not bound before");
    gex_Segment_t late;
    AQ_CHECK_EQ(gex_Segment_Create(&late, aq_test_client, memory, 32, GEX_MK_HOST, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_BindSegment(list[3], late, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_PublishBoundSegment(aq_test_tm, aq_test_me == 0 ? &list[3] : NULL,
                                           aq_test_me == 0 ? 1 : 0, 0),
                GASNET_OK);
    for (r = 0; r < aq_test_n; r++)
        AQ_CHECK_EQ(known(r, 4), r == 0 || r == aq_test_me);
    aq_test_barrier();
#if GASNET_PAR
    rule("core 12: a segment ends while other threads' handlers serve transfers to and from "
         "another one");
    check_shutdown();
    aq_test_barrier();
#endif
    return aq_test_finish();
}
