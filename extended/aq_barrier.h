/*
 * aq_barrier.h - internal header of the barriers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_BARRIER_H
#define AQ_BARRIER_H

#include <stdatomic.h>

#include "gasnetex.h"

#include "base/aq_lock.h"
#include "core/aq_callback.h"

/** aq_barrier_is_open - returns true if a named barrier is open. EX phases complete in order: none
 * is open behind a later one. */
bool aq_barrier_is_open(void);

/** aq_barrier_check_mixing - a collective over tm starts: ends the job if a named barrier is
 * open. */
void aq_barrier_check_mixing(const char *call, gex_TM_t tm);

/* Work for aq_callback_progress() has been added (+1) or removed (-1). relaxed: a poll that misses
 * it is followed by another. */
static inline void aq_pending_add(int n)
{
    if (AQ_THREADED)
        atomic_fetch_add_explicit(&aq_callback_pending, n, memory_order_relaxed);
    else
        atomic_store_explicit(&aq_callback_pending,
                              atomic_load_explicit(&aq_callback_pending, memory_order_relaxed) + n,
                              memory_order_relaxed);
}

#endif
