/*
 * aq_trace.h - what happened, when, for how long: the calls that entry points make.
 *
 * Off, the usual case, a call costs one load of a word that nobody writes and one predictable
 * branch. The inline transfers and atomics have not even that: while tracing or statistics
 * are on, peers are not in the tables that inline code looks at, so that it comes out of line.
 *
 *     uint64_t began = aq_trace_begin(AQ_TRACE_PUT);
 *     ...
 *     aq_trace_end(AQ_TRACE_PUT, began, jobrank, nbytes);
 *
 * An entry point for which a second branch would count does it so:
 *
 *     if (AQ_UNLIKELY(aq_trace_is_on()))
 *         return aq_am_traced_request_short(...);     does the above around the same work
 *
 * Threads   any; in handlers too, and while locks are held
 * Promise   a thread writes into memory of its own, without a lock; see aq_trace.c
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

/* What is on. Anything but 0 is rare; written at start and when the client changes a mask, so that
 * its cache line stays with every core. */
#define AQ_TRACE_ON_TRACE 1u /* events are recorded */
#define AQ_TRACE_ON_STATS 2u /* calls are counted */
#define AQ_TRACE_ON_FLOWS 4u /* messages are numbered, so that arrows find their ends */

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
 * Returns what aq_trace_end() wants: 0 if nobody is interested
 */
static inline uint64_t aq_trace_begin(enum aq_trace_kind kind)
{
    return aq_trace_is_on() ? aq_trace_begin_slow(kind) : 0;
}

/**
 * aq_trace_end - it ends.
 * kind     may be another one than at the beginning (a test, and whether it succeeded)
 * began    from aq_trace_begin(); 0: does nothing
 * jobrank  the peer; GEX_RANK_INVALID if there is no single one
 * nbytes   bytes of payload moved or asked for; 0 if there are none
 */
static inline void aq_trace_end(enum aq_trace_kind kind, uint64_t began, gex_Rank_t jobrank,
                                size_t nbytes)
{
    if (__builtin_expect(began != 0, 0))
        aq_trace_end_slow(kind, began, jobrank, nbytes);
}

/* A call with several ways out: from here to the end of the block it stands in. */
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

/* A macro because a declaration has to be left behind. */
#define AQ_TRACE_SCOPE(kind, jobrank, nbytes)                                   \
    const struct aq_trace_scope aq_trace_scope_                                 \
        __attribute__((unused, cleanup(aq_trace_scope_end))) = { kind, jobrank, \
                                                                 aq_trace_begin(kind), nbytes }

/* --- messages: what the calls above do, and an arrow from the request to its handler --- */

struct aq_am_out;
struct aq_token;

/**
 * aq_trace_end_send - a message is on its way, and has its number, whether it is recorded or not:
 * call it for each one while aq_trace_is_on(), before anything else is sent to the same peer.
 * began      from aq_trace_begin(), or 0
 * is_commit  it has a negotiated payload
 * For the library's own handlers the kind is AQ_TRACE_OWN_*.
 */
void aq_trace_end_send(uint64_t began, const struct aq_am_out *out, bool is_commit);

/** aq_trace_send_kind - the kind that aq_trace_end_send() takes, for aq_trace_begin(). */
enum aq_trace_kind aq_trace_send_kind(const struct aq_am_out *out, bool is_commit);

/* A handler that runs. */
struct aq_trace_handler {
    enum aq_trace_kind kind;
    uint64_t began, flow;
};

/** aq_trace_begin_handler, aq_trace_end_handler - around each handler while aq_trace_is_on(). */
struct aq_trace_handler aq_trace_begin_handler(const struct aq_token *token);
void aq_trace_end_handler(const struct aq_trace_handler *handler, const struct aq_token *token,
                          const gex_AM_Arg_t *args, size_t nbytes);

/* --- text, start and end --- */

/** aq_trace_text - a line of text in the trace, if its kind is on. printf format, no newline. */
void aq_trace_text(enum aq_trace_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * aq_trace_init - once, when rank and environment are known, before the first message. Collective.
 * Returns what aq_trace_end() of the client's start wants.
 */
uint64_t aq_trace_init(void);

/** aq_trace_is_wanted - after aq_trace_init(): must calls come out of line in this process? */
bool aq_trace_is_wanted(void);

/** aq_trace_idle - a waiting thread is about to sleep: write what has been in memory for long. */
void aq_trace_idle(void);

/** aq_trace_thread_exit - the calling thread ends; trace is its struct aq_thread's. */
void aq_trace_thread_exit(void *trace);

/**
 * aq_trace_finish - the process ends: write everything. The first call counts.
 * why        a line for the trace, or NULL; in_signal: nothing may be assumed of the interrupted
 *            thread
 */
void aq_trace_finish(const char *why, bool in_signal);

/** aq_trace_fini - the job ends, the process goes on: write everything, and free it. */
void aq_trace_fini(void);

#endif
