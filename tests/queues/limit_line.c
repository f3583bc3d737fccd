/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_line.c - the physical limit: two processes write one cache line in turn, and nothing else.
 *
 * A round trip is two hand-overs of the line. With more ranks than cores it waits as the designs do,
 * so that the limit of a sleeping pair is two wake-ups. Kernels of one pair only (flood and the like)
 * are held against the ping-pong of ranks 0 and 1.
 *
 * Lines are not equally far: each has a home in the cache. A design walks over many lines, so the
 * limit takes another of 64 in each slice, by dice that both sides throw alike. `line` spins bare,
 * `line-pause` with a pause instruction; queue_bench.c takes the faster of the two as the limit.
 *
 * Two controls, not limits, use another line in each turn, as designs do, but without any of a queue's
 * work: `line-turn` the same line there and back, `lines-turn` another one for the way back.
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
    uint64_t dice;                /* thrown alike by both of a pair */
    bool pauses;
    uint64_t turn;                /* turns taken so far by both */
};

static inline void limit_wait(struct limit *limit, uint64_t turn)
{
    /* acquire, release: as a message would, though nothing rides on this line */
    while (atomic_load_explicit(&limit->line->turn, memory_order_acquire) != turn)
        limit->pauses ? bench_cpu_relax() : bench_idle(limit->world);
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

/* Another line for each slice. */
static void limit_choose_line(struct limit *limit)
{
    limit->dice = limit->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    limit->line = &limit->lines[(limit->dice >> 32) % LIMIT_LINES];
}

static bool limit_run_pairs(void *queue, uint64_t count, struct bench_span *span)
{
    struct limit *limit = queue;

    if ((limit->world->rank ^ 1) >= limit->world->ranks)
        return true;
    limit_choose_line(limit);
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

static inline bool limit_turn_sized(struct limit *limit, uint64_t count, struct bench_span *span,
                                    unsigned way_back)
{
    bool odd = limit->world->rank & 1;

    if ((limit->world->rank ^ 1) >= limit->world->ranks)
        return true;
    bench_span_start(span);
    for (uint64_t i = 0; i < count; i++) {
        struct line *there = &limit->lines[i % LIMIT_LINES];
        struct line *back = there + way_back;

        limit->line = there;
        if (odd)
            limit_wait(limit, limit->turn + 1);
        else
            limit_pass(limit, limit->turn + 1);
        limit->line = back;
        if (odd)
            limit_pass(limit, limit->turn + 2);
        else
            limit_wait(limit, limit->turn + 2);
        limit->turn += 2;
    }
    bench_span_end(span);
    return true;
}

static bool limit_run_turn(void *queue, uint64_t count, struct bench_span *span)
{
    return limit_turn_sized(queue, count, span, 0);
}

static bool limit_run_turns(void *queue, uint64_t count, struct bench_span *span)
{
    return limit_turn_sized(queue, count, span, LIMIT_LINES);
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

static void *limit_open_pause(struct bench_world *world, void *shared)
{
    struct limit *limit = limit_open(world, shared);

    if (limit != NULL)
        limit->pauses = world->dedicated;   /* else waiting is the scheduler's, not the spin's */
    return limit;
}

static void limit_close(void *limit)
{
    free(limit);
}

#define LIMIT_RUN                                                                     \
    {                                                                                 \
        [KERNEL_PAIRS] = limit_run_pairs, [KERNEL_PAIRS_TWO_LINES] = limit_run_pairs, \
        [KERNEL_FLOOD] = limit_run_first_pair, [KERNEL_FAN_IN] = limit_run_first_pair, \
        [KERNEL_RANDOM] = limit_run_first_pair, [KERNEL_IDLE] = limit_run_first_pair, \
    }

static const struct queue_design limit_design = {
    .name = "line",
    .what = "limit: one cache line written in turn by two processes",
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = LIMIT_RUN,
};

static const struct queue_design limit_pause_design = {
    .name = "line-pause",
    .what = "limit, pause instruction in the spin",
    .bytes = limit_bytes,
    .open = limit_open_pause,
    .close = limit_close,
    .run = LIMIT_RUN,
};

static const struct queue_design limit_turn_design = {
    .name = "line-turn",
    .what = "control: another line in each turn, the same there and back",
    .fine_point = true,
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = { [KERNEL_PAIRS] = limit_run_turn },
};

static const struct queue_design limit_turns_design = {
    .name = "lines-turn",
    .what = "control: another line in each turn and direction",
    .fine_point = true,
    .bytes = limit_bytes,
    .open = limit_open,
    .close = limit_close,
    .run = { [KERNEL_PAIRS] = limit_run_turns },
};

const struct queue_design *const limit_designs[] = {
    &limit_design, &limit_pause_design, &limit_turn_design, &limit_turns_design, NULL,
};
