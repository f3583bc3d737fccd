/*
 * user_placement.c - the client decides where and when the pages of a segment are allocated: none
 * exists before the client's attach hook has run, and afterwards only those that the client
 * touches. Ranks 1+. Source GASNet-1 specification, attach. SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { HUGE_PAGES = 16, SEGMENT = HUGE_PAGES * (2 << 20), HALF = SEGMENT / 2 };

static struct {
    int calls;
    void *base;
    uintptr_t size;
    long resident; /* pages that existed when the hook began */
} hooked;

/* Number of allocated pages in a range; -1 if the kernel does not report it. */
static long resident(void *base, size_t bytes)
{
    const size_t pages = bytes / GASNET_PAGESIZE;
    unsigned char *map = malloc(pages);
    long count = 0;

    if (map == NULL || mincore(base, bytes, map) != 0)
        count = -1;
    for (size_t page = 0; count >= 0 && page < pages; page++)
        count += map[page] & 1;
    free(map);
    return count;
}

static long faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* What a client does here is to set a NUMA policy; this one looks whether it still could. */
static void on_attach(void *base, uintptr_t size)
{
    hooked.calls++;
    hooked.base = base;
    hooked.size = size;
    hooked.resident = resident(base, size);
}

void (*gasnet_client_attach_hook)(void *, uintptr_t) = on_attach;

static void check_traffic_touches_nothing(char *ours)
{
    int i;

    rule("placement: barriers and messages touch no page of a segment");
    for (i = 0; i < 100; i++)
        aq_test_barrier();
    AQ_CHECK_EQ(resident(ours, SEGMENT), 0);
    aq_test_barrier();
}

static void check_owner(char *ours)
{
    long before, after;

    rule("placement: the owner's first touch, and nothing else, makes its pages");
    before = faults();
    memset(ours, 1, HALF);
    after = faults();
    AQ_CHECK(after > before); /* they were not there */
    AQ_CHECK_EQ(resident(ours, HALF), HALF / GASNET_PAGESIZE);
    AQ_CHECK_EQ(resident(ours + HALF, SEGMENT - HALF), 0);
    aq_test_barrier();
}

static void check_peer(char *ours)
{
    const uint64_t one = 1;
    char *remote = (char *)aq_test_base(aq_test_peer(1)) + HALF;
    long remote_addr;

    rule("placement: a put makes the page that it writes to, a huge one at most");
    gex_RMA_PutBlocking(aq_test_tm, aq_test_peer(1), remote, (void *)(uintptr_t)&one, sizeof(one),
                        0);
    aq_test_barrier();
    remote_addr = resident(ours + HALF, SEGMENT - HALF);
    AQ_CHECK(remote_addr >= 1 && remote_addr <= (2 << 20) / GASNET_PAGESIZE);
    aq_test_barrier();
}

int main(int argc, char **argv)
{
    char *ours;

    aq_test_start(&argc, &argv, 1);
#if GASNET_SEGMENT_EVERYTHING
    aq_test_skip("segment everything has no segment to place");
#endif
    rule("placement: the hook is not called before attach");
    AQ_CHECK_EQ(hooked.calls, 0);
    aq_test_segment(SEGMENT);
    ours = aq_test_base(aq_test_me);
    rule("placement: attach calls the client's hook once, with the segment's base and size");
    AQ_CHECK_EQ(hooked.calls, 1);
    AQ_CHECK_PTR(hooked.base, ours);
    AQ_CHECK_EQ(hooked.size, SEGMENT);
    rule("placement: no page exists before the hook has run");
    AQ_CHECK_EQ(hooked.resident, 0);
    check_traffic_touches_nothing(ours);
    check_owner(ours);
    check_peer(ours);
    return aq_test_finish();
}
