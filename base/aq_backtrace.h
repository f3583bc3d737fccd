/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_backtrace.h - this process's stack as text, and waiting for a debugger.
 * Owns      the list of backtrace methods; `gasnet_frozen`
 * Threads   configured by one thread; the rest is async-signal-safe and may be called by any
 * Promise   needs no job; no memory is allocated after aq_backtrace_configure() if in_handlers
 * Uses      base/aq_line.h, gasnet_tools.h (the client's own method)
 */
#ifndef AQ_BACKTRACE_H
#define AQ_BACKTRACE_H

#include <stdbool.h>

struct aq_backtrace_settings {
    const char
        *types;    /* GASNET_BACKTRACE_TYPE: names in the order of trying; NULL: the default ones */
    bool on_error; /* fatal errors print a backtrace */
    bool in_handlers; /* may be called in a signal handler: prepare now, not at the first call */
    bool all_threads; /* print all threads where the method can */
    const char *who;  /* the rank in brackets before each line; copied */
};

/** aq_backtrace_configure - sets the above; may be called again when more is known. */
void aq_backtrace_configure(const struct aq_backtrace_settings *settings);

/** aq_backtrace_is_configured - returns true if it has been called. */
bool aq_backtrace_is_configured(void);

/** aq_backtrace_print - prints this process's stack to fd, by the first method that works; 0 if
 * one did. */
int aq_backtrace_print(int fd);

/** aq_backtrace_on_error - called by fatal errors: prints a backtrace to stderr if the user asked
 * for that. */
void aq_backtrace_on_error(void);

/** aq_backtrace_advise - returns true if errors print no backtrace now, so that a message should
 * advise one. */
bool aq_backtrace_advise(void);

/* The user sets it to 0 from a debugger; gasnet_tools.h declares it to clients. */
extern volatile int gasnet_frozen;

/* Called before and after each wait for a debugger; NULL at first. */
extern void (*aq_freeze_hook)(bool frozen);

/**
 * aq_freeze - set *flag to 1 and wait until a debugger sets it to 0, or SIGCONT arrives.
 * flagname  name of the flag for the message; who: text in the message's brackets
 */
void aq_freeze(volatile int *flag, const char *flagname, const char *who);

#endif
