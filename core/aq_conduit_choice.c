/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_conduit_choice.c - chooses the job's conduit; see aq_conduit_choice.h.
 */
#include "core/aq_conduit_choice.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

static void aq_choice_names(char *out, size_t space)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; aq_conduits[i] != NULL && used < space; i++)
        used += (size_t)snprintf(out + used, space - used, " %s", aq_conduits[i]->info->name);
}

static void aq_choice_check(const struct aq_conduit_ops *conduit, const char *who)
{
    char why[256] = "";

    if (conduit->probe(why, sizeof(why)) != AQ_OK)
        aq_fatal("%s asks for the conduit '%s', which cannot be used here: %s", who,
                 conduit->info->name, why);
}

static const struct aq_conduit_ops *aq_choice_find(const char *name)
{
    for (size_t i = 0; aq_conduits[i] != NULL; i++)
        if (strcasecmp(aq_conduits[i]->info->name, name) == 0)
            return aq_conduits[i];
    return NULL;
}

/* The first conduit of the list that can be used. NULL: none, for the reason in why. */
static const struct aq_conduit_ops *aq_choice_first(char *why, size_t space)
{
    for (size_t i = 0; aq_conduits[i] != NULL; i++)
        if (aq_conduits[i]->probe(why, space) == AQ_OK)
            return aq_conduits[i];
    return NULL;
}

static bool aq_choice_compiled_for(const char *ident, char name_out[32])
{
    return sscanf(ident, "$GASNetConduitName: %31[^ ]", name_out) == 1;
}

static struct aq_conduit_choice aq_choice_named(const char *name, const char *who)
{
    struct aq_conduit_choice choice = { aq_choice_find(name), "", who };

    snprintf(choice.name, sizeof(choice.name), "%s", name);
    if (choice.conduit != NULL)
        snprintf(choice.name, sizeof(choice.name), "%s",
                 choice.conduit->info->name); /* in the spelling of the table */
    if (choice.conduit != NULL && choice.conduit->spawn != NULL)
        aq_choice_check(choice.conduit, who);
    return choice;
}

static _Noreturn void aq_choice_missing(const struct aq_conduit_choice *choice)
{
    char names[256];

    aq_choice_names(names, sizeof(names));
    aq_fatal("%s asks for the conduit '%s', which this program's library does not hold; it "
             "holds:%s. Ask for one of "
             "these, or link the program with gasnet-%s-* or the shared library",
             choice->who, choice->name, names, choice->name);
}

struct aq_conduit_choice aq_conduit_choose(const char *asked, const char *ident)
{
    const char *wanted = aq_env_str(AQ_ENV_CONDUIT);
    char why[256] = "this library holds none", compiled_for[32] = "";
    const struct aq_conduit_ops *first;

    if (asked != NULL)
        return aq_choice_named(asked, "aqueduct_job_start");
    if (wanted != NULL && *wanted != '\0')
        return aq_choice_named(wanted, "GASNET_CONDUIT");
    if (aq_choice_compiled_for(ident, compiled_for))
        return aq_choice_named(compiled_for, "the program");
    first = aq_choice_first(why, sizeof(why));
    if (first == NULL)
        aq_fatal("no conduit can be used here: %s", why);
    return aq_choice_named(first->info->name, NULL);
}

const char *aq_conduit_expect(const char *asked, const char *ident)
{
    const char *wanted = asked != NULL ? asked : aq_env_get_live("GASNET_CONDUIT");
    char why[256], compiled_for[32];
    const struct aq_conduit_ops *conduit;

    if (wanted != NULL && *wanted != '\0')
        conduit = aq_choice_find(wanted);
    else if (aq_choice_compiled_for(ident, compiled_for))
        conduit = aq_choice_find(compiled_for);
    else
        conduit = aq_choice_first(why, sizeof(why));
    return conduit != NULL ? conduit->info->name : NULL;
}

/* The networks that this rank can use: bit i for the i-th of the list. A conduit with its own spawn
 * provider is excluded, since the job has already been started. */
static uint32_t aq_choice_networks(void)
{
    uint32_t usable = 0;
    char why[256];

    for (size_t i = 0; aq_conduits[i] != NULL; i++)
        if ((aq_conduits[i]->caps & AQ_CAP_NETWORK) != 0 && aq_conduits[i]->spawn == NULL
            && aq_conduits[i]->probe(why, sizeof(why)) == AQ_OK)
            usable |= UINT32_C(1) << i;
    return usable;
}

static const struct aq_conduit_ops *aq_choice_across_hosts(const struct aq_spawn_info *spawn)
{
    const uint32_t own = aq_choice_networks();
    uint32_t usable = own, *all = calloc(spawn->size, sizeof(*all));
    char names[256];

    if (all == NULL)
        aq_fatal("no memory for the conduits of %u ranks", spawn->size);
    if (aq_spawn_allgather(&own, sizeof(own), all) != AQ_OK)
        aq_fatal("the ranks could not compare their conduits at start");
    for (uint32_t rank = 0; rank < spawn->size; rank++)
        usable &= all[rank];
    free(all);
    for (size_t i = 0; aq_conduits[i] != NULL; i++)
        if ((usable >> i & 1) != 0)
            return aq_conduits[i];
    aq_choice_names(names, sizeof(names));
    aq_fatal("the launcher put this job's %u ranks on %u hosts, and no conduit that all of them "
             "can use joins these; "
             "this program's library holds:%s",
             spawn->size, spawn->host_count, names);
}

const struct aq_conduit_ops *aq_conduit_settle(struct aq_conduit_choice choice,
                                               const struct aq_spawn_info *spawn)
{
    if (choice.conduit == NULL)
        aq_choice_missing(&choice);
    if (choice.who != NULL && choice.conduit->spawn == NULL)
        aq_choice_check(choice.conduit, choice.who);
    if ((choice.conduit->caps & AQ_CAP_NETWORK) != 0)
        return choice.conduit;
    if (choice.who == NULL && spawn->host_count > 1)
        return aq_choice_across_hosts(spawn);
    if (spawn->host_count > 1)
        aq_fatal("the %s conduit joins the ranks of one host, but the launcher put this job's %u "
                 "ranks on %u hosts; start it on one, or use another conduit",
                 choice.conduit->info->name, spawn->size, spawn->host_count);
    if (aq_env_int(AQ_ENV_SUPERNODE_MAXSIZE) != 0 && spawn->rank == 0)
        aq_warn("GASNET_SUPERNODE_MAXSIZE is ignored: with the %s conduit all ranks share memory",
                choice.conduit->info->name);
    return choice.conduit;
}
