/*
 * aq_coll_reduce.c - programs that combine data: reductions by messages.
 *
 * Few bytes: to one member along a binomial tree, to all by recursive doubling (members beyond
 * the largest power of two hand their part to a neighbour and get the result back). Many: every
 * member combines one slice of everybody's data, then sends the result to the root or to all;
 * so each byte crosses the network twice, whatever the number of members.
 *
 * Order     every operand is the combination of consecutive ranks, and what comes from lower
 *           ranks is the left operand: right for operators that do not commute, too. Only the
 *           tree towards a root other than rank 0 turns the ranks round, when that is allowed
 * Buffers   a client's operator writes to its right operand, so that is always temporary
 *           memory; each message has a buffer of its own, since receives are ready from the start
 * Threads   the caller's. Uses aq_coll_msg.c
 * See       Rabenseifner: Optimization of collective reduction operations, 2004
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include "core/aq_log.h"

#define AQ_TEMP_ALIGN 64u
#define AQ_SLICE 2048u /* bytes: smaller slices are not worth a message each */

/* Temporary memory in equal buffers. */
struct aq_temp {
    char *memory;
    size_t stride;
};

static void *aq_temp_buffer(const struct aq_temp *temp, size_t index)
{
    return temp->memory + index * temp->stride;
}

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

static struct aq_prog *aq_prog_with_buffers(struct aq_coll_team *team, size_t bytes, size_t buffers,
                                            struct aq_temp *temp_out)
{
    struct aq_prog *prog;
    void *memory;

    temp_out->stride = aq_round_up(bytes, AQ_TEMP_ALIGN);
    if (temp_out->stride != 0 && buffers > SIZE_MAX / 2 / temp_out->stride)
        aq_fatal("a reduction of %zu bytes over %u members does not fit the address space", bytes,
                 team->size);
    prog = aq_prog_begin(team, buffers * temp_out->stride, &memory);
    temp_out->memory = memory;
    return prog;
}

/* --- few bytes --- */

static struct aq_prog *aq_prog_tree(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const uint64_t size = team->size;
    const gex_Rank_t top = call->ordered ? 0 : call->root; /* where the tree's root is */
    const uint64_t place = (team->rank + size - top) % size;
    const size_t bytes = aq_call_bytes(call);
    const void *mine = call->src; /* what is combined so far */
    struct aq_temp temp;
    struct aq_prog *prog = aq_prog_with_buffers(team, bytes, aq_rounds(team->size), &temp);
    unsigned round = 0;
    uint64_t bit = 1;

    for (; bit < size && (place & bit) == 0; bit *= 2, round++) {
        if (place + bit >= size)
            continue;
        void *theirs = aq_temp_buffer(&temp, round);

        aq_prog_recv(prog, (gex_Rank_t)((place + bit + top) % size), AQ_TAG_DATA, theirs, bytes);
        aq_prog_reduce(prog, call, mine, theirs, call->count);
        mine = theirs;
    }
    if (place != 0)
        aq_prog_send(prog, (gex_Rank_t)((place - bit + top) % size), AQ_TAG_DATA, mine, bytes);
    else if (top != call->root)
        aq_prog_send(prog, call->root, AQ_TAG_RESULT, mine, bytes);
    else
        aq_prog_copy(prog, call->dst, mine, bytes);
    if (team->rank == call->root && top != call->root)
        aq_prog_recv(prog, top, AQ_TAG_RESULT, call->dst, bytes);
    return prog;
}

/* Exchange with a member and combine; returns where the combination is. own is ours to write. */
static void *aq_prog_combine(struct aq_prog *prog, const struct aq_coll_team *team,
                             const struct aq_coll_call *call, gex_Rank_t with, uint32_t tag,
                             void *own, void *theirs)
{
    const size_t bytes = aq_call_bytes(call);

    aq_prog_send(prog, with, tag, own, bytes);
    aq_prog_recv(prog, with, tag, theirs, bytes);
    if (with < team->rank) {
        aq_prog_reduce(prog, call, theirs, own, call->count);
        return own;
    }
    aq_prog_reduce(prog, call, own, theirs, call->count);
    return theirs;
}

static struct aq_prog *aq_prog_doubling(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const size_t bytes = aq_call_bytes(call);
    const unsigned rounds = aq_rounds(team->size + 1) - 1; /* whole powers of two */
    const gex_Rank_t most = (gex_Rank_t)1 << rounds;
    const gex_Rank_t extra = team->size - most; /* so many pairs act as one */
    const bool paired = team->rank < 2 * extra;
    struct aq_temp temp;
    struct aq_prog *prog = aq_prog_with_buffers(team, bytes, rounds + 2, &temp);
    void *mine = aq_temp_buffer(&temp, 0);
    gex_Rank_t place;

    if (paired && team->rank % 2 == 1) {
        aq_prog_send(prog, team->rank - 1, AQ_TAG_DATA, call->src, bytes);
        aq_prog_recv(prog, team->rank - 1, AQ_TAG_RESULT, call->dst, bytes);
        return prog;
    }
    aq_prog_copy(prog, mine, call->src, bytes);
    if (paired) {
        void *theirs = aq_temp_buffer(&temp, rounds + 1);

        aq_prog_recv(prog, team->rank + 1, AQ_TAG_DATA, theirs, bytes);
        aq_prog_reduce(prog, call, mine, theirs, call->count);
        mine = theirs;
    }
    place = paired ? team->rank / 2 : team->rank - extra;
    for (unsigned round = 0; round < rounds; round++) {
        const gex_Rank_t with = place ^ (gex_Rank_t)1 << round;

        mine = aq_prog_combine(prog, team, call, with < extra ? 2 * with : with + extra,
                               AQ_TAG_DATA + 1 + round, mine, aq_temp_buffer(&temp, round + 1));
    }
    if (paired)
        aq_prog_send(prog, team->rank + 1, AQ_TAG_RESULT, mine, bytes);
    aq_prog_copy(prog, call->dst, mine, bytes);
    return prog;
}

/* --- many bytes --- */

/* Where the slice of a member begins, in elements. */
static size_t aq_slice(const struct aq_coll_team *team, const struct aq_coll_call *call,
                       uint64_t rank)
{
    const size_t each = call->count / team->size, more = call->count % team->size;

    return (size_t)rank * each + (rank < more ? (size_t)rank : more);
}

static size_t aq_slice_count(const struct aq_coll_team *team, const struct aq_coll_call *call,
                             uint64_t rank)
{
    return aq_slice(team, call, rank + 1) - aq_slice(team, call, rank);
}

/* Get everybody's data of this member's slice and combine them; returns where. */
static void *aq_prog_reduce_slice(struct aq_prog *prog, const struct aq_coll_team *team,
                                  const struct aq_coll_call *call, const struct aq_temp *temp)
{
    const uint64_t size = team->size, me = team->rank;
    const size_t count = aq_slice_count(team, call, me);
    const char *src = call->src;
    const char *mine = src + call->unit * aq_slice(team, call, me);
    void *last = aq_temp_buffer(temp, size - 1);

    for (uint64_t step = 1; step < size; step++) {
        const uint64_t to = (me + step) % size;

        aq_prog_send(prog, (gex_Rank_t)to, AQ_TAG_DATA, src + call->unit * aq_slice(team, call, to),
                     call->unit * aq_slice_count(team, call, to));
    }
    if (me == size - 1)
        aq_prog_copy(prog, last, mine, call->unit * count);
    for (uint64_t step = 1; step < size; step++) {
        const uint64_t from = (me + size - step) % size;

        aq_prog_recv(prog, (gex_Rank_t)from, AQ_TAG_DATA, aq_temp_buffer(temp, from),
                     call->unit * count);
    }
    for (uint64_t rank = size - 1; rank-- > 0;)
        aq_prog_reduce(prog, call, rank == me ? mine : aq_temp_buffer(temp, rank), last, count);
    return last;
}

static struct aq_prog *aq_prog_slices(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    const uint64_t size = team->size, me = team->rank;
    const size_t bytes = call->unit * aq_slice_count(team, call, me);
    const bool to_all = call->kind == AQ_COLL_TO_ALL;
    struct aq_temp temp;
    struct aq_prog *prog = aq_prog_with_buffers(team, bytes, size, &temp);
    const void *result = aq_prog_reduce_slice(prog, team, call, &temp);

    /* With dst == src, a result that comes early overwrites a slice that has been sent: its
     * sender could not have computed it otherwise. */
    for (uint64_t step = 1; step < size; step++) {
        const gex_Rank_t to = (gex_Rank_t)((me + step) % size);

        if (to_all || to == call->root)
            aq_prog_send(prog, to, AQ_TAG_RESULT, result, bytes);
    }
    if (!to_all && me != call->root)
        return prog;
    aq_prog_copy(prog, (char *)call->dst + call->unit * aq_slice(team, call, me), result, bytes);
    for (uint64_t step = 1; step < size; step++) {
        const uint64_t from = (me + size - step) % size;

        aq_prog_recv(prog, (gex_Rank_t)from, AQ_TAG_RESULT,
                     (char *)call->dst + call->unit * aq_slice(team, call, from),
                     call->unit * aq_slice_count(team, call, from));
    }
    return prog;
}

struct aq_prog *aq_prog_of_reduction(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    if (team->size > 1 && call->count >= team->size
        && aq_call_bytes(call) / team->size >= AQ_SLICE)
        return aq_prog_slices(team, call);
    return call->kind == AQ_COLL_TO_ONE ? aq_prog_tree(team, call) : aq_prog_doubling(team, call);
}
