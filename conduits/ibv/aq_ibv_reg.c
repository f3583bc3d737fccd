/*
 * aq_ibv_reg.c - memory registration and its limits; see aq_ibv_reg.h.
 *
 * A region of firehose has one registration for each device in use. Keys travel by rail, since
 * rails are what both sides know of each other.
 *
 * Limits    firehose may pin the lesser of two amounts: the limit of locked memory (ulimit -l),
 *           unless the process may exceed it, and this rank's quota of GASNET_PHYSMEM_MAX, both
 *           without the segment and this conduit's buffers. Regions: a share of the device's. A
 *           segment that is registered at attach fits both limits and one registration
 * Threads   registering: any; limits: start-up's thread
 * Uses      other/spawn for the host's memory. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_reg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "other/spawn/aq_spawn.h"

#define AQ_IBV_LOCKED_RESERVE 16384u /* KB, for what is registered later: buffers of messages */
#define AQ_REG_REGIONS_MAX    65536u
#define AQ_REG_MIN            ((uint64_t)1 << 20)  /* bytes: the least that firehose is given */
#define AQ_REG_QUEUES         ((uint64_t)1 << 20)  /* of the limit: for the queues of a device */
#define AQ_REG_PEER           ((uint64_t)64 << 10) /* of the limit: for the queues of one peer */
#define AQ_MLOCK_CAPABILITY   14                   /* CAP_IPC_LOCK, see capabilities(7) */

/* --- registering --- */

/* The number that scanf's format finds in a line of /proc/self/status, or 0. */
static unsigned long long aq_ibv_process_status(const char *format)
{
    FILE *file = fopen("/proc/self/status", "re");
    unsigned long long value = 0;
    char line[256];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, format, &value) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return value;
}

void aq_ibv_register_why(char *text, size_t size, const struct aq_ibv_dev *dev, size_t len,
                         int error)
{
    const unsigned long long pinned = aq_ibv_process_status("VmPin: %llu");
    const double mb = (double)len / 1048576;
    struct rlimit limit;

    if ((error == ENOMEM || error == EAGAIN || error == EPERM)
        && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(text, size,
                 "ibv: device %s cannot pin %.1f MB: %s; the limit of locked memory is %.1f MB, of "
                 "which "
                 "%.1f MB are in use: raise it on all hosts (ulimit -l unlimited, or at least "
                 "ulimit -l %llu; for "
                 "batch systems in /etc/security/limits.conf, or LimitMEMLOCK= of the daemon's "
                 "service), or ask for a "
                 "smaller segment with GASNET_MAX_SEGSIZE",
                 dev->name, mb, strerror(error), (double)limit.rlim_cur / 1048576,
                 (double)pinned / 1024,
                 pinned + (unsigned long long)len / 1024 + AQ_IBV_LOCKED_RESERVE);
    else
        snprintf(text, size, "ibv: device %s cannot pin %.1f MB: %s%s", dev->name, mb,
                 strerror(error),
                 error == ENOMEM
                     ? "; it pins no more, or there is no memory: ask for a smaller segment with "
                       "GASNET_MAX_SEGSIZE"
                     : "");
}

int aq_ibv_register(const struct aq_ibv_net *net, void *addr, size_t len, int access, bool quiet,
                    struct ibv_mr *mrs_out[AQ_IBV_RAILS])
{
    char text[512];
    int error, rc;

    memset(mrs_out, 0, AQ_IBV_RAILS * sizeof(*mrs_out));
    for (uint32_t i = 0; i < net->dev_count; i++) {
        const bool atomics = net->devs[i].attr.atomic_cap != IBV_ATOMIC_NONE;

        mrs_out[i] = net->lib->reg_mr(net->devs[i].pd, addr, len,
                                      atomics ? access : access & ~IBV_ACCESS_REMOTE_ATOMIC);
        if (mrs_out[i] != NULL)
            continue;
        error = errno;
        aq_ibv_unregister(net, mrs_out);
        aq_ibv_register_why(text, sizeof(text), &net->devs[i], len, error);
        rc = error == ENOMEM || error == EAGAIN ? AQ_ERR_NOMEM : AQ_ERR_RESOURCE;
        return quiet ? rc : aq_fail(rc, "%s", text);
    }
    return AQ_OK;
}

void aq_ibv_unregister(const struct aq_ibv_net *net, struct ibv_mr *mrs[AQ_IBV_RAILS])
{
    for (uint32_t i = 0; i < AQ_IBV_RAILS; i++)
        if (mrs[i] != NULL) {
            (void)net->lib->dereg_mr(mrs[i]); /* fails only if it is none */
            mrs[i] = NULL;
        }
}

/* --- regions of firehose --- */

/* The handle of a region of firehose. */
struct aq_ibv_region {
    struct ibv_mr *mrs[AQ_IBV_RAILS]; /* by dev->index */
};

int aq_ibv_region_register(void *arg, uintptr_t addr, size_t len, bool write,
                           struct aq_fh_reg *reg_out)
{
    const struct aq_ibv_net *net = arg;
    const int access =
        write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
              : IBV_ACCESS_REMOTE_READ;
    struct aq_ibv_region *regs = calloc(1, sizeof(*regs));
    int rc;

    if (regs == NULL)
        return AQ_ERR_NOMEM;
    rc = aq_ibv_register(net, (void *)addr, len, access, true, regs->mrs);
    if (rc != AQ_OK) {
        free(regs);
        return rc;
    }
    reg_out->handle = regs;
    for (unsigned rail = 0; rail < AQ_FH_RAILS; rail++)
        reg_out->key[rail] =
            rail < net->rail_count ? regs->mrs[net->rails[rail].dev->index]->rkey : 0;
    return AQ_OK;
}

void aq_ibv_region_unregister(void *arg, const struct aq_fh_reg *reg)
{
    struct aq_ibv_region *regs = reg->handle;

    aq_ibv_unregister(arg, regs->mrs);
    free(regs);
}

void aq_ibv_region_local(const struct aq_ibv_net *net, const struct aq_fh_hold *hold,
                         struct aq_ibv_local *local_out)
{
    const struct aq_ibv_region *regs = hold->reg->handle;

    local_out->addr = hold->addr;
    local_out->len = hold->len;
    for (unsigned dev = 0; dev < net->dev_count; dev++)
        local_out->lkey[dev] = regs->mrs[dev]->lkey;
}

/* --- limits --- */

bool aq_ibv_segments_on_demand(void)
{
#if GASNET_SEGMENT_EVERYTHING
    return false;
#else
    return aq_env_choice(AQ_ENV_AQ_IBV_REGISTER) == 1;
#endif
}

/* Are the users of this process's name space those of the machine? */
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

/* May this process lock more than its limit (CAP_IPC_LOCK)? What counts is the capability on the
 * machine, not in a container. */
static bool aq_ibv_reg_is_privileged(void)
{
    return (aq_ibv_process_status("CapEff: %llx") >> AQ_MLOCK_CAPABILITY & 1) != 0
           && aq_ibv_reg_is_at_home();
}

/* Bytes of this conduit's own buffers that are locked at most, after traffic with all ranks. Send
 * buffers are registered with each device, receive buffers with the first one. */
static uint64_t aq_ibv_reg_others(uint32_t devices)
{
    return (uint64_t)aq_env_int(AQ_ENV_RBUF_COUNT) * AQ_IBV_BUF
           + ((uint64_t)aq_env_int(AQ_ENV_BBUF_COUNT) * (AQ_IBV_BUF + AQ_IBV_BOUNCE_PAGE)
              + AQ_REG_QUEUES)
                 * devices
           + (uint64_t)(aq_job.size - aq_job.nbrhd_size) * AQ_REG_PEER;
}

/* Bytes that the limit of locked memory leaves beside this conduit's own buffers. */
static uint64_t aq_ibv_reg_lockable(const struct aq_ibv_net *net)
{
    const uint64_t others = aq_ibv_reg_others(net->dev_count);
    struct rlimit limit;
    uint64_t locked;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
        || aq_ibv_reg_is_privileged())
        return UINT64_MAX;
    locked = limit.rlim_cur > 2 * others ? limit.rlim_cur - others : limit.rlim_cur / 2;
    return locked / net->dev_count; /* a page counts for each device that it is pinned for */
}

/* Bytes that may be pinned on this host. Pinned memory cannot be swapped and has to leave space for
 * everything else: otherwise the kernel kills processes. */
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

/* This rank's quota of them, without this conduit's own buffers: for its segment, and firehose. */
static uint64_t aq_ibv_reg_quota(void)
{
    const uint64_t quota = aq_ibv_reg_host() / (aq_job.host_size == 0 ? 1 : aq_job.host_size);
    const uint64_t others = aq_ibv_reg_others(1),
                   rest = quota > 2 * others ? quota - others : quota / 2;

    return rest < 2 * AQ_REG_MIN ? 2 * AQ_REG_MIN : rest;
}

uint64_t aq_ibv_reg_budget(const struct aq_ibv_net *net, uint64_t segment)
{
    const uint64_t quota = aq_ibv_reg_quota();
    const uint64_t memory = quota > segment + quota / 8 ? quota - segment : quota / 8;
    const uint64_t lockable = aq_ibv_reg_lockable(net),
                   locked = lockable > segment ? lockable - segment : 0;
    const uint64_t max = memory < locked ? memory : locked;

    return max < AQ_REG_MIN ? AQ_REG_MIN : max;
}

void aq_ibv_reg_limits(const struct aq_ibv_net *net)
{
    static char why[320];
    const uint64_t lockable = aq_ibv_reg_lockable(net), quota = aq_ibv_reg_quota();
    uint64_t max = quota - quota / 8; /* firehose has the rest */

    if (aq_ibv_segments_on_demand())
        return;
    snprintf(
        why, sizeof(why),
        "GASNET_PHYSMEM_MAX is %s, which leaves %.1f MB for a segment, with %u of them on this "
        "host; raise it, or have fewer ranks on a host",
        aq_env_str(AQ_ENV_PHYSMEM_MAX), (double)max / 1048576, aq_job.host_size);
    for (unsigned dev = 0; dev < net->dev_count; dev++) {
        const uint64_t region = net->devs[dev].attr.max_mr_size;

        if (region == 0 || region >= max)
            continue;
        max = region;
        snprintf(why, sizeof(why), "device %s registers %.1f MB at most", net->devs[dev].name,
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

uint32_t aq_ibv_reg_regions(const struct aq_ibv_net *net)
{
    uint64_t max = AQ_REG_REGIONS_MAX;

    for (unsigned dev = 0; dev < net->dev_count; dev++) {
        /* a quarter: other ranks and other jobs use the device too */
        const uint64_t quota = (uint64_t)net->devs[dev].attr.max_mr / 4
                               / (aq_job.host_size == 0 ? 1 : aq_job.host_size);

        max = quota < max ? quota : max;
    }
    /* each peer's quota has at least one */
    return max < 64 + 2 * (uint64_t)aq_job.size ? 64 + 2 * aq_job.size : (uint32_t)max;
}
