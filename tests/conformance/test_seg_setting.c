/*
 * test_seg_setting.c - segment limits set by the program: a setenv before init is read, the attach
 * hook sees the segment before any page of it is used, GASNET_MAX_SEGSIZE bounds what may be
 * attached. Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, segments and environment.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

static void *hook_base;
static uintptr_t hook_size;
static int hook_calls;

static void hook(void *base, uintptr_t size)
{
    hook_base = base;
    hook_size = size;
    hook_calls++;
}

int main(int argc, char **argv)
{
    const uintptr_t limit = (uintptr_t)16 << 20;

    setenv("GASNET_MAX_SEGSIZE", "16MB/P", 1);
    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    rule("core 27.3: a setting made by setenv before init counts; GASNET_MAX_SEGSIZE=16MB/P");
    AQ_CHECK(gasnet_getMaxLocalSegmentSize() <= limit);
    AQ_CHECK(gasnet_getMaxLocalSegmentSize() >= limit / 2);
    rule("core 3.5: gasnet_client_attach_hook is called once with the new segment");
    gasnet_client_attach_hook = hook;
    AQ_CHECK_EQ(gex_Segment_Attach(&aq_test_seg, aq_test_tm, 10 * GASNET_PAGESIZE), GASNET_OK);
    AQ_CHECK_EQ(hook_calls, 1);
    AQ_CHECK_PTR(hook_base, gex_Segment_QueryAddr(aq_test_seg));
    AQ_CHECK(hook_size >= 10 * (uintptr_t)GASNET_PAGESIZE);
    rule("core 11.6: the segment has the size asked for and can be used");
    AQ_CHECK_EQ(gex_Segment_QuerySize(aq_test_seg), 10 * GASNET_PAGESIZE);
    memset(gex_Segment_QueryAddr(aq_test_seg), 1, 10 * GASNET_PAGESIZE);
    return aq_test_finish();
}
