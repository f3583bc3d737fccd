/*
 * aq_coll.c - collectives: the calls, their checks, and what a team keeps for them.
 *
 * Threads   calls on one team come one after the other, as the client orders them; calls on
 *           different teams, and progress, on any threads at once
 * Promise   no call blocks or waits for another member; polling alone ends every collective
 * Uses      extended/aq_coll.h: aq_job.local->coll and aq_coll_msg.c do the work
 * See       GASNet-EX specification 0.19, Collectives
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "core/aq_thread.h"
#include "core/aq_tm.h"
#include "core/aq_trace.h"
#include "core/aq_callback.h"
#include "extended/aq_barrier.h"

#define AQ_WAITS_IN(call) .waits_in = "gex_Event_Wait (" call ")", .name = call, .hides_lc = true

const struct aq_op_kind aq_coll_op_kinds[] = {
    [AQ_COLL_BARRIER] = { AQ_WAITS_IN("gex_Coll_BarrierNB") },
    [AQ_COLL_BROADCAST] = { AQ_WAITS_IN("gex_Coll_BroadcastNB") },
    [AQ_COLL_TO_ONE] = { AQ_WAITS_IN("gex_Coll_ReduceToOneNB") },
    [AQ_COLL_TO_ALL] = { AQ_WAITS_IN("gex_Coll_ReduceToAllNB") },
};

/* --- teams --- */

void aq_callback_team_created(struct aq_tm *tm)
{
    struct aq_coll_team *team = calloc(1, sizeof(*team));

    if (team == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", tm->head.size, sizeof(*team));
    team->id = tm->id;
    team->rank = tm->head.rank;
    team->size = tm->head.size;
    team->tm = tm;
    tm->coll = team;
    /* the reference version knows one level only */
    team->levels = (aq_job.local->caps & AQ_CAP_LOAD_STORE) != 0 ? aq_levels_make(team) : NULL;
    team->shm = aq_job.local->coll->make(team);
    if (team->levels != NULL)
        aq_levels_share(team);
}

static bool aq_coll_team_is_open(const struct aq_coll_team *team)
{
    return aq_coll_named_is_open(team)
           || (team->shm != NULL && aq_job.local->coll->is_open(team->shm))
           || aq_msg_is_open(team->id);
}

/* Everybody has called gex_TM_Destroy, or would by the client's word not mind if we went on: what
 * is open now may never end, and the teams' memory would be given away under it. */
static void aq_coll_check_idle(const struct aq_coll_team *team)
{
    const bool named = aq_coll_named_is_open(team);

    if (aq_coll_team_is_open(team))
        aq_fatal(
            "gex_TM_Destroy: %s over this team of %u members is still open at its rank %u; all "
            "collectives over a team must be synchronised, by every member, before it is destroyed",
            named ? "a gasnet_coll_barrier_notify" : "a collective", team->size, team->rank);
}

static void aq_coll_free_team(struct aq_tm *tm)
{
    struct aq_coll_team *team = tm->coll;

    tm->coll = NULL;
    if (team->shm != NULL)
        aq_job.local->coll->free(team->shm);
    aq_levels_free(team->levels);
    free(team->named);
    free(team);
}

void aq_callback_team_destroyed(struct aq_tm *tm)
{
    aq_coll_check_idle(tm->coll);
    aq_coll_free_team(tm);
}

static bool aq_coll_any_open; /* during aq_coll_is_open() */

static void aq_coll_look_open(struct aq_tm *tm)
{
    aq_coll_any_open = aq_coll_any_open || aq_coll_team_is_open(tm->coll);
}

bool aq_coll_is_open(void)
{
    aq_coll_any_open = false;
    aq_tm_each_team(aq_coll_look_open);
    return aq_coll_any_open;
}

void aq_coll_fini(void)
{
    aq_tm_each_team(aq_coll_free_team);
    aq_msg_fini();
}

/* --- starting --- */

/* A team of one: nobody to wait for. */
static void aq_coll_alone(const struct aq_coll_call *call)
{
    const size_t nbytes = call->kind == AQ_COLL_BROADCAST ? call->nbytes
                          : call->kind == AQ_COLL_BARRIER ? 0
                                                          : call->unit * call->count;

    if (nbytes > 0 && call->dst != call->src)
        memcpy(call->dst, call->src, nbytes);
}

gex_Event_t aq_coll_submit(struct aq_coll_team *team, const struct aq_coll_call *call)
{
    if (AQ_LIKELY(aq_job.local->coll->serves(team->shm, call)))
        return aq_coll_submitted(aq_job.local->coll->submit(team->shm, call));
    if (team->size == 1) {
        aq_coll_alone(call);
        return aq_coll_submitted(GEX_EVENT_INVALID);
    }
    return aq_coll_submitted(
        aq_sched_start(aq_sched_of_call(team, call), &aq_coll_op_kinds[call->kind]));
}

unsigned aq_coll_progress(void)
{
    return aq_job.local->coll->progress() + aq_msg_progress();
}

void aq_coll_init(void)
{
    aq_msg_init();
}

/* --- debug checks --- */

void aq_coll_check_team(const char *call, gex_TM_t tm, gex_Flags_t flags)
{
#if GASNET_DEBUG
    aq_thread_check_main(call);
    if (tm == GEX_TM_INVALID || aq_tm(tm)->is_pair)
        aq_fatal("%s: tm is %s, not a team", call,
                 tm == GEX_TM_INVALID ? "GEX_TM_INVALID" : "a TM-pair");
    if (flags != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0", call, (unsigned)flags);
    aq_barrier_check_mixing(call, tm);
#else
    (void)call, (void)tm, (void)flags;
#endif
}

#if GASNET_DEBUG

static void aq_coll_check_root(const char *call, gex_TM_t tm, gex_Rank_t root)
{
    if (root >= aq_tm_head_of(tm)->size)
        aq_fatal("%s: root is %u; the team's ranks are 0..%u", call, root,
                 aq_tm_head_of(tm)->size - 1);
}

static void aq_coll_check_overlap(const char *call, const void *dst, const void *src, size_t nbytes)
{
    const uintptr_t d = (uintptr_t)dst, s = (uintptr_t)src;

    if (d != s && d < s + nbytes && s < d + nbytes)
        aq_fatal("%s: dst [%p, +%zu) and src [%p, +%zu) overlap; they must be the same or disjoint",
                 call, dst, nbytes, src, nbytes);
}

static void aq_coll_check_address(const char *call, const char *name, const void *addr)
{
    if (addr == NULL)
        aq_fatal("%s: %s is NULL", call, name);
}

static void aq_coll_check_broadcast(gex_TM_t tm, gex_Rank_t root, const void *dst, const void *src,
                                    size_t nbytes)
{
    const char *call = "gex_Coll_BroadcastNB";

    aq_coll_check_root(call, tm, root);
    if (nbytes == 0)
        return;
    aq_coll_check_address(call, "dst", dst);
    if (root != aq_tm_head_of(tm)->rank)
        return;
    aq_coll_check_address(call, "src", src);
    aq_coll_check_overlap(call, dst, src, nbytes);
}

static bool aq_op_is_user(gex_OP_t op)
{
    return op == GEX_OP_USER || op == GEX_OP_USER_NC;
}

static void aq_coll_check_types(const char *call, gex_DT_t dt, size_t unit, size_t count,
                                gex_OP_t op, gex_Coll_ReduceFn_t user_op)
{
    const size_t size = aq_coll_dt_size(dt);

    if (dt != GEX_DT_USER && size == 0)
        aq_fatal("%s: dt is 0x%x; it must be one GEX_DT_*", call, (unsigned)dt);
    if (unit == 0)
        aq_fatal("%s: dt_sz is 0; it is the size of one element in bytes", call);
    if (size != 0 && unit != size)
        aq_fatal("%s: dt_sz is %zu; elements of this type have %zu bytes", call, unit, size);
    if (count == 0)
        aq_fatal("%s: dt_cnt is 0; it must be 1 or more", call);
    if (unit > SIZE_MAX / count)
        aq_fatal("%s: %zu elements of %zu bytes do not fit the address space", call, count, unit);
    if (aq_op_is_user(op) && user_op == NULL)
        aq_fatal("%s: user_op is NULL, but op is GEX_OP_USER%s", call,
                 op == GEX_OP_USER ? "" : "_NC");
    if (!aq_op_is_user(op) && dt == GEX_DT_USER)
        aq_fatal("%s: op is 0x%x; GEX_DT_USER goes with GEX_OP_USER and GEX_OP_USER_NC only", call,
                 (unsigned)op);
    if (!aq_op_is_user(op) && aq_coll_builtin(dt, op) == NULL)
        aq_fatal(
            "%s: op 0x%x does not reduce elements of type 0x%x; there are ADD, MULT, MIN and MAX, "
            "and for integers AND, OR and XOR",
            call, (unsigned)op, (unsigned)dt);
}

static void aq_coll_check_buffers(const char *call, bool gets, const void *dst, const void *src,
                                  size_t nbytes)
{
    aq_coll_check_address(call, "src", src);
    if (!gets)
        return;
    aq_coll_check_address(call, "dst", dst);
    aq_coll_check_overlap(call, dst, src, nbytes);
}

#define AQ_COLL_CHECK(statement) statement
#else
#define AQ_COLL_CHECK(statement) ((void)0)
#endif

/* --- calls --- */

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                 size_t nbytes, gex_Flags_t flags)
{
    AQ_TRACE_SCOPE(AQ_TRACE_COLL_BROADCAST, GEX_RANK_INVALID, nbytes);

    aq_coll_check_team("gex_Coll_BroadcastNB", tm, flags);
    AQ_COLL_CHECK(aq_coll_check_broadcast(tm, root, dst, src, nbytes));
    if (nbytes == 0)
        return aq_coll_submitted(GEX_EVENT_INVALID); /* everywhere: nobody's numbers move */

    const struct aq_coll_call call = {
        .kind = AQ_COLL_BROADCAST, .root = root, .dst = dst, .src = src, .nbytes = nbytes
    };

    return aq_coll_submit(aq_coll_team(tm), &call);
}

static struct aq_coll_call aq_coll_reduction(enum aq_coll_kind kind, gex_Rank_t root, void *dst,
                                             const void *src, gex_DT_t dt, size_t unit,
                                             size_t count, gex_OP_t op, gex_Coll_ReduceFn_t user_op,
                                             const void *cdata)
{
    const bool user = op == GEX_OP_USER || op == GEX_OP_USER_NC;

    return (struct aq_coll_call){ .kind = kind,
                                  .root = root,
                                  .dst = dst,
                                  .src = src,
                                  .unit = unit,
                                  .count = count,
                                  .fn = user ? user_op : aq_coll_builtin(dt, op),
                                  .cdata = cdata,
                                  .ordered = op == GEX_OP_USER_NC,
                                  .symmetric = !user && op != GEX_OP_MIN && op != GEX_OP_MAX };
}

gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                   gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags)
{
    AQ_TRACE_SCOPE(AQ_TRACE_COLL_REDUCE, GEX_RANK_INVALID, dt_sz * dt_cnt);
    const char *name = "gex_Coll_ReduceToOneNB";

    aq_coll_check_team(name, tm, flags);
    AQ_COLL_CHECK(aq_coll_check_root(name, tm, root));
    AQ_COLL_CHECK(aq_coll_check_types(name, dt, dt_sz, dt_cnt, op, user_op));
    AQ_COLL_CHECK(
        aq_coll_check_buffers(name, root == aq_tm_head_of(tm)->rank, dst, src, dt_sz * dt_cnt));
    (void)name;

    const struct aq_coll_call call = aq_coll_reduction(AQ_COLL_TO_ONE, root, dst, src, dt, dt_sz,
                                                       dt_cnt, op, user_op, user_cdata);

    return aq_coll_submit(aq_coll_team(tm), &call);
}

gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt,
                                   size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags)
{
    AQ_TRACE_SCOPE(AQ_TRACE_COLL_REDUCE_ALL, GEX_RANK_INVALID, dt_sz * dt_cnt);
    const char *name = "gex_Coll_ReduceToAllNB";

    aq_coll_check_team(name, tm, flags);
    AQ_COLL_CHECK(aq_coll_check_types(name, dt, dt_sz, dt_cnt, op, user_op));
    AQ_COLL_CHECK(aq_coll_check_buffers(name, true, dst, src, dt_sz * dt_cnt));
    (void)name;

    const struct aq_coll_call call =
        aq_coll_reduction(AQ_COLL_TO_ALL, 0, dst, src, dt, dt_sz, dt_cnt, op, user_op, user_cdata);

    return aq_coll_submit(aq_coll_team(tm), &call);
}
