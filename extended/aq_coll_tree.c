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

/* Index of a member in a ring; the ring's size if it is not in it. */
static gex_Rank_t aq_ring_find(const struct aq_coll_ring *ring, gex_Rank_t rank)
{
    gex_Rank_t at = 0;

    while (at < ring->size && aq_ring_rank(ring, at) != rank)
        at++;
    return at;
}

/* The number of the neighborhood that a member is in. */
static gex_Rank_t aq_levels_group(const struct aq_coll_team *team, gex_Rank_t rank)
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
