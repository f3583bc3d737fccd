/*
 * aq_coll_legacy.c - the collectives that came before gex_Coll_*: gasnet_coll_*.
 *
 * Each is a schedule of messages (aq_coll_msg.c) in which owner and user of a block speak to each
 * other directly; ALLSYNC puts a barrier into the schedule, before or behind. Data never touch a
 * buffer before its owner has called, so MYSYNC needs nothing, and NOSYNC is served as MYSYNC.
 * The barriers, gasnet_coll_barrier_*(), are in aq_coll_barrier.c.
 *
 * Threads   as gex_Coll_*
 * Uses      extended/aq_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include "base/aq_log.h"
#include "core/aq_trace.h"

enum aq_legacy_kind {
    AQ_LEGACY_BROADCAST,
    AQ_LEGACY_SCATTER,
    AQ_LEGACY_GATHER,
    AQ_LEGACY_GATHER_ALL,
    AQ_LEGACY_EXCHANGE
};

#define AQ_KIND(call)                                    \
    {                                                    \
        .waits_in = call, .name = call, .hides_lc = true \
    }

static const struct aq_op_kind aq_legacy_kinds[] = {
    [AQ_LEGACY_BROADCAST] = AQ_KIND("gasnet_coll_broadcast"),
    [AQ_LEGACY_SCATTER] = AQ_KIND("gasnet_coll_scatter"),
    [AQ_LEGACY_GATHER] = AQ_KIND("gasnet_coll_gather"),
    [AQ_LEGACY_GATHER_ALL] = AQ_KIND("gasnet_coll_gather_all"),
    [AQ_LEGACY_EXCHANGE] = AQ_KIND("gasnet_coll_exchange"),
};

static const enum aq_trace_kind aq_legacy_traces[] = {
    [AQ_LEGACY_BROADCAST] = AQ_TRACE_COLL_BROADCAST,
    [AQ_LEGACY_SCATTER] = AQ_TRACE_COLL_SCATTER,
    [AQ_LEGACY_GATHER] = AQ_TRACE_COLL_GATHER,
    [AQ_LEGACY_GATHER_ALL] = AQ_TRACE_COLL_GATHER_ALL,
    [AQ_LEGACY_EXCHANGE] = AQ_TRACE_COLL_EXCHANGE,
};

/* --- data --- */

#if GASNET_DEBUG
static bool aq_one_bit(int flags, int mask)
{
    return (flags & mask) != 0 && ((flags & mask) & ((flags & mask) - 1)) == 0;
}

static void aq_legacy_check(enum aq_legacy_kind kind, gex_TM_t tm, gasnet_image_t root,
                            size_t nbytes, int flags)
{
    const int in = GASNET_COLL_IN_NOSYNC | GASNET_COLL_IN_MYSYNC | GASNET_COLL_IN_ALLSYNC;
    const int out = GASNET_COLL_OUT_NOSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_OUT_ALLSYNC;
    const char *call = aq_legacy_kinds[kind].name;

    aq_coll_check_team(call, tm, 0);
    if (root >= aq_tm_head_of(tm)->size)
        aq_fatal("%s: image %u is outside 0..%u", call, root, aq_tm_head_of(tm)->size - 1);
    if (nbytes == 0)
        aq_fatal("%s: nbytes is 0; it is the size of a block", call);
    if (!aq_one_bit(flags, in) || !aq_one_bit(flags, out) || (flags & GASNET_COLL_LOCAL) == 0)
        aq_fatal("%s: flags are 0x%x; one GASNET_COLL_IN_*, one GASNET_COLL_OUT_* and "
                 "GASNET_COLL_LOCAL are needed",
                 call, (unsigned)flags);
}
#endif

static void *aq_block(const void *base, size_t nbytes, uint64_t index)
{
    return (char *)(uintptr_t)base + nbytes * index;
}

/* A block from each member to each, or from and to some: between every two members that
 * have business with each other, in an order that spreads the load. from and to say who gives
 * to whom (GEX_RANK_INVALID: everybody); blocks whether dst and src are arrays of blocks. */
struct aq_legacy_plan {
    gex_Rank_t from, to;
    bool src_blocks, dst_blocks;
};

static void aq_legacy_move(struct aq_sched *sched, const struct aq_coll_team *team,
                           const struct aq_legacy_plan *plan, void *dst, const void *src,
                           size_t nbytes)
{
    const uint64_t size = team->size, me = team->rank;
    const bool gives = plan->from == GEX_RANK_INVALID || plan->from == me;
    const bool gets = plan->to == GEX_RANK_INVALID || plan->to == me;

    if (gives && gets)
        aq_sched_copy(sched, aq_block(dst, nbytes, plan->dst_blocks ? me : 0),
                      aq_block(src, nbytes, plan->src_blocks ? me : 0), nbytes);
    for (uint64_t step = 1; step < size; step++) {
        const gex_Rank_t to = (gex_Rank_t)((me + step) % size);

        if (gives && (plan->to == GEX_RANK_INVALID || plan->to == to))
            aq_sched_send(sched, to, AQ_TAG_DATA, aq_block(src, nbytes, plan->src_blocks ? to : 0),
                          nbytes);
    }
    for (uint64_t step = 1; step < size; step++) {
        const gex_Rank_t from = (gex_Rank_t)((me + size - step) % size);

        if (gets && (plan->from == GEX_RANK_INVALID || plan->from == from))
            aq_sched_recv(sched, from, AQ_TAG_DATA,
                          aq_block(dst, nbytes, plan->dst_blocks ? from : 0), nbytes);
    }
}

static gex_Event_t aq_legacy_start(enum aq_legacy_kind kind, gasnet_team_handle_t handle, void *dst,
                                   gasnet_image_t root, const void *src, size_t nbytes, int flags)
{
    const gex_Rank_t all = GEX_RANK_INVALID;
    const struct aq_legacy_plan plans[] = {
        [AQ_LEGACY_SCATTER] = { root, all, true, false },
        [AQ_LEGACY_GATHER] = { all, root, false, true },
        [AQ_LEGACY_GATHER_ALL] = { all, all, false, true },
        [AQ_LEGACY_EXCHANGE] = { all, all, true, true },
    };
    const gex_TM_t tm = aq_coll_legacy_tm(handle);
    struct aq_coll_team *team;
    struct aq_sched *sched;
    AQ_TRACE_SCOPE(aq_legacy_traces[kind], GEX_RANK_INVALID, nbytes);

#if GASNET_DEBUG
    aq_legacy_check(kind, tm, root, nbytes, flags);
#endif
    team = aq_coll_team(tm);
    sched = aq_sched_begin(team, 0, NULL);
    if (flags & GASNET_COLL_IN_ALLSYNC)
        aq_sched_add_barrier(sched, team, AQ_TAG_ENTER);
    if (kind == AQ_LEGACY_BROADCAST) {
        const struct aq_coll_call call = {
            .kind = AQ_COLL_BROADCAST, .root = root, .dst = dst, .src = src, .nbytes = nbytes
        };

        aq_sched_add_broadcast(sched, team, &call, AQ_TAG_DATA);
    } else {
        aq_legacy_move(sched, team, &plans[kind], dst, src, nbytes);
    }
    if (flags & GASNET_COLL_OUT_ALLSYNC)
        aq_sched_add_barrier(sched, team, AQ_TAG_EXIT);
    return aq_coll_submitted(aq_sched_start(sched, &aq_legacy_kinds[kind]));
}

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
                                              gasnet_image_t srcimage, void *src, size_t nbytes,
                                              int flags)
{
    return aq_legacy_start(AQ_LEGACY_BROADCAST, team, dst, srcimage, src, nbytes, flags);
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags)
{
    gex_Event_Wait(gasnet_coll_broadcast_nb(team, dst, srcimage, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
                                            gasnet_image_t srcimage, void *src, size_t nbytes,
                                            int flags)
{
    return aq_legacy_start(AQ_LEGACY_SCATTER, team, dst, srcimage, src, nbytes, flags);
}

void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                         size_t nbytes, int flags)
{
    gex_Event_Wait(gasnet_coll_scatter_nb(team, dst, srcimage, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dstimage,
                                           void *dst, void *src, size_t nbytes, int flags)
{
    return aq_legacy_start(AQ_LEGACY_GATHER, team, dst, dstimage, src, nbytes, flags);
}

void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
                        size_t nbytes, int flags)
{
    gex_Event_Wait(gasnet_coll_gather_nb(team, dstimage, dst, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src,
                                               size_t nbytes, int flags)
{
    return aq_legacy_start(AQ_LEGACY_GATHER_ALL, team, dst, 0, src, nbytes, flags);
}

void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                            int flags)
{
    gex_Event_Wait(gasnet_coll_gather_all_nb(team, dst, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src,
                                             size_t nbytes, int flags)
{
    return aq_legacy_start(AQ_LEGACY_EXCHANGE, team, dst, 0, src, nbytes, flags);
}

void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
    gex_Event_Wait(gasnet_coll_exchange_nb(team, dst, src, nbytes, flags));
}

/* --- tuning: by name only --- */

void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
}

void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
}

void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
}

int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team, gasnet_coll_optype_t optype)
{
    (void)team, (void)optype;
    return 1;
}

void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout,
                               gasnet_coll_optype_t optype)
{
    (void)team, (void)tree_type, (void)fanout, (void)optype;
}

void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t dissemination_limit,
                                  gasnet_coll_optype_t optype)
{
    (void)team, (void)dissemination_limit, (void)optype;
}
