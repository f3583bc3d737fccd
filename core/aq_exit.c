/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_exit.c - how a process ends its job; see aq_exit.h.
 * Owns      aq_exit_me: the thread that ends this process, and the code
 * Threads   any, any context. Code that runs in signal handlers uses atomics, write, futex, kill,
 *           _exit and, for stdio, ftrylockfile with a bound (see aq_exit_flush_stream)
 * How       publish the code in the job area -> notify the process that watches the job -> flush
 *           stdio -> disconnect from the launcher -> _exit. Under another launcher a rank waits for
 *           the output of the host's other ranks (aq_spawn_shutdown.c); otherwise for none: ranks
 *           that are late are asked and then killed by the supervisor (other/spawn/aq_shutdown.h)
 * Uses      other/spawn, core/aq_signal.h
 */
#include "core/aq_exit.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_backtrace.h"
#include "base/aq_env.h"
#include "core/aq_exit_internal.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_signal.h"
#include "core/aq_trace.h"
#include "other/spawn/aq_spawn.h"

#define AQ_EXIT_LOCK_MS 200  /* limit of the wait for a thread that holds stdout's lock */
#define AQ_EXIT_FILES_S 1    /* limit for all other files together */
#define AQ_EXIT_WORD_MS 1000 /* for the monitor to report a lost rank before the network does */

static struct {
    struct aq_jobarea *jobarea; /* NULL before aq_exit_init() */
    uint32_t slot;
    pid_t pid;
    atomic_int owner; /* thread that ends the process; 0: none */
    atomic_int code;  /* exit code */
} aq_exit_me AQ_JOB_STATE;

static bool aq_exit_has_hook; /* belongs to the process, not to a job */

bool aq_exit_is_own_process(void)
{
    return aq_exit_me.pid == 0 || aq_exit_me.pid == getpid();
}

static uint32_t aq_exit_job_state(void)
{
    if (aq_exit_me.jobarea == NULL)
        return AQ_EXIT_NONE;
    /* acquire: the code is visible with the state */
    return atomic_load_explicit(&aq_exit_me.jobarea->exit_state, memory_order_acquire);
}

bool aq_exit_asked(void)
{
    return aq_exit_job_state() >= AQ_EXIT_ASKED;
}

bool aq_exit_is_claimed(void)
{
    /* relaxed: a hint; the claim itself decides */
    return atomic_load_explicit(&aq_exit_me.owner, memory_order_relaxed) != 0;
}

bool aq_exit_in_progress(void)
{
    return aq_exit_is_claimed() || aq_exit_job_state() != AQ_EXIT_NONE;
}

bool aq_exit_is_explained(void)
{
    return aq_exit_asked()
           /* relaxed: a hint */
           || (aq_exit_me.jobarea != NULL
               && atomic_load_explicit(&aq_exit_me.jobarea->exit_code, memory_order_relaxed) != 0);
}

bool aq_exit_claim(bool *again_out)
{
    int me = (int)syscall(SYS_gettid), owner = 0;

    /* acq_rel: the owner's later writes do not precede its claim */
    if (atomic_compare_exchange_strong_explicit(&aq_exit_me.owner, &owner, me, memory_order_acq_rel,
                                                memory_order_acquire)) {
        *again_out = false;
        return true;
    }
    *again_out = owner == me;
    return owner == me;
}

void aq_exit_park(void)
{
    for (;;)
        pause();
}

/* Returns the code that this process ends with: once the ranks were asked to end, it is the
 * job's. */
static int aq_exit_settle(int code)
{
    if (aq_exit_asked())
        /* relaxed: the acquire of the state precedes it */
        return atomic_load_explicit(&aq_exit_me.jobarea->exit_code, memory_order_relaxed);
    return code & 0xff;
}

/* The system keeps eight bits of a code. If that turns a failure into success, one rank of the host
 * prints a warning. That -1 becomes 255 is well known. */
static void aq_exit_say_cut(int code)
{
    uint64_t none = 0;

    if ((code & ~0xff) == 0)
        return;
    AQ_LOG(INFO, EXIT, "exit code %d is status %d: a process has 0 to 255", code, code & 0xff);
    if ((code & 0xff) != 0)
        return;
    /* relaxed: the word itself is all that is needed */
    if (aq_exit_me.jobarea == NULL
        || atomic_compare_exchange_strong_explicit(&aq_exit_me.jobarea->logged, &none, 1,
                                                   memory_order_relaxed, memory_order_relaxed))
        aq_warn("exit code %d is status 0, which means success: a process has 0 to 255, and the "
                "system cuts off "
                "the rest",
                code);
}

static void aq_exit_set_state(enum aq_rank_state state)
{
    if (aq_exit_me.jobarea != NULL)
        /* release: pairs with the acquire in aq_shutdown_state() */
        atomic_store_explicit(&aq_exit_me.jobarea->rank[aq_exit_me.slot].state, (uint32_t)state,
                              memory_order_release);
}

/* State ENDED: this rank's output is written. */
static void aq_exit_publish_flushed(void)
{
    if (aq_exit_me.jobarea != NULL)
        aq_jobarea_publish_flushed(aq_exit_me.jobarea, aq_exit_me.slot);
}

static void aq_exit_publish(enum aq_rank_state state, int code)
{
    /* a fatal error between aq_spawn_init() and aq_exit_init() */
    if (aq_exit_me.jobarea == NULL && aq_spawn_info() != NULL) {
        aq_exit_me.slot = aq_spawn_info()->host_rank;
        aq_exit_me.jobarea = aq_spawn_jobarea();
    }
    if (aq_exit_me.jobarea == NULL)
        return;
    aq_jobarea_publish_exit(aq_exit_me.jobarea, aq_exit_me.slot, state, code);
    aq_spawn_notify();
}

void aq_exit_publish_crash(int code)
{
    aq_exit_publish(AQ_RANK_CRASHED, code);
}

void aq_exit_set_frozen(bool frozen)
{
    if (aq_exit_me.jobarea != NULL)
        /* relaxed: the supervisor reads it repeatedly */
        atomic_store_explicit(&aq_exit_me.jobarea->rank[aq_exit_me.slot].frozen, frozen,
                              memory_order_relaxed);
}

/* A suspended thread may hold the stream's lock for ever, so the wait is bounded. A thread that a
 * signal has interrupted inside printf holds the lock itself and gets it again: at worst the last
 * line is cut or printed twice, nothing blocks. */
static void aq_exit_flush_stream(FILE *f)
{
    struct timespec ms = { 0, 1000000 };

    for (int i = 0; i < AQ_EXIT_LOCK_MS; i++) {
        if (ftrylockfile(f) == 0) {
            fflush_unlocked(f);
            funlockfile(f);
            return;
        }
        nanosleep(&ms, NULL);
    }
}

/* A lost message that no process retransmits would leave its target waiting. */
static void aq_exit_shutdown_network(int code)
{
    const struct aq_conduit_ops *remote = aq_job.remote;
    uint64_t ms;

    if (!aq_job_has_started() || aq_exit_me.jobarea == NULL)
        return;
    /* the code of a rank that leaves alone is not the job's */
    ms = (code & 0xff) != 0 ? aq_exit_me.jobarea->exit_timeout_ms
                            : aq_jobarea_exit_ms(aq_exit_me.jobarea);
    remote->exit(ms * 250000); /* a quarter: the other ranks have not been asked yet */
}

static void aq_exit_alarm(int sig)
{
    (void)sig;
    aq_exit_publish_flushed();
    /* relaxed: written by the thread that set the timer */
    _exit(atomic_load_explicit(&aq_exit_me.code, memory_order_relaxed));
}

/* fflush(NULL) waits for the lock of every file, and a thread may be blocked reading one: a timer
 * ends the wait. */
static void aq_exit_flush_files(void)
{
    struct itimerval limit = { .it_value = { AQ_EXIT_FILES_S, 0 } }, off = { .it_value = { 0, 0 } };
    struct sigaction act;
    sigset_t set;

    memset(&act, 0, sizeof(act));
    act.sa_handler = aq_exit_alarm;
    sigaction(SIGALRM, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
    fflush(NULL);
    setitimer(ITIMER_REAL, &off, NULL);
}

static void aq_exit_flush_console(void)
{
    aq_exit_flush_stream(stdout);
    aq_exit_flush_stream(stderr);
}

/* the common end of all exits; only the owner calls it */
static _Noreturn void aq_exit_finish(int code, bool orderly, bool in_signal)
{
    /* relaxed: read by this thread's own signal handler */
    atomic_store_explicit(&aq_exit_me.code, aq_exit_settle(code), memory_order_relaxed);
    aq_exit_publish(AQ_RANK_EXITING, code);
    /* the reader of the output may be slow, and must get all of it if the job ends in order */
    if (orderly && !in_signal) {
        aq_exit_shutdown_network(code);
        aq_exit_set_state(AQ_RANK_FLUSHING);
    }
    aq_trace_finish(NULL, in_signal);
    aq_exit_flush_console();
    aq_exit_flush_files();
    aq_exit_publish_flushed();
    code = aq_spawn_shutdown(aq_exit_settle(code), orderly ? AQ_SHUTDOWN_END : AQ_SHUTDOWN_ABORT);
    _exit(code);
}

static _Noreturn void aq_exit_any(int code, bool orderly, bool in_signal)
{
    bool again;

    if (!aq_exit_is_own_process()) { /* a child process that the rank has forked */
        fflush(NULL);
        _exit(code);
    }
    if (!aq_exit_claim(&again))
        aq_exit_park();
    if (again) { /* from a handler that runs on top of the first call */
        aq_exit_publish(AQ_RANK_EXITING, code);
        aq_exit_publish_flushed();
        _exit(
            aq_spawn_shutdown(aq_exit_settle(code), orderly ? AQ_SHUTDOWN_END : AQ_SHUTDOWN_ABORT));
    }
    if (!in_signal)
        aq_exit_say_cut(code);
    aq_exit_finish(code, orderly, in_signal);
}

void aq_exit_job(int code)
{
    aq_exit_any(code, true, false);
}

void aq_exit_from_signal(int code)
{
    aq_exit_any(code, true, true);
}

void aq_exit_abort(int code)
{
    if (aq_exit_is_own_process())
        aq_signal_fatal_aids();
    aq_exit_any(code, false, false);
}

/* returns true if the lost rank has already been reported */
static bool aq_exit_is_logged(void)
{
    /* relaxed: the end of the job follows */
    return aq_exit_me.jobarea != NULL
           && atomic_load_explicit(&aq_exit_me.jobarea->lost, memory_order_relaxed) != 0;
}

void aq_exit_peer_lost(uint32_t rank, const char *what)
{
    struct timespec backoff = { 0, 10000000 };

    /* The monitor of the job reports a lost rank more precisely: which signal, which host. Its
     * message is waited for. */
    for (int i = 0; i < AQ_EXIT_WORD_MS / 10 && !aq_exit_in_progress() && !aq_exit_is_logged(); i++)
        nanosleep(&backoff, NULL);
    if (aq_exit_in_progress() || aq_exit_is_logged())
        aq_exit_park(); /* this process will be asked to end in a moment */
    aq_fatal("rank %u was lost (%s); ending the job", rank, what);
}

/* Runs at exit() and at the return of main, after the client's atexit handlers. The hook returns,
 * so that earlier handlers, C++ destructors and libc run too; the supervisor bounds the time that
 * they take. */
static void aq_exit_hook(int status, void *arg)
{
    bool again;

    (void)arg;
    /* between jobs, or in a forked child */
    if (aq_exit_me.jobarea == NULL || !aq_exit_is_own_process())
        return;
    if (!aq_exit_claim(&again))
        aq_exit_park();
    if (again)
        return;
    aq_exit_say_cut(status);
    if (!aq_env_bool(AQ_ENV_CATCH_EXIT)) {
        aq_exit_shutdown_network(status);
        aq_trace_finish(NULL, false);
        aq_exit_set_state(AQ_RANK_LEFT);
        return;
    }
    /* relaxed: as in aq_exit_finish() */
    atomic_store_explicit(&aq_exit_me.code, aq_exit_settle(status), memory_order_relaxed);
    aq_exit_publish(AQ_RANK_EXITING, status);
    aq_exit_shutdown_network(status); /* before the state in which no rank is killed */
    aq_exit_set_state(AQ_RANK_FLUSHING);
    aq_trace_finish(NULL, false);
    aq_exit_flush_console(); /* libc flushes the other files, without waiting for their locks */
    aq_exit_publish_flushed();
    aq_spawn_shutdown(aq_exit_settle(status), AQ_SHUTDOWN_RETURN);
}

void aq_exit_init(void)
{
    struct aq_jobarea *jobarea = aq_spawn_jobarea();
    const struct aq_spawn_info *info = aq_spawn_info();

    if (jobarea == NULL || info == NULL || aq_exit_me.jobarea != NULL)
        return;
    aq_exit_me.slot = info->host_rank;
    aq_exit_me.pid = getpid();
    aq_exit_me.jobarea = jobarea;
    /* relaxed: not read before some rank has left */
    if (!aq_env_bool(AQ_ENV_CATCH_EXIT))
        atomic_store_explicit(&jobarea->catch_exit_off, 1, memory_order_relaxed);
    /* on_exit() cannot be undone: later jobs find the hook in place */
    if (!aq_exit_has_hook && on_exit(aq_exit_hook, NULL) != 0)
        aq_warn("no space for an exit() hook: end the program by gasnet_exit()");
    aq_exit_has_hook = true;
    aq_signal_init();
    aq_exit_set_state(AQ_RANK_READY);
    if (aq_env_bool(AQ_ENV_FREEZE))
        aq_signal_freeze();
}

void aq_exit_fini(void)
{
    aq_freeze_hook = NULL;
    aq_signal_fini();
}
