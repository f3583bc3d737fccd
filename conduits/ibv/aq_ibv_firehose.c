/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_ibv_firehose.c - the job's firehose: settings, agreed among the ranks, and messages.
 *
 * Messages  two handlers of the core; requests are sent straight by the conduit, without blocking,
 *           since they may be due in a handler; answers are replies, which find room in the end
 * Agreed    the least of all ranks: what peers may aim at, and the length of messages
 * Threads   aq_fh_job_start(): one; the rest any
 * Uses      core/aq_am.h, base/aq_env.h, other/spawn; aq_fh_internal.h
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/aq_am.h"
#include "core/aq_am_out.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "other/firehose/aq_fh_budget.h"
#include "other/firehose/aq_fh_internal.h"
#include "other/spawn/aq_spawn.h"

#define AQ_FH_MIN(a, b) ((a) < (b) ? (a) : (b))

/* --- messages --- */

int aq_fh_job_request(void *arg, uint32_t peer, const void *msg, size_t nbytes)
{
    const struct aq_am_out out = { .jobrank = peer,
                                   .handler = AQ_HIDX_FIREHOSE,
                                   .kind = AQ_AM_MEDIUM,
                                   .src = msg,
                                   .nbytes = nbytes };

    (void)arg;
    return aq_job.remote->am_send(&out);
}

static void aq_fh_on_request(gex_Token_t token, void *buf, size_t nbytes)
{
    _Alignas(uint64_t) uint8_t answer[AQ_FH_MESSAGE];
    size_t length;

    if (aq_fh_job == NULL) /* the job is ending */
        return;
    length = aq_fh_serve(aq_fh_job, aq_token(token)->jobrank, buf, nbytes, answer);
    if (length != 0)
        aq_am_reply_medium(token, AQ_HIDX_FIREHOSE_REPLY, answer, length, GEX_EVENT_NOW, 0, 0,
                           NULL);
}

static void aq_fh_on_reply(gex_Token_t token, void *buf, size_t nbytes)
{
    if (aq_fh_job != NULL)
        aq_fh_answered(aq_fh_job, aq_token(token)->jobrank, buf, nbytes);
}

/* --- settings --- */

static void aq_fh_show_size(enum aq_env_id id, uint64_t bytes)
{
    char text[32];

    aq_env_set_computed(id, aq_env_format_size(bytes, text, sizeof(text)));
}

static void aq_fh_show_count(enum aq_env_id id, uint32_t count)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", count);
    aq_env_set_computed(id, text);
}

/* A count that a user gave; 0: none. */
static uint64_t aq_fh_given_count(enum aq_env_id id)
{
    const int64_t count = aq_env_is_set(id) ? aq_env_int(id) : 0;

    return count > 0 ? (uint64_t)count : 0;
}

static void aq_fh_read_bytes(struct aq_fh_config *config, uint64_t pinnable)
{
    const uint64_t remote = aq_env_is_set(AQ_ENV_FIREHOSE_M) ? aq_env_size(AQ_ENV_FIREHOSE_M) : 0;
    const uint64_t local =
        aq_env_is_set(AQ_ENV_FIREHOSE_MAXVICTIM_M) ? aq_env_size(AQ_ENV_FIREHOSE_MAXVICTIM_M) : 0;
    const struct aq_fh_budget budget = aq_fh_budget_split(pinnable, remote, local, config->peers);

    config->remote_bytes = budget.remote;
    config->local_bytes = budget.local;
    if (budget.remote + budget.local > pinnable && aq_job.rank == 0)
        aq_warn("GASNET_FIREHOSE_M and GASNET_FIREHOSE_MAXVICTIM_M are %" PRIu64
                " MB together, more than the %" PRIu64
                " MB that can be pinned: transfers may fail; lower them, or raise what limits it: "
                "locked memory "
                "(ulimit -l), or GASNET_PHYSMEM_MAX",
                (budget.remote + budget.local) >> 20, pinnable >> 20);
    aq_fh_show_size(AQ_ENV_FIREHOSE_M, budget.remote);
    aq_fh_show_size(AQ_ENV_FIREHOSE_MAXVICTIM_M, budget.local);
}

static void aq_fh_read_regions(struct aq_fh_config *config, uint32_t regions)
{
    const struct aq_fh_budget budget =
        aq_fh_budget_split(regions, aq_fh_given_count(AQ_ENV_FIREHOSE_R),
                           aq_fh_given_count(AQ_ENV_FIREHOSE_MAXVICTIM_R), config->peers);

    config->remote_regions = budget.remote < UINT32_MAX ? (uint32_t)budget.remote : UINT32_MAX;
    config->local_regions = budget.local < UINT32_MAX ? (uint32_t)budget.local : UINT32_MAX;
    aq_fh_show_count(AQ_ENV_FIREHOSE_R, config->remote_regions);
    aq_fh_show_count(AQ_ENV_FIREHOSE_MAXVICTIM_R, config->local_regions);
}

/* --- agreement --- */

struct aq_fh_offer {
    uint64_t remote_bytes, message;
    uint32_t remote_regions, peers;
};

static int aq_fh_agree(struct aq_fh_config *config)
{
    struct aq_fh_offer own = { .remote_bytes = config->remote_bytes,
                               .message = config->message,
                               .remote_regions = config->remote_regions,
                               .peers = config->peers };
    struct aq_fh_offer *all = malloc(config->size * sizeof(*all));
    int rc;

    if (all == NULL)
        return aq_fail(AQ_ERR_NOMEM, "firehose: no memory for the offers of %u ranks",
                       config->size);
    rc = aq_spawn_allgather(&own, sizeof(own), all);
    for (uint32_t rank = 0; rc == AQ_OK && rank < config->size; rank++) {
        own.remote_bytes = AQ_FH_MIN(own.remote_bytes, all[rank].remote_bytes);
        own.remote_regions = AQ_FH_MIN(own.remote_regions, all[rank].remote_regions);
        own.message = AQ_FH_MIN(own.message, all[rank].message);
        own.peers = all[rank].peers > own.peers ? all[rank].peers : own.peers;
    }
    free(all);
    config->remote_bytes = own.remote_bytes;
    config->remote_regions = own.remote_regions;
    config->message = own.message;
    config->peers = own.peers;
    return rc;
}

void aq_fh_job_limit(uint64_t local_bytes)
{
    if (aq_fh_job == NULL || aq_env_is_set(AQ_ENV_FIREHOSE_MAXVICTIM_M))
        return;
    aq_fh_limit_local(aq_fh_job, local_bytes);
    aq_fh_show_size(AQ_ENV_FIREHOSE_MAXVICTIM_M, aq_fh_job->config.local_bytes);
}

int aq_fh_job_start(uint64_t pinnable, uint32_t regions, uint32_t peers,
                    const struct aq_fh_ops *ops, void *arg, struct aq_fh_memmon *memmon)
{
    struct aq_fh_config config = { .rank = aq_job.rank,
                                   .size = aq_job.size,
                                   .peers = peers,
                                   .max_region = aq_env_size(AQ_ENV_FIREHOSE_MAXREGION_SIZE),
                                   .max_chunk = AQ_FH_CHUNK_PAGES * AQ_FH_PAGE,
                                   .message = AQ_FH_MIN(aq_limits.max_medium, AQ_FH_MESSAGE),
                                   .carry = aq_env_size(AQ_ENV_PUTINMOVE_LIMIT),
                                   .memmon = memmon };
    int rc;

    if (aq_env_is_set(AQ_ENV_FIREHOSE_MAXREGION_SIZE))
        config.max_chunk = config.max_region;
    aq_fh_read_bytes(&config, pinnable);
    aq_fh_read_regions(&config, regions);
    rc = aq_fh_agree(&config);
    if (rc == AQ_OK)
        rc = aq_fh_open(&config, ops, arg, &aq_fh_job);
    if (rc != AQ_OK)
        return rc;
    aq_am_register_internal(AQ_HIDX_FIREHOSE, (gex_AM_Fn_t)aq_fh_on_request,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, "firehose");
    aq_am_register_internal(AQ_HIDX_FIREHOSE_REPLY, (gex_AM_Fn_t)aq_fh_on_reply,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, "firehose answer");
    if (aq_env_bool(AQ_ENV_FIREHOSE_VERBOSE))
        aq_log_print("firehose (rank %u): others may aim at %" PRIu64
                     " KB in %u regions here, %" PRIu64 " KB in %u "
                     "each of %u; own transfers and victims: %" PRIu64
                     " KB in %u; regions to %zu KB, chunks to "
                     "%zu KB\n",
                     config.rank, config.remote_bytes / 1024, config.remote_regions,
                     aq_fh_job->quota / 1024, aq_fh_job->quota_regions, config.peers,
                     config.local_bytes / 1024, config.local_regions, config.max_region / 1024,
                     aq_fh_max_chunk(aq_fh_job) / 1024);
    return AQ_OK;
}
