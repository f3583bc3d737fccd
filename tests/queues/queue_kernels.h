/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_kernels.h - the measured loops, compiled once for each variant of a design.
 *
 * A template: a design file defines struct queue, whose first member is a
 * struct queue_base named base, and
 *
 *     static inline void queue_send(struct queue *, unsigned target, enum bench_channel,
 *                                   uint8_t handler, unsigned nargs, const uint32_t *args,
 *                                   unsigned options);
 *     static inline unsigned queue_poll(struct queue *, unsigned channels, unsigned options);
 *     static size_t queue_bytes(unsigned ranks);
 *     static void *queue_open(struct bench_world *, void *shared);
 *     static void queue_close(void *);
 *
 * then includes this file for each variant, with VARIANT_NAME (an identifier), VARIANT_TITLE,
 * VARIANT_WHAT, VARIANT_OPTIONS (a constant, so that the variants are separate code) and
 * VARIANT_FINE. Send and poll are calls, not inlined into the loops, and handlers run through a
 * table by their index: a library cannot do with less.
 */

#define KN_PASTE_(a, b) a##_##b
#define KN_PASTE(a, b) KN_PASTE_(a, b)
#define KN(name) KN_PASTE(VARIANT_NAME, name)

__attribute__((noinline)) static void KN(send)(struct queue *q, unsigned target,
                                               enum bench_channel channel, uint8_t handler,
                                               unsigned nargs, const uint32_t *args)
{
    queue_send(q, target, channel, handler, nargs, args, VARIANT_OPTIONS);
}

__attribute__((noinline)) static void KN(poll)(struct queue *q)
{
    if (queue_poll(q, CHANNELS, VARIANT_OPTIONS) != 0)
        bench_busy(q->base.world);
    else
        bench_idle(q->base.world);
}

__attribute__((noinline)) static unsigned KN(poll_once)(struct queue *q)
{
    return queue_poll(q, CHANNELS, VARIANT_OPTIONS);
}

static void KN(on_ping)(struct bench_token *token, uint32_t a0, uint32_t a1)
{
    const uint32_t args[2] = { a0, a1 };

    token->queue->base.handled++;
    KN(send)(token->queue, token->source, CHANNEL_REPLY, HANDLER_PONG, 2, args);
}

static void KN(on_long_ping)(struct bench_token *token, uint32_t a0, uint32_t a1)
{
    uint32_t args[BENCH_MORE_ARGS] = { a0, a1 };

    for (unsigned i = 2; i < BENCH_MORE_ARGS; i++)
        args[i] = i < token->near ? token->args[i] : token->more[i - token->near];
    token->queue->base.handled++;
    KN(send)(token->queue, token->source, CHANNEL_REPLY, HANDLER_PONG, BENCH_MORE_ARGS, args);
}

static void KN(set_handlers)(struct queue *q)
{
    queue_set_handlers(q);
    q->base.handlers[HANDLER_PING] = KN(on_ping);
    q->base.handlers[HANDLER_LONG_PING] = KN(on_long_ping);
}

static bool KN(run_pairs_sized)(struct queue *q, uint64_t count, struct bench_span *span,
                                uint8_t handler, unsigned nargs)
{
    unsigned peer = q->base.world->rank ^ 1;
    uint32_t args[BENCH_MORE_ARGS] = { 0 };

    if (peer >= q->base.world->ranks)
        return true;
    KN(set_handlers)(q);
    q->base.handled = q->base.replies = 0;
    args[1] = nargs;
    bench_span_start(span);
    if (q->base.world->rank & 1) {
        while (q->base.handled < count)
            KN(poll)(q);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            args[0] = (uint32_t)i;
            KN(send)(q, peer, CHANNEL_REQUEST, handler, nargs, args);
            while (q->base.replies <= i)
                KN(poll)(q);
        }
    }
    bench_span_end(span);
    return q->base.in_order;
}

static bool KN(run_pairs)(void *queue, uint64_t count, struct bench_span *span)
{
    return KN(run_pairs_sized)(queue, count, span, HANDLER_PING, 2);
}

static bool KN(run_pairs_two_lines)(void *queue, uint64_t count, struct bench_span *span)
{
    return KN(run_pairs_sized)(queue, count, span, HANDLER_LONG_PING, BENCH_MORE_ARGS);
}

/* senders 1..last (or 0 alone) send `each` numbered messages to target, which counts them */
static bool KN(run_stream)(struct queue *q, bool sends, unsigned target, uint64_t each,
                           uint64_t expected, struct bench_span *span)
{
    KN(set_handlers)(q);
    q->base.handled = 0;
    bench_expect_restart(q);
    bench_span_start(span);
    if (sends) {
        for (uint64_t i = 0; i < each; i++) {
            const uint32_t args[2] = { (uint32_t)i, (uint32_t)~i };

            KN(send)(q, target, CHANNEL_REQUEST, HANDLER_COUNT, 2, args);
        }
    } else {
        while (q->base.handled < expected)
            KN(poll)(q);
    }
    bench_span_end(span);
    return q->base.in_order;
}

static bool KN(run_flood)(void *queue, uint64_t count, struct bench_span *span)
{
    struct queue *q = queue;

    if (q->base.world->rank > 1)
        return true;
    return KN(run_stream)(q, q->base.world->rank == 0, 1, count, count, span);
}

static bool KN(run_fan_in)(void *queue, uint64_t count, struct bench_span *span)
{
    struct queue *q = queue;
    unsigned senders = q->base.world->ranks - 1;
    uint64_t each = (count + senders - 1) / senders;

    return KN(run_stream)(q, q->base.world->rank != 0, 0, each, each * senders, span);
}

static bool KN(run_random)(void *queue, uint64_t count, struct bench_span *span)
{
    enum { WINDOW = 16 };
    struct queue *q = queue;
    unsigned ranks = q->base.world->ranks;
    uint64_t each = (count + ranks - 1) / ranks;
    uint64_t dice = bench_dice_start(q->base.world->rank);

    KN(set_handlers)(q);
    q->base.handled = q->base.replies = 0;
    bench_span_start(span);
    for (uint64_t i = 0; i < each; i++) {
        unsigned target = bench_dice_rank(&dice, q->base.world->rank, ranks);
        const uint32_t args[2] = { (uint32_t)i, target };

        KN(send)(q, target, CHANNEL_REQUEST, HANDLER_PING, 2, args);
        KN(poll)(q);
        while (i + 1 - q->base.replies >= WINDOW)
            KN(poll)(q);
    }
    while (q->base.replies < each)
        KN(poll)(q);
    for (unsigned target = 0; target < ranks; target++) {   /* no more requests from here */
        const uint32_t args[2] = { 0, 0 };

        if (target != q->base.world->rank)
            KN(send)(q, target, CHANNEL_REQUEST, HANDLER_DONE, 2, args);
    }
    while (q->base.done < ranks - 1)
        KN(poll)(q);
    q->base.done = 0;
    bench_span_end(span);
    return q->base.in_order;
}

static bool KN(run_idle)(void *queue, uint64_t count, struct bench_span *span)
{
    struct queue *q = queue;
    bool ok = KN(run_fan_in)(q, q->base.world->ranks - 1, span);

    span->took_part = false;
    if (q->base.world->rank != 0)
        return ok;
    bench_span_start(span);
    for (uint64_t i = 0; i < count; i++) {
        q->base.polled += KN(poll_once)(q);
        __asm__ __volatile__("" ::: "memory");
    }
    bench_span_end(span);
    return ok;
}

static const struct queue_design KN(design) = {
    .name = VARIANT_TITLE,
    .what = VARIANT_WHAT,
    .fine_point = VARIANT_FINE,
    .bytes = queue_bytes,
    .open = queue_open,
    .close = queue_close,
    .run = {
        [KERNEL_PAIRS] = KN(run_pairs),
        [KERNEL_PAIRS_TWO_LINES] = (VARIANT_OPTIONS) & QUEUE_FIRST_LINES_ONLY
                                       ? NULL : KN(run_pairs_two_lines),
        [KERNEL_FLOOD] = KN(run_flood),
        [KERNEL_FAN_IN] = KN(run_fan_in),
        [KERNEL_RANDOM] = KN(run_random),
        [KERNEL_IDLE] = KN(run_idle),
    },
};

#undef KN
#undef KN_PASTE
#undef KN_PASTE_
#undef VARIANT_NAME
#undef VARIANT_TITLE
#undef VARIANT_WHAT
#undef VARIANT_OPTIONS
#undef VARIANT_FINE
