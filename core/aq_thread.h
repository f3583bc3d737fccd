/*
 * aq_thread.h - the state of one client thread, found through one thread-local pointer.
 *
 * It is made at a thread's first call and reclaimed at its end by a destructor. There is no table
 * of threads and no limit but memory and GASNET_MAX_THREADS. In seq there is one, in a static
 * variable. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_THREAD_H
#define AQ_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/aq_lock.h"
#include "core/aq_npam.h"

/* PREPARED: between a Prepare and its Commit or Cancel, in ordinary code or in a request
 * handler. */
enum aq_context { AQ_CTX_MAIN = 0, AQ_CTX_REQUEST = 1, AQ_CTX_REPLY = 2, AQ_CTX_PREPARED = 3 };

#define AQ_THREAD_HSLS 32 /* locks of a thread whose order is checked */

struct aq_thread {
    uint32_t number;      /* 1, 2, ... in order of first calls; never 0 */
    uint8_t context;      /* enum aq_context: the innermost context of the thread */
    uint32_t hsls_locked; /* counted in debug builds */
#if GASNET_DEBUG
    const gex_HSL_t *hsls[AQ_THREAD_HSLS]; /* locked ones, the oldest first */
    gex_Token_t token;                     /* of the innermost running handler; NULL: none */
    uint32_t tokens;                       /* handlers run so far: makes tokens distinct */
#endif
    uint32_t loops;                /* requests to this process itself so far, see aq_am_loop.c */
    const char *waits_for;         /* what the innermost wait waits for, for reports */
    void *extended;                /* of the layer above: implicit operations, free lists */
    void *trace;                   /* recorded events; NULL: none yet */
    struct aq_thread *next;        /* in the list of states whose thread has ended */
    struct aq_thread *next_all;    /* in the list of all */
    struct aq_srcdesc prepared[2]; /* the request, and the reply, being prepared */
};

#if AQ_THREADED
/* initial-exec: one mov from the thread pointer instead of a call. */
extern _Thread_local struct aq_thread *aq_thread_current __attribute__((tls_model("initial-exec")));
struct aq_thread *aq_thread_create(void);

static inline struct aq_thread *aq_thread_self(void)
{
    struct aq_thread *self = aq_thread_current;

    return AQ_LIKELY(self != NULL) ? self : aq_thread_create();
}
#else
extern struct aq_thread aq_thread_only;

static inline struct aq_thread *aq_thread_self(void)
{
    return &aq_thread_only;
}
#endif

/* Maximum number of live threads. */
uint64_t aq_thread_max(void);

/* Debug builds: ends the job if the thread is in a handler or holds an HSL, where this call is
 * illegal. */
void aq_thread_check_main(const char *call);

/* The job has ended: threads keep their state for the next one, except what belongs to this job. No
 * thread is in the library. */
void aq_thread_fini(void);

#endif
