/*
 * aq_coll_levels.c - schedules in two levels: messages among one member of each neighborhood,
 * shared memory inside it.
 *
 * The first member of each neighborhood leads it. What the others bring goes `up` to it, what they
 * get comes `down` from it, each through memory of its own, so that what a leader does not have yet
 * for one collective holds up no other one's way up. Where one member alone gives or gets data, it
 * leads its neighborhood.
 *
 * Barrier: arrivals go up, the leaders disseminate, a message of no bytes comes down. Broadcast: a
 * tree among the leaders; each hands a chunk down while the next one comes in. Reductions: each
 * neighborhood combines its part. Of few bytes the leaders double, or use a tree. Many go in
 * segments: a leader combines one chunk of all members' segments and sends the result to all
 * leaders, or to the root's; meanwhile the next segment comes up and the last one goes down.
 *
 * Order     operands are combined by neighborhood. Operators that do not commute are served where
 *           the ranks of each neighborhood follow each other
 * Buffers   a client's src is never written, unless it is dst, too
 * Threads   the caller's
 * Uses      extended/aq_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#define AQ_LEVELS_UNIT 4096u   /* bytes: elements that fit every neighborhood's blocks */
#define AQ_SCATTER_ALL 4096u   /* bytes: smaller chunks are not worth a message each, */
#define AQ_SCATTER_ONE 16384u  /* or, to one member, a second hop */
#define AQ_SEGMENT     131072u /* bytes: at least so many go up while others cross the network */
#define AQ_SEGMENTS    128u    /* the most in a reduction */

/* A call being written. */
struct aq_two {
    struct aq_sched *sched;
    const struct aq_coll_team *team;
    const struct aq_coll_call *call;
    const struct aq_coll_levels *levels;
    struct aq_coll_ring leaders; /* with the deputy, if there is one */
    gex_Rank_t root_group;       /* among the leaders: where the root is */
    gex_Rank_t leader;           /* index, in the neighborhood, of who leads it */
    bool leads;                  /* this member does */
    bool has_local;              /* there are others in the neighborhood */
};

bool aq_levels_serve(const struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const struct aq_coll_levels *levels = team->levels;

    if (levels == NULL || !levels->shared)
        return false;
    if (call->kind == AQ_COLL_BARRIER || call->kind == AQ_COLL_BROADCAST)
        return true;
    if (call->unit > AQ_LEVELS_UNIT)
        return false;
    return !call->ordered
           || (levels->in_a_row
               && (call->kind == AQ_COLL_TO_ALL
                   || aq_ring_find(&levels->leaders, call->root) != levels->leaders.size));
}

static struct aq_two aq_two_make(const struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const struct aq_coll_levels *levels = team->levels;
    struct aq_two two = {
        .team = team, .call = call, .levels = levels, .leaders = levels->leaders
    };

    two.has_local = levels->local.size > 1;
    if (call->kind == AQ_COLL_BROADCAST || call->kind == AQ_COLL_TO_ONE) {
        two.root_group = aq_levels_group(team, call->root);
        two.leaders.has_deputy = true;
        two.leaders.deputy_at = two.root_group;
        two.leaders.deputy = call->root;
        if (two.root_group == levels->leaders.me)
            two.leader = aq_ring_find(&levels->local, call->root);
    }
    two.leads = levels->local.me == two.leader;
    return two;
}

/* --- parts --- */

/* What the neighborhood brings of some elements, or its arrival, goes to its leader's dst. */
static unsigned aq_two_up(const struct aq_two *two, const void *src, void *dst, size_t count)
{
    const struct aq_coll_call part = { .kind = AQ_COLL_TO_ONE,
                                       .root = two->leader,
                                       .dst = dst,
                                       .src = src,
                                       .unit = two->call->unit,
                                       .count = count,
                                       .fn = two->call->fn,
                                       .cdata = two->call->cdata,
                                       .ordered = two->call->ordered };

    return aq_sched_local(two->sched, two->levels->up, &part, false);
}

/* From the leader to its neighborhood. closed: the leader opens it. */
static unsigned aq_two_down(const struct aq_two *two, void *dst, const void *src, size_t nbytes,
                            bool closed)
{
    const struct aq_coll_call part = {
        .kind = AQ_COLL_BROADCAST, .root = two->leader, .dst = dst, .src = src, .nbytes = nbytes
    };

    return aq_sched_local(two->sched, two->levels->down, &part, closed && two->leads);
}

/* --- barrier, broadcast --- */

static struct aq_sched *aq_two_barrier(struct aq_coll_team *team, struct aq_two *two)
{
    unsigned up = 0, down = 0;

    two->sched = aq_sched_begin(team, 0, NULL);
    if (two->has_local) {
        up = aq_two_up(two, NULL, NULL, 0);
        down = aq_two_down(two, NULL, NULL, 0, true);
    }
    if (two->has_local)
        aq_sched_wait(two->sched, up);
    if (two->leads) {
        aq_sched_add_dissemination(two->sched, &two->leaders, AQ_TAG_DATA);
        if (two->has_local)
            aq_sched_open(two->sched, down);
    }
    if (two->has_local)
        aq_sched_wait(two->sched, down);
    return two->sched;
}

/* A leader's part of a chunk; the local call that takes it down has its number. */
static void aq_two_add_chunk(const struct aq_two *two, const struct aq_tree *tree, size_t at,
                             size_t nbytes, unsigned chunk)
{
    const bool is_root = two->team->rank == two->call->root;
    const uint32_t tag = AQ_TAG_DATA + chunk;
    char *dst = (char *)two->call->dst + at;

    if (!is_root)
        aq_sched_recv(two->sched, tree->parent, tag, dst, nbytes);
    for (unsigned i = 0; i < tree->children; i++)
        aq_sched_send(two->sched, tree->child[i], tag,
                      is_root ? (const char *)two->call->src + at : dst, nbytes);
    if (two->has_local && !is_root)
        aq_sched_open(two->sched, chunk);
}

static struct aq_sched *aq_two_broadcast(struct aq_coll_team *team, struct aq_two *two)
{
    const struct aq_coll_call *call = two->call;
    const bool by_root = two->leaders.me == two->root_group; /* who has all data at once */
    const size_t nbytes = call->nbytes, chunk = aq_chunk_bytes(nbytes, team->size);
    struct aq_tree tree;
    unsigned last = 0;

    two->sched = aq_sched_begin(team, 0, NULL);
    if (two->leads)
        aq_tree_ring(&tree, chunk == nbytes ? AQ_TREE_BINOMIAL : AQ_TREE_BINARY, &two->leaders,
                     two->root_group);
    if (two->has_local && by_root)
        last = aq_two_down(two, call->dst, call->src, nbytes, false);
    for (size_t at = 0, k = 0; at < nbytes; at += chunk, k++) {
        const size_t frag = nbytes - at < chunk ? nbytes - at : chunk;
        char *dst = (char *)call->dst + at;

        if (two->has_local && !by_root)
            last = aq_two_down(two, dst, dst, frag, true);
        if (two->leads)
            aq_two_add_chunk(two, &tree, at, frag, (unsigned)k);
    }
    if (two->has_local)
        aq_sched_wait(two->sched, last);
    else if (team->rank == call->root)
        aq_sched_copy(two->sched, call->dst, call->src, nbytes);
    return two->sched;
}

/* --- reductions of few bytes --- */

/* To the root: what a leader's neighborhood has and what its subtree of leaders brings. Ordered: to
 * the first leader, which sends it to the root. */
static void aq_two_add_tree(const struct aq_two *two, const struct aq_tree *tree, const void *src,
                            const struct aq_temp *temp)
{
    const struct aq_coll_call *call = two->call;
    const size_t bytes = call->unit * call->count;
    const gex_Rank_t top = aq_ring_rank(&two->leaders, call->ordered ? 0 : two->root_group);
    const void *acc = aq_sched_gather(two->sched, call, tree, src, temp);

    if (tree->parent != GEX_RANK_INVALID)
        aq_sched_send(two->sched, tree->parent, AQ_TAG_DATA, acc, bytes);
    else if (top != call->root)
        aq_sched_send(two->sched, call->root, AQ_TAG_RESULT, acc, bytes);
    else
        aq_sched_copy(two->sched, call->dst, acc, bytes);
    if (two->team->rank == call->root && top != call->root)
        aq_sched_recv(two->sched, top, AQ_TAG_RESULT, call->dst, bytes);
}

static struct aq_sched *aq_two_to_one(struct aq_coll_team *team, struct aq_two *two)
{
    const struct aq_coll_call *call = two->call;
    const size_t bytes = call->unit * call->count;
    struct aq_tree tree = { .children = 0 };
    const void *src = call->src;
    struct aq_temp temp;
    unsigned up = 0;

    if (two->leads)
        aq_tree_ring(&tree, AQ_TREE_BINOMIAL, &two->leaders, call->ordered ? 0 : two->root_group);
    two->sched = aq_sched_with_buffers(team, bytes, tree.children + 1, &temp);
    if (two->has_local) {
        src = aq_temp_buffer(&temp, tree.children);
        up = aq_two_up(two, call->src, two->leads ? aq_temp_buffer(&temp, tree.children) : NULL,
                       call->count);
        aq_sched_wait(two->sched, up);
    }
    if (two->leads)
        aq_two_add_tree(two, &tree, src, &temp);
    return two->sched;
}

static struct aq_sched *aq_two_to_all(struct aq_coll_team *team, struct aq_two *two)
{
    const struct aq_coll_call *call = two->call;
    const size_t bytes = call->unit * call->count;
    const size_t buffers = two->leads ? aq_doubling_buffers(two->leaders.size) : 0;
    struct aq_temp temp;
    unsigned up = 0, down = 0;

    two->sched = aq_sched_with_buffers(team, bytes, buffers, &temp);
    if (two->has_local) {
        up = aq_two_up(two, call->src, two->leads ? temp.memory : NULL, call->count);
        down = aq_two_down(two, call->dst, call->dst, bytes, true);
    }
    if (two->has_local)
        aq_sched_wait(two->sched, up);
    if (two->leads) {
        aq_sched_add_doubling(two->sched, team, call, &two->leaders,
                              two->has_local ? temp.memory : call->src, &temp);
        if (two->has_local)
            aq_sched_open(two->sched, down);
    }
    if (two->has_local)
        aq_sched_wait(two->sched, down);
    return two->sched;
}

/* --- reductions of many bytes --- */

/* All segments but the last have the same number of elements. */
struct aq_two_plan {
    size_t segments, each; /* elements in each */
    const char *src;       /* what the leader's neighborhood brings */
    bool may_write;        /* there, too */
    bool has_dst;          /* this leader gets the result */
    size_t stride;         /* bytes of a buffer for a chunk */
    char *incoming;        /* a buffer for each leader's chunk of each segment */
};

static size_t aq_two_count(const struct aq_two *two, const struct aq_two_plan *plan, size_t segment)
{
    const size_t left = two->call->count - segment * plan->each;

    return left < plan->each ? left : plan->each;
}

/* The chunk of a segment that a leader combines. */
struct aq_two_chunk {
    size_t at, bytes; /* in the whole data; bytes of it */
    size_t count;
};

static struct aq_two_chunk aq_two_chunk_of(const struct aq_two *two, const struct aq_two_plan *plan,
                                           size_t segment, gex_Rank_t leader)
{
    const size_t unit = two->call->unit, count = aq_two_count(two, plan, segment);
    const size_t each = count / two->leaders.size, more = count % two->leaders.size;
    const size_t first = leader * each + (leader < more ? leader : more);
    const size_t own = each + (leader < more);

    return (struct aq_two_chunk){ (segment * plan->each + first) * unit, own * unit, own };
}

static char *aq_two_buffer(const struct aq_two *two, const struct aq_two_plan *plan, size_t segment,
                           gex_Rank_t leader)
{
    return plan->incoming + (segment * two->leaders.size + leader) * plan->stride;
}

/* Sends each member's chunk of a segment to the member that combines it. */
static void aq_two_add_scatter(const struct aq_two *two, const struct aq_two_plan *plan,
                               size_t segment)
{
    for (gex_Rank_t step = 1; step < two->leaders.size; step++) {
        const gex_Rank_t to = (gex_Rank_t)(((uint64_t)two->leaders.me + step) % two->leaders.size);
        const struct aq_two_chunk chunk = aq_two_chunk_of(two, plan, segment, to);

        if (chunk.count > 0)
            aq_sched_send(two->sched, aq_ring_rank(&two->leaders, to),
                          AQ_TAG_DATA + (uint32_t)segment, plan->src + chunk.at, chunk.bytes);
    }
}

/* Which leader's operand the result replaces: ordered, that must be the last one's. */
static gex_Rank_t aq_two_replaced(const struct aq_two *two, const struct aq_two_plan *plan)
{
    const gex_Rank_t last = two->leaders.size - 1;

    if (two->call->ordered)
        return last;
    return plan->may_write ? two->leaders.me : two->leaders.me == last ? 0 : last;
}

/* Combine this leader's chunk of a segment; returns where the result is. */
static void *aq_two_add_combine(const struct aq_two *two, const struct aq_two_plan *plan,
                                size_t segment)
{
    const gex_Rank_t me = two->leaders.me, size = two->leaders.size;
    const gex_Rank_t replaced = aq_two_replaced(two, plan);
    const struct aq_two_chunk chunk = aq_two_chunk_of(two, plan, segment, me);
    char *own = (char *)(uintptr_t)plan->src + chunk.at;
    char *result = replaced != me    ? aq_two_buffer(two, plan, segment, replaced)
                   : plan->may_write ? own
                                     : aq_two_buffer(two, plan, segment, me);

    for (gex_Rank_t from = 0; from < size; from++)
        if (from != me)
            aq_sched_recv(two->sched, aq_ring_rank(&two->leaders, from),
                          AQ_TAG_DATA + (uint32_t)segment, aq_two_buffer(two, plan, segment, from),
                          chunk.bytes);
    if (replaced == me)
        aq_sched_copy(two->sched, result, own, chunk.bytes);
    for (gex_Rank_t from = size; from-- > 0;)
        if (from != replaced)
            aq_sched_reduce(two->sched, two->call,
                            from == me ? own : aq_two_buffer(two, plan, segment, from), result,
                            chunk.count, true);
    return result;
}

/* The combined chunk to those who get it, and into dst. */
static void aq_two_add_results(const struct aq_two *two, const struct aq_two_plan *plan,
                               size_t segment)
{
    const gex_Rank_t size = two->leaders.size, me = two->leaders.me;
    const struct aq_two_chunk chunk = aq_two_chunk_of(two, plan, segment, me);
    const void *result;

    if (chunk.count == 0)
        return;
    result = aq_two_add_combine(two, plan, segment);
    for (gex_Rank_t step = 1; step < size; step++) {
        const gex_Rank_t to = (gex_Rank_t)(((uint64_t)me + step) % size);

        if (two->call->kind == AQ_COLL_TO_ALL || to == two->root_group)
            aq_sched_send(two->sched, aq_ring_rank(&two->leaders, to),
                          AQ_TAG_RESULT + (uint32_t)segment, result, chunk.bytes);
    }
    if (plan->has_dst)
        aq_sched_copy(two->sched, (char *)two->call->dst + chunk.at, result, chunk.bytes);
}

static void aq_two_add_collect(const struct aq_two *two, const struct aq_two_plan *plan,
                               size_t segment)
{
    for (gex_Rank_t step = 1; plan->has_dst && step < two->leaders.size; step++) {
        const gex_Rank_t from =
            (gex_Rank_t)(((uint64_t)two->leaders.me + step) % two->leaders.size);
        const struct aq_two_chunk chunk = aq_two_chunk_of(two, plan, segment, from);

        if (chunk.count > 0)
            aq_sched_recv(two->sched, aq_ring_rank(&two->leaders, from),
                          AQ_TAG_RESULT + (uint32_t)segment, (char *)two->call->dst + chunk.at,
                          chunk.bytes);
    }
}

/* A leader's steps: of three segments at a time. The local calls are those of the segments upwards,
 * then those downwards. */
static void aq_two_add_pipeline(const struct aq_two *two, const struct aq_two_plan *plan)
{
    const size_t segments = plan->segments;

    for (size_t k = 0; k < segments + 2; k++) {
        if (k < segments) {
            if (two->has_local)
                aq_sched_wait(two->sched, (unsigned)k);
            aq_two_add_scatter(two, plan, k);
        }
        if (k >= 1 && k <= segments)
            aq_two_add_results(two, plan, k - 1);
        if (k >= 2) {
            aq_two_add_collect(two, plan, k - 2);
            if (two->has_local && two->call->kind == AQ_COLL_TO_ALL)
                aq_sched_open(two->sched, (unsigned)(segments + k - 2));
        }
    }
}

static void aq_two_add_locals(const struct aq_two *two, const struct aq_two_plan *plan)
{
    const struct aq_coll_call *call = two->call;

    for (size_t k = 0; k < plan->segments; k++) {
        const size_t at = k * plan->each * call->unit;

        aq_two_up(two, (const char *)call->src + at,
                  two->leads ? (char *)(uintptr_t)plan->src + at : NULL,
                  aq_two_count(two, plan, k));
    }
    for (size_t k = 0; call->kind == AQ_COLL_TO_ALL && k < plan->segments; k++) {
        char *dst = (char *)call->dst + k * plan->each * call->unit;

        aq_two_down(two, dst, dst, aq_two_count(two, plan, k) * call->unit, true);
    }
}

static bool aq_two_is_large(const struct aq_two *two)
{
    const struct aq_coll_call *call = two->call;
    const size_t min_bytes = call->kind == AQ_COLL_TO_ONE ? AQ_SCATTER_ONE : AQ_SCATTER_ALL;

    return call->count >= two->leaders.size
           && call->unit * call->count / two->leaders.size >= min_bytes;
}

static size_t aq_two_segments(const struct aq_coll_call *call)
{
    const size_t segments = (call->unit * call->count + AQ_SEGMENT - 1) / AQ_SEGMENT;

    return segments < AQ_SEGMENTS ? segments : AQ_SEGMENTS;
}

static struct aq_sched *aq_two_large(struct aq_coll_team *team, struct aq_two *two)
{
    const struct aq_coll_call *call = two->call;
    const bool to_all = call->kind == AQ_COLL_TO_ALL;
    const size_t bytes = call->unit * call->count, segments = aq_two_segments(call);
    struct aq_two_plan plan = { .each = (call->count + segments - 1) / segments };
    size_t own_buffers;
    struct aq_temp temp;

    plan.segments = (call->count + plan.each - 1) / plan.each;
    plan.has_dst = to_all || team->rank == call->root;
    plan.stride = aq_round_up(aq_two_chunk_of(two, &plan, 0, 0).bytes, AQ_CACHE_LINE);
    /* what comes up needs memory where there is no dst */
    own_buffers = two->has_local && !plan.has_dst ? (bytes + plan.stride - 1) / plan.stride : 0;
    two->sched = aq_sched_with_buffers(
        team, plan.stride, two->leads ? plan.segments * two->leaders.size + own_buffers : 0, &temp);
    plan.incoming = temp.memory;
    plan.src = !two->has_local ? call->src
               : plan.has_dst  ? call->dst
                               : aq_temp_buffer(&temp, plan.segments * two->leaders.size);
    plan.may_write = two->has_local || (plan.has_dst && call->src == call->dst);
    if (two->has_local)
        aq_two_add_locals(two, &plan);
    if (two->leads)
        aq_two_add_pipeline(two, &plan);
    if (two->has_local)
        aq_sched_wait(two->sched, (unsigned)plan.segments - 1);
    if (two->has_local && to_all)
        aq_sched_wait(two->sched, (unsigned)(2 * plan.segments) - 1);
    return two->sched;
}

/* --- which --- */

struct aq_sched *aq_levels_of_call(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    struct aq_two two = aq_two_make(team, call);

    if (call->kind == AQ_COLL_BARRIER)
        return aq_two_barrier(team, &two);
    if (call->kind == AQ_COLL_BROADCAST)
        return aq_two_broadcast(team, &two);
    if (aq_two_is_large(&two))
        return aq_two_large(team, &two);
    return call->kind == AQ_COLL_TO_ONE ? aq_two_to_one(team, &two) : aq_two_to_all(team, &two);
}
