/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_shutdown.c - the last steps of a rank that must disconnect from its launcher's library.
 * Threads   any, any context: atomics, futexes and write only; the monitor makes the calls
 * How       one host: ranks wait for each other's output at the exit, by the job area, and end
 *           together. Several hosts exchange notes (aq_spawn_link.h). Where they cannot, ranks at
 *           the exit wait for those of other hosts in the launcher's fence; ranks that do not come
 *           within the exit timeout are left to the launcher's abort
 */
#include <unistd.h>

#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor_internal.h"

#define AQ_SHUTDOWN_WHOLE_MS 300 /* for the hosts to find each other */

/* The flag stays when a rank that its launcher's library finalises flushes again. */
static bool aq_monitor_may_end(struct aq_jobarea_rank *r)
{
    /* acquire, both: pairs with the releases of the rank that publishes them */
    const uint32_t state = atomic_load_explicit(&r->state, memory_order_acquire);

    return atomic_load_explicit(&r->flushed, memory_order_acquire) != 0 || state == AQ_RANK_LEFT
           || state == AQ_RANK_DISCONNECTED || state >= AQ_RANK_ENDED
           || aq_monitor_dead(atomic_load_explicit(&r->pid, memory_order_relaxed));
}

/* Returns true if all ranks of the host have written their output at the exit, have left or have
 * died. */
static bool aq_monitor_all_may_end(void)
{
    for (uint32_t i = 0; i < aq_monitor.jobarea->size; i++)
        if (!aq_monitor_may_end(&aq_monitor.jobarea->rank[i]))
            return false;
    return true;
}

/* Returns true once the exit timeout and more_ms have passed. end_inout is UINT64_MAX at first; a
 * failure in the meantime brings the end nearer. */
static bool aq_monitor_is_late(uint64_t *end_inout, uint64_t more_ms)
{
    const uint64_t now = aq_jobarea_now_ns();
    const uint64_t end = now + (aq_jobarea_exit_ms(aq_monitor.jobarea) + more_ms) * 1000000ull;

    if (end < *end_inout)
        *end_inout = end;
    return now >= *end_inout;
}

/* The launcher may take the first process that ends with a failure as a reason to kill the others,
 * so ranks end together; the first rank's monitor asks and kills in the meantime. */
static void aq_monitor_wait_for_others(void)
{
    uint64_t end = UINT64_MAX;

    while (!aq_monitor_all_may_end() && !aq_monitor_is_late(&end, AQ_MONITOR_LAST_MS)) {
        /* acquire: pairs with the release in aq_jobarea_wake_exits() */
        uint32_t seen = atomic_load_explicit(&aq_monitor.jobarea->exit_seen, memory_order_acquire);

        if (!aq_monitor_all_may_end())
            aq_jobarea_wait_word(&aq_monitor.jobarea->exit_seen, seen, 20);
    }
}

static bool aq_monitor_request(enum aq_monitor_request want)
{
    uint64_t one = 1;

    /* release: pairs with the acquire in aq_monitor_serve() */
    atomic_store_explicit(&aq_monitor.request, (uint32_t)want, memory_order_release);
    return write(aq_monitor.own_fd, &one, sizeof(one)) > 0; /* false: closed by the client */
}

/* Waits until the ranks of other hosts are at the exit too. Returns false if the launcher must end
 * them, because no other process will. */
static bool aq_monitor_fence(void)
{
    uint64_t begin = aq_jobarea_now_ns(), end = UINT64_MAX;

    if (aq_monitor_alone())
        return true;
    /* a short job: the hosts may not have found each other yet */
    while (!aq_link_is_whole() && aq_jobarea_now_ns() < begin + AQ_SHUTDOWN_WHOLE_MS * 1000000ull)
        aq_link_wait_whole(AQ_MONITOR_SHUTDOWN_MS);
    if (!aq_link_is_whole())
        aq_monitor_request(AQ_MONITOR_FENCE);
    /* acquire: pairs with the release in aq_monitor_fence_main() */
    while (!aq_link_is_done()
           && atomic_load_explicit(&aq_monitor.fenced, memory_order_acquire) == 0) {
        if (aq_monitor_is_late(&end, 2 * AQ_MONITOR_LAST_MS))
            return aq_link_is_whole();
        aq_link_wait_done(AQ_MONITOR_SHUTDOWN_MS);
    }
    return true;
}

/* Runs the steps below, each of which is bounded; returns the job's exit code. */
static int aq_monitor_disconnect(int code, enum aq_shutdown_mode how)
{
    bool orderly = how != AQ_SHUTDOWN_ABORT;
    uint64_t end;
    uint32_t now;

    if (orderly) {
        aq_monitor_wait_for_others();
        orderly = aq_monitor_fence() && !aq_link_has_silent();
        /* other ranks may have published larger codes, or the job's code was settled: all return
         * the same */
        code = atomic_load_explicit(&aq_monitor.jobarea->exit_code, memory_order_relaxed);
    }
    if (orderly && aq_monitor.ops->disconnect != NULL)
        aq_monitor.ops->disconnect(how);
    end = aq_jobarea_now_ns() + AQ_MONITOR_CALL_MS * 1000000ull;
    /* relaxed: the request is released after it */
    atomic_store_explicit(&aq_monitor.code, code, memory_order_relaxed);
    if (!aq_monitor_request(orderly ? AQ_MONITOR_FINI : AQ_MONITOR_ABORT))
        return code; /* the launcher sees this process end */
    /* acquire: the library's work is done */
    while ((now = atomic_load_explicit(&aq_monitor.request, memory_order_acquire))
               != AQ_MONITOR_DONE
           && aq_jobarea_now_ns() < end)
        aq_jobarea_wait_word(&aq_monitor.request, now, 50);
    return code;
}

int aq_monitor_shutdown(int code, enum aq_shutdown_mode how)
{
    if (!aq_monitor.running)
        return code;
    if (how == AQ_SHUTDOWN_ABORT)
        return aq_monitor_disconnect(code, how);
    /* relaxed, both: the flag needs no other data, see aq_monitor_keepalive(). The first sign of
     * life is given here, since the monitor may be busy */
    atomic_store_explicit(&aq_monitor.in_shutdown, true, memory_order_relaxed);
    aq_shutdown_defer_kill(&aq_monitor.jobarea->rank[aq_monitor.slot], AQ_MONITOR_DEFER_MS);
    code = aq_monitor_disconnect(code, how);
    atomic_store_explicit(&aq_monitor.in_shutdown, false, memory_order_relaxed);
    return code;
}
