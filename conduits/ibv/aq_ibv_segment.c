/*
 * aq_ibv_segment.c - segments: shared with near ranks as in every conduit, and registered for good
 * with each device in use.
 *
 * Registering puts a page under every address, so it waits until the client's own policy has been
 * laid on the segment (gasnet_client_attach_hook): aq_ibv_segment_ready() comes after that. The
 * keys go to everybody, 4 bytes for a rank and rail.
 *
 * Owns      the registration of the segment, the table of keys
 * Threads   set-up by one; the table is constant afterwards
 * Uses      aq_ibv_register(). SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/ibv/aq_ibv_xfer.h"
#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

struct aq_ibv_own aq_ibv_own;
static struct ibv_mr *aq_ibv_segment_mrs[AQ_IBV_RAILS];
static uint32_t *aq_ibv_rkeys; /* [rank * AQ_IBV_RAILS + rail] */
static bool aq_ibv_atomics;    /* every rank's device has them, and nobody declined */

bool aq_ibv_atomics_agreed(void)
{
    return aq_ibv_atomics;
}

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
    struct ibv_mr **mrs = aq_ibv_segment_mrs;

    memset(address, 0, sizeof(*address));
    address->atomics = aq_env_choice(AQ_ENV_AQ_IBV_ATOMICS) == 0
                       && aq_ibv.rails[0].dev->attr.atomic_cap != IBV_ATOMIC_NONE;
    if (bound.size == 0)
        return;
    address->rc = aq_ibv_register(bound.addr, bound.size, access, false, mrs);
    if (address->rc != AQ_OK)
        return;
    for (unsigned dev = 0; dev < aq_ibv.dev_count; dev++)
        aq_ibv_own.lkey[dev] = mrs[dev]->lkey;
    for (unsigned rail = 0; rail < aq_ibv.rail_count; rail++)
        address->rkey[rail] = mrs[aq_ibv.rails[rail].dev->index]->rkey;
    aq_ibv_own.bound = bound;
    aq_ibv_reg_segment(bound.addr, bound.size);
}

int aq_ibv_segment_ready(void)
{
    struct aq_ibv_segment_address own, *all;
    int rc;

    all = malloc(aq_job.size * sizeof(*all));
    aq_ibv_rkeys = calloc((size_t)aq_job.size * AQ_IBV_RAILS, sizeof(*aq_ibv_rkeys));
    if (all == NULL || aq_ibv_rkeys == NULL)
        aq_fatal("ibv: no memory for the keys of %u segments",
                 aq_job.size); /* others wait for us */
    aq_ibv_segment_register(&own);
    rc = aq_job_allgather(&own, sizeof(own), all);
    aq_ibv_atomics = rc == AQ_OK;
    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < aq_job.size; rank++) {
        if (all[rank].rc != AQ_OK)
            rc = AQ_ERR_RESOURCE; /* who it was has said why */
        aq_ibv_atomics = aq_ibv_atomics && all[rank].atomics != 0;
        memcpy(&aq_ibv_rkeys[(size_t)rank * AQ_IBV_RAILS], all[rank].rkey, sizeof(all[rank].rkey));
    }
    free(all);
    return rc;
}

void aq_ibv_segment_detach(void)
{
    aq_ibv_unregister(aq_ibv_segment_mrs);
    memset(&aq_ibv_own, 0, sizeof(aq_ibv_own));
    aq_ibv_atomics = false;
    free(aq_ibv_rkeys);
    aq_ibv_rkeys = NULL;
}

bool aq_ibv_remote_key(gex_Rank_t jobrank, uint32_t rail, const void *addr, size_t nbytes,
                       uint32_t *rkey_out)
{
    if (aq_ibv_rkeys == NULL || aq_job.bound == NULL || aq_job.bound[jobrank].size == 0
        || !aq_bound_contains(jobrank, addr, nbytes))
        return false;
    *rkey_out = aq_ibv_rkeys[(size_t)jobrank * AQ_IBV_RAILS + rail];
    return true;
}

bool aq_ibv_local_key(const struct aq_ibv_dev *dev, const void *addr, size_t nbytes,
                      uint32_t *lkey_out)
{
    if (aq_ibv_own.bound.size == 0 || !aq_bounds_contain(&aq_ibv_own.bound, addr, nbytes))
        return false;
    *lkey_out = aq_ibv_own.lkey[dev->index];
    return true;
}
