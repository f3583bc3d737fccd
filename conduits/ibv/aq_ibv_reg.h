/*
 * aq_ibv_reg.h - memory registration: with each device, of segments, and how much there may be.
 *
 * Three kinds of memory are registered. Buffers of this conduit stay registered as long as they
 * live, and so does, by default, the segment. Other memory of the client is registered by firehose
 * (other/firehose), region by region, through aq_ibv_region_register().
 *
 * Threads   aq_ibv_register() and the regions: any; the rest: start-up's thread. The tables of the
 *           segments are constant afterwards
 * Uses      aq_ibv_device.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_IBV_REG_H
#define AQ_IBV_REG_H

#include "conduits/ibv/aq_ibv_device.h"
#include "core/aq_job.h"
#include "other/firehose/aq_fh.h"

#define AQ_IBV_BOUNCE_PAGE 4096u /* bytes of bounce buffers for each of GASNET_BBUF_COUNT */

/* Local memory as the devices are told of it. */
struct aq_ibv_local {
    uintptr_t addr;
    size_t len;
    uint32_t lkey[AQ_IBV_RAILS]; /* by dev->index */
};

/* --- registering (aq_ibv_reg.c) --- */

/* Register with every device in use; mrs_out by dev->index. Access by atomics is given only to
 * devices that have atomics. Returns AQ_OK; AQ_ERR_NOMEM: the limit of locked memory is reached;
 * AQ_ERR_RESOURCE: memory that cannot be registered. Failures are logged unless quiet, with the
 * limit that ulimit -l should have. */
int aq_ibv_register(const struct aq_ibv_net *net, void *addr, size_t len, int access, bool quiet,
                    struct ibv_mr *mrs_out[AQ_IBV_RAILS]);
void aq_ibv_unregister(const struct aq_ibv_net *net, struct ibv_mr *mrs[AQ_IBV_RAILS]);
/* The message for a registration that failed with error. */
void aq_ibv_register_why(char *text, size_t size, const struct aq_ibv_dev *dev, size_t len,
                         int error);

/* Firehose's regions: struct aq_fh_ops, with arg a struct aq_ibv_net. */
int aq_ibv_region_register(void *arg, uintptr_t addr, size_t len, bool write,
                           struct aq_fh_reg *reg_out);
void aq_ibv_region_unregister(void *arg, const struct aq_fh_reg *reg);
/* A held region as the devices are told of it. */
void aq_ibv_region_local(const struct aq_ibv_net *net, const struct aq_fh_hold *hold,
                         struct aq_ibv_local *local_out);

/* --- limits --- */

/* How large a segment may be, into aq_limits. */
void aq_ibv_reg_limits(const struct aq_ibv_net *net);
/* Bytes that firehose may register, beside a segment of so many bytes. */
uint64_t aq_ibv_reg_budget(const struct aq_ibv_net *net, uint64_t segment);
/* Registrations that firehose may make. */
uint32_t aq_ibv_reg_regions(const struct aq_ibv_net *net);

/* --- segments (aq_ibv_segment.c) --- */

struct aq_ibv_segments {
    const struct aq_ibv_net *net; /* NULL: there are no remote ranks */
    struct aq_bound own;          /* this rank's segment; size 0: none */
    uint32_t lkey[AQ_IBV_RAILS];  /* of the own segment, by dev->index */
    struct ibv_mr *mrs[AQ_IBV_RAILS];
    uint32_t *rkeys; /* [rank * AQ_IBV_RAILS + rail] */
    bool atomics;    /* every rank's first device has atomics, and no rank declined */
    bool on_demand;  /* nothing is registered here: firehose does it */
};
extern struct aq_ibv_segments aq_ibv_segments;

/* Is the segment to be registered on demand? The same on all ranks; false where there is none. */
bool aq_ibv_segments_on_demand(void);
/* Register the own segment and exchange keys; collective. AQ_OK or negative, logged. */
int aq_ibv_segments_exchange(void);
void aq_ibv_segments_drop(void);

/* Does [addr, +nbytes) lie in the own segment? Then its local keys. */
static inline bool aq_ibv_local_own(const void *addr, size_t nbytes, struct aq_ibv_local *local_out)
{
    const struct aq_ibv_segments *segments = &aq_ibv_segments;

    if (!aq_bounds_contain(&segments->own, addr, nbytes) || segments->own.size == 0)
        return false;
    local_out->addr = (uintptr_t)addr;
    local_out->len = nbytes;
    for (unsigned i = 0; i < AQ_IBV_RAILS; i++)
        local_out->lkey[i] = segments->lkey[i];
    return true;
}
/* Key by which a peer's rail reaches [addr, +nbytes) of its rank; false: not in its segment. */
bool aq_ibv_remote_key(gex_Rank_t jobrank, uint32_t rail, const void *addr, size_t nbytes,
                       uint32_t *rkey_out);
/* Key by which a local device reads [addr, +nbytes); false: not in the own segment. */
bool aq_ibv_local_key(const struct aq_ibv_dev *dev, const void *addr, size_t nbytes,
                      uint32_t *lkey_out);

#endif
