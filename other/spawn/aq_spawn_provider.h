/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_provider.h - what a way of starting jobs implements, and what they share.
 * Owns      struct aq_spawn_state, the process's one record of its job
 * Threads   written during aq_spawn_init() only
 * See       aq_spawn.h for what the rest of the library sees
 */
#ifndef AQ_SPAWN_PROVIDER_H
#define AQ_SPAWN_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "other/spawn/aq_spawn.h"

struct aq_spawn_state;

struct aq_spawn_provider {
    const char *name;
    bool (*offered)(void);                  /* does the environment promise it? */
    int (*join)(struct aq_spawn_state *st); /* fills info, board; AQ_OK or negative, logged */
    int (*allgather)(struct aq_spawn_state *st, const void *own_data, size_t len, void *all);
    /* over several hosts; NULL if one host only */
    int (*bcast)(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root); /* the same */
    int (*fence)(struct aq_spawn_state *st); /* the same; NULL: an allgather does */
    int (*publish)(struct aq_spawn_state *st, const void *address, size_t len);
    int (*lookup)(struct aq_spawn_state *st, uint32_t rank, void *addr_out, size_t len);
    /* NULL, both: the addresses of all ranks lie in a file of
                                                     * the host, filled by allgather */
    void (*notify)(struct aq_spawn_state *st); /* async-signal-safe */
    int (*finish)(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);
    /* The job ends and its processes go on, in three steps. Nobody watches the others any more;
     * collective: all have come here; what join has made is given back, but for what st owns. NULL,
     * all: a job of this provider ends with its processes only. */
    void (*part)(struct aq_spawn_state *st);
    int (*gather)(struct aq_spawn_state *st);
    void (*fini)(struct aq_spawn_state *st);
};

struct aq_spawn_state {
    const struct aq_spawn_provider *provider;
    struct aq_spawn_info info;
    struct aq_jobarea *jobarea;
    uint32_t *host_ranks; /* owned; info.host_ranks points here */
    uint32_t *host_of;    /* owned; info.host_of points here */
    uint8_t job_key[32];  /* see aq_spawn_key() */
    char *addrs;          /* the host's file of addresses, if that is where they are */
    size_t addr_len;
    int host_fd[AQ_JOBAREA_HOST_FDS]; /* inherited memfds, -1 if none */
    uint32_t parity;                  /* of the blackboard's next round */
    bool spin;                        /* cores suffice for every rank of the host */
    bool supervised;
    bool console; /* ./prog N: see aq_supervise_end_console() */
};

extern const struct aq_spawn_provider aq_spawn_fork_provider;
extern const struct aq_spawn_provider
    aq_spawn_agent_provider; /* what fork becomes on several hosts */
extern const struct aq_spawn_provider aq_spawn_pmix_provider;
extern const struct aq_spawn_provider aq_spawn_pmi_provider;
extern const struct aq_spawn_provider aq_spawn_single_provider;
extern const struct aq_spawn_provider aq_spawn_group_provider; /* see aq_spawn_group.h */

/** aq_spawn_claim - take slot info.host_rank on the job area: AQ_OK, or negative if it is taken. */
int aq_spawn_claim(struct aq_spawn_state *st);

/** aq_spawn_fill_one_host - size ranks, all here: fills the host part of info. AQ_OK or negative.
 * */
int aq_spawn_fill_one_host(struct aq_spawn_state *st, uint32_t rank, uint32_t size);

/** aq_spawn_agent_fill - the job area is an agent's: fills in info for slot, and the provider.
 * AQ_OK or negative. */
int aq_spawn_agent_fill(struct aq_spawn_state *st, uint32_t slot);

/* the fork provider's, for agents' ranks too */
void aq_spawn_fork_notify(struct aq_spawn_state *st);
int aq_spawn_fork_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);

/**
 * aq_spawn_fork_self - GASNET_PSHM_NODES: become the supervisor of size copies of this process.
 * Returns only in the copies, which have joined; AQ_OK or negative.
 */
int aq_spawn_fork_self(struct aq_spawn_state *st, uint32_t size);

/* what gasnetrun tells a rank: AQ_SPAWN_FORK="rank board-fd fd0 fd1 key", key as 16 hex digits */
#define AQ_SPAWN_FORK_ENV "AQ_SPAWN_FORK"

#endif
