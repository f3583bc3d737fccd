/*
 * test_coll_large.c - large collectives of all kinds at once: operands in segments, on the heap and
 * in static memory, in place and not, written again as soon as a call is complete.
 * Ranks 1+. Conduits all. Source GASNet-EX specification 0.19, Collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"
#include "gasnet_coll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN = 4, HIGHEST = 48000, SPACE = HIGHEST * sizeof(uint64_t) };
enum kind { BROADCAST, TO_ONE, TO_ALL, ORDERED_ONE, ORDERED_ALL, KINDS };

/* One call: every rank draws the same kind, root, count and place of dst. */
struct call {
    enum kind kind;
    gex_Rank_t root;
    size_t count;
    bool in_place;
    uint64_t *src, *dst;
    gex_Event_t event;
};
static struct call calls[OPEN];
static uint64_t statics[OPEN][HIGHEST];

static uint64_t word(gex_Rank_t rank, int i, size_t k)
{
    return (uint64_t)(rank + 2) << 32
           | ((uint64_t)rank * 1000003u + (unsigned)i * 131u + k * 7u + 1);
}

/* Words of two halves, a and b: functions x -> a x + b, composed. No two of them commute. */
static uint64_t compose(uint64_t outer, uint64_t inner)
{
    const uint32_t a = (uint32_t)(outer >> 32), b = (uint32_t)outer;

    return (uint64_t)(a * (uint32_t)(inner >> 32)) << 32 | (uint32_t)(a * (uint32_t)inner + b);
}

static void op_compose(const void *arg1, void *arg2, size_t count, const void *cdata)
{
    const uint64_t *x = arg1;
    uint64_t *y = arg2;

    (void)cdata;
    for (size_t i = 0; i < count; i++)
        y[i] = compose(x[i], y[i]);
}

static uint64_t expected(const struct call *call, int i, size_t k)
{
    uint64_t result = word(aq_test_n - 1, i, k);

    if (call->kind == BROADCAST)
        return word(call->root, i, k);
    for (gex_Rank_t rank = aq_test_n - 1; rank-- > 0;) {
        const uint64_t left = word(rank, i, k);

        result =
            call->kind == TO_ONE || call->kind == TO_ALL ? left + result : compose(left, result);
    }
    return result;
}

/* Memory for call i: in the segment if there is one, on the heap, or static. */
static uint64_t *place(int i, unsigned draw, bool attached, uint64_t *heap)
{
#if !GASNET_SEGMENT_EVERYTHING
    if (attached && draw % 3 == 0)
        return (uint64_t *)aq_test_base(aq_test_me) + (size_t)i * HIGHEST;
#else
    (void)attached;
#endif
    return draw % 3 == 1 ? statics[i] : heap;
}

static void start(int i, uint64_t *state, uint64_t *own_state, bool attached,
                  uint64_t *const heap[2])
{
    struct call *call = &calls[i];
    const uint64_t r = aq_test_random(state);
    const bool ordered = (call->kind = (enum kind)(r % KINDS)) >= ORDERED_ONE;
    const gex_DT_t dt = ordered ? GEX_DT_USER : GEX_DT_U64;
    const gex_OP_t op = ordered ? GEX_OP_USER_NC : GEX_OP_ADD;
    const gex_Coll_ReduceFn_t fn = ordered ? op_compose : NULL;

    call->root = (gex_Rank_t)(r / 8 % aq_test_n);
    call->count = 1800 + (size_t)(r / 4096 % (HIGHEST - 1800)) / (r / 64 % 4 == 0 ? 1 : 12);
    call->in_place = r / 256 % 2 == 0;
    /* places differ between ranks */
    call->dst = place(i, (unsigned)aq_test_random(own_state), attached, heap[0]);
    call->src = call->in_place ? call->dst : heap[1];
    for (size_t k = 0; k < call->count; k++)
        call->src[k] = word(aq_test_me, i, k);
    if (call->kind == BROADCAST)
        call->event = gex_Coll_BroadcastNB(aq_test_tm, call->root, call->dst, call->src,
                                           call->count * sizeof(uint64_t), 0);
    else if (call->kind == TO_ONE || call->kind == ORDERED_ONE)
        call->event = gex_Coll_ReduceToOneNB(aq_test_tm, call->root, call->dst, call->src, dt,
                                             sizeof(uint64_t), call->count, op, fn, NULL, 0);
    else
        call->event = gex_Coll_ReduceToAllNB(aq_test_tm, call->dst, call->src, dt, sizeof(uint64_t),
                                             call->count, op, fn, NULL, 0);
}

/* After the wait the client writes to src at once: no rank may still read it. */
static void finish(int i)
{
    const struct call *call = &calls[i];
    const bool gets =
        (call->kind != TO_ONE && call->kind != ORDERED_ONE) || call->root == aq_test_me;
    size_t wrong = 0;

    gex_Event_Wait(call->event);
    if (!call->in_place)
        memset(call->src, 0xdd, call->count * sizeof(uint64_t));
    for (size_t k = 0; gets && k < call->count; k++)
        wrong += call->dst[k] != expected(call, i, k);
    memset(call->dst, 0xdd, call->count * sizeof(uint64_t));
    if (wrong != 0)
        aq_test_fail(__FILE__, __LINE__, "call %d, kind %d, root %u, %zu words, %s: %zu wrong", i,
                     (int)call->kind, call->root, call->count,
                     call->in_place ? "in place" : "not in place", wrong);
}

static void many(int rounds, bool attached)
{
    static uint64_t *heap[OPEN][2];
    uint64_t state = 7 + attached, own_state = aq_test_me + 1;

    for (int i = 0; i < OPEN; i++)
        for (int j = 0; j < 2; j++)
            heap[i][j] = malloc(SPACE);
    for (int round = 0; round < rounds; round++) {
        const bool late = (unsigned)round % (2 * aq_test_n) == aq_test_me;

        for (int i = 0; i < OPEN; i++) {
            if (late && i == 1)
                usleep(2000);
            start(i, &state, &own_state, attached, heap[i]);
        }
        for (int i = 0; i < OPEN; i++)
            finish(aq_test_me % 2 == 0 ? i : OPEN - 1 - i);
    }
    for (int i = 0; i < OPEN; i++)
        for (int j = 0; j < 2; j++)
            free(heap[i][j]);
}

/* Waiters sleep long before the last rank comes, and go on soon after. */
static void late_member(void)
{
    static uint64_t words[HIGHEST];
    const gex_Rank_t root = aq_test_n - 1;

    for (int round = 0; round < 2; round++) {
        const bool late = (round == 0) == (aq_test_me == root);

        for (size_t k = 0; k < HIGHEST; k++)
            words[k] = aq_test_me == root ? k + (unsigned)round : 0;
        aq_test_barrier();
        if (late)
            usleep(300000);
        gex_Event_Wait(gex_Coll_BroadcastNB(aq_test_tm, root, words, words, sizeof(words), 0));
        AQ_CHECK(words[1] == 1u + (unsigned)round
                 && words[HIGHEST - 1] == HIGHEST - 1u + (unsigned)round);
    }
}

/* Every rank gets the same bits, also of what compares equal or not at all. */
static void same_bits(gex_OP_t op)
{
    static double src[HIGHEST], dst[HIGHEST], first[HIGHEST];

    for (size_t k = 0; k < HIGHEST; k++)
        src[k] = (k + aq_test_me) % 3 == 0 ? NAN : (k / 3 + aq_test_me) % 2 == 0 ? 0.0 : -0.0;
    gex_Event_Wait(gex_Coll_ReduceToAllNB(aq_test_tm, dst, src, GEX_DT_DBL, sizeof(double), HIGHEST,
                                          op, NULL, NULL, 0));
    memcpy(first, dst, sizeof(first));
    gex_Event_Wait(gex_Coll_BroadcastNB(aq_test_tm, 0, first, first, sizeof(first), 0));
    AQ_CHECK(memcmp(first, dst, sizeof(first)) == 0);
}

int main(int argc, char **argv)
{
    const int rounds = aq_test_quick ? 12 : 60;

    aq_test_start(&argc, &argv, 1);
    rule("extended 12.1: large ones before attach");
    many(rounds / 4, false);
    aq_test_segment((size_t)OPEN * SPACE);
    rule("extended 12.1: src may be written, and dst read, when the event is synced");
    many(rounds, true);
    rule("extended 12.1, 16.3: the root, or the others, come late");
    late_member();
    rule("extended 12.4: a built-in operation gives every rank the same bits");
    same_bits(GEX_OP_MIN);
    same_bits(GEX_OP_MAX);
    same_bits(GEX_OP_ADD);
    return aq_test_finish();
}
