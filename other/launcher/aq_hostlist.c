/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_hostlist.c - see aq_hostlist.h: sources of the list, and blocks of ranks.
 * Threads   one
 */
#include "other/launcher/aq_hostlist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/aq_env_alias.h"
#include "other/launcher/aq_hostlist_internal.h"

#define AQ_HOSTS_SEPARATORS ",/;:" /* and blanks: separators of SSH_SERVERS */

enum aq_hosts_form {
    AQ_HOSTS_FILE,    /* names a file, a host a line */
    AQ_HOSTS_LIST,    /* names hosts */
    AQ_HOSTS_SERVERS, /* names hosts; SSH_SERVERS also by a conduit's aliases */
    AQ_HOSTS_PAIRS    /* host count host count */
};

static const struct aq_hosts_source {
    const char *name;
    enum aq_hosts_form form;
    bool user; /* set by the user, not by a batch system */
} aq_hosts_sources[] = {
    { "GASNET_SSH_NODEFILE", AQ_HOSTS_FILE, true },
    { "GASNET_SSH_SERVERS", AQ_HOSTS_SERVERS, true },
    { "GASNET_NODEFILE", AQ_HOSTS_FILE, true },
    { "PBS_NODEFILE", AQ_HOSTS_FILE, false },
    { "PE_HOSTFILE", AQ_HOSTS_FILE, false },
    { "SSS_HOSTLIST", AQ_HOSTS_LIST, false },
    { "LSB_HOSTS", AQ_HOSTS_LIST, false },
    { "LSB_MCPU_HOSTS", AQ_HOSTS_PAIRS, false },
    { "OAR_NODEFILE", AQ_HOSTS_FILE, false },
    { "SLURM_JOB_NODELIST", AQ_HOSTS_LIST, false },
    { "SLURM_NODELIST", AQ_HOSTS_LIST, false },
};

static const char *aq_hosts_getenv(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && text[strspn(text, " \t")] != '\0' ? text : NULL;
}

/* the value of a source; its spelling in name */
static const char *aq_hosts_value(const struct aq_hosts_source *source,
                                  const struct aq_env_aliases *aliases, bool warns,
                                  char name[AQ_ENV_ALIAS_NAME])
{
    struct aq_env_alias alias;

    snprintf(name, AQ_ENV_ALIAS_NAME, "%s", source->name);
    if (aliases == NULL || source->form != AQ_HOSTS_SERVERS)
        return aq_hosts_getenv(source->name);
    if (aq_env_alias_find(aliases, "SSH_SERVERS", aq_hosts_getenv, &alias) == NULL)
        return NULL;
    strcpy(name, alias.name);
    if (warns && alias.other[0] != '\0')
        fprintf(stderr, "*** WARNING: %s='%s' is used; %s='%s' contradicts it\n", alias.name,
                alias.value, alias.other, alias.other_value);
    return alias.value;
}

static int aq_hosts_parse_pairs(struct aq_hosts *h, const char *text)
{
    char *copy = strdup(text), *save = NULL, *word;
    int rc = 0, at = 0;

    if (copy == NULL)
        return aq_hosts_wrong(h, "%s: out of memory", h->from);
    for (word = strtok_r(copy, " \t\n", &save); word != NULL && rc == 0;
         word = strtok_r(NULL, " \t\n", &save), at++)
        if (at % 2 == 0)
            rc = aq_hosts_parse_list(h, word, AQ_HOSTS_SEPARATORS);
    free(copy);
    return rc;
}

/* a node list that this parser does not understand: asks Slurm's own tool */
static int aq_hosts_ask_scontrol(struct aq_hosts *h, const char *expression)
{
    char why[sizeof(h->why)], *line = NULL;
    size_t space = 0;
    FILE *f;
    int rc = 0;

    memcpy(why, h->why, sizeof(why));
    if (expression != getenv("SLURM_JOB_NODELIST"))
        return -1;
    aq_hosts_free(h);
    f = popen("scontrol show hostnames 2>/dev/null", "r");
    while (f != NULL && rc == 0 && getline(&line, &space, f) >= 0)
        rc = aq_hosts_parse_list(h, line, " ");
    free(line);
    if (f != NULL && (pclose(f) != 0 || h->count == 0))
        rc = -1;
    if (rc != 0)
        memcpy(h->why, why, sizeof(why));
    return rc;
}

static int aq_hosts_take(struct aq_hosts *h, const struct aq_hosts_source *source,
                         const char *value)
{
    int rc;

    switch (source->form) {
    case AQ_HOSTS_FILE:
        return aq_hosts_parse_file(h, value);
    case AQ_HOSTS_PAIRS:
        return aq_hosts_parse_pairs(h, value);
    case AQ_HOSTS_SERVERS:
        h->each = h->aliases != NULL;
        break;
    case AQ_HOSTS_LIST:
        break;
    }
    rc = aq_hosts_parse_list(h, value, AQ_HOSTS_SEPARATORS);
    if (rc != 0 && strncmp(source->name, "SLURM_", 6) == 0)
        rc = aq_hosts_ask_scontrol(h, value);
    return rc;
}

static int aq_hosts_variables(struct aq_hosts *h)
{
    char name[AQ_ENV_ALIAS_NAME];

    for (size_t i = 0; i < sizeof(aq_hosts_sources) / sizeof(aq_hosts_sources[0]); i++) {
        const struct aq_hosts_source *source = &aq_hosts_sources[i];
        const char *value = aq_hosts_value(source, h->aliases, true, name);

        if (value == NULL)
            continue;
        snprintf(h->from, sizeof(h->from), "%s", name);
        return aq_hosts_take(h, source, value);
    }
    return 1;
}

int aq_hosts_find(struct aq_hosts *out, const char *option_H, const char *option_hostfile,
                  char *from, size_t from_size)
{
    int rc;

    if (option_H != NULL) {
        snprintf(out->from, sizeof(out->from), "-H");
        rc = aq_hosts_parse_list(out, option_H, ",");
    } else if (option_hostfile != NULL) {
        snprintf(out->from, sizeof(out->from), "--hostfile");
        rc = aq_hosts_parse_file(out, option_hostfile);
    } else {
        rc = aq_hosts_variables(out);
    }
    if (rc == 0 && out->count == 0)
        rc = aq_hosts_wrong(out, "%s names no host; write for instance %s", out->from,
                            option_H != NULL ? "-H node1,node2"
                                             : "GASNET_SSH_SERVERS='node1 node2'");
    if (from != NULL && from_size > 0)
        snprintf(from, from_size, "%s", out->from);
    return rc;
}

bool aq_hosts_explicit(const struct aq_env_aliases *aliases, const char *option_H,
                       const char *option_hostfile)
{
    char name[AQ_ENV_ALIAS_NAME];

    if (option_H != NULL || option_hostfile != NULL)
        return true;
    for (size_t i = 0; i < sizeof(aq_hosts_sources) / sizeof(aq_hosts_sources[0]); i++)
        if (aq_hosts_sources[i].user
            && aq_hosts_value(&aq_hosts_sources[i], aliases, false, name) != NULL)
            return true;
    return false;
}

/* keeps the first `count` hosts */
static void aq_hosts_cut(struct aq_hosts *h, size_t count)
{
    while (h->count > count)
        free(h->name[--h->count]);
}

static void aq_hosts_drop_empty(struct aq_hosts *h)
{
    size_t to = 0;

    for (size_t i = 0; i < h->count; i++) {
        if (h->ranks[i] == 0) {
            free(h->name[i]);
            continue;
        }
        h->name[to] = h->name[i];
        h->slots[to] = h->slots[i];
        h->ranks[to++] = h->ranks[i];
    }
    h->count = to;
}

/* assigns ranks round robin to the hosts that still have slots */
static uint32_t aq_hosts_deal(struct aq_hosts *h, uint32_t left, bool unlimited_only)
{
    bool any = true;

    while (left > 0 && any) {
        any = false;
        for (size_t i = 0; i < h->count && left > 0; i++) {
            bool space = h->slots[i] == 0 || (!unlimited_only && h->ranks[i] < h->slots[i]);

            if (!space)
                continue;
            h->ranks[i]++;
            left--;
            any = true;
        }
    }
    return left;
}

/* hosts with slots are filled in order; hosts without share the remaining ranks */
static uint32_t aq_hosts_fill(struct aq_hosts *h, uint32_t left)
{
    for (size_t i = 0; i < h->count; i++) {
        h->ranks[i] = h->slots[i] < left ? h->slots[i] : left;
        left -= h->ranks[i];
    }
    return aq_hosts_deal(h, left, true);
}

static uint32_t aq_hosts_distribute(struct aq_hosts *h, uint32_t ranks, uint32_t hosts)
{
    bool slots = false;

    if (h->each && hosts == 0 && h->words >= ranks) {
        for (uint32_t r = 0; r < ranks; r++)
            h->ranks[h->order[r]]++;
        return 0;
    }
    for (size_t i = 0; i < h->count; i++)
        slots = slots || h->slots[i] != 0;
    return slots && hosts == 0 ? aq_hosts_fill(h, ranks) : aq_hosts_deal(h, ranks, false);
}

int aq_hosts_place(struct aq_hosts *h, uint32_t ranks, uint32_t hosts)
{
    uint32_t left, next = 0;

    if (hosts > h->count)
        return aq_hosts_wrong(h, "%s names %zu host%s, -N asks for %u", h->from, h->count,
                              h->count == 1 ? "" : "s", hosts);
    if (hosts > 0)
        aq_hosts_cut(h, hosts);
    free(h->ranks);
    free(h->first);
    h->ranks = calloc(h->count + 1, sizeof(*h->ranks));
    h->first = calloc(h->count + 1, sizeof(*h->first));
    if (h->ranks == NULL || h->first == NULL)
        return aq_hosts_wrong(h, "%s: out of memory for %zu hosts", h->from, h->count);
    left = aq_hosts_distribute(h, ranks, hosts);
    if (left > 0)
        return aq_hosts_wrong(h, "%s has slots for %u rank%s on %zu host%s, -n asks for %u",
                              h->from, ranks - left, ranks - left == 1 ? "" : "s", h->count,
                              h->count == 1 ? "" : "s", ranks);
    aq_hosts_drop_empty(h);
    for (size_t i = 0; i < h->count; i++) {
        h->first[i] = next;
        next += h->ranks[i];
    }
    return 0;
}

void aq_hosts_free(struct aq_hosts *h)
{
    aq_hosts_cut(h, 0);
    free(h->name);
    free(h->slots);
    free(h->before);
    free(h->order);
    free(h->first);
    free(h->ranks);
    h->name = NULL;
    h->slots = h->before = h->order = h->first = h->ranks = NULL;
    h->words = 0;
    memset(h->chain, 0, sizeof(h->chain));
}
