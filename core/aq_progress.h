/*
 * aq_progress.h - the function of the client that moves what it has outside of the library.
 *
 * Owns      the function that aqueduct_progress() has registered
 * Uses      aq_service.h
 * Threads   read by every thread that waits; set while no other thread is in the library
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

/* Calls the function; no other thread than one of the client's does. Returns how long a wait may
 * sleep then that has lasted for waited_ns. */
uint64_t aq_progress_call(uint64_t waited_ns);

/* The same; UINT64_MAX if there is no function. */
static inline uint64_t aq_progress_step(uint64_t waited_ns)
{
    return AQ_LIKELY(aq_progress.fn == NULL) ? UINT64_MAX : aq_progress_call(waited_ns);
}

#endif
