/*
 * aq_coll_legacy.c - the collectives that came before gex_Coll_*: gasnet_coll_*.
 *
 * Each is a schedule of messages (aq_coll_msg.c) in which owner and user of a block speak to each
 * other directly; ALLSYNC puts a barrier into the schedule, before or behind. Data never touch a
 * buffer before its owner has called, so MYSYNC needs nothing, and NOSYNC is served as MYSYNC.
 *
 * Barriers with names: the job's are gasnet_barrier_*(); another team's are reductions of
 * the names.
 *
 * Threads   as gex_Coll_*; a team's barrier has one caller at a time
 * Uses      extended/aq_coll.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "core/aq_poll.h"
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

static gex_TM_t aq_legacy_tm(gasnet_team_handle_t team)
{
    if (team != GASNET_TEAM_ALL)
        return team;
    return aq_job.tm == NULL ? GEX_TM_INVALID : aq_tm_handle(aq_job.tm); /* no job yet */
}

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
    const gex_TM_t tm = aq_legacy_tm(handle);
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

/* --- barriers of teams --- */

/* What is known of a phase's name: an element of a reduction. */
struct aq_team_name {
    int32_t mismatch, named, id;
};

struct aq_coll_named {
    bool open; /* between notify and a successful wait or try */
    gex_Event_t event;
    struct aq_team_name own, all;
};

bool aq_coll_named_is_open(const struct aq_coll_team *team)
{
    return team->named != NULL && team->named->open;
}

static void aq_team_name_merge(const void *left, void *right, size_t count, const void *cdata)
{
    const struct aq_team_name *x = left;
    struct aq_team_name *y = right;

    (void)cdata;
    for (size_t i = 0; i < count; i++) {
        if (x[i].mismatch || (x[i].named && y[i].named && x[i].id != y[i].id))
            y[i].mismatch = 1;
        if (x[i].named) {
            y[i].named = 1;
            y[i].id = x[i].id;
        }
    }
}

static struct aq_coll_named *aq_team_named(const char *call, gex_TM_t tm, bool open)
{
    struct aq_coll_team *team;

    aq_coll_check_team(call, tm, 0);
    team = aq_coll_team(tm);
    if (team->named == NULL && (team->named = calloc(1, sizeof(*team->named))) == NULL)
        aq_fatal("no memory for a team's barrier (%zu bytes)", sizeof(*team->named));
    if (team->named->open != open)
        aq_fatal("%s called %s; notify and wait alternate", call,
                 open ? "without gasnet_coll_barrier_notify"
                      : "before gasnet_coll_barrier_wait or _try ended the phase");
    return team->named;
}

void gasnet_coll_barrier_notify(gasnet_team_handle_t handle, int id, int flags)
{
    AQ_CHECK_STARTED();
    const gex_TM_t tm = aq_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_legacy_tm(GASNET_TEAM_ALL)) {
        gasnet_barrier_notify(id, flags);
        return;
    }
    named = aq_team_named("gasnet_coll_barrier_notify", tm, false);
    named->own.mismatch = (flags & GASNET_BARRIERFLAG_MISMATCH) != 0;
    named->own.named = (flags & (GASNET_BARRIERFLAG_MISMATCH | GASNET_BARRIERFLAG_ANONYMOUS)) == 0;
    named->own.id = id;

    const struct aq_coll_call call = { .kind = AQ_COLL_TO_ALL,
                                       .dst = &named->all,
                                       .src = &named->own,
                                       .unit = sizeof(named->own),
                                       .count = 1,
                                       .fn = aq_team_name_merge };

    named->event = aq_coll_submit(aq_coll_team(tm), &call);
    named->open = true;
}

static int aq_coll_named_finish(struct aq_coll_named *named, int id, int flags)
{
    const bool names = (flags & (GASNET_BARRIERFLAG_ANONYMOUS | GASNET_BARRIERFLAG_MISMATCH)) == 0;

    named->open = false;
    return named->all.mismatch || (flags & GASNET_BARRIERFLAG_MISMATCH) != 0
                   || (names && named->all.named && named->all.id != id)
               ? GASNET_ERR_BARRIER_MISMATCH
               : GASNET_OK;
}

int gasnet_coll_barrier_wait(gasnet_team_handle_t handle, int id, int flags)
{
    AQ_CHECK_STARTED();
    const gex_TM_t tm = aq_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_legacy_tm(GASNET_TEAM_ALL))
        return gasnet_barrier_wait(id, flags);
    named = aq_team_named("gasnet_coll_barrier_wait", tm, true);
    gex_Event_Wait(named->event);
    return aq_coll_named_finish(named, id, flags);
}

int gasnet_coll_barrier_try(gasnet_team_handle_t handle, int id, int flags)
{
    AQ_CHECK_STARTED();
    const gex_TM_t tm = aq_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_legacy_tm(GASNET_TEAM_ALL))
        return gasnet_barrier_try(id, flags);
    named = aq_team_named("gasnet_coll_barrier_try", tm, true);
    aq_poll(); /* clients spin on this call alone */
    if (gex_Event_Test(named->event) != GASNET_OK)
        return GASNET_ERR_NOT_READY;
    return aq_coll_named_finish(named, id, flags);
}

int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags)
{
    AQ_CHECK_STARTED();
    gasnet_coll_barrier_notify(team, id, flags);
    return gasnet_coll_barrier_wait(team, id, flags);
}

int gasnet_coll_barrier_result(gasnet_team_handle_t handle, int *id)
{
    AQ_CHECK_STARTED();
    const gex_TM_t tm = aq_legacy_tm(handle);
    const struct aq_coll_named *named;

    if (tm == aq_legacy_tm(GASNET_TEAM_ALL))
        return gasnet_barrier_result(id);
    named = aq_team_named("gasnet_coll_barrier_result", tm, false);
    if (named->all.mismatch || !named->all.named)
        return 1;
    *id = named->all.id;
    return 0;
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
