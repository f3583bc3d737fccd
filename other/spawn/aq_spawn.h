/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_spawn.h - how the ranks of a job find each other, whoever started them.
 * Owns      rank and size, the list of ranks on this host, the job board, start-up exchange
 * Threads   one thread, during gex_Client_Init(); aq_spawn_info() and _board() afterwards from any
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
    uint32_t host_rank;   /* my index among the ranks of this host = my slot on the job area */
    uint32_t host_size;
    uint32_t host_index; /* index of this host, 0 <= host_index < host_count */
    uint32_t host_count;
    const uint32_t *host_ranks; /* [host_size] jobranks on my host, ascending */
    const uint32_t *host_of;    /* [size] number of each rank's host, by first appearance */
};

/**
 * aq_spawn_init - join the job. Tries the environment of gasnetrun, PMIx, PMI, GASNET_PSHM_NODES
 * (forks here; the calling process becomes the supervisor and never returns), then a single
 * process.
 * argc, argv  the client's, may be NULL; a program that starts itself takes the number of ranks out
 * conduit     its name, to read GASNET_<CONDUIT>_SPAWNER, and whether its programs start themselves
 * own         the conduit's own way of starting, which is then the only one; or NULL
 * Returns AQ_OK or a negative AQ_ERR_*, logged.
 */
int aq_spawn_init(int *argc, char ***argv, const struct aq_conduit_info *conduit,
                  const struct aq_spawn_provider *own);

/** aq_spawn_info - NULL before aq_spawn_init(). */
const struct aq_spawn_info *aq_spawn_info(void);

/* What a host has for its ranks. */
struct aq_host_facts {
    uint64_t memory;       /* bytes */
    const char *memory_is; /* "physical memory" or "the cgroup's memory limit" */
    unsigned cores_quota;  /* by the cgroup; large if there is none */
};

/** aq_spawn_host_facts - looked up by the first rank of a host that asks; after aq_spawn_init(). */
struct aq_host_facts aq_spawn_host_facts(void);

/** aq_spawn_jobarea - the shared page area of this host's ranks; NULL before aq_spawn_init(). */
struct aq_jobarea *aq_spawn_jobarea(void);

/** aq_spawn_allgather - collective over the job: all[i * len ..] becomes rank i's mine[0 .. len).
 * */
int aq_spawn_allgather(const void *own_data, size_t len, void *all);

/** aq_spawn_bcast - collective over the job: buf of root goes to buf of everyone. */
int aq_spawn_bcast(void *buf, size_t len, uint32_t root);

/** aq_spawn_fence - collective over the job: nobody leaves before all came. */
int aq_spawn_fence(void);

/** aq_spawn_key - the job's 32 random bytes, known to its ranks on all hosts and to nobody else. */
const uint8_t *aq_spawn_key(void);

#define AQ_SPAWN_ADDR_MAX 64 /* bytes: the longest address */

/**
 * aq_spawn_publish - publish an address, by which the other ranks can find us. Collective over the
 * job, once. address, len  len <= AQ_SPAWN_ADDR_MAX, the same on every rank
 * On return everybody's address can be looked up. Returns AQ_OK or negative, logged.
 */
int aq_spawn_publish(const void *address, size_t len);

/**
 * aq_spawn_lookup - the address of a rank, which may have to be fetched from where it is.
 * Any thread, also in a handler. Returns AQ_OK or negative, logged.
 */
int aq_spawn_lookup(uint32_t rank, void *addr_out, size_t len);

/** aq_spawn_host_allgather - as aq_spawn_allgather(), over the ranks of this host, by host_rank. */
int aq_spawn_host_allgather(const void *own_data, size_t len, void *all);

/** aq_spawn_host_bcast - as aq_spawn_bcast(), over the ranks of this host; host_root is a
 * host_rank. */
int aq_spawn_host_bcast(void *buf, size_t len, uint32_t host_root);

/** aq_spawn_host_fence - the same over the ranks of this host. */
int aq_spawn_host_fence(void);

/**
 * aq_spawn_host_fd - the same new memfd on every rank of this host, close-on-exec.
 * slot         0..7, each used once
 * memfd_flags  as for memfd_create(2), e.g. MFD_HUGETLB; with 0 in slots 0 and 1 no message is
 *              needed
 * The file is empty: its users agree who calls ftruncate(). Collective over the ranks of this host.
 * Returns the descriptor, the caller's; -errno on failure (on every rank).
 */
int aq_spawn_host_fd(int slot, unsigned memfd_flags);

/**
 * aq_spawn_notify - poke whoever looks after the job to read the job area now. Async-signal-safe.
 */
void aq_spawn_notify(void);

/* How a process leaves. */
enum aq_shutdown_mode {
    AQ_SHUTDOWN_ABORT, /* have the launcher end the whole job */
    AQ_SHUTDOWN_END,   /* in order; the process ends at once */
    /* the same, but exit() goes on, and runs what the program has left to atexit() */
    AQ_SHUTDOWN_RETURN
};

/**
 * aq_spawn_shutdown - last call before the process ends: tell the launcher that started us.
 * code     exit code of this process
 * Safe in signal handlers and at most once a process; bounded by GASNET_EXITTIMEOUT.
 * Returns the code to exit with.
 */
int aq_spawn_shutdown(int code, enum aq_shutdown_mode how);

/** aq_spawn_can_end - may the job end and its processes go on? Only one over a group may. */
bool aq_spawn_can_end(void);

/**
 * aq_spawn_disconnect - the job ends: from now on nobody watches the other ranks. Collective; when
 * it returns, all ranks have come here. Returns AQ_OK or negative, logged.
 */
int aq_spawn_disconnect(void);

/** aq_spawn_fini - give back all that aq_spawn_init() and the calls after it have made. */
void aq_spawn_fini(void);

/** aq_spawn_is_supervised - a process of ours watches the ranks and will report how they end. */
bool aq_spawn_is_supervised(void);

#endif
