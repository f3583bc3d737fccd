/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_line.c - the physical limit: two processes write one cache line in turn, and nothing else.
 *
 * A round trip is two hand-overs of the line. With more ranks than cores it waits as the designs do,
 * so that the limit of a sleeping pair is two wake-ups. Kernels of one pair only (flood and the like)
 * are held against the ping-pong of ranks 0 and 1.
 *
 * Two controls, not limits, show where a design's time goes: `line-any` takes another of 64 lines in
 * each slice (lines are not equally far), `lines-turn` another line in each turn and each direction,
 * as a ring does, but without any of a queue's work.
 */
#include "queue_common.h"

#include <stdlib.h>

struct line {
    _Alignas(BENCH_PAIR) _Atomic uint64_t turn;
};

enum { LIMIT_LINES = 64 };        /* as many as a ring has slots */

struct limit {
    struct bench_world *world;
    struct line *lines;           /* the pair's: LIMIT_LINES, and as many for the way back */
    struct line *line;            /* the one in use */
    unsigned slice;
    uint64_t turn;                /* turns taken so far by both */
};

static inline void limit_wait(struct limit *limit, uint64_t turn)
{
    /* acquire, release: as a message would, though nothing rides on this line */
    while (atomic_load_explicit(&limit->line->turn, memory_order_acquire) != turn)
        bench_idle(limit->world);
    if (!limit->world->dedicated)
        bench_busy(limit->world);
}

static inline void limit_pass(struct limit *limit, uint64_t turn)
{
    /* release: see limit_wait() */
    atomic_store_explicit(&limit->line->turn, turn, memory_order_release);
    if (!limit->world->dedicated)
        bench_notify(limit->world, limit->world->rank ^ 1);
}

static bool limit_run_pairs(void *queue, uint64_t count, struct bench_span *span)
{
    struct limit *limit = queue;

    if ((limit->world->rank ^ 1) >= limit->world->ranks)
        return true;
    bench_span_start(span);
    for (uint64_t i = 0; i < count; i++) {
        if (limit->world->rank & 1) {
            limit_wait(limit, limit->turn + 1);
            limit_pass(limit, limit->turn + 2);
        } else {
            limit_pass(limit, limit->turn + 1);
            limit_wait(limit, limit->turn + 2);
        }
        limit->turn += 2;
    }
    bench_span_end(span);
    return true;
}

static bool limit_run_first_pair(void *queue, uint64_t count, struct bench_span *span)
{
    struct limit *limit = queue;

    return limit->world->rank > 1 ? true : limit_run_pairs(queue, count, span);
}

static bool limit_run_any(void *queue, uint64_t count, struct bench_span *span)
{
    struct limit *limit = queue;

    limit->line = &limit->lines[limit->slice++ % LIMIT_LINES];
    return limit_run_pairs(queue, count, span);
}

static bool limit_run_turn(void *queue, uint64_t count, struct bench_span *span)
{
    struct limit *limit = queue;
    bool odd = limit->world->rank & 1;

    if ((limit->world->rank ^ 1) >= limit->world->ranks)
        return true;
    bench_span_start(span);
    for (uint64_t i = 0; i < count; i++) {
        struct line *there = &limit->lines[limit->turn % LIMIT_LINES];
        struct line *back = there + LIMIT_LINES;

        limit->line = odd ? there : back;
        if (odd)
            limit_wait(limit, limit->turn + 1);
        limit->line = odd ? back : there;
        limit_pass(limit, limit->turn + 1);
        limit->line = back;
        if (!odd)
            limit_wait(limit, limit->turn + 1);
        limit->turn++;
    }
    bench_span_end(span);
    return true;
}

static size_t limit_bytes(unsigned ranks)
{
    return (size_t)ranks * LIMIT_LINES * sizeof(struct line);
}

static void *limit_open(struct bench_world *world, void *shared)
{
    struct limit *limit = calloc(1, sizeof(*limit));

    if (limit != NULL) {
        limit->world = world;
        limit->lines = (struct line *)shared + (size_t)(world->rank / 2) * 2 * LIMIT_LINES;
        limit->line = limit->lines;
    }
    return limit;
}

static void limit_close(void *limit)
{
    free(limit);
}

static const struct queue_design limit_design = {
    .name = "line",
    .what = "limit: one cache line written in turn by two processes",
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = {
        [KERNEL_PAIRS] = limit_run_pairs,
        [KERNEL_PAIRS_TWO_LINES] = limit_run_pairs,
        [KERNEL_FLOOD] = limit_run_first_pair,
        [KERNEL_FAN_IN] = limit_run_first_pair,
        [KERNEL_RANDOM] = limit_run_first_pair,
        [KERNEL_IDLE] = limit_run_first_pair,
    },
};

static const struct queue_design limit_any_design = {
    .name = "line-any",
    .what = "control: another line in each slice",
    .fine_point = true,
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = { [KERNEL_PAIRS] = limit_run_any },
};

static const struct queue_design limit_turn_design = {
    .name = "lines-turn",
    .what = "control: another line in each turn and direction",
    .fine_point = true,
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = { [KERNEL_PAIRS] = limit_run_turn },
};

const struct queue_design *const limit_designs[] = {
    &limit_design, &limit_any_design, &limit_turn_design, NULL,
};
