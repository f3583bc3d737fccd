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

#if AQ_THREADED
/* Client threads have polled: the service thread stays away as long as they do. */
extern atomic_bool aq_service_watches; /* a service thread looks at the next */
extern atomic_uint aq_service_polls;

static inline void aq_service_note_poll(void)
{
    /* relaxed, both: a note too late or lost costs a nap or a look, no correctness. A store of what
     * this thread has seen plus one, not an addition: any change will do */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_service_watches, memory_order_relaxed)))
        atomic_store_explicit(&aq_service_polls,
                              atomic_load_explicit(&aq_service_polls, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}
#else
static inline void aq_service_note_poll(void)
{
}
#endif

#endif
