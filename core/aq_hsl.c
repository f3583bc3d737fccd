/*
 * aq_hsl.c - handler-safe locks: the out-of-line part.
 *
 * A waiter spins briefly, then sets the word to 2 and sleeps on it in the kernel. The owner then
 * wakes one sleeper when it unlocks. Locks are private to a process.
 * Uses futex. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <link.h>
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

#define AQ_HSL_DESTROYED UINT32_MAX          /* value of owner */
#define AQ_HSL_DYNAMIC   0x62c53ea98417dbf0u /* of no meaning; with the address: the mark */

static int aq_hsl_belongs(struct dl_phdr_info *object, size_t size, void *arg)
{
    const uintptr_t at = (uintptr_t)arg;

    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && at - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return 1;
    }
    return 0;
}

/* The mark of the static initialiser counts in static storage only. On the stack and the heap it is
 * also what a variable of before, or the copy of a structure, leaves behind. */
static bool aq_hsl_is_static(const gex_HSL_t *hsl)
{
    return hsl->mark == AQ_HSL_STATIC
           && dl_iterate_phdr(aq_hsl_belongs, (void *)(uintptr_t)hsl) != 0;
}

void aq_hsl_debug_init(gex_HSL_t *hsl)
{
    const uint64_t mark = AQ_HSL_DYNAMIC ^ (uintptr_t)hsl;
    const bool is_static = aq_hsl_is_static(hsl);

    if ((is_static || hsl->mark == mark) && __atomic_load_n(&hsl->owner, __ATOMIC_RELAXED) != 0)
        aq_fatal("gex_HSL_Init: the lock at %p is held", (void *)hsl);
    if (is_static)
        aq_fatal("gex_HSL_Init: the lock at %p has a static initialiser; gex_HSL_Init is for locks "
                 "without one",
                 (void *)hsl);
    if (hsl->mark == mark)
        aq_fatal("gex_HSL_Init: the lock at %p is initialised already; gex_HSL_Destroy comes "
                 "before a second time, and before its memory is freed",
                 (void *)hsl);
    hsl->mark = mark;
}

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
    hsl->mark = 0;
}

#endif
