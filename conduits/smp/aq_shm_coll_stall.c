/*
 * aq_shm_coll_stall.c - collectives through shared memory: calls that cannot continue.
 *
 * Names the member that a waiting request lacks, for the stall report, and in debug builds the
 * members whose calls differ.
 *
 * Threads   the thread at work on the team. Uses aq_shm_coll.h, core/aq_op.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll.h"

#include <unistd.h>

#include "core/aq_op.h"

#if GASNET_DEBUG
/* Of two that see each other's sizes one speaks: the lower rank ends the job, with the other,
 * unless it does not compare. */
#define AQ_SHM_LOWER_SPEAKS_US 500000

_Noreturn void aq_step_differs(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                               uint32_t member, const struct aq_shm_area_line *line)
{
    if (coll->area.me > member)
        usleep(AQ_SHM_LOWER_SPEAKS_US);
    if (line->bytes == req->bytes)
        aq_fatal(
            "%s: rank %u of the team passes dst == src, and rank %u does not: all members of a "
            "team must, or none",
            aq_coll_op_kinds[req->call.kind].name, line->in_place ? member : coll->area.me,
            line->in_place ? coll->area.me : member);
    aq_fatal("%s: rank %u of the team takes part in it with %llu bytes, this rank, %u, with %zu: "
             "all members of a team must make the same calls with the same sizes",
             aq_coll_op_kinds[req->call.kind].name, member, (unsigned long long)line->bytes,
             coll->area.me, req->bytes);
}
#endif

/* Returns the member whose operand, chunk or finished line the request waits for in its next step;
 * size if it waits for no particular one. */
static uint32_t aq_coll_req_missing(const struct aq_coll_local *coll, const struct aq_coll_req *req)
{
    if (req->posted == req->finished || req->is_read)
        return aq_shm_area_behind(&coll->area);
    if (req->call.kind == AQ_COLL_BROADCAST)
        return req->call.root;
    return req->scattered && req->shared > req->finished ? req->seen_shared : req->seen_posted;
}

void aq_shm_coll_blame(const struct aq_coll_local *coll)
{
    struct aq_op *op = coll->head->op;
    const uint32_t member = aq_coll_req_missing(coll, coll->head);
    const gex_Rank_t jobrank =
        member == coll->area.size ? GEX_RANK_INVALID : aq_shm.jobrank_of[coll->area.local[member]];
    const gex_Rank_t blamed = aq_op_peer(op);

    if (aq_coll_req_closed(coll->head))
        return; /* the schedule that opens it waits, and names the rank that it waits for */
    if (coll->head->part != NULL && blamed != GEX_RANK_INVALID && !aq_job_is_local(blamed))
        return; /* the schedule waits for a message of that rank; this part is ahead of it */
    if (blamed != jobrank) /* its line may be another thread's, who waits */
        aq_op_set_peer(op, jobrank);
}
