/*
 * aq_poll_step.h - what polls and waits share: a look at both transports and at the operations of
 * the layer above.
 *
 * Threads   any; what a thread has skipped is its own
 * Uses      the conduit table, aq_callback.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_POLL_STEP_H
#define AQ_POLL_STEP_H

#include <stdatomic.h>

#include "core/aq_callback.h"
#include "core/aq_poll.h"

/* A look at a network costs several times as much as a look at shared memory. While local ranks
 * keep this thread busy, the network is polled once in AQ_SKIP_POLLS; it is never left out for
 * longer than AQ_SKIP_BUSY polls after the last message of a local rank. */
#define AQ_SKIP_POLLS 8u
#define AQ_SKIP_BUSY  64u

struct aq_poll_skip {
    uint32_t busy, polls;
};
extern _Thread_local struct aq_poll_skip aq_poll_skip __attribute__((tls_model("initial-exec")));

/* May this poll leave the network out? local: messages that it found in shared memory. */
static inline bool aq_poll_skips_remote(struct aq_poll_skip *skip, unsigned local)
{
    if (local != 0)
        skip->busy = AQ_SKIP_BUSY;
    if (skip->busy == 0)
        return false;
    skip->busy--;
    return ++skip->polls % AQ_SKIP_POLLS != 0 && !aq_job_is_busy();
}

/* Both transports. */
static inline unsigned aq_poll_transports(bool replies_only)
{
    const enum aq_poll_kind kind = replies_only ? AQ_POLL_REPLIES : AQ_POLL_ALL;
    const unsigned local = aq_job.local->poll(kind);

    if (!aq_job.has_remote || aq_poll_skips_remote(&aq_poll_skip, local))
        return local;
    return local + aq_job.remote->poll(kind);
}

/* Operations of the layer above. */
static inline unsigned aq_poll_operations(void)
{
    /* relaxed: an operation that another thread adds at this moment waits for the next poll */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_callback_pending, memory_order_relaxed) != 0))
        return aq_callback_progress();
    return 0;
}

static inline unsigned aq_poll_unnoted(void)
{
    const unsigned served = aq_poll_transports(false);

    return served + aq_poll_operations();
}

/* Another thread may sleep on a condition that a handler of ours has just made true. Where all
 * memory is shared a service thread has no such condition, and a program that polls often would
 * pay for waking its own each time; over a network that thread looks at its deadlines again. */
static inline void aq_poll_notify(unsigned served)
{
#if AQ_THREADED
    if (served == 0)
        return;
    /* The sleeper's membarrier is the other part: either this test sees the sleeper, or the sleeper
     * sees what the handler stored. Relaxed: as said */
    atomic_signal_fence(memory_order_seq_cst);
    if (aq_job.has_remote || aq_job.waiting == NULL
        || AQ_UNLIKELY(atomic_load_explicit(aq_job.waiting, memory_order_relaxed) != 0))
        aq_wait_wake();
#else
    (void)served;
#endif
}

/* Yields the core, then polls the network too, since messages that come meanwhile may come over it.
 * Returns what that poll served. */
unsigned aq_wait_yield(bool replies_only);

#define AQ_BACKOFF_NS 50000u /* longest sleep where nobody sends a wake-up */

/* A client's polls in vain between looks for peers on its core. */
extern uint32_t aq_poll_vain_max;

#endif
