/*
 * test_tm_split.c - gex_TM_Split: every shape, order by key and then by parent rank, callers that
 * join nothing, queries, splits before and after attach, splits of splits, teams that overlap.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Teams.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_teams.h"

/* What a rank asks for. */
struct pref {
    int color, key;
    bool joins;
};

/* A shape says what each rank of the job asks for. */
typedef struct pref (*shape_fn)(gex_Rank_t r);

static uint64_t shape_seed;

static struct pref all_one(gex_Rank_t r)
{
    return (struct pref){ 0, (int)r, true };
}
static struct pref odd_even(gex_Rank_t r)
{
    return (struct pref){ (int)(r % 2), (int)r, true };
}
static struct pref alone(gex_Rank_t r)
{
    return (struct pref){ (int)r, 5, true };
}
static struct pref reversed(gex_Rank_t r)
{
    return (struct pref){ 3, -(int)r, true };
}
static struct pref equal_keys(gex_Rank_t r)
{
    return (struct pref){ (int)(r % 3), 7, true };
}
static struct pref sparse(gex_Rank_t r)
{
    return (struct pref){ r % 2 ? 1 << 30 : 2, r % 3 ? (int)(r * 1000003u % 97u) - 50 : INT32_MIN,
                          true };
}
static struct pref halves_of_keys(gex_Rank_t r)
{
    return (struct pref){ 0, r % 2 ? 1 : -1, true };
}
static struct pref some_stay_out(gex_Rank_t r)
{
    return (struct pref){ 1, (int)r, r % 3 != 1 };
}
static struct pref only_last(gex_Rank_t r)
{
    return (struct pref){ 0, 0, r == aq_test_n - 1 };
}
static struct pref nobody(gex_Rank_t r)
{
    return (struct pref){ -7, (int)r, false };
}
static struct pref negative_colors(gex_Rank_t r)
{
    return (struct pref){ r % 2 ? -1 : INT32_MIN, INT32_MAX - (int)r, true };
}
static struct pref at_random(gex_Rank_t r)
{
    uint64_t state = shape_seed * 1000 + r;
    const uint64_t a = aq_test_random(&state), b = aq_test_random(&state),
                   c = aq_test_random(&state);

    return (struct pref){ (int)(a % 3), (int)(b % 4) - 2, c % 8 != 0 };
}

/* Who is in my team, by the rule: increasing key, then rank among `from`. */
static gex_Rank_t expect(shape_fn shape, const gex_Rank_t *from, gex_Rank_t n, gex_Rank_t *members)
{
    gex_Rank_t count = 0, i, at;

    for (i = 0; i < n; i++) {
        const struct pref pref = shape(from[i]);

        if (!pref.joins || pref.color != shape(aq_test_me).color)
            continue;
        for (at = count; at > 0 && shape(members[at - 1]).key > pref.key; at--)
            members[at] = members[at - 1];
        members[at] = from[i];
        count++;
    }
    return count;
}

/* Split parent, whose members are from[n]; returns the new team, or INVALID. */
static gex_TM_t split(gex_TM_t parent, const gex_Rank_t *from, gex_Rank_t n, shape_fn shape,
                      gex_Rank_t *members, gex_Rank_t *count_out, bool use)
{
    const struct pref pref = shape(aq_test_me);
    gex_TM_t tm = GEX_TM_INVALID;

    gex_TM_Split(pref.joins ? &tm : NULL, parent, pref.color, pref.key, NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    AQ_CHECK_EQ(tm != GEX_TM_INVALID, pref.joins);
    *count_out = 0;
    if (!pref.joins)
        return GEX_TM_INVALID;
    *count_out = expect(shape, from, n, members);
    if (use)
        aq_teams_check(tm, members, *count_out);
    return tm;
}

static const struct {
    const char *rule;
    shape_fn shape;
} shapes[] = {
    { "core 15.2: one color: one team of all", all_one },
    { "core 15.2: odd and even ranks", odd_even },
    { "core 15.2: a color each: teams of one", alone },
    { "core 15.2: decreasing keys reverse the order; keys may be negative", reversed },
    { "core 15.2: equal keys keep the parent's order", equal_keys },
    { "core 15.2: colors and keys may be sparse and extreme", sparse },
    { "core 15.2: ties inside two groups of keys are broken by parent rank", halves_of_keys },
    { "core 15.2: callers with a NULL output take part and join nothing", some_stay_out },
    { "core 15.2: a team of the last rank only", only_last },
    { "core 15.2: nobody joins", nobody },
    { "ext 13.2: a color is an opaque int", negative_colors },
};

static gex_Rank_t world[1024];

static void check_shapes(void)
{
    gex_Rank_t members[1024], n;
    gex_TM_t tm;
    size_t i;

    for (i = 0; i < AQ_LENGTH(shapes); i++) {
        rule(shapes[i].rule);
        tm = split(aq_test_tm, world, aq_test_n, shapes[i].shape, members, &n, true);
        if (tm != GEX_TM_INVALID)
            AQ_CHECK_EQ(gex_TM_Destroy(tm, NULL, 0), 0);
    }
    rule("core 15.2: random colors, keys and absences give what the rule says");
    for (shape_seed = 1; shape_seed <= (aq_test_quick ? 10u : 40u); shape_seed++) {
        tm = split(aq_test_tm, world, aq_test_n, at_random, members, &n, true);
        if (shape_seed % 2)
            aq_test_barrier();
        if (tm != GEX_TM_INVALID)
            gex_TM_Destroy(tm, NULL, shape_seed % 2 ? GEX_FLAG_GLOBALLY_QUIESCED : 0);
    }
}

static void check_nested(void)
{
    gex_Rank_t first[1024], second[1024], third[1024], n1, n2, n3;
    gex_TM_t a, b, c = GEX_TM_INVALID;

    rule("core 15.2: a team can be split, and what comes of that; members are named by jobrank");
    a = split(aq_test_tm, world, aq_test_n, reversed, first, &n1, true);
    b = split(a, first, n1, odd_even, second, &n2, true);
    c = split(b, second, n2, equal_keys, third, &n3, true);
    rule("core 15: teams that overlap are used side by side, and end in any order");
    aq_teams_check(a, first, n1);
    aq_teams_check(b, second, n2);
    gex_TM_Destroy(a, NULL, 0);
    aq_teams_check(c, third, n3);
    aq_teams_check(b, second, n2);
    gex_TM_Destroy(c, NULL, 0);
    gex_TM_Destroy(b, NULL, 0);
}

static void check_queries(void)
{
    const gex_Flags_t asks[] = { GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED,
                                 GEX_FLAG_TM_SCRATCH_SIZE_MIN };
    gex_TM_t tm = (gex_TM_t)(void *)&asks;
    size_t bytes, i;

    for (i = 0; i < AQ_LENGTH(asks); i++) {
        bytes = gex_TM_Split(&tm, aq_test_tm, 0, 0, NULL, 0, asks[i]);
        AQ_CHECK(bytes > 0 && bytes <= (2u << 20));
        AQ_CHECK(gex_TM_Split(&tm, aq_test_tm, (int)aq_test_me, 0, NULL, 0, asks[i]) > 0);
        AQ_CHECK_EQ(gex_TM_Split(NULL, aq_test_tm, -1, 0, NULL, 0, asks[i]), 0);
        bytes = gex_TM_Split(aq_test_me % 2 ? &tm : NULL, aq_test_tm, 1, 0, NULL, 0, asks[i]);
        AQ_CHECK_EQ(bytes > 0, aq_test_me % 2);
    }
    AQ_CHECK(tm == (gex_TM_t)(void *)&asks);
}

static void check_scratch(void)
{
    char *scratch = (char *)aq_test_base(aq_test_me) + aq_teams_bytes();
    gex_Memvec_t got = { &got, 77 };
    gex_TM_t tm = GEX_TM_INVALID;

    rule("core 15.2: scratch of any size but 0 is taken; NO_SCRATCH is each new team's own choice");
    if (aq_test_me % 2)
        gex_TM_Split(&tm, aq_test_tm, 1, (int)aq_test_me, scratch + 16 * aq_test_me, 24, 0);
    else
        gex_TM_Split(&tm, aq_test_tm, 0, (int)aq_test_me, scratch, 24, GEX_FLAG_TM_NO_SCRATCH);
    AQ_CHECK_EQ(gex_TM_QueryFlags(tm), aq_test_me % 2 ? 0 : GEX_FLAG_TM_NO_SCRATCH);
    rule("core 15.4: Destroy gives back scratch as it was passed, and says so only then");
    if (aq_test_me % 4 == 3) {
        AQ_CHECK_EQ(gex_TM_Destroy(tm, NULL, 0), 0);
    } else if (aq_test_me % 2) {
        AQ_CHECK(gex_TM_Destroy(tm, &got, 0) != 0);
        AQ_CHECK(got.gex_addr == scratch + 16 * aq_test_me && got.gex_len == 24);
    } else {
        AQ_CHECK_EQ(gex_TM_Destroy(tm, &got, 0), 0);
        AQ_CHECK(got.gex_addr == (void *)&got && got.gex_len == 77);
    }
}

int main(int argc, char **argv)
{
    gex_Rank_t members[1024], n, r;
    gex_TM_t early;
    int mark;

    aq_test_start(&argc, &argv, 1);
    for (r = 0; r < aq_test_n; r++)
        world[r] = r;
    rule("core 15.2: the query form makes nothing, returns a modest size or 0; before attach, too");
    check_queries();
    aq_test_handlers(aq_teams_table, AQ_LENGTH(aq_teams_table));
    rule("core 15: a team can be made and used for messages before there are segments");
    early = split(aq_test_tm, world, aq_test_n, equal_keys, members, &n, false);
    aq_teams_check_queries(early, members, n);
    aq_teams_check_messages(early, members, n);
    aq_test_segment(aq_teams_bytes() + 16 * (size_t)aq_test_n + 4096);
    rule("core 15: such a team reaches the segments when they have come");
    aq_teams_check(early, members, n);
    rule("core 15.1: client data is NULL at first, and the team's own");
    AQ_CHECK(gex_TM_QueryCData(early) == NULL);
    gex_TM_SetCData(early, &mark);
    AQ_CHECK(gex_TM_QueryCData(early) == &mark && gex_TM_QueryCData(aq_test_tm) != &mark);
    check_shapes();
    check_nested();
    check_scratch();
    rule("core 15.2: the query form, with segments");
    check_queries();
    aq_teams_check(early, members, n);
    gex_TM_Destroy(early, NULL, 0);
    return aq_test_finish();
}
