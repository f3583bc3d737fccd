/*
 * aq_service.h - the service thread: a rank that computes still serves the others.
 *
 * Owns      the thread (aq_service.c), and the counts by which client threads tell that they poll
 *           and wait
 * Threads   init and fini: the thread that starts and ends the job; the notes: any client thread
 * Uses      base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SERVICE_H
#define AQ_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gasnetex.h"

#include "base/aq_lock.h"

/* Returns true if a service thread is wanted: GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD and
 * GASNET_SND_THREAD each request it, in par. Constant once the settings have been read. */
bool aq_service_is_on(void);

/* Starts the thread if it is wanted and the client does not start it itself. Needs the conduit. */
void aq_service_init(gex_Flags_t client_flags);

/* The entry of gex_System_QueryProgressThreads(); NULL without a service thread. Needs the
 * conduit. */
const gex_ProgressThreadInfo_t *aq_service_info(void);

/* The job ends: returns once no service thread, the client's included, is in the library. */
void aq_service_fini(void);

#if AQ_THREADED
/* Returns true if the calling thread is a service thread. */
bool aq_service_is_self(void);

/* Activity of client threads: the service thread stays away as long as they wait. */
extern atomic_bool aq_service_watches; /* a service thread reads the next two */
extern atomic_uint aq_service_polls;   /* polls, and waits counted in polls */
extern atomic_int aq_service_waiters;  /* client threads that wait and have received nothing */

static inline bool aq_service_is_watching(void)
{
    /* relaxed: a late or lost note costs a sleep or a test, never correctness */
    return atomic_load_explicit(&aq_service_watches, memory_order_relaxed);
}

static inline void aq_service_note_polls(unsigned polls)
{
    /* relaxed: as above. A store of what this thread has seen, not an addition: an approximate
     * count is enough */
    atomic_store_explicit(&aq_service_polls,
                          atomic_load_explicit(&aq_service_polls, memory_order_relaxed) + polls,
                          memory_order_relaxed);
}

static inline void aq_service_note_poll(void)
{
    if (AQ_UNLIKELY(aq_service_is_watching()))
        aq_service_note_polls(1);
}

/* A client thread waits, and has waited for ns. */
void aq_service_note_wait(void);
void aq_service_note_waited(uint64_t ns);
#else
static inline bool aq_service_is_self(void)
{
    return false;
}

static inline void aq_service_note_poll(void)
{
}

static inline bool aq_service_is_watching(void)
{
    return false;
}

static inline void aq_service_note_wait(void)
{
}

static inline void aq_service_note_waited(uint64_t ns)
{
    (void)ns;
}
#endif

#endif
