/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_hostlist.h - the hosts of a job, and the ranks on each of them.
 * Owns      struct aq_hosts and everything in it
 * Threads   one
 * Promise   every error is described in struct aq_hosts.why, with the option, variable or file that
 *           it comes from. The only output is a warning about variables that contradict each other
 * Uses      base/aq_env.h (parsers), base/aq_env_alias.h
 * See       docs/launching.md, "Several hosts"
 */
#ifndef AQ_HOSTLIST_H
#define AQ_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AQ_HOSTS_MAX    65536     /* in one list */
#define AQ_HOSTS_CHAINS 1024      /* long lists are looked through for each word */
#define AQ_HOSTS_WORDS  (1 << 22) /* in one list: batch systems list a host once for each core */

struct aq_env_aliases;

struct aq_hosts {
    const struct aq_env_aliases *aliases; /* set by the caller: of the job's conduit, or NULL */
    char **name;                          /* as ssh takes them: an IPv6 address without brackets */
    uint32_t *slots;                      /* the most ranks that may run there; 0: not said */
    uint32_t chain[AQ_HOSTS_CHAINS]; /* of a hash table of names: its last host plus 1; 0: none */
    uint32_t *before;                /* the host before each one in its chain, likewise */
    size_t count;
    uint32_t
        *first; /* set by aq_hosts_place(): host h has ranks first[h] .. first[h] + ranks[h] - 1 */
    uint32_t *ranks;
    uint32_t *order; /* host of each word of the list in its order, repetitions included */
    size_t words;
    bool each;      /* every word stands for one rank: SSH_SERVERS of a conduit with aliases */
    char why[512];  /* what is wrong, after a failure */
    char from[128]; /* who named the hosts */
};

/**
 * aq_hosts_find - the first list of hosts that is there.
 * out               zeroed except for aliases; aq_hosts_free() it also after a failure
 * option_H          value of -H, or NULL
 * option_hostfile   value of --hostfile, or NULL
 * from, from_size   source of the names, as text for messages; from may be NULL
 * Returns 0; 1 if there is no list; negative on a list that cannot be used, with out->why
 *
 * In this order: -H, --hostfile, GASNET_SSH_NODEFILE, GASNET_SSH_SERVERS, GASNET_NODEFILE,
 * PBS_NODEFILE, PE_HOSTFILE, SSS_HOSTLIST, LSB_HOSTS, LSB_MCPU_HOSTS, OAR_NODEFILE, a Slurm job.
 * A host that is named twice counts once unless GASNET_SSH_KEEPDUP=1.
 */
int aq_hosts_find(struct aq_hosts *out, const char *option_H, const char *option_hostfile,
                  char *from, size_t from_size);

/**
 * aq_hosts_explicit - true if the user, not a batch system, names hosts by an option or variable.
 * Ranks are then started on them even if no spawner is named.
 */
bool aq_hosts_explicit(const struct aq_env_aliases *aliases, const char *option_H,
                       const char *option_hostfile);

/**
 * aq_hosts_place - give the hosts blocks of ranks, of equal size as far as their slots allow;
 * earlier hosts get one rank more if need be.
 * ranks    number of ranks of the job
 * hosts    number of hosts to use, from the first on; 0: as many as are needed, or all if none has
 *          slots
 * Hosts without a rank are removed from the list. Returns 0, or negative with h->why.
 */
int aq_hosts_place(struct aq_hosts *h, uint32_t ranks, uint32_t hosts);

void aq_hosts_free(struct aq_hosts *h);

/* Parsers, visible for tests. They add to h; negative with h->why on text that cannot be used. */

/** aq_hosts_parse_list - names separated by blanks or by one of the separators; node[1-3,7]
 * expands to four names. */
int aq_hosts_parse_list(struct aq_hosts *h, const char *text, const char *separators);

/** aq_hosts_parse_file - one host on each line, # begins a comment; :k or slots=k may follow,
 * other words are ignored. */
int aq_hosts_parse_file(struct aq_hosts *h, const char *path);

#endif
