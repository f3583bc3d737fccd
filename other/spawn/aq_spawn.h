/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn.h - start-up and shutdown of a job, independent of the launcher.
 * Owns      rank and size, the list of ranks on this host, the job area, the start-up exchange
 * Threads   one thread, during gex_Client_Init(); aq_spawn_info() and aq_spawn_jobarea() afterwards
 *           from any
 * Uses      aq_jobarea.h, base/aq_log.h; optional libraries (PMIx) by dlopen
 * See       aq_spawn_provider.h for what a provider implements
 */
#ifndef AQ_SPAWN_H
#define AQ_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/aq_conduit_info.h"
#include "other/spawn/aq_jobarea.h"

struct aq_spawn_provider;

struct aq_spawn_info {
    const char *provider; /* "fork", "agent", "pmix", "pmi", "single", or a conduit's own */
    uint32_t rank, size;  /* in the job */
    /* index of this rank among the ranks of this host, which is its slot in the job area */
    uint32_t host_rank;
    uint32_t host_size;
    uint32_t host_index; /* index of this host, 0 <= host_index < host_count */
    uint32_t host_count;
    const uint32_t *host_ranks; /* [host_size]: jobranks of this host, ascending */
    /* [size]: host of each rank; hosts are numbered by first appearance */
    const uint32_t *host_of;
};

/**
 * aq_spawn_init - join the job. Tries the environment of gasnetrun, PMIx, PMI, GASNET_PSHM_NODES
 * (forks; the calling process becomes the supervisor and never returns), then a single process.
 * argc, argv  of the client, may be NULL; a program that starts itself removes the number of ranks
 * conduit     its name selects GASNET_<CONDUIT>_SPAWNER; also says whether its programs start
 *             themselves
 * own         the conduit's own provider, which is then the only one; or NULL
 * Returns AQ_OK or a negative AQ_ERR_*, logged.
 */
int aq_spawn_init(int *argc, char ***argv, const struct aq_conduit_info *conduit,
                  const struct aq_spawn_provider *own);

/** aq_spawn_info - returns facts about the job; NULL before aq_spawn_init(). */
const struct aq_spawn_info *aq_spawn_info(void);

/* Resources of a host. */
struct aq_host_facts {
    uint64_t memory;       /* bytes */
    const char *memory_is; /* "physical memory" or "the cgroup's memory limit" */
    unsigned cores_quota;  /* limit by the cgroup; large if there is none */
};

/** aq_spawn_host_facts - determined by the first rank of a host that asks; after
 * aq_spawn_init(). */
struct aq_host_facts aq_spawn_host_facts(void);

/** aq_spawn_jobarea - returns the job area of this host; NULL before aq_spawn_init(). */
struct aq_jobarea *aq_spawn_jobarea(void);

/** aq_spawn_allgather - collective over the job: all[i * len ..] receives rank i's own_data[0 ..
 * len). */
int aq_spawn_allgather(const void *own_data, size_t len, void *all);

/** aq_spawn_bcast - collective over the job: every rank's buf receives that of root. */
int aq_spawn_bcast(void *buf, size_t len, uint32_t root);

/** aq_spawn_fence - collective over the job: no rank returns before all have called it. */
int aq_spawn_fence(void);

/** aq_spawn_key - returns 32 random bytes that only the job's ranks know, on all hosts. */
const uint8_t *aq_spawn_key(void);

#define AQ_SPAWN_ADDR_MAX 64 /* bytes: the longest address */

/**
 * aq_spawn_publish - publish this rank's address in the modex. Collective over the job, once.
 * address, len  len <= AQ_SPAWN_ADDR_MAX, the same on every rank
 * On return the addresses of all ranks can be looked up. Returns AQ_OK or negative, logged.
 */
int aq_spawn_publish(const void *address, size_t len);

/**
 * aq_spawn_lookup - the published address of a rank, which may have to be fetched from its host.
 * Any thread, also in a handler. Returns AQ_OK or negative, logged.
 */
int aq_spawn_lookup(uint32_t rank, void *addr_out, size_t len);

/** aq_spawn_host_allgather - as aq_spawn_allgather(), over the ranks of this host, by host_rank. */
int aq_spawn_host_allgather(const void *own_data, size_t len, void *all);

/** aq_spawn_host_bcast - as aq_spawn_bcast(), over the ranks of this host; host_root is a
 * host_rank. */
int aq_spawn_host_bcast(void *buf, size_t len, uint32_t host_root);

/** aq_spawn_host_fence - as aq_spawn_fence(), over the ranks of this host. */
int aq_spawn_host_fence(void);

/**
 * aq_spawn_host_fd - the same new memfd on every rank of this host, close-on-exec.
 * slot         0..7, each used once
 * memfd_flags  as for memfd_create(2), e.g. MFD_HUGETLB; with 0 in slots 0 and 1 no message is
 *              needed
 * The file is empty: its users agree on who calls ftruncate(). Collective over the ranks of this
 * host. Returns the descriptor, which the caller owns; -errno on failure (on every rank).
 */
int aq_spawn_host_fd(int slot, unsigned memfd_flags);

/**
 * aq_spawn_notify - the job area has changed: wakes the process that watches the job to read it.
 * Async-signal-safe.
 */
void aq_spawn_notify(void);

/* How a process ends. */
enum aq_shutdown_mode {
    AQ_SHUTDOWN_ABORT, /* the launcher ends the whole job */
    AQ_SHUTDOWN_END,   /* in order; the process ends at once */
    /* in order; exit() goes on, and runs the functions that the program has registered by
     * atexit() */
    AQ_SHUTDOWN_RETURN
};

/**
 * aq_spawn_shutdown - the last call before the process ends: tells the launcher.
 * code     exit code of this process
 * Safe in signal handlers and at most once in a process; bounded by GASNET_EXITTIMEOUT.
 * Returns the code to exit with.
 */
int aq_spawn_shutdown(int code, enum aq_shutdown_mode how);

/** aq_spawn_can_end - returns true if the job may end while its processes go on: only a job over a
 * group may. */
bool aq_spawn_can_end(void);

/**
 * aq_spawn_disconnect - the job ends. Collective; returns when all ranks have called it, and this
 * rank no longer watches the others. A rank that is lost before that ends the job. Returns AQ_OK or
 * negative, logged.
 */
int aq_spawn_disconnect(void);

/** aq_spawn_fini - frees everything that aq_spawn_init() and later calls have made. */
void aq_spawn_fini(void);

/** aq_spawn_is_supervised - returns true if a process of this library watches the ranks and
 * reports how they end. */
bool aq_spawn_is_supervised(void);

#endif
