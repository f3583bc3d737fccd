/*
 * aq_trace_json.c - records as a Chrome trace, the format that Perfetto and chrome://tracing open.
 *
 * The trace is one JSON array with one event in each line, so that several ranks can append to one
 * file and readers accept a part of it: the closing bracket may be missing. A rank is a process of
 * the timeline (pid), a thread of it a thread (tid); times are microseconds since the job's start.
 * A call is a complete event (ph X). A message has a bind_id in the event that sends it and in the
 * one that handles it, which viewers show as an arrow. Text is an instant (ph i).
 *
 * Threads   under aq_trace_lock(), or alone on the way out
 * Uses      core/aq_trace_internal.h
 * See       docs/tracing.md; Trace Event Format (Chromium)
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_trace_internal.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/aq_exit_internal.h"
#include "core/aq_job.h"
#include "other/spawn/aq_spawn.h"

#define AQ_TRACE_LINE_MAX 8192 /* maximum bytes of an event: text in the longest escapes */

/* One buffer for ordinary writers, one for a signal handler that has interrupted a writer. */
static char aq_trace_text_of[2][256 * 1024];

const char *aq_trace_category(char cat)
{
    switch (cat) {
    case 'G':
        return "get";
    case 'P':
        return "put";
    case 'R':
        return "atomic";
    case 'S':
        return "sync";
    case 'W':
        return "collective";
    case 'B':
        return "barrier";
    case 'L':
        return "lock";
    case 'A':
        return "message";
    case 'X':
        return "poll";
    case 'I':
        return "information";
    case 'O':
        return "object";
    case 'C':
        return "internal";
    case 'H':
        return "client";
    default:
        return "always";
    }
}

/* --- one event --- */

/* Times before the job's time 0, such as the start of this rank, become 0. */
static uint64_t aq_trace_job_ns(uint64_t when)
{
    const int64_t ns = (int64_t)(when - aq_trace_state.base) + aq_trace_state.offset;

    return ns > 0 ? (uint64_t)ns : 0;
}

static void aq_trace_put_head(struct aq_trace_out *out, const char *name, const char *category,
                              const char *phase, unsigned tid)
{
    aq_trace_put(out, "{\"name\":\"");
    aq_trace_put(out, name);
    aq_trace_put(out, "\",\"cat\":\"");
    aq_trace_put(out, category);
    aq_trace_put(out, "\",\"ph\":\"");
    aq_trace_put(out, phase);
    aq_trace_put(out, "\",\"pid\":");
    aq_trace_put_number(out, aq_job.rank);
    aq_trace_put(out, ",\"tid\":");
    aq_trace_put_number(out, tid);
}

static void aq_trace_put_when(struct aq_trace_out *out, uint64_t when)
{
    aq_trace_put(out, ",\"ts\":");
    aq_trace_put_us(out, aq_trace_job_ns(when));
}

static void aq_trace_put_source(struct aq_trace_out *out, const char *file, uint32_t line)
{
    aq_trace_put(out, "\"line\":");
    aq_trace_put_number(out, line);
    aq_trace_put(out, ",\"file\":");
    aq_trace_put_json(out, file, strnlen(file, 300));
}

static void aq_trace_put_handler(struct aq_trace_out *out, const struct aq_trace_record *record)
{
    const char *name = aq_job.ep.entry[record->handler].gex_name;

    aq_trace_put(out, ",\"handler\":");
    aq_trace_put_number(out, record->handler);
    /* the sender knows only its own name for the handler number, which is usually the receiver's
     * too */
    if (name != NULL) {
        aq_trace_put(out, ",\"function\":");
        aq_trace_put_json(out, name, strnlen(name, 100));
    }
    if (record->has_data) {
        aq_trace_put(out, ",\"data\":[");
        for (unsigned i = 0; i < record->nargs && i < AQ_TRACE_ARGS; i++) {
            if (i != 0)
                aq_trace_put_char(out, ',');
            aq_trace_put_signed(out, record->args[i]);
        }
        aq_trace_put_char(out, ']');
    }
}

static void aq_trace_put_call(struct aq_trace_out *out, const struct aq_trace_record *record,
                              unsigned tid)
{
    const struct aq_trace_row *row = &aq_trace_rows[record->kind];

    aq_trace_put_head(out, row->name, aq_trace_category(row->cat), "X", tid);
    aq_trace_put_when(out, record->began);
    aq_trace_put(out, ",\"dur\":");
    aq_trace_put_us(out, aq_trace_job_ns(record->ended) - aq_trace_job_ns(record->began));
    if (record->flow_way != AQ_FLOW_NONE && record->flow != 0) {
        aq_trace_put(out, ",\"bind_id\":\"");
        aq_trace_put_hex(out, record->flow);
        aq_trace_put(out, record->flow_way == AQ_FLOW_OUT ? "\",\"flow_out\":true"
                                                          : "\",\"flow_in\":true");
    }
    aq_trace_put(out, ",\"args\":{\"bytes\":");
    aq_trace_put_number(out, record->nbytes);
    if (record->peer != GEX_RANK_INVALID) {
        aq_trace_put(out, ",\"peer\":");
        aq_trace_put_number(out, record->peer);
    }
    if (record->flow_way != AQ_FLOW_NONE)
        aq_trace_put_handler(out, record);
    if (record->file != NULL) {
        aq_trace_put_char(out, ',');
        aq_trace_put_source(out, record->file, record->line);
    }
    aq_trace_put(out, "}},\n");
}

/* A moment with a text; shown as a mark on the thread. */
static void aq_trace_put_mark(struct aq_trace_out *out, unsigned kind, unsigned tid, uint64_t when,
                              const char *text, size_t len, const char *file, uint32_t line)
{
    const struct aq_trace_row *row = &aq_trace_rows[kind];

    aq_trace_put_head(out, row->name, aq_trace_category(row->cat), "i", tid);
    aq_trace_put_when(out, when);
    aq_trace_put(out, ",\"s\":\"t\",\"args\":{\"text\":");
    aq_trace_put_json(out, text, len);
    if (file != NULL) {
        aq_trace_put_char(out, ',');
        aq_trace_put_source(out, file, line);
    }
    aq_trace_put(out, "}},\n");
}

/* The name of a rank or of a thread in viewers. */
static void aq_trace_put_name(struct aq_trace_out *out, const char *what, unsigned tid,
                              const char *word, uint32_t number)
{
    aq_trace_put_head(out, what, "__metadata", "M", tid);
    aq_trace_put(out, ",\"args\":{\"name\":\"");
    aq_trace_put(out, word);
    aq_trace_put_char(out, ' ');
    aq_trace_put_number(out, number);
    aq_trace_put(out, "\"}},\n");
}

/* --- a thread's records --- */

static bool aq_trace_json_send(struct aq_trace_out *out, char *start, bool in_signal)
{
    const size_t len = (size_t)(out->at - start);

    out->at = start;
    return len == 0 || aq_trace_sink_write(&aq_trace_sink, start, len, in_signal);
}

void aq_trace_json_flush(struct aq_trace_thread *t, bool in_signal)
{
    char *const start = aq_trace_text_of[in_signal];
    struct aq_trace_out out = { start, start + sizeof(aq_trace_text_of[0]) };
    /* acquire: pairs with the release in aq_trace_append() */
    const unsigned head = atomic_load_explicit(&t->head, memory_order_acquire);
    /* relaxed: under the lock */
    unsigned at = atomic_load_explicit(&t->tail, memory_order_relaxed);
    const unsigned number = atomic_load_explicit(&t->number, memory_order_relaxed);
    unsigned events = 0;

    if (aq_trace_sink.fd < 0 || at >= head || !aq_exit_is_own_process())
        return; /* a forked child process must not write its parent's records */
    if (atomic_load_explicit(&t->named, memory_order_relaxed) != number) {
        /* relaxed: under the lock */
        atomic_store_explicit(&t->named, number, memory_order_relaxed);
        aq_trace_put_name(&out, "thread_name", number, "thread", number);
    }
    while (at < head) {
        const struct aq_trace_record *record = &t->record[at++];

        if (aq_trace_rows[record->kind].form == AQ_TRACE_FORM_MARK) {
            aq_trace_put_mark(&out, record->kind, number, record->began, (const char *)(record + 1),
                              record->nbytes, record->file, record->line);
            at += (unsigned)((record->nbytes + sizeof(*record) - 1) / sizeof(*record));
        } else {
            aq_trace_put_call(&out, record, number);
        }
        events++;
        if ((aq_trace_out_space(&out) < AQ_TRACE_LINE_MAX || at >= head)) {
            if (!aq_trace_json_send(&out, start, in_signal))
                break;
            atomic_store_explicit(&t->tail, at, memory_order_relaxed); /* relaxed: under the lock */
            aq_trace_state.events += events;
            events = 0;
        }
    }
}

/* --- beginning and end of a rank's part --- */

static void aq_trace_put_about(struct aq_trace_out *out, const char *what, const char *text)
{
    aq_trace_put_json(out, what, strlen(what));
    aq_trace_put_char(out, ':');
    aq_trace_put_json(out, text, strnlen(text, 1000));
    aq_trace_put_char(out, ',');
}

void aq_trace_json_begin(void)
{
    char *const start = aq_trace_text_of[0];
    struct aq_trace_out out = { start, start + sizeof(aq_trace_text_of[0]) };

    aq_trace_put_name(&out, "process_name", 0, "rank", aq_job.rank);
    aq_trace_put_head(&out, "process_sort_index", "__metadata", "M", 0);
    aq_trace_put(&out, ",\"args\":{\"sort_index\":");
    aq_trace_put_number(&out, aq_job.rank);
    aq_trace_put(&out, "}},\n");
    aq_trace_put_head(&out, "gasnet_trace_begin", "__metadata", "M", 0);
    aq_trace_put(&out, ",\"args\":{");
    aq_trace_about(&out, aq_trace_put_about);
    aq_trace_put(&out, "\"ranks\":");
    aq_trace_put_number(&out, aq_job.size);
    aq_trace_put(&out, "}},\n");
    aq_trace_json_send(&out, start, false);
}

/* Shows a long wait that the end of the rank has interrupted, up to now. */
static void aq_trace_put_open_wait(struct aq_trace_out *out, uint64_t now)
{
    static const char *const names[AQ_WAIT_KINDS] = {
        [AQ_WAIT_START] = "start",
        [AQ_WAIT_BARRIER] = "barrier",
        [AQ_WAIT_EVENT] = "event",
        [AQ_WAIT_QUEUE] = "space for a message",
        [AQ_WAIT_BLOCKUNTIL] = "GASNET_BLOCKUNTIL",
        [AQ_WAIT_COLL] = "collective",
    };
    const struct aq_jobarea_rank *slot = &aq_spawn_jobarea()->rank[aq_spawn_info()->host_rank];
    /* relaxed: only a report */
    const uint64_t wait = atomic_load_explicit(&slot->wait, memory_order_relaxed);
    const uint64_t since = atomic_load_explicit(&slot->wait_since, memory_order_relaxed);
    const uint32_t kind = (uint32_t)(wait >> 32), peer = (uint32_t)wait;

    if (kind == AQ_WAIT_NONE || kind >= AQ_WAIT_KINDS || names[kind] == NULL || since > now)
        return;
    aq_trace_put_head(out, "UNFINISHED_WAIT", "always", "X", 0);
    aq_trace_put_when(out, since);
    aq_trace_put(out, ",\"dur\":");
    aq_trace_put_us(out, now - since);
    aq_trace_put(out, ",\"args\":{\"for\":\"");
    aq_trace_put(out, names[kind]);
    aq_trace_put_char(out, '"');
    if (peer != AQ_WAIT_ANYONE) {
        aq_trace_put(out, ",\"peer\":");
        aq_trace_put_number(out, peer);
    }
    aq_trace_put(out, "}},\n");
}

void aq_trace_json_end(const char *why, bool in_signal)
{
    char *const start = aq_trace_text_of[in_signal];
    struct aq_trace_out out = { start, start + sizeof(aq_trace_text_of[0]) };
    const uint64_t now = aq_now_ns();
    bool last;

    if (aq_trace_sink.fd < 0 || !aq_exit_is_own_process())
        return;
    aq_trace_put_open_wait(&out, now);
    if (why != NULL)
        aq_trace_put_mark(&out, AQ_TRACE_TEXT_ALWAYS, 0, now, why, strlen(why), NULL, 0);
    aq_trace_put_head(&out, "gasnet_trace_end", "__metadata", "M", 0);
    aq_trace_put(&out, ",\"args\":{\"run_time_us\":");
    aq_trace_put_us(&out, now - aq_trace_state.began);
    aq_trace_put(&out, ",\"events\":");
    aq_trace_put_number(&out, aq_trace_state.events);
    aq_trace_put(&out, "}}");
    /* the last rank closes the array; if a rank was killed, no rank does, which readers accept */
    last = !aq_trace_sink.is_shared;
    if (!last) {
        aq_trace_put(&out, ",\n");
        aq_trace_json_send(&out, start, in_signal);
        if (!aq_trace_sink_last(&aq_trace_sink))
            return;
        aq_trace_put_head(&out, "gasnet_trace_complete", "__metadata", "M", 0);
        aq_trace_put(&out, ",\"args\":{}}");
    }
    aq_trace_put(&out, "\n]\n");
    aq_trace_json_send(&out, start, in_signal);
}
