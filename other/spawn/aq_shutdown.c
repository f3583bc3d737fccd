/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_shutdown.c - the shutdown of a job; see aq_shutdown.h.
 * Threads   one
 * Uses      aq_jobarea.h, /proc/PID/status to see whether a rank catches SIGQUIT
 */
#include "other/spawn/aq_shutdown.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aq_say.h"
#include "base/aq_signal_name.h"

/* a failing job: time for the other ranks to fail by themselves */
#define AQ_SHUTDOWN_GRACE_MS  250
#define AQ_SHUTDOWN_SILENT_MS 300  /* a rank ended without a word: time for other ranks to do so */
#define AQ_SHUTDOWN_GENTLE_MS 300  /* from the state KILLING to SIGKILL, if ranks end themselves */
#define AQ_SHUTDOWN_FLUSH_MS  1000 /* from the end of a rank's output to the end of its process */
#define AQ_SHUTDOWN_MS        1000000ull /* nanoseconds in a millisecond */

static aq_shutdown_say_fn aq_shutdown_listener; /* used by one thread, see aq_shutdown.h */
static void *aq_shutdown_listener_arg;

void aq_shutdown_say_to(aq_shutdown_say_fn fn, void *arg)
{
    aq_shutdown_listener = fn;
    aq_shutdown_listener_arg = arg;
}

void aq_shutdown_say(const char *kind, const char *fmt, ...)
{
    char line[1024], host[HOST_NAME_MAX + 1] = "?";
    va_list ap;
    int len;

    gethostname(host, sizeof(host) - 1);
    len = snprintf(line, sizeof(line) - 1, "*** %s (%s:%d): ", kind, host, (int)getpid());
    va_start(ap, fmt);
    len += vsnprintf(line + len, sizeof(line) - 1 - (size_t)len, fmt, ap);
    va_end(ap);
    if (len > (int)sizeof(line) - 2)
        len = (int)sizeof(line) - 2;
    line[len++] = '\n';
    if (aq_shutdown_listener != NULL)
        aq_shutdown_listener(aq_shutdown_listener_arg, kind, line, (size_t)len);
    else
        /* a failure cannot be reported anywhere else */
        (void)aq_say(STDERR_FILENO, line, (size_t)len);
}

void aq_shutdown_init(struct aq_shutdown *shutdown, struct aq_jobarea *jobarea, pid_t *child)
{
    memset(shutdown, 0, sizeof(*shutdown));
    shutdown->jobarea = jobarea;
    shutdown->child = child;
    for (uint32_t i = 0; i < jobarea->size; i++)
        shutdown->alive += child[i] > 0;
}

static uint32_t aq_shutdown_state(const struct aq_shutdown *shutdown, uint32_t slot)
{
    /* acquire: pairs with the release in aq_jobarea_publish_exit() */
    return atomic_load_explicit(&shutdown->jobarea->rank[slot].state, memory_order_acquire);
}

void aq_shutdown_begin(struct aq_shutdown *shutdown, uint64_t ask_ms)
{
    uint64_t now = aq_jobarea_now_ns();
    uint64_t ask = now + ask_ms * AQ_SHUTDOWN_MS;

    aq_jobarea_raise_exit_state(shutdown->jobarea, AQ_EXIT_SHUTDOWN);
    if (shutdown->start_ns == 0) {
        shutdown->start_ns = now;
        shutdown->kill_ns = now + aq_jobarea_exit_ms(shutdown->jobarea) * AQ_SHUTDOWN_MS;
        shutdown->ask_ns = ask;
    } else if (ask < shutdown->ask_ns) {
        shutdown->ask_ns = ask;
    }
}

void aq_shutdown_fail(struct aq_shutdown *shutdown, int code)
{
    aq_jobarea_raise_exit_code(shutdown->jobarea, code);
    aq_shutdown_begin(shutdown, 0);
}

void aq_shutdown_signalled(struct aq_shutdown *shutdown, int sig)
{
    shutdown->stopped = true;
    /* relaxed: this thread is the one that moves the state beyond SHUTDOWN */
    if (atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_relaxed)
        >= AQ_EXIT_ASKED) {
        shutdown->kill_ns = aq_jobarea_now_ns();
        return;
    }
    if (!shutdown->logged) /* a terminal may deliver the same key twice */
        aq_shutdown_say("Caught a signal", "%s(%d): ending the job", aq_signal_name(sig), sig);
    shutdown->logged = true;
    aq_shutdown_fail(shutdown, 1);
}

/* prints the message about a rank that has ended without saying why */
static void aq_shutdown_tell(struct aq_shutdown *shutdown, uint32_t slot, pid_t pid, int status)
{
    uint32_t rank = shutdown->jobarea->rank[slot].jobrank;
    const char *when =
        aq_shutdown_state(shutdown, slot) == AQ_RANK_EMPTY ? " before it joined the job" : "";
    char host[HOST_NAME_MAX + 1] = "?";

    if (shutdown->logged)
        return;
    shutdown->logged = true;
    gethostname(host, sizeof(host) - 1);
    /* relaxed: only for readers of the job area */
    atomic_store_explicit(&shutdown->jobarea->lost, rank + 1, memory_order_relaxed);
    if (status == -1)
        aq_shutdown_say("FATAL ERROR", "rank %u (process %d on %s) was lost%s; ending the job",
                        rank, (int)pid, host, when);
    else if (WIFSIGNALED(status))
        aq_shutdown_say(
            "FATAL ERROR", "rank %u (process %d on %s) was killed by %s(%d)%s%s; ending the job",
            rank, (int)pid, host, aq_signal_name(WTERMSIG(status)), WTERMSIG(status), when,
            WTERMSIG(status) == SIGKILL ? " (by hand, or out of memory: see dmesg)" : "");
    else
        aq_shutdown_say("FATAL ERROR",
                        "rank %u (process %d on %s) ended with status %d%s, without "
                        "gasnet_exit() or exit(); ending the job",
                        rank, (int)pid, host, WEXITSTATUS(status), when);
}

static int aq_shutdown_code_of(int status)
{
    if (status == -1)
        return 128 + SIGKILL; /* unknown; the most frequent cause */
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* returns true if some rank has called aq_spawn_init(): a rank that ends without it then means that
 * the job is broken */
static bool aq_shutdown_any_joined(const struct aq_shutdown *shutdown)
{
    if (shutdown->joined_elsewhere)
        return true;
    for (uint32_t i = 0; i < shutdown->jobarea->size; i++)
        if (aq_shutdown_state(shutdown, i) != AQ_RANK_EMPTY)
            return true;
    return false;
}

/* handles a rank that ended without announcing it */
static void aq_shutdown_unannounced(struct aq_shutdown *shutdown, uint32_t slot, pid_t pid,
                                    int status)
{
    int code = aq_shutdown_code_of(status);
    bool joined = aq_shutdown_state(shutdown, slot) != AQ_RANK_EMPTY;

    aq_jobarea_raise_exit_code(shutdown->jobarea, code);
    if (status == -1 || WIFSIGNALED(status)) {
        aq_shutdown_tell(shutdown, slot, pid, status);
        aq_shutdown_begin(shutdown, 0);
        return;
    }
    /* relaxed: set at start-up, long before a rank can end */
    if (code == 0 && atomic_load_explicit(&shutdown->jobarea->catch_exit_off, memory_order_relaxed))
        return;
    /* no rank has joined yet: it may be no program of this library; aq_shutdown_step() notices if
     * one joins */
    if (shutdown->silent++ == 0) {
        shutdown->silent_slot = slot;
        shutdown->silent_status = status;
        shutdown->silent_pid = pid;
    }
    if (joined || aq_shutdown_any_joined(shutdown))
        aq_shutdown_begin(shutdown, AQ_SHUTDOWN_SILENT_MS);
}

void aq_shutdown_exited(struct aq_shutdown *shutdown, uint32_t slot, int status)
{
    pid_t pid = shutdown->child[slot];
    uint32_t state = aq_shutdown_state(shutdown, slot);

    shutdown->child[slot] = 0;
    shutdown->alive--;
    /* relaxed: as in aq_shutdown_signalled() */
    if (atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_relaxed) >= AQ_EXIT_ASKED)
        return;
    if (state == AQ_RANK_DISCONNECTED)
        return;
    if (state == AQ_RANK_LEFT) {
        if (status != -1)
            aq_jobarea_raise_exit_code(shutdown->jobarea, aq_shutdown_code_of(status));
        return;
    }
    if (state == AQ_RANK_CRASHED) {
        shutdown->logged = true;
        aq_shutdown_begin(shutdown, 0);
        return;
    }
    if (state < AQ_RANK_EXITING)
        aq_shutdown_unannounced(shutdown, slot, pid, status);
    else if (status != -1 && WIFSIGNALED(status) && state < AQ_RANK_ENDED)
        aq_shutdown_unannounced(shutdown, slot, pid, status);
}

bool aq_shutdown_catches(pid_t pid, int sig)
{
    char path[64], line[256];
    unsigned long long caught = ~0ull;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return true;
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, "SigCgt:", 7) == 0) {
            caught = strtoull(line + 7, NULL, 16);
            break;
        }
    }
    fclose(f);
    return (caught >> (sig - 1)) & 1;
}

static pid_t aq_shutdown_rank_pid(const struct aq_shutdown *shutdown, uint32_t slot)
{
    /* relaxed: written once, at start-up */
    return atomic_load_explicit(&shutdown->jobarea->rank[slot].pid, memory_order_relaxed);
}

static void aq_shutdown_kill(const struct aq_shutdown *shutdown, uint32_t slot)
{
    pid_t rank = aq_shutdown_rank_pid(shutdown, slot);

    /* the child may be a wrapper (a shell, valgrind) around the rank */
    if (rank > 0 && rank != shutdown->child[slot])
        kill(rank, SIGKILL);
    kill(shutdown->child[slot], SIGKILL);
}

static void aq_shutdown_ask(struct aq_shutdown *shutdown)
{
    aq_jobarea_raise_exit_state(shutdown->jobarea, AQ_EXIT_ASKED);
    aq_jobarea_wake_word(&shutdown->jobarea->round);
    for (uint32_t i = 0; i < shutdown->jobarea->size; i++) {
        pid_t pid = aq_shutdown_rank_pid(shutdown, i);

        if (shutdown->child[i] <= 0 || aq_shutdown_state(shutdown, i) >= AQ_RANK_DISCONNECTED)
            continue;
        /* SIGQUIT would only kill a rank without a handler and write a core file; SIGKILL is
         * better */
        if (pid > 0 && aq_shutdown_catches(pid, SIGQUIT))
            kill(pid, SIGQUIT);
        else if (!shutdown->gentle) /* then the rank sees the state and ends itself */
            aq_shutdown_kill(shutdown, i);
    }
}

void aq_shutdown_agreed(struct aq_shutdown *shutdown, int code)
{
    /* relaxed: this thread is the one that moves the state beyond SHUTDOWN */
    if (atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_relaxed) >= AQ_EXIT_ASKED)
        return;
    aq_shutdown_begin(shutdown, 0);
    /* relaxed: ranks read it after the state, which is raised below. A code that a local rank
     * has published in the meantime came too late for the other hosts, so it does not count here
     * either */
    atomic_store_explicit(&shutdown->jobarea->exit_code, code, memory_order_relaxed);
    aq_shutdown_ask(shutdown);
}

void aq_shutdown_now(struct aq_shutdown *shutdown)
{
    aq_shutdown_begin(shutdown, 0);
    shutdown->kill_ns = aq_jobarea_now_ns();
}

/* runs at ask_ns */
static void aq_shutdown_ask_now(struct aq_shutdown *shutdown)
{
    if (shutdown->silent > 0 && (shutdown->alive > 0 || shutdown->joined_elsewhere)) {
        aq_shutdown_tell(shutdown, shutdown->silent_slot, shutdown->silent_pid,
                         shutdown->silent_status);
        aq_jobarea_raise_exit_code(shutdown->jobarea, 1);
    }
    if (!shutdown->follow)
        aq_shutdown_ask(shutdown);
}

void aq_shutdown_defer_kill(struct aq_jobarea_rank *rank, uint64_t ms)
{
    /* relaxed: a time that needs no other data */
    atomic_store_explicit(&rank->kill_after_ns, aq_jobarea_now_ns() + ms * AQ_SHUTDOWN_MS,
                          memory_order_relaxed);
}

/* Returns true if the rank must not be killed yet. A rank that flushes its output is not killed: it
 * ends when its reader does. A rank that has just finished that ends soon, and a rank in state
 * ENDED says itself how long it must be spared. */
static bool aq_shutdown_kill_deferred(const struct aq_shutdown *shutdown, uint32_t slot,
                                      uint32_t state)
{
    struct aq_jobarea_rank *rank = &shutdown->jobarea->rank[slot];
    /* relaxed: as above */
    const uint64_t until = atomic_load_explicit(&rank->kill_after_ns, memory_order_relaxed);
    const uint64_t now = aq_jobarea_now_ns();

    if (shutdown->stopped)
        return false;
    if (state == AQ_RANK_FLUSHING && until < now + AQ_SHUTDOWN_FLUSH_MS * AQ_SHUTDOWN_MS)
        aq_shutdown_defer_kill(rank, AQ_SHUTDOWN_FLUSH_MS);
    return state == AQ_RANK_FLUSHING || (state == AQ_RANK_ENDED && now < until);
}

static void aq_shutdown_kill_all(struct aq_shutdown *shutdown)
{
    uint32_t killed = 0, first = 0;
    bool first_time =
        aq_jobarea_raise_exit_state(shutdown->jobarea, AQ_EXIT_KILLING) < AQ_EXIT_KILLING;

    shutdown->killed = true;
    /* descending: where the host's first rank runs this itself, it must be the last to be killed */
    for (uint32_t i = shutdown->jobarea->size; i-- > 0;) {
        uint32_t state = aq_shutdown_state(shutdown, i);

        if (shutdown->child[i] <= 0 || state == AQ_RANK_DISCONNECTED
            || aq_shutdown_kill_deferred(shutdown, i, state))
            continue;
        if (state < AQ_RANK_EXITING) {
            killed++;
            first = shutdown->jobarea->rank[i].jobrank;
        }
        aq_shutdown_kill(shutdown, i);
    }
    if (killed > 0 && first_time && shutdown->verbose)
        aq_shutdown_say("NOTICE",
                        "killed %u rank%s, the first of them rank %u, that did not end within "
                        "%.1f s (GASNET_EXITTIMEOUT)",
                        killed, killed == 1 ? "" : "s", first,
                        aq_jobarea_exit_ms(shutdown->jobarea) / 1000.0);
}

bool aq_shutdown_frozen(const struct aq_shutdown *shutdown)
{
    for (uint32_t i = 0; i < shutdown->jobarea->size; i++)
        /* relaxed: read again soon */
        if (atomic_load_explicit(&shutdown->jobarea->rank[i].frozen, memory_order_relaxed) != 0
            && shutdown->child[i] > 0)
            return true;
    return false;
}

/* ranks have come to the exit since the last step: determines how much time the others get */
static void aq_shutdown_check(struct aq_shutdown *shutdown)
{
    uint32_t timeout = aq_jobarea_exit_ms(shutdown->jobarea);

    for (uint32_t i = 0; i < shutdown->jobarea->size; i++) {
        uint32_t state = aq_shutdown_state(shutdown, i);
        struct aq_jobarea_rank *r = &shutdown->jobarea->rank[i];

        if (state < AQ_RANK_EXITING)
            continue;
        if (state == AQ_RANK_CRASHED)
            aq_shutdown_begin(shutdown, 0);
        /* relaxed: the acquire of the state comes before */
        else if (atomic_load_explicit(&r->code, memory_order_relaxed) == 0)
            aq_shutdown_begin(shutdown, timeout / 2);
        else
            aq_shutdown_begin(shutdown, timeout / 4 < AQ_SHUTDOWN_GRACE_MS ? timeout / 4
                                                                           : AQ_SHUTDOWN_GRACE_MS);
    }
}

/* A rank has failed, or was lost, after the shutdown had begun with code 0. */
static void aq_shutdown_limit(struct aq_shutdown *shutdown, uint64_t now)
{
    const uint64_t latest = now + aq_jobarea_exit_ms(shutdown->jobarea) * AQ_SHUTDOWN_MS;

    if (shutdown->kill_ns > latest)
        shutdown->kill_ns = latest;
}

int aq_shutdown_step(struct aq_shutdown *shutdown)
{
    /* acquire: pairs with the raise in aq_jobarea_publish_exit() */
    uint32_t state = atomic_load_explicit(&shutdown->jobarea->exit_state, memory_order_acquire);
    uint64_t now, due;

    if (shutdown->silent > 0 && shutdown->start_ns == 0 && aq_shutdown_any_joined(shutdown))
        aq_shutdown_begin(shutdown, AQ_SHUTDOWN_SILENT_MS);
    if (state == AQ_EXIT_SHUTDOWN)
        aq_shutdown_check(shutdown);
    if (shutdown->start_ns == 0)
        return -1;
    now = aq_jobarea_now_ns();
    if (!shutdown->stopped && (shutdown->frozen_elsewhere || aq_shutdown_frozen(shutdown))) {
        shutdown->kill_ns = now + aq_jobarea_exit_ms(shutdown->jobarea) * AQ_SHUTDOWN_MS;
        return 200;
    }
    if (state < AQ_EXIT_ASKED && now >= shutdown->ask_ns) {
        aq_shutdown_ask_now(shutdown);
        state = AQ_EXIT_ASKED;
    }
    aq_shutdown_limit(shutdown, now);
    if (now >= shutdown->kill_ns) {
        due = shutdown->kill_ns + AQ_SHUTDOWN_GENTLE_MS * AQ_SHUTDOWN_MS;
        if (shutdown->gentle && now < due) {
            aq_jobarea_raise_exit_state(shutdown->jobarea, AQ_EXIT_KILLING);
            return (int)((due - now) / AQ_SHUTDOWN_MS) + 1;
        }
        aq_shutdown_kill_all(shutdown);
        return 100; /* again, for a rank that appears only now */
    }
    due = state < AQ_EXIT_ASKED && shutdown->ask_ns < shutdown->kill_ns ? shutdown->ask_ns
                                                                        : shutdown->kill_ns;
    return (int)((due - now) / AQ_SHUTDOWN_MS) + 1;
}
