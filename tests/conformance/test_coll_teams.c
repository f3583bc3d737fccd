/*
 * test_coll_teams.c - every collective on split teams: without scratch space, overlapping, many
 * teams at a time and one after the other, and in par on different teams from different threads.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives, Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

enum { TEAMS = 24, WORDS = 3000 };

static uint64_t color_of(gex_Rank_t rank, int ways)
{
    return rank % (unsigned)ways;
}

static gex_TM_t split(gex_TM_t parent, int color, int key)
{
    gex_TM_t team = GEX_TM_INVALID;

    gex_TM_Split(&team, parent, color, key, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return team;
}

struct buffers {
    uint64_t in[WORDS], out[WORDS];
};

/* All kinds on one team; the sums are over jobranks. */
static void check_team(gex_TM_t tm, struct buffers *b, size_t count, uint64_t salt)
{
    const gex_Rank_t size = gex_TM_QuerySize(tm), me = gex_TM_QueryRank(tm);
    const gex_Rank_t root = (gex_Rank_t)(salt % size);
    uint64_t sum = 0, wrong = 0;
    gex_Event_t event;

    for (gex_Rank_t rank = 0; rank < size; rank++)
        sum += (uint64_t)(rank + 1) * (salt + 1);
    for (size_t k = 0; k < count; k++)
        b->in[k] = (uint64_t)(me + 1) * (salt + 1) + k;
    event = gex_Coll_BarrierNB(tm, 0);
    gex_Event_Wait(
        gex_Coll_ReduceToAllNB(tm, b->out, b->in, GEX_DT_U64, 8, count, GEX_OP_ADD, NULL, NULL, 0));
    for (size_t k = 0; k < count; k++)
        wrong += b->out[k] != sum + k * size;
    gex_Event_Wait(gex_Coll_ReduceToOneNB(tm, root, b->out, b->in, GEX_DT_I64, 8, count, GEX_OP_MAX,
                                          NULL, NULL, 0));
    if (me == root)
        for (size_t k = 0; k < count; k++)
            wrong += b->out[k] != (uint64_t)size * (salt + 1) + k;
    gex_Event_Wait(gex_Coll_BroadcastNB(tm, root, b->out, b->in, count * 8, 0));
    for (size_t k = 0; k < count; k++)
        wrong += b->out[k] != (uint64_t)(root + 1) * (salt + 1) + k;
    gex_Event_Wait(event);
    gex_Coll_BarrierBlocking(tm, 0);
    if (wrong != 0)
        aq_test_fail(__FILE__, __LINE__, "team of %u, %zu words: %llu wrong", size, count,
                     (unsigned long long)wrong);
}

static struct buffers common;

static void check_kinds(void)
{
    for (int ways = 1; ways <= 3; ways++) {
        gex_TM_t tm = split(aq_test_tm, (int)color_of(aq_test_me, ways), -(int)aq_test_me);

        for (size_t count = 1; count <= WORDS; count = count * 5 + 1)
            check_team(tm, &common, count, count + (unsigned)ways);
        gex_TM_Destroy(tm, NULL, 0);
    }
}

/* More teams than there is memory to share for; they take turns, and some overlap others. */
static void check_many(void)
{
    gex_TM_t tms[TEAMS];
    gex_Event_t events[TEAMS];
    uint64_t values[TEAMS];

    for (int i = 0; i < TEAMS; i++)
        tms[i] = split(aq_test_tm, i % 3 == 0 ? 0 : (int)color_of(aq_test_me, 2), i);
    for (int i = 0; i < TEAMS; i++)
        check_team(tms[i], &common, 40, (unsigned)i);
    for (int i = 0; i < TEAMS; i++) {
        values[i] = 1;
        events[i] = gex_Coll_ReduceToAllNB(tms[i], &values[i], &values[i], GEX_DT_U64, 8, 1,
                                           GEX_OP_ADD, NULL, NULL, 0);
    }
    for (int i = TEAMS - 1; i >= 0; i--) {
        gex_Event_Wait(events[i]);
        AQ_CHECK_EQ(values[i], gex_TM_QuerySize(tms[i]));
    }
    for (int i = 0; i < TEAMS; i++)
        gex_TM_Destroy(tms[(i * 7) % TEAMS], NULL, 0);
}

/* A team's share of the memory comes back, with whatever the last team left in it. */
static void check_rounds(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        gex_TM_t tm = split(aq_test_tm, (int)color_of(aq_test_me + (unsigned)i, 2), i);

        check_team(tm, &common, i % 7 == 0 ? 300 : 2, (unsigned)i);
        gex_TM_Destroy(tm, NULL, 0);
    }
}

/* Nested teams, and the collectives of parent and child side by side. */
static void check_nested(void)
{
    gex_TM_t half = split(aq_test_tm, (int)color_of(aq_test_me, 2), 0);
    gex_TM_t quarter = split(half, (int)(gex_TM_QueryRank(half) % 2), 0);
    int64_t all = 1, part = 1, min = 1;
    gex_Event_t event[3];

    for (int i = 0; i < 50; i++) {
        event[0] = gex_Coll_ReduceToAllNB(aq_test_tm, &all, &all, GEX_DT_I64, 8, 1, GEX_OP_ADD,
                                          NULL, NULL, 0);
        event[1] =
            gex_Coll_ReduceToAllNB(half, &part, &part, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
        event[2] = gex_Coll_ReduceToAllNB(quarter, &min, &min, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL,
                                          NULL, 0);
        gex_Event_WaitAll(event, 3, 0);
        AQ_CHECK_EQ(all, aq_test_n);
        AQ_CHECK_EQ(part, gex_TM_QuerySize(half));
        AQ_CHECK_EQ(min, gex_TM_QuerySize(quarter));
        all = part = min = 1;
    }
    gex_TM_Destroy(quarter, NULL, 0);
    gex_TM_Destroy(half, NULL, 0);
}

#if GASNET_PAR
enum { THREADS = 3 };
static gex_TM_t thread_tm[THREADS];
static struct buffers thread_buffers[THREADS];

static void *one_team(void *arg)
{
    const int number = (int)(uintptr_t)arg;

    for (int i = 0; i < (aq_test_quick ? 20 : 100); i++)
        check_team(thread_tm[number], &thread_buffers[number], i % 10 == 0 ? WORDS : 5,
                   (unsigned)i);
    return NULL;
}

static void check_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        thread_tm[i] = split(aq_test_tm, 0, 0);
    aq_test_threads(THREADS, one_team);
    for (int i = 0; i < THREADS; i++)
        gex_TM_Destroy(thread_tm[i], NULL, 0);
}
#endif

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    rule("extended 12.6, 20: collectives on a team without scratch, before attach");
    check_rounds(3);
    aq_test_segment(GASNET_PAGESIZE);
    rule("extended 12.6: every collective on split teams without scratch");
    check_kinds();
    rule("extended 12.1: teams of the same and of overlapping members, interleaved");
    check_many();
    check_nested();
    rule("extended 13.4: teams come and go");
    check_rounds(aq_test_quick ? 20 : 100);
#if GASNET_PAR
    rule("extended 12.1: different teams from different threads");
    check_threads();
#endif
    return aq_test_finish();
}
