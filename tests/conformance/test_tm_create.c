/*
 * test_tm_create.c - gex_TM_Create: every scratch layout, both meanings of ranks, any order,
 * callers that make nothing, disjoint teams in one call, teams of sub-teams, queries.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_teams.h"

#define SCRATCH 512

static char *scratch_of(gex_Rank_t r)
{
    return (char *)aq_test_base(r) + aq_teams_bytes();
}

/* Make a team of these jobranks through parent, in the caller's order. */
static gex_TM_t create(gex_TM_t parent, const gex_Rank_t *members, gex_Rank_t n, gex_Addr_t *addrs,
                       size_t bytes, gex_Flags_t flags)
{
    gex_EP_Location_t args[1024];
    gex_TM_t tm = GEX_TM_INVALID;
    gex_Rank_t i;

    memset(args, 0, sizeof(args));
    for (i = 0; i < n; i++)
        args[i].gex_rank = flags & GEX_FLAG_RANK_IS_JOBRANK
                               ? members[i]
                               : gex_TM_TranslateJobrankToRank(parent, members[i]);
    gex_TM_Create(&tm, 1, parent, args, n, addrs, bytes, flags);
    AQ_CHECK(tm != GEX_TM_INVALID);
    return tm;
}

/* Members every `stride` ranks from my residue on, descending if asked. */
static gex_Rank_t residue(gex_Rank_t stride, bool descending, gex_Rank_t *members)
{
    gex_Rank_t n = 0, r, swap;

    for (r = aq_test_me % stride; r < aq_test_n; r += stride)
        members[n++] = r;
    for (r = 0; descending && r < n / 2; r++) {
        swap = members[r];
        members[r] = members[n - 1 - r];
        members[n - 1 - r] = swap;
    }
    return n;
}

static void check_layout(gex_Flags_t layout)
{
    const gex_Flags_t ranks[] = { 0, GEX_FLAG_RANK_IS_JOBRANK };
    gex_Addr_t addrs[1024];
    gex_Rank_t members[1024], n, r;
    gex_Memvec_t got = { NULL, 0 };
    gex_TM_t tm;
    void *ours;
    int i;

    for (i = 0; i < 2; i++) {
        /* segments of processes are not at the same address: teams of one where it has to be */
        n = residue(layout == GEX_FLAG_TM_SYMMETRIC_SCRATCH ? aq_test_n : 3, i == 1, members);
        ours = scratch_of(aq_test_me) + 64 * i;
        addrs[0] = ours;
        if (layout == GEX_FLAG_TM_GLOBAL_SCRATCH)
            for (r = 0; r < n; r++)
                addrs[r] = scratch_of(members[r]) + 64 * i;
        tm = create(aq_test_tm, members, n, layout == GEX_FLAG_TM_NO_SCRATCH ? NULL : addrs,
                    SCRATCH, layout | ranks[i]);
        memset(addrs, 0, sizeof(addrs)); /* the list was the caller's */
        AQ_CHECK_EQ(gex_TM_QueryFlags(tm), layout | ranks[i]);
        aq_teams_check(tm, members, n);
        if (layout == GEX_FLAG_TM_NO_SCRATCH) {
            AQ_CHECK_EQ(gex_TM_Destroy(tm, &got, 0), 0);
            AQ_CHECK(got.gex_addr == NULL && got.gex_len == 0);
        } else {
            AQ_CHECK(gex_TM_Destroy(tm, &got, 0) != 0);
            AQ_CHECK(got.gex_addr == ours && got.gex_len == SCRATCH);
        }
    }
}

/* Only even ranks make a team; odd ones pass nothing. */
static void check_absent(void)
{
    gex_Rank_t members[1024], n;
    gex_TM_t tm = (gex_TM_t)(void *)members;

    rule("core 15.3: numargs 0 takes part and makes nothing; nothing else is looked at");
    n = residue(2, false, members);
    if (aq_test_me % 2) {
        gex_TM_Create(&tm, 99, aq_test_tm, NULL, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        AQ_CHECK(tm == (gex_TM_t)(void *)members);
        gex_TM_Create(NULL, 0, aq_test_tm, NULL, 0, NULL, 0, GEX_FLAG_TM_LOCAL_SCRATCH);
    } else {
        tm = create(aq_test_tm, members, n, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        aq_teams_check(tm, members, n);
        gex_TM_Destroy(tm, NULL, 0);
        gex_Addr_t ours = scratch_of(aq_test_me);
        tm = create(aq_test_tm, members, n, &ours, 1, GEX_FLAG_TM_LOCAL_SCRATCH);
        aq_teams_check(tm, members, n);
        gex_TM_Destroy(tm, NULL, 0);
    }
}

static void check_sub(void)
{
    gex_Rank_t half[1024] = { 0 }, members[1024] = { 0 }, n, m, i;
    gex_TM_t parent, tm;

    rule("core 15.3: ranks are the parent's, or jobranks, in a parent that is a part of the job");
    n = residue(2, true, half);
    parent = create(aq_test_tm, half, n, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    aq_teams_check(parent, half, n);
    for (m = 0, i = n; i-- > 0;)
        members[m++] = half[i];
    tm = create(parent, members, m, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    aq_teams_check(tm, members, m);
    gex_TM_Destroy(tm, NULL, 0);
    tm = create(parent, members, m, NULL, 0, GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    gex_TM_Destroy(parent, NULL, 0);
    rule("core 15.4: a team outlives the team it was made of");
    aq_teams_check(tm, members, m);
    gex_TM_Destroy(tm, NULL, 0);
}

/* The barrier of LOCAL_SCRATCH: nobody returns before all have called. */
static void check_barrier(void)
{
    gex_Rank_t members[1024];
    gex_Addr_t ours = scratch_of(aq_test_me);
    uint64_t *word = (uint64_t *)aq_test_base(aq_test_me);
    gex_TM_t tm;
    gex_Rank_t n, r;
    int round;

    rule("core 15.3: with LOCAL_SCRATCH there is a barrier over each new team");
    n = residue(1, false, members);
    for (round = 1; round <= 10; round++) {
        __atomic_store_n(word, (uint64_t)round, __ATOMIC_RELEASE);
        tm = create(aq_test_tm, members, n, &ours, SCRATCH, GEX_FLAG_TM_LOCAL_SCRATCH);
        for (r = 0; r < n; r++)
            AQ_CHECK(gex_RMA_GetBlockingVal(tm, r, aq_test_base(r), 8, 0) >= (uint64_t)round);
        gex_TM_Destroy(tm, NULL, 0);
    }
}

static void check_queries(void)
{
    const gex_Flags_t extra[] = { 0, GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_RANK_IS_JOBRANK,
                                  GEX_FLAG_TM_LOCAL_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK };
    gex_EP_Location_t arg;
    gex_Flags_t flags;
    size_t i;

    memset(&arg, 0, sizeof(arg));
    arg.gex_rank = aq_test_me;
    for (i = 0; i < AQ_LENGTH(extra); i++) {
        flags = GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED | extra[i];
        AQ_CHECK(gex_TM_Create(NULL, 1, aq_test_tm, &arg, 1, NULL, 0, flags) > 0);
        AQ_CHECK(gex_TM_Create(NULL, 1, aq_test_tm, NULL, aq_test_n, NULL, 0, flags) > 0);
        AQ_CHECK_EQ(gex_TM_Create(NULL, 0, aq_test_tm, NULL, 0, NULL, 0, flags), 0);
    }
    AQ_CHECK(gex_TM_Create(NULL, 1, aq_test_tm, NULL, 1, NULL, 0, GEX_FLAG_TM_SCRATCH_SIZE_MIN)
             > 0);
}

int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    rule("ext 13.3: the query form needs no args, no layout flag and no segment");
    check_queries();
    aq_test_handlers(aq_teams_table, AQ_LENGTH(aq_teams_table));
    aq_test_segment(aq_teams_bytes() + SCRATCH + 4096);
    rule("core 15.3: NO_SCRATCH; the caller may use its lists again at once");
    check_layout(GEX_FLAG_TM_NO_SCRATCH);
    rule("core 15.3: LOCAL_SCRATCH, one address for this process's member");
    check_layout(GEX_FLAG_TM_LOCAL_SCRATCH);
    rule("core 15.3: GLOBAL_SCRATCH, an address for each member");
    check_layout(GEX_FLAG_TM_GLOBAL_SCRATCH);
    rule("core 15.3: SYMMETRIC_SCRATCH, one address");
    check_layout(GEX_FLAG_TM_SYMMETRIC_SCRATCH);
    check_absent();
    check_sub();
    check_barrier();
    return aq_test_finish();
}
