/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_common.h - what every design's struct queue begins with: handlers, dispatch, counters.
 *
 * Private to each rank. Included by the design files, before queue_kernels.h.
 */
#ifndef AQ_TESTS_QUEUE_COMMON_H
#define AQ_TESTS_QUEUE_COMMON_H

#include "queue_bench.h"

struct queue;

struct bench_token {
    struct queue *queue;          /* begins with its struct queue_base */
    const uint32_t *args, *more;  /* the first `near` arguments, the others */
    unsigned near;
    unsigned source;
};

typedef void (*bench_handler)(struct bench_token *token, uint32_t a0, uint32_t a1);

enum bench_handler_index {
    HANDLER_COUNT, HANDLER_PING, HANDLER_LONG_PING, HANDLER_PONG, HANDLER_DONE, HANDLERS = 256
};

/* A bit of a variant's options: its slots have no second line, kernels that need it leave it out. */
enum { QUEUE_FIRST_LINES_ONLY = 16 };

/* The first member of every struct queue. */
struct queue_base {
    struct bench_world *world;
    uint64_t handled;                     /* requests this rank has served */
    uint64_t replies;                     /* replies it has received */
    unsigned done;                        /* ranks that have sent their last request */
    unsigned polled;                      /* keeps the idle polls from being optimised away */
    bool in_order;                        /* no message lost, doubled or overtaken */
    uint32_t expected[BENCH_MAX_RANKS];   /* next number from each sender of a stream */
    bench_handler handlers[HANDLERS];
};

/* A pointer to a struct points to its first member too. */
static inline struct queue_base *bench_base(struct queue *q)
{
    return (struct queue_base *)(void *)q;
}

static inline void bench_span_start(struct bench_span *span)
{
    span->took_part = true;
    span->start_ns = bench_now_ns();
}

static inline void bench_span_end(struct bench_span *span)
{
    span->end_ns = bench_now_ns();
}

static inline void bench_on_count(struct bench_token *token, uint32_t a0, uint32_t a1)
{
    struct queue_base *q = bench_base(token->queue);

    if (BENCH_UNLIKELY(a0 != q->expected[token->source] || a1 != ~a0))
        q->in_order = false;
    q->expected[token->source] = a0 + 1;
    q->handled++;
}

static inline void bench_on_pong(struct bench_token *token, uint32_t a0, uint32_t a1)
{
    (void)a0;
    (void)a1;
    bench_base(token->queue)->replies++;
}

static inline void bench_on_done(struct bench_token *token, uint32_t a0, uint32_t a1)
{
    (void)a0;
    (void)a1;
    bench_base(token->queue)->done++;
}

static inline void queue_set_handlers(struct queue *q)
{
    bench_handler *handlers = bench_base(q)->handlers;

    handlers[HANDLER_COUNT] = bench_on_count;
    handlers[HANDLER_PONG] = bench_on_pong;
    handlers[HANDLER_DONE] = bench_on_done;
}

static inline void bench_expect_restart(struct queue *q)
{
    for (unsigned i = 0; i < BENCH_MAX_RANKS; i++)
        bench_base(q)->expected[i] = 0;
}

static inline void queue_call(struct queue *q, unsigned source, uint8_t handler,
                              const uint32_t *args, unsigned near, const uint32_t *more)
{
    struct bench_token token = { .queue = q, .args = args, .more = more, .near = near,
                                 .source = source };

    bench_base(q)->handlers[handler](&token, args[0], args[1]);
}

static inline void queue_dispatch(struct queue *q, unsigned source, const struct slot *slot)
{
    queue_call(q, source, slot->handler, slot->args, BENCH_LINE_ARGS, slot->more);
}

/* Everything but the number that publishes the slot. */
static inline void queue_fill_slot(struct slot *slot, unsigned source, uint8_t handler,
                                   unsigned nargs, const uint32_t *args)
{
    slot->handler = handler;
    slot->nargs = (uint8_t)nargs;
    slot->source = (uint16_t)source;
    if (BENCH_LIKELY(nargs <= 2)) {
        slot->args[0] = args[0];
        slot->args[1] = args[1];
        return;
    }
    for (unsigned i = 0; i < nargs && i < BENCH_LINE_ARGS; i++)
        slot->args[i] = args[i];
    for (unsigned i = BENCH_LINE_ARGS; i < nargs; i++)
        slot->more[i - BENCH_LINE_ARGS] = args[i];
}

static inline uint64_t bench_dice_start(unsigned rank)
{
    return UINT64_C(0x9e3779b97f4a7c15) * (rank + 1);
}

/* xorshift64: any rank but oneself */
static inline unsigned bench_dice_rank(uint64_t *dice, unsigned rank, unsigned ranks)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return (rank + 1 + (unsigned)((*dice >> 32) % (ranks - 1))) % ranks;
}

#endif
