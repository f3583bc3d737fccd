/*
 * aq_hsl.c - handler-safe locks: the out-of-line part.
 *
 * A waiter spins briefly, then sets the word to 2 and sleeps on it in the kernel. The owner then
 * wakes one sleeper when it unlocks. Locks are private to a process.
 * Uses futex. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gasnetex.h"

#include "core/aq_job.h"
#include "base/aq_log.h"
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
    /* acquire: pairs with the release in gex_HSL_Unlock(). This thread then owns the lock with the
     * word at 2, which costs its unlock at most one unnecessary wakeup. */
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

/* --- debug builds: ownership, and the order in which a thread's locks are released --- */

#if GASNET_DEBUG

#define AQ_HSL_DESTROYED UINT32_MAX /* value of owner */

/* relaxed, here and below: a thread compares with its own number, which only it stores */
static uint32_t aq_hsl_owner(const char *call, gex_HSL_t *hsl)
{
    const uint32_t owner = __atomic_load_n(&hsl->owner, __ATOMIC_RELAXED);

    if (owner == AQ_HSL_DESTROYED)
        aq_fatal("%s: the lock at %p has been destroyed; gex_HSL_Init makes it anew", call,
                 (void *)hsl);
    return owner;
}

void aq_hsl_debug_lock(const char *call, gex_HSL_t *hsl)
{
    if (aq_hsl_owner(call, hsl) == aq_thread_self()->number)
        aq_fatal("%s: this thread already holds the lock at %p; HSLs are not recursive", call,
                 (void *)hsl);
}

void aq_hsl_debug_owned(gex_HSL_t *hsl)
{
    struct aq_thread *self = aq_thread_self();

    __atomic_store_n(&hsl->owner, self->number, __ATOMIC_RELAXED);
    if (self->hsls_locked < AQ_THREAD_HSLS)
        self->hsls[self->hsls_locked] = hsl;
    self->hsls_locked++;
}

/* Checks the first AQ_THREAD_HSLS locks only. */
static void aq_hsl_check_order(const struct aq_thread *self, const gex_HSL_t *hsl)
{
    const uint32_t locked = self->hsls_locked;
    const gex_HSL_t *last = locked <= AQ_THREAD_HSLS ? self->hsls[locked - 1] : hsl;

    if (last != hsl)
        aq_fatal("gex_HSL_Unlock: this thread took the lock at %p after the one at %p, which it "
                 "releases first; locks are released in reverse order",
                 (const void *)last, (const void *)hsl);
}

void aq_hsl_debug_unlock(gex_HSL_t *hsl)
{
    struct aq_thread *self = aq_thread_self();

    if (aq_hsl_owner("gex_HSL_Unlock", hsl) != self->number)
        aq_fatal("gex_HSL_Unlock: this thread does not hold the lock at %p", (void *)hsl);
    aq_hsl_check_order(self, hsl);
    __atomic_store_n(&hsl->owner, 0, __ATOMIC_RELAXED);
    self->hsls_locked--;
}

void aq_hsl_debug_destroy(gex_HSL_t *hsl)
{
    if (aq_hsl_owner("gex_HSL_Destroy", hsl) != 0)
        aq_fatal("gex_HSL_Destroy: the lock at %p is held", (void *)hsl);
    __atomic_store_n(&hsl->owner, AQ_HSL_DESTROYED, __ATOMIC_RELAXED);
}

#endif
