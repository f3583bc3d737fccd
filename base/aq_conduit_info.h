/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_conduit_info.h - what the library, gasnetrun and aq-info need to know about a conduit.
 *
 * Each conduit defines one struct aq_conduit_info, aq_NAME_info in conduits/NAME/aq_NAME_info.c:
 * constant data that depends on this header only, so that programs without a job have it too. Code
 * outside a conduit's folder never compares its name: it tests the field that says what matters.
 */
#ifndef AQ_CONDUIT_INFO_H
#define AQ_CONDUIT_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct aq_env_aliases; /* base/aq_env_alias.h */

/* Ways in which gasnetrun starts the ranks of a job: -spawner=. */
enum aq_spawner {
    AQ_SPAWNER_UNSET,
    AQ_SPAWNER_FORK,
    AQ_SPAWNER_SSH,
    AQ_SPAWNER_MPI,   /* by the command MPIRUN_CMD */
    AQ_SPAWNER_PMI,   /* by the command PMIRUN_CMD */
    AQ_SPAWNER_CUSTOM /* by the command GASNET_CSPAWN_CMD */
};

struct aq_conduit_info {
    const char *name;  /* one word in lower case, as in GASNET_CONDUIT: "udp" */
    const char *about; /* one line for aq-info */
    bool one_host;     /* reaches ranks on the same host only */

    /* "./prog N arguments" starts a job by GASNET_SPAWNFN. command is then the launcher with a
     * command line of its own. */
    bool starts_itself;
    const char *command;

    /* Settings that go by further names; NULL: by GASNET_X only. */
    const struct aq_env_aliases *aliases;

    /* The spawner that gasnetrun takes if the user names none. UNSET: ssh if the user names hosts,
     * else fork. */
    enum aq_spawner spawner;
    /* NULL if every spawner can start this conduit's ranks. Else only MPI and PMI can, and this
     * text completes "spawner ssh cannot start the NAME conduit, ". */
    const char *why_not_spawned;
    bool names_spawners; /* programs carry the names of the spawners that they were built with */
    /* values of variables are encoded for a launcher that gasnetrun does not know */
    bool encodes_env;
    bool names_mpirun; /* the conduit's module contains the command that starts its programs */
};

/* The conduits of conduits/list.m4, in this order, ended by NULL: in a library those that it
 * contains, in gasnetrun all. */
extern const struct aq_conduit_info *const aq_conduit_infos[];

/** aq_conduit_info_find - returns the conduit of that name, or NULL. */
const struct aq_conduit_info *aq_conduit_info_find(const char *name);

#endif
