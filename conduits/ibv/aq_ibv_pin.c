/*
 * aq_ibv_pin.c - registration of memory outside segments: what firehose (other/firehose) asks of this conduit.
 *
 * A region has one registration for each device in use; keys travel by rail, which is what both sides know of each
 * other.
 *
 * Limits    what may be pinned is the least of the limit of locked memory (ulimit -l) without what the segment and the
 *           buffers of messages take, and two thirds of this rank's part of the memory; regions: a share of what the
 *           devices have
 * Threads   any
 * Uses      aq_ibv_register(), other/firehose. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conduits/ibv/aq_ibv_xfer.h"
#include "core/aq_log.h"
#include "core/aq_rc.h"
#include "other/firehose/aq_fh_watch.h"
#include "other/spawn/aq_spawn.h"

#define AQ_PIN_REGIONS_MOST 65536u
#define AQ_PIN_LEAST ((uint64_t)1 << 20) /* bytes: with less firehose makes no sense */
#define AQ_PIN_OTHERS ((uint64_t)8 << 20) /* of the limit: for buffers of messages, and bounce buffers */

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

/* Bytes that firehose may pin in this process. */
static uint64_t aq_ibv_pinnable(void)
{
    const uint64_t memory = aq_spawn_host_facts().memory;
    uint64_t most = memory / 3 * 2 / (aq_job.host_size == 0 ? 1 : aq_job.host_size);
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        /* a privileged process is not held to it, but then nobody set it for us either */
        const uint64_t locked = limit.rlim_cur > 2 * AQ_PIN_OTHERS ? limit.rlim_cur - AQ_PIN_OTHERS
                                                                   : limit.rlim_cur / 2;
        const uint64_t each = locked / aq_ibv.dev_count; /* a page counts for each device that it is pinned for */

        most = most < each ? most : each;
    }
    return most < AQ_PIN_LEAST ? AQ_PIN_LEAST : most;
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
    struct aq_fh_watch *watch = NULL;
    const int rc = aq_fh_watch_job_open(&watch); /* own memory may go, whatever peers can reach */

    if (rc != AQ_OK)
        return rc;
    return aq_fh_job_start(aq_ibv_pinnable(), aq_ibv_regions(), aq_ibv_aimers(), &ops, NULL, watch);
}
