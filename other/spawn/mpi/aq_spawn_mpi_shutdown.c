/*
 * aq_spawn_mpi_shutdown.c - whether and when MPI_Finalize is called.
 *
 * The caller of MPI_Init calls MPI_Finalize. After gasnet_exit(), which never returns, this library
 * calls it, whoever called MPI_Init. The client may call it before its exit, or in a function that
 * exit() runs.
 *
 * Agreement  MPI_Finalize waits for all ranks, so all ranks must agree to call it. A rank votes
 *            against it if a signal has interrupted it, perhaps inside MPI; if it leaves on another
 *            thread than MPI's main thread; if messages or transfers of its own are still under
 *            way; or if it has died. The ranks of a host vote in the job area, hosts agree by an
 *            MPI barrier. If one rank is against it, all ranks leave without MPI_Finalize, and
 *            tell the launcher (aq_spawn_mpi_launcher.c)
 * Close      an MPI callback at the beginning of MPI_Finalize lets the conduit complete what is
 *            under way, and give back receives, windows and communicators
 * Client     the client's MPI_Finalize may be under way on another thread than the one that leaves.
 *            Either it stops at the end of the callback, or the launcher is told nothing before it
 *            has returned
 * Bounds     a rank may die inside MPI_Finalize, and the others would wait for it. After a timeout
 *            they leave the call by siglongjmp, and tell the launcher as above
 * Threads    the thread that leaves; fini and fence on others
 * Uses       aq_spawn_mpi_internal.h, the job area, unwind.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn_link.h"
#include "other/spawn/aq_spawn_monitor.h"
#include "other/spawn/mpi/aq_spawn_mpi_internal.h"

#define AQ_SPAWN_MPI_OWN_MS 200 /* for another thread to leave MPI */
#define AQ_SPAWN_MPI_VOTE_MS \
    1000 /* for the other ranks, which all have come to their exit, to vote */
#define AQ_SPAWN_MPI_FINALIZE_S 5   /* beyond the exit timeout */
#define AQ_SPAWN_MPI_READY_MS   500 /* for the other ranks of this host to be ready to end */
#define AQ_SPAWN_MPI_CLIENT_MS  400 /* for the client's MPI_Finalize on another thread */
#define AQ_SPAWN_MPI_MS         UINT64_C(1000000)

/* In the job area: a rank's vote; the host's result, written by the first rank that has all votes;
 * then, that the rank has nothing left to do but to end. */
enum aq_spawn_mpi_vote {
    AQ_SPAWN_MPI_NO_VOTE = 0,
    AQ_SPAWN_MPI_FINALIZE,
    AQ_SPAWN_MPI_NO_FINALIZE,
    AQ_SPAWN_MPI_READY
};

/* How far the client's MPI_Finalize has come. */
enum aq_spawn_mpi_client {
    AQ_SPAWN_MPI_CLIENT_BEFORE = 0, /* it has not been called, or is in this library's callback */
    AQ_SPAWN_MPI_CLIENT_PAST, /* past the callback: MPI exchanges messages with the launcher */
    AQ_SPAWN_MPI_CLIENT_NEVER /* it does not come past the callback any more */
};

static struct {
    struct aq_jobarea *jobarea;
    uint32_t slot;
    bool closed;  /* the conduit has given back what belongs to it, or never can */
    bool owned;   /* this thread has the conduit's lock for good: no other thread enters MPI */
    bool left_on; /* the client has called MPI_Init, and MPI_Finalize is left to it */
    pthread_mutex_t mutex; /* once owned: between the thread that leaves and the one in the fence */
    bool ends_fence;       /* the former ends the latter's wait */
    atomic_uint client;    /* enum aq_spawn_mpi_client */
    pthread_t client_thread;          /* the thread that has come past the callback */
    pthread_t exit_thread;            /* the thread inside the library's MPI_Finalize */
    sigjmp_buf way_out;               /* where it goes on after the timeout */
    volatile sig_atomic_t finalizing; /* it is inside */
    bool cut_short;                   /* the timeout has ended MPI_Finalize */
} aq_spawn_mpi_shutdown AQ_JOB_STATE = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static bool aq_spawn_mpi_has_callback; /* MPI's, for the life of the process */

/* --- is this thread inside MPI? --- */

struct aq_spawn_mpi_frames {
    const void *object; /* NULL: look for a signal's frame */
    bool found;
};

static _Unwind_Reason_Code aq_spawn_mpi_on_frame(struct _Unwind_Context *context, void *arg)
{
    struct aq_spawn_mpi_frames *frames = arg;
    int interrupted = 0;
    const uintptr_t ip = _Unwind_GetIPInfo(context, &interrupted);
    Dl_info info;

    if (frames->object == NULL)
        frames->found = interrupted != 0;
    else
        frames->found = dladdr((const void *)ip, &info) != 0 && info.dli_fbase == frames->object;
    return frames->found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* True if this code runs in a signal handler, or inside MPI: MPI_Abort calls exit(). */
static bool aq_spawn_mpi_interrupted(void)
{
    struct aq_spawn_mpi_frames signals = { NULL, false }, calls = { NULL, false };
    Dl_info info;

    _Unwind_Backtrace(aq_spawn_mpi_on_frame, &signals);
    if (signals.found || dladdr(aq_spawn_mpi.lib->code, &info) == 0)
        return true;
    calls.object = info.dli_fbase;
    _Unwind_Backtrace(aq_spawn_mpi_on_frame, &calls);
    return calls.found;
}

static void aq_spawn_mpi_backoff(void)
{
    const struct timespec delay = { .tv_nsec = 200000 };

    nanosleep(&delay, NULL);
}

/* Takes the lock for good, once nothing is under way. False after a timeout: another thread stays
 * inside MPI, or messages or transfers cannot be completed. */
static bool aq_spawn_mpi_own(void)
{
    const uint64_t end = aq_jobarea_now_ns() + AQ_SPAWN_MPI_OWN_MS * AQ_SPAWN_MPI_MS;

    for (;;) {
        if (aq_spawn_mpi.conduit->try_lock()) {
            if (aq_spawn_mpi.conduit->progress())
                return true;
            aq_spawn_mpi.conduit->unlock();
        }
        if (aq_jobarea_now_ns() >= end)
            return false;
        aq_spawn_mpi_backoff();
    }
}

/* With the lock: receives what other ranks still have to complete. */
static void aq_spawn_mpi_backoff_progress(void)
{
    (void)aq_spawn_mpi.conduit->progress();
    aq_spawn_mpi_backoff();
}

/* --- close --- */

/* The end of the callback. If another thread has begun to end this process, this one goes no
 * further: it would disturb that thread's last messages to the launcher. */
static void aq_spawn_mpi_client_goes_on(void)
{
    unsigned before = AQ_SPAWN_MPI_CLIENT_BEFORE;

    if (aq_spawn_mpi_shutdown.finalizing) /* the library's own MPI_Finalize */
        return;
    aq_spawn_mpi_shutdown.client_thread = pthread_self();
    /* release: whoever reads PAST knows the thread */
    if (!atomic_compare_exchange_strong_explicit(&aq_spawn_mpi_shutdown.client, &before,
                                                 AQ_SPAWN_MPI_CLIENT_PAST, memory_order_release,
                                                 memory_order_relaxed)
        && before == AQ_SPAWN_MPI_CLIENT_NEVER)
        for (;;)
            pause();
}

/* At the beginning of MPI_Finalize, on every rank. The lock is kept: no thread of this library
 * enters MPI after it. */
static void aq_spawn_mpi_close(void)
{
    const bool by_client = !aq_spawn_mpi_shutdown.owned && !aq_spawn_mpi_shutdown.left_on;

    if (aq_spawn_mpi.conduit == NULL) /* no job is running */
        return;
    if (!aq_spawn_mpi_shutdown.owned)
        aq_spawn_mpi.conduit->lock();
    aq_spawn_mpi_shutdown.owned = true;
    if (aq_spawn_mpi_shutdown.closed)
        return;
    aq_spawn_mpi_shutdown.closed = true;
    aq_monitor_forget_launcher(); /* MPI_Finalize closes MPI's connection to it */
    aq_spawn_mpi.conduit->close(by_client);
    aq_spawn_mpi.lib->close();
    aq_spawn_mpi_client_goes_on();
}

void aq_spawn_mpi_shutdown_set_jobarea(struct aq_jobarea *jobarea, uint32_t slot)
{
    aq_spawn_mpi_shutdown.jobarea = jobarea;
    aq_spawn_mpi_shutdown.slot = slot;
}

int aq_spawn_mpi_shutdown_job(void)
{
    int error;

    if (aq_spawn_mpi_shutdown.closed) /* by the program's MPI_Finalize */
        return AQ_OK;
    aq_spawn_mpi.conduit->lock();
    aq_spawn_mpi_shutdown.owned = aq_spawn_mpi_shutdown.closed = true;
    aq_spawn_mpi.conduit->close(false);
    error = aq_spawn_mpi.lib->barrier();
    if (error == 0) {
        aq_link_disconnect();
        error = aq_spawn_mpi.lib->barrier();
    }
    aq_spawn_mpi.lib->close();
    return error == 0 ? AQ_OK : aq_spawn_mpi_failed("MPI_Barrier", error);
}

int aq_spawn_mpi_shutdown_init(void)
{
    const int error =
        aq_spawn_mpi_has_callback ? 0 : aq_spawn_mpi.lib->on_finalize(aq_spawn_mpi_close);

    aq_spawn_mpi_has_callback = error == 0;
    return error == 0 ? AQ_OK : aq_spawn_mpi_failed("an attribute on MPI_COMM_SELF", error);
}

/* --- the vote --- */

static bool aq_spawn_mpi_willing(enum aq_shutdown_mode how)
{
    if (how == AQ_SHUTDOWN_ABORT || aq_spawn_mpi_shutdown.left_on || aq_spawn_mpi_shutdown.owned
        || aq_spawn_mpi.group /* ranks that are not in the job would have to take part */
        || !aq_env_bool(AQ_ENV_MPI_FINALIZE))
        return false;
    /* in this order: each question needs the answers before it */
    return !aq_spawn_mpi_interrupted() && !aq_spawn_mpi.lib->is_finalized()
           && aq_spawn_mpi.lib->is_main_thread() && aq_spawn_mpi_own();
}

void aq_spawn_mpi_shutdown_vote(enum aq_shutdown_mode how)
{
    enum aq_spawn_mpi_vote vote;

    /* acquire: the thread is known with the state */
    if (atomic_load_explicit(&aq_spawn_mpi_shutdown.client, memory_order_acquire)
            == AQ_SPAWN_MPI_CLIENT_PAST
        && pthread_equal(pthread_self(), aq_spawn_mpi_shutdown.client_thread))
        /* relaxed: the word itself is all that is needed. This thread, which a signal has stopped
         * inside MPI_Finalize, does not return to it */
        atomic_store_explicit(&aq_spawn_mpi_shutdown.client, AQ_SPAWN_MPI_CLIENT_NEVER,
                              memory_order_relaxed);
    aq_spawn_mpi_shutdown.left_on = how == AQ_SHUTDOWN_RETURN && !aq_spawn_mpi.ours;
    if (aq_spawn_mpi_shutdown.jobarea == NULL) /* the job was not joined: no other rank votes */
        return;
    vote = aq_spawn_mpi_willing(how) ? AQ_SPAWN_MPI_FINALIZE : AQ_SPAWN_MPI_NO_FINALIZE;
    if (vote == AQ_SPAWN_MPI_FINALIZE)
        aq_spawn_mpi_shutdown.owned = true;
    /* release: whoever reads the vote sees that this rank is out of MPI */
    atomic_store_explicit(
        &aq_spawn_mpi_shutdown.jobarea->rank[aq_spawn_mpi_shutdown.slot].shutdown_vote,
        (uint32_t)vote, memory_order_release);
}

static bool aq_spawn_mpi_is_dead(const struct aq_jobarea_rank *rank)
{
    /* relaxed: written as it joined */
    return kill(atomic_load_explicit(&rank->pid, memory_order_relaxed), 0) != 0 && errno == ESRCH;
}

/* The vote of a rank of this host that has come to its exit, or has died. */
static enum aq_spawn_mpi_vote aq_spawn_mpi_vote_of(const struct aq_jobarea_rank *rank, uint64_t end)
{
    for (;;) {
        /* acquire: pairs with the release in aq_spawn_mpi_shutdown_vote() */
        const uint32_t vote = atomic_load_explicit(&rank->shutdown_vote, memory_order_acquire);
        /* relaxed: looked at again soon */
        const uint32_t state = atomic_load_explicit(&rank->state, memory_order_relaxed);

        if (vote != AQ_SPAWN_MPI_NO_VOTE)
            return vote == AQ_SPAWN_MPI_FINALIZE ? AQ_SPAWN_MPI_FINALIZE : AQ_SPAWN_MPI_NO_FINALIZE;
        if (state == AQ_RANK_CRASHED || state == AQ_RANK_LEFT || aq_spawn_mpi_is_dead(rank))
            return AQ_SPAWN_MPI_NO_FINALIZE;
        /* a rank that flushes its output waits for the reader of the output */
        if (state != AQ_RANK_FLUSHING && aq_jobarea_now_ns() >= end)
            return AQ_SPAWN_MPI_NO_FINALIZE;
        aq_spawn_mpi_backoff_progress();
    }
}

static bool aq_spawn_mpi_host_agrees(void)
{
    struct aq_jobarea *jobarea = aq_spawn_mpi_shutdown.jobarea;
    const uint64_t end = aq_jobarea_now_ns() + AQ_SPAWN_MPI_VOTE_MS * AQ_SPAWN_MPI_MS;
    uint32_t result = AQ_SPAWN_MPI_FINALIZE, before = AQ_SPAWN_MPI_NO_VOTE;

    for (uint32_t i = 0; i < jobarea->size && result == AQ_SPAWN_MPI_FINALIZE; i++)
        result = (uint32_t)aq_spawn_mpi_vote_of(&jobarea->rank[i], end);
    /* relaxed: one word, that nothing else goes with */
    if (!atomic_compare_exchange_strong_explicit(&jobarea->shutdown_vote, &before, result,
                                                 memory_order_relaxed, memory_order_relaxed))
        result = before;
    return result == AQ_SPAWN_MPI_FINALIZE;
}

int aq_spawn_mpi_shutdown_fence(void)
{
    bool all = false, over = false;

    while (!all && !over) {
        pthread_mutex_lock(&aq_spawn_mpi_shutdown.mutex);
        over = aq_spawn_mpi_shutdown.ends_fence || aq_spawn_mpi_shutdown.closed
               || !aq_spawn_mpi_shutdown.owned || aq_spawn_mpi.conduit->ibarrier(&all) != 0;
        pthread_mutex_unlock(&aq_spawn_mpi_shutdown.mutex);
        if (!all && !over)
            aq_spawn_mpi_backoff();
    }
    return all ? AQ_OK : AQ_ERR_SYS;
}

/* The hosts that agree meet in a barrier. Hosts that do not agree never enter it, hence the
 * timeout, which allows for a host that learns of the exit at the end of the exit timeout. */
static bool aq_spawn_mpi_hosts_agree(void)
{
    const uint64_t end =
        aq_jobarea_now_ns()
        + (AQ_SPAWN_MPI_VOTE_MS + aq_spawn_mpi_shutdown.jobarea->exit_timeout_ms) * AQ_SPAWN_MPI_MS;
    bool all = aq_spawn_mpi_shutdown.jobarea->size == aq_spawn_mpi_shutdown.jobarea->job_size;

    if (all || aq_spawn_mpi.lib->ibarrier() != 0)
        return all;
    while (!all && aq_spawn_mpi.lib->ibarrier_test(&all) == 0 && aq_jobarea_now_ns() < end)
        aq_spawn_mpi_backoff_progress();
    return all;
}

/* --- MPI_Finalize --- */

/* The kernel delivers SIGALRM to any thread; the one in MPI_Finalize has to have it. */
static void aq_spawn_mpi_on_alarm(int sig)
{
    if (!pthread_equal(pthread_self(), aq_spawn_mpi_shutdown.exit_thread))
        pthread_kill(aq_spawn_mpi_shutdown.exit_thread, sig);
    else if (aq_spawn_mpi_shutdown.finalizing)
        siglongjmp(aq_spawn_mpi_shutdown.way_out, 1);
}

static void aq_spawn_mpi_set_alarm(unsigned seconds)
{
    const struct itimerval limit = { .it_value = { .tv_sec = seconds } };
    struct sigaction act;
    sigset_t set;

    aq_spawn_mpi_shutdown.exit_thread = pthread_self();
    memset(&act, 0, sizeof(act));
    act.sa_handler = aq_spawn_mpi_on_alarm;
    sigaction(SIGALRM, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* The time is bounded: a rank may die in MPI_Finalize, and MPICH 4.0 over UCX's TCP may hang in it,
 * where a rank flushes its connections to ranks that wait at the launcher's barrier already. After
 * the timeout this rank leaves as if MPI_Finalize had not been called. */
static void aq_spawn_mpi_finalize(void)
{
    if (sigsetjmp(aq_spawn_mpi_shutdown.way_out, 1) == 0) {
        aq_spawn_mpi_shutdown.finalizing = 1;
        aq_spawn_mpi_set_alarm(aq_spawn_mpi_shutdown.jobarea->exit_timeout_ms / 1000
                               + AQ_SPAWN_MPI_FINALIZE_S);
        aq_spawn_mpi.lib->finalize();
    } else {
        aq_spawn_mpi_shutdown.cut_short = true;
    }
    aq_spawn_mpi_shutdown.finalizing = 0;
    aq_spawn_mpi_set_alarm(0);
}

static void aq_spawn_mpi_set_state(enum aq_rank_state state)
{
    /* release: as with every state of a rank */
    atomic_store_explicit(&aq_spawn_mpi_shutdown.jobarea->rank[aq_spawn_mpi_shutdown.slot].state,
                          (uint32_t)state, memory_order_release);
}

void aq_spawn_mpi_shutdown_disconnect(enum aq_shutdown_mode how)
{
    (void)how; /* it is in the vote */
    if (!aq_spawn_mpi_shutdown.owned || aq_spawn_mpi_shutdown.closed)
        return;
    pthread_mutex_lock(&aq_spawn_mpi_shutdown.mutex);
    aq_spawn_mpi_shutdown.ends_fence = true;
    pthread_mutex_unlock(&aq_spawn_mpi_shutdown.mutex);
    if (!aq_spawn_mpi_host_agrees())
        return;
    /* in this state the monitor does not end a slow rank; all that follows is bounded */
    aq_spawn_mpi_set_state(AQ_RANK_FLUSHING);
    if (aq_spawn_mpi_hosts_agree())
        aq_spawn_mpi_finalize();
    aq_spawn_mpi_set_state(AQ_RANK_ENDED);
}

/* Open MPI's mpirun kills the other ranks when the first one ends with a code other than 0, which
 * takes a second. So the ranks of a host end together. */
static void aq_spawn_mpi_end_together(void)
{
    struct aq_jobarea *jobarea = aq_spawn_mpi_shutdown.jobarea;
    const uint64_t end = aq_jobarea_now_ns() + AQ_SPAWN_MPI_READY_MS * AQ_SPAWN_MPI_MS;

    /* relaxed, both: nothing else goes with the word */
    atomic_store_explicit(&jobarea->rank[aq_spawn_mpi_shutdown.slot].shutdown_vote,
                          (uint32_t)AQ_SPAWN_MPI_READY, memory_order_relaxed);
    for (uint32_t i = 0; i < jobarea->size; i++)
        while (atomic_load_explicit(&jobarea->rank[i].shutdown_vote, memory_order_relaxed)
                   != AQ_SPAWN_MPI_READY
               && !aq_spawn_mpi_is_dead(&jobarea->rank[i]) && aq_jobarea_now_ns() < end)
            aq_spawn_mpi_backoff();
}

/* True if a rank of this host is known to have ended without a word to the launcher. */
static bool aq_spawn_mpi_is_broken(void)
{
    const struct aq_jobarea *jobarea = aq_spawn_mpi_shutdown.jobarea;

    /* relaxed, both: they were written before this rank was asked to end */
    if (atomic_load_explicit(&jobarea->lost, memory_order_relaxed) != 0)
        return true;
    for (uint32_t i = 0; i < jobarea->size; i++)
        if (atomic_load_explicit(&jobarea->rank[i].state, memory_order_relaxed) == AQ_RANK_CRASHED)
            return true;
    return false;
}

void aq_spawn_mpi_shutdown_await_client(void)
{
    const uint64_t end = aq_jobarea_now_ns() + AQ_SPAWN_MPI_CLIENT_MS * AQ_SPAWN_MPI_MS;
    unsigned state = AQ_SPAWN_MPI_CLIENT_BEFORE;

    /* relaxed: no other data go with the state here */
    if (aq_spawn_mpi_shutdown.jobarea == NULL
        || atomic_compare_exchange_strong_explicit(&aq_spawn_mpi_shutdown.client, &state,
                                                   AQ_SPAWN_MPI_CLIENT_NEVER, memory_order_relaxed,
                                                   memory_order_relaxed)
        || state != AQ_SPAWN_MPI_CLIENT_PAST || aq_spawn_mpi_launcher_fd(aq_spawn_mpi.lib) < 0)
        return;
    while (!aq_spawn_mpi.lib->is_finalized() && aq_jobarea_now_ns() < end)
        aq_spawn_mpi_backoff();
}

/* Unless MPI_Finalize has done so. */
static void aq_spawn_mpi_tell_launcher(void)
{
    aq_spawn_mpi_shutdown_await_client();
    if (!aq_spawn_mpi.lib->is_finalized() || aq_spawn_mpi_shutdown.cut_short)
        aq_spawn_mpi_launcher_finalize(aq_spawn_mpi.lib, aq_spawn_mpi_is_broken());
}

void aq_spawn_mpi_shutdown_fini(void)
{
    if (aq_spawn_mpi_shutdown.left_on || aq_spawn_mpi_shutdown.jobarea == NULL)
        return;
    aq_spawn_mpi_tell_launcher();
    aq_spawn_mpi_end_together();
}

/* After all functions that exit() runs: none of them has called MPI_Finalize. */
static __attribute__((destructor)) void aq_spawn_mpi_shutdown_last(void)
{
    if (!aq_spawn_mpi_shutdown.left_on)
        return;
    aq_spawn_mpi_tell_launcher();
    aq_spawn_mpi_end_together();
}
