/*
 * aq_thread.c - making, finding and reusing the state of client threads.
 *
 * Owns      every struct aq_thread; those of ended threads go to a free list, never back to malloc,
 *           so that a late reader reads memory that still belongs to the library
 * Threads   any; the list is under aq_thread_list_lock
 * Uses      core/aq_callback.h (the layer above passes its part on), base/aq_log.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_trace.h"
#include "core/aq_callback.h"

/* Result of gex_System_QueryMaxThreads() when nothing limits the number: clients size arrays by it
 * and compare with it. */
#define AQ_THREADS_UNLIMITED 65536

uint64_t aq_thread_max(void)
{
#if AQ_THREADED
    int64_t cap = aq_env_is_set(AQ_ENV_MAX_THREADS) ? aq_env_int(AQ_ENV_MAX_THREADS) : 0;

    return cap > 0 ? (uint64_t)cap : AQ_THREADS_UNLIMITED;
#else
    return 1;
#endif
}

#if AQ_THREADED

_Thread_local struct aq_thread *aq_thread_current __attribute__((tls_model("initial-exec")));

static aq_lock aq_thread_list_lock = AQ_LOCK_INITIALIZER;
static struct aq_thread *aq_thread_free;
static struct aq_thread *aq_thread_all;
static uint64_t aq_thread_live;
static uint32_t aq_thread_numbers;
static pthread_key_t aq_thread_key;
static pthread_once_t aq_thread_once = PTHREAD_ONCE_INIT;

/* Runs when a thread ends. */
static void aq_thread_release(void *arg)
{
    struct aq_thread *self = arg;

    aq_npam_thread_exit(self);
    aq_callback_thread_exit(self);
    aq_trace_thread_exit(self->trace);
    aq_thread_current = NULL;
    aq_lock_acquire(&aq_thread_list_lock);
    self->next = aq_thread_free;
    aq_thread_free = self;
    aq_thread_live--;
    aq_lock_release(&aq_thread_list_lock);
}

static void aq_thread_make_key(void)
{
    if (pthread_key_create(&aq_thread_key, aq_thread_release) != 0)
        aq_fatal("no thread-specific key left: the program uses all PTHREAD_KEYS_MAX of them");
}

struct aq_thread *aq_thread_create(void)
{
    struct aq_thread *self;
    uint64_t live;

    pthread_once(&aq_thread_once, aq_thread_make_key);
    aq_lock_acquire(&aq_thread_list_lock);
    self = aq_thread_free;
    if (self != NULL)
        aq_thread_free = self->next;
    live = ++aq_thread_live;
    aq_lock_release(&aq_thread_list_lock);

    if (live > aq_thread_max())
        aq_fatal("thread number %llu calls the library, but GASNET_MAX_THREADS is %llu; raise or "
                 "unset it",
                 (unsigned long long)live, (unsigned long long)aq_thread_max());
    if (self == NULL && (self = calloc(1, sizeof(*self))) == NULL)
        aq_fatal("no memory for the state of a thread (%zu bytes)", sizeof(*self));

    aq_lock_acquire(&aq_thread_list_lock);
    if (self->number == 0) {
        self->next_all = aq_thread_all;
        aq_thread_all = self;
    }
    self->number = ++aq_thread_numbers;
    aq_lock_release(&aq_thread_list_lock);
    self->context = AQ_CTX_MAIN;
    self->hsls_locked = 0;
    self->waits_for = NULL;
    self->next = NULL;
    pthread_setspecific(aq_thread_key, self);
    aq_thread_current = self;
    return self;
}

#else

struct aq_thread aq_thread_only = { .number = 1 };

#endif

/* Drops what a conduit has allocated and what is sized by its limits, which another conduit cannot
 * use. */
static void aq_thread_forget_job(struct aq_thread *thread)
{
    for (int i = 0; i < 2; i++)
        free(thread->prepared[i].own);
    memset(thread->prepared, 0, sizeof(thread->prepared));
    thread->trace = NULL; /* freed by aq_trace_fini() */
    thread->loops = 0;
}

void aq_thread_fini(void)
{
#if AQ_THREADED
    for (struct aq_thread *thread = aq_thread_all; thread != NULL; thread = thread->next_all)
        aq_thread_forget_job(thread);
#else
    aq_thread_forget_job(&aq_thread_only);
#endif
}

void aq_thread_check_main(const char *call)
{
    aq_check_started(call);
    const struct aq_thread *self = aq_thread_self();

    if (self->context == AQ_CTX_REQUEST)
        aq_fatal("%s called in a request handler; only replies, HSLs and queries are legal there",
                 call);
    if (self->context == AQ_CTX_REPLY)
        aq_fatal("%s called in a reply handler; only HSLs and queries are legal there", call);
    if (self->context == AQ_CTX_PREPARED)
        aq_fatal("%s called between a gex_AM_Prepare and its Commit or Cancel; only HSLs and "
                 "queries are "
                 "legal there",
                 call);
    if (self->hsls_locked != 0)
        aq_fatal("%s called by a thread that holds %u HSL%s; release before communicating", call,
                 (unsigned)self->hsls_locked, self->hsls_locked == 1 ? "" : "s");
}
void aq_check_main(const char *call)
{
    aq_thread_check_main(call);
}
