/*
 * aq_progress.h - the function of the client that moves what it has outside of the library.
 *
 * Owns      the function that aqueduct_progress() has registered
 * Threads   read by every thread that waits; set while no other thread of the client is in the
 *           library
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_PROGRESS_H
#define AQ_PROGRESS_H 1

#include <stdint.h>

#include "gasnetex.h"

struct aq_progress {
    void (*fn)(void *arg);
    void *arg;
};
extern struct aq_progress aq_progress;

/* A waiting thread counts its steps, and calls the function when that is due. */
void aq_progress_count(void);
static inline void aq_progress_step(void)
{
    if (AQ_UNLIKELY(aq_progress.fn != NULL))
        aq_progress_count();
}

/* Before a sleep in a wait that began at since_ns: calls the function if that is due. Returns in
 * how many ns the next call is due; UINT64_MAX: never. */
uint64_t aq_progress_due(uint64_t since_ns);
static inline uint64_t aq_progress_sleep(uint64_t since_ns)
{
    return AQ_LIKELY(aq_progress.fn == NULL) ? UINT64_MAX : aq_progress_due(since_ns);
}

#endif
