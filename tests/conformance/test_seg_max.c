/*
 * test_seg_max.c - every rank attaches exactly gasnet_getMaxGlobalSegmentSize(), as clients do; the
 * first, the last and some other pages can be used.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, segments.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

int main(int argc, char **argv)
{
    uintptr_t size, off;
    gex_Rank_t to;
    gex_RMA_Value_t v;
    char *ours;
    int i;

    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    rule("core 11.2: every rank gets the size that the query promised");
    size = gasnet_getMaxGlobalSegmentSize();
    AQ_CHECK_EQ(gex_Segment_Attach(&aq_test_seg, aq_test_tm, size), GASNET_OK);
    AQ_CHECK_EQ(gex_Segment_QuerySize(aq_test_seg), size);
    rule("core 11.3: memory all over the segment can be written locally and by a peer");
    ours = gex_Segment_QueryAddr(aq_test_seg);
    to = aq_test_peer(1);
    for (i = 0; i < 5; i++) {
        void *base = NULL;

        off = size / 4 * (uintptr_t)i;
        off = (i == 4 ? size - 8 : off) / 8 * 8;
        AQ_CHECK_EQ(gex_Segment_QueryBound(aq_test_tm, to, &base, NULL, NULL), 0);
        gex_RMA_PutBlockingVal(aq_test_tm, to, (char *)base + off, 1000 + aq_test_me, 8, 0);
    }
    aq_test_barrier();
    for (i = 0; i < 5; i++) {
        off = size / 4 * (uintptr_t)i;
        off = (i == 4 ? size - 8 : off) / 8 * 8;
        memcpy(&v, ours + off, 8);
        AQ_CHECK_EQ(v, 1000 + (aq_test_me + aq_test_n - 1) % aq_test_n);
    }
    return aq_test_finish();
}
