/*
 * aq_poll.h - progress for the layers above: one poll, and waiting with the interface's manners.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_POLL_H
#define AQ_POLL_H

#include <stdbool.h>

#include "core/aq_contention.h"
#include "core/aq_job.h"

/* How often a wait looks, before its first poll, at a condition that other ranks make true by
 * stores alone: a rank that is as far as this one takes less time than a poll of everything. 0
 * where messages make it true, or where such a rank may not be running. */
#define AQ_WAIT_LOOKS 32u
static inline unsigned aq_wait_looks(void)
{
    return aq_job.has_remote || aq_job.no_overrides || aq_job.oversubscribed
                   || aq_contention_was_shared()
               ? 0
               : AQ_WAIT_LOOKS;
}

/* Between two looks of a wait that spins. */
static inline void aq_wait_between_looks(unsigned look)
{
    if (look % 2 == 0)
        aq_cpu_relax(); /* a peer on the same core's other thread needs the pipeline */
}

/* Deliver what has arrived and let the layer above move on; wakes other threads of this process
 * that sleep on what a handler may have changed. Ordinary context only.
 * Returns how many messages or operations were served. */
unsigned aq_poll(void);

/* As aq_poll(), at the end of a call that has sent a message: see AQ_POLL_OF_SEND. */
unsigned aq_poll_of_send(void);

/* As aq_poll(), for the service thread. These polls are not counted as a client's activity. */
unsigned aq_poll_service(void);

/* As aq_wait_step(), for a reply that waits for space: serves replies only. */
void aq_wait_step_replies(struct aq_waiter *waiter);

/* Sleeping in the kernel until a local rank, the network or another thread of this process brings
 * work. aq_wait_prepare() announces the sleeper; the caller looks once more for work, calls
 * aq_wait_sleep(), which returns after a wake-up or after max_ns at the latest, and ends with
 * aq_job.local->sleep_cancel(). waits: as in struct aq_conduit_ops. aq_wait_wake() wakes the
 * sleepers of this process. */
uint32_t aq_wait_prepare(bool waits);
static inline void aq_wait_sleep(uint32_t wakeup, uint64_t max_ns)
{
    max_ns = aq_job.remote->wait_limit(max_ns);
    if (max_ns != 0)
        aq_job.local->sleep(wakeup, max_ns);
}
static inline void aq_wait_wake(void)
{
    aq_job.local->sleep_wake();
}

/* From now on sleepers also wake when fd, which stays the caller's, becomes readable. AQ_OK, or
 * negative, logged. */
static inline int aq_wait_add_fd(int fd)
{
    return aq_job.local->sleep_add_fd(fd);
}

/* Read the settings of waiting; once, when the ranks of this host are known. */
void aq_wait_init(void);

#endif
