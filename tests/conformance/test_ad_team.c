/*
 * test_ad_team.c - atomic domains on teams: target ranks are ranks in the team, or jobranks with
 * GEX_FLAG_RANK_IS_JOBRANK; domains of teams with equal and overlapping members; a team of one.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Remote atomics; Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_ad_ops.h"
#include "aq_test.h"

enum { PARTS = 3 }; /* words in everybody's segment for each team and each jobrank */

/* The word of a member that a jobrank adds to, by team. */
static int64_t *word(gex_Rank_t owner, gex_Rank_t from, unsigned team)
{
    return (int64_t *)aq_test_base(owner) + (size_t)team * PARTS * aq_test_n + (size_t)PARTS * from;
}

static void add(gex_AD_t ad, gex_Rank_t to, int64_t *at, gex_OP_t op, gex_Flags_t flags)
{
    int64_t old;

    gex_Event_Wait(gex_AD_OpNB_I64(ad, &old, to, at, op, 1, 0, flags));
}

/* Every member adds to every member, by both kinds of rank and in both ways of completion. */
static void add_to_all(gex_AD_t ad, gex_TM_t tm, unsigned team)
{
    gex_Rank_t rank;

    for (rank = 0; rank < gex_TM_QuerySize(tm); rank++) {
        const gex_Rank_t jobrank = gex_TM_TranslateRankToJobrank(tm, rank);
        const gex_Flags_t own = jobrank == aq_test_me ? GEX_FLAG_AD_MY_RANK : 0;
        int64_t *at = word(jobrank, aq_test_me, team);

        add(ad, rank, at, GEX_OP_FADD, own);
        add(ad, jobrank, at, GEX_OP_FADD, own | GEX_FLAG_RANK_IS_JOBRANK);
        add(ad, rank, at + 1, GEX_OP_INC, GEX_FLAG_AD_ACQ);
        add(ad, jobrank, at + 1, GEX_OP_ADD, GEX_FLAG_RANK_IS_JOBRANK | GEX_FLAG_AD_REL);
        gex_AD_OpNBI_I64(ad, NULL, rank, at + 2, GEX_OP_INC, 0, 0, 0);
        gex_AD_OpNBI_I64(ad, NULL, jobrank, at + 2, GEX_OP_INC, 0, 0, GEX_FLAG_RANK_IS_JOBRANK);
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
}

/* This rank's words received two from each member and nothing from other ranks. */
static void check_own(gex_TM_t tm, unsigned team)
{
    gex_Rank_t jobrank;
    int i;

    for (jobrank = 0; jobrank < aq_test_n; jobrank++) {
        const bool is_member = gex_TM_TranslateJobrankToRank(tm, jobrank) != GEX_RANK_INVALID;

        for (i = 0; i < PARTS; i++)
            AQ_CHECK_EQ(word(aq_test_me, jobrank, team)[i], is_member ? 2 : 0);
    }
}

static void check_team(gex_TM_t tm, unsigned team)
{
    gex_AD_t ad;

    gex_AD_Create(&ad, tm, GEX_DT_I64, GEX_OP_FADD | GEX_OP_ADD | GEX_OP_INC, 0);
    AQ_CHECK(gex_AD_QueryTM(ad) == tm);
    add_to_all(ad, tm, team);
    aq_test_barrier();
    check_own(tm, team);
    aq_test_barrier();
    gex_AD_Destroy(ad);
}

/* Domains of two teams at once: the same rank means another process in each. */
static void check_both(gex_TM_t one, gex_TM_t other, unsigned team)
{
    gex_AD_t ads[2];

    gex_AD_Create(&ads[0], one, GEX_DT_I64, GEX_OP_FADD | GEX_OP_ADD | GEX_OP_INC, 0);
    gex_AD_Create(&ads[1], other, GEX_DT_I64, GEX_OP_FADD | GEX_OP_ADD | GEX_OP_INC, 0);
    add_to_all(ads[1], other, team + 1);
    add_to_all(ads[0], one, team);
    aq_test_barrier();
    check_own(one, team);
    check_own(other, team + 1);
    aq_test_barrier();
    gex_AD_Destroy(ads[0]);
    gex_AD_Destroy(ads[1]);
}

int main(int argc, char **argv)
{
    gex_TM_t backwards, halves, alone;
    int round, rounds = 8;

    aq_test_start(&argc, &argv, 1);
    /* made before segments are attached: what is mapped becomes known to them later */
    gex_TM_Split(&halves, aq_test_tm, (int)(aq_test_me % 2), -(int)aq_test_me, NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    aq_test_segment((size_t)aq_test_n * PARTS * sizeof(int64_t) * 16);
    gex_TM_Split(&backwards, aq_test_tm, 0, -(int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&alone, aq_test_tm, (int)aq_test_me, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);

    rule("extended 9.3: target ranks are ranks in the domain's team, or jobranks if flagged so");
    check_team(aq_test_tm, 0);
    check_team(backwards, 1);
    check_team(halves, 2);
    check_team(alone, 3);
    rule("extended 9.3: domains of overlapping teams do not mix up their ranks");
    check_both(halves, backwards, 4);
    check_both(backwards, aq_test_tm, 6);
    rule("extended 9.2: domains are destroyed before their team; teams and domains come and go");
    for (round = 0; round < rounds; round++) {
        gex_TM_t tm;
        gex_AD_t ad;

        gex_TM_Split(&tm, halves, round % 2, (int)aq_test_me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        gex_AD_Create(&ad, tm, GEX_DT_I64, GEX_OP_INC, 0);
        add(ad, gex_TM_QueryRank(tm), word(aq_test_me, aq_test_me, 8), GEX_OP_INC, 0);
        AQ_CHECK_EQ(*word(aq_test_me, aq_test_me, 8), round + 1);
        gex_AD_Destroy(ad);
        gex_TM_Destroy(tm, NULL, 0);
    }
    aq_test_barrier();
    gex_TM_Destroy(alone, NULL, 0);
    gex_TM_Destroy(backwards, NULL, 0);
    gex_TM_Destroy(halves, NULL, 0);
    return aq_test_finish();
}
