/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env.c - the table of environment variables, its values and its report; see aq_env.h.
 * Owns      one value for each row
 * Threads   values are written at init only; "was it read" marks are atomic
 * Uses      base/aq_env_source.h (where texts come from), base/aq_log.h
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h" /* AQ_DEFAULT_MAX_SEGSIZE */
#endif
#include "base/aq_env.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/aq_env_alias.h"
#include "base/aq_env_source.h"
#include "base/aq_log.h"

const struct aq_env_row aq_env_rows[AQ_ENV_ID_COUNT] = {
#define AQ_ENV(id, name, type, unit, dflt, help) \
    [AQ_ENV_##id] = { name, unit, dflt, help, AQ_ENV_TYPE_##type, false },
#define AQ_ENV_COMPAT(id, name, type, unit, dflt, help) \
    [AQ_ENV_##id] = { name, unit, dflt, help, AQ_ENV_TYPE_##type, true },
#include "base/aq_env_rows.def"
};

const struct aq_env_range aq_env_ranges[AQ_ENV_ID_COUNT] = {
#define AQ_ENV(id, name, type, unit, dflt, help)
#define AQ_ENV_RANGE(id, min_, max_) [AQ_ENV_##id] = { .min = min_, .max = max_ },
#define AQ_ENV_RANGE_OR_0(id, min_, max_) \
    [AQ_ENV_##id] = { .min = min_, .max = max_, .or_0 = true },
#include "base/aq_env_rows.def"
};

struct aq_env_value {
    const char *text;     /* as the user set it, NULL if unset */
    const char *computed; /* computed default, for the report */
    atomic_bool was_read;
    union {
        bool yes;
        int64_t whole;
        double real;
        uint64_t bytes;
        unsigned choice;
        struct aq_env_segsize segsize;
    };
};

static struct aq_env_value aq_env_values[AQ_ENV_ID_COUNT];
static bool aq_env_is_init;
static char aq_env_wrong[1024]; /* message about a value that cannot be used; "" if there is none */
static bool aq_env_prints_late; /* after the report: on rank 0, with GASNET_VERBOSEENV */

/* ---- values -------------------------------------------------------------------------------- */

static bool aq_env_parse_flag(const char *text)
{
    return strcmp(text, "0") != 0 && strcasecmp(text, "n") != 0 && strcasecmp(text, "no") != 0;
}

static bool aq_env_parse_row(const struct aq_env_row *row, const char *text,
                             struct aq_env_value *value)
{
    bool ignored;

    switch (row->type) {
    case AQ_ENV_TYPE_BOOL:
        return aq_env_parse_bool(text, &value->yes);
    case AQ_ENV_TYPE_FLAG:
        value->yes = aq_env_parse_flag(text);
        return true;
    case AQ_ENV_TYPE_INT:
        return aq_env_parse_int(text, &value->whole);
    case AQ_ENV_TYPE_REAL:
        return aq_env_parse_real(text, &value->real);
    case AQ_ENV_TYPE_SIZE:
        return aq_env_parse_size(text, row->unit, &value->bytes);
    case AQ_ENV_TYPE_TIME:
        return aq_env_parse_time(text, row->unit, &value->real);
    case AQ_ENV_TYPE_SEGSIZE:
        return aq_env_parse_segsize(text, &value->segsize);
    case AQ_ENV_TYPE_RANKS:
        return aq_env_parse_ranks(text, 0, &ignored);
    case AQ_ENV_TYPE_CHOICE:
        return aq_env_parse_choice(text, row->unit, &value->choice);
    case AQ_ENV_TYPE_STR:
        return true;
    }
    return false;
}

/* -1, 0, 1: the order of two values of a row */
static int aq_env_compare(enum aq_env_type type, const struct aq_env_value *a,
                          const struct aq_env_value *b)
{
    switch (type) {
    case AQ_ENV_TYPE_INT:
        return (a->whole > b->whole) - (a->whole < b->whole);
    case AQ_ENV_TYPE_SIZE:
        return (a->bytes > b->bytes) - (a->bytes < b->bytes);
    default:
        return (a->real > b->real) - (a->real < b->real);
    }
}

static bool aq_env_in_range(enum aq_env_id id, const struct aq_env_value *value)
{
    const struct aq_env_range *range = &aq_env_ranges[id];
    const struct aq_env_row *row = &aq_env_rows[id];
    struct aq_env_value min, max, zero;

    if (range->min == NULL)
        return true;
    memset(&zero, 0, sizeof(zero));
    if (!aq_env_parse_row(row, range->min, &min) || !aq_env_parse_row(row, range->max, &max))
        aq_fatal("the range of %s in its env.def is no %s", row->name, aq_env_type_name(row->type));
    return (range->or_0 && aq_env_compare(row->type, value, &zero) == 0)
           || (aq_env_compare(row->type, value, &min) >= 0
               && aq_env_compare(row->type, value, &max) <= 0);
}

char *aq_env_range_text(enum aq_env_id id, char *buf, size_t size)
{
    const struct aq_env_range *range = &aq_env_ranges[id];

    if (range->min != NULL)
        snprintf(buf, size, "%sfrom %s to %s", range->or_0 ? "0, or " : "", range->min, range->max);
    else if (size > 0)
        buf[0] = '\0';
    return buf;
}

static const char *aq_env_form(enum aq_env_type type)
{
    switch (type) {
    case AQ_ENV_TYPE_BOOL:
        return "a boolean (1, y, yes, true, on or 0, n, no, false, off), for example yes";
    case AQ_ENV_TYPE_FLAG:
        return "anything but 0, n, no, for example 1";
    case AQ_ENV_TYPE_INT:
        return "a whole number, decimal or 0x hexadecimal, for example 4";
    case AQ_ENV_TYPE_REAL:
        return "a number or a fraction, for example 0.25 or 1/4";
    case AQ_ENV_TYPE_SIZE:
        return "a size with unit B, KB, MB, GB or TB, for example 64KB or 1.5GB";
    case AQ_ENV_TYPE_TIME:
        return "a time with unit ns, us, ms, s, min or h, for example 10ms";
    case AQ_ENV_TYPE_SEGSIZE:
        return "a size, or a fraction of memory below 1, then nothing, /P (per rank) or /H (per "
               "host), for example 128MB/P or 0.85/H";
    case AQ_ENV_TYPE_RANKS:
        return "a list of ranks, for example 0,2-4,6 or *";
    case AQ_ENV_TYPE_CHOICE:
        return "one of ";
    case AQ_ENV_TYPE_STR:
        break;
    }
    return "text";
}

static void aq_env_load_default(int id)
{
    const char *text = aq_env_rows[id].dflt;
    struct aq_env_value *value = &aq_env_values[id];

    value->text = NULL;
    memset(&value->segsize, 0, sizeof(value->segsize)); /* the largest member */
    if (!aq_env_rows[id].compat && *text != '\0' && *text != '(')
        (void)aq_env_parse_row(&aq_env_rows[id], text, value);
}

static void aq_env_refuse_later(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* stores the first error until the ranks of a host can print it once for all of them */
static void aq_env_refuse_later(const char *fmt, ...)
{
    va_list args;

    if (aq_env_wrong[0] != '\0')
        return;
    va_start(args, fmt);
    vsnprintf(aq_env_wrong, sizeof(aq_env_wrong), fmt, args);
    va_end(args);
}

void aq_env_refuse(void)
{
    if (aq_env_wrong[0] != '\0')
        aq_fatal("%s", aq_env_wrong);
}

static void aq_env_load_user(int id)
{
    const struct aq_env_row *row = &aq_env_rows[id];
    struct aq_env_value *value = &aq_env_values[id];
    const char *text = aq_env_get(row->name);
    char range[64];
    bool keeps_empty = row->type == AQ_ENV_TYPE_STR || row->type == AQ_ENV_TYPE_FLAG;

    if (text == NULL || (*text == '\0' && !keeps_empty))
        return;
    value->text = text;
    if (row->compat)
        return;
    aq_env_range_text((enum aq_env_id)id, range, sizeof(range));
    if (!aq_env_parse_row(row, text, value))
        aq_env_refuse_later(
            "environment variable %s has the value \"%s\", which cannot be understood; "
            "it must be %s%s%s%s",
            row->name, text, aq_env_form(row->type),
            row->type == AQ_ENV_TYPE_CHOICE ? row->unit : "", range[0] != '\0' ? ", " : "", range);
    else if (!aq_env_in_range((enum aq_env_id)id, value))
        aq_env_refuse_later(
            "environment variable %s has the value \"%s\", which is out of range; it must be %s",
            row->name, text, range);
    else
        return;
    aq_env_load_default(id); /* what runs until the job ends must not depend on the wrong value */
}

static void aq_env_load(void)
{
    aq_env_wrong[0] = '\0';
    /* all defaults first: a fatal error about one variable reads others */
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++)
        aq_env_load_default(id);
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++)
        aq_env_load_user(id);
    (void)aq_log_set_level(aq_env_str(AQ_ENV_AQ_LOG_LEVEL));
    aq_log_set_quiet(aq_env_bool(AQ_ENV_QUIET));
}

void aq_env_init(void)
{
    if (aq_env_is_init)
        return;
    aq_env_take_snapshot();
    aq_env_is_init = true;
    aq_env_load();
}

void aq_env_fini(void)
{
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++)
        free((void *)(uintptr_t)aq_env_values[id].computed);
    memset(aq_env_values, 0, sizeof(aq_env_values));
    aq_env_wrong[0] = '\0';
    aq_env_prints_late = false;
    aq_env_is_init = false;
    aq_env_drop_blocks();
}

void aq_env_set_job_environment(const char *block, size_t len)
{
    aq_env_keep_job_block(block, len);
    aq_env_load();
}

static void aq_env_warn_alias(const struct aq_env_alias *alias)
{
    aq_warn("%s=%s is used; %s=%s contradicts it", alias->name, alias->value, alias->other,
            alias->other_value);
}

void aq_env_adopt_aliases(const struct aq_env_aliases *aliases, bool warns)
{
    if (aliases != NULL
        && aq_env_alias_adopt(aliases, aq_env_get, aq_env_change, warns ? aq_env_warn_alias : NULL))
        aq_env_load();
    aq_env_refuse();
}

/* ---- reading ------------------------------------------------------------------------------- */

static void aq_env_show_row(enum aq_env_id id);

/* returns the value of a row, after checking its type; remembers the first read for the report */
static struct aq_env_value *aq_env_read(enum aq_env_id id, unsigned types)
{
    struct aq_env_value *value = &aq_env_values[id];

    if (!aq_env_is_init)
        aq_env_load_default(id); /* a fatal error before init calls this */
    if ((types >> aq_env_rows[id].type & 1) == 0)
        aq_fatal("%s was read as another type than %s", aq_env_rows[id].name,
                 aq_env_type_name(aq_env_rows[id].type));
    /* relaxed: the mark only prevents a line from being printed twice */
    if (!atomic_load_explicit(&value->was_read, memory_order_relaxed)
        && !atomic_exchange_explicit(&value->was_read, true, memory_order_relaxed)
        && aq_env_prints_late)
        aq_env_show_row(id);
    return value;
}

bool aq_env_bool(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_BOOL | 1u << AQ_ENV_TYPE_FLAG)->yes;
}

int64_t aq_env_int(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_INT)->whole;
}

double aq_env_real(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_REAL | 1u << AQ_ENV_TYPE_TIME)->real;
}

uint64_t aq_env_size(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_SIZE)->bytes;
}

unsigned aq_env_choice(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_CHOICE)->choice;
}

struct aq_env_segsize aq_env_segsize(enum aq_env_id id)
{
    return aq_env_read(id, 1u << AQ_ENV_TYPE_SEGSIZE)->segsize;
}

bool aq_env_rank_listed(enum aq_env_id id, uint32_t rank)
{
    struct aq_env_value *value = aq_env_read(id, 1u << AQ_ENV_TYPE_RANKS);
    bool listed = false;

    (void)aq_env_parse_ranks(value->text != NULL ? value->text : aq_env_rows[id].dflt, rank,
                             &listed);
    return listed;
}

const char *aq_env_str(enum aq_env_id id)
{
    struct aq_env_value *value = aq_env_read(id, ~0u);
    const char *dflt = aq_env_rows[id].dflt;

    if (value->text != NULL)
        return value->text;
    return *dflt != '\0' && *dflt != '(' ? dflt : NULL;
}

bool aq_env_is_set(enum aq_env_id id)
{
    return aq_env_read(id, ~0u)->text != NULL;
}

void aq_env_set_computed(enum aq_env_id id, const char *text)
{
    free((void *)(uintptr_t)aq_env_values[id].computed);
    aq_env_values[id].computed = strdup(text);
}

int aq_env_verbose(void)
{
    return aq_env_is_init ? aq_env_values[AQ_ENV_VERBOSEENV].yes : -1;
}

/* ---- report -------------------------------------------------------------------------------- */

void aq_env_display(const char *name, const char *value, const char *meaning, bool is_default)
{
    char line[1024];
    const char *shown = value == NULL ? "*not set*" : *value == '\0' ? "*empty*" : value;

    if (meaning != NULL)
        snprintf(line, sizeof(line), "ENV parameter: %s = %s (%s)", name, shown, meaning);
    else
        snprintf(line, sizeof(line), "ENV parameter: %s = %s", name, shown);
    if (is_default)
        aq_log_print("%-70s (default)", line);
    else
        aq_log_print("%s", line);
}

/* equal except for blanks and case: "64KB" and "64 KB" */
static bool aq_env_same_text(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == ' ')
            a++;
        while (*b == ' ')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
    }
}

static void aq_env_show_row(enum aq_env_id id)
{
    const struct aq_env_row *row = &aq_env_rows[id];
    const struct aq_env_value *value = &aq_env_values[id];
    const char *text = value->text, *meaning = NULL;
    char size[32];

    if (text == NULL)
        text = value->computed != NULL ? value->computed : *row->dflt != '\0' ? row->dflt : NULL;
    if (row->type == AQ_ENV_TYPE_BOOL || row->type == AQ_ENV_TYPE_FLAG) {
        text = value->yes ? "YES" : "NO";
    } else if (row->type == AQ_ENV_TYPE_SIZE && text != NULL && *text != '(') {
        aq_env_format_size(value->bytes, size, sizeof(size));
        meaning = aq_env_same_text(text, size) ? NULL : size;
    }
    aq_env_display(row->name, text, meaning, value->text == NULL);
}

bool aq_env_claim_line(const char *name)
{
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++)
        if (strcmp(aq_env_rows[id].name, name) == 0)
            /* relaxed: as in aq_env_read() */
            return !atomic_exchange_explicit(&aq_env_values[id].was_read, true,
                                             memory_order_relaxed);
    return true;
}

const char *aq_env_type_name(enum aq_env_type type)
{
    static const char *const names[] = {
        [AQ_ENV_TYPE_BOOL] = "boolean",       [AQ_ENV_TYPE_FLAG] = "flag",
        [AQ_ENV_TYPE_INT] = "integer",        [AQ_ENV_TYPE_REAL] = "number",
        [AQ_ENV_TYPE_SIZE] = "size",          [AQ_ENV_TYPE_TIME] = "time",
        [AQ_ENV_TYPE_SEGSIZE] = "size/scope", [AQ_ENV_TYPE_RANKS] = "ranks",
        [AQ_ENV_TYPE_CHOICE] = "choice",      [AQ_ENV_TYPE_STR] = "text",
    };

    return names[type];
}

static void aq_env_report_misspellings(void)
{
    const char *entry;

    for (size_t i = 0; (entry = aq_env_own_entry(i)) != NULL; i++) {
        char name[64];
        size_t len = strcspn(entry, "=");
        const char *nearest;

        if (len >= sizeof(name))
            continue;
        memcpy(name, entry, len);
        name[len] = '\0';
        nearest = aq_env_suggest(name);
        if (nearest != NULL)
            aq_notice("environment variable %s is not known; %s is meant, perhaps", name, nearest);
    }
}

/* read by name in other/spawn, because the launcher uses that too */
static const enum aq_env_id aq_env_of_spawn[] = {
    AQ_ENV_PSHM_NODES,         AQ_ENV_SMP_SPAWNER,
    AQ_ENV_SPAWN_VERBOSE,      AQ_ENV_EXITTIMEOUT,
    AQ_ENV_EXITTIMEOUT_MAX,    AQ_ENV_EXITTIMEOUT_MIN,
    AQ_ENV_EXITTIMEOUT_FACTOR, AQ_ENV_AQ_EXITTIMEOUT_ORDERLY,
};

void aq_env_report(uint32_t rank)
{
    aq_env_report_client(rank == 0 && aq_env_verbose() == 1);
    if (rank != 0)
        return;
    for (size_t i = 0; i < sizeof(aq_env_of_spawn) / sizeof(aq_env_of_spawn[0]); i++)
        (void)aq_env_is_set(aq_env_of_spawn[i]);
    if (aq_env_bool(AQ_ENV_VERBOSEENV)) {
        for (int id = 0; id < AQ_ENV_ID_COUNT; id++)
            if (atomic_load_explicit(&aq_env_values[id].was_read, memory_order_relaxed))
                aq_env_show_row((enum aq_env_id)id);
        aq_env_prints_late = true;
        /* only on request: some clients set variables whose names look like the library's */
        aq_env_report_misspellings();
    }
}
