/*
 * test_ep_create.c - further endpoints and segments without communication: indices, error codes,
 * what a failed call leaves alone, binding, queries.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Endpoints; Segments.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

static char memory[10000];

static void check_segments(void)
{
    gex_Segment_t seg = (gex_Segment_t)(void *)memory;
    const uintptr_t limit = gasnet_getMaxLocalSegmentSize();

    rule("core 11.4: bad arguments give BAD_ARG and leave the output alone");
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, memory, 0, GEX_MK_HOST, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, NULL, 0, GEX_MK_HOST, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, memory, 8, GEX_MK_INVALID, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_Segment_Create(&seg, GEX_CLIENT_INVALID, memory, 8, GEX_MK_HOST, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, memory, 8, GEX_MK_HOST, 1),
                GASNET_ERR_BAD_ARG);
    if (limit < UINTPTR_MAX)
        AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, NULL, limit + 1, GEX_MK_HOST, 0),
                    GASNET_ERR_BAD_ARG);
    AQ_CHECK(seg == (gex_Segment_t)(void *)memory);
    rule("core 11.4: memory of the library's: usable, rounded up, reported by the queries");
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, NULL, 5000, GEX_MK_HOST, 0), GASNET_OK);
    AQ_CHECK(gex_Segment_QuerySize(seg) >= 5000 && gex_Segment_QueryAddr(seg) != NULL);
    memset(gex_Segment_QueryAddr(seg), 5, gex_Segment_QuerySize(seg));
    AQ_CHECK(gex_Segment_QueryClient(seg) == aq_test_client && gex_Segment_QueryFlags(seg) == 0);
    AQ_CHECK(gex_Segment_QueryCData(seg) == NULL);
    gex_Segment_SetCData(seg, memory);
    AQ_CHECK(gex_Segment_QueryCData(seg) == memory);
    gex_Segment_Destroy(seg, 0);
    rule("core 11.4: memory of the client's: any alignment, contents untouched");
    memset(memory, 9, sizeof(memory));
    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, memory + 3, 1001, GEX_MK_HOST, 0),
                GASNET_OK);
    AQ_CHECK(gex_Segment_QueryAddr(seg) == memory + 3 && gex_Segment_QuerySize(seg) == 1001);
    gex_Segment_Destroy(seg, 0);
    AQ_CHECK(aq_test_all(memory, 9, sizeof(memory)));
    rule("core 11.5: segments come and go: address space is given back");
    for (int i = 0; i < 2000; i++) {
        AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, NULL, 1 << 20, GEX_MK_HOST, 0),
                    GASNET_OK);
        *(char *)gex_Segment_QueryAddr(seg) = 1;
        gex_Segment_Destroy(seg, 0);
    }
}

static void check_failures(gex_EP_t *ep_p)
{
    const gex_EP_t before = *ep_p;

    AQ_CHECK_EQ(gex_EP_Create(ep_p, aq_test_client, 0, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_Create(ep_p, aq_test_client, GEX_EP_CAPABILITY_ALL, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_Create(ep_p, aq_test_client, GEX_EP_CAPABILITY_AM, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_Create(ep_p, aq_test_client, GEX_EP_CAPABILITY_RMA | 1u << 20, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_Create(ep_p, aq_test_client, GEX_EP_CAPABILITY_RMA, 1u << 20),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_Create(ep_p, GEX_CLIENT_INVALID, GEX_EP_CAPABILITY_RMA, 0),
                GASNET_ERR_BAD_ARG);
    AQ_CHECK(*ep_p == before);
}

static void check_queries_of(gex_EP_t ep, gex_EP_Index_t index, gex_Segment_t seg)
{
    void *owner = memory, *local = memory;
    uintptr_t size = 1;

    AQ_CHECK(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(ep, index), aq_test_me, &owner, &local, &size,
                                        GEX_FLAG_IMMEDIATE)
             == GEX_EVENT_INVALID);
    if (seg == GEX_SEGMENT_INVALID) {
        AQ_CHECK_EQ(size, 0);
        owner = local = memory;
        AQ_CHECK(gex_Segment_QueryBound(gex_TM_Pair(ep, index), aq_test_me, &owner, &local, &size)
                 != 0);
        AQ_CHECK(owner == memory && local == memory);
    } else {
        AQ_CHECK(owner == gex_Segment_QueryAddr(seg) && size == gex_Segment_QuerySize(seg));
        AQ_CHECK(local == NULL || local == owner);
        size = 0;
        AQ_CHECK_EQ(
            gex_Segment_QueryBound(gex_TM_Pair(aq_test_ep, index), aq_test_me, NULL, NULL, &size),
            0);
        AQ_CHECK_EQ(size, gex_Segment_QuerySize(seg));
    }
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(gex_TM_Pair(ep, index), aq_test_me, NULL, NULL, NULL, 0));
}

static void check_binding(gex_EP_t *eps)
{
    gex_Segment_t seg, other;

    AQ_CHECK_EQ(gex_Segment_Create(&seg, aq_test_client, memory, 512, GEX_MK_HOST, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_Segment_Create(&other, aq_test_client, NULL, 512, GEX_MK_HOST, 0), GASNET_OK);
    rule("core 13: bad bindings give BAD_ARG, and QuerySegment stays what it was");
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[1], GEX_SEGMENT_INVALID, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_BindSegment(GEX_EP_INVALID, seg, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[1], seg, 1), GASNET_ERR_BAD_ARG);
    AQ_CHECK(gex_EP_QuerySegment(eps[1]) == GEX_SEGMENT_INVALID);
    check_queries_of(eps[1], 1, GEX_SEGMENT_INVALID);
    rule("core 13: one segment, several endpoints; an endpoint keeps its segment");
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[1], seg, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[2], seg, 0), GASNET_OK);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[1], other, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[1], seg, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK(gex_EP_QuerySegment(eps[1]) == seg && gex_EP_QuerySegment(eps[2]) == seg);
    AQ_CHECK(gex_EP_QuerySegment(eps[3]) == GEX_SEGMENT_INVALID);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[3], other, 0), GASNET_OK);
    rule("core 14.1: the query of a local endpoint succeeds as soon as it is bound");
    check_queries_of(eps[1], 1, seg);
    check_queries_of(eps[4], 2, seg);
    check_queries_of(eps[1], 3, other);
    check_queries_of(eps[1], 32, GEX_SEGMENT_INVALID);
    rule("core 11.5: destroying does not unbind, nor make room for another");
    gex_Segment_Destroy(other, 0);
    AQ_CHECK_EQ(gex_EP_BindSegment(eps[3], seg, 0), GASNET_ERR_BAD_ARG);
    AQ_CHECK(gex_EP_QuerySegment(eps[3]) != seg);
}

int main(int argc, char **argv)
{
    gex_EP_t eps[GASNET_MAXEPS], ep;
    gex_AM_Entry_t entry = AQ_ENTRY(0, check_segments, AQ_SQ, 0);
    gex_EP_Index_t i, j;

    aq_test_start(&argc, &argv, 1);
    gex_System_SetVerboseErrors(0);
    check_segments();
    rule("core 13: BAD_ARG for capabilities that are none, unknown or not offered; output "
         "untouched");
    ep = aq_test_ep;
    check_failures(&ep);
    rule("core 13: indices are 1, 2, 3, ... in order; a failed create takes none");
    for (i = 1; i < GASNET_MAXEPS; i++) {
        const gex_Flags_t hints = i % 2 ? GEX_FLAG_HINT_ACCEL_ALL : 0;

        eps[i] = GEX_EP_INVALID;
        check_failures(&eps[i]);
        AQ_CHECK_EQ(gex_EP_Create(&eps[i], aq_test_client, GEX_EP_CAPABILITY_RMA, hints),
                    GASNET_OK);
        AQ_CHECK_EQ(gex_EP_QueryIndex(eps[i]), i);
        AQ_CHECK_EQ(gex_EP_QueryFlags(eps[i]), hints);
        AQ_CHECK(gex_EP_QueryClient(eps[i]) == aq_test_client);
        AQ_CHECK(gex_EP_QuerySegment(eps[i]) == GEX_SEGMENT_INVALID);
        AQ_CHECK(gex_EP_QueryCData(eps[i]) == NULL);
        gex_EP_SetCData(eps[i], &eps[i]);
    }
    for (i = 1; i < GASNET_MAXEPS; i++)
        AQ_CHECK(gex_EP_QueryCData(eps[i]) == (void *)&eps[i]);
    rule("core 13: beyond GASNET_MAXEPS: RESOURCE, output untouched");
    ep = aq_test_ep;
    AQ_CHECK_EQ(gex_EP_Create(&ep, aq_test_client, GEX_EP_CAPABILITY_RMA, 0), GASNET_ERR_RESOURCE);
    AQ_CHECK(ep == aq_test_ep && gex_EP_QueryIndex(aq_test_ep) == 0);
    rule("core 16: pairs of any two indices are all different, and the same when asked again");
    eps[0] = aq_test_ep;
    for (i = 0; i < GASNET_MAXEPS; i++)
        for (j = 0; j < GASNET_MAXEPS; j++) {
            AQ_CHECK(gex_TM_Pair(eps[i], j) == gex_TM_Pair(eps[i], j));
            AQ_CHECK(gex_TM_Pair(eps[i], j) != gex_TM_Pair(eps[(i + 1) % GASNET_MAXEPS], j));
            AQ_CHECK(gex_TM_Pair(eps[i], j)
                     != gex_TM_Pair(eps[i], (gex_EP_Index_t)((j + 1) % GASNET_MAXEPS)));
        }
    check_binding(eps);
    rule("core 13: an endpoint without AM takes no handlers");
    AQ_CHECK_EQ(gex_EP_RegisterHandlers(eps[1], &entry, 1), GASNET_ERR_BAD_ARG);
    return aq_test_finish();
}
