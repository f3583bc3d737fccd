/*
 * aq_lock.h - the only place where seq and par differ: short locks and shared counters.
 *
 * A seq library is entered by one thread: its locks are empty and its counters plain. An aq_lock
 * protects a few instructions, never a client handler. A waiter spins, then yields the processor,
 * since the owner may have been descheduled.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_LOCK_H
#define AQ_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/aq_platform.h"

#if GASNET_SEQ
#define AQ_THREADED 0
#else
#define AQ_THREADED 1
#endif

#if AQ_THREADED

typedef struct aq_lock {
    atomic_uint locked;
} aq_lock;
#define AQ_LOCK_INITIALIZER \
    {                       \
        0                   \
    }

static inline bool aq_lock_try(aq_lock *lock)
{
    /* acquire: pairs with the release in aq_lock_release(). The relaxed load keeps the line shared
     * while another thread holds the lock. */
    return atomic_load_explicit(&lock->locked, memory_order_relaxed) == 0
           && atomic_exchange_explicit(&lock->locked, 1, memory_order_acquire) == 0;
}

static inline void aq_lock_acquire(aq_lock *lock)
{
    for (unsigned spins = 0; !aq_lock_try(lock); spins++) {
        if (spins < 64)
            aq_cpu_relax();
        else
            sched_yield();
    }
}

static inline void aq_lock_release(aq_lock *lock)
{
    /* release: the next owner sees what this one wrote */
    atomic_store_explicit(&lock->locked, 0, memory_order_release);
}

#else /* seq */

typedef struct aq_lock {
    char unused;
} aq_lock;
#define AQ_LOCK_INITIALIZER \
    {                       \
        0                   \
    }

static inline bool aq_lock_try(aq_lock *lock)
{
    (void)lock;
    return true;
}

static inline void aq_lock_acquire(aq_lock *lock)
{
    (void)lock;
}

static inline void aq_lock_release(aq_lock *lock)
{
    (void)lock;
}

#endif

/* A counter that several threads of this process change. */
typedef struct aq_counter {
    atomic_uint_fast64_t value;
} aq_counter;

/* Adds n and returns the new value. release and acquire: a reader of a count of completions also
 * sees what was completed. */
static inline uint64_t aq_counter_add(aq_counter *counter, uint64_t n)
{
#if AQ_THREADED
    return atomic_fetch_add_explicit(&counter->value, n, memory_order_acq_rel) + n;
#else
    uint64_t sum = atomic_load_explicit(&counter->value, memory_order_relaxed) + n;

    atomic_store_explicit(&counter->value, sum, memory_order_relaxed);
    return sum;
#endif
}

static inline uint64_t aq_counter_get(const aq_counter *counter)
{
    /* acquire: pairs with aq_counter_add() */
    return atomic_load_explicit(&((aq_counter *)(uintptr_t)counter)->value, memory_order_acquire);
}

#endif
