/*
 * aq_trace_client.c - what clients add to traces and statistics themselves: the table behind the
 * GASNETT_TRACE_* and GASNETT_STATS_* macros.
 *
 * Threads   any, also in handlers
 * Uses      core/aq_trace_internal.h, include/gasnet/tools_trace.h
 * See       GASNet tools specification 1.20, tracing and statistics from clients
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_trace_internal.h"

#include <ctype.h>
#include <string.h>

#include "gasnet_tools.h"

/* --- masks --- */

static int aq_trace_category_in(const struct aq_trace_sink *sink, uint32_t mask, char category)
{
    const char cat = (char)toupper((unsigned char)category);

    return sink->fd >= 0 && cat >= 'A' && cat <= 'Z'
           && (cat == 'U' || (mask & UINT32_C(1) << (cat - 'A')) != 0);
}

/* The text is valid until the same thread asks again. */
static const char *aq_trace_mask_text(const struct aq_trace_sink *sink, uint32_t mask)
{
    static _Thread_local char text[2][32];
    char *own = text[sink == &aq_stats_sink];

    *own = '\0';
    if (sink->fd >= 0)
        aq_trace_categories_of(mask, own);
    return own;
}

/* --- trace --- */

static int aq_client_trace_enabled(char category)
{
    return aq_trace_category_in(&aq_trace_sink, aq_trace_state.trace_mask, category);
}

static void aq_client_trace_text(int force, const char *text)
{
    aq_trace_line(force ? AQ_TRACE_TEXT_FORCED : AQ_TRACE_TEXT_CLIENT, text, strlen(text));
}

static const char *aq_client_trace_mask(void)
{
    return aq_trace_mask_text(&aq_trace_sink, aq_trace_state.trace_mask);
}

static void aq_client_trace_set_mask(const char *cats)
{
    if (aq_trace_sink.fd < 0)
        return;
    aq_trace_state.trace_mask = aq_trace_mask_of(cats, "GASNETT_TRACE_SETMASK");
    aq_trace_apply();
}

static int aq_client_trace_local(void)
{
    return aq_trace_sink.fd >= 0 && aq_trace_state.local;
}

static void aq_client_trace_set_local(int on)
{
    if (aq_trace_sink.fd >= 0)
        aq_trace_state.local = on != 0;
}

/* --- source lines of the calling thread --- */

static void aq_client_set_line(const char *file, unsigned line)
{
    struct aq_trace_thread *t = aq_trace_sink.fd >= 0 ? aq_trace_self() : NULL;

    if (t == NULL || t->frozen != 0)
        return;
    t->file = file;
    t->line = line;
}

static void aq_client_get_line(const char **file, unsigned *line)
{
    const struct aq_trace_thread *t = aq_trace_sink.fd >= 0 ? aq_trace_self() : NULL;
    const bool known = t != NULL && t->file != NULL;

    *file = known ? t->file : "";
    *line = known ? t->line : 0;
}

static void aq_client_freeze_line(int freeze)
{
    struct aq_trace_thread *t = aq_trace_sink.fd >= 0 ? aq_trace_self() : NULL;

    if (t == NULL)
        return;
    if (freeze)
        t->frozen++;
    else if (t->frozen != 0)
        t->frozen--;
}

/* --- statistics --- */

static int aq_client_stats_enabled(char category)
{
    return aq_trace_category_in(&aq_stats_sink, aq_trace_state.stats_mask, category);
}

static void aq_client_stats_text(int force, const char *text)
{
    (void)force; /* the caller has tested whether H is on */
    aq_stats_text(text);
}

static const char *aq_client_stats_mask(void)
{
    return aq_trace_mask_text(&aq_stats_sink, aq_trace_state.stats_mask);
}

static void aq_client_stats_set_mask(const char *cats)
{
    if (aq_stats_sink.fd < 0)
        return;
    aq_trace_state.stats_mask = aq_trace_mask_of(cats, "GASNETT_STATS_SETMASK");
    aq_trace_apply();
}

static int aq_client_stats_init(void (*callback)(void (*print)(const char *fmt, ...)))
{
    if (aq_stats_sink.fd >= 0)
        aq_stats_register(callback);
    return aq_client_stats_enabled('H');
}

static void aq_client_stats_dump(int reset)
{
    if (aq_stats_sink.fd < 0 || !aq_trace_lock(false))
        return;
    aq_stats_write(false);
    if (reset)
        /* release: pairs with the acquire in aq_stats_add(); the counts were read before */
        atomic_fetch_add_explicit(&aq_trace_state.epoch, 1, memory_order_release);
    aq_trace_unlock();
}

/* --- the table --- */

void aq_trace_serve_client(void)
{
    static const struct aq_client_trace table = {
        .trace_enabled = aq_client_trace_enabled,
        .trace_text = aq_client_trace_text,
        .trace_mask = aq_client_trace_mask,
        .trace_set_mask = aq_client_trace_set_mask,
        .trace_local = aq_client_trace_local,
        .trace_set_local = aq_client_trace_set_local,
        .set_line = aq_client_set_line,
        .get_line = aq_client_get_line,
        .freeze_line = aq_client_freeze_line,
        .stats_enabled = aq_client_stats_enabled,
        .stats_text = aq_client_stats_text,
        .stats_mask = aq_client_stats_mask,
        .stats_set_mask = aq_client_stats_set_mask,
        .stats_init = aq_client_stats_init,
        .stats_dump = aq_client_stats_dump,
    };

    aq_client_trace = &table;
}

void aq_trace_disconnect_client(void)
{
    aq_client_trace = NULL;
}
