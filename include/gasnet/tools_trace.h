/*
 * tools_trace.h - what a client adds to traces and statistics.
 *
 * In a program that traces nothing, or has no conduit, aq_client_trace is NULL: each macro below
 * then costs at most one load and a predictable branch, and evaluates no argument.
 * Source: GASNet tools specification 1.20, tracing and statistics.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_TRACE_H
#define GASNET_TOOLS_TRACE_H 1

AQ_BEGIN_DECLS

/*
 * The conduit library's functions while a trace or statistics are written. core/aq_trace.c sets
 * aq_client_trace when it has opened a file, at the start of the job or later. No entry is NULL.
 * Texts do not end in a newline and are copied.
 */
struct aq_client_trace {
    int (*trace_enabled)(char category);
    void (*trace_text)(int force, const char *text); /* force: even if the mask excludes it */
    const char *(*trace_mask)(void);
    void (*trace_set_mask)(const char *mask);
    int (*trace_local)(void);
    void (*trace_set_local)(int on);
    void (*set_line)(const char *file, unsigned line); /* position in the client's source */
    void (*get_line)(const char **file, unsigned *line);
    void (*freeze_line)(int freeze); /* while frozen, set_line is ignored; nests */
    int (*stats_enabled)(char category);
    void (*stats_text)(int force, const char *text);
    const char *(*stats_mask)(void);
    void (*stats_set_mask)(const char *mask);
    int (*stats_init)(void (*callback)(void (*printf_fn)(const char *, ...)));
    void (*stats_dump)(int reset);
};
AQ_PUBLIC extern const struct aq_client_trace *aq_client_trace;

/* formats, then calls trace_text() or stats_text(); does nothing if aq_client_trace is NULL */
AQ_PUBLIC void aq_tools_trace_printf(int force, const char *fmt, ...)
    AQ_ATTR((__format__(__printf__, 2, 3)));
AQ_PUBLIC void aq_tools_stats_printf(int force, const char *fmt, ...)
    AQ_ATTR((__format__(__printf__, 2, 3)));

#define AQ_TOOLS_TRACES AQ_UNLIKELY(aq_client_trace != NULL)

/* GASNETT_TRACE_ENABLED - 1 if lines of the client (category H) are written now. */
#define GASNETT_TRACE_ENABLED  (AQ_TOOLS_TRACES && aq_client_trace->trace_enabled('H'))
#define AQ_TOOLS_STATS_ENABLED (AQ_TOOLS_TRACES && aq_client_trace->stats_enabled('H'))

/* Write a line, arguments as for printf, if category H is on; with _FORCE whatever the mask is. */
#define GASNETT_TRACE_PRINTF(...) \
    (GASNETT_TRACE_ENABLED ? aq_tools_trace_printf(0, __VA_ARGS__) : (void)0)
#define GASNETT_TRACE_PRINTF_FORCE(...) \
    (AQ_TOOLS_TRACES ? aq_tools_trace_printf(1, __VA_ARGS__) : (void)0)
#define GASNETT_STATS_PRINTF(...) \
    (AQ_TOOLS_STATS_ENABLED ? aq_tools_stats_printf(0, __VA_ARGS__) : (void)0)
#define GASNETT_STATS_PRINTF_FORCE(...) \
    (AQ_TOOLS_TRACES ? aq_tools_stats_printf(1, __VA_ARGS__) : (void)0)

/* Query and set the letters of the enabled categories. */
#define GASNETT_TRACE_GETMASK() (AQ_TOOLS_TRACES ? aq_client_trace->trace_mask() : "")
#define GASNETT_TRACE_SETMASK(mask) \
    (AQ_TOOLS_TRACES ? aq_client_trace->trace_set_mask(mask) : (void)0)
#define GASNETT_STATS_GETMASK() (AQ_TOOLS_TRACES ? aq_client_trace->stats_mask() : "")
#define GASNETT_STATS_SETMASK(mask) \
    (AQ_TOOLS_TRACES ? aq_client_trace->stats_set_mask(mask) : (void)0)

/* Query and set whether operations of the rank with itself are traced. */
#define GASNETT_TRACE_GET_TRACELOCAL() (AQ_TOOLS_TRACES ? aq_client_trace->trace_local() : 0)
#define GASNETT_TRACE_SET_TRACELOCAL(on) \
    (AQ_TOOLS_TRACES ? aq_client_trace->trace_set_local(on) : (void)0)

/* Set the position in the client's own program: const char *file, unsigned line. */
#define GASNETT_TRACE_SETSOURCELINE(file, line) \
    (AQ_TOOLS_TRACES ? aq_client_trace->set_line((file), (line)) : (void)0)
#define GASNETT_TRACE_GETSOURCELINE(pfile, pline) \
    (AQ_TOOLS_TRACES ? aq_client_trace->get_line((pfile), (pline)) : (void)0)
#define GASNETT_TRACE_FREEZESOURCELINE() \
    (AQ_TOOLS_TRACES ? aq_client_trace->freeze_line(1) : (void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() \
    (AQ_TOOLS_TRACES ? aq_client_trace->freeze_line(0) : (void)0)

/* Register cb, which is called when statistics are written; non-zero if category H counts. Write
 * them now. */
#define GASNETT_STATS_INIT(cb)    (AQ_TOOLS_TRACES ? aq_client_trace->stats_init(cb) : 0)
#define GASNETT_STATS_DUMP(reset) (AQ_TOOLS_TRACES ? aq_client_trace->stats_dump(reset) : (void)0)

AQ_END_DECLS

#endif
