/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_process.c - fatal errors, backtraces, freezing; see include/gasnet/tools_process.h.
 * Threads   any
 * How       with a conduit, by the job's exit (core/aq_exit.h); without, by abort()
 * Uses      base/aq_backtrace.h, base/aq_log.h
 */
#include "other/tools/aq_tools.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_backtrace.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_signal_name.h"

/* --- before a job has configured them: values from the environment --- */

static void aq_process_configure(void)
{
    struct aq_backtrace_settings settings = { .who = NULL };
    char who[300];

    aq_log_who(who, sizeof(who));
    settings.who = strncmp(who, "proc ", 5) == 0 ? who + 5 : who;
    settings.types = aq_env_get_live("GASNET_BACKTRACE_TYPE");
    settings.on_error = aq_tools_flag("GASNET_BACKTRACE", false);
    settings.all_threads = aq_tools_flag("GASNET_BACKTRACE_MT", true);
    settings.in_handlers = true;
    aq_backtrace_configure(&settings);
}

static void aq_process_on_backtrace(int sig)
{
    (void)sig;
    aq_backtrace_print(STDERR_FILENO);
}

static void aq_process_on_freeze(int sig)
{
    char who[300];

    (void)sig;
    aq_log_who(who, sizeof(who));
    aq_freeze(&gasnet_frozen, "gasnet_frozen", who);
}

/* installs a handler for the signal that a variable names, if it is set */
static void aq_process_catch(const char *key, gasnett_sighandlerfn_t handler)
{
    const char *text = aq_env_get_live(key);
    int sig;

    if (text == NULL || *text == '\0')
        return;
    sig = aq_signal_parse(text, strlen(text));
    if (sig == 0 || sig == SIGKILL || sig == SIGSTOP)
        gasnett_fatalerror_nopos(
            "%s=%s is not a signal that can be caught; write for instance SIGUSR1, usr1 "
            "or 10",
            key, text);
    gasnett_reghandler(sig, handler);
}

void gasnett_backtrace_init(const char *exename)
{
    (void)exename; /* the system provides it */
    if (aq_tools_has_job_code() && aq_backtrace_is_configured())
        return; /* the job has done it, with more information */
    aq_process_configure();
    if (aq_tools_has_job_code())
        return; /* the job will do the rest */
    aq_process_catch("GASNET_BACKTRACE_SIGNAL", aq_process_on_backtrace);
    aq_process_catch("GASNET_FREEZE_SIGNAL", aq_process_on_freeze);
    if (aq_tools_flag("GASNET_FREEZE", false))
        aq_process_on_freeze(0);
}

int gasnett_print_backtrace(int fd)
{
    if (!aq_backtrace_is_configured()) {
        aq_warn("gasnett_print_backtrace: call gasnett_backtrace_init(argv[0]) first");
        return -1;
    }
    return aq_backtrace_print(fd) == 0 ? 0 : -1;
}

void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagname)
{
    char who[300];

    aq_log_who(who, sizeof(who));
    aq_freeze(flag, flagname, who);
}

void gasnett_freezeForDebuggerErr(void)
{
    if (aq_tools_flag("GASNET_FREEZE_ON_ERROR", false))
        gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}

/* --- fatal errors --- */

static void aq_process_console(const char *head, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    aq_log_console(head, fmt, args);
    va_end(args);
}

static _Noreturn void aq_process_die(const char *text)
{
    /* a second error while the first is handled: what its handling needs may be what is broken */
    static atomic_flag dying = ATOMIC_FLAG_INIT;
    const bool again = atomic_flag_test_and_set_explicit(&dying, memory_order_relaxed);

    aq_process_console("FATAL ERROR", "%s", text);
    if (!again && !aq_backtrace_is_configured())
        aq_process_configure();
    if (!again && aq_backtrace_advise())
        aq_notice("run it again with GASNET_BACKTRACE=1 in the environment to see who called");
    if (aq_tools_has_job_code())
        aq_exit_abort(AQ_LOG_FATAL_STATUS);
    if (!again) {
        aq_backtrace_on_error();
        gasnett_freezeForDebuggerErr();
        fflush(stdout);
    }
    abort();
}

void aq_tools_fatal(const char *func, const char *file, int line, const char *fmt, ...)
{
    char text[AQ_LOG_LINE_MAX - 512];
    va_list args;
    int used = snprintf(text, sizeof(text), "in %s() at %s:%d: ", func, file, line);

    if (used < 0 || (size_t)used >= sizeof(text))
        used = 0;
    va_start(args, fmt);
    vsnprintf(text + used, sizeof(text) - (size_t)used, fmt, args);
    va_end(args);
    aq_process_die(text);
}

void aq_tools_fatal_nopos(const char *fmt, ...)
{
    char text[AQ_LOG_LINE_MAX - 512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    aq_process_die(text);
}

void aq_tools_broken(const char *what, const char *func, const char *file, int line)
{
    aq_tools_fatal(func, file, line, "%s", what);
}

/* --- exit and streams --- */

void gasnett_killmyprocess(int exitcode)
{
    _exit(exitcode);
}

void gasnett_flush_streams(void)
{
    fflush(stdout);
    fflush(stderr);
    if (aq_tools_flag("GASNET_FS_SYNC", false)) {
        fsync(STDOUT_FILENO);
        fsync(STDERR_FILENO);
        sync();
    }
}

void gasnett_close_streams(void)
{
    gasnett_flush_streams();
    fclose(stdin);
    fclose(stdout);
    fclose(stderr);
}

char *aq_tools_place(const char *func, const char *file, int line)
{
    char *text;

    if (asprintf(&text, "%s() at %s:%d", func, file, line) < 0)
        gasnett_fatalerror_nopos("gasnett_current_loc: no memory");
    return text;
}
