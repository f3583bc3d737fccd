/*
 * aq_ibv_firehose.c - the job's firehose: settings, agreed among the ranks, and messages.
 *
 * Messages  two handlers of the core. Requests are sent by this conduit without blocking, since one
 *           may be due in a handler; answers are replies, which find space in the end
 * Agreed    the least of all ranks: what peers may have references to, and the length of messages
 * Threads   start: start-up's thread; the rest: any
 * Uses      aq_ibv_am.h, aq_ibv_reg.h, other/firehose, other/spawn.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_firehose.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "conduits/ibv/aq_ibv_am.h"
#include "conduits/ibv/aq_ibv_reg.h"
#include "core/aq_am.h"
#include "core/aq_am_out.h"
#include "core/aq_poll.h"
#include "other/firehose/aq_fh_budget.h"
#include "other/firehose/aq_fh_internal.h"
#include "other/firehose/aq_fh_memmon.h"
#include "other/spawn/aq_spawn.h"

static struct aq_fh_memmon *aq_ibv_memmon AQ_JOB_STATE;

#define AQ_FH_MIN(a, b) ((a) < (b) ? (a) : (b))

/* --- messages --- */

static int aq_ibv_firehose_request(void *arg, uint32_t peer, const void *msg, size_t nbytes)
{
    const struct aq_am_out out = { .jobrank = peer,
                                   .handler = AQ_HIDX_FIREHOSE,
                                   .kind = AQ_AM_MEDIUM,
                                   .src = msg,
                                   .nbytes = nbytes };

    (void)arg;
    return aq_ibv_am_send(&out);
}

static void aq_ibv_firehose_on_request(gex_Token_t token, void *buf, size_t nbytes)
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

static void aq_ibv_firehose_on_reply(gex_Token_t token, void *buf, size_t nbytes)
{
    if (aq_fh_job != NULL)
        aq_fh_answered(aq_fh_job, aq_token(token)->jobrank, buf, nbytes);
}

/* --- settings --- */

static void aq_ibv_firehose_show_size(enum aq_env_id id, uint64_t bytes)
{
    char text[32];

    aq_env_set_computed(id, aq_env_format_size(bytes, text, sizeof(text)));
}

static void aq_ibv_firehose_show_count(enum aq_env_id id, uint32_t count)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", count);
    aq_env_set_computed(id, text);
}

/* A count that a user gave; 0: none. */
static uint64_t aq_ibv_firehose_given_count(enum aq_env_id id)
{
    const int64_t count = aq_env_is_set(id) ? aq_env_int(id) : 0;

    return count > 0 ? (uint64_t)count : 0;
}

static void aq_ibv_firehose_read_bytes(struct aq_fh_config *config, uint64_t pinnable)
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
    aq_ibv_firehose_show_size(AQ_ENV_FIREHOSE_M, budget.remote);
    aq_ibv_firehose_show_size(AQ_ENV_FIREHOSE_MAXVICTIM_M, budget.local);
}

static void aq_ibv_firehose_read_regions(struct aq_fh_config *config, uint32_t regions)
{
    const struct aq_fh_budget budget =
        aq_fh_budget_split(regions, aq_ibv_firehose_given_count(AQ_ENV_FIREHOSE_R),
                           aq_ibv_firehose_given_count(AQ_ENV_FIREHOSE_MAXVICTIM_R), config->peers);

    config->remote_regions = budget.remote < UINT32_MAX ? (uint32_t)budget.remote : UINT32_MAX;
    config->local_regions = budget.local < UINT32_MAX ? (uint32_t)budget.local : UINT32_MAX;
    aq_ibv_firehose_show_count(AQ_ENV_FIREHOSE_R, config->remote_regions);
    aq_ibv_firehose_show_count(AQ_ENV_FIREHOSE_MAXVICTIM_R, config->local_regions);
}

/* --- agreement --- */

struct aq_ibv_firehose_offer {
    uint64_t remote_bytes, message;
    uint32_t remote_regions, peers;
};

static int aq_ibv_firehose_agree(struct aq_fh_config *config)
{
    struct aq_ibv_firehose_offer own = { .remote_bytes = config->remote_bytes,
                                         .message = config->message,
                                         .remote_regions = config->remote_regions,
                                         .peers = config->peers };
    struct aq_ibv_firehose_offer *all = malloc(config->size * sizeof(*all));
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

/* Ranks that may have references to memory of this rank through firehose. None where everything
 * that they reach is in a segment, registered for good, or is reached by messages. */
static uint32_t aq_ibv_firehose_peers(void)
{
    const uint32_t remote_ranks = aq_job.size - aq_job.nbrhd_size;

#if !GASNET_SEGMENT_EVERYTHING
    if (!aq_ibv_segments_on_demand())
        return 0;
#endif
    return remote_ranks == 0 ? 1 : remote_ranks;
}

int aq_ibv_firehose_start(struct aq_ibv_net *net)
{
    static const struct aq_fh_ops ops = { .reg = aq_ibv_region_register,
                                          .dereg = aq_ibv_region_unregister,
                                          .send_request = aq_ibv_firehose_request };
    const uint32_t peers = aq_ibv_firehose_peers();
    struct aq_fh_config config = { .rank = aq_job.rank,
                                   .size = aq_job.size,
                                   .peers = peers,
                                   .max_region = aq_env_size(AQ_ENV_FIREHOSE_MAXREGION_SIZE),
                                   .max_chunk = AQ_FH_CHUNK_PAGES * AQ_FH_PAGE,
                                   .message = AQ_FH_MIN(aq_limits.max_medium, AQ_FH_MESSAGE),
                                   .carry = aq_env_size(AQ_ENV_PUTINMOVE_LIMIT) };
    /* memory of this process may go, whatever peers can reach */
    int rc = aq_fh_memmon_job_open(&aq_ibv_memmon);

    if (rc != AQ_OK)
        return rc;
    config.memmon = aq_ibv_memmon;
    if (aq_env_is_set(AQ_ENV_FIREHOSE_MAXREGION_SIZE))
        config.max_chunk = config.max_region;
    aq_ibv_firehose_read_bytes(&config, aq_ibv_reg_budget(net, 0));
    aq_ibv_firehose_read_regions(&config, aq_ibv_reg_regions(net));
    rc = aq_ibv_firehose_agree(&config);
    if (rc == AQ_OK)
        rc = aq_fh_open(&config, &ops, net, &aq_fh_job);
    if (rc != AQ_OK)
        return rc;
    aq_am_register_internal(AQ_HIDX_FIREHOSE, (gex_AM_Fn_t)aq_ibv_firehose_on_request,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, "firehose");
    aq_am_register_internal(AQ_HIDX_FIREHOSE_REPLY, (gex_AM_Fn_t)aq_ibv_firehose_on_reply,
                            GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, "firehose answer");
    if (aq_env_bool(AQ_ENV_FIREHOSE_VERBOSE))
        aq_log_print("firehose (rank %u): peers may have references to %" PRIu64
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

void aq_ibv_firehose_segment(const struct aq_ibv_net *net, void *addr, size_t nbytes)
{
    if (aq_fh_job != NULL && !aq_env_is_set(AQ_ENV_FIREHOSE_MAXVICTIM_M)) {
        aq_fh_limit_local(aq_fh_job, aq_ibv_reg_budget(net, nbytes));
        aq_ibv_firehose_show_size(AQ_ENV_FIREHOSE_MAXVICTIM_M, aq_fh_job->config.local_bytes);
    }
    if (aq_ibv_memmon != NULL)
        aq_fh_memmon_trust(aq_ibv_memmon, addr, nbytes);
}

void aq_ibv_firehose_segment_on_demand(void *addr, size_t nbytes)
{
    if (aq_fh_job != NULL)
        aq_fh_limit_remote(aq_fh_job, (uintptr_t)addr, (uintptr_t)addr + nbytes);
    if (aq_ibv_memmon != NULL)
        aq_fh_memmon_trust(aq_ibv_memmon, addr, nbytes);
}

void aq_ibv_firehose_discard(void *addr, size_t nbytes)
{
    struct aq_waiter waiter =
        AQ_WAITER_INIT("peers that forget memory which is given back", GEX_RANK_INVALID);

    if (aq_fh_job == NULL)
        return;
    aq_fh_invalidate(aq_fh_job, (uintptr_t)addr, nbytes);
    while (aq_fh_is_recalling(aq_fh_job))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
}

void aq_ibv_firehose_fini(void)
{
    struct aq_fh *const fh = aq_fh_job;

    aq_fh_job = NULL; /* what the memory monitor notices from now on concerns no region */
    aq_fh_close(fh);
    aq_fh_memmon_job_close();
}

/* --- figures --- */

void aq_ibv_firehose_report(void)
{
    struct aq_fh_memmon_counts memmon = { 0 };
    struct aq_fh_counts c;

    aq_fh_counts(aq_fh_job, &c);
    if (aq_ibv_memmon != NULL)
        aq_fh_memmon_counts(aq_ibv_memmon, &memmon);
    aq_log_print("ibv: rank %u: firehose: own memory: %" PRIu64 " hits, %" PRIu64
                 " misses; peers' memory: %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64
                 " waits, %" PRIu64 " carried; sent %" PRIu64 " moves, %" PRIu64
                 " releases, %" PRIu64 " recalls; pinned %" PRIu64 " times, unpinned %" PRIu64
                 ", refused %" PRIu64 ", now %" PRIu64 " bytes in %" PRIu64
                 " regions; stale %" PRIu64 "; memory monitor: %" PRIu64 " events, "
                 "%" PRIu64 " floods, %" PRIu64 " mappings, %" PRIu64 " refused\n",
                 aq_job.rank, c.local_hits, c.local_misses, c.remote_hits, c.remote_misses,
                 c.remote_waits, c.carried, c.moves, c.releases, c.recalls, c.regs, c.deregs,
                 c.reg_failures, c.reg_bytes, c.reg_regions, c.stale, memmon.events, memmon.floods,
                 memmon.armed, memmon.refused);
}
