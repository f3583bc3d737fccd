/*
 * aq_progress.c - a thread that waits in the library lets the client move what it has outside.
 *
 * Messages of MPI, for instance, move only while some thread of their process calls MPI. A rank
 * that waits here for a peer, which waits for such a message, would wait for ever.
 *
 * Promise   a thread that waits calls the function every AQ_PROGRESS_MIN_NS, after a second of
 *           waiting less often, up to every AQ_PROGRESS_MAX_NS, whether messages arrive or not; for
 *           the first time after AQ_PROGRESS_STEPS steps, or before it sleeps
 * Uses      aq_service.h: the service thread does not call the function
 *
 * Source: Aqueduct's own; docs/aqueduct-h.md. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_progress.h"

#include "base/aq_state.h"
#include "base/aq_platform.h"
#include "core/aq_job.h"
#include "core/aq_service.h"

#include "aqueduct.h"

#define AQ_PROGRESS_MIN_NS UINT64_C(5000000) /* needs no timer of its own, see aq_wait.c */
#define AQ_PROGRESS_MAX_NS UINT64_C(20000000)
#define AQ_PROGRESS_PART   200 /* of the time waited so far */
#define AQ_PROGRESS_STEPS  64u /* of waits between looks at the clock */

struct aq_progress aq_progress AQ_JOB_STATE;

static _Thread_local struct {
    uint32_t steps;
    uint64_t called_ns;
} aq_progress_thread;

/* Returns in how many ns the function is due, after a call if it was due now. */
static uint64_t aq_progress_call(uint64_t period_ns)
{
    uint64_t since_ns;

    if (aq_service_is_self())
        return UINT64_MAX;
    since_ns = aq_now_ns() - aq_progress_thread.called_ns;
    if (since_ns < period_ns)
        return period_ns - since_ns;
    aq_progress.fn(aq_progress.arg);
    aq_progress_thread.called_ns = aq_now_ns();
    return period_ns;
}

void aq_progress_count(void)
{
    if (++aq_progress_thread.steps % AQ_PROGRESS_STEPS == 0)
        (void)aq_progress_call(AQ_PROGRESS_MIN_NS);
}

uint64_t aq_progress_due(uint64_t since_ns)
{
    const uint64_t part_ns = (aq_now_ns() - since_ns) / AQ_PROGRESS_PART;

    return aq_progress_call(MIN(MAX(AQ_PROGRESS_MIN_NS, part_ns), AQ_PROGRESS_MAX_NS));
}

void aqueduct_progress(void (*fn)(void *arg), void *arg)
{
    aq_check_started(__func__);
    aq_progress = (struct aq_progress){ fn, arg };
}
