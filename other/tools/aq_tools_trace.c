/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_trace.c - passes clients' lines to traces; see include/gasnet/tools_trace.h.
 * Owns      aq_client_trace, which core/aq_trace.c sets
 * Threads   any
 */
#include "other/tools/aq_tools.h"

#include <stdio.h>

#define AQ_TOOLS_TRACE_MAX 4096 /* bytes of a line; a longer one is cut */

const struct aq_client_trace *aq_client_trace;

void aq_tools_trace_printf(int force, const char *fmt, ...)
{
    const struct aq_client_trace *trace = aq_client_trace;
    char text[AQ_TOOLS_TRACE_MAX];
    va_list args;

    if (trace == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trace->trace_text(force, text);
}

void aq_tools_stats_printf(int force, const char *fmt, ...)
{
    const struct aq_client_trace *trace = aq_client_trace;
    char text[AQ_TOOLS_TRACE_MAX];
    va_list args;

    if (trace == NULL)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    trace->stats_text(force, text);
}
