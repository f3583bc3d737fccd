/*
 * armci_lock.h - a lock in memory that several processes share: one word, and a sleep in the
 * kernel.
 *
 * Threads   any thread of any process that maps the word. The holder makes no call that could wait
 *           for another rank
 * States    FREE -> TAKEN <-> CONTENDED. A waiter sets CONTENDED before it sleeps, so that the
 *           holder wakes one waiter
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_ARMCI_LOCK_H
#define AQ_ARMCI_LOCK_H 1

#include <stdatomic.h>
#include <stdint.h>

enum { AQ_ARMCI_LOCK_FREE, AQ_ARMCI_LOCK_TAKEN, AQ_ARMCI_LOCK_CONTENDED };

/* Each lock has a cache line: locks of an array do not slow each other. A lock of zero bytes is
 * free. */
struct aq_armci_lock {
    _Alignas(64) _Atomic uint32_t word;
};

void aq_armci_lock_wait(struct aq_armci_lock *lock);
void aq_armci_lock_wake(struct aq_armci_lock *lock);

static inline void aq_armci_lock_take(struct aq_armci_lock *lock)
{
    uint32_t seen = AQ_ARMCI_LOCK_FREE;

    /* acquire: pairs with the release in aq_armci_lock_give(): the writes of the last holder are
     * visible. relaxed on failure: then aq_armci_lock_wait() acquires */
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &seen, AQ_ARMCI_LOCK_TAKEN,
                                                 memory_order_acquire, memory_order_relaxed))
        aq_armci_lock_wait(lock);
}

static inline void aq_armci_lock_give(struct aq_armci_lock *lock)
{
    /* release: pairs with the acquire of the next holder, who sees what this holder wrote */
    if (atomic_exchange_explicit(&lock->word, AQ_ARMCI_LOCK_FREE, memory_order_release)
        == AQ_ARMCI_LOCK_CONTENDED)
        aq_armci_lock_wake(lock);
}

/* The kernel's sleep and wake-up on a word that processes share. A sleep ends after at most max_ns
 * nanoseconds. The result is 0 if a wake-up has ended the sleep, ETIMEDOUT if that time has, EINTR
 * if a signal has; EAGAIN if the word is not what was seen. A wake-up ends one sleep, and returns
 * 1; 0: nobody slept. */
int aq_armci_futex_wait(_Atomic uint32_t *word, uint32_t seen, long max_ns);
int aq_armci_futex_wake(_Atomic uint32_t *word);

static inline void aq_armci_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

#endif
