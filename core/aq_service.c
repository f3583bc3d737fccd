/*
 * aq_service.c - the service thread (GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD, GASNET_SND_THREAD;
 * par only).
 *
 * It polls for a rank whose own threads do not. While they do, it takes short naps and announces
 * nothing, so that nobody pays for waking it; once they have not polled during a nap, it sleeps in
 * the kernel as any waiter does, on the wake-up count and the conduit's sockets, and is woken by
 * whoever brings work.
 *
 * Owns      the thread, and the note of client threads' polls
 * Threads   it runs handlers, so that GASNET_HIDDEN_AM_CONCURRENCY_LEVEL is 1 in threaded clients.
 *           With GEX_FLAG_DEFER_THREADS it is the client that makes it
 * Promise   it never spins; a message to a rank that computes waits for a nap at most
 * Uses      core/aq_poll.h, the conduit's sleep. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_service.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "core/aq_exit_internal.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"

#if AQ_THREADED

#define AQ_SERVICE_BACKOFF_NS 500000     /* between looks whether client threads poll */
#define AQ_SERVICE_SLEEP_NS   1000000000 /* the longest sleep; the wake-up count ends it */

atomic_bool aq_service_watches;
atomic_uint aq_service_polls;

/* What a client that starts the thread itself is told. */
static gex_ProgressThreadInfo_t aq_service_thread;

/* relaxed: see aq_service_note_poll() */
static unsigned aq_service_seen(void)
{
    return atomic_load_explicit(&aq_service_polls, memory_order_relaxed);
}

/* Returns once the client's threads have not polled for a while. */
static void aq_service_stand_back(void)
{
    const struct timespec backoff = { 0, AQ_SERVICE_BACKOFF_NS };
    unsigned seen;

    do {
        seen = aq_service_seen();
        nanosleep(&backoff, NULL);
    } while (seen != aq_service_seen());
}

static void aq_service_serve(void)
{
    const unsigned seen = aq_service_seen();

    while (aq_service_seen() == seen && !aq_exit_in_progress()) {
        const uint32_t wakeup = aq_wait_prepare();

        /* what came before the announcement rang no bell: look once more */
        if (aq_poll_service() == 0)
            aq_wait_sleep(wakeup, AQ_SERVICE_SLEEP_NS);
        aq_job.local->sleep_cancel();
        while (aq_poll_service() != 0)
            continue;
    }
}

static void *aq_service_main(void *arg)
{
    (void)arg;
    /* relaxed: see aq_service_note_poll() */
    atomic_store_explicit(&aq_service_watches, true, memory_order_relaxed);
    while (!aq_exit_in_progress()) {
        aq_service_stand_back();
        aq_service_serve();
    }
    aq_exit_park(); /* ends with the process */
}

bool aq_service_is_on(void)
{
    return aq_env_bool(AQ_ENV_PROGRESS_THREAD) || aq_env_bool(AQ_ENV_RCV_THREAD)
           || aq_env_bool(AQ_ENV_SND_THREAD);
}

const gex_ProgressThreadInfo_t *aq_service_info(void)
{
    if (!aq_service_is_on())
        return NULL;
    /* the thread serves whatever the conduit has; clients want an argument that is not NULL */
    aq_service_thread = (gex_ProgressThreadInfo_t){
        .gex_device_list = aq_job.conduit->info->name,
        .gex_thread_roles = GEX_THREAD_ROLE_RCV | GEX_THREAD_ROLE_SND,
        .gex_progress_fn = aq_service_main,
        .gex_progress_arg = &aq_service_thread,
    };
    return &aq_service_thread;
}

void aq_service_init(gex_Flags_t client_flags)
{
    sigset_t all, old;
    pthread_t thread;
    int error;

    if (!aq_service_is_on() || (client_flags & GEX_FLAG_DEFER_THREADS) != 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the client's threads */
    error = pthread_create(&thread, NULL, aq_service_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error != 0)
        aq_fatal(
            "the service thread (GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD, GASNET_SND_THREAD) "
            "could not be started: %s; look at ulimit -u, or leave these variables unset",
            strerror(error));
    pthread_detach(thread);
}

#else /* one thread */

bool aq_service_is_on(void)
{
    return false;
}

const gex_ProgressThreadInfo_t *aq_service_info(void)
{
    return NULL;
}

void aq_service_init(gex_Flags_t client_flags)
{
    (void)client_flags;
    if (aq_env_bool(AQ_ENV_PROGRESS_THREAD) && aq_job.rank == 0)
        aq_warn("GASNET_PROGRESS_THREAD=1 is for threaded programs (GASNET_PAR); this one is "
                "GASNET_SEQ, so a "
                "rank serves others only when it calls the library");
}

#endif
