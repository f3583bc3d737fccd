/*
 * aq_poll.c - polling: deliver what has arrived, and give way to a peer on this core when polls of
 * the client find nothing for long.
 *
 * Owns      each thread's counts of polls in vain and of polls that skip the network
 * Threads   any
 * Uses      aq_poll_step.h, aq_contention.h, aq_service.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_poll.h"

#include <stdatomic.h>

#include "base/aq_state.h"
#include "core/aq_poll_step.h"
#include "core/aq_service.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"

_Thread_local struct aq_poll_skip aq_poll_skip;
uint32_t aq_poll_vain_max AQ_JOB_STATE = 64;

/* Polls of the client that have found nothing. On a shared core it may go on polling for longer
 * before it gives way: patiently. */
struct aq_poll_vain {
    uint32_t polls;
    bool patient;
    bool again; /* the last gasnet_AMPoll found nothing, and did not pause */
};
static _Thread_local struct aq_poll_vain aq_poll_vain;

/* A peer waits for this core: does this thread go on polling nevertheless? */
static bool aq_poll_goes_on(void)
{
    if (aq_poll_vain.patient) {
        aq_poll_vain.patient = false;
        aq_contention_note_spin(false);
        return false;
    }
    aq_poll_vain.patient = aq_contention_spins_first() && aq_contention_spins_on();
    return aq_poll_vain.patient;
}

/* Called when several polls of the client in a row have found nothing: gives way to a peer on this
 * core. Returns the messages that were served meanwhile. */
static __attribute__((noinline, cold)) unsigned aq_poll_in_vain(void)
{
    uint32_t wakeup;
    unsigned served;

    aq_poll_vain.polls = 0;
    if (aq_poll_vain.patient && aq_contention_spins_on())
        return 0;
    if (!aq_contention_look() || aq_contention_move())
        return 0;
    if (aq_poll_goes_on())
        return 0;
    if (aq_contention_yields_well()) {
        served = aq_wait_yield(false);
        aq_poll_notify(served);
        return served;
    }
    wakeup = aq_wait_prepare(true);
    served = aq_poll_unnoted();
    if (served == 0)
        aq_wait_sleep(wakeup, AQ_BACKOFF_NS);
    aq_job.local->sleep_cancel(true);
    aq_poll_notify(served);
    return served;
}

/* Counts a poll of the client that has found nothing. Returns the messages served since. */
static inline unsigned aq_poll_note_vain(void)
{
    if (AQ_LIKELY(++aq_poll_vain.polls < aq_poll_vain_max))
        return 0;
    return aq_poll_in_vain();
}

/* Messages came without giving way: the core's other ranks wait for a while longer, but not for
 * ever: they may be who the client waits for. */
static inline void aq_poll_note_served(void)
{
    if (AQ_LIKELY(!aq_contention_was_shared()) || !aq_contention_stays())
        return;
    if (aq_poll_vain.patient)
        aq_contention_note_spin(true);
    aq_poll_vain = (struct aq_poll_vain){ .polls = 0 };
}

/* aq_poll() where there is a network. A poll that shared memory had nothing for counts as in vain,
 * whatever the network has. */
static __attribute__((noinline)) unsigned aq_poll_both(enum aq_poll_kind kind)
{
    unsigned served = aq_job.local->poll(kind);
    const bool skips = aq_poll_skips_remote(&aq_poll_skip, served);

    if (served == 0)
        served = aq_poll_note_vain();
    if (!skips)
        served += aq_job.remote->poll(kind);
    if (served != 0)
        aq_poll_note_served();
    served += aq_poll_operations();
    aq_poll_notify(served);
    return served;
}

static inline unsigned aq_poll_as(enum aq_poll_kind kind)
{
    unsigned served;

    aq_service_note_poll();
    if (AQ_UNLIKELY(aq_job.has_remote))
        return aq_poll_both(kind);
    served = aq_job.local->poll(kind) + aq_poll_operations();
    if (AQ_LIKELY(served == 0))
        return aq_poll_note_vain();
    aq_poll_note_served();
    aq_poll_notify(served);
    return served;
}

unsigned aq_poll(void)
{
    return aq_poll_as(AQ_POLL_ALL);
}

unsigned aq_poll_of_send(void)
{
    return aq_poll_as(AQ_POLL_OF_SEND);
}

unsigned aq_poll_service(void)
{
    unsigned served = aq_poll_unnoted();

    aq_poll_notify(served);
    return served;
}

static __attribute__((noinline, cold)) void aq_poll_traced(void)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_POLL);
    const unsigned served = aq_poll();

    aq_trace_end(served != 0 ? AQ_TRACE_POLL : AQ_TRACE_POLL_IDLE, began, GEX_RANK_INVALID, 0);
}

/* Polls in vain mostly mean a wait: a peer on the core's other thread needs the pipeline. */
static inline void aq_poll_pause(unsigned served)
{
    aq_poll_vain.again = served == 0 && !aq_poll_vain.again;
    if (served == 0 && !aq_poll_vain.again)
        aq_cpu_relax();
}

int gasnet_AMPoll(void)
{
#if GASNET_DEBUG
    aq_thread_check_main("gasnet_AMPoll");
#endif
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_poll_traced();
    else
        aq_poll_pause(aq_poll());
    return GASNET_OK;
}
