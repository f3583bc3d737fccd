/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_backtrace.h - where a process is: its stack as text, and waiting for a debugger.
 * Owns      the list of ways to make a backtrace; `gasnet_frozen`
 * Threads   configured by one thread; the rest is async-signal-safe and may be called by any
 * Promise   needs no job; no memory is allocated after aq_backtrace_configure() if in_handlers
 * Uses      base/aq_line.h, gasnet_tools.h (the client's own way)
 */
#ifndef AQ_BACKTRACE_H
#define AQ_BACKTRACE_H

#include <stdbool.h>

struct aq_backtrace_settings {
    const char
        *types;    /* GASNET_BACKTRACE_TYPE: names in the order of trying; NULL: the usual ones */
    bool on_error; /* fatal errors print one */
    bool in_handlers; /* may be wanted in a signal handler: prepare now, not at the first */
    bool all_threads; /* where the way can show others than the caller */
    const char *who;  /* what leads each line in brackets: the rank; copied */
};

/** aq_backtrace_configure - what to do when asked; may be called again with better knowledge. */
void aq_backtrace_configure(const struct aq_backtrace_settings *settings);

/** aq_backtrace_is_configured - has it been called? */
bool aq_backtrace_is_configured(void);

/** aq_backtrace_print - this process's stack to fd, by the first way that works; 0 if one did. */
int aq_backtrace_print(int fd);

/** aq_backtrace_on_error - print one to stderr if the user asked for that; called by fatal errors.
 * */
void aq_backtrace_on_error(void);

/** aq_backtrace_advise - is a backtrace worth advising, because errors print none now? */
bool aq_backtrace_advise(void);

/* What a user sets to 0 from a debugger; declared to clients by gasnet_tools.h. */
extern volatile int gasnet_frozen;

/* Told before and after each wait for a debugger; NULL at first. */
extern void (*aq_freeze_hook)(bool frozen);

/**
 * aq_freeze - wait for a debugger: *flag is 1, until somebody makes it 0 or SIGCONT comes.
 * flagname  what to tell the user to set; who: for the bracket of the message
 */
void aq_freeze(volatile int *flag, const char *flagname, const char *who);

#endif
