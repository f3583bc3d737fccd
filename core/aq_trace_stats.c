/*
 * aq_trace_stats.c - statistics: number, bytes and time of each kind of call.
 *
 * A thread counts in its own table. At the end a rank sums its threads' tables, writes its section,
 * and stores the sums in the memory that the ranks of a host share. The last rank of the host sums
 * those in turn and writes the section of all of them.
 *
 * Threads   aq_stats_add() any; the rest under aq_trace_lock(), or alone on the way out
 * Uses      core/aq_trace_internal.h
 * See       docs/tracing.md
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "core/aq_trace_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "core/aq_exit_internal.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"
#include "base/aq_state.h"
#include "other/spawn/aq_spawn.h"

#define AQ_STATS_CALLBACKS 16
#define AQ_STATS_LINE_MAX  2048

/* Headings, and the heading of each kind: an enumeration that increases by one at a heading, and
 * not at a row. */
static const char *const aq_stats_groups[] = {
#define AQ_TRACE_GROUP(id, title) title,
#define AQ_TRACE(id, cat, name, form)
#include "core/aq_trace.def"
};
enum aq_stats_group {
    AQ_STATS_GROUP_NONE = -1,
#define AQ_TRACE_GROUP(id, title)     AQ_STATS_GROUP_##id,
#define AQ_TRACE(id, cat, name, form) AQ_STATS_UP_##id, AQ_STATS_OF_##id = AQ_STATS_UP_##id - 1,
#include "core/aq_trace.def"
};
static const uint8_t aq_stats_group_of[AQ_TRACE_KIND_COUNT] = {
#define AQ_TRACE(id, cat, name, form) [AQ_TRACE_##id] = (uint8_t)AQ_STATS_OF_##id,
#include "core/aq_trace.def"
};

/* Buffers for sections, one of them for signal handlers. */
static char aq_stats_text_of[2][64 * 1024];
static struct aq_trace_count aq_stats_sums[AQ_TRACE_KIND_COUNT] AQ_JOB_STATE;

static struct {
    aq_lock lock;
    atomic_uint count;
    void (*callback[AQ_STATS_CALLBACKS])(void (*print)(const char *fmt, ...));
} aq_stats_clients AQ_JOB_STATE;

/* --- counting --- */

/* relaxed, all: one thread writes, and a reader takes the value that it finds */
static uint64_t aq_tally_get(const atomic_uint_fast64_t *value)
{
    return atomic_load_explicit((atomic_uint_fast64_t *)(uintptr_t)value, memory_order_relaxed);
}

static void aq_tally_set(atomic_uint_fast64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static void aq_tally_clear(struct aq_trace_thread *t, unsigned epoch)
{
    for (unsigned kind = 0; kind < AQ_TRACE_KIND_COUNT; kind++)
        aq_tally_set(&t->tally[kind].calls, 0);
    /* release: pairs with the acquire in aq_stats_sum() */
    atomic_store_explicit(&t->epoch, epoch, memory_order_release);
}

static void aq_tally_note(uint64_t value, bool first, atomic_uint_fast64_t *sum,
                          atomic_uint_fast64_t *min, atomic_uint_fast64_t *max)
{
    aq_tally_set(sum, (first ? 0 : aq_tally_get(sum)) + value);
    if (first || value < aq_tally_get(min))
        aq_tally_set(min, value);
    if (first || value > aq_tally_get(max))
        aq_tally_set(max, value);
}

void aq_stats_add(struct aq_trace_thread *t, unsigned kind, uint64_t ns, uint64_t nbytes)
{
    struct aq_trace_tally *tally = &t->tally[kind];
    /* acquire: pairs with the release of the reset */
    const unsigned epoch = atomic_load_explicit(&aq_trace_state.epoch, memory_order_acquire);
    uint64_t calls;

    /* relaxed: private */
    if (AQ_UNLIKELY(atomic_load_explicit(&t->epoch, memory_order_relaxed) != epoch))
        aq_tally_clear(t, epoch);
    calls = aq_tally_get(&tally->calls);
    aq_tally_note(nbytes, calls == 0, &tally->bytes, &tally->bytes_min, &tally->bytes_max);
    aq_tally_note(ns, calls == 0, &tally->ns, &tally->ns_min, &tally->ns_max);
    /* release: a reader of the number of calls finds the rest filled in */
    atomic_store_explicit(&tally->calls, calls + 1, memory_order_release);
}

static void aq_count_merge(struct aq_trace_count *into, const struct aq_trace_count *from)
{
    if (from->calls == 0)
        return;
    if (into->calls == 0) {
        *into = *from;
        return;
    }
    into->calls += from->calls;
    into->bytes += from->bytes;
    into->ns += from->ns;
    into->bytes_min = MIN(into->bytes_min, from->bytes_min);
    into->bytes_max = MAX(into->bytes_max, from->bytes_max);
    into->ns_min = MIN(into->ns_min, from->ns_min);
    into->ns_max = MAX(into->ns_max, from->ns_max);
}

/* Sums over all threads of this process. */
static void aq_stats_sum(struct aq_trace_count *sums)
{
    /* acquire: pairs with the release in aq_trace_create() */
    const struct aq_trace_thread *t =
        atomic_load_explicit(&aq_trace_state.threads, memory_order_acquire);
    const unsigned epoch = atomic_load_explicit(&aq_trace_state.epoch, memory_order_relaxed);

    memset(sums, 0, AQ_TRACE_KIND_COUNT * sizeof(*sums));
    for (; t != NULL; t = t->next) {
        if (atomic_load_explicit(&t->epoch, memory_order_acquire) != epoch)
            continue; /* has counted nothing since the reset */
        for (unsigned kind = 0; kind < AQ_TRACE_KIND_COUNT; kind++) {
            const struct aq_trace_tally *tally = &t->tally[kind];
            struct aq_trace_count count = { .calls = atomic_load_explicit(&tally->calls,
                                                                          memory_order_acquire) };

            count.bytes = aq_tally_get(&tally->bytes);
            count.bytes_min = aq_tally_get(&tally->bytes_min);
            count.bytes_max = aq_tally_get(&tally->bytes_max);
            count.ns = aq_tally_get(&tally->ns);
            count.ns_min = aq_tally_get(&tally->ns_min);
            count.ns_max = aq_tally_get(&tally->ns_max);
            aq_count_merge(&sums[kind], &count);
        }
    }
}

/* --- a section --- */

struct aq_stats_page {
    struct aq_trace_out out;
    char *start;
    const char *who; /* "3" or "job" */
    bool in_signal;
};

static void aq_stats_send(struct aq_stats_page *page)
{
    aq_trace_sink_write(&aq_stats_sink, page->start, (size_t)(page->out.at - page->start),
                        page->in_signal);
    page->out.at = page->start;
}

/* Writes "R> " and leaves space for a line. */
static struct aq_trace_out *aq_stats_line(struct aq_stats_page *page)
{
    if (aq_trace_out_space(&page->out) < AQ_STATS_LINE_MAX)
        aq_stats_send(page);
    aq_trace_put(&page->out, page->who);
    aq_trace_put(&page->out, "> ");
    return &page->out;
}

static void aq_stats_put_four(struct aq_trace_out *out, const char *what, uint64_t calls,
                              uint64_t sum, uint64_t min, uint64_t max,
                              void (*put)(struct aq_trace_out *out, uint64_t value))
{
    aq_trace_put(out, "  ");
    aq_trace_put(out, what);
    aq_trace_put(out, " avg/min/max/total = ");
    put(out, calls != 0 ? sum / calls : 0);
    aq_trace_put_char(out, '/');
    put(out, min);
    aq_trace_put_char(out, '/');
    put(out, max);
    aq_trace_put_char(out, '/');
    put(out, sum);
}

static void aq_stats_put_row(struct aq_stats_page *page, unsigned kind,
                             const struct aq_trace_count *count)
{
    struct aq_trace_out *out = aq_stats_line(page);
    char name[40];
    struct aq_trace_out name_out = { name, name + sizeof(name) - 1 };

    aq_trace_put(&name_out, aq_trace_rows[kind].name);
    aq_trace_put_char(&name_out, ':');
    *name_out.at = '\0';
    aq_trace_put(out, "  ");
    aq_trace_put_padded(out, name, 26);
    aq_trace_put_number(out, count->calls);
    if (count->bytes_max != 0)
        aq_stats_put_four(out, "bytes", count->calls, count->bytes, count->bytes_min,
                          count->bytes_max, aq_trace_put_number);
    aq_stats_put_four(out, "us", count->calls, count->ns, count->ns_min, count->ns_max,
                      aq_trace_put_us);
    aq_trace_put_char(out, '\n');
}

static void aq_stats_put_table(struct aq_stats_page *page, const char *title,
                               const struct aq_trace_count *sums)
{
    int group = -1;

    aq_trace_put(aq_stats_line(page), "GASNet Statistical Summary:");
    aq_trace_put(&page->out, title);
    aq_trace_put_char(&page->out, '\n');
    for (unsigned kind = 0; kind < AQ_TRACE_KIND_COUNT; kind++) {
        if (sums[kind].calls == 0)
            continue;
        if (aq_stats_group_of[kind] != group) {
            group = aq_stats_group_of[kind];
            aq_trace_put(aq_stats_line(page), " ");
            aq_trace_put(&page->out, aq_stats_groups[group]);
            aq_trace_put_char(&page->out, '\n');
        }
        aq_stats_put_row(page, kind, &sums[kind]);
    }
}

static struct aq_stats_page aq_stats_page_begin(const char *who, bool in_signal)
{
    char *start = aq_stats_text_of[in_signal];
    struct aq_stats_page page = {
        { start, start + sizeof(aq_stats_text_of[0]) }, start, who, in_signal
    };

    return page;
}

static const char *aq_stats_rank(void)
{
    static char text[16];
    struct aq_trace_out out = { text, text + sizeof(text) - 1 };

    if (text[0] == '\0')
        aq_trace_put_number(&out, aq_job.rank);
    return text;
}

/* --- lines of the client --- */

void aq_stats_text(const char *text)
{
    char line[AQ_TRACE_TEXT_MAX + 32];
    struct aq_trace_out out = { line, line + AQ_TRACE_TEXT_MAX };

    aq_trace_put_number(&out, aq_job.rank);
    aq_trace_put(&out, "> ");
    aq_trace_put(&out, text);
    if (out.at[-1] != '\n')
        *out.at++ = '\n';
    if (aq_trace_lock(false)) {
        aq_trace_sink_write(&aq_stats_sink, line, (size_t)(out.at - line), false);
        aq_trace_unlock();
    }
}

/* The section that is being written, for the print function of callbacks; its lock is held. */
static struct aq_stats_page *aq_stats_open_page AQ_JOB_STATE;

static void aq_stats_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void aq_stats_print(const char *fmt, ...)
{
    char text[AQ_TRACE_TEXT_MAX];
    struct aq_trace_out *out;
    va_list args;
    int made;

    if (aq_stats_open_page == NULL)
        return;
    va_start(args, fmt);
    made = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (made <= 0)
        return;
    out = aq_stats_line(aq_stats_open_page);
    aq_trace_put(out, text);
    if (out->at[-1] != '\n')
        aq_trace_put_char(out, '\n');
}

void aq_stats_register(void (*callback)(void (*print)(const char *fmt, ...)))
{
    unsigned count;

    aq_lock_acquire(&aq_stats_clients.lock);
    count =
        /* relaxed: under the lock */
        atomic_load_explicit(&aq_stats_clients.count, memory_order_relaxed);
    if (callback != NULL && count < AQ_STATS_CALLBACKS) {
        aq_stats_clients.callback[count] = callback;
        /* release: pairs with the acquire in aq_stats_call_clients() */
        atomic_store_explicit(&aq_stats_clients.count, count + 1, memory_order_release);
    }
    aq_lock_release(&aq_stats_clients.lock);
}

/* Not in the handler of a fatal signal, since the client's code may need anything. */
static void aq_stats_call_clients(struct aq_stats_page *page)
{
    const unsigned count = atomic_load_explicit(&aq_stats_clients.count, memory_order_acquire);

    if (page->in_signal || (aq_trace_state.stats_mask & UINT32_C(1) << ('H' - 'A')) == 0)
        return;
    aq_stats_open_page = page;
    for (unsigned i = 0; i < count; i++)
        aq_stats_clients.callback[i](aq_stats_print);
    aq_stats_open_page = NULL;
}

/* --- writing --- */

static void aq_stats_put_about(struct aq_trace_out *out, const char *what, const char *text)
{
    aq_trace_put(out, aq_stats_rank());
    aq_trace_put(out, "> ");
    aq_trace_put(out, what);
    aq_trace_put(out, ": ");
    aq_trace_put(out, text);
    aq_trace_put_char(out, '\n');
}

void aq_stats_begin(void)
{
    struct aq_stats_page page = aq_stats_page_begin(aq_stats_rank(), false);

    aq_trace_about(&page.out, aq_stats_put_about);
    aq_stats_send(&page);
}

void aq_stats_write(bool in_signal)
{
    struct aq_stats_page page = aq_stats_page_begin(aq_stats_rank(), in_signal);
    struct aq_trace_out *out;

    if (!aq_exit_is_own_process())
        return;
    aq_stats_sum(aq_stats_sums);
    aq_stats_put_table(&page, "", aq_stats_sums);
    aq_stats_call_clients(&page);
    out = aq_stats_line(&page);
    aq_trace_put(out, "Total run time: ");
    aq_trace_put_us(out, aq_now_ns() - aq_trace_state.began);
    aq_trace_put(out, " us\n");
    aq_stats_send(&page);
}

/* Writes the section of all ranks of this host. Where each rank has its own file, it goes to the
 * first one's. */
static void aq_stats_write_job(bool in_signal)
{
    const uint32_t host_size = aq_spawn_info()->host_size;
    const bool all = host_size == aq_job.size;
    struct aq_stats_page page = aq_stats_page_begin(all ? "job" : "host", in_signal);
    char title[64];
    struct aq_trace_out out = { title, title + sizeof(title) - 1 };

    aq_trace_put(&out, " ");
    aq_trace_put_number(&out, aq_trace_common->writers[1]);
    aq_trace_put(&out, all ? " ranks" : " ranks of this host");
    *out.at = '\0';
    memset(aq_stats_sums, 0, sizeof(aq_stats_sums));
    for (uint32_t i = 0; i < host_size; i++)
        for (unsigned kind = 0; kind < AQ_TRACE_KIND_COUNT; kind++)
            aq_count_merge(&aq_stats_sums[kind],
                           &aq_trace_common->count[(size_t)i * AQ_TRACE_KIND_COUNT + kind]);
    aq_stats_put_table(&page, title, aq_stats_sums);
    aq_trace_sink_reopen(&aq_stats_sink);
    aq_stats_send(&page);
}

void aq_stats_end(bool in_signal)
{
    const uint32_t slot = aq_spawn_info()->host_rank;

    if (!aq_exit_is_own_process())
        return;
    aq_stats_write(in_signal);
    memcpy(&aq_trace_common->count[(size_t)slot * AQ_TRACE_KIND_COUNT], aq_stats_sums,
           sizeof(aq_stats_sums));
    if (aq_trace_sink_last(&aq_stats_sink))
        aq_stats_write_job(in_signal);
}

/* --- the beginning of both kinds of output --- */

static void aq_trace_read_command(char *line, size_t size)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t len = file != NULL ? fread(line, 1, size - 1, file) : 0;

    if (file != NULL)
        fclose(file);
    while (len > 0 && line[len - 1] == '\0')
        len--;
    for (size_t i = 0; i < len; i++)
        if (line[i] == '\0' || line[i] == '\n')
            line[i] = ' ';
    line[len] = '\0';
}

void aq_trace_about(struct aq_trace_out *out,
                    void (*line)(struct aq_trace_out *out, const char *what, const char *text))
{
    char text[1024], host[256] = "?", when[64] = "?", trace[32], stats[32];
    const time_t now = time(NULL);
    struct tm tm;

    gethostname(host, sizeof(host) - 1);
    if (localtime_r(&now, &tm) != NULL)
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s (pid=%ld) starting on %s at: %s", program_invocation_name,
             (long)getpid(), host, when);
    line(out, "Program", text);
    aq_trace_read_command(text, sizeof(text));
    line(out, "Command-line", text);
    line(out, "GASNET_CONFIG_STRING", GASNET_CONFIG_STRING);
    aq_trace_categories_of(aq_trace_state.trace_mask, trace);
    aq_trace_categories_of(aq_trace_state.stats_mask, stats);
    line(out, "GASNET_TRACEMASK", trace);
    line(out, "GASNET_STATSMASK", stats);
}
