/*
 * aq_hsl.c - handler-safe locks: what the inline part leaves over.
 *
 * A waiter spins briefly, then marks the word 2 and sleeps on it in the kernel; the owner then
 * wakes one sleeper when it unlocks. Locks are private to a process.
 * Uses futex. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gasnetex.h"

#include "core/aq_job.h"
#include "core/aq_log.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"

#define AQ_HSL_SPINS 100

static void aq_hsl_await(gex_HSL_t *hsl)
{
    for (int spins = 0; spins < AQ_HSL_SPINS && !aq_job.oversubscribed; spins++) {
        uint32_t was_free = 0;

        aq_cpu_relax();
        if (__atomic_load_n(&hsl->word, __ATOMIC_RELAXED) == 0
            && __atomic_compare_exchange_n(&hsl->word, &was_free, 1u, false, __ATOMIC_ACQUIRE,
                                           __ATOMIC_RELAXED))
            return;
    }
    /* acquire: pairs with the release in gex_HSL_Unlock(). From here we own the lock with the
     * word at 2, which costs our unlock one needless wake at most. */
    while (__atomic_exchange_n(&hsl->word, 2u, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &hsl->word, FUTEX_WAIT_PRIVATE, 2u, NULL, NULL, 0);
}

void aq_hsl_lock_slow(gex_HSL_t *hsl)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_HSL_WAIT);

    aq_hsl_await(hsl);
    aq_trace_end(AQ_TRACE_HSL_WAIT, began, GEX_RANK_INVALID, 0);
}

void aq_hsl_unlock_slow(gex_HSL_t *hsl)
{
    syscall(SYS_futex, &hsl->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- debug builds: ownership --- */

void aq_hsl_debug_lock(gex_HSL_t *hsl)
{
    if (__atomic_load_n(&hsl->owner, __ATOMIC_RELAXED) == aq_thread_self()->number)
        aq_fatal("gex_HSL_Lock: this thread already holds the lock at %p; HSLs are not recursive",
                 (void *)hsl);
}

void aq_hsl_debug_owned(gex_HSL_t *hsl)
{
    struct aq_thread *self = aq_thread_self();

    __atomic_store_n(&hsl->owner, self->number, __ATOMIC_RELAXED);
    self->hsls_held++;
}

void aq_hsl_debug_unlock(gex_HSL_t *hsl)
{
    struct aq_thread *self = aq_thread_self();

    if (__atomic_load_n(&hsl->owner, __ATOMIC_RELAXED) != self->number)
        aq_fatal("gex_HSL_Unlock: this thread does not hold the lock at %p", (void *)hsl);
    __atomic_store_n(&hsl->owner, 0, __ATOMIC_RELAXED);
    self->hsls_held--;
}

void aq_hsl_debug_destroy(gex_HSL_t *hsl)
{
    if (__atomic_load_n(&hsl->owner, __ATOMIC_RELAXED) != 0)
        aq_fatal("gex_HSL_Destroy: the lock at %p is held", (void *)hsl);
}
