/*
 * aq_coll_bcast.c - the schedule of a broadcast; and which schedule a call gets.
 *
 * Small data go down a binomial tree, which has the fewest hops. Large data go in chunks down a
 * binary tree, where no member sends a chunk more than twice, and a chunk is handed on while the
 * next one comes in.
 *
 * Threads   the caller's. Uses aq_coll_msg.c. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#define AQ_CHUNK     65536u /* bytes: the least in a chunk */
#define AQ_CHUNKS    128u   /* the most in a broadcast */
#define AQ_PIPELINED 4u     /* from so many chunks on a pipeline is worth its depth */

size_t aq_chunk_bytes(size_t nbytes, gex_Rank_t members)
{
    const size_t chunk = aq_round_up((nbytes + AQ_CHUNKS - 1) / AQ_CHUNKS, AQ_CACHE_LINE);

    if (nbytes < AQ_PIPELINED * (size_t)AQ_CHUNK || members == 2)
        return nbytes;
    return chunk < AQ_CHUNK ? AQ_CHUNK : chunk;
}

void aq_sched_add_broadcast(struct aq_sched *sched, const struct aq_coll_team *team,
                            const struct aq_coll_call *call, uint32_t tag)
{
    const bool is_root = team->rank == call->root;
    const char *from = is_root ? call->src : call->dst;
    const size_t chunk = aq_chunk_bytes(call->nbytes, team->size);
    struct aq_tree tree;

    if (call->nbytes == 0)
        return;
    aq_tree_make(&tree, chunk == call->nbytes ? AQ_TREE_BINOMIAL : AQ_TREE_BINARY, team,
                 team->levels, call->root);
    for (size_t at = 0; at < call->nbytes; at += chunk, tag++) {
        const size_t frag = call->nbytes - at < chunk ? call->nbytes - at : chunk;

        if (!is_root)
            aq_sched_recv(sched, tree.parent, tag, (char *)call->dst + at, frag);
        for (unsigned i = 0; i < tree.children; i++)
            aq_sched_send(sched, tree.child[i], tag, from + at, frag);
    }
    if (is_root)
        aq_sched_copy(sched, call->dst, call->src, call->nbytes);
}

struct aq_sched *aq_sched_of_call(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    struct aq_sched *sched;

    if (aq_levels_serve(team, call))
        return aq_levels_of_call(team, call);
    if (call->kind == AQ_COLL_TO_ONE || call->kind == AQ_COLL_TO_ALL)
        return aq_sched_of_reduction(team, call);
    sched = aq_sched_begin(team, 0, NULL);
    if (call->kind == AQ_COLL_BARRIER)
        aq_sched_add_barrier(sched, team, AQ_TAG_DATA);
    else
        aq_sched_add_broadcast(sched, team, call, AQ_TAG_DATA);
    return sched;
}
