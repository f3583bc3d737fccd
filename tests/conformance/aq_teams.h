/*
 * aq_teams.h - what the programs about teams share: a team is what its list of jobranks says.
 *
 * aq_teams_check() compares every query and both translations with the list, then sends a message
 * to, puts to and gets from every member by its rank in the team. All members call it.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TEAMS_H
#define AQ_TEAMS_H

#include "aq_test.h"

enum { AQ_TEAMS_H_HIT = AQ_TEST_FREE, AQ_TEAMS_H_LONG, AQ_TEAMS_H_ACK, AQ_TEAMS_FREE };

#define AQ_TEAMS_SLOT 64 /* bytes in everybody's segment for each rank of the job, twice */

static aq_test_count_t aq_teams_acks;

/* A request carries the jobrank it is meant for. */
static void aq_teams_h_hit(gex_Token_t token, gex_AM_Arg_t from, gex_AM_Arg_t to)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    AQ_CHECK_EQ(info.gex_srcrank, from); /* a jobrank, whatever the team */
    AQ_CHECK_EQ(to, aq_test_me);
    gex_AM_ReplyShort0(token, AQ_TEAMS_H_ACK, 0);
}

static void aq_teams_h_long(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t from,
                            gex_AM_Arg_t to)
{
    AQ_CHECK(aq_test_same(buf, nbytes, 1000u * (uint64_t)from + (uint64_t)to));
    aq_teams_h_hit(token, from, to);
}

static void aq_teams_h_ack(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&aq_teams_acks, 1);
}

static gex_AM_Entry_t aq_teams_table[] = {
    AQ_ENTRY(AQ_TEAMS_H_HIT, aq_teams_h_hit, AQ_SQ, 2),
    AQ_ENTRY(AQ_TEAMS_H_LONG, aq_teams_h_long, AQ_LQ, 2),
    AQ_ENTRY(AQ_TEAMS_H_ACK, aq_teams_h_ack, AQ_SP, 0),
};

/* Bytes of segment that aq_teams_check() uses, from the base on. */
static inline size_t aq_teams_bytes(void)
{
    return 2 * AQ_TEAMS_SLOT * (size_t)aq_test_n;
}

/* My place in everybody's segment. */
static inline char *aq_teams_slot(gex_Rank_t owner, int which)
{
    return (char *)aq_test_base(owner) + AQ_TEAMS_SLOT * (2 * (size_t)aq_test_me + (size_t)which);
}

static inline void aq_teams_check_queries(gex_TM_t tm, const gex_Rank_t *members, gex_Rank_t n)
{
    gex_Rank_t r, found;
    gex_EP_Location_t where;

    AQ_CHECK(tm != GEX_TM_INVALID && tm != aq_test_tm && tm != gex_TM_Pair(aq_test_ep, 0));
    AQ_CHECK_EQ(gex_TM_QuerySize(tm), n);
    AQ_CHECK(gex_TM_QueryEP(tm) == aq_test_ep);
    AQ_CHECK(gex_TM_QueryClient(tm) == aq_test_client);
    AQ_CHECK_EQ(members[gex_TM_QueryRank(tm)], aq_test_me);
    for (r = 0; r < n; r++) {
        AQ_CHECK_EQ(gex_TM_TranslateRankToJobrank(tm, r), members[r]);
        AQ_CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, members[r]), r);
        where = gex_TM_TranslateRankToEP(tm, r, 0);
        AQ_CHECK_EQ(where.gex_rank, members[r]);
        AQ_CHECK_EQ(where.gex_ep_index, 0);
    }
    for (r = 0; r < aq_test_n; r++) {
        for (found = 0; found < n && members[found] != r; found++)
            ;
        AQ_CHECK_EQ(gex_TM_TranslateJobrankToRank(tm, r), found < n ? found : GEX_RANK_INVALID);
    }
}

static inline void aq_teams_check_messages(gex_TM_t tm, const gex_Rank_t *members, gex_Rank_t n)
{
    const int before = atomic_load(&aq_teams_acks);
    gex_Rank_t r;

    for (r = 0; r < n; r++)
        gex_AM_RequestShort2(tm, r, AQ_TEAMS_H_HIT, 0, aq_test_me, members[r]);
    aq_test_wait(&aq_teams_acks, before + (int)n);
}

/* Needs segments. */
static inline void aq_teams_check_memory(gex_TM_t tm, const gex_Rank_t *members, gex_Rank_t n)
{
    const int before = atomic_load(&aq_teams_acks);
    char out[AQ_TEAMS_SLOT], back[AQ_TEAMS_SLOT];
    void *owner, *local;
    uintptr_t size;
    gex_Rank_t r;

    for (r = 0; r < n; r++) {
        const uint64_t seed = 1000u * (uint64_t)aq_test_me + members[r];

        AQ_CHECK_EQ(gex_Segment_QueryBound(tm, r, &owner, &local, &size), 0);
#if defined(GASNET_SEGMENT_EVERYTHING)
        AQ_CHECK(owner == NULL && size == UINTPTR_MAX);
#else
        AQ_CHECK(owner == aq_test_base(members[r]));
#endif
        aq_test_fill(out, sizeof(out), seed);
        AQ_CHECK_EQ(gex_RMA_PutBlocking(tm, r, aq_teams_slot(members[r], 0), out, sizeof(out), 0),
                    0);
        gex_RMA_PutNBIVal(tm, r, aq_teams_slot(members[r], 0) + 3, seed, 2, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        memcpy(out + 3, &seed, 2);
        memset(back, 0, sizeof(back));
        /* what went through the team is read through the job, and the other way round */
        gex_RMA_GetBlocking(aq_test_tm, back, members[r], aq_teams_slot(members[r], 0),
                            sizeof(back), 0);
        AQ_CHECK(memcmp(out, back, sizeof(out)) == 0);
        memset(back, 0, sizeof(back));
        gex_RMA_GetBlocking(tm, back, r, aq_teams_slot(members[r], 0), sizeof(back), 0);
        AQ_CHECK(memcmp(out, back, sizeof(out)) == 0);
        aq_test_fill(out, sizeof(out), seed);
        gex_AM_RequestLong2(tm, r, AQ_TEAMS_H_LONG, out, sizeof(out), aq_teams_slot(members[r], 1),
                            GEX_EVENT_NOW, 0, aq_test_me, members[r]);
    }
    aq_test_wait(&aq_teams_acks, before + (int)n);
}

static inline void aq_teams_check(gex_TM_t tm, const gex_Rank_t *members, gex_Rank_t n)
{
    aq_teams_check_queries(tm, members, n);
    aq_teams_check_messages(tm, members, n);
    aq_teams_check_memory(tm, members, n);
}

#endif
