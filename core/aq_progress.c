/*
 * aq_progress.c - a thread that waits in the library lets the client move what it has outside.
 *
 * Messages of MPI, for instance, move only while some thread of their process calls MPI. A rank
 * that waits here for a peer, which waits for such a message, would wait for ever.
 *
 * Promise   between two calls of the function a waiting thread sleeps no longer than
 *           AQ_PROGRESS_MAX_NS
 *
 * Source: Aqueduct's own; docs/aqueduct-h.md. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_progress.h"

#include "base/aq_state.h"
#include "core/aq_job.h"
#include "core/aq_service.h"

#include "aqueduct.h"

#define AQ_PROGRESS_MIN_NS UINT64_C(5000000) /* needs no timer of its own, see aq_poll.c */
#define AQ_PROGRESS_MAX_NS UINT64_C(20000000)
#define AQ_PROGRESS_PART   64 /* of the time waited so far */

struct aq_progress aq_progress AQ_JOB_STATE;

uint64_t aq_progress_call(uint64_t waited_ns)
{
    if (aq_service_is_self())
        return UINT64_MAX;
    aq_progress.fn(aq_progress.arg);
    return MIN(MAX(AQ_PROGRESS_MIN_NS, waited_ns / AQ_PROGRESS_PART), AQ_PROGRESS_MAX_NS);
}

void aqueduct_progress(void (*fn)(void *arg), void *arg)
{
    aq_progress = (struct aq_progress){ fn, arg };
}
