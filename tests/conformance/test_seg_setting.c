/*
 * test_seg_setting.c - segment limits set by the program: a setenv before init is read, the attach hook sees
 * the segment before any page of it is used, GASNET_MAX_SEGSIZE bounds what may be attached. Each process
 * sets another limit, by its process id, since it has no rank yet.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, segments and environment.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <unistd.h>

static void *hook_base;
static uintptr_t hook_size;
static int hook_calls;

static void hook(void *base, uintptr_t size)
{
    hook_base = base;
    hook_size = size;
    hook_calls++;
}

/* Every rank tells every other its local limit, as it was before attach. */
static void check_global_is_minimum(uintptr_t local, uintptr_t global)
{
    const uint64_t *all = aq_test_base(aq_test_me);
    uintptr_t least = UINTPTR_MAX;
    gex_Rank_t r;

    for (r = 0; r < aq_test_n; r++)
        gex_RMA_PutBlockingVal(aq_test_tm, r, (uint64_t *)aq_test_base(r) + aq_test_me, local, 8, 0);
    aq_test_barrier();
    for (r = 0; r < aq_test_n; r++)
        least = MIN(least, (uintptr_t)all[r]);
    AQ_CHECK_EQ(global, least);
    AQ_CHECK_EQ(all[aq_test_me], local);
    AQ_CHECK(global > 0 && global % GASNET_PAGESIZE == 0);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    const uintptr_t megabytes = 16 + (uintptr_t)getpid() % 13, limit = megabytes << 20;
    uintptr_t local, global;
    char setting[32];

    snprintf(setting, sizeof(setting), "%uMB/P", (unsigned)megabytes);
    setenv("GASNET_MAX_SEGSIZE", setting, 1);
    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("the whole address space is the segment");
#endif
    rule("core 27.3: a setting made by setenv before init counts; GASNET_MAX_SEGSIZE=16MB/P and others");
    local = gasnet_getMaxLocalSegmentSize();
    global = gasnet_getMaxGlobalSegmentSize();
    AQ_CHECK(local <= limit);
    AQ_CHECK(local >= limit / 2);
    rule("core 3.5: gasnet_client_attach_hook is called once with the new segment");
    gasnet_client_attach_hook = hook;
    AQ_CHECK_EQ(gex_Segment_Attach(&aq_test_seg, aq_test_tm, 10 * GASNET_PAGESIZE), GASNET_OK);
    AQ_CHECK_EQ(hook_calls, 1);
    AQ_CHECK_PTR(hook_base, gex_Segment_QueryAddr(aq_test_seg));
    AQ_CHECK(hook_size >= 10 * (uintptr_t)GASNET_PAGESIZE);
    rule("core 11.6: the segment has the size asked for and can be used");
    AQ_CHECK_EQ(gex_Segment_QuerySize(aq_test_seg), 10 * GASNET_PAGESIZE);
    memset(gex_Segment_QueryAddr(aq_test_seg), 1, 10 * GASNET_PAGESIZE);
    rule("core 11.5: with another limit on each rank the global one is the least of them, everywhere");
    aq_test_learn_bases(10 * GASNET_PAGESIZE);
    check_global_is_minimum(local, global);
    return aq_test_finish();
}
