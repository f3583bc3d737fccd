/*
 * aq_ibv_reg.c - registration of memory outside segments: what firehose (other/firehose) asks of
 * this conduit.
 *
 * A region has one registration for each device in use; keys travel by rail, which is what both
 * sides know of each other.
 *
 * Limits    what firehose may pin is the least of the limit of locked memory (ulimit -l), unless
 *           the process may exceed it, and this rank's part of GASNET_PHYSMEM_MAX, both without
 *           what the segment and the buffers of messages take; regions: a share of what the devices
 *           have. A segment, which is pinned as a whole, fits both limits, and one registration
 * Threads   any
 * Uses      aq_ibv_register(), other/firehose. SPDX-License-Identifier: BSD-3-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "conduits/ibv/aq_ibv_xfer.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/firehose/aq_fh_memmon.h"
#include "other/spawn/aq_spawn.h"

#define AQ_REG_REGIONS_MAX  65536u
#define AQ_REG_MIN          ((uint64_t)1 << 20)  /* bytes: with less firehose makes no sense */
#define AQ_REG_QUEUES       ((uint64_t)1 << 20)  /* of the limit: for the queues of a device */
#define AQ_REG_PEER         ((uint64_t)64 << 10) /* of the limit: for the queues of one peer */
#define AQ_MLOCK_CAPABILITY 14                   /* CAP_IPC_LOCK, see capabilities(7) */

static struct aq_fh_memmon *aq_ibv_memmon;

/* Of one region: its handle. */
struct aq_ibv_reg_handle {
    struct ibv_mr *mrs[AQ_IBV_RAILS]; /* by dev->index */
};

static int aq_ibv_reg(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_reg *reg_out)
{
    const int access =
        write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
              : IBV_ACCESS_REMOTE_READ;
    struct aq_ibv_reg_handle *regs = calloc(1, sizeof(*regs));
    int rc;

    (void)arg;
    if (regs == NULL)
        return AQ_ERR_NOMEM;
    rc = aq_ibv_register((void *)addr, len, access, true, regs->mrs);
    if (rc != AQ_OK) {
        free(regs);
        return rc;
    }
    reg_out->handle = regs;
    for (unsigned rail = 0; rail < AQ_FH_RAILS; rail++)
        reg_out->key[rail] =
            rail < aq_ibv.rail_count ? regs->mrs[aq_ibv.rails[rail].dev->index]->rkey : 0;
    return AQ_OK;
}

static void aq_ibv_dereg(void *arg, const struct aq_fh_reg *reg)
{
    struct aq_ibv_reg_handle *regs = reg->handle;

    (void)arg;
    aq_ibv_unregister(regs->mrs);
    free(regs);
}

void aq_ibv_reg_local(const struct aq_fh_hold *hold, struct aq_ibv_local *local_out)
{
    const struct aq_ibv_reg_handle *regs = hold->reg->handle;

    local_out->addr = hold->addr;
    local_out->len = hold->len;
    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++)
        local_out->lkey[dev] = regs->mrs[dev]->lkey;
}

/* Are the users in this process's name space those of the machine? */
static bool aq_ibv_reg_is_at_home(void)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    unsigned long from, to, count = 0;

    if (file == NULL || fscanf(file, "%lu %lu %lu", &from, &to, &count) != 3 || from != 0
        || to != 0)
        count = 0;
    if (file != NULL)
        fclose(file);
    return count == UINT32_MAX;
}

/* May this process lock more than its limit says (CAP_IPC_LOCK)? The kernel asks whether it may on
 * the machine, not in its container. */
static bool aq_ibv_reg_is_privileged(void)
{
    return (aq_ibv_process_status("CapEff: %llx") >> AQ_MLOCK_CAPABILITY & 1) != 0
           && aq_ibv_reg_is_at_home();
}

/* Bytes that are locked besides what is transferred: at most, after traffic with all ranks. What is
 * sent from is registered with each device, what is received into with the one of messages. */
static uint64_t aq_ibv_reg_others(uint32_t devices)
{
    return (uint64_t)aq_env_int(AQ_ENV_RBUF_COUNT) * AQ_IBV_BUF
           + ((uint64_t)aq_env_int(AQ_ENV_BBUF_COUNT) * (AQ_IBV_BUF + AQ_IBV_BOUNCE_PAGE)
              + AQ_REG_QUEUES)
                 * devices
           + (uint64_t)(aq_job.size - aq_job.nbrhd_size) * AQ_REG_PEER;
}

/* Bytes that may be locked beside the buffers of messages, as the limit of locked memory says. */
static uint64_t aq_ibv_reg_lockable(void)
{
    const uint64_t others = aq_ibv_reg_others(aq_ibv.dev_count);
    struct rlimit limit;
    uint64_t locked;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
        || aq_ibv_reg_is_privileged())
        return UINT64_MAX;
    locked = limit.rlim_cur > 2 * others ? limit.rlim_cur - others : limit.rlim_cur / 2;
    return locked / aq_ibv.dev_count; /* a page counts for each device that it is pinned for */
}

/* Bytes that may be pinned on this host. What is pinned cannot be swapped, and has to leave room
 * for everything else: else the kernel ends some process. */
static uint64_t aq_ibv_reg_host(void)
{
    const char *text = aq_env_str(AQ_ENV_PHYSMEM_MAX), *slash = strrchr(text, '/');
    const uint64_t memory = aq_spawn_host_facts().memory;
    struct aq_env_segsize pref;

    if ((slash != NULL && strpbrk(slash, "pPhH") != NULL) || !aq_env_parse_segsize(text, &pref)
        || (!pref.is_fraction && pref.bytes < AQ_REG_MIN))
        aq_fatal("GASNET_PHYSMEM_MAX is '%s', which is neither a size nor a fraction of memory; "
                 "write for instance 2/3 "
                 "or 100GB",
                 text);
    if (pref.is_fraction)
        return (uint64_t)((double)memory * pref.fraction);
    return pref.bytes < memory ? pref.bytes : memory;
}

/* This rank's part of it, without the buffers of messages: for its segment, and for firehose. */
static uint64_t aq_ibv_reg_quota(void)
{
    const uint64_t quota = aq_ibv_reg_host() / (aq_job.host_size == 0 ? 1 : aq_job.host_size);
    const uint64_t others = aq_ibv_reg_others(1),
                   rest = quota > 2 * others ? quota - others : quota / 2;

    return rest < 2 * AQ_REG_MIN ? 2 * AQ_REG_MIN : rest;
}

/* Bytes that firehose may pin in this process, whose segment has so many. */
static uint64_t aq_ibv_reg_budget(uint64_t segment)
{
    const uint64_t quota = aq_ibv_reg_quota();
    const uint64_t memory = quota > segment + quota / 8 ? quota - segment : quota / 8;
    const uint64_t lockable = aq_ibv_reg_lockable(),
                   locked = lockable > segment ? lockable - segment : 0;
    const uint64_t max = memory < locked ? memory : locked;

    return max < AQ_REG_MIN ? AQ_REG_MIN : max;
}

void aq_ibv_reg_limits(void)
{
    static char why[320];
    const uint64_t lockable = aq_ibv_reg_lockable(), quota = aq_ibv_reg_quota();
    uint64_t max = quota - quota / 8; /* the rest is firehose's */

    snprintf(
        why, sizeof(why),
        "GASNET_PHYSMEM_MAX is %s, which leaves %.1f MB for a segment, with %u of them on this "
        "host; raise it, or have fewer ranks on a host",
        aq_env_str(AQ_ENV_PHYSMEM_MAX), (double)max / 1048576, aq_job.host_size);
    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++) {
        const uint64_t region = aq_ibv.devs[dev].attr.max_mr_size;

        if (region == 0 || region >= max)
            continue;
        max = region;
        snprintf(why, sizeof(why), "device %s registers %.1f MB at most", aq_ibv.devs[dev].name,
                 (double)region / 1048576);
    }
    if (lockable < max) {
        max = lockable > 2 * AQ_REG_MIN ? lockable - AQ_REG_MIN : lockable / 2;
        snprintf(why, sizeof(why),
                 "the limit of locked memory leaves %.1f MB for a segment: raise it on all hosts "
                 "(ulimit -l unlimited; for batch systems in /etc/security/limits.conf, or "
                 "LimitMEMLOCK= of the "
                 "daemon's service)",
                 (double)max / 1048576);
    }
    aq_limits.segment_max = max;
    aq_limits.segment_why = why;
}

void aq_ibv_reg_segment(void *addr, size_t nbytes)
{
    aq_fh_job_limit(aq_ibv_reg_budget(nbytes));
    if (aq_ibv_memmon != NULL)
        aq_fh_memmon_trust(aq_ibv_memmon, addr, nbytes);
}

static uint32_t aq_ibv_regions(void)
{
    uint64_t max = AQ_REG_REGIONS_MAX;

    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++) {
        /* a quarter: the device is other ranks' and other jobs' too */
        const uint64_t quota = (uint64_t)aq_ibv.devs[dev].attr.max_mr / 4
                               / (aq_job.host_size == 0 ? 1 : aq_job.host_size);

        max = quota < max ? quota : max;
    }
    return max < 64 ? 64 : (uint32_t)max;
}

/* Ranks that may aim at memory of ours through firehose: none where all that they reach is a
 * segment, registered for good, or goes by messages. */
static uint32_t aq_ibv_aimers(void)
{
#if GASNET_SEGMENT_EVERYTHING
    const uint32_t remote_ranks = aq_job.size - aq_job.nbrhd_size;

    return remote_ranks == 0 ? 1 : remote_ranks;
#else
    return 0;
#endif
}

int aq_ibv_reg_init(void)
{
    static const struct aq_fh_ops ops = { .reg = aq_ibv_reg,
                                          .dereg = aq_ibv_dereg,
                                          .send_request = aq_fh_job_request };
    const int rc =
        aq_fh_memmon_job_open(&aq_ibv_memmon); /* own memory may go, whatever peers can reach */

    if (rc != AQ_OK)
        return rc;
    return aq_fh_job_start(aq_ibv_reg_budget(0), aq_ibv_regions(), aq_ibv_aimers(), &ops, NULL,
                           aq_ibv_memmon);
}

void aq_ibv_reg_report(void)
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
                 " regions; stale %" PRIu64 "; watch: %" PRIu64 " events, "
                 "%" PRIu64 " floods, %" PRIu64 " mappings, %" PRIu64 " refused\n",
                 aq_job.rank, c.local_hits, c.local_misses, c.remote_hits, c.remote_misses,
                 c.remote_waits, c.carried, c.moves, c.releases, c.recalls, c.regs, c.deregs,
                 c.reg_failures, c.reg_bytes, c.reg_regions, c.stale, memmon.events, memmon.floods,
                 memmon.armed, memmon.refused);
}
