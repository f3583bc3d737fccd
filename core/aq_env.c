/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env.c - the table of environment variables, its values and its report; see aq_env.h.
 * Owns      two blocks of NAME=VALUE strings (own, job), one value for each row, what the client sets
 * Threads   values are written at init only; "was it read" marks are atomic; what the client sets is a
 *           list that only grows
 * Uses      core/aq_log.h
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h" /* AQ_DEFAULT_MAX_SEGSIZE */
#endif
#include "core/aq_env.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/aq_env_alias.h"
#include "core/aq_log.h"

const struct aq_env_row aq_env_rows[AQ_ENV_ID_COUNT] = {
#define AQ_ENV(id, name, type, unit, dflt, help)                                         \
    [AQ_ENV_##id] = {name, unit, dflt, help, AQ_ENV_TYPE_##type, false},
#define AQ_ENV_COMPAT(id, name, type, unit, dflt, help)                                  \
    [AQ_ENV_##id] = {name, unit, dflt, help, AQ_ENV_TYPE_##type, true},
#include "core/aq_env.def"
};

struct aq_env_set {
    char *block;
    size_t len;
    const char **entries;
    size_t count;
};

struct aq_env_value {
    const char *text;     /* what the user gave, NULL if nothing */
    const char *computed; /* default that the program worked out, for the report */
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

static struct aq_env_set aq_env_own, aq_env_job;
static struct aq_env_value aq_env_values[AQ_ENV_ID_COUNT];
static bool aq_env_is_init;
static bool aq_env_prints_late; /* after the report, on rank 0, with GASNET_VERBOSEENV */

extern char **environ;

/* ---- blocks of NAME=VALUE strings ---------------------------------------------------------- */

static const char *aq_env_set_find(const struct aq_env_set *set, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < set->count; i++)
        if (strncmp(set->entries[i], name, len) == 0 && set->entries[i][len] == '=')
            return set->entries[i] + len + 1;
    return NULL;
}

static void aq_env_set_index(struct aq_env_set *set)
{
    size_t count = 0;

    for (size_t at = 0; at < set->len; at += strlen(set->block + at) + 1)
        count++;
    set->entries = calloc(count + 1, sizeof(*set->entries));
    if (set->entries == NULL)
        aq_fatal("no memory for %zu environment variables", count);
    set->count = 0;
    for (size_t at = 0; at < set->len; at += strlen(set->block + at) + 1)
        set->entries[set->count++] = set->block + at;
}

/* copy one string; with decode, %0HH becomes the byte HH (a launcher's encoding) */
static size_t aq_env_copy_entry(char *to, const char *from, bool decode)
{
    char *start = to;

    while (*from != '\0') {
        unsigned byte;

        if (decode && from[0] == '%' && from[1] == '0' && isxdigit((unsigned char)from[2]) &&
            isxdigit((unsigned char)from[3]) && sscanf(from + 2, "%2x", &byte) == 1 && byte != 0) {
            *to++ = (char)byte;
            from += 4;
        } else {
            *to++ = *from++;
        }
    }
    *to++ = '\0';
    return (size_t)(to - start);
}

static bool aq_env_decode_is_off(void)
{
    const char *text = getenv("GASNET_DISABLE_ENVDECODE");
    bool off = false;

    if (text != NULL)
        (void)aq_env_parse_bool(text, &off);
    return off;
}

static void aq_env_take_snapshot(void)
{
    const bool decode_off = aq_env_decode_is_off();
    size_t room = 1;

    for (char **e = environ; e != NULL && *e != NULL; e++)
        room += strlen(*e) + 1;

    aq_env_own.block = malloc(room);
    if (aq_env_own.block == NULL)
        aq_fatal("no memory for %zu bytes of environment", room);
    for (char **e = environ; e != NULL && *e != NULL; e++)
        aq_env_own.len += aq_env_copy_entry(aq_env_own.block + aq_env_own.len, *e, !decode_off);
    aq_env_set_index(&aq_env_own);
}

const char *aq_env_snapshot(size_t *len_out)
{
    *len_out = aq_env_own.len;
    return aq_env_own.block;
}

/* ---- what the client sets ------------------------------------------------------------------ */

/* The latest comes first; none is ever freed, since its text may have been handed out. */
struct aq_env_own_value {
    struct aq_env_own_value *next;
    const char *name, *text; /* text NULL: not set */
};

static struct aq_env_own_value *_Atomic aq_env_own_values;
static pthread_mutex_t aq_env_libc = PTHREAD_MUTEX_INITIALIZER; /* around setenv and getenv */

static const struct aq_env_own_value *aq_env_find_own(const char *name)
{
    /* acquire: pairs with the release in aq_env_change() */
    const struct aq_env_own_value *at =
        atomic_load_explicit(&aq_env_own_values, memory_order_acquire);

    while (at != NULL && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

bool aq_env_change(const char *name, const char *text)
{
    struct aq_env_own_value *own = malloc(sizeof(*own));
    int rc;

    if (own == NULL || (own->name = strdup(name)) == NULL ||
        (own->text = text != NULL ? strdup(text) : NULL, text != NULL && own->text == NULL))
        aq_fatal("no memory for the environment variable %s", name);
    pthread_mutex_lock(&aq_env_libc);
    rc = text != NULL ? setenv(name, text, 1) : unsetenv(name);
    if (rc == 0) {
        own->next = atomic_load_explicit(&aq_env_own_values, memory_order_relaxed);
        /* release: whoever finds it sees its members */
        atomic_store_explicit(&aq_env_own_values, own, memory_order_release);
    }
    pthread_mutex_unlock(&aq_env_libc);
    return rc == 0;
}

const char *aq_env_get(const char *name)
{
    const struct aq_env_own_value *own = aq_env_find_own(name);
    const char *found;

    if (own != NULL)
        return own->text;
    if (!aq_env_is_init)
        return getenv(name);
    found = aq_env_set_find(&aq_env_job, name);
    return found != NULL ? found : aq_env_set_find(&aq_env_own, name);
}

/* a decoded copy that stays; the same one for the same text */
static const char *aq_env_keep_decoded(const char *text)
{
    static struct aq_env_own_value *kept; /* name: as encoded; under aq_env_libc */
    struct aq_env_own_value *entry = kept;
    char *copy;

    while (entry != NULL && strcmp(entry->name, text) != 0)
        entry = entry->next;
    if (entry != NULL)
        return entry->text;
    entry = malloc(sizeof(*entry));
    copy = malloc(strlen(text) + 1);
    if (entry == NULL || copy == NULL || (entry->name = strdup(text)) == NULL)
        aq_fatal("no memory for an environment variable of %zu bytes", strlen(text));
    aq_env_copy_entry(copy, text, true);
    entry->text = copy;
    entry->next = kept;
    kept = entry;
    return copy;
}

const char *aq_env_get_live(const char *name)
{
    const struct aq_env_own_value *own = aq_env_find_own(name);
    const char *found;

    if (own != NULL)
        return own->text;
    found = aq_env_set_find(&aq_env_job, name);
    if (found != NULL)
        return found;
    pthread_mutex_lock(&aq_env_libc);
    found = getenv(name);
    if (found != NULL && strstr(found, "%0") != NULL && !aq_env_decode_is_off())
        found = aq_env_keep_decoded(found);
    pthread_mutex_unlock(&aq_env_libc);
    return found;
}

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

static void aq_env_load_user(int id)
{
    const struct aq_env_row *row = &aq_env_rows[id];
    struct aq_env_value *value = &aq_env_values[id];
    const char *text = aq_env_get(row->name);
    bool keeps_empty = row->type == AQ_ENV_TYPE_STR || row->type == AQ_ENV_TYPE_FLAG;

    if (text == NULL || (*text == '\0' && !keeps_empty))
        return;
    value->text = text;
    if (!row->compat && !aq_env_parse_row(row, text, value))
        aq_fatal("environment variable %s has the value \"%s\", which cannot be understood; "
                 "it must be %s%s", row->name, text, aq_env_form(row->type),
                 row->type == AQ_ENV_TYPE_CHOICE ? row->unit : "");
}

static void aq_env_load(void)
{
    /* all defaults first: a fatal error about one variable reads others on its way out */
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

void aq_env_set_job_environment(const char *block, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy == NULL)
        aq_fatal("no memory for %zu bytes of environment", len);
    memcpy(copy, block, len);
    copy[len] = '\0'; /* also ends a block whose last string is not ended */
    /* an earlier block stays: strings in it may have been handed out */
    aq_env_job.block = copy;
    aq_env_job.len = len;
    aq_env_set_index(&aq_env_job);
    aq_env_load();
}

static void aq_env_warn_alias(const struct aq_env_alias *alias)
{
    aq_warn("%s=%s is used; %s=%s contradicts it", alias->name, alias->value, alias->other, alias->other_value);
}

void aq_env_adopt_aliases(bool warns)
{
    if (aq_env_alias_adopt(aq_env_get, aq_env_change, warns ? aq_env_warn_alias : NULL))
        aq_env_load();
}

/* ---- reading ------------------------------------------------------------------------------- */

static void aq_env_show_row(enum aq_env_id id);

/* the value of a row, checked for its type; the first reading is remembered for the report */
static struct aq_env_value *aq_env_read(enum aq_env_id id, unsigned types)
{
    struct aq_env_value *value = &aq_env_values[id];

    if (!aq_env_is_init)
        aq_env_load_default(id); /* a fatal error before init passes here */
    if ((types >> aq_env_rows[id].type & 1) == 0)
        aq_fatal("%s was read as another type than %s", aq_env_rows[id].name,
                 aq_env_type_name(aq_env_rows[id].type));
    /* relaxed: the mark only keeps a line from being printed twice */
    if (!atomic_load_explicit(&value->was_read, memory_order_relaxed) &&
        !atomic_exchange_explicit(&value->was_read, true, memory_order_relaxed) &&
        aq_env_prints_late)
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

/* equal but for blanks and case: "64KB" and "64 KB" */
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
        [AQ_ENV_TYPE_BOOL] = "boolean",      [AQ_ENV_TYPE_FLAG] = "flag",
        [AQ_ENV_TYPE_INT] = "integer",       [AQ_ENV_TYPE_REAL] = "number",
        [AQ_ENV_TYPE_SIZE] = "size",         [AQ_ENV_TYPE_TIME] = "time",
        [AQ_ENV_TYPE_SEGSIZE] = "size/scope", [AQ_ENV_TYPE_RANKS] = "ranks",
        [AQ_ENV_TYPE_CHOICE] = "choice",     [AQ_ENV_TYPE_STR] = "text",
    };

    return names[type];
}

/* ---- misspellings -------------------------------------------------------------------------- */

/* families that belong to other conduits, to parts not in this build, or to build systems */
static const char *const aq_env_foreign[] = {
    "GASNET_IBV_", "GASNET_OFI_", "GASNET_UCX_", "GASNET_MPI_", "GASNET_COLL_", "GASNET_VIS_",
    "GASNET_FIREHOSE_", "GASNET_TSC_", "GASNET_MALLOC", "GASNET_TRACE", "GASNET_STATS",
    "GASNET_CONNECT", "GASNET_MAXIMIZE_", "GASNET_SD_", "GASNET_TEST_",
};

static const char *aq_env_tail(const char *name)
{
    if (strncmp(name, "GASNET_", 7) == 0)
        return name + 7;
    return strncmp(name, "AQ_", 3) == 0 ? name + 3 : NULL;
}

static unsigned aq_env_min(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* edit distance with transposition of neighbours (optimal string alignment) */
static unsigned aq_env_distance(const char *a, const char *b)
{
    enum { LONGEST = 47 };
    unsigned rows[3][LONGEST + 1];
    size_t la = strlen(a), lb = strlen(b);

    if (la > LONGEST || lb > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];

        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned change = before[j - 1] + (a[i - 1] != b[j - 1]);

            now[j] = aq_env_min(change, aq_env_min(before[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = aq_env_min(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[la % 3][lb];
}

/* GASNET_IBV_PORTS_3 or GASNET_IBV_PORTS_0_1: that setting for processes at such a place (conduits/ibv). */
static bool aq_env_is_placed(const char *name)
{
    const char *base = aq_env_rows[AQ_ENV_IBV_PORTS].name;
    const size_t len = strlen(base);

    return strncmp(name, base, len) == 0 && name[len] == '_' && name[len + 1] != '\0'
           && name[len + strspn(name + len, "_0123456789")] == '\0';
}

const char *aq_env_nearest(const char *name)
{
    const char *tail = aq_env_tail(name), *best = NULL;
    unsigned least = 3;

    if (tail == NULL || *tail == '\0' || aq_env_is_placed(name))
        return NULL;
    for (size_t i = 0; i < sizeof(aq_env_foreign) / sizeof(aq_env_foreign[0]); i++)
        if (strncmp(name, aq_env_foreign[i], strlen(aq_env_foreign[i])) == 0)
            return NULL;
    for (int id = 0; id < AQ_ENV_ID_COUNT; id++) {
        const char *known = aq_env_rows[id].name;
        unsigned distance;

        if (strcmp(name, known) == 0)
            return NULL;
        if (strncmp(known, "GASNET_", 7) != 0 && strncmp(known, "AQ_", 3) != 0)
            continue;
        distance = aq_env_distance(tail, aq_env_tail(known));
        /* in a short name two changes make another word */
        if (distance < least && (distance < 2 || strlen(tail) > 5)) {
            least = distance;
            best = known;
        }
    }
    return best;
}

static void aq_env_report_misspellings(void)
{
    for (size_t i = 0; i < aq_env_own.count; i++) {
        char name[64];
        size_t len = strcspn(aq_env_own.entries[i], "=");
        const char *nearest;

        if (len >= sizeof(name))
            continue;
        memcpy(name, aq_env_own.entries[i], len);
        name[len] = '\0';
        nearest = aq_env_nearest(name);
        if (nearest != NULL)
            aq_notice("environment variable %s is not known; %s is meant, perhaps", name, nearest);
    }
}

/* other/spawn reads these by name, because the launcher is built from it too */
static const enum aq_env_id aq_env_of_spawn[] = {
    AQ_ENV_PSHM_NODES,      AQ_ENV_SMP_SPAWNER,     AQ_ENV_SPAWN_VERBOSE,      AQ_ENV_EXITTIMEOUT,
    AQ_ENV_EXITTIMEOUT_MAX, AQ_ENV_EXITTIMEOUT_MIN, AQ_ENV_EXITTIMEOUT_FACTOR,
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
    }
    aq_env_report_misspellings();
}
