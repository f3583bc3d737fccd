/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_hostlist_parse.c - from text to host names: lists, files, node[01-04,7].
 * Threads   one
 * Promise   no name that ssh would take for an option; no list longer than AQ_HOSTS_MAX
 * See       aq_hostlist.h
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "other/launcher/aq_hostlist_internal.h"

int aq_hosts_wrong(struct aq_hosts *h, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(h->why, sizeof(h->why), fmt, ap);
    va_end(ap);
    return -1;
}

static bool aq_hosts_keep_duplicates(void)
{
    const char *text = getenv("GASNET_SSH_KEEPDUP");
    bool keep = false;

    if (text != NULL)
        aq_env_parse_bool(text, &keep);
    return keep;
}

static bool aq_hosts_grow(void **array, size_t count, size_t size)
{
    void *grown;

    if ((count & (count - 1)) != 0) /* capacity doubles at powers of two */
        return true;
    grown = realloc(*array, (count == 0 ? 1 : count * 2) * size);
    if (grown == NULL)
        return false;
    *array = grown;
    return true;
}

/* FNV-1a */
static uint32_t aq_hosts_hash(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* returns the index of name, or the length. last: as the name's chain has it. Most lists name a
 * host once for each of its cores, in a row: the last name is compared first */
static size_t aq_hosts_index(const struct aq_hosts *h, const char *name, uint32_t last)
{
    if (aq_hosts_keep_duplicates())
        return h->count;
    if (h->count > 0 && strcmp(h->name[h->count - 1], name) == 0)
        return h->count - 1;
    for (; last != 0; last = h->before[last - 1])
        if (strcmp(h->name[last - 1], name) == 0)
            return last - 1;
    return h->count;
}

/* adds a plain name */
static int aq_hosts_add(struct aq_hosts *h, const char *name, uint32_t slots)
{
    uint32_t *chain = &h->chain[aq_hosts_hash(name) % AQ_HOSTS_CHAINS];
    size_t at;

    if (name[0] == '\0' || name[0] == '-')
        return aq_hosts_wrong(h, "%s: '%s' is not the name of a host", h->from, name);
    for (const char *c = name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("-_.:%@+", *c) == NULL)
            return aq_hosts_wrong(h,
                                  "%s: '%s' is not the name of a host ('%c' cannot stand in one)",
                                  h->from, name, *c);
    at = aq_hosts_index(h, name, *chain);
    if (h->words >= AQ_HOSTS_WORDS || at >= AQ_HOSTS_MAX)
        return aq_hosts_wrong(h, "%s: more than %d hosts", h->from, AQ_HOSTS_MAX);
    if (!aq_hosts_grow((void **)&h->order, h->words, sizeof(*h->order))
        || !aq_hosts_grow((void **)&h->name, h->count, sizeof(*h->name))
        || !aq_hosts_grow((void **)&h->before, h->count, sizeof(*h->before))
        || !aq_hosts_grow((void **)&h->slots, h->count, sizeof(*h->slots)))
        return aq_hosts_wrong(h, "%s: out of memory", h->from);
    h->order[h->words++] = (uint32_t)at;
    if (at < h->count) {
        h->slots[at] += slots; /* a:2,a:2 is a:4 */
        return 0;
    }
    h->name[at] = strdup(name);
    if (h->name[at] == NULL)
        return aq_hosts_wrong(h, "%s: out of memory", h->from);
    h->slots[at] = slots;
    h->before[at] = *chain;
    *chain = (uint32_t)at + 1;
    h->count++;
    return 0;
}

/* parses [s, end) as a whole number of 1..AQ_SPAWN_MAX_RANKS */
static bool aq_hosts_number(const char *s, const char *end, uint32_t *out)
{
    uint32_t n = 0;

    if (s == end)
        return false;
    for (; s < end; s++) {
        if (!isdigit((unsigned char)*s) || n > AQ_SPAWN_MAX_RANKS)
            return false;
        n = n * 10 + (uint32_t)(*s - '0');
    }
    if (n < 1 || n > AQ_SPAWN_MAX_RANKS)
        return false;
    *out = n;
    return true;
}

static int aq_hosts_expand(struct aq_hosts *h, const char *word, uint32_t slots);

/* from..to, with as many digits as from has */
static int aq_hosts_expand_range(struct aq_hosts *h, const char *word, const char *open,
                                 const char *rest, const char *item, size_t len, uint32_t slots)
{
    char text[24];
    unsigned long from, to;
    char *dash, *end;

    if (len == 0 || len >= sizeof(text))
        return aq_hosts_wrong(h, "%s: '%s': a range is written [1-4,7]", h->from, word);
    memcpy(text, item, len);
    text[len] = '\0';
    dash = strchr(text, '-');
    if (strspn(text, "0123456789-") != len || !isdigit((unsigned char)text[0])
        || (dash != NULL && !isdigit((unsigned char)dash[1])))
        return aq_hosts_wrong(h, "%s: '%s': a range is written [1-4,7]", h->from, word);
    from = strtoul(text, &end, 10);
    to = dash != NULL ? strtoul(dash + 1, &end, 10) : from;
    if (*end != '\0' || to < from || to - from >= AQ_HOSTS_MAX)
        return aq_hosts_wrong(h, "%s: '%s': no range from %s", h->from, word, text);
    for (unsigned long n = from; n <= to; n++) {
        int digits = (int)(dash != NULL ? (size_t)(dash - text) : len), rc;
        char *name;

        if (asprintf(&name, "%.*s%0*lu%s", (int)(open - word), word, digits, n, rest) < 0)
            return aq_hosts_wrong(h, "%s: out of memory", h->from);
        rc = aq_hosts_expand(h, name, slots);
        free(name);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* word may contain [1-4,7], more than once; [fe80::1] is an address */
static int aq_hosts_expand(struct aq_hosts *h, const char *word, uint32_t slots)
{
    const char *open = strchr(word, '['), *close = open != NULL ? strchr(open, ']') : NULL, *at;
    char *plain;
    int rc = 0;

    if (open == NULL)
        return aq_hosts_add(h, word, slots);
    if (close == NULL)
        return aq_hosts_wrong(h, "%s: '%s': a ] is missing", h->from, word);
    if (memchr(open, ':', (size_t)(close - open)) != NULL) {
        if (asprintf(&plain, "%.*s%.*s%s", (int)(open - word), word, (int)(close - open - 1),
                     open + 1, close + 1)
            < 0)
            return aq_hosts_wrong(h, "%s: out of memory", h->from);
        rc = aq_hosts_add(h, plain, slots);
        free(plain);
        return rc;
    }
    for (at = open + 1; rc == 0 && at <= close;) {
        size_t len = strcspn(at, ",]");

        rc = aq_hosts_expand_range(h, word, open, close + 1, at, len, slots);
        at += len + 1;
    }
    return rc;
}

/* returns where k of name:k begins, or the end: an address without brackets has more than one
 * colon */
static const char *aq_hosts_colon(const char *word, const char *end)
{
    const char *bracket = memrchr(word, ']', (size_t)(end - word));
    const char *from = bracket != NULL ? bracket : word,
               *colon = memchr(from, ':', (size_t)(end - from));

    if (colon == NULL || memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL)
        return end;
    return colon;
}

static int aq_hosts_word(struct aq_hosts *h, const char *word, size_t len, bool with_slots,
                         uint32_t slots)
{
    const char *end = word + len, *colon = with_slots ? aq_hosts_colon(word, end) : end;
    char *name;
    int rc;

    if (colon < end && !aq_hosts_number(colon + 1, end, &slots))
        return aq_hosts_wrong(h, "%s: '%.*s': after the colon stands how many ranks, as in %.*s:4",
                              h->from, (int)len, word, (int)(colon - word), word);
    name = strndup(word, (size_t)(colon - word));
    if (name == NULL)
        return aq_hosts_wrong(h, "%s: out of memory", h->from);
    rc = aq_hosts_expand(h, name, slots);
    free(name);
    return rc;
}

int aq_hosts_parse_list(struct aq_hosts *h, const char *text, const char *separators)
{
    bool with_slots = strchr(separators, ':') == NULL;
    int rc = 0;

    while (*text != '\0' && rc == 0) {
        int depth = 0;
        size_t len = 0;

        /* text in brackets is one unit: [fe80::1], node[1,3] */
        for (; text[len] != '\0'; len++) {
            depth += (text[len] == '[') - (text[len] == ']');
            if (depth <= 0
                && (isspace((unsigned char)text[len]) || strchr(separators, text[len]) != NULL))
                break;
        }
        if (len > 0)
            rc = aq_hosts_word(h, text, len, with_slots, 0);
        text += len + (text[len] != '\0');
    }
    return rc;
}

/* one line of a file of hosts */
static int aq_hosts_line(struct aq_hosts *h, char *line)
{
    char *save = NULL, *word, *name;
    uint32_t slots = 0;

    line[strcspn(line, "#\r\n")] = '\0';
    name = strtok_r(line, " \t\f\v", &save);
    if (name == NULL)
        return 0;
    while ((word = strtok_r(NULL, " \t\f\v", &save)) != NULL)
        if (strncmp(word, "slots=", 6) == 0
            && !aq_hosts_number(word + 6, word + strlen(word), &slots))
            return aq_hosts_wrong(h, "%s: '%s %s': write for instance slots=4", h->from, name,
                                  word);
    return aq_hosts_word(h, name, strlen(name), true, slots);
}

int aq_hosts_parse_file(struct aq_hosts *h, const char *path)
{
    FILE *f = fopen(path, "re");
    size_t space = 0, before = h->words;
    char *line = NULL;
    int rc = 0;

    if (f == NULL)
        return aq_hosts_wrong(h, "%s: cannot read %s: %s", h->from, path, strerror(errno));
    while (rc == 0 && getline(&line, &space, f) >= 0)
        rc = aq_hosts_line(h, line);
    if (rc == 0 && ferror(f))
        rc = aq_hosts_wrong(h, "%s: cannot read %s: %s", h->from, path, strerror(errno));
    else if (rc == 0 && h->words == before)
        rc = aq_hosts_wrong(h, "%s: %s names no host; write one a line", h->from, path);
    free(line);
    fclose(f);
    return rc;
}
