/*
 * aq_trace.h - tracing of calls: what happened, when, and for how long.
 *
 * When tracing is off, which is usual, a call costs one load of a word that is never written and
 * one predictable branch. Inline transfers and atomics have not even that: while tracing or
 * statistics are on, peers are not in the tables that inline code reads, so that transfers go out
 * of line.
 *
 *     uint64_t began = aq_trace_begin(AQ_TRACE_PUT);
 *     ...
 *     aq_trace_end(AQ_TRACE_PUT, began, jobrank, nbytes);
 *
 * An entry point that cannot afford a second branch uses this form:
 *
 *     if (AQ_UNLIKELY(aq_trace_is_on()))
 *         return aq_am_traced_request_short(...);     does the above around the same work
 *
 * Threads   any; in handlers too, and while locks are held
 * Promise   a thread writes to its own memory, without a lock; see aq_trace.c
 * Uses      gasnetex.h, core/aq_trace.def. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_TRACE_H
#define AQ_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

enum aq_trace_kind {
#define AQ_TRACE(id, cat, name, form) AQ_TRACE_##id,
#include "core/aq_trace.def"
    AQ_TRACE_KIND_COUNT
};

/* The switches. All 0 is usual. They are written at start and when the client changes a mask, so
 * the cache line stays in every core. */
#define AQ_TRACE_ON_TRACE 1u /* events are recorded */
#define AQ_TRACE_ON_STATS 2u /* calls are counted */
#define AQ_TRACE_ON_FLOWS 4u /* messages are numbered, so that arrows connect them */

struct aq_trace_switch {
    unsigned on;
    uint8_t what[AQ_TRACE_KIND_COUNT]; /* AQ_TRACE_ON_TRACE, AQ_TRACE_ON_STATS of each kind */
};
extern struct aq_trace_switch aq_trace_switch __attribute__((aligned(64), visibility("hidden")));

static inline bool aq_trace_is_on(void)
{
    /* relaxed: a mask that another thread changes takes effect soon */
    return __builtin_expect(__atomic_load_n(&aq_trace_switch.on, __ATOMIC_RELAXED) != 0, 0);
}

uint64_t aq_trace_begin_slow(enum aq_trace_kind kind);
void aq_trace_end_slow(enum aq_trace_kind kind, uint64_t began, gex_Rank_t jobrank, size_t nbytes);

/**
 * aq_trace_begin - a call begins.
 * Returns the argument of aq_trace_end(): 0 if the call is not traced
 */
static inline uint64_t aq_trace_begin(enum aq_trace_kind kind)
{
    return aq_trace_is_on() ? aq_trace_begin_slow(kind) : 0;
}

/**
 * aq_trace_end - the call ends.
 * kind     may differ from the one at the beginning (a test, and whether it succeeded)
 * began    from aq_trace_begin(); 0: does nothing
 * jobrank  the peer; GEX_RANK_INVALID if there is no single one
 * nbytes   bytes of payload transferred or requested; 0 if there are none
 */
static inline void aq_trace_end(enum aq_trace_kind kind, uint64_t began, gex_Rank_t jobrank,
                                size_t nbytes)
{
    if (__builtin_expect(began != 0, 0))
        aq_trace_end_slow(kind, began, jobrank, nbytes);
}

/* For a call with several returns: from this place to the end of the enclosing block. */
struct aq_trace_scope {
    enum aq_trace_kind kind;
    gex_Rank_t jobrank;
    uint64_t began;
    size_t nbytes;
};

static inline void aq_trace_scope_end(const struct aq_trace_scope *scope)
{
    aq_trace_end(scope->kind, scope->began, scope->jobrank, scope->nbytes);
}

/* A macro, because it must leave a declaration behind. */
#define AQ_TRACE_SCOPE(kind, jobrank, nbytes)                                   \
    const struct aq_trace_scope aq_trace_scope_                                 \
        __attribute__((unused, cleanup(aq_trace_scope_end))) = { kind, jobrank, \
                                                                 aq_trace_begin(kind), nbytes }

/* --- messages: the calls above, and an arrow from the request to its handler --- */

struct aq_am_out;
struct aq_token;

/**
 * aq_trace_end_send - a message has been sent. It is numbered, whether it is recorded or not: call
 * this for each message while aq_trace_is_on(), before anything else is sent to the same peer.
 * began      from aq_trace_begin(), or 0
 * is_commit  the message has a negotiated payload
 * For the library's own handlers the kind is AQ_TRACE_OWN_*.
 */
void aq_trace_end_send(uint64_t began, const struct aq_am_out *out, bool is_commit);

/** aq_trace_send_kind - the kind that aq_trace_end_send() uses, for aq_trace_begin(). */
enum aq_trace_kind aq_trace_send_kind(const struct aq_am_out *out, bool is_commit);

/* A running handler. */
struct aq_trace_handler {
    enum aq_trace_kind kind;
    uint64_t began, flow;
};

/** aq_trace_begin_handler, aq_trace_end_handler - called around each handler while
 * aq_trace_is_on(). */
struct aq_trace_handler aq_trace_begin_handler(const struct aq_token *token);
void aq_trace_end_handler(const struct aq_trace_handler *handler, const struct aq_token *token,
                          const gex_AM_Arg_t *args, size_t nbytes);

/* --- text, start and end --- */

/** aq_trace_text - adds a line of text to the trace, if its kind is on. printf format, no
 * newline. */
void aq_trace_text(enum aq_trace_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * aq_trace_init - called once, when rank and environment are known, before the first message.
 * Collective. Returns the argument of aq_trace_end() for the client's start.
 */
uint64_t aq_trace_init(void);

/** aq_trace_is_wanted - after aq_trace_init(): returns true if calls must go out of line in this
 * process. */
bool aq_trace_is_wanted(void);

/** aq_trace_idle - a waiting thread is about to sleep: writes old records to the file. */
void aq_trace_idle(void);

/** aq_trace_thread_exit - the calling thread ends; trace is its struct aq_thread's field. */
void aq_trace_thread_exit(void *trace);

/**
 * aq_trace_finish - the process ends: writes everything. Only the first call counts.
 * why        a line for the trace, or NULL
 * in_signal  the interrupted thread may be in any state
 */
void aq_trace_finish(const char *why, bool in_signal);

/** aq_trace_fini - the job ends, the process goes on: writes everything and frees it. */
void aq_trace_fini(void);

#endif
