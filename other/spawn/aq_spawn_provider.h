/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn_provider.h - the interface of spawn providers, and the state that they share.
 * Owns      struct aq_spawn_state, one in each process
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
    /* true if the environment says that this provider's launcher started the process */
    bool (*offered)(void);
    /* fills in info and the job area; AQ_OK or negative, logged */
    int (*join)(struct aq_spawn_state *st);
    int (*allgather)(struct aq_spawn_state *st, const void *own_data, size_t len, void *all);
    /* for several hosts; NULL if one host only */
    int (*bcast)(struct aq_spawn_state *st, void *buf, size_t len, uint32_t root); /* the same */
    int (*fence)(struct aq_spawn_state *st); /* the same; NULL: an allgather serves instead */
    /* publish and lookup, NULL both: a file of the host holds the addresses of all ranks, filled by
     * allgather */
    int (*publish)(struct aq_spawn_state *st, const void *address, size_t len);
    int (*lookup)(struct aq_spawn_state *st, uint32_t rank, void *addr_out, size_t len);
    void (*notify)(struct aq_spawn_state *st); /* async-signal-safe */
    int (*finish)(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);
    /* The job ends and its processes go on, in three steps: a collective, during which a rank may
     * still be lost; this rank no longer watches the others, and may end; what join has made is
     * freed, except what st owns. The collective is two barriers with aq_link_disconnect() in
     * between: after the second no rank takes another host's silence for a loss.
     * All NULL: a job of this provider ends only with its processes. */
    int (*gather)(struct aq_spawn_state *st);
    void (*disconnect)(struct aq_spawn_state *st);
    void (*fini)(struct aq_spawn_state *st);
};

struct aq_spawn_state {
    const struct aq_spawn_provider *provider;
    struct aq_spawn_info info;
    struct aq_jobarea *jobarea;
    uint32_t *host_ranks; /* owned; info.host_ranks points here */
    uint32_t *host_of;    /* owned; info.host_of points here */
    uint8_t job_key[32];  /* see aq_spawn_key() */
    char *addrs;          /* the host's file of addresses, if they are there */
    size_t addr_len;
    int host_fd[AQ_JOBAREA_HOST_FDS]; /* inherited memfds, -1 if none */
    uint32_t parity;                  /* of the next round of exchanges */
    bool spin;                        /* there is a core for every rank of the host */
    bool supervised;
    bool console; /* ./prog N: see aq_supervise_end_console() */
};

extern const struct aq_spawn_provider aq_spawn_fork_provider;
extern const struct aq_spawn_provider aq_spawn_agent_provider; /* replaces fork on several hosts */
extern const struct aq_spawn_provider aq_spawn_pmix_provider;
extern const struct aq_spawn_provider aq_spawn_pmi_provider;
extern const struct aq_spawn_provider aq_spawn_single_provider;
extern const struct aq_spawn_provider aq_spawn_group_provider; /* see aq_spawn_group.h */

/** aq_spawn_claim - takes slot info.host_rank of the job area: AQ_OK, or negative if it is
 * taken. */
int aq_spawn_claim(struct aq_spawn_state *st);

/** aq_spawn_fill_one_host - fills in the host part of info for size ranks on one host. AQ_OK or
 * negative. */
int aq_spawn_fill_one_host(struct aq_spawn_state *st, uint32_t rank, uint32_t size);

/** aq_spawn_agent_fill - the job area was made by an agent: fills in info for slot, and the
 * provider. AQ_OK or negative. */
int aq_spawn_agent_fill(struct aq_spawn_state *st, uint32_t slot);

/* of the fork provider, for agents' ranks too */
void aq_spawn_fork_notify(struct aq_spawn_state *st);
int aq_spawn_fork_shutdown(struct aq_spawn_state *st, int code, enum aq_shutdown_mode how);

/**
 * aq_spawn_fork_self - GASNET_PSHM_NODES: forks `size` ranks and becomes their supervisor.
 * Returns in the ranks only, which have joined; AQ_OK or negative.
 */
int aq_spawn_fork_self(struct aq_spawn_state *st, uint32_t size);

/* set by gasnetrun for a rank: AQ_SPAWN_FORK="rank jobarea-fd fd0 fd1 key", key as 16 hex digits */
#define AQ_SPAWN_FORK_ENV "AQ_SPAWN_FORK"

#endif
