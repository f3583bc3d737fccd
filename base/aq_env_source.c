/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_source.c - the sources of a variable's text; see aq_env_source.h.
 * Owns      two blocks of NAME=VALUE strings (own, job) and the list of values that the client sets
 * Threads   the blocks are set while the process has one thread; the list only grows
 * Uses      base/aq_env.h, base/aq_log.h
 */
#include "base/aq_env_source.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"

struct aq_env_set {
    char *block;
    size_t len;
    const char **entries;
    size_t count;
};

static struct aq_env_set aq_env_own, aq_env_job;

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

/* copies one string; with decode, %0HH becomes the byte HH (a launcher's encoding) */
static size_t aq_env_copy_entry(char *to, const char *from, bool decode)
{
    char *start = to;

    while (*from != '\0') {
        unsigned byte;

        if (decode && from[0] == '%' && from[1] == '0' && isxdigit((unsigned char)from[2])
            && isxdigit((unsigned char)from[3]) && sscanf(from + 2, "%2x", &byte) == 1
            && byte != 0) {
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

void aq_env_take_snapshot(void)
{
    const bool decode_off = aq_env_decode_is_off();
    size_t space = 1;

    for (char **e = environ; e != NULL && *e != NULL; e++)
        space += strlen(*e) + 1;

    aq_env_own.block = malloc(space);
    if (aq_env_own.block == NULL)
        aq_fatal("no memory for %zu bytes of environment", space);
    for (char **e = environ; e != NULL && *e != NULL; e++)
        aq_env_own.len += aq_env_copy_entry(aq_env_own.block + aq_env_own.len, *e, !decode_off);
    aq_env_set_index(&aq_env_own);
}

const char *aq_env_snapshot(size_t *len_out)
{
    *len_out = aq_env_own.len;
    return aq_env_own.block;
}

void aq_env_keep_job_block(const char *block, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy == NULL)
        aq_fatal("no memory for %zu bytes of environment", len);
    memcpy(copy, block, len);
    copy[len] = '\0'; /* also ends a block whose last string has no NUL */
    /* an earlier block is kept: strings in it may have been returned to callers */
    aq_env_job.block = copy;
    aq_env_job.len = len;
    aq_env_set_index(&aq_env_job);
}

static void aq_env_set_free(struct aq_env_set *set)
{
    free(set->block);
    free(set->entries);
    *set = (struct aq_env_set){ .block = NULL };
}

void aq_env_drop_blocks(void)
{
    aq_env_set_free(&aq_env_own);
    aq_env_set_free(&aq_env_job);
}

const char *aq_env_own_entry(size_t i)
{
    return i < aq_env_own.count ? aq_env_own.entries[i] : NULL;
}

/* ---- what the client sets ------------------------------------------------------------------ */

/* The newest is first. Entries are never freed, since their text may have been returned to
 * callers. */
struct aq_env_own_value {
    struct aq_env_own_value *next;
    const char *name, *text; /* text NULL: removed */
};

static struct aq_env_own_value *_Atomic aq_env_own_values;
static pthread_mutex_t aq_env_libc = PTHREAD_MUTEX_INITIALIZER; /* protects setenv and getenv */

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

    if (own == NULL || (own->name = strdup(name)) == NULL
        || (own->text = text != NULL ? strdup(text) : NULL, text != NULL && own->text == NULL))
        aq_fatal("no memory for the environment variable %s", name);
    pthread_mutex_lock(&aq_env_libc);
    rc = text != NULL ? setenv(name, text, 1) : unsetenv(name);
    if (rc == 0) {
        own->next = atomic_load_explicit(&aq_env_own_values, memory_order_relaxed);
        /* release: a reader that finds it sees its members */
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
    if (aq_env_own.entries == NULL)
        return getenv(name);
    found = aq_env_set_find(&aq_env_job, name);
    return found != NULL ? found : aq_env_set_find(&aq_env_own, name);
}

/* returns a decoded copy that is never freed; the same one for the same text */
static const char *aq_env_keep_decoded(const char *text)
{
    static struct aq_env_own_value *saved; /* name: as encoded; under aq_env_libc */
    struct aq_env_own_value *entry = saved;
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
    entry->next = saved;
    saved = entry;
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
