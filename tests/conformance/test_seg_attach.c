/*
 * test_seg_attach.c - attaches that are refused at one rank; segments of different sizes, size
 * limits, both bound-segment queries before and after attach, the segment table, and that the
 * memory is really there and shared. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19,
 * segments. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <sys/resource.h>

enum { H_ASK = AQ_TEST_FREE, H_OK };

static aq_test_count_t asked, agreed;

static uintptr_t size_of_rank(gex_Rank_t r)
{
    return (uintptr_t)GASNET_PAGESIZE * (1 + (r * 7) % 23); /* from one page upwards */
}

/* The IMMEDIATE query is legal here and must succeed for one's own endpoint. */
static void h_ask(gex_Token_t token, gex_AM_Arg_t hi, gex_AM_Arg_t lo)
{
    void *owner = NULL, *local = NULL;
    uintptr_t size = 0;
    gex_Event_t ev;

    ev = gex_EP_QueryBoundSegmentNB(aq_test_tm, aq_test_me, &owner, &local, &size,
                                    GEX_FLAG_IMMEDIATE);
    AQ_CHECK(ev == GEX_EVENT_INVALID);
    AQ_CHECK_PTR(owner, aq_test_pointer(hi, lo)); /* what the asking rank believes */
    AQ_CHECK_PTR(local, owner);
    AQ_CHECK_EQ(size, size_of_rank(aq_test_me));
    gex_AM_ReplyShort0(token, H_OK, 0);
    atomic_fetch_add(&asked, 1);
}

static void h_ok(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&agreed, 1);
}

static gex_AM_Entry_t table[] = {
    AQ_ENTRY(H_ASK, h_ask, AQ_SQ, 2),
    AQ_ENTRY(H_OK, h_ok, AQ_SP, 0),
};

static void query(gex_TM_t tm, gex_Rank_t r, void **owner, void **local, uintptr_t *size)
{
    gex_Event_t ev = gex_EP_QueryBoundSegmentNB(tm, r, owner, local, size, 0);

    AQ_CHECK(ev != GEX_EVENT_NO_OP);
    gex_Event_Wait(ev);
}

static void before_attach(void)
{
    void *owner = &agreed, *local = &asked;
    uintptr_t size = 77, top = gasnet_getMaxLocalSegmentSize();

    rule("core 11.2: size limits: page multiples, global at most local, stable");
    AQ_CHECK(top >= (uintptr_t)GASNET_PAGESIZE * 64 && top % GASNET_PAGESIZE == 0);
    AQ_CHECK(gasnet_getMaxGlobalSegmentSize() <= top);
    AQ_CHECK(gasnet_getMaxGlobalSegmentSize() % GASNET_PAGESIZE == 0);
    AQ_CHECK_EQ(gasnet_getMaxLocalSegmentSize(), top);
    rule(
        "core 14.1: before attach: QueryBound fails and leaves its outputs alone; NB gives size 0");
    AQ_CHECK(gex_Segment_QueryBound(aq_test_tm, aq_test_me, &owner, &local, &size) != 0);
    AQ_CHECK(owner == (void *)&agreed && local == (void *)&asked && size == 77);
    query(aq_test_tm, aq_test_me, &owner, &local, &size);
    AQ_CHECK_EQ(size, 0);
    size = 77;
    AQ_CHECK(gex_EP_QueryBoundSegmentNB(aq_test_tm, aq_test_me, &owner, &local, &size,
                                        GEX_FLAG_IMMEDIATE)
             == GEX_EVENT_INVALID);
    AQ_CHECK_EQ(size, 0);
}

static void check_refused(int ours, int expected)
{
    void *owner = &agreed;
    gex_Rank_t r;

    AQ_CHECK_EQ(ours, expected);
    AQ_CHECK(gex_EP_QuerySegment(aq_test_ep) == GEX_SEGMENT_INVALID);
    for (r = 0; r < aq_test_n; r++)
        AQ_CHECK(gex_Segment_QueryBound(aq_test_tm, r, &owner, NULL, NULL) != 0);
    AQ_CHECK_PTR(owner, &agreed);
    aq_test_barrier();
}

/* One rank asks for what cannot be, or finds late that its process may not have it. */
static void refused(void)
{
    const gex_Rank_t odd_one = aq_test_n - 1;
    const bool ours = aq_test_me == odd_one;
    struct rlimit limit, less;
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    int rc;

    rule("core 11.3: an attach that is refused at one rank is refused at all, and leaves no trace");
    gex_System_SetVerboseErrors(0);
    rc = gex_Segment_Attach(&segment, aq_test_tm, GASNET_PAGESIZE * 4 + (ours ? 100 : 0));
    check_refused(rc, ours ? GASNET_ERR_BAD_ARG : GASNET_ERR_RESOURCE);
    AQ_CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    less = limit;
    less.rlim_cur = 4096;
    AQ_CHECK(!ours || setrlimit(RLIMIT_FSIZE, &less) == 0);
    rc = gex_Segment_Attach(&segment, aq_test_tm, GASNET_PAGESIZE * 16);
    AQ_CHECK(!ours || setrlimit(RLIMIT_FSIZE, &limit) == 0);
    check_refused(rc, GASNET_ERR_RESOURCE);
    AQ_CHECK(segment == GEX_SEGMENT_INVALID);
    gex_System_SetVerboseErrors(1);
}

static void check_peer(gex_TM_t tm, gex_Rank_t r)
{
    void *owner = NULL, *local = (void *)&asked, *o2 = NULL, *l2 = (void *)&asked, *o3 = NULL;
    uintptr_t size = 0, s2 = 0;

    query(tm, r, &owner, &local, &size);
    AQ_CHECK(owner != NULL && (uintptr_t)owner % GASNET_PAGESIZE == 0);
    AQ_CHECK_EQ(size, size_of_rank(r));
    AQ_CHECK_EQ(gex_Segment_QueryBound(tm, r, &o2, &l2, &s2), 0);
    AQ_CHECK(owner == o2 && local == l2 && size == s2);
    query(tm, r, NULL, NULL, &s2);
    AQ_CHECK_EQ(s2, size);
    query(tm, r, &o3, NULL, NULL);
    AQ_CHECK_PTR(o3, owner);
    query(tm, r, NULL, NULL, NULL);
    AQ_CHECK_EQ(gex_Segment_QueryBound(tm, r, NULL, NULL, NULL), 0);
    if (r == aq_test_me)
        AQ_CHECK_PTR(local, owner);
    gex_AM_RequestShort2(aq_test_tm, r, H_ASK, 0, AQ_HI(owner), AQ_LO(owner));
}

/* Writes the neighbours' segments through their local mapping, first and last byte. */
static void touch_mapped(void)
{
    gex_RankInfo_t *info;
    gex_Rank_t count, i;
    char *ours = gex_Segment_QueryAddr(aq_test_seg);

    gex_System_QueryNbrhdInfo(&info, &count, NULL);
    for (i = 0; i < count; i++) {
        void *local = NULL;
        uintptr_t size = 0;

        AQ_CHECK_EQ(gex_Segment_QueryBound(aq_test_tm, info[i].gex_jobrank, NULL, &local, &size),
                    0);
        if (local == NULL)
            continue; /* not mapped here: allowed */
        ((unsigned char *)local)[aq_test_me % 512] = (unsigned char)(aq_test_me + 1);
        ((unsigned char *)local)[size - 1 - aq_test_me % 512] = (unsigned char)(aq_test_me + 2);
    }
    aq_test_barrier();
    for (i = 0; i < count; i++) {
        gex_Rank_t r = info[i].gex_jobrank;
        void *local = NULL;

        gex_Segment_QueryBound(aq_test_tm, r, NULL, &local, NULL);
        if (local == NULL)
            continue;
        AQ_CHECK_EQ((unsigned char)ours[r % 512], (unsigned char)(r + 1));
        AQ_CHECK_EQ((unsigned char)ours[size_of_rank(aq_test_me) - 1 - r % 512],
                    (unsigned char)(r + 2));
    }
    aq_test_barrier();
}

static void check_table(void)
{
    gasnet_seginfo_t *t = calloc(aq_test_n + 1, sizeof(*t));
    void *owner;
    gex_Rank_t r;

    memset(t, 0x55, (aq_test_n + 1) * sizeof(*t));
    AQ_CHECK_EQ(gasnet_getSegmentInfo(t, 1), GASNET_OK);
    AQ_CHECK(t[1].size == (uintptr_t)0x5555555555555555u);
    AQ_CHECK_EQ(gasnet_getSegmentInfo(t, (int)aq_test_n + 1), GASNET_OK);
    AQ_CHECK(t[aq_test_n].size == (uintptr_t)0x5555555555555555u);
    for (r = 0; r < aq_test_n; r++) {
        AQ_CHECK_EQ(gex_Segment_QueryBound(aq_test_tm, r, &owner, NULL, NULL), 0);
        AQ_CHECK_PTR(t[r].addr, owner);
        AQ_CHECK_EQ(t[r].size, size_of_rank(r));
    }
    free(t);
}

int main(int argc, char **argv)
{
    gex_TM_t pair;
    gex_Rank_t r;
    char *ours;
    uintptr_t top;

    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    aq_test_handlers(table, AQ_LENGTH(table));
    before_attach();
    refused();
    aq_test_barrier();
    top = gasnet_getMaxLocalSegmentSize();
    rule("core 11.3: attach: different sizes on different ranks, one page upwards");
    AQ_CHECK_EQ(gex_Segment_Attach(&aq_test_seg, aq_test_tm, size_of_rank(aq_test_me)), GASNET_OK);
    rule("core 11.6: segment accessors");
    AQ_CHECK(gex_Segment_QueryClient(aq_test_seg) == aq_test_client);
    AQ_CHECK_EQ(gex_Segment_QueryFlags(aq_test_seg), 0);
    AQ_CHECK_EQ(gex_Segment_QuerySize(aq_test_seg), size_of_rank(aq_test_me));
    ours = gex_Segment_QueryAddr(aq_test_seg);
    AQ_CHECK_EQ((uintptr_t)ours % GASNET_PAGESIZE, 0);
    memset(ours, 0, size_of_rank(aq_test_me));
    aq_test_barrier();
    rule("core 14.1: both query forms, every output may be NULL, own localaddr == owneraddr");
    for (r = 0; r < aq_test_n; r++)
        check_peer(aq_test_tm, r);
    rule("core 14.1: the same through a TM-pair");
    pair = gex_TM_Pair(aq_test_ep, 0);
    for (r = 0; r < aq_test_n; r++)
        check_peer(pair, r);
    rule("core 14.1: IMMEDIATE query inside a handler succeeds for the own endpoint");
    aq_test_wait(&agreed, 2 * (int)aq_test_n);
    aq_test_wait(&asked, 2 * (int)aq_test_n);
    rule("core 14.1: memory behind localaddr is the owner's memory");
    touch_mapped();
    rule("core 11.2: limits stay stable after attach");
    AQ_CHECK_EQ(gasnet_getMaxLocalSegmentSize(), top);
    rule("gasnet-1 9: gasnet_getSegmentInfo agrees and clips");
    check_table();
    return aq_test_finish();
}
