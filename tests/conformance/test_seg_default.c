/*
 * test_seg_default.c - a client that defines gasnet_max_segsize_str itself: it is the default of
 * GASNET_MAX_SEGSIZE.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, headers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

const char *gasnet_max_segsize_str = "4MB/P";

int main(int argc, char **argv)
{
    const uintptr_t limit = (uintptr_t)4 << 20;

    unsetenv("GASNET_MAX_SEGSIZE");
    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    rule("core 3.5: the client's own gasnet_max_segsize_str is the default of GASNET_MAX_SEGSIZE");
    AQ_CHECK(gasnet_getMaxLocalSegmentSize() <= limit);
    AQ_CHECK(gasnet_getMaxLocalSegmentSize() >= limit / 2);
    AQ_CHECK(gasnet_getMaxGlobalSegmentSize() <= limit);
    return aq_test_finish();
}
