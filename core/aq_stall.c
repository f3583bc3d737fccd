/*
 * aq_stall.c - see aq_stall.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_stall.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_job.h"
#include "core/aq_signal.h"

static uint64_t aq_stall_ns AQ_JOB_STATE; /* 0: no report */

/* The signal that asks for a report raises it; each wait compares. */
static atomic_uint aq_stall_asked;

static void aq_stall_report(const struct aq_waiter *waiter, uint64_t now)
{
    const double seconds = (double)(now - waiter->since) * 1e-9;
    uint64_t sent = 0, handled = 0;
    char peer[128] = "";

    if (waiter->peer != GEX_RANK_INVALID) {
        aq_job_ops(waiter->peer)->peer_counts(waiter->peer, &sent, &handled);
        snprintf(peer, sizeof(peer), " for rank %u; %llu messages sent, %llu handled", waiter->peer,
                 (unsigned long long)sent, (unsigned long long)handled);
    }
    aq_log_print("*** NOTICE (proc %u): rank %u waits %.0f s in %s%s\n", aq_job.rank, aq_job.rank,
                 seconds, waiter->what, peer);
}

enum aq_wait_kind aq_stall_kind(const char *what)
{
    return strstr(what, "arrier") != NULL       ? AQ_WAIT_BARRIER
           : strstr(what, "space for") != NULL  ? AQ_WAIT_QUEUE
           : strstr(what, "BLOCKUNTIL") != NULL ? AQ_WAIT_BLOCKUNTIL
                                                : AQ_WAIT_EVENT;
}

/* Tell the launcher's report what this rank is at; from slow paths only. */
static void aq_stall_note(const struct aq_waiter *waiter)
{
    struct aq_jobarea *jobarea = aq_spawn_jobarea();
    const uint32_t slot = aq_spawn_info()->host_rank;
    uint64_t sent = 0, handled = 0;

    if (waiter->peer != GEX_RANK_INVALID)
        aq_job_ops(waiter->peer)->peer_counts(waiter->peer, &sent, &handled);
    atomic_store_explicit(&jobarea->rank[slot].counter[AQ_COUNT_AM_SENT], sent,
                          memory_order_relaxed);
    atomic_store_explicit(&jobarea->rank[slot].counter[AQ_COUNT_AM_HANDLED], handled,
                          memory_order_relaxed);
    aq_jobarea_note_wait(jobarea, slot, aq_stall_kind(waiter->what), waiter->peer);
}

/* Every now and then a waiter looks at the clock. */
__attribute__((cold)) void aq_stall_look(struct aq_waiter *waiter)
{
    static _Thread_local unsigned answered;
    static _Thread_local uint64_t next_report;
    const unsigned asked = atomic_load_explicit(&aq_stall_asked, memory_order_relaxed);
    const uint64_t now = aq_now_ns();

    if (waiter->since == 0) {
        waiter->since = now;
        next_report = now + aq_stall_ns;
        aq_stall_note(waiter);
    }
    if (asked != answered || (aq_stall_ns != 0 && now >= next_report)) {
        answered = asked;
        next_report = now + 2 * (now - waiter->since) + aq_stall_ns; /* ever more rarely */
        aq_stall_report(waiter, now);
    }
    if (waiter->peer == GEX_RANK_INVALID || !aq_job_is_local(waiter->peer))
        aq_job.remote->wait_look(waiter->peer);
}

static void aq_stall_on_signal(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&aq_stall_asked, 1, memory_order_relaxed);
}

void aq_stall_init(void)
{
    aq_stall_ns = (uint64_t)(aq_env_real(AQ_ENV_AQ_STALL_REPORT) * 1e9);
    aq_signal_install_named(AQ_ENV_AQ_STALL_SIGNAL, "AQ_STALL_SIGNAL", aq_stall_on_signal);
}
