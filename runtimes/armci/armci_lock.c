/*
 * armci_lock.c - the slow path of armci_lock.h: spin with growing pauses, then sleep. No state.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AQ_ARMCI_SPIN_MAX 256 /* pauses, about as long as an accumulate holds a lock */

int aq_armci_futex_wait(_Atomic uint32_t *word, uint32_t seen, long max_ns)
{
    const struct timespec limit = { max_ns / 1000000000, max_ns % 1000000000 };

    /* not FUTEX_PRIVATE: several processes map the word. Any result means: look again */
    return syscall(SYS_futex, (uint32_t *)word, FUTEX_WAIT, seen, &limit, NULL, 0) == 0 ? 0 : errno;
}

int aq_armci_futex_wake(_Atomic uint32_t *word)
{
    return (int)syscall(SYS_futex, (uint32_t *)word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Returns 1 if the lock was taken within a short time. */
static int spin(struct aq_armci_lock *lock)
{
    for (int pauses = 1; pauses <= AQ_ARMCI_SPIN_MAX; pauses *= 2) {
        uint32_t seen = AQ_ARMCI_LOCK_FREE;

        for (int i = 0; i < pauses; i++)
            aq_armci_cpu_pause();
        /* relaxed: a load first, so that the cache line stays with the holder; acquire as in
         * aq_armci_lock_take() */
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == AQ_ARMCI_LOCK_FREE
            && atomic_compare_exchange_strong_explicit(&lock->word, &seen, AQ_ARMCI_LOCK_TAKEN,
                                                       memory_order_acquire, memory_order_relaxed))
            return 1;
    }
    return 0;
}

void aq_armci_lock_wait(struct aq_armci_lock *lock)
{
    if (spin(lock))
        return;
    /* acquire as in aq_armci_lock_take(). A waiter that has slept takes the lock as CONTENDED:
     * other waiters may sleep, too */
    while (atomic_exchange_explicit(&lock->word, AQ_ARMCI_LOCK_CONTENDED, memory_order_acquire)
           != AQ_ARMCI_LOCK_FREE)
        (void)aq_armci_futex_wait(&lock->word, AQ_ARMCI_LOCK_CONTENDED, 1000000000);
}

void aq_armci_lock_wake(struct aq_armci_lock *lock)
{
    (void)aq_armci_futex_wake(&lock->word);
}
