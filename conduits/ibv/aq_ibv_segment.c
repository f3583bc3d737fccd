/*
 * aq_ibv_segment.c - segments, registered with each device in use as long as they exist.
 *
 * By default. With AQ_IBV_REGISTER=demand nothing is registered here, no key is exchanged, and all
 * transfers from and to segments use firehose.
 *
 * Registration puts a page under every address, so it waits until the client's own policy has been
 * applied to the segment (gasnet_client_attach_hook). Every rank learns the keys of all segments: 4
 * bytes for each rank and rail.
 *
 * Threads   exchange and drop: one; the tables are constant in between
 * Uses      aq_ibv_register(). SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/ibv/aq_ibv_reg.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"

struct aq_ibv_segments aq_ibv_segments AQ_JOB_STATE;

/* What each rank tells the others. */
struct aq_ibv_segment_address {
    int32_t rc;
    uint32_t atomics;            /* not 0: the device of its first rail has them */
    uint32_t rkey[AQ_IBV_RAILS]; /* by rail */
};

static void aq_ibv_segment_register(struct aq_ibv_segment_address *address)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
                       | IBV_ACCESS_REMOTE_ATOMIC;
    const struct aq_bound bound = aq_job.bound[aq_job.rank];
    const struct aq_ibv_net *net = aq_ibv_segments.net;
    struct ibv_mr **mrs = aq_ibv_segments.mrs;

    memset(address, 0, sizeof(*address));
    address->atomics = aq_env_choice(AQ_ENV_AQ_IBV_ATOMICS) == 0
                       && net->rails[0].dev->attr.atomic_cap != IBV_ATOMIC_NONE;
    if (bound.size == 0)
        return;
    address->rc = aq_ibv_register(net, bound.addr, bound.size, access, false, mrs);
    if (address->rc != AQ_OK)
        return;
    for (unsigned dev = 0; dev < net->dev_count; dev++)
        aq_ibv_segments.lkey[dev] = mrs[dev]->lkey;
    for (unsigned rail = 0; rail < net->rail_count; rail++)
        address->rkey[rail] = mrs[net->rails[rail].dev->index]->rkey;
    aq_ibv_segments.own = bound;
}

int aq_ibv_segments_exchange(void)
{
    struct aq_ibv_segment_address own, *all;
    int rc;

    aq_ibv_segments.on_demand = aq_ibv_segments_on_demand();
    if (aq_ibv_segments.on_demand)
        return AQ_OK;
    all = malloc(aq_job.size * sizeof(*all));
    aq_ibv_segments.rkeys =
        calloc((size_t)aq_job.size * AQ_IBV_RAILS, sizeof(*aq_ibv_segments.rkeys));
    if (all == NULL || aq_ibv_segments.rkeys == NULL)
        aq_fatal("ibv: no memory for the keys of %u segments",
                 aq_job.size); /* the other ranks wait */
    aq_ibv_segment_register(&own);
    rc = aq_job_allgather(&own, sizeof(own), all);
    aq_ibv_segments.atomics = rc == AQ_OK;
    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++) {
        if (all[rank].rc != AQ_OK)
            rc = AQ_ERR_RESOURCE; /* that rank has logged why */
        aq_ibv_segments.atomics = aq_ibv_segments.atomics && all[rank].atomics != 0;
        memcpy(&aq_ibv_segments.rkeys[(size_t)rank * AQ_IBV_RAILS], all[rank].rkey,
               sizeof(all[rank].rkey));
    }
    free(all);
    return rc;
}

void aq_ibv_segments_drop(void)
{
    const struct aq_ibv_net *net = aq_ibv_segments.net;

    aq_ibv_unregister(net, aq_ibv_segments.mrs);
    free(aq_ibv_segments.rkeys);
    aq_ibv_segments = (struct aq_ibv_segments){ .net = net };
}

bool aq_ibv_remote_key(gex_Rank_t jobrank, uint32_t rail, const void *addr, size_t nbytes,
                       uint32_t *rkey_out)
{
    if (aq_ibv_segments.rkeys == NULL || aq_job.bound == NULL || aq_job.bound[jobrank].size == 0
        || !aq_bound_contains(jobrank, addr, nbytes))
        return false;
    *rkey_out = aq_ibv_segments.rkeys[(size_t)jobrank * AQ_IBV_RAILS + rail];
    return true;
}

bool aq_ibv_local_key(const struct aq_ibv_dev *dev, const void *addr, size_t nbytes,
                      uint32_t *lkey_out)
{
    if (aq_ibv_segments.own.size == 0 || !aq_bounds_contain(&aq_ibv_segments.own, addr, nbytes))
        return false;
    *lkey_out = aq_ibv_segments.lkey[dev->index];
    return true;
}
