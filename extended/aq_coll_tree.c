/*
 * aq_coll_tree.c - who sends to whom: trees over a team, in two levels where members share memory.
 *
 * Messages inside a neighborhood cost a fraction of those between hosts. So in a team that spans
 * several, one member of each, its first (the root in the root's own), speaks for it: one tree
 * joins these, and each is the root of a tree over its neighborhood. As many messages cross the
 * network as there are neighborhoods beyond the first, and none of them crosses it twice.
 *
 * Owns      team->levels, made with the team; NULL where one level is all there is
 * Threads   made by one; afterwards constant
 * Uses      extended/aq_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <stdlib.h>

#include "base/aq_log.h"

/* --- levels --- */

static gex_Rank_t aq_levels_nbrhd(const struct aq_coll_team *team, gex_Rank_t rank)
{
    return aq_job.nbrhd_of[aq_coll_jobrank(team, rank)];
}

static void *aq_levels_table(const struct aq_coll_team *team, size_t count, size_t size)
{
    void *table = calloc(count, size);

    if (table == NULL)
        aq_fatal("no memory for the neighborhoods of a team of %u members (%zu bytes)", team->size,
                 count * size);
    return table;
}

/* Number the neighborhoods that have members, by first appearance: group[] is 1 + that, 0 for those
 * without. Are all members of each one after the other? */
static gex_Rank_t aq_levels_number(const struct aq_coll_team *team, gex_Rank_t *group,
                                   bool *in_a_row_out)
{
    gex_Rank_t groups = 0, last = 0;

    *in_a_row_out = true;
    for (gex_Rank_t rank = 0; rank < team->size; rank++) {
        gex_Rank_t *own = &group[aq_levels_nbrhd(team, rank)];

        if (*own == 0)
            *own = ++groups;
        else if (*own != last)
            *in_a_row_out = false;
        last = *own;
    }
    return groups;
}

struct aq_coll_levels *aq_levels_make(const struct aq_coll_team *team)
{
    const gex_Rank_t nbrhd = aq_levels_nbrhd(team, team->rank);
    struct aq_coll_levels *levels;
    gex_Rank_t *group, groups, local = 0;
    bool in_a_row;

    if (aq_job.nbrhd_count == 1 || aq_job.nbrhd_count == aq_job.size || team->size < 3)
        return NULL;
    group = aq_levels_table(team, aq_job.nbrhd_count, sizeof(*group));
    groups = aq_levels_number(team, group, &in_a_row);
    if (groups == 1 || groups == team->size) {
        free(group);
        return NULL;
    }
    for (gex_Rank_t rank = 0; rank < team->size; rank++)
        local += aq_levels_nbrhd(team, rank) == nbrhd;
    levels = aq_levels_table(team, 1, sizeof(*levels) + (groups + local) * sizeof(gex_Rank_t));
    levels->in_a_row = in_a_row;
    levels->leaders =
        (struct aq_coll_ring){ .rank = levels->ranks, .size = groups, .me = group[nbrhd] - 1 };
    levels->local = (struct aq_coll_ring){ .rank = levels->ranks + groups };
    for (gex_Rank_t rank = team->size; rank-- > 0;) /* downwards: the first one stays */
        levels->ranks[group[aq_levels_nbrhd(team, rank)] - 1] = rank;
    for (gex_Rank_t rank = 0; rank < team->size; rank++)
        if (aq_levels_nbrhd(team, rank) == nbrhd) {
            if (rank == team->rank)
                levels->local.me = levels->local.size;
            levels->ranks[groups + levels->local.size++] = rank;
        }
    free(group);
    return levels;
}

/* The leader of each neighborhood of several reserves two areas and tells the others which; all
 * leaders agree whether every leader got some. */
static bool aq_levels_agree(struct aq_coll_team *team, uint32_t area[2])
{
    static const struct aq_op_kind kind = { .waits_in = "gex_TM_Create", .name = "gex_TM_Create" };
    const struct aq_coll_ring *local = &team->levels->local;
    struct aq_sched *sched = aq_sched_begin(team, 0, NULL); /* everywhere: numbers stay equal */
    int32_t got = area[1] != AQ_COLL_NO_AREA, all;
    const struct aq_coll_call call = { .kind = AQ_COLL_TO_ALL,
                                       .dst = &all,
                                       .src = &got,
                                       .unit = sizeof(got),
                                       .count = 1,
                                       .fn = aq_coll_builtin(GEX_DT_I32, GEX_OP_MIN) };

    for (gex_Rank_t i = 1; local->me == 0 && i < local->size; i++)
        aq_sched_send(sched, aq_ring_rank(local, i), AQ_TAG_DATA, area, 2 * sizeof(*area));
    if (local->me != 0)
        aq_sched_recv(sched, aq_ring_rank(local, 0), AQ_TAG_DATA, area, 2 * sizeof(*area));
    gex_Event_Wait(aq_sched_start(sched, &kind));
    gex_Event_Wait(aq_sched_start(aq_sched_of_call(team, &call), &kind));
    return all != 0;
}

static void aq_levels_reserve(const struct aq_coll_team *team, uint32_t area[2])
{
    area[0] = area[1] = 0;
    if (team->levels->local.size == 1 || team->levels->local.me != 0)
        return;
    area[0] = aq_job.local->coll->reserve();
    area[1] = area[0] == AQ_COLL_NO_AREA ? AQ_COLL_NO_AREA : aq_job.local->coll->reserve();
}

static void aq_levels_give_back(const struct aq_coll_team *team, const uint32_t area[2])
{
    if (team->levels->local.size == 1 || team->levels->local.me != 0)
        return;
    for (unsigned i = 0; i < 2; i++)
        if (area[i] != AQ_COLL_NO_AREA)
            aq_job.local->coll->give_back(area[i]);
}

void aq_levels_share(struct aq_coll_team *team)
{
    struct aq_coll_levels *levels = team->levels;
    uint32_t area[AQ_COLL_JOB_AREAS] = { 0, 1 };

    if (team->id != 0) {
        aq_levels_reserve(team, area);
        if (!aq_levels_agree(team, area)) {
            aq_levels_give_back(team, area);
            return;
        }
    }
    levels->shared = true;
    if (levels->local.size == 1)
        return;
    levels->up = aq_job.local->coll->make_local(team, area[0]);
    levels->down = aq_job.local->coll->make_local(team, area[1]);
}

void aq_levels_free(struct aq_coll_levels *levels)
{
    if (levels != NULL && levels->up != NULL) {
        aq_job.local->coll->free(levels->up);
        aq_job.local->coll->free(levels->down);
    }
    free(levels);
}

/* --- trees --- */

/* Some members, as seen from the one that is to be the root; it may stand in for another of them.
 * */
struct aq_tree_view {
    const struct aq_coll_ring *ring;
    gex_Rank_t first; /* place 0 */
    gex_Rank_t root;  /* the member there */
};

static gex_Rank_t aq_view_rank(const struct aq_tree_view *view, uint64_t vrank)
{
    const uint64_t at = (vrank + view->first) % view->ring->size;

    return vrank == 0 ? view->root : aq_ring_rank(view->ring, (gex_Rank_t)at);
}

/* The parent of a place is the place without its lowest bit; the farthest child comes first. */
static void aq_tree_add_binomial(struct aq_tree *tree, const struct aq_tree_view *view,
                                 uint64_t vrank)
{
    const uint64_t size = view->ring->size;
    uint64_t bit = 1;

    while (bit < size && (vrank & bit) == 0)
        bit *= 2;
    if (vrank != 0)
        tree->parent = aq_view_rank(view, vrank - bit);
    for (bit /= 2; bit > 0; bit /= 2)
        if (vrank + bit < size)
            tree->child[tree->children++] = aq_view_rank(view, vrank + bit);
}

static void aq_tree_add_binary(struct aq_tree *tree, const struct aq_tree_view *view,
                               uint64_t vrank)
{
    if (vrank != 0)
        tree->parent = aq_view_rank(view, (vrank - 1) / 2);
    for (uint64_t child = 2 * vrank + 1; child <= 2 * vrank + 2 && child < view->ring->size;
         child++)
        tree->child[tree->children++] = aq_view_rank(view, child);
}

/* This member's part of a tree over a ring, the one at place `first` of it, or who stands for it,
 * at the root. */
static void aq_tree_add(struct aq_tree *tree, enum aq_tree_shape shape,
                        const struct aq_coll_ring *ring, gex_Rank_t first, gex_Rank_t root)
{
    const struct aq_tree_view view = { ring, first, root };
    const uint64_t vrank = ((uint64_t)ring->me + ring->size - first) % ring->size;

    if (shape == AQ_TREE_BINARY)
        aq_tree_add_binary(tree, &view, vrank);
    else
        aq_tree_add_binomial(tree, &view, vrank);
}

void aq_tree_local(struct aq_tree *tree, const struct aq_coll_team *team)
{
    *tree = (struct aq_tree){ .parent = GEX_RANK_INVALID };
    aq_tree_add(tree, AQ_TREE_BINOMIAL, &team->levels->local, 0,
                aq_ring_rank(&team->levels->local, 0));
}

void aq_tree_ring(struct aq_tree *tree, enum aq_tree_shape shape, const struct aq_coll_ring *ring,
                  gex_Rank_t root)
{
    *tree = (struct aq_tree){ .parent = GEX_RANK_INVALID };
    aq_tree_add(tree, shape, ring, root, aq_ring_rank(ring, root));
}

gex_Rank_t aq_ring_find(const struct aq_coll_ring *ring, gex_Rank_t rank)
{
    gex_Rank_t at = 0;

    while (at < ring->size && aq_ring_rank(ring, at) != rank)
        at++;
    return at;
}

gex_Rank_t aq_levels_group(const struct aq_coll_team *team, gex_Rank_t rank)
{
    const struct aq_coll_ring *leaders = &team->levels->leaders;
    const gex_Rank_t nbrhd = aq_levels_nbrhd(team, rank);
    gex_Rank_t group = 0;

    while (aq_levels_nbrhd(team, aq_ring_rank(leaders, group)) != nbrhd)
        group++;
    return group;
}

void aq_tree_make(struct aq_tree *tree, enum aq_tree_shape shape, const struct aq_coll_team *team,
                  const struct aq_coll_levels *levels, gex_Rank_t root)
{
    const struct aq_coll_ring all = { .size = team->size, .me = team->rank };
    gex_Rank_t group, leader;

    *tree = (struct aq_tree){ .parent = GEX_RANK_INVALID };
    if (levels == NULL) {
        aq_tree_add(tree, shape, &all, root, root);
        return;
    }
    group = aq_levels_group(team, root);
    leader = levels->leaders.me == group ? aq_ring_find(&levels->local, root) : 0;
    /* those far away first: they have the longer way */
    if (levels->local.me == leader)
        aq_tree_add(tree, shape, &levels->leaders, group, root);
    aq_tree_add(tree, shape, &levels->local, leader, aq_ring_rank(&levels->local, leader));
}
