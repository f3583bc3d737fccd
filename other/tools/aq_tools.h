/*
 * aq_tools.h - internal header of the tools.
 *
 * The tools are the lowest layer: they are in the tools-only archives and in every conduit library,
 * and work without a job. They refer to functions of a job by weak names; if a name is absent,
 * there is no job. Depends on base/aq_log.h, base/aq_env.h, base/aq_platform.h and
 * base/aq_backtrace.h, which need no job either. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TOOLS_H
#define AQ_TOOLS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if GASNET_SEQ || GASNET_PAR
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"

/* core/aq_exit.c */
_Noreturn void aq_exit_abort(int code) __attribute__((weak));

/** aq_tools_has_job_code - returns true in a program with a conduit. Its job need not have
 * started. */
static inline bool aq_tools_has_job_code(void)
{
    return aq_exit_abort != NULL;
}

/** aq_tools_flag - a yes/no variable of the library itself, not reported; a wrong value is
 * fatal. */
bool aq_tools_flag(const char *key, bool dflt);

/** aq_tools_thread - a number for the calling thread, never 0. */
uint64_t aq_tools_thread(void);

#endif
