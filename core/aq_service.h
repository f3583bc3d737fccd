/*
 * aq_service.h - the service thread: a rank that computes still serves the others.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SERVICE_H
#define AQ_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "gasnetex.h"

#include "base/aq_lock.h"

/* Is there to be one? GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD and GASNET_SND_THREAD all ask for
 * it, in par; constant once the settings have been read. */
bool aq_service_is_on(void);

/* Start the thread if there is to be one and the client does not start it itself. Needs the
 * conduit. */
void aq_service_init(gex_Flags_t client_flags);

/* What gex_System_QueryProgressThreads() lists: NULL if there is to be no service thread. Needs the
 * conduit. */
const gex_ProgressThreadInfo_t *aq_service_info(void);

/* The job ends: returns once no service thread, the client's included, is in the library. */
void aq_service_fini(void);

#if AQ_THREADED
/* What client threads do: the service thread stays away as long as they wait. */
extern atomic_bool aq_service_watches; /* a service thread looks at the next two */
extern atomic_uint aq_service_polls;   /* polls, and what waits come to in polls */
extern atomic_int aq_service_waiters;  /* client threads that wait and to whom nothing has come */

static inline bool aq_service_is_watching(void)
{
    /* relaxed: a note too late or lost costs a nap or a look, no correctness */
    return atomic_load_explicit(&aq_service_watches, memory_order_relaxed);
}

static inline void aq_service_note_polls(unsigned polls)
{
    /* relaxed: as above. A store of what this thread has seen, not an addition: about right will do
     * */
    atomic_store_explicit(&aq_service_polls,
                          atomic_load_explicit(&aq_service_polls, memory_order_relaxed) + polls,
                          memory_order_relaxed);
}

static inline void aq_service_note_poll(void)
{
    if (AQ_UNLIKELY(aq_service_is_watching()))
        aq_service_note_polls(1);
}

/* A client thread waits; it has waited for ns. */
void aq_service_note_wait(void);
void aq_service_note_waited(uint64_t ns);
#else
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
