/*
 * aq_nbi.c - implicit operations and access regions.
 *
 * A thread's implicit operations are counted in one operation of its pool. Between Begin and End of
 * an access region they are counted in another one, which End returns as an event. The two never
 * mix. Handlers on any thread may change the counts of both.
 *
 * Threads   each sees its own set and its own region only
 * Uses      core/aq_op.h, core/aq_poll.h
 * See       GASNet-EX specification 0.19, Events: implicit operations
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"

#include "core/aq_conduit.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_op.h"

static const struct aq_op_kind aq_region_kind = { .waits_in = "gex_Event_Wait (access region)",
                                                  .name = "access region",
                                                  .counts_many = true };

struct aq_op *aq_op_implicit(gex_Rank_t peer)
{
    struct aq_pool *pool = aq_pool_self();
    struct aq_op *op = pool->region != NULL ? pool->region : &pool->implicit;

    if (aq_op_peer(op) != peer)
        aq_op_set_peer(op, aq_op_counts_done(op) ? peer : GEX_RANK_INVALID);
    return op;
}

#if GASNET_DEBUG
static void aq_nbi_check(const char *call, gex_Flags_t flags)
{
    const struct aq_pool *pool;

    aq_thread_check_main(call);
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    pool = aq_pool_look();
    if (pool != NULL && pool->region != NULL)
        aq_fatal("%s called inside an access region of the same thread; call "
                 "gex_NBI_EndAccessRegion first",
                 call);
}

static void aq_nbi_check_end(gex_Flags_t flags)
{
    const char *call = "gex_NBI_EndAccessRegion";
    const struct aq_pool *pool;

    aq_thread_check_main(call);
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    pool = aq_pool_look();
    if (pool == NULL || pool->region == NULL)
        aq_fatal("%s: this thread has no open access region; each End follows a "
                 "gex_NBI_BeginAccessRegion on the same thread",
                 call);
}
#define AQ_NBI_CHECK(call, flags) aq_nbi_check(call, flags)
#define AQ_NBI_CHECK_END(flags)   aq_nbi_check_end(flags)
#else
#define AQ_NBI_CHECK(call, flags) ((void)(flags))
#define AQ_NBI_CHECK_END(flags)   ((void)(flags))
#endif

/* The bits of the mask are chosen so that a complete GEX_EC_PUT includes local completion. */
static bool aq_nbi_done(const struct aq_op *op, gex_EC_t mask)
{
    return (!(mask & GEX_EC_LC) || aq_op_cell_done(op, AQ_CELL_LC))
           && (!(mask & GEX_EC_PUT & ~GEX_EC_LC) || aq_op_cell_done(op, AQ_CELL_PUT))
           && (!(mask & GEX_EC_GET) || aq_op_cell_done(op, AQ_CELL_GET))
           && (!(mask & GEX_EC_RMW) || aq_op_cell_done(op, AQ_CELL_RMW));
}

int gex_NBI_Test(gex_EC_t mask, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NBI_TEST);
    const struct aq_pool *pool;
    bool done;

    AQ_NBI_CHECK("gex_NBI_Test", flags);
    pool = aq_pool_look();
    done = pool == NULL || aq_nbi_done(&pool->implicit, mask);
    aq_trace_end(done ? AQ_TRACE_NBI_TEST : AQ_TRACE_NBI_TRY, began, GEX_RANK_INVALID, 0);
    return done ? GASNET_OK : GASNET_ERR_NOT_READY;
}

static inline void aq_nbi_await(const struct aq_pool *pool, gex_EC_t mask)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("gex_NBI_Wait", GEX_RANK_INVALID);

    if (pool == NULL || aq_nbi_done(&pool->implicit, mask)) {
        aq_poll(); /* programs that only put and wait must serve their peers too */
        return;
    }
    waiter.peer = aq_op_peer(&pool->implicit);
    do {
        aq_wait_step(&waiter);
    } while (!aq_nbi_done(&pool->implicit, mask));
    aq_wait_end(&waiter);
}

void gex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NBI_WAIT);

    AQ_NBI_CHECK("gex_NBI_Wait", flags);
    aq_nbi_await(aq_pool_look(), mask);
    aq_trace_end(AQ_TRACE_NBI_WAIT, began, GEX_RANK_INVALID, 0);
}

void gex_NBI_BeginAccessRegion(gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NBI_REGION_BEGIN);
    struct aq_op *op;

    AQ_NBI_CHECK("gex_NBI_BeginAccessRegion", flags);
    op = aq_op_create(&aq_region_kind, GEX_RANK_INVALID);
    aq_pool_self()->region = op;
    (void)aq_job.remote->rma_batch_begin(op); /* no batch was open: regions do not nest */
    aq_trace_end(AQ_TRACE_NBI_REGION_BEGIN, began, GEX_RANK_INVALID, 0);
}

gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags)
{
    const uint64_t began = aq_trace_begin(AQ_TRACE_NBI_REGION_END);
    gex_Event_t event;
    struct aq_pool *pool;
    struct aq_op *op;

    AQ_NBI_CHECK_END(flags);
    pool = aq_pool_self();
    op = pool->region;
    pool->region = NULL;
    if (op != NULL)
        aq_job.remote->rma_batch_end(NULL);
    event = op == NULL ? GEX_EVENT_INVALID : aq_op_expose(op);
    aq_trace_end(AQ_TRACE_NBI_REGION_END, began, GEX_RANK_INVALID, 0);
    return event;
}
