/*
 * aq_trace.c - tracing and statistics: what is on, and what a thread records.
 *
 * A thread appends records to its own memory, without a lock, and counts in its own table. The
 * thread writes its memory to the file when it is full. The thread that ends the process writes
 * what is left of all threads. Clocks: CLOCK_MONOTONIC is the same for all ranks of a host; the
 * offset between two hosts is computed from their calendars.
 *
 * Owns      aq_trace_switch, aq_trace_state, every struct aq_trace_thread
 * Threads   any. Records of a thread are private up to head, which it stores with release; tail and
 *           the output are under aq_trace_lock()
 * Promise   when tracing is off, a call is a load and a branch. A full disk ends the trace, never
 *           the job
 * Uses      core/aq_trace_internal.h, core/aq_thread.h, base/aq_env.h, other/spawn
 * See       docs/tracing.md
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_trace_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/aq_am.h"
#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"
#include "other/spawn/aq_spawn.h"

#define AQ_TRACE_STALE_NS UINT64_C(500000000) /* longest time that a record stays in memory */
#define AQ_TRACE_EXIT_MS  1000 /* limit of the wait for another thread's write at shutdown */

struct aq_trace_switch aq_trace_switch AQ_JOB_STATE;
struct aq_trace_state aq_trace_state AQ_JOB_STATE;

const struct aq_trace_row aq_trace_rows[AQ_TRACE_KIND_COUNT] = {
#define AQ_TRACE(id, cat_, name_, form_) \
    [AQ_TRACE_##id] = { .name = name_, .cat = cat_, .form = AQ_TRACE_FORM_##form_ },
#include "core/aq_trace.def"
};

/* Messages sent to and received from each peer, in each channel (request, reply): the numbers of
 * arrows. */
static atomic_uint_fast64_t *aq_trace_flows AQ_JOB_STATE;

static void aq_trace_flush(struct aq_trace_thread *t);

/* --- masks --- */

static uint32_t aq_trace_bit(char cat)
{
    return UINT32_C(1) << (cat - 'A');
}

static uint32_t aq_trace_all(void)
{
    uint32_t mask = 0;

    for (const char *at = AQ_TRACE_CATEGORIES; *at != '\0'; at++)
        mask |= aq_trace_bit(*at);
    return mask;
}

uint32_t aq_trace_mask_of(const char *cats, const char *variable)
{
    const bool complement = *cats == '^';
    const uint32_t all = aq_trace_all() | aq_trace_bit('U');
    uint32_t mask = 0;

    for (const char *at = cats + complement; *at != '\0'; at++) {
        const char cat = (char)toupper((unsigned char)*at);

        if (cat >= 'A' && cat <= 'Z' && (all & aq_trace_bit(cat)) != 0)
            mask |= aq_trace_bit(cat);
        else if (!isspace((unsigned char)cat) && cat != ',')
            aq_warn("%s=%s: '%c' is not one of the categories " AQ_TRACE_CATEGORIES
                    " (a leading ^ means all but these)",
                    variable, cats, cat);
    }
    return complement ? aq_trace_all() & ~mask : mask;
}

void aq_trace_categories_of(uint32_t mask, char *text)
{
    for (const char *at = AQ_TRACE_CATEGORIES; *at != '\0'; at++)
        if ((mask & aq_trace_bit(*at)) != 0)
            *text++ = *at;
    *text = '\0';
}

void aq_trace_apply(void)
{
    const bool trace = aq_trace_sink.fd >= 0, stats = aq_stats_sink.fd >= 0;
    const uint32_t always = aq_trace_bit('U');
    unsigned on = 0;

    for (int kind = 0; kind < AQ_TRACE_KIND_COUNT; kind++) {
        const struct aq_trace_row *row = &aq_trace_rows[kind];
        const uint32_t bit = aq_trace_bit(row->cat);
        uint8_t what = 0;

        if (trace && ((aq_trace_state.trace_mask | always) & bit) != 0
            && row->form != AQ_TRACE_FORM_TRY)
            what |= AQ_TRACE_ON_TRACE;
        if (stats && (aq_trace_state.stats_mask & bit) != 0 && row->form != AQ_TRACE_FORM_MARK)
            what |= AQ_TRACE_ON_STATS;
        __atomic_store_n(&aq_trace_switch.what[kind], what, __ATOMIC_RELAXED);
    }
    if (trace)
        /* messages must be numbered even while a mask is narrow */
        on |= AQ_TRACE_ON_TRACE | AQ_TRACE_ON_FLOWS;
    if (stats)
        on |= AQ_TRACE_ON_STATS;
    /* relaxed: a thread may see the new masks a little late */
    __atomic_store_n(&aq_trace_switch.on, on, __ATOMIC_RELAXED);
}

static unsigned aq_trace_what(unsigned kind)
{
    return __atomic_load_n(&aq_trace_switch.what[kind], __ATOMIC_RELAXED);
}

static bool aq_trace_category_on(char cat)
{
    return (aq_trace_state.trace_mask & aq_trace_bit(cat)) != 0;
}

/* --- the state of a thread --- */

static __attribute__((noinline)) struct aq_trace_thread *aq_trace_create(struct aq_thread *self)
{
    struct aq_trace_thread *t = calloc(1, sizeof(*t));

    if (t != NULL && aq_trace_sink.fd >= 0) {
        t->record = malloc(AQ_TRACE_SLOTS * sizeof(*t->record));
        if (t->record == NULL) {
            free(t);
            t = NULL;
        }
    }
    if (t == NULL)
        return NULL; /* the job goes on without a trace */
    t->flushed = aq_now_ns();
    t->next = atomic_load_explicit(&aq_trace_state.threads, memory_order_relaxed);
    /* release: pairs with the acquire of the threads that walk the list */
    while (!atomic_compare_exchange_weak_explicit(&aq_trace_state.threads, &t->next, t,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    self->trace = t;
    return t;
}

struct aq_trace_thread *aq_trace_self(void)
{
    struct aq_thread *self = aq_thread_self();
    struct aq_trace_thread *t = self->trace;

    if (AQ_UNLIKELY(t == NULL) && (t = aq_trace_create(self)) == NULL)
        return NULL;
    /* relaxed: private; other threads read it for a name only */
    if (AQ_UNLIKELY(atomic_load_explicit(&t->number, memory_order_relaxed) != self->number))
        atomic_store_explicit(&t->number, self->number, memory_order_relaxed);
    return t;
}

/* Returns the record after the filled ones, with space for text behind it; NULL if there is
 * none. */
static struct aq_trace_record *aq_trace_reserve(struct aq_trace_thread *t, size_t slots)
{
    unsigned head = atomic_load_explicit(&t->head, memory_order_relaxed); /* relaxed: private */

    if (AQ_UNLIKELY(head + slots > AQ_TRACE_SLOTS)) {
        aq_trace_flush(t);
        head = atomic_load_explicit(&t->head, memory_order_relaxed);
        if (head + slots > AQ_TRACE_SLOTS)
            return NULL;
    }
    return &t->record[head];
}

/* The record is filled in: makes it visible. */
static void aq_trace_append(struct aq_trace_thread *t, size_t slots, uint64_t now)
{
    const unsigned head = atomic_load_explicit(&t->head, memory_order_relaxed);

    /* release: pairs with the acquire in aq_trace_json_flush() */
    atomic_store_explicit(&t->head, head + (unsigned)slots, memory_order_release);
    if (AQ_UNLIKELY(aq_trace_state.flush || now - t->flushed > AQ_TRACE_STALE_NS))
        aq_trace_flush(t);
}

/* Writes the calling thread's records to the file. */
static void aq_trace_flush(struct aq_trace_thread *t)
{
    t->flushed = aq_now_ns();
    if (t->record == NULL || !aq_trace_lock(false))
        return;
    if (!aq_trace_state.finished)
        aq_trace_json_flush(t, false);
    /* relaxed: readers hold the lock */
    atomic_store_explicit(&t->tail, 0, memory_order_relaxed);
    atomic_store_explicit(&t->head, 0, memory_order_relaxed);
    aq_trace_unlock();
    if (AQ_UNLIKELY(aq_trace_sink.failed))
        aq_trace_apply();
}

void aq_trace_idle(void)
{
    struct aq_trace_thread *t = aq_thread_self()->trace;

    if (t != NULL && atomic_load_explicit(&t->head, memory_order_relaxed) != 0
        && aq_now_ns() - t->flushed > AQ_TRACE_STALE_NS)
        aq_trace_flush(t);
}

void aq_trace_thread_exit(void *trace)
{
    if (trace != NULL && aq_trace_is_on())
        aq_trace_flush(trace);
}

/* --- calls --- */

uint64_t aq_trace_begin_slow(enum aq_trace_kind kind)
{
    return aq_trace_what(kind) != 0 ? aq_now_ns() : 0;
}

/* With GASNET_TRACELOCAL=no, transfers, atomics and messages of a rank with itself are not
 * recorded. */
static bool aq_trace_is_left_out(unsigned kind, gex_Rank_t jobrank)
{
    return !aq_trace_state.local && jobrank == aq_job.rank
           && strchr("GPRA", aq_trace_rows[kind].cat) != NULL;
}

/* A call has ended: counts it. Returns its record, to be completed and appended, if it is traced;
 * else NULL. */
static struct aq_trace_record *aq_trace_call(struct aq_trace_thread *t, unsigned kind,
                                             uint64_t began, uint64_t ended, gex_Rank_t jobrank,
                                             size_t nbytes)
{
    const unsigned what = aq_trace_what(kind);
    struct aq_trace_record *record;

    if ((what & AQ_TRACE_ON_STATS) != 0)
        aq_stats_add(t, kind, ended - began, nbytes);
    if ((what & AQ_TRACE_ON_TRACE) == 0 || t->record == NULL || aq_trace_is_left_out(kind, jobrank))
        return NULL;
    record = aq_trace_reserve(t, 1);
    if (record == NULL)
        return NULL;
    record->began = began;
    record->ended = ended;
    record->nbytes = nbytes;
    record->flow = 0;
    record->flow_way = AQ_FLOW_NONE;
    record->has_data = 0;
    record->file = aq_trace_category_on('N') ? t->file : NULL;
    record->line = t->line;
    record->peer = jobrank;
    record->kind = (uint16_t)kind;
    return record;
}

void aq_trace_end_slow(enum aq_trace_kind kind, uint64_t began, gex_Rank_t jobrank, size_t nbytes)
{
    struct aq_trace_thread *t = aq_trace_self();
    const uint64_t ended = aq_now_ns();

    if (t != NULL && aq_trace_call(t, kind, began, ended, jobrank, nbytes) != NULL)
        aq_trace_append(t, 1, ended);
}

/* --- messages --- */

enum { AQ_FLOW_SENT, AQ_FLOW_CAME, AQ_FLOW_WAYS };

/* Numbers the next message between two ranks in one direction. Both ends count alike, since a
 * channel keeps its order. Threads of one process that send, or handle, at the same moment may swap
 * two numbers. */
static uint64_t aq_trace_number(gex_Rank_t peer, bool is_reply, unsigned way)
{
    return atomic_fetch_add_explicit(
        &aq_trace_flows[((size_t)peer * AQ_FLOW_WAYS + way) * 2 + is_reply], 1,
        memory_order_relaxed); /* relaxed: the number needs no other data */
}

/* Sender, receiver, channel and number in 64 bits; unique with high probability. */
static uint64_t aq_trace_flow_name(gex_Rank_t from, gex_Rank_t to, bool is_reply, uint64_t number)
{
    uint64_t name = ((uint64_t)from << 32 | to) * UINT64_C(0x9E3779B97F4A7C15);

    name ^= name >> 29;
    name = name * UINT64_C(0xBF58476D1CE4E5B9) + 2 * number + is_reply;
    return name != 0 ? name : 1;
}

/* What is known about the message that an event sends or handles. */
struct aq_trace_message {
    gex_Rank_t jobrank;
    uint8_t handler, nargs;
    const gex_AM_Arg_t *args;
    size_t nbytes;
};

static void aq_trace_end_message(unsigned kind, uint64_t began, const struct aq_trace_message *m,
                                 uint64_t flow, enum aq_trace_flow way)
{
    struct aq_trace_thread *t = began != 0 ? aq_trace_self() : NULL;
    const uint64_t ended = aq_now_ns();
    struct aq_trace_record *record;

    if (t == NULL || (record = aq_trace_call(t, kind, began, ended, m->jobrank, m->nbytes)) == NULL)
        return;
    record->flow = flow;
    record->flow_way = (uint8_t)way;
    record->handler = m->handler;
    record->nargs = m->nargs;
    record->has_data = aq_trace_category_on('D');
    if (record->has_data && m->nargs != 0)
        memcpy(record->args, m->args,
               MIN((size_t)m->nargs, (size_t)AQ_TRACE_ARGS) * sizeof(m->args[0]));
    aq_trace_append(t, 1, ended);
}

enum aq_trace_kind aq_trace_send_kind(const struct aq_am_out *out, bool is_commit)
{
    if (out->handler < GEX_AM_INDEX_BASE)
        return out->is_reply ? AQ_TRACE_OWN_REPLY : AQ_TRACE_OWN_REQUEST;
    if (is_commit) /* rows: medium, long */
        return (out->is_reply ? AQ_TRACE_NP_COMMIT_REPLY_MEDIUM : AQ_TRACE_NP_COMMIT_REQUEST_MEDIUM)
               + (out->kind == AQ_AM_LONG);
    return (out->is_reply ? AQ_TRACE_AM_REPLY_SHORT : AQ_TRACE_AM_REQUEST_SHORT) + out->kind;
}

void aq_trace_end_send(uint64_t began, const struct aq_am_out *out, bool is_commit)
{
    const struct aq_trace_message m = { out->jobrank, out->handler, out->nargs, out->args,
                                        out->kind == AQ_AM_SHORT ? 0 : out->nbytes };
    uint64_t flow = 0;

    if (aq_trace_flows != NULL)
        flow = aq_trace_flow_name(aq_job.rank, out->jobrank, out->is_reply,
                                  aq_trace_number(out->jobrank, out->is_reply, AQ_FLOW_SENT));
    aq_trace_end_message(aq_trace_send_kind(out, is_commit), began, &m, flow, AQ_FLOW_OUT);
}

struct aq_trace_handler aq_trace_begin_handler(const struct aq_token *token)
{
    struct aq_trace_handler handler = { AQ_TRACE_OWN_HANDLER, 0, 0 };

    if (token->handler >= GEX_AM_INDEX_BASE)
        handler.kind =
            (token->is_reply ? AQ_TRACE_AM_REPLY_HANDLER_SHORT : AQ_TRACE_AM_HANDLER_SHORT)
            + token->kind;
    if (aq_trace_flows != NULL)
        handler.flow =
            aq_trace_flow_name(token->jobrank, aq_job.rank, token->is_reply,
                               aq_trace_number(token->jobrank, token->is_reply, AQ_FLOW_CAME));
    handler.began = aq_trace_begin_slow(handler.kind);
    return handler;
}

void aq_trace_end_handler(const struct aq_trace_handler *handler, const struct aq_token *token,
                          const gex_AM_Arg_t *args, size_t nbytes)
{
    const struct aq_trace_message m = { token->jobrank, token->handler, token->nargs, args,
                                        nbytes };

    aq_trace_end_message(handler->kind, handler->began, &m, handler->flow, AQ_FLOW_IN);
}

/* --- text --- */

void aq_trace_line(enum aq_trace_kind kind, const char *text, size_t len)
{
    struct aq_trace_thread *t;
    struct aq_trace_record *record;
    size_t slots;

    if ((aq_trace_what(kind) & AQ_TRACE_ON_TRACE) == 0 || (t = aq_trace_self()) == NULL
        || t->record == NULL)
        return;
    if (len > AQ_TRACE_TEXT_MAX)
        len = AQ_TRACE_TEXT_MAX;
    while (len > 0 && text[len - 1] == '\n')
        len--;
    slots = 1 + (len + sizeof(*record) - 1) / sizeof(*record);
    record = aq_trace_reserve(t, slots);
    if (record == NULL)
        return;
    memset(record, 0, sizeof(*record));
    record->began = record->ended = aq_now_ns();
    record->nbytes = len;
    record->kind = (uint16_t)kind;
    record->peer = GEX_RANK_INVALID;
    record->file = aq_trace_category_on('N') ? t->file : NULL;
    record->line = t->line;
    memcpy(record + 1, text, len);
    aq_trace_append(t, slots, record->began);
}

void aq_trace_text(enum aq_trace_kind kind, const char *fmt, ...)
{
    char text[AQ_TRACE_TEXT_MAX + 1];
    va_list args;
    int made;

    if ((aq_trace_what(kind) & AQ_TRACE_ON_TRACE) == 0)
        return;
    va_start(args, fmt);
    made = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (made > 0)
        aq_trace_line(kind, text, MIN((size_t)made, (size_t)AQ_TRACE_TEXT_MAX));
}

/* --- start and end --- */

static atomic_int aq_trace_owner; /* thread that writes; 0: none */

bool aq_trace_lock(bool on_exit)
{
    const int me = (int)syscall(SYS_gettid);
    const struct timespec ms = { 0, 1000000 };

    for (unsigned tries = 0;; tries++) {
        int owner = 0;

        /* acquire: pairs with the release in aq_trace_unlock() */
        if (atomic_compare_exchange_strong_explicit(&aq_trace_owner, &owner, me,
                                                    memory_order_acquire, memory_order_relaxed))
            return true;
        if (owner == me || (on_exit && tries >= AQ_TRACE_EXIT_MS))
            return false;
        nanosleep(&ms, NULL);
    }
}

void aq_trace_unlock(void)
{
    /* release: the next owner sees what was written */
    atomic_store_explicit(&aq_trace_owner, 0, memory_order_release);
}

bool aq_trace_is_wanted(void)
{
    return aq_trace_sink.fd >= 0 || aq_stats_sink.fd >= 0;
}

static bool aq_trace_asked_for(void)
{
    const char *trace = aq_env_str(AQ_ENV_TRACEFILE), *stats = aq_env_str(AQ_ENV_STATSFILE);

    return (trace != NULL && *trace != '\0') || (stats != NULL && *stats != '\0');
}

uint64_t aq_trace_init(void)
{
    aq_trace_sink.fd = aq_stats_sink.fd = -1;
    if (!aq_trace_asked_for())
        return 0;
    aq_trace_state.began = aq_now_ns();
    aq_trace_state.local = aq_env_bool(AQ_ENV_TRACELOCAL);
    aq_trace_state.flush = aq_env_bool(AQ_ENV_TRACEFLUSH);
    aq_trace_state.trace_mask = aq_trace_mask_of(aq_env_str(AQ_ENV_TRACEMASK), "GASNET_TRACEMASK");
    aq_trace_state.stats_mask = aq_trace_mask_of(aq_env_str(AQ_ENV_STATSMASK), "GASNET_STATSMASK");
    aq_trace_sinks_open();
    if (aq_trace_sink.fd >= 0) {
        aq_trace_flows = calloc((size_t)aq_job.size * AQ_FLOW_WAYS * 2, sizeof(*aq_trace_flows));
        aq_trace_json_begin();
    }
    if (aq_stats_sink.fd >= 0)
        aq_stats_begin();
    aq_trace_apply();
    if (!aq_trace_is_wanted())
        return 0;
    aq_trace_serve_client();
    return aq_trace_state.began;
}

void aq_trace_finish(const char *why, bool in_signal)
{
    static atomic_flag once AQ_JOB_STATE = ATOMIC_FLAG_INIT;
    bool locked;

    if (!aq_trace_is_wanted() || atomic_flag_test_and_set_explicit(&once, memory_order_relaxed))
        return;
    __atomic_store_n(&aq_trace_switch.on, 0, __ATOMIC_RELAXED); /* running threads stop recording */
    /* half of GASNET_EXITTIMEOUT: the rest is for the remaining steps of the shutdown */
    aq_trace_state.end_by = aq_now_ns() + aq_spawn_jobarea()->exit_timeout_ms * UINT64_C(500000);
    locked = aq_trace_lock(true);
    in_signal = in_signal || !locked;
    if (aq_trace_sink.fd >= 0) {
        /* acquire: pairs with the release in aq_trace_create() */
        struct aq_trace_thread *t =
            atomic_load_explicit(&aq_trace_state.threads, memory_order_acquire);

        for (; t != NULL; t = t->next)
            aq_trace_json_flush(t, in_signal);
        aq_trace_json_end(why, in_signal);
    }
    if (aq_stats_sink.fd >= 0)
        aq_stats_end(in_signal);
    aq_trace_state.finished = true;
    if (locked)
        aq_trace_unlock();
}

void aq_trace_fini(void)
{
    struct aq_trace_thread *t =
        /* relaxed: there is no other thread */
        atomic_load_explicit(&aq_trace_state.threads, memory_order_relaxed);

    aq_trace_finish(NULL, false);
    while (t != NULL) {
        struct aq_trace_thread *next = t->next;

        free(t->record);
        free(t);
        t = next;
    }
    free(aq_trace_flows);
    aq_trace_sinks_close();
    aq_trace_disconnect_client();
}
