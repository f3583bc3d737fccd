/*
 * aq_coll_bcast.c - programs that move data: broadcast and barrier by messages.
 *
 * Barrier: dissemination; in round r member i tells i + 2^r and hears from i - 2^r. Broadcast:
 * a binomial tree, which has the fewest hops; large data go in chunks down a binary tree, where
 * nobody sends more than twice and a chunk is handed on while the next one comes in.
 *
 * Threads   the caller's. Uses aq_coll_msg.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#define AQ_CHUNK 65536u  /* bytes: the least in a chunk */
#define AQ_CHUNKS 128u   /* the most in a broadcast */
#define AQ_PIPELINED 4u  /* from so many chunks on a pipeline is worth its depth */

void aq_prog_add_barrier(struct aq_prog *prog, const struct aq_coll_team *team, uint32_t tag)
{
    const uint64_t size = team->size;
    uint32_t round = 0;

    for (uint64_t step = 1; step < size; step *= 2, round++) {
        aq_prog_send(prog, (gex_Rank_t)((team->rank + step) % size), tag + round, NULL, 0);
        aq_prog_recv(prog, (gex_Rank_t)((team->rank + size - step) % size), tag + round, NULL, 0);
    }
}

/* --- broadcast trees; members are numbered from the root on --- */

struct aq_tree {
    gex_Rank_t parent;      /* GEX_RANK_INVALID at the root */
    gex_Rank_t child[32];
    unsigned children;
};

static gex_Rank_t aq_tree_rank(const struct aq_coll_team *team, gex_Rank_t root, uint64_t place)
{
    return (gex_Rank_t)((place + root) % team->size);
}

static void aq_tree_binary(struct aq_tree *tree, const struct aq_coll_team *team, gex_Rank_t root,
                           uint64_t place)
{
    tree->parent = place == 0 ? GEX_RANK_INVALID : aq_tree_rank(team, root, (place - 1) / 2);
    tree->children = 0;
    for (uint64_t child = 2 * place + 1; child <= 2 * place + 2 && child < team->size; child++)
        tree->child[tree->children++] = aq_tree_rank(team, root, child);
}

/* The parent of a place is the place without its lowest bit; the farthest child comes first. */
static void aq_tree_binomial(struct aq_tree *tree, const struct aq_coll_team *team, gex_Rank_t root,
                             uint64_t place)
{
    uint64_t bit = 1;

    while (bit < team->size && (place & bit) == 0)
        bit *= 2;
    tree->parent = place == 0 ? GEX_RANK_INVALID : aq_tree_rank(team, root, place - bit);
    tree->children = 0;
    for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < team->size)
            tree->child[tree->children++] = aq_tree_rank(team, root, place + bit);
}

void aq_prog_add_broadcast(struct aq_prog *prog, const struct aq_coll_team *team,
                           const struct aq_coll_call *call, uint32_t tag)
{
    const uint64_t place = ((uint64_t)team->rank + team->size - call->root) % team->size;
    const char *from = place == 0 ? call->src : call->dst;
    size_t chunk = aq_round_up((call->nbytes + AQ_CHUNKS - 1) / AQ_CHUNKS, AQ_CACHE_LINE);
    struct aq_tree tree;

    if (call->nbytes == 0)
        return;
    if (chunk < AQ_CHUNK)
        chunk = AQ_CHUNK;
    if (call->nbytes < AQ_PIPELINED * (size_t)AQ_CHUNK || team->size == 2)
        chunk = call->nbytes;
    if (chunk == call->nbytes)
        aq_tree_binomial(&tree, team, call->root, place);
    else
        aq_tree_binary(&tree, team, call->root, place);
    for (size_t at = 0; at < call->nbytes; at += chunk, tag++) {
        const size_t piece = call->nbytes - at < chunk ? call->nbytes - at : chunk;

        if (place != 0)
            aq_prog_recv(prog, tree.parent, tag, (char *)call->dst + at, piece);
        for (unsigned i = 0; i < tree.children; i++)
            aq_prog_send(prog, tree.child[i], tag, from + at, piece);
    }
    if (place == 0)
        aq_prog_copy(prog, call->dst, call->src, call->nbytes);
}

struct aq_prog *aq_prog_of_call(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    struct aq_prog *prog;

    if (call->kind == AQ_COLL_TO_ONE || call->kind == AQ_COLL_TO_ALL)
        return aq_prog_of_reduction(team, call);
    prog = aq_prog_begin(team, 0, NULL);
    if (call->kind == AQ_COLL_BARRIER)
        aq_prog_add_barrier(prog, team, AQ_TAG_DATA);
    else
        aq_prog_add_broadcast(prog, team, call, AQ_TAG_DATA);
    return prog;
}
