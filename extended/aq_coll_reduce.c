/*
 * aq_coll_reduce.c - schedules that combine data: reductions by messages.
 *
 * Few bytes: to one member along a binomial tree, to all by recursive doubling (members beyond
 * the largest power of two hand their part to a neighbour and get the result back). In a team of
 * several neighborhoods each combines its part first, and their leaders double. Many: every
 * member combines one chunk of all members' data, then sends the result to the root or to all;
 * so each byte crosses the network twice, whatever the number of members. To one member of a pair,
 * or in more fragments than there are members, down a chain that ends at the root, if the order of
 * ranks allows that: each byte crosses each link once.
 *
 * Order     every operand is the combination of consecutive ranks, and what comes from lower
 *           ranks is the left operand: right for operators that do not commute, too. Only a tree
 *           or chain towards a root other than rank 0, and neighborhoods whose ranks are mixed,
 *           turn the ranks round, when that is allowed
 * Buffers   a client's operator writes to its right operand, so that is temporary memory, or where
 *           the result belongs if no source is there; each message has a buffer of its own, since
 *           receives are ready from the start
 * Threads   the caller's. Uses aq_coll_msg.c
 * See       Rabenseifner: Optimization of collective reduction operations, 2004
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include "base/aq_log.h"

#define AQ_TEMP_ALIGN  64u
#define AQ_SCATTER_MIN 2048u   /* bytes: smaller chunks are not worth a message each */
#define AQ_PAIR_FRAG   262144u /* bytes: what the cache holds while it is combined */
#define AQ_CHAIN_FRAGS 64u     /* the most in a chain: each is a receive that waits */

static size_t aq_call_bytes(const struct aq_coll_call *call)
{
    return call->unit * call->count;
}

static unsigned aq_rounds(gex_Rank_t size)
{
    unsigned rounds = 0;

    while (((uint64_t)1 << rounds) < size)
        rounds++;
    return rounds;
}

struct aq_sched *aq_sched_with_buffers(struct aq_coll_team *team, size_t bytes, size_t buffers,
                                       struct aq_temp *temp_out)
{
    struct aq_sched *sched;
    void *memory;

    temp_out->stride = aq_round_up(bytes, AQ_TEMP_ALIGN);
    if (temp_out->stride != 0 && buffers > SIZE_MAX / 2 / temp_out->stride)
        aq_fatal("a reduction of %zu bytes over %u members does not fit the address space", bytes,
                 team->size);
    sched = aq_sched_begin(team, buffers * temp_out->stride, &memory);
    temp_out->memory = memory;
    return sched;
}

/* --- few bytes --- */

/* The combination of this member's subtree. Children are taken the nearest first, since their ranks
 * follow. */
const void *aq_sched_gather(struct aq_sched *sched, const struct aq_coll_call *call,
                            const struct aq_tree *tree, const void *src, const struct aq_temp *temp)
{
    const size_t bytes = aq_call_bytes(call);
    const void *acc = src;

    for (unsigned i = tree->children; i-- > 0;) {
        void *incoming = aq_temp_buffer(temp, i);

        aq_sched_recv(sched, tree->child[i], AQ_TAG_DATA, incoming, bytes);
        aq_sched_reduce(sched, call, acc, incoming, call->count, true);
        acc = incoming;
    }
    return acc;
}

static struct aq_sched *aq_sched_tree(struct aq_coll_team *team,
                                      const struct aq_coll_levels *levels,
                                      const struct aq_coll_call *call)
{
    const gex_Rank_t top = call->ordered ? 0 : call->root; /* where the tree's root is */
    const size_t bytes = aq_call_bytes(call);
    const void *acc;
    struct aq_tree tree;
    struct aq_temp temp;
    struct aq_sched *sched;

    aq_tree_make(&tree, AQ_TREE_BINOMIAL, team, levels, top);
    sched = aq_sched_with_buffers(team, bytes, tree.children, &temp);
    acc = aq_sched_gather(sched, call, &tree, call->src, &temp);
    if (tree.parent != GEX_RANK_INVALID)
        aq_sched_send(sched, tree.parent, AQ_TAG_DATA, acc, bytes);
    else if (top != call->root)
        aq_sched_send(sched, call->root, AQ_TAG_RESULT, acc, bytes);
    else
        aq_sched_copy(sched, call->dst, acc, bytes);
    if (team->rank == call->root && top != call->root)
        aq_sched_recv(sched, top, AQ_TAG_RESULT, call->dst, bytes);
    return sched;
}

/* Exchange with a member and combine; returns where the combination is. own is ours to write. */
static void *aq_sched_combine(struct aq_sched *sched, const struct aq_coll_team *team,
                              const struct aq_coll_call *call, gex_Rank_t with, uint32_t tag,
                              void *own, void *incoming)
{
    const size_t bytes = aq_call_bytes(call);

    aq_sched_send(sched, with, tag, own, bytes);
    aq_sched_recv(sched, with, tag, incoming, bytes);
    if (with < team->rank) {
        aq_sched_reduce(sched, call, incoming, own, call->count, false);
        return own;
    }
    aq_sched_reduce(sched, call, own, incoming, call->count, true);
    return incoming;
}

size_t aq_doubling_buffers(gex_Rank_t members)
{
    return aq_rounds(members + 1) + 1;
}

/* Recursive doubling. */
void aq_sched_add_doubling(struct aq_sched *sched, const struct aq_coll_team *team,
                           const struct aq_coll_call *call, const struct aq_coll_ring *ring,
                           const void *src, const struct aq_temp *temp)
{
    const size_t bytes = aq_call_bytes(call);
    const unsigned rounds = aq_rounds(ring->size + 1) - 1;           /* whole powers of two */
    const gex_Rank_t extra = ring->size - ((gex_Rank_t)1 << rounds); /* so many pairs act as one */
    const bool paired = ring->me < 2 * extra;
    void *acc = aq_temp_buffer(temp, 0);
    gex_Rank_t vrank;

    if (paired && ring->me % 2 == 1) {
        aq_sched_send(sched, aq_ring_rank(ring, ring->me - 1), AQ_TAG_DOUBLE, src, bytes);
        aq_sched_recv(sched, aq_ring_rank(ring, ring->me - 1), AQ_TAG_RESULT, call->dst, bytes);
        return;
    }
    aq_sched_copy(sched, acc, src, bytes);
    if (paired) {
        void *incoming = aq_temp_buffer(temp, rounds + 1);

        aq_sched_recv(sched, aq_ring_rank(ring, ring->me + 1), AQ_TAG_DOUBLE, incoming, bytes);
        aq_sched_reduce(sched, call, acc, incoming, call->count, true);
        acc = incoming;
    }
    vrank = paired ? ring->me / 2 : ring->me - extra;
    for (unsigned round = 0; round < rounds; round++) {
        const gex_Rank_t with = vrank ^ (gex_Rank_t)1 << round;

        acc = aq_sched_combine(sched, team, call,
                               aq_ring_rank(ring, with < extra ? 2 * with : with + extra),
                               AQ_TAG_DOUBLE + 1 + round, acc, aq_temp_buffer(temp, round + 1));
    }
    if (paired)
        aq_sched_send(sched, aq_ring_rank(ring, ring->me + 1), AQ_TAG_RESULT, acc, bytes);
    aq_sched_copy(sched, call->dst, acc, bytes);
}

static struct aq_sched *aq_sched_doubling(struct aq_coll_team *team,
                                          const struct aq_coll_call *call)
{
    const struct aq_coll_ring all = { .size = team->size, .me = team->rank };
    struct aq_temp temp;
    struct aq_sched *sched =
        aq_sched_with_buffers(team, aq_call_bytes(call), aq_doubling_buffers(team->size), &temp);

    aq_sched_add_doubling(sched, team, call, &all, call->src, &temp);
    return sched;
}

/* Up to the neighborhood's leader, among the leaders, and down again. */
static struct aq_sched *aq_sched_two_levels(struct aq_coll_team *team,
                                            const struct aq_coll_call *call)
{
    const struct aq_coll_ring *leaders = &team->levels->leaders;
    const size_t doubling = aq_doubling_buffers(leaders->size); /* buffers of the first part */
    const size_t bytes = aq_call_bytes(call);
    struct aq_temp temp, below;
    const void *acc;
    struct aq_tree tree;
    struct aq_sched *sched;

    aq_tree_local(&tree, team);
    sched = aq_sched_with_buffers(team, bytes, doubling + tree.children, &temp);
    below = (struct aq_temp){ aq_temp_buffer(&temp, doubling), temp.stride };
    acc = aq_sched_gather(sched, call, &tree, call->src, &below);
    if (tree.parent == GEX_RANK_INVALID) {
        aq_sched_add_doubling(sched, team, call, leaders, acc, &temp);
    } else {
        aq_sched_send(sched, tree.parent, AQ_TAG_DATA, acc, bytes);
        aq_sched_recv(sched, tree.parent, AQ_TAG_RESULT, call->dst, bytes);
    }
    for (unsigned i = 0; i < tree.children; i++)
        aq_sched_send(sched, tree.child[i], AQ_TAG_RESULT, call->dst, bytes);
    return sched;
}

/* --- many bytes --- */

/* Where the chunk of a member begins, in elements. */
static size_t aq_scatter_offset(const struct aq_coll_team *team, const struct aq_coll_call *call,
                                uint64_t rank)
{
    const size_t each = call->count / team->size, more = call->count % team->size;

    return (size_t)rank * each + (rank < more ? (size_t)rank : more);
}

static size_t aq_scatter_count(const struct aq_coll_team *team, const struct aq_coll_call *call,
                               uint64_t rank)
{
    return aq_scatter_offset(team, call, rank + 1) - aq_scatter_offset(team, call, rank);
}

/* Get all members' data of this member's chunk and combine them in last. */
static void aq_sched_add_reduce_scatter(struct aq_sched *sched, const struct aq_coll_team *team,
                                        const struct aq_coll_call *call, const struct aq_temp *temp,
                                        void *last)
{
    const uint64_t size = team->size, me = team->rank;
    const size_t count = aq_scatter_count(team, call, me);
    const char *src = call->src;
    const char *acc = src + call->unit * aq_scatter_offset(team, call, me);

    for (uint64_t step = 1; step < size; step++) {
        const uint64_t to = (me + step) % size;

        aq_sched_send(sched, (gex_Rank_t)to, AQ_TAG_DATA,
                      src + call->unit * aq_scatter_offset(team, call, to),
                      call->unit * aq_scatter_count(team, call, to));
    }
    if (me == size - 1)
        aq_sched_copy(sched, last, acc, call->unit * count);
    for (uint64_t step = 1; step < size; step++) {
        const uint64_t from = (me + size - step) % size;

        aq_sched_recv(sched, (gex_Rank_t)from, AQ_TAG_DATA,
                      from == size - 1 ? last : aq_temp_buffer(temp, from), call->unit * count);
    }
    for (uint64_t rank = size - 1; rank-- > 0;)
        aq_sched_reduce(sched, call, rank == me ? acc : aq_temp_buffer(temp, rank), last, count,
                        true);
}

static struct aq_sched *aq_sched_reduce_scatter(struct aq_coll_team *team,
                                                const struct aq_coll_call *call)
{
    const uint64_t size = team->size, me = team->rank;
    const size_t bytes = call->unit * aq_scatter_count(team, call, me);
    const bool to_all = call->kind == AQ_COLL_TO_ALL, has_dst = to_all || me == call->root;
    void *dst = has_dst ? (char *)call->dst + call->unit * aq_scatter_offset(team, call, me) : NULL;
    struct aq_temp temp;
    struct aq_sched *sched = aq_sched_with_buffers(team, bytes, size, &temp);
    void *result = has_dst && call->dst != call->src ? dst : aq_temp_buffer(&temp, size - 1);

    aq_sched_add_reduce_scatter(sched, team, call, &temp, result);
    /* With dst == src, a result that comes early overwrites a chunk that has been sent: its
     * sender could not have computed it otherwise. */
    for (uint64_t step = 1; step < size; step++) {
        const gex_Rank_t to = (gex_Rank_t)((me + step) % size);

        if (to_all || to == call->root)
            aq_sched_send(sched, to, AQ_TAG_RESULT, result, bytes);
    }
    if (!has_dst)
        return sched;
    aq_sched_copy(sched, dst, result, bytes);
    for (uint64_t step = 1; step < size; step++) {
        const uint64_t from = (me + size - step) % size;

        aq_sched_recv(sched, (gex_Rank_t)from, AQ_TAG_RESULT,
                      (char *)call->dst + call->unit * aq_scatter_offset(team, call, from),
                      call->unit * aq_scatter_count(team, call, from));
    }
    return sched;
}

/* Bytes that go down a chain at a time: whole elements. */
static size_t aq_chain_frag(const struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const size_t bytes = aq_call_bytes(call);
    const size_t whole = bytes < AQ_PAIR_FRAG ? bytes : AQ_PAIR_FRAG;
    const size_t frag = team->size == 2 ? whole : aq_chunk_bytes(bytes, team->size);
    const size_t min = (bytes + AQ_CHAIN_FRAGS - 1) / AQ_CHAIN_FRAGS;

    return ((frag > min ? frag : min) + call->unit - 1) / call->unit * call->unit;
}

/* Is a chain faster than a reduce-scatter and a gather? A fragment goes from member to member while
 * others follow, which takes fragments + members - 2 times that of one, against
 * 2 * fragments * (members - 1) / members. A chain keeps the order of ranks if it ends at rank 0.
 */
static bool aq_chain_serves(const struct aq_coll_team *team, const struct aq_coll_call *call)
{
    return call->kind == AQ_COLL_TO_ONE && (!call->ordered || call->root == 0)
           && (team->size == 2 || aq_call_bytes(call) / aq_chain_frag(team, call) > team->size);
}

/* Each member combines what comes from the next rank with its own data and hands that on, towards
 * the root. */
static struct aq_sched *aq_sched_chain(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const gex_Rank_t me = team->rank, size = team->size;
    const gex_Rank_t next = (me + 1) % size, before = (me + size - 1) % size;
    const bool is_root = me == call->root, is_end = next == call->root;
    const bool in_dst = is_root && call->dst != call->src;
    const size_t bytes = aq_call_bytes(call), frag = aq_chain_frag(team, call);
    struct aq_temp temp;
    struct aq_sched *sched = aq_sched_with_buffers(team, bytes, is_end || in_dst ? 0 : 1, &temp);
    char *combined = in_dst ? call->dst : temp.memory;
    uint32_t tag = AQ_TAG_DATA;

    for (size_t at = 0; at < bytes; at += frag, tag++) {
        const size_t nbytes = bytes - at < frag ? bytes - at : frag;
        const char *own = (const char *)call->src + at;

        if (!is_end) {
            aq_sched_recv(sched, next, tag, combined + at, nbytes);
            aq_sched_reduce(sched, call, own, combined + at, nbytes / call->unit, true);
        }
        if (!is_root)
            aq_sched_send(sched, before, tag, is_end ? own : combined + at, nbytes);
    }
    if (is_root)
        aq_sched_copy(sched, call->dst, combined, bytes);
    return sched;
}

struct aq_sched *aq_sched_of_reduction(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const struct aq_coll_levels *levels = team->levels;

    if (levels != NULL && call->ordered && !levels->in_a_row)
        levels = NULL; /* two levels would mix the ranks */
    if (team->size > 1 && call->count >= team->size
        && aq_call_bytes(call) / team->size >= AQ_SCATTER_MIN)
        return aq_chain_serves(team, call) ? aq_sched_chain(team, call)
                                           : aq_sched_reduce_scatter(team, call);
    if (call->kind == AQ_COLL_TO_ONE)
        return aq_sched_tree(team, levels, call);
    return levels != NULL ? aq_sched_two_levels(team, call) : aq_sched_doubling(team, call);
}
