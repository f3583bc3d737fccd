/* SPDX-License-Identifier: BSD-3-Clause
 *
 * queue_wait.c - how a rank with nothing to do waits, and the clock of queue-bench.
 *
 * Owns the futex and membarrier calls. Spin first (queue_bench.h), then yield, then sleep:
 *
 *   sleeper                                sender
 *     asleep = 1                             publish message
 *     membarrier (all registered processes)  (compiler fence)
 *     poll once more                         if asleep: asleep = 0, futex wake
 *     futex wait while asleep == 1
 *
 * The membarrier is a full fence in every sender that is running, so either the sender's load sees
 * the flag, or the sleeper's last poll sees the message. The sender needs no fence of its own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "queue_bench.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Once in every rank, before it sends anything. */
bool bench_wait_init(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void bench_futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    /* returns early on a signal or when *word != seen: callers look again */
    syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
}

void bench_futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

/* Patience is out: yield a few times, then arm the wake flag, then (after one more poll) sleep. */
void bench_wait_long(struct bench_world *world)
{
    struct bench_patience *patience = &world->patience;
    _Atomic uint32_t *asleep = &world->wake[world->rank].asleep;

    if (patience->empty <= patience->spins + patience->yields) {
        sched_yield();
    } else if (!patience->armed) {
        /* relaxed: the membarrier below orders it against every sender's publication */
        atomic_store_explicit(asleep, 1, memory_order_relaxed);
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
        patience->armed = true;
    } else {
        bench_futex_wait(asleep, 1);
        patience->armed = false;
        patience->empty = 0;
        /* relaxed: as in bench_busy() */
        atomic_store_explicit(asleep, 0, memory_order_relaxed);
    }
}

void bench_wake(struct wake_line *wake)
{
    /* relaxed: the exchange only picks which of several senders makes the system call */
    if (atomic_exchange_explicit(&wake->asleep, 0, memory_order_relaxed) != 0)
        bench_futex_wake(&wake->asleep, 1);
}

/* A sender found the queue full and polled nothing itself. Nobody wakes it, so it must not sleep. */
void bench_blocked(const struct bench_world *world)
{
    if (world->dedicated)
        bench_cpu_relax();
    else
        sched_yield();
}
