/*
 * test_rma_source.c - where the local side may lie: stack, heap, static, read-only data, read-only
 * mappings, the own segment, a neighbour's segment as mapped here.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, RMA.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#include <sys/mman.h>

enum { LEN = 9000 };

static const char constant[LEN] = { 'c', 'o', 'n', 's', 't', [LEN - 1] = 'z' };
static char in_data[LEN] = { 1 };
static char in_bss[LEN];

static void put_and_compare(gex_Rank_t to, const void *src, size_t len)
{
    char *remote_addr = aq_test_base(to), back[LEN];
    gex_Event_t lc, ev;
    int round;

    for (round = 0; round < 3; round++) {
        memset(back, 0x13, len);
        gex_RMA_PutBlocking(aq_test_tm, to, remote_addr, back, len, 0);
        if (round == 0) {
            gex_RMA_PutBlocking(aq_test_tm, to, remote_addr, src, len, 0);
        } else if (round == 1) {
            ev = gex_RMA_PutNB(aq_test_tm, to, remote_addr, src, len, &lc, 0);
            gex_Event_Wait(ev);
        } else {
            gex_RMA_PutNBI(aq_test_tm, to, remote_addr, src, len, GEX_EVENT_GROUP, 0);
            gex_NBI_Wait(GEX_EC_ALL, 0);
        }
        gex_RMA_GetBlocking(aq_test_tm, back, to, remote_addr, len, 0);
        AQ_CHECK(memcmp(back, src, len) == 0);
    }
}

static void get_into(gex_Rank_t from, void *dest, size_t len)
{
    char *remote_addr = aq_test_base(from), sent[LEN];

    aq_test_fill(sent, len, (uint64_t)(uintptr_t)dest);
    gex_RMA_PutBlocking(aq_test_tm, from, remote_addr, sent, len, 0);
    gex_RMA_GetBlocking(aq_test_tm, dest, from, remote_addr, len, 0);
    AQ_CHECK(memcmp(sent, dest, len) == 0);
    memset(dest, 0, len);
    gex_Event_Wait(gex_RMA_GetNB(aq_test_tm, dest, from, remote_addr, len, 0));
    AQ_CHECK(memcmp(sent, dest, len) == 0);
}

static void mapped_neighbour(gex_Rank_t to)
{
    gex_RankInfo_t *info;
    gex_Rank_t count, me;
    void *local = NULL;

    gex_System_QueryNbrhdInfo(&info, &count, &me);
    gex_Segment_QueryBound(aq_test_tm, info[(me + 1) % count].gex_jobrank, NULL, &local, NULL);
    if (local != NULL)
        put_and_compare(to, (char *)local + 2 * LEN, 500);
}

int main(int argc, char **argv)
{
    char on_stack[LEN], *heap, *page;
    gex_Rank_t k;

    aq_test_start(&argc, &argv, 1);
    heap = malloc(LEN);
    page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    aq_test_fill(page, 3 * 4096, 8);
    mprotect(page, 3 * 4096, PROT_READ);
    aq_test_segment(4 * LEN);
    aq_test_fill(on_stack, LEN, 1);
    aq_test_fill(heap, LEN, 2);
    aq_test_fill(in_data, LEN, 3);
    aq_test_fill(in_bss, LEN, 4);
    aq_test_fill((char *)aq_test_base(aq_test_me) + 2 * LEN, LEN, 5);
    aq_test_barrier();
    for (k = 0; k < (aq_test_n > 1 ? 2u : 1u); k++) {
        gex_Rank_t to = aq_test_peer(k);

        rule("extended 6.3: put sources on stack, heap, in data and bss, in the own segment");
        put_and_compare(to, on_stack, LEN);
        put_and_compare(to, heap, LEN);
        put_and_compare(to, in_data, LEN);
        put_and_compare(to, in_bss, LEN);
        put_and_compare(to, (char *)aq_test_base(aq_test_me) + 2 * LEN, LEN);
        rule("extended 6.3: read-only put sources: constant data and PROT_READ mappings");
        put_and_compare(to, constant, LEN);
        put_and_compare(to, page + 1, LEN);
        rule("extended 6.3: put source in a neighbour's mapped segment");
        mapped_neighbour(to);
        rule("extended 6.3: get destinations on stack, heap, in data and bss, in the own segment");
        get_into(to, on_stack, LEN);
        get_into(to, heap, LEN);
        get_into(to, in_data, LEN);
        get_into(to, in_bss, LEN);
        get_into(to, (char *)aq_test_base(aq_test_me) + LEN, LEN);
        aq_test_barrier();
    }
    free(heap);
    munmap(page, 3 * 4096);
    return aq_test_finish();
}
