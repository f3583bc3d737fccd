/*
 * aq_ibv_pin.c - registration of memory outside segments: what firehose (other/firehose) asks of this conduit.
 *
 * A region has one registration for each device in use; keys travel by rail, which is what both sides know of each
 * other.
 *
 * Limits    what firehose may pin is the least of the limit of locked memory (ulimit -l), unless the process may exceed
 *           it, and this rank's part of GASNET_PHYSMEM_MAX, both without what the segment and the buffers of messages
 *           take; regions: a share of what the devices have. A segment, which is pinned as a whole, fits both limits,
 *           and one registration
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
#include "other/firehose/aq_fh_watch.h"
#include "other/spawn/aq_spawn.h"

#define AQ_PIN_REGIONS_MOST 65536u
#define AQ_PIN_LEAST ((uint64_t)1 << 20) /* bytes: with less firehose makes no sense */
#define AQ_PIN_QUEUES ((uint64_t)1 << 20) /* of the limit: for the queues of a device */
#define AQ_PIN_PEER ((uint64_t)64 << 10)  /* of the limit: for the queues of one peer */
#define AQ_PIN_CAPABILITY 14 /* CAP_IPC_LOCK, see capabilities(7) */

static struct aq_fh_watch *aq_ibv_watch_job;

/* Of one region: its handle. */
struct aq_ibv_pinned {
    struct ibv_mr *mrs[AQ_IBV_RAILS]; /* by dev->index */
};

static int aq_ibv_pin(void *arg, uintptr_t addr, size_t len, bool write, struct aq_fh_pin *pin_out)
{
    const int access = write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
                             : IBV_ACCESS_REMOTE_READ;
    struct aq_ibv_pinned *pinned = calloc(1, sizeof(*pinned));
    int rc;

    (void)arg;
    if (pinned == NULL)
        return AQ_ERR_NOMEM;
    rc = aq_ibv_register((void *)addr, len, access, true, pinned->mrs);
    if (rc != AQ_OK) {
        free(pinned);
        return rc;
    }
    pin_out->handle = pinned;
    for (unsigned rail = 0; rail < AQ_FH_RAILS; rail++)
        pin_out->key[rail] = rail < aq_ibv.rail_count ? pinned->mrs[aq_ibv.rails[rail].dev->index]->rkey : 0;
    return AQ_OK;
}

static void aq_ibv_unpin(void *arg, const struct aq_fh_pin *pin)
{
    struct aq_ibv_pinned *pinned = pin->handle;

    (void)arg;
    aq_ibv_unregister(pinned->mrs);
    free(pinned);
}

void aq_ibv_pin_local(const struct aq_fh_hold *hold, struct aq_ibv_local *local_out)
{
    const struct aq_ibv_pinned *pinned = hold->pin->handle;

    local_out->addr = hold->addr;
    local_out->len = hold->len;
    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++)
        local_out->lkey[dev] = pinned->mrs[dev]->lkey;
}

/* Are the users in this process's name space those of the machine? */
static bool aq_ibv_pin_is_at_home(void)
{
    FILE *file = fopen("/proc/self/uid_map", "re");
    unsigned long from, to, count = 0;

    if (file == NULL || fscanf(file, "%lu %lu %lu", &from, &to, &count) != 3 || from != 0 || to != 0)
        count = 0;
    if (file != NULL)
        fclose(file);
    return count == UINT32_MAX;
}

/* May this process lock more than its limit says (CAP_IPC_LOCK)? The kernel asks whether it may on the machine, not in
 * its container. */
static bool aq_ibv_pin_is_privileged(void)
{
    return (aq_ibv_process_status("CapEff: %llx") >> AQ_PIN_CAPABILITY & 1) != 0 && aq_ibv_pin_is_at_home();
}

/* Bytes that are locked besides what is transferred: at most, after traffic with all ranks. What is sent from is
 * registered with each device, what is received into with the one of messages. */
static uint64_t aq_ibv_pin_others(uint32_t devices)
{
    return (uint64_t)aq_env_int(AQ_ENV_RBUF_COUNT) * AQ_IBV_BUF
           + ((uint64_t)aq_env_int(AQ_ENV_BBUF_COUNT) * (AQ_IBV_BUF + AQ_IBV_BOUNCE_PAGE) + AQ_PIN_QUEUES) * devices
           + (uint64_t)(aq_job.size - aq_job.nbrhd_size) * AQ_PIN_PEER;
}

/* Bytes that may be locked beside the buffers of messages, as the limit of locked memory says. */
static uint64_t aq_ibv_pin_lockable(void)
{
    const uint64_t others = aq_ibv_pin_others(aq_ibv.dev_count);
    struct rlimit limit;
    uint64_t locked;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || aq_ibv_pin_is_privileged())
        return UINT64_MAX;
    locked = limit.rlim_cur > 2 * others ? limit.rlim_cur - others : limit.rlim_cur / 2;
    return locked / aq_ibv.dev_count; /* a page counts for each device that it is pinned for */
}

/* Bytes that may be pinned on this host. What is pinned cannot be swapped, and has to leave room for everything else:
 * else the kernel ends some process. */
static uint64_t aq_ibv_pin_host(void)
{
    const char *text = aq_env_str(AQ_ENV_PHYSMEM_MAX), *slash = strrchr(text, '/');
    const uint64_t memory = aq_spawn_host_facts().memory;
    struct aq_env_segsize wish;

    if ((slash != NULL && strpbrk(slash, "pPhH") != NULL) || !aq_env_parse_segsize(text, &wish)
        || (!wish.is_fraction && wish.bytes < AQ_PIN_LEAST))
        aq_fatal("GASNET_PHYSMEM_MAX is '%s', which is neither a size nor a fraction of memory; write for instance 2/3 "
                 "or 100GB", text);
    if (wish.is_fraction)
        return (uint64_t)((double)memory * wish.fraction);
    return wish.bytes < memory ? wish.bytes : memory;
}

/* This rank's part of it, without the buffers of messages: for its segment, and for firehose. */
static uint64_t aq_ibv_pin_share(void)
{
    const uint64_t share = aq_ibv_pin_host() / (aq_job.host_size == 0 ? 1 : aq_job.host_size);
    const uint64_t others = aq_ibv_pin_others(1), rest = share > 2 * others ? share - others : share / 2;

    return rest < 2 * AQ_PIN_LEAST ? 2 * AQ_PIN_LEAST : rest;
}

/* Bytes that firehose may pin in this process, whose segment has so many. */
static uint64_t aq_ibv_pinnable(uint64_t segment)
{
    const uint64_t share = aq_ibv_pin_share();
    const uint64_t memory = share > segment + share / 8 ? share - segment : share / 8;
    const uint64_t lockable = aq_ibv_pin_lockable(), locked = lockable > segment ? lockable - segment : 0;
    const uint64_t most = memory < locked ? memory : locked;

    return most < AQ_PIN_LEAST ? AQ_PIN_LEAST : most;
}

void aq_ibv_pin_limits(void)
{
    static char why[320];
    const uint64_t lockable = aq_ibv_pin_lockable(), share = aq_ibv_pin_share();
    uint64_t most = share - share / 8; /* the rest is firehose's */

    snprintf(why, sizeof(why), "GASNET_PHYSMEM_MAX is %s, which leaves %.1f MB for a segment, with %u of them on this "
             "host; raise it, or have fewer ranks on a host",
             aq_env_str(AQ_ENV_PHYSMEM_MAX), (double)most / 1048576, aq_job.host_size);
    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++) {
        const uint64_t region = aq_ibv.devs[dev].attr.max_mr_size;

        if (region == 0 || region >= most)
            continue;
        most = region;
        snprintf(why, sizeof(why), "device %s registers %.1f MB at most", aq_ibv.devs[dev].name,
                 (double)region / 1048576);
    }
    if (lockable < most) {
        most = lockable > 2 * AQ_PIN_LEAST ? lockable - AQ_PIN_LEAST : lockable / 2;
        snprintf(why, sizeof(why), "the limit of locked memory leaves %.1f MB for a segment: raise it on all hosts "
                 "(ulimit -l unlimited; for batch systems in /etc/security/limits.conf, or LimitMEMLOCK= of the "
                 "daemon's service)",
                 (double)most / 1048576);
    }
    aq_limits.segment_most = most;
    aq_limits.segment_why = why;
}

void aq_ibv_pin_segment(void *addr, size_t nbytes)
{
    aq_fh_job_limit(aq_ibv_pinnable(nbytes));
    if (aq_ibv_watch_job != NULL)
        aq_fh_watch_trust(aq_ibv_watch_job, addr, nbytes);
}

static uint32_t aq_ibv_regions(void)
{
    uint64_t most = AQ_PIN_REGIONS_MOST;

    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++) {
        /* a quarter: the device is other ranks' and other jobs' too */
        const uint64_t share = (uint64_t)aq_ibv.devs[dev].attr.max_mr / 4
                               / (aq_job.host_size == 0 ? 1 : aq_job.host_size);

        most = share < most ? share : most;
    }
    return most < 64 ? 64 : (uint32_t)most;
}

/* Ranks that may aim at memory of ours through firehose: none where all that they reach is a segment, registered for
 * good, or goes by messages. */
static uint32_t aq_ibv_aimers(void)
{
#if GASNET_SEGMENT_EVERYTHING
    const uint32_t far = aq_job.size - aq_job.nbrhd_size;

    return far == 0 ? 1 : far;
#else
    return 0;
#endif
}

int aq_ibv_pin_init(void)
{
    static const struct aq_fh_ops ops = { .pin = aq_ibv_pin, .unpin = aq_ibv_unpin, .request = aq_fh_job_request };
    const int rc = aq_fh_watch_job_open(&aq_ibv_watch_job); /* own memory may go, whatever peers can reach */

    if (rc != AQ_OK)
        return rc;
    return aq_fh_job_start(aq_ibv_pinnable(0), aq_ibv_regions(), aq_ibv_aimers(), &ops, NULL, aq_ibv_watch_job);
}

void aq_ibv_pin_report(void)
{
    struct aq_fh_watch_counts watch = { 0 };
    struct aq_fh_counts c;

    aq_fh_counts(aq_fh_job, &c);
    if (aq_ibv_watch_job != NULL)
        aq_fh_watch_counts(aq_ibv_watch_job, &watch);
    aq_log_print("ibv: rank %u: firehose: own memory: %" PRIu64 " hits, %" PRIu64 " misses; peers' memory: %" PRIu64
                 " hits, %" PRIu64 " misses, %" PRIu64 " waits, %" PRIu64 " carried; sent %" PRIu64 " moves, %" PRIu64
                 " releases, %" PRIu64 " recalls; pinned %" PRIu64 " times, unpinned %" PRIu64 ", refused %" PRIu64
                 ", now %" PRIu64 " bytes in %" PRIu64 " regions; stale %" PRIu64 "; watch: %" PRIu64 " events, "
                 "%" PRIu64 " floods, %" PRIu64 " mappings, %" PRIu64 " refused\n", aq_job.rank, c.local_hits,
                 c.local_misses, c.remote_hits, c.remote_misses, c.remote_waits, c.carried, c.moves, c.releases,
                 c.recalls, c.pins, c.unpins, c.pin_failures, c.pinned_bytes, c.pinned_regions, c.stale, watch.events,
                 watch.floods, watch.armed, watch.refused);
}
