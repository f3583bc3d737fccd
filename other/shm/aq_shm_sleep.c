/*
 * aq_shm_sleep.c - sleeping in the kernel until somebody on this host brings work.
 *
 * A rank that wants to sleep says so in its control line; whoever gives it something looks at
 * that line afterwards and rings. Between "give" and "look" a full fence would be needed, in
 * every message; instead the sleeper pays for both sides with membarrier(), which makes every
 * running thread of the job pass a fence before the sleeper looks one last time.
 *
 * Threads   any; several threads of a rank may sleep, on one bell
 * Uses      futex, membarrier. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/aq_rc.h"
#include "other/shm/aq_shm.h"

/* Where there is no membarrier (an old or locked-down kernel), a ring of the bell can be missed:
 * nobody then sleeps longer than this. */
#define AQ_SHORT_SLEEP_NS 200000u

static bool aq_shm_has_membarrier;

void aq_shm_sleep_init(void)
{
    aq_shm_has_membarrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0)
                            == 0;
}

uint32_t aq_shm_sleep_prepare(void)
{
    struct aq_shm_control *mine = aq_shm.mine;
    uint32_t bell = atomic_load_explicit(&mine->bell, memory_order_relaxed);

    /* seq_cst: the announcement comes before the caller's last look at everything */
    atomic_fetch_add_explicit(&mine->sleeping, 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&aq_shm_common()->sleepers, 1, memory_order_seq_cst);
    if (aq_shm_has_membarrier)
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return bell;
}

void aq_shm_sleep(uint32_t bell, uint64_t max_ns)
{
    if (!aq_shm_has_membarrier && max_ns > AQ_SHORT_SLEEP_NS)
        max_ns = AQ_SHORT_SLEEP_NS;
    const struct timespec limit = { .tv_sec = (time_t)(max_ns / 1000000000u),
                                    .tv_nsec = (long)(max_ns % 1000000000u) };

    /* returns at once if the bell has rung since; a spurious return is harmless */
    syscall(SYS_futex, &aq_shm.mine->bell, FUTEX_WAIT, bell, &limit, NULL, 0);
}

void aq_shm_sleep_cancel(void)
{
    atomic_fetch_sub_explicit(&aq_shm.mine->sleeping, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&aq_shm_common()->sleepers, 1, memory_order_relaxed);
}

__attribute__((noinline, cold)) int aq_shm_wake(struct aq_shm_control *control)
{
    /* release: what was given is visible to whoever sees the new bell */
    atomic_fetch_add_explicit(&control->bell, 1, memory_order_release);
    syscall(SYS_futex, &control->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return AQ_OK;
}

void aq_shm_sleep_ring(void)
{
    struct aq_shm_control *mine = aq_shm.mine;

    aq_shm_order_before_look();
    if (AQ_UNLIKELY(atomic_load_explicit(&mine->sleeping, memory_order_relaxed) != 0))
        aq_shm_wake(mine);
}

void aq_shm_wake_all(void)
{
    for (uint32_t local = 0; local < aq_shm.size; local++)
        if (local != aq_shm.me
            && atomic_load_explicit(&aq_shm_control(local)->sleeping, memory_order_relaxed) != 0)
            aq_shm_wake(aq_shm_control(local));
    aq_shm_sleep_ring();
}
