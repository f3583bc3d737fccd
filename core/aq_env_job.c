/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_env_job.c - see aq_env_job.h. One small allgather when the environments agree.
 */
#include "core/aq_env_job.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_env_alias.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_conduit.h"
#include "other/spawn/aq_spawn.h"

struct aq_env_digest {
    uint64_t hash;  /* of the variables that should agree, in any order */
    uint64_t bytes; /* of the whole block */
};

/* variables that launchers set for each process, or shells for themselves */
static bool aq_env_is_private(const char *entry)
{
    static const char *const prefixes[] = {
        "PMI",     "OMPI_",        "PRTE_",          "MPI_LOCAL",           "HYDI_",
        "HYDRA_",  "SLURM_PROCID", "SLURM_LOCALID",  "SLURM_NODEID",        "SLURM_GTIDS",
        "SLURMD_", "AQ_SPAWN",     "SLURM_TASK_PID", "SLURM_TOPOLOGY_ADDR", "_=",
        "PWD=",    "OLDPWD=",      "SHLVL=",         "HOSTNAME=",
    };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* FNV-1a, 64 bits */
static uint64_t aq_env_hash_entry(const char *entry)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *entry != '\0'; entry++)
        hash = (hash ^ (unsigned char)*entry) * UINT64_C(1099511628211);
    return hash;
}

/* Where agents have brought the environment of the user's host, the hosts' own environments may
 * differ in variables that are not the library's, which are not read from them. */
static bool aq_env_is_ours(const char *entry)
{
    for (size_t i = 0; aq_conduits[i] != NULL; i++)
        if (aq_env_alias_has_prefix(aq_conduits[i]->info->aliases, entry))
            return true;
    return strncmp(entry, "GASNET", 6) == 0 || strncmp(entry, "AQ_", 3) == 0;
}

static struct aq_env_digest aq_env_make_digest(const char *block, size_t len, bool ours_only)
{
    struct aq_env_digest digest = { 0, len };

    for (size_t at = 0; at < len; at += strlen(block + at) + 1)
        if (!aq_env_is_private(block + at) && (!ours_only || aq_env_is_ours(block + at)))
            digest.hash += aq_env_hash_entry(block + at);
    return digest;
}

/* returns the rank whose environment all ranks use, or size if the environments agree */
static uint32_t aq_env_choose(const struct aq_env_digest *all, uint32_t size)
{
    uint32_t largest = 0;
    bool differ = false;

    for (uint32_t rank = 1; rank < size; rank++) {
        differ = differ || all[rank].hash != all[0].hash;
        if (all[rank].bytes > all[largest].bytes)
            largest = rank;
    }
    return differ ? largest : size;
}

static void aq_env_broadcast(const char *own, size_t len, uint32_t rank, uint32_t root)
{
    char *block = malloc(len);

    if (block == NULL)
        aq_fatal("no memory for %zu bytes of environment", len);
    if (rank == root)
        memcpy(block, own, len);
    if (aq_spawn_bcast(block, len, root) != AQ_OK)
        aq_fatal("rank %u could not hand its environment to the other ranks at start", root);
    aq_env_set_job_environment(block, len);
    free(block);
}

void aq_env_exchange(void)
{
    const struct aq_spawn_info *spawn = aq_spawn_info();
    struct aq_env_digest own_digest, *all;
    const struct aq_jobarea *jobarea = aq_spawn_jobarea();
    const bool brought = jobarea->environment_bytes > 0;
    uint32_t root;
    size_t len;
    const char *own = aq_env_snapshot(&len);

    if (brought)
        aq_env_set_job_environment((const char *)jobarea + jobarea->environment_offset,
                                   jobarea->environment_bytes);
    if (spawn->size == 1)
        return;
    all = calloc(spawn->size, sizeof(*all));
    if (all == NULL)
        aq_fatal("no memory for the environments of %u ranks", spawn->size);
    own_digest = aq_env_make_digest(own, len, brought);
    if (aq_spawn_allgather(&own_digest, sizeof(own_digest), all) != AQ_OK)
        aq_fatal("the ranks could not compare their environments at start");
    root = aq_env_choose(all, spawn->size);
    if (root < spawn->size) {
        AQ_LOG(INFO, ENV, "the ranks' environments differ: that of rank %u is for all", root);
        aq_env_broadcast(own, (size_t)all[root].bytes, spawn->rank, root);
    }
    free(all);
}
