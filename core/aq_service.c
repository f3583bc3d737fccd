/*
 * aq_service.c - the service thread (GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD, GASNET_SND_THREAD;
 * par only).
 *
 * The thread polls for a rank whose own threads do not. It sleeps in the kernel as any waiter does,
 * on the wakeup count and the conduit's sockets. Senders wake it as long as the client's threads
 * spend less than half of their time waiting and polling. When the client's threads poll themselves
 * the service thread would only disturb them. It then backs off, the longer the longer they do, and
 * announces no sleep, so that no sender pays for waking it. In a long wait it dozes until the last
 * thread that waits wakes it.
 *
 * Owns      the thread, and the counts of client threads' polls and waits
 * Threads   it runs handlers, so GASNET_HIDDEN_AM_CONCURRENCY_LEVEL is 1 in threaded clients.
 *           With GEX_FLAG_DEFER_THREADS the client starts the thread
 * Promise   it never spins. A message to a rank that computes is served at once, and after a long
 *           wait of its threads within AQ_SERVICE_MAX_BACKOFF_NS
 * Uses      core/aq_poll.h, the conduit's sleep. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_service.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "core/aq_exit_internal.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"

#if AQ_THREADED

#define AQ_SERVICE_MIN_BACKOFF_NS 50000u /* between two tests whether client threads still poll */
#define AQ_SERVICE_MAX_BACKOFF_NS 500000u
#define AQ_SERVICE_AWAKE_NS       UINT64_C(10000000)   /* of their waits before the thread dozes */
#define AQ_SERVICE_DOZE_NS        100000000L           /* the end of their waits ends it */
#define AQ_SERVICE_MIN_SLEEP_NS   UINT64_C(1000000000) /* the wakeup count ends a sleep */
#define AQ_SERVICE_MAX_SLEEP_NS   UINT64_C(8000000000)

atomic_bool aq_service_watches AQ_JOB_STATE;
atomic_uint aq_service_polls AQ_JOB_STATE;
atomic_int aq_service_waiters AQ_JOB_STATE;

static struct {
    pthread_t thread; /* valid if is_ours: the library has started it */
    bool is_ours;
    atomic_bool stopping;
    atomic_uint running;
    atomic_uint dozes; /* 1: a service thread sleeps until no client thread waits; a futex */
} aq_service_state AQ_JOB_STATE;

/* The information for a client that starts the thread itself. */
static gex_ProgressThreadInfo_t aq_service_thread AQ_JOB_STATE;

static uint64_t aq_service_poll_ns(void)
{
    return aq_limits.poll_ns != 0 ? aq_limits.poll_ns : 50;
}

void aq_service_note_wait(void)
{
    /* relaxed: see aq_service_is_watching() */
    atomic_fetch_add_explicit(&aq_service_waiters, 1, memory_order_relaxed);
}

static void aq_service_rouse(void)
{
    atomic_store_explicit(&aq_service_state.dozes, 0, memory_order_relaxed); /* for the futex */
    syscall(SYS_futex, &aq_service_state.dozes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void aq_service_note_waited(uint64_t ns)
{
    /* seq_cst: see aq_service_doze() */
    const int waiters = atomic_fetch_sub_explicit(&aq_service_waiters, 1, memory_order_seq_cst);

    aq_service_note_polls((unsigned)(ns / aq_service_poll_ns()));
    if (waiters == 1
        && AQ_UNLIKELY(atomic_load_explicit(&aq_service_state.dozes, memory_order_seq_cst) != 0))
        aq_service_rouse();
}

/* Activity of the client's threads since the last test. */
struct aq_service_look {
    unsigned polls;
    uint64_t time;
};

static struct aq_service_look aq_service_look_now(void)
{
    /* relaxed: see aq_service_note_polls() */
    return (struct aq_service_look){ atomic_load_explicit(&aq_service_polls, memory_order_relaxed),
                                     aq_now_ns() };
}

/* Returns true if the client's threads serve the rank themselves: one waits, or they have waited
 * and polled for half of the time since *last. */
static bool aq_service_client_waits(struct aq_service_look *last)
{
    const struct aq_service_look now = aq_service_look_now();
    const uint64_t polling = (now.polls - last->polls) * aq_service_poll_ns();
    const uint64_t passed = now.time - last->time;

    *last = now;
    /* relaxed: a late value costs a wakeup */
    return 2 * polling > passed
           || atomic_load_explicit(&aq_service_waiters, memory_order_relaxed) != 0;
}

/* The thread serves until the process or the job ends. */
static bool aq_service_goes_on(void)
{
    /* relaxed: aq_service_fini() waits until the thread has seen it */
    return !aq_exit_in_progress()
           && !atomic_load_explicit(&aq_service_state.stopping, memory_order_relaxed);
}

/* Sleeps as long as a client thread waits. Returns true if none does any more, or none did. */
static bool aq_service_doze(void)
{
    const struct timespec limit = { 0, AQ_SERVICE_DOZE_NS };
    bool roused;

    /* seq_cst, as in aq_service_note_waited(): either this thread sees that nobody waits, or the
     * last thread that waits sees that this one dozes */
    atomic_store_explicit(&aq_service_state.dozes, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&aq_service_waiters, memory_order_seq_cst) != 0)
        syscall(SYS_futex, &aq_service_state.dozes, FUTEX_WAIT_PRIVATE, 1, &limit, NULL, 0);
    roused = atomic_load_explicit(&aq_service_waiters, memory_order_relaxed) == 0;
    atomic_store_explicit(&aq_service_state.dozes, 0, memory_order_relaxed);
    return roused;
}

/* Returns once the client's threads do not serve the rank. */
static void aq_service_stand_back(void)
{
    struct timespec backoff = { 0, AQ_SERVICE_MIN_BACKOFF_NS };
    struct aq_service_look last = aq_service_look_now();
    uint64_t began = last.time;

    do {
        /* relaxed: an old value costs one short sleep */
        if (last.time - began < AQ_SERVICE_AWAKE_NS
            || atomic_load_explicit(&aq_service_waiters, memory_order_relaxed) == 0) {
            nanosleep(&backoff, NULL);
            if (backoff.tv_nsec < AQ_SERVICE_MAX_BACKOFF_NS)
                backoff.tv_nsec *= 2;
        } else if (aq_service_doze()) { /* the client may wait again in a moment */
            backoff.tv_nsec = AQ_SERVICE_MIN_BACKOFF_NS;
            began = aq_now_ns();
        }
    } while (aq_service_client_waits(&last) && aq_service_goes_on());
}

/* Sleeps for so long at most. Returns the limit of the next sleep: they grow as long as none ends
 * early. Each wake-up costs an idle machine energy, and a slow one processor time. */
static uint64_t aq_service_sleep(uint32_t wakeup, uint64_t ns)
{
    const uint64_t began = aq_now_ns();

    aq_wait_sleep(wakeup, ns);
    return aq_now_ns() - began < ns ? AQ_SERVICE_MIN_SLEEP_NS
                                    : MIN(2 * ns, AQ_SERVICE_MAX_SLEEP_NS);
}

/* Returns once they do. */
static void aq_service_serve(void)
{
    struct aq_service_look last = aq_service_look_now();
    uint64_t sleep_ns = AQ_SERVICE_MIN_SLEEP_NS;

    do {
        const uint32_t wakeup = aq_wait_prepare(false);

        /* what arrived before the announcement woke no thread: poll once more */
        sleep_ns =
            aq_poll_service() == 0 ? aq_service_sleep(wakeup, sleep_ns) : AQ_SERVICE_MIN_SLEEP_NS;
        aq_job.local->sleep_cancel(false);
        while (aq_poll_service() != 0)
            sleep_ns = AQ_SERVICE_MIN_SLEEP_NS;
    } while (!aq_service_client_waits(&last) && aq_service_goes_on());
}

static _Thread_local bool aq_service_self;

bool aq_service_is_self(void)
{
    return aq_service_self;
}

/* Sets by how much the kernel may prolong sleeps of this thread, 50 us unless told otherwise.
 * Returns what it was, ns. */
static unsigned long aq_service_set_slack(unsigned long ns)
{
    const int before = prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);

    prctl(PR_SET_TIMERSLACK, ns, 0UL, 0UL, 0UL);
    return before > 0 ? (unsigned long)before : 0; /* 0 sets what a thread begins with */
}

static void *aq_service_main(void *arg)
{
    const unsigned long slack = aq_service_set_slack(1); /* sleeps of microseconds */

    (void)arg;
    aq_service_self = true;
    atomic_fetch_add_explicit(&aq_service_state.running, 1, memory_order_relaxed);
    /* relaxed: see aq_service_is_watching() */
    atomic_store_explicit(&aq_service_watches, true, memory_order_relaxed);
    while (aq_service_goes_on()) {
        aq_service_stand_back();
        aq_service_serve();
    }
    if (aq_exit_in_progress())
        aq_exit_park();      /* until the process ends */
    aq_service_self = false; /* the thread may be the client's, and go on */
    aq_service_set_slack(slack);
    /* release: pairs with the acquire in aq_service_fini() */
    atomic_fetch_sub_explicit(&aq_service_state.running, 1, memory_order_release);
    return NULL;
}

void aq_service_fini(void)
{
    const struct timespec backoff = { 0, AQ_SERVICE_MIN_BACKOFF_NS };

    /* relaxed: the flag needs no other data */
    atomic_store_explicit(&aq_service_state.stopping, true, memory_order_relaxed);
    /* acquire: the thread's accesses precede this */
    while (atomic_load_explicit(&aq_service_state.running, memory_order_acquire) != 0) {
        aq_service_rouse();
        aq_wait_wake();
        nanosleep(&backoff, NULL);
    }
    if (aq_service_state.is_ours)
        pthread_join(aq_service_state.thread, NULL);
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
    /* the thread serves every conduit; clients expect an argument that is not NULL */
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
    int error;

    if (!aq_service_is_on() || (client_flags & GEX_FLAG_DEFER_THREADS) != 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals are for the client's threads */
    error = pthread_create(&aq_service_state.thread, NULL, aq_service_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error != 0)
        aq_fatal(
            "the service thread (GASNET_PROGRESS_THREAD, GASNET_RCV_THREAD, GASNET_SND_THREAD) "
            "could not be started: %s; look at ulimit -u, or leave these variables unset",
            strerror(error));
    aq_service_state.is_ours = true;
}

#else /* seq */

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

void aq_service_fini(void)
{
}

#endif
