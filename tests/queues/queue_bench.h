/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_bench.h - what the queue designs and the driver of queue-bench share.
 *
 * A design moves short active messages between processes over one shared mapping. This
 * header owns the slot layout of most designs, the world every rank sees, the waiting policy of an idle rank (spin,
 * yield, sleep) and the table a design fills in. One thread a rank. Depends on Linux only, on
 * nothing of the library: the benchmark was written to choose the library's queue.
 */
#ifndef AQ_TESTS_QUEUE_BENCH_H
#define AQ_TESTS_QUEUE_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_LIKELY(x) __builtin_expect(!!(x), 1)
#define BENCH_UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
    BENCH_LINE = 64,
    BENCH_PAIR = 128,         /* two lines: the neighbour is fetched along with a line */
    BENCH_MAX_RANKS = 64,     /* one bitmap word of senders */
    BENCH_LINE_ARGS = 10,     /* arguments that fit in the first line of a slot */
    BENCH_MORE_ARGS = 16,
    BENCH_POLL_BURST = 16,    /* messages taken from one queue before looking at the next */
};

/* Replies have a queue of their own, so that a rank blocked while replying can drain them alone:
 * reply handlers send nothing, which is why nothing can dead-lock. */
enum bench_channel { CHANNEL_REPLY, CHANNEL_REQUEST, CHANNELS };

struct slot {
    _Atomic uint32_t seq;     /* number of the message, from 1; stored last by the sender */
    uint8_t handler;
    uint8_t nargs;
    uint16_t source;
    uint32_t args[BENCH_LINE_ARGS];
    uint64_t place[2];        /* where a Long payload is, its length */
    uint32_t more[BENCH_MORE_ARGS];
};
_Static_assert(sizeof(struct slot) == BENCH_PAIR, "a slot is two cache lines");

/* Written by the rank it belongs to before and after sleeping, read by all who send to it. */
struct wake_line {
    _Alignas(BENCH_PAIR) _Atomic uint32_t asleep;
};

/* How long an idle rank spins and yields before it sleeps. */
struct bench_patience {
    unsigned spins;           /* empty polls before the first sched_yield */
    unsigned yields;          /* sched_yields before the sleep */
    unsigned empty;           /* empty polls so far */
    bool armed;               /* asleep is set and visible: one more poll, then sleep */
};

struct bench_world {
    unsigned rank;
    unsigned ranks;
    bool dedicated;           /* a core for every rank: never yield, never sleep */
    struct wake_line *wake;   /* [ranks] */
    struct bench_patience patience;
};

/* What a kernel reports to the driver. */
struct bench_span {
    uint64_t start_ns;
    uint64_t end_ns;
    bool took_part;
};

enum bench_kernel {
    KERNEL_PAIRS,             /* round trips, every even rank with its odd neighbour */
    KERNEL_PAIRS_TWO_LINES,   /* the same with 16 arguments: both lines of the slot travel */
    KERNEL_FLOOD,             /* rank 0 to rank 1, requests without replies */
    KERNEL_FAN_IN,            /* everybody to rank 0, no replies */
    KERNEL_RANDOM,            /* everybody to random ranks, each request answered */
    KERNEL_IDLE,              /* rank 0 polls empty queues that all others have used */
    KERNELS
};

struct queue_design {
    const char *name;
    const char *what;
    bool fine_point;          /* a variant about single nanoseconds: measured at 2 ranks only */
    size_t (*bytes)(unsigned ranks);
    void *(*open)(struct bench_world *world, void *shared);   /* process-private state */
    void (*close)(void *queue);
    /* Runs `count` operations of a kernel on this rank; false: a message was lost or out of order. */
    bool (*run[KERNELS])(void *queue, uint64_t count, struct bench_span *span);
};

/* Designs and variants, ended by NULL. The first of each list is the base the others vary. */
extern const struct queue_design *const limit_designs[];
extern const struct queue_design *const pair_designs[];
extern const struct queue_design *const ring_designs[];
extern const struct queue_design *const mpsc_designs[];
extern const struct queue_design *const bell_designs[];

/* queue_wait.c */
uint64_t bench_now_ns(void);
bool bench_wait_init(void);
void bench_wait_long(struct bench_world *world);
void bench_wake(struct wake_line *wake);
void bench_blocked(const struct bench_world *world);
void bench_futex_wait(_Atomic uint32_t *word, uint32_t seen);
void bench_futex_wake(_Atomic uint32_t *word, int count);

static inline void bench_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* After a poll that found nothing. */
static inline void bench_idle(struct bench_world *world)
{
    if (BENCH_LIKELY(world->dedicated))
        return;
    if (++world->patience.empty <= world->patience.spins)
        return;
    bench_wait_long(world);
}

/* After a poll that found something. */
static inline void bench_busy(struct bench_world *world)
{
    world->patience.empty = 0;
    if (BENCH_UNLIKELY(world->patience.armed)) {
        world->patience.armed = false;
        /* relaxed: at worst a sender wakes a rank that is awake */
        atomic_store_explicit(&world->wake[world->rank].asleep, 0, memory_order_relaxed);
    }
}

/*
 * After a message was published: wake its receiver if it sleeps. No fence stands between the
 * publication and this load; the sleeper pays for it with a membarrier after setting its flag.
 */
static inline void bench_notify(struct bench_world *world, unsigned target)
{
    struct wake_line *wake = &world->wake[target];

    atomic_signal_fence(memory_order_seq_cst);
    /* relaxed: ordered by the sleeper's membarrier, see bench_wait_long() */
    if (BENCH_UNLIKELY(atomic_load_explicit(&wake->asleep, memory_order_relaxed) != 0))
        bench_wake(wake);
}

#endif
