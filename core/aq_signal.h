/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_signal.h - the library's signal handlers: fatal and terminating signals, freeze, backtrace.
 * Owns      handlers of ABRT FPE ILL SEGV BUS, INT TERM HUP PIPE QUIT, and those that
 *           GASNET_FREEZE_SIGNAL and GASNET_BACKTRACE_SIGNAL name; `gasnet_frozen`
 * Threads   handlers run on any thread and use async-signal-safe calls only
 * Promise   a handler that the client installed before is never replaced. That of gfortran's
 *           run-time library for SIGQUIT is
 * Uses      core/aq_exit_internal.h, base/aq_env.h
 */
#ifndef AQ_SIGNAL_H
#define AQ_SIGNAL_H

/** aq_signal_init - installs the handlers; called by aq_exit_init(). */
void aq_signal_init(void);

/** aq_signal_fatal_aids - backtrace and freeze after a fatal error, as the environment
 * requests. */
void aq_signal_fatal_aids(void);

/** aq_signal_freeze - prints how to attach, then waits until a debugger clears gasnet_frozen. */
void aq_signal_freeze(void);

/** aq_signal_backtrace - prints this process's stack to stderr. Async-signal-safe. */
void aq_signal_backtrace(void);

#include "base/aq_env.h"

/** aq_signal_install_named - installs handler for the signal that the variable id (named name)
 * names, if it is set. */
void aq_signal_install_named(enum aq_env_id id, const char *name, void (*handler)(int));

/** aq_signal_fini - the job has ended, the process goes on: restores the earlier handlers. */
void aq_signal_fini(void);

#endif
