/*
 * aq_publish.c - publishes the segments that were bound to endpoints.
 *
 * Threads   collective over a team, in its order
 * Uses      core/aq_ep.h, extended/aq_exchange.h
 * See       GASNet-EX specification 0.19, Bound-segment publication
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"
#include "core/aq_trace.h"
#include "extended/aq_exchange.h"

/* The published data of one endpoint. */
struct aq_publish_entry {
    uint64_t addr, size;
    uint32_t index;
    uint32_t zero; /* so that no padding is sent */
};

#if GASNET_DEBUG
static void aq_publish_check(gex_TM_t tm, const gex_EP_t *eps, size_t count, gex_Flags_t flags)
{
    const char *call = "gex_EP_PublishBoundSegment";

    aq_check_team(call, tm);
    aq_thread_check_main(call);
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    if (count != 0 && eps == NULL)
        aq_fatal("%s: eps is NULL, but num_eps is %zu", call, count);
    for (size_t i = 0; i < count; i++) {
        if (eps[i] == GEX_EP_INVALID)
            aq_fatal("%s: eps[%zu] is GEX_EP_INVALID", call, i);
        for (size_t j = 0; j < i; j++)
            if (eps[j] == eps[i])
                aq_fatal("%s: endpoint %u is listed twice", call, aq_ep(eps[i])->index);
    }
}
#endif

/* An attached segment is known to all ranks, and so is the whole address space. */
static bool aq_publish_is_new(gex_EP_Index_t index)
{
#if GASNET_SEGMENT_EVERYTHING
    return index != 0;
#else
    return index != 0 || !aq_job.attached;
#endif
}

/* Collects the listed endpoints that have a segment which other ranks may not know. */
static uint32_t aq_publish_collect(const gex_EP_t *eps, size_t count, struct aq_publish_entry *own)
{
    uint32_t found = 0;

    for (size_t i = 0; i < count; i++) {
        const gex_EP_Index_t index = aq_ep(eps[i])->index;
        const struct aq_bound bound = aq_bound_find(aq_job.rank, index);

        if (aq_publish_is_new(index) && bound.size != 0 && found < GASNET_MAXEPS)
            own[found++] = (struct aq_publish_entry){ .addr = (uint64_t)(uintptr_t)bound.addr,
                                                      .size = bound.size,
                                                      .index = index };
    }
    return found;
}

/* Long messages of any length may target segments of primordial endpoints. If one is in a
 * neighbour's memory and not mapped, only the kernel can transfer them. */
static int aq_publish_check_reach(gex_Rank_t jobrank, gex_EP_Index_t index)
{
    if (index != 0 || aq_job_ops(jobrank)->segment_reaches(jobrank))
        return AQ_OK;
    return aq_fail(
        AQ_ERR_RESOURCE,
        "gex_EP_PublishBoundSegment: rank %u of this host has bound a segment "
        "to its primordial endpoint, which is reached by process_vm_writev, and the kernel "
        "does not allow that here; use gex_Segment_Attach, or allow ptrace in this container",
        jobrank);
}

static int aq_publish_learn(gex_Rank_t jobrank, const struct aq_publish_entry *entries,
                            uint32_t count)
{
    int rc = AQ_OK;

    for (uint32_t i = 0; rc == AQ_OK && i < count && jobrank != aq_job.rank; i++) {
        const struct aq_bound bound = { (void *)(uintptr_t)entries[i].addr,
                                        (uintptr_t)entries[i].size };
        const gex_EP_Index_t index = (gex_EP_Index_t)entries[i].index;

        rc = aq_publish_check_reach(jobrank, index);
        if (rc == AQ_OK && aq_bound_learn(jobrank, index, bound) != AQ_OK)
            rc = aq_fail(AQ_ERR_NOMEM, "gex_EP_PublishBoundSegment: no memory for what others have "
                                       "published");
    }
    return rc;
}

int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t num_eps, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_SEGMENT_PUBLISH, GEX_RANK_INVALID, 0);
    const char *call = "gex_EP_PublishBoundSegment";
    const gex_Rank_t members = aq_tm_head_of(tm)->size;
    struct aq_publish_entry own[GASNET_MAXEPS] = { { 0 } }, *all = NULL;
    uint32_t *counts, count, max = 0;
    int rc = AQ_OK;

#if GASNET_DEBUG
    aq_publish_check(tm, eps, num_eps, flags);
#else
    (void)flags;
#endif
    counts = malloc(members * sizeof(*counts));
    if (counts == NULL)
        aq_fatal("%s: no memory for %u members", call, members);
    count = aq_publish_collect(eps, num_eps, own);
    aq_exchange_as(call, tm, &count, sizeof(count), counts);
    for (gex_Rank_t rank = 0; rank < members; rank++)
        max = MAX(max, counts[rank]);
    if (max != 0) {
        all = malloc((size_t)members * max * sizeof(*all));
        if (all == NULL)
            aq_fatal("%s: no memory for %u segments of %u members", call, max, members);
        aq_exchange_as(call, tm, own, max * sizeof(*all), all);
    }
    for (gex_Rank_t rank = 0; rc == AQ_OK && rank < members; rank++)
        rc = aq_publish_learn(aq_tm_jobrank(tm, rank), all + (size_t)rank * max, counts[rank]);
    free(all);
    free(counts);
    return aq_rc_to_gasnet(rc);
}
