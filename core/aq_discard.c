/*
 * aq_discard.c - pages of the own segment that go back to the system: aqueduct_segment_discard().
 *
 * Threads   any
 * Uses      the conduit tables: the remote one knows what the network has pinned, the local one
 *           what the pages are
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aqueduct.h"

#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_rc.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "core/aq_thread.h"

int aqueduct_segment_discard(void *addr, size_t bytes)
{
    const struct aq_bound own = { aq_job.segment.base, aq_job.segment.size };
    uintptr_t begin, end;

    aq_check_started(__func__);
#if GASNET_DEBUG
    aq_thread_check_main("aqueduct_segment_discard");
#endif
    if (!aq_job.attached || bytes == 0 || !aq_bounds_contain(&own, addr, bytes))
        return aq_rc_to_gasnet(aq_fail(AQ_ERR_ARG,
                                       "%s: [%p, +%zu) is not inside the segment of this process",
                                       __func__, addr, bytes));
    begin = aq_round_up((uintptr_t)addr, AQ_PAGE_SIZE);
    end = ((uintptr_t)addr + bytes) & ~(uintptr_t)(AQ_PAGE_SIZE - 1);
    if (begin >= end)
        return GASNET_OK;
    return aq_rc_to_gasnet(aq_job.remote->segment_discard((void *)begin, end - begin));
}
