/*
 * test_vis_calls.c - each of the eighteen calls, to every rank: results, flags that are tolerated,
 * IMMEDIATE, TM-pairs, categories of implicit operations, visibility to a third rank.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, VIS, RMA results, immediate mode.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_vis_model.h"

enum { SPACE = 8192 };

static char ours[SPACE], expected[SPACE];
static struct vis_case *c;
static struct vis_lists lists;

static char *slot_of(gex_Rank_t rank)
{
    return (char *)aq_test_base(rank) + (size_t)aq_test_me * SPACE;
}

/* Put and get of one kind and style with given flags, to rank in tm, which is rank job of the job;
 * a declined call is repeated after a poll. */
static void round_trip(gex_TM_t tm, gex_Rank_t rank, gex_Rank_t job, enum vis_kind kind,
                       enum vis_style style, gex_Flags_t flags)
{
    char *slot = slot_of(job);
    gex_Event_t ev;
    int declined, tries = 0;

    vis_make(c, kind, SPACE);
    aq_test_fill(ours, SPACE, aq_test_random(&vis_seed));
    gex_RMA_GetBlocking(aq_test_tm, expected, job, slot, SPACE, 0);
    vis_model(c, expected, ours);
    vis_lists_fill(&lists, c, slot, ours);
    do {
        ev = vis_call(c, &lists, tm, rank, slot, ours, true, style,
                      tries < 100 ? flags : flags & ~(gex_Flags_t)1, &declined);
        if (declined) {
            AQ_CHECK((flags & GEX_FLAG_IMMEDIATE) != 0 && tries < 100);
            AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
            aq_test_relax();
        }
    } while (declined && ++tries < 1000);
    if (style == VIS_NB)
        aq_test_sync(ev);
    if (style == VIS_NBI)
        AQ_UNTIL(gex_NBI_Test(GEX_EC_PUT, 0) == GASNET_OK);
    AQ_CHECK_EQ(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    gex_RMA_GetBlocking(aq_test_tm, ours, job, slot, SPACE, 0);
    AQ_CHECK(memcmp(ours, expected, SPACE) == 0);

    vis_make(c, kind, SPACE);
    memcpy(expected, ours, SPACE);
    aq_test_fill(ours, SPACE, aq_test_random(&vis_seed));
    memcpy(expected, ours, SPACE);
    {
        static char remote_bytes[SPACE];

        gex_RMA_GetBlocking(aq_test_tm, remote_bytes, job, slot, SPACE, 0);
        vis_model(c, expected, remote_bytes);
    }
    vis_lists_fill(&lists, c, ours, slot);
    tries = 0;
    do {
        ev = vis_call(c, &lists, tm, rank, ours, slot, false, style,
                      tries < 100 ? flags : flags & ~(gex_Flags_t)1, &declined);
        if (declined)
            aq_test_relax();
    } while (declined && ++tries < 1000);
    if (style == VIS_NB)
        aq_test_sync(ev);
    if (style == VIS_NBI)
        AQ_UNTIL(gex_NBI_Test(GEX_EC_GET, 0) == GASNET_OK);
    AQ_CHECK(memcmp(ours, expected, SPACE) == 0);
}

static void every_call(void)
{
    static const enum vis_style styles[] = { VIS_BLOCKING, VIS_NB, VIS_NBI };
    static const gex_Flags_t flags[] = { 0, GEX_FLAG_IMMEDIATE,
                                         GEX_FLAG_SELF_SEG_UNKNOWN | GEX_FLAG_PEER_SEG_BOUND,
                                         GEX_FLAG_PEER_SEG_SOME };
    const gex_Rank_t step = aq_test_n > 16 ? aq_test_n / 8 : 1;
    gex_TM_t tm[3] = { aq_test_tm, gex_TM_Pair(aq_test_ep, 0), GEX_TM_INVALID };
    int which = 0;

    rule("extended 10.4, 19.22: every call, every rank, flags of the family; a rank is one of the "
         "team, split ones too, or the job's with a TM-pair");
    gex_TM_Split(&tm[2], aq_test_tm, 1, -(int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (gex_Rank_t k = 0; k < aq_test_n; k += step)
        for (int kind = 0; kind < VIS_KINDS; kind++)
            for (size_t s = 0; s < AQ_LENGTH(styles); s++)
                for (size_t f = 0; f < (aq_test_n > 16 ? 1 : AQ_LENGTH(flags)); f++) {
                    const gex_Rank_t job = aq_test_peer(k);

                    which = (which + 1) % 3;
                    round_trip(tm[which], which == 2 ? aq_test_n - 1 - job : job, job,
                               (enum vis_kind)kind, styles[s], flags[f]);
                }
    aq_test_barrier();
    gex_TM_Destroy(tm[2], NULL, 0);
}

/* A blocking put, then a flag: whoever sees the flag sees the data, the target and a third rank. */
static void visible(void)
{
    const gex_Rank_t to = aq_test_peer(1), third = aq_test_peer(2);
    char *base = (char *)aq_test_base(to) + (size_t)aq_test_n * SPACE;
    char *third_base = (char *)aq_test_base(third) + (size_t)aq_test_n * SPACE;
    char *my_base = (char *)aq_test_base(aq_test_me) + (size_t)aq_test_n * SPACE;
    const gex_Rank_t writer = aq_test_peer(aq_test_n - 1), asker = aq_test_peer(2 * aq_test_n - 2);
    const ptrdiff_t remote_stride[1] = { 64 }, local_stride[1] = { 8 };
    const size_t count[1] = { 32 };
    uint64_t data[32], seen[32];

    rule("extended 19.10: complete puts are seen by a load at the target and by a get of a third "
         "rank");
    for (uint64_t round = 1; round <= (aq_test_quick ? 5 : 200); round++) {
        for (int i = 0; i < 32; i++)
            data[i] = round * 100000 + aq_test_me * 100 + (unsigned)i;
        AQ_CHECK_EQ(gex_VIS_StridedPutBlocking(aq_test_tm, to, base, remote_stride, data,
                                               local_stride, 8, count, 1, 0),
                    0);
        gex_RMA_PutBlockingVal(aq_test_tm, to, base + 4096, round, 8, 0);
        gex_RMA_PutBlockingVal(aq_test_tm, third, third_base + 4104, round, 8, 0);
        AQ_UNTIL(*(volatile uint64_t *)(void *)(my_base + 4096) == round);
        for (int i = 0; i < 32; i++)
            AQ_CHECK_EQ(*(uint64_t *)(void *)(my_base + 64 * i),
                        round * 100000 + writer * 100 + (unsigned)i);
        AQ_UNTIL(*(volatile uint64_t *)(void *)(my_base + 4104) == round);
        /* two places before me put to one place before me */
        AQ_CHECK_EQ(
            gex_VIS_StridedGetBlocking(aq_test_tm, seen, local_stride, writer,
                                       (char *)aq_test_base(writer) + (size_t)aq_test_n * SPACE,
                                       remote_stride, 8, count, 1, 0),
            0);
        for (int i = 0; i < 32; i++)
            AQ_CHECK_EQ(seen[i], round * 100000 + asker * 100 + (unsigned)i);
        aq_test_barrier();
    }
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_segment((size_t)SPACE * (aq_test_n + 1));
    vis_seed = 5 + aq_test_me;
    c = vis_case_create(SPACE);
    vis_lists_create(&lists);
    every_call();
    aq_test_barrier();
    visible();
    return aq_test_finish();
}
