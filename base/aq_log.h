/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_log.h - messages and log lines of the library, on stderr.
 * Owns      the log level, the rank shown in the brackets, the quiet and verbose-errors switches
 * Threads   any thread, any time, signal handlers excepted; each line is one write(2)
 * Promise   errno is kept; a level that is off costs one predictable branch; if all ranks of a host
 *           find the same error while a job starts, one of them prints it
 * Uses      libc; core/aq_exit.h only to end the job after a fatal error
 *
 * Three kinds of output. Console messages begin with fixed text, which users' scripts match: "***
 * FATAL ERROR (proc 3): ", "*** WARNING (proc 3): ", "*** NOTICE (proc 3): ". While the process has
 * no rank yet, host:pid replaces "proc 3". A failed operation prints "*** ERROR (proc 3): ". Log
 * lines, selected by AQ_LOG_LEVEL, look like "[3] warn udp aq_udp_resend: peer 7: rtt 840 us".
 */
#ifndef AQ_LOG_H
#define AQ_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* a longer message is cut; the size of one write */
#define AQ_LOG_LINE_MAX 4096

/* status of a job that a fatal error ends: a shell's status of a process that ended by abort() */
#define AQ_LOG_FATAL_STATUS 134

enum aq_log_level { AQ_LOG_NONE = 0, AQ_LOG_ERROR, AQ_LOG_WARN, AQ_LOG_INFO, AQ_LOG_DEBUG };

/* read by AQ_LOG; written only by aq_log_set_level(), at init before there are threads */
extern int aq_log_level;

/**
 * aq_fatal - print "*** FATAL ERROR (...): text" and end the whole job with AQ_LOG_FATAL_STATUS;
 *            a program that is not in a job, such as a launcher, ends with status 1.
 * fmt       printf format without a newline; names the remedy, with figures
 * Context   any thread; not in a signal handler
 */
_Noreturn void aq_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/** aq_warn - print "*** WARNING (...): text": something is wrong but the job goes on. */
void aq_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/** aq_notice - print "*** NOTICE (...): text": advice; silent when GASNET_QUIET is on. */
void aq_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/**
 * aq_fail - report why an operation failed and return its code, for `return aq_fail(...)`.
 * rc        the return value, a negative AQ_ERR_* or a GASNET_ERR_*
 * Prints "*** ERROR (...): text" unless the client turned verbose errors off.
 */
int aq_fail(int rc, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/** aq_log_print - writes text as it is, in one write(2); for lines with a form of their own. */
void aq_log_print(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));

/** aq_log_console - "*** HEAD (...): text"; the calls above use it. */
void aq_log_console(const char *head, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0), cold));

/**
 * aq_log_set_dedup - errors are compared through a word that the ranks of a host share, 0 at first:
 * the first text that one of them prints is not printed by the others. NULL: each rank prints
 * again.
 */
void aq_log_set_dedup(_Atomic uint64_t *logged);

/** aq_log_who - the text in brackets: "proc 3", or "host:pid" while there is no rank. */
size_t aq_log_who(char *buf, size_t space);

/** aq_log_write - the out-of-line part of AQ_LOG. */
void aq_log_write(int level, const char *area, const char *func, const char *fmt, ...)
    __attribute__((format(printf, 4, 5), cold));

/** aq_log_set_rank - from now on brackets show "proc rank". */
void aq_log_set_rank(uint32_t rank);

/** aq_log_forget_rank - the job has ended: lines show host:pid again. */
void aq_log_forget_rank(void);

/** aq_log_rank - the rank shown in brackets, or -1 while there is none. */
int64_t aq_log_rank(void);

/**
 * aq_log_set_level - select what AQ_LOG prints.
 * text      none, error, warn, info or debug, any case, or 0..4
 * Returns false, and changes nothing, if text is none of these
 */
bool aq_log_set_level(const char *text);

/** aq_log_set_quiet - true: aq_notice() prints nothing (GASNET_QUIET). */
void aq_log_set_quiet(bool quiet);

/** aq_log_set_verbose_errors - true: aq_fail() prints (gex_System_SetVerboseErrors). */
void aq_log_set_verbose_errors(bool on);

/** aq_log_verbose_errors - the present setting; on at start. */
bool aq_log_verbose_errors(void);

/**
 * AQ_LOG - a log line of a level and an area: AQ_LOG(WARN, UDP, "peer %u: rtt %u us", ...).
 * A macro because it needs __func__ and because the arguments must not be evaluated when the
 * level is off.
 */
#define AQ_LOG(LEVEL, AREA, ...)                                        \
    do {                                                                \
        if (__builtin_expect(AQ_LOG_##LEVEL <= aq_log_level, 0))        \
            aq_log_write(AQ_LOG_##LEVEL, #AREA, __func__, __VA_ARGS__); \
    } while (0)

#endif
