/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_log.c - console messages and log lines; see aq_log.h.
 * Owns      aq_log_level, the rank and the switches behind the setters
 * Threads   the switches are written at init; the rank and the verbose-errors switch may change
 *           later and are relaxed atomics, since no other data depends on them
 */
#include "base/aq_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/aq_say.h"

/* weak: small programs such as the launcher use this file without the exit machinery */
_Noreturn void aq_exit_abort(int code) __attribute__((weak));

int aq_log_level = AQ_LOG_WARN;

static atomic_llong aq_log_my_rank = -1;
static atomic_bool aq_log_errors_on = true;
static bool aq_log_is_quiet;
static _Atomic uint64_t *_Atomic aq_log_dedup; /* see aq_log_set_dedup() */

static const char *const aq_log_level_names[] = { "none", "error", "warn", "info", "debug" };

/* relaxed, here and below: the value protects no other data */
void aq_log_set_rank(uint32_t rank)
{
    atomic_store_explicit(&aq_log_my_rank, (long long)rank, memory_order_relaxed);
}

int64_t aq_log_rank(void)
{
    return atomic_load_explicit(&aq_log_my_rank, memory_order_relaxed);
}

void aq_log_set_quiet(bool quiet)
{
    aq_log_is_quiet = quiet;
}

void aq_log_set_verbose_errors(bool on)
{
    atomic_store_explicit(&aq_log_errors_on, on, memory_order_relaxed);
}

bool aq_log_verbose_errors(void)
{
    return atomic_load_explicit(&aq_log_errors_on, memory_order_relaxed);
}

bool aq_log_set_level(const char *text)
{
    for (int level = AQ_LOG_NONE; level <= AQ_LOG_DEBUG; level++) {
        if (strcasecmp(text, aq_log_level_names[level]) == 0
            || (text[0] == '0' + level && text[1] == '\0')) {
            aq_log_level = level;
            return true;
        }
    }
    return false;
}

static void aq_log_emit(const char *line, size_t len)
{
    (void)aq_say(STDERR_FILENO, line, len); /* a failure cannot be reported anywhere else */
}

static size_t aq_log_clamp(int printed, size_t space)
{
    if (printed < 0)
        return 0;
    return (size_t)printed < space ? (size_t)printed : space - 1;
}

/* "proc 3", or "host:pid" while there is no rank */
size_t aq_log_who(char *buf, size_t space)
{
    int64_t rank = aq_log_rank();
    char host[256];

    if (rank >= 0)
        return aq_log_clamp(snprintf(buf, space, "proc %lld", (long long)rank), space);
    if (gethostname(host, sizeof(host)) != 0)
        strcpy(host, "localhost");
    host[sizeof(host) - 1] = '\0';
    return aq_log_clamp(snprintf(buf, space, "%s:%ld", host, (long)getpid()), space);
}

/* appends the formatted text to line, which holds used bytes, and writes it with one newline */
static void aq_log_finish(char *line, size_t used, const char *fmt, va_list args)
{
    static const char cut[] = " [...]";
    size_t space = AQ_LOG_LINE_MAX - used - sizeof(cut);
    int printed = vsnprintf(line + used, space, fmt, args);

    used += aq_log_clamp(printed, space);
    if (printed >= 0 && (size_t)printed >= space) {
        memcpy(line + used, cut, sizeof(cut) - 1);
        used += sizeof(cut) - 1;
    }
    if (used == 0 || line[used - 1] != '\n')
        line[used++] = '\n';
    aq_log_emit(line, used);
}

void aq_log_set_dedup(_Atomic uint64_t *logged)
{
    /* relaxed: set before there is another thread, and never changed */
    atomic_store_explicit(&aq_log_dedup, logged, memory_order_relaxed);
}

/* Returns true if another rank of this host has printed the same text. */
static bool aq_log_is_duplicate(const char *fmt, va_list args)
{
    char text[AQ_LOG_LINE_MAX];
    /* relaxed: see aq_log_set_dedup() */
    _Atomic uint64_t *logged = atomic_load_explicit(&aq_log_dedup, memory_order_relaxed);
    uint64_t hash = 14695981039346656037u, first = 0; /* FNV-1a */
    va_list copy;

    if (logged == NULL)
        return false;
    va_copy(copy, args);
    if (vsnprintf(text, sizeof(text), fmt, copy) < 0)
        text[0] = '\0';
    va_end(copy);
    for (const char *c = text; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    hash |= 1; /* never 0 */
    /* relaxed: the word itself is all that is needed */
    return !atomic_compare_exchange_strong_explicit(logged, &first, hash, memory_order_relaxed,
                                                    memory_order_relaxed)
           && first == hash;
}

/* Reports an error that makes a call fail; notices and warnings go elsewhere. */
static void aq_log_failure(const char *head, const char *fmt, va_list args)
{
    int saved = errno;
    bool logged = aq_log_is_duplicate(fmt, args);

    errno = saved;
    if (!logged)
        aq_log_console(head, fmt, args);
}

void aq_log_console(const char *head, const char *fmt, va_list args)
{
    int saved = errno;
    char line[AQ_LOG_LINE_MAX];
    char who[300];
    size_t used;

    aq_log_who(who, sizeof(who));
    used = aq_log_clamp(snprintf(line, sizeof(line), "*** %s (%s): ", head, who), sizeof(line));
    errno = saved; /* for %m in the text */
    aq_log_finish(line, used, fmt, args);
    errno = saved;
}

void aq_warn(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    aq_log_console("WARNING", fmt, args);
    va_end(args);
}

void aq_notice(const char *fmt, ...)
{
    va_list args;

    if (aq_log_is_quiet)
        return;
    va_start(args, fmt);
    aq_log_console("NOTICE", fmt, args);
    va_end(args);
}

int aq_fail(int rc, const char *fmt, ...)
{
    va_list args;

    if (aq_log_verbose_errors()) {
        va_start(args, fmt);
        aq_log_failure("ERROR", fmt, args);
        va_end(args);
    }
    return rc;
}

_Noreturn void aq_fatal(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    aq_log_failure("FATAL ERROR", fmt, args);
    va_end(args);
    if (aq_exit_abort != NULL)
        aq_exit_abort(AQ_LOG_FATAL_STATUS);
    _exit(EXIT_FAILURE);
}

void aq_log_print(const char *fmt, ...)
{
    int saved = errno;
    char line[AQ_LOG_LINE_MAX];
    va_list args;

    va_start(args, fmt);
    aq_log_finish(line, 0, fmt, args);
    va_end(args);
    errno = saved;
}

void aq_log_write(int level, const char *area, const char *func, const char *fmt, ...)
{
    int saved = errno;
    char line[AQ_LOG_LINE_MAX];
    char lower[32];
    char who[300];
    size_t used, i;
    va_list args;

    for (i = 0; area[i] != '\0' && i < sizeof(lower) - 1; i++)
        lower[i] = (char)tolower((unsigned char)area[i]);
    lower[i] = '\0';

    if (aq_log_rank() >= 0)
        snprintf(who, sizeof(who), "%lld", (long long)aq_log_rank());
    else
        aq_log_who(who, sizeof(who));
    used = aq_log_clamp(snprintf(line, sizeof(line), "[%s] %s %s %s: ", who,
                                 aq_log_level_names[level], lower, func),
                        sizeof(line));
    errno = saved;
    va_start(args, fmt);
    aq_log_finish(line, used, fmt, args);
    va_end(args);
    errno = saved;
}

void aq_log_forget_rank(void)
{
    atomic_store_explicit(&aq_log_my_rank, -1, memory_order_relaxed);
}
