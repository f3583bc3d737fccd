/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_custom_place.c - SPAWNFN=C: assigns ranks to workers, and groups workers that share an agent.
 * Threads   one
 * Ranks     by WORKER_RANK if the workers have one, else by address and port; workers of one
 *           machine with consecutive ranks share an agent
 */
#include "other/launcher/aq_launch_self.h"

#ifdef AQ_HAVE_SODIUM

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "other/launcher/aq_hostlist.h"
#include "other/launcher/aq_launch_custom.h"

static int aq_custom_compare(const void *a, const void *b)
{
    const struct aq_worker *x = a, *y = b;
    int order = memcmp(x->address, y->address, sizeof(x->address));

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (order == 0)
        order = strcmp(x->info.machine, y->info.machine);
    if (order == 0)
        order = strcmp(x->info.host, y->info.host);
    return order != 0 ? order : (int)x->port - (int)y->port;
}

void aq_custom_order(struct aq_custom *c)
{
    uint32_t numbered = 0;

    for (uint32_t i = 0; i < c->count; i++)
        numbered += c->worker[i].rank >= 0;
    if (numbered != 0 && numbered != c->count)
        aq_custom_give_up(
            "GASNET_WORKER_RANK is set for %u of %u workers; set it for all of them or for none",
            numbered, c->count);
    qsort(c->worker, c->count, sizeof(*c->worker), aq_custom_compare);
    for (uint32_t i = 0; numbered != 0 && i < c->count; i++)
        if (c->worker[i].rank != (int64_t)i)
            aq_custom_give_up(
                "GASNET_WORKER_RANK: %s rank %u; each rank of 0 to %u must be one worker's",
                i > 0 && c->worker[i].rank == c->worker[i - 1].rank
                    ? "two workers have the same number, none has"
                    : "no worker has",
                i, c->count - 1);
}

/* returns the first rank that no worker has, if the workers have ranks of their own; else -1 */
static int64_t aq_custom_first_missing(const struct aq_custom *c)
{
    for (int64_t rank = 0; rank < (int64_t)c->lo->ranks; rank++) {
        bool found = false;

        for (uint32_t i = 0; i < c->count && !found; i++) {
            if (c->worker[i].rank < 0)
                return -1;
            found = c->worker[i].rank == rank;
        }
        if (!found)
            return rank;
    }
    return -1;
}

void aq_custom_missing(const struct aq_custom *c, char *text_out, size_t size)
{
    int64_t rank = aq_custom_first_missing(c);
    size_t at =
        (size_t)snprintf(text_out, size, "%u of %u workers are here", c->count, c->lo->ranks);

    for (uint32_t i = 0; i < c->count && at < size; i++) {
        const char *host = c->worker[i].info.host;
        uint32_t same = 0, before = 0;

        for (uint32_t k = 0; k < c->count; k++) {
            bool equal = strcmp(c->worker[k].info.host, host) == 0;

            same += equal;
            before += equal && k < i;
        }
        if (before == 0)
            at += (size_t)snprintf(text_out + at, size - at, "%s%u on host %s",
                                   i == 0 ? " (" : ", ", same, host);
    }
    if (c->count > 0 && at < size)
        at += (size_t)snprintf(text_out + at, size - at, ")");
    if (c->count > 0 && rank >= 0 && at < size)
        snprintf(text_out + at, size - at, ", rank %lld is not", (long long)rank);
}

/* a name for the entry: the host's, and a number if the host has several */
static void aq_custom_name(const struct aq_custom_entry *entries, uint32_t count, const char *host,
                           char name_out[264])
{
    unsigned number = 1;

    snprintf(name_out, 264, "%s", host);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(entries[i].name, name_out) == 0) {
            snprintf(name_out, 264, "%.250s#%u", host, ++number);
            i = UINT32_MAX; /* start again from the first one */
        }
    }
}

void aq_custom_group(struct aq_custom *c, struct aq_hosts *hosts)
{
    struct aq_custom_entry *entries = calloc(c->count, sizeof(*entries));
    uint32_t count = 0;
    size_t bytes;
    int table;

    hosts->name = calloc(c->count, sizeof(*hosts->name));
    hosts->ranks = calloc(c->count, sizeof(*hosts->ranks));
    hosts->first = calloc(c->count, sizeof(*hosts->first));
    if (entries == NULL || hosts->name == NULL || hosts->ranks == NULL || hosts->first == NULL)
        aq_custom_give_up("out of memory");
    for (uint32_t i = 0; i < c->count; i++) {
        const struct aq_worker *w = &c->worker[i];

        if (i == 0 || strcmp(w->info.machine, w[-1].info.machine) != 0
            || strcmp(w->info.host, w[-1].info.host) != 0) {
            struct aq_custom_entry *e = &entries[count];

            aq_custom_name(entries, count, w->info.host, e->name);
            e->sock = w->fd;
            fcntl(w->fd, F_SETFD, 0); /* inherited by the process in ssh's place */
            memcpy(e->tx_key, w->tx_key, sizeof(e->tx_key));
            memcpy(e->rx_key, w->rx_key, sizeof(e->rx_key));
            hosts->name[count] = e->name;
            hosts->first[count++] = i;
        }
        hosts->ranks[count - 1]++;
        for (size_t b = 0; b < AQ_CUSTOM_CPUS; b++)
            entries[count - 1].cpus[b] |= w->info.cpus[b];
    }
    hosts->count = count;
    snprintf(hosts->from, sizeof(hosts->from), "GASNET_CSPAWN_CMD");
    bytes = count * sizeof(*entries);
    table = memfd_create("aq-workers", 0);
    if (table < 0 || write(table, entries, bytes) != (ssize_t)bytes
        || asprintf(&c->lo->tunnel, "'%s' %s %d", aq_custom_self(), AQ_TUNNEL_WORD, table) < 0)
        aq_custom_give_up("cannot keep a table of %u hosts: %s", count, strerror(errno));
}

#endif
