/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_signal.c - signal handlers of a rank; see aq_signal.h.
 * Threads   handlers run on any thread. They use: atomics, write, kill, raise, sigaction, getpid,
 *           nanosleep, base/aq_backtrace.h, and aq_exit_from_signal(), which is async-signal-safe
 * Rule      a signal from the terminal reaches all ranks and the launcher alike: the ranks leave it
 *           to the launcher, so that one message is printed, not one for each rank
 * Uses      core/aq_exit_internal.h, base/aq_env.h, other/spawn
 */
#include "core/aq_signal.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_backtrace.h"
#include "base/aq_env.h"
#include "core/aq_exit.h"
#include "core/aq_exit_internal.h"
#include "base/aq_line.h"
#include "base/aq_log.h"
#include "base/aq_say.h"
#include "base/aq_signal_name.h"
#include "base/aq_state.h"
#include "base/aq_symbol.h"
#include "core/aq_trace.h"
#include "other/spawn/aq_shutdown.h"
#include "other/spawn/aq_spawn.h"

#define AQ_SIGNAL_STACK (256 * 1024) /* bytes; gdb's fork and backtrace_symbols_fd need some */

/* A handler of this library, and the one that it replaced. */
struct aq_signal_place {
    int sig;
    struct sigaction own, old;
};

#define AQ_SIGNAL_PLACES 16

static struct {
    char *who; /* "proc 3", made at init: handlers must not format */
    bool freeze_on_error;
    atomic_int crashing; /* the thread that reports its fault; 0: none */
    struct aq_signal_place place[AQ_SIGNAL_PLACES];
    unsigned places;
    void *stack; /* the alternate stack for handlers of the thread that started the job; or NULL */
} aq_signal_cfg AQ_JOB_STATE;

static const int aq_signal_fatal[] = { SIGABRT, SIGFPE, SIGILL, SIGSEGV, SIGBUS };
static const int aq_signal_shutdown[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };

static void aq_signal_say(const char *what, int sig)
{
    struct aq_line l = { .len = 0 };

    aq_line_put(&l, "*** ");
    aq_line_put(&l, what);
    aq_line_put(&l, " (");
    aq_line_put(&l, aq_signal_cfg.who != NULL ? aq_signal_cfg.who : "?");
    aq_line_put(&l, "): ");
    aq_line_put(&l, aq_signal_name(sig));
    aq_line_put(&l, "(");
    aq_line_put_number(&l, (unsigned)sig, 10);
    aq_line_put(&l, ")\n");
    (void)aq_say(STDERR_FILENO, l.text, l.len); /* a failure cannot be reported anywhere else */
}

static void aq_signal_default(int sig)
{
    struct sigaction act;
    sigset_t set;

    memset(&act, 0, sizeof(act));
    act.sa_handler = SIG_DFL;
    sigaction(sig, &act, NULL);
    sigemptyset(&set);
    sigaddset(&set, sig);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void aq_signal_freeze(void)
{
    aq_freeze(&gasnet_frozen, "gasnet_frozen", aq_signal_cfg.who != NULL ? aq_signal_cfg.who : "?");
}

void aq_signal_backtrace(void)
{
    aq_backtrace_print(STDERR_FILENO);
}

void aq_signal_fatal_aids(void)
{
    aq_backtrace_on_error();
    if (aq_signal_cfg.freeze_on_error)
        aq_signal_freeze();
}

/* The first thread to crash has not reported yet: waits for its report, unless it hangs. */
static void aq_signal_stand_back(void)
{
    struct timespec left = { 60, 0 };

    if (aq_signal_cfg.freeze_on_error)
        aq_exit_park();
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* Two threads may crash at once: one reports, the other waits for the end. A crash inside the
 * handler itself gets the default action at once, and so does a signal that another process
 * sends. */
static void aq_signal_on_fatal(int sig, siginfo_t *info, void *context)
{
    const int me = (int)syscall(SYS_gettid);
    int first = 0;
    bool again;

    (void)context;
    if (aq_exit_is_own_process()) {
        /* relaxed: only the identity of the first thread matters */
        if (atomic_compare_exchange_strong_explicit(&aq_signal_cfg.crashing, &first, me,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            aq_signal_say("Caught a fatal signal", sig);
            aq_trace_finish(aq_signal_name(sig), true);
            aq_signal_fatal_aids();
            aq_exit_publish_crash(128 + sig);
        } else if (first != me && info->si_code != SI_USER) {
            aq_signal_stand_back();
        }
        aq_exit_claim(&again);
    }
    aq_signal_default(sig);
    /* a fault happens again at its own instruction, where the core file shows it */
    if (info->si_code <= 0 || sig == SIGABRT)
        raise(sig);
}

static bool aq_signal_has_handler(int sig)
{
    struct sigaction act;

    return sigaction(sig, NULL, &act) == 0
           && ((act.sa_flags & SA_SIGINFO) != 0
               || (act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN));
}

/* from the terminal: the launcher has received it too, or receives it now */
static bool aq_signal_defer_to_launcher(int sig, const siginfo_t *info)
{
    if (!aq_spawn_is_supervised() || info->si_code != SI_KERNEL || sig == SIGPIPE)
        return false;
    kill(aq_spawn_jobarea()->supervisor, sig);
    return true;
}

static void aq_signal_on_shutdown(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (!aq_exit_is_own_process()) {
        aq_signal_default(sig);
        raise(sig);
        return;
    }
    /* during shutdown: a launcher that ends other ranks by SIGTERM, or a reader of stdout that has
     * closed */
    if (aq_exit_is_claimed() || aq_signal_defer_to_launcher(sig, info))
        return;
    if (!aq_exit_is_explained())
        aq_signal_say("Caught a signal", sig);
    /* the client's handler may clean up and end the job; without one, or if it returns, the library
     * ends it */
    if (aq_signal_has_handler(SIGQUIT))
        raise(SIGQUIT);
    aq_exit_from_signal(1);
}

/* SIGQUIT without a client's handler: sent by the supervisor, raised above, or from outside */
static void aq_signal_on_quit(int sig, siginfo_t *info, void *context)
{
    (void)context;
    if (!aq_exit_is_own_process()) {
        aq_signal_default(sig);
        raise(sig);
        return;
    }
    /* during shutdown: a launcher that ends other ranks by SIGTERM, or a reader of stdout that has
     * closed */
    if (aq_exit_is_claimed() || aq_signal_defer_to_launcher(sig, info))
        return;
    /* raised by aq_signal_on_shutdown(), which has printed its own message: si_code is SI_TKILL */
    if (!aq_exit_is_explained() && info->si_code != SI_TKILL)
        aq_signal_say("Caught a signal", sig);
    aq_exit_from_signal(1);
}

static void aq_signal_on_freeze(int sig)
{
    (void)sig;
    if (aq_exit_is_own_process())
        aq_signal_freeze();
}

static void aq_signal_on_backtrace(int sig)
{
    (void)sig;
    if (aq_exit_is_own_process())
        aq_signal_backtrace();
}

/* Returns true if sig is in GASNET_NO_CATCH_SIGNAL, all of whose words must be signals. */
static bool aq_signal_not_wanted(int sig)
{
    const char *at = aq_env_str(AQ_ENV_NO_CATCH_SIGNAL);
    bool found = false;

    while (at != NULL && *at != '\0') {
        size_t len;
        int named;

        at += strspn(at, ", \t");
        len = strcspn(at, ", \t");
        named = len == 1 && *at == '*' ? sig : aq_signal_parse(at, len);
        if (len > 0 && named == 0)
            aq_fatal("GASNET_NO_CATCH_SIGNAL: '%.*s' is not a signal; write for instance "
                     "SIGSEGV,bus,11, or *",
                     (int)len, at);
        found = found || named == sig;
        at += len;
    }
    return found;
}

/* gfortran's run-time library sets a handler at the start of main that prints the stack, and dies
 * of the signal. It cleans nothing up, so a rank that is asked to end by SIGQUIT would seem to have
 * crashed. */
static bool aq_signal_is_fortrans(void (*handler)(int))
{
    const void *address = (const void *)(uintptr_t)handler;
    struct aq_line name = { .len = 0 };

    aq_symbol_put(&name, address);
    return strncmp(aq_symbol_file(address), "libgfortran.", 12) == 0
           || strncmp(name.text, "_gfortrani_", 11) == 0; /* the static one */
}

/* A handler of the client or of a sanitizer is not replaced. Shells without job control, cron and
 * CI start background jobs with INT and QUIT ignored, yet these signals must end the job; an
 * ignored HUP is what nohup intends. */
static bool aq_signal_may_replace(int sig, const struct sigaction *old)
{
    if ((old->sa_flags & SA_SIGINFO) != 0)
        return false;
    if (old->sa_handler == SIG_IGN)
        return sig == SIGINT || sig == SIGQUIT || sig == SIGTERM;
    return old->sa_handler == SIG_DFL || (sig == SIGQUIT && aq_signal_is_fortrans(old->sa_handler));
}

/* Sets the handler and records the one before. */
static void aq_signal_set(int sig, const struct sigaction *act)
{
    struct aq_signal_place *place = &aq_signal_cfg.place[aq_signal_cfg.places];

    if (sigaction(sig, act, &place->old) != 0 || aq_signal_cfg.places + 1 == AQ_SIGNAL_PLACES)
        return;
    place->sig = sig;
    sigaction(sig, NULL, &place->own); /* in the system's representation */
    aq_signal_cfg.places++;
}

static void aq_signal_install(int sig, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction old, act;

    if (aq_signal_not_wanted(sig) || sigaction(sig, NULL, &old) != 0
        || !aq_signal_may_replace(sig, &old))
        return;
    memset(&act, 0, sizeof(act));
    act.sa_sigaction = handler;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&act.sa_mask);
    aq_signal_set(sig, &act);
}

void aq_signal_install_named(enum aq_env_id id, const char *name, void (*handler)(int))
{
    const char *text = aq_env_str(id);
    struct sigaction act;
    int sig;

    if (text == NULL || *text == '\0')
        return;
    sig = aq_signal_parse(text, strlen(text));
    if (sig == 0 || sig == SIGKILL || sig == SIGSTOP)
        aq_fatal("%s=%s is not a signal that can be caught; write for instance SIGUSR1, usr1 or 10",
                 name, text);
    memset(&act, 0, sizeof(act));
    act.sa_handler = handler;
    act.sa_flags = SA_ONSTACK | SA_RESTART;
    aq_signal_set(sig, &act);
}

/* After a stack overflow the thread's own stack has no space for the handler. */
static void aq_signal_stack(void)
{
    stack_t old, own = { .ss_size = AQ_SIGNAL_STACK };

    if (sigaltstack(NULL, &old) != 0 || (old.ss_flags & SS_DISABLE) == 0)
        return;
    own.ss_sp = mmap(NULL, AQ_SIGNAL_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (own.ss_sp != MAP_FAILED && sigaltstack(&own, NULL) == 0)
        aq_signal_cfg.stack = own.ss_sp;
}

/* Only the thread that has the stack can free it; it stays if another one ends the job. */
static void aq_signal_unstack(void)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    stack_t now;

    if (aq_signal_cfg.stack != NULL && sigaltstack(NULL, &now) == 0
        && now.ss_sp == aq_signal_cfg.stack && sigaltstack(&none, NULL) == 0)
        munmap(aq_signal_cfg.stack, AQ_SIGNAL_STACK);
}

static void aq_signal_configure(uint32_t rank)
{
    struct aq_backtrace_settings settings = { .who = NULL };
    char rank_text[16], *text;

    if (asprintf(&text, "proc %u", rank) > 0)
        aq_signal_cfg.who = text;
    aq_signal_cfg.freeze_on_error = aq_env_bool(AQ_ENV_FREEZE_ON_ERROR);
    snprintf(rank_text, sizeof(rank_text), "%u", rank);
    settings.who = rank_text;
    settings.types =
        aq_env_is_set(AQ_ENV_BACKTRACE_TYPE) ? aq_env_str(AQ_ENV_BACKTRACE_TYPE) : NULL;
    settings.all_threads = aq_env_bool(AQ_ENV_BACKTRACE_MT);
    settings.on_error =
        aq_env_bool(AQ_ENV_BACKTRACE) && aq_env_rank_listed(AQ_ENV_BACKTRACE_NODES, rank);
    settings.in_handlers = settings.on_error || aq_env_is_set(AQ_ENV_BACKTRACE_SIGNAL);
    aq_backtrace_configure(&settings);
    aq_freeze_hook = aq_exit_set_frozen;
}

void aq_signal_init(void)
{
    const struct aq_spawn_info *info = aq_spawn_info();

    aq_signal_configure(info != NULL ? info->rank : 0);
    aq_signal_stack();
    for (size_t i = 0; i < sizeof(aq_signal_fatal) / sizeof(aq_signal_fatal[0]); i++)
        aq_signal_install(aq_signal_fatal[i], aq_signal_on_fatal);
    for (size_t i = 0; i < sizeof(aq_signal_shutdown) / sizeof(aq_signal_shutdown[0]); i++)
        aq_signal_install(aq_signal_shutdown[i], aq_signal_on_shutdown);
    aq_signal_install(SIGQUIT, aq_signal_on_quit);
    aq_signal_install_named(AQ_ENV_FREEZE_SIGNAL, "GASNET_FREEZE_SIGNAL", aq_signal_on_freeze);
    aq_signal_install_named(AQ_ENV_BACKTRACE_SIGNAL, "GASNET_BACKTRACE_SIGNAL",
                            aq_signal_on_backtrace);
}

/* A handler that the client has set since then is not replaced. */
void aq_signal_fini(void)
{
    while (aq_signal_cfg.places > 0) {
        const struct aq_signal_place *place = &aq_signal_cfg.place[--aq_signal_cfg.places];
        struct sigaction now;

        if (sigaction(place->sig, NULL, &now) == 0 && now.sa_flags == place->own.sa_flags
            && now.sa_handler == place->own.sa_handler)
            sigaction(place->sig, &place->old, NULL);
    }
    aq_signal_unstack();
    free(aq_signal_cfg.who);
}
