/*
 * aq_coll_barrier.c - team barriers: the schedule of a barrier by messages, and the split-phase
 * barriers of teams, gasnet_coll_barrier_*().
 *
 * Schedule: dissemination; in round r member i sends to i + 2^r and receives from i - 2^r. In a
 * team of several neighborhoods their leaders do that, between a tree up and a tree down. In a
 * neighborhood whose members share memory the two trees are calls through shared memory:
 * aq_two_barrier() in aq_coll_levels.c. A team on one host has no messages: conduits/smp.
 *
 * Split-phase: the barrier of the job is gasnet_barrier_*() (aq_barrier.c). The barrier of another
 * team is a reduction of the names to all members.
 *
 * gex_Coll_BarrierNB() is in aq_barrier.c, for all teams.
 *
 * Threads   schedules: the caller's; split-phase: one caller of a team at a time, notify and wait
 *           perhaps on different threads
 * Uses      extended/aq_coll.h
 * See       Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <stdlib.h>

#include "base/aq_log.h"
#include "core/aq_poll.h"

#define AQ_BARRIER_UP   40u /* tags, behind those of the rounds */
#define AQ_BARRIER_DOWN 41u

/* --- the schedule --- */

void aq_sched_add_dissemination(struct aq_sched *sched, const struct aq_coll_ring *ring,
                                uint32_t tag)
{
    const uint64_t size = ring->size;
    uint32_t round = 0;

    for (uint64_t step = 1; step < size; step *= 2, round++) {
        aq_sched_send(sched, aq_ring_rank(ring, (gex_Rank_t)((ring->me + step) % size)),
                      tag + round, NULL, 0);
        aq_sched_recv(sched, aq_ring_rank(ring, (gex_Rank_t)((ring->me + size - step) % size)),
                      tag + round, NULL, 0);
    }
}

void aq_sched_add_barrier(struct aq_sched *sched, const struct aq_coll_team *team, uint32_t tag)
{
    const struct aq_coll_ring all = { .size = team->size, .me = team->rank };
    struct aq_tree tree;

    if (team->levels == NULL) {
        aq_sched_add_dissemination(sched, &all, tag);
        return;
    }
    aq_tree_local(&tree, team);
    for (unsigned i = 0; i < tree.children; i++)
        aq_sched_recv(sched, tree.child[i], tag + AQ_BARRIER_UP, NULL, 0);
    if (tree.parent == GEX_RANK_INVALID) {
        aq_sched_add_dissemination(sched, &team->levels->leaders, tag);
    } else {
        aq_sched_send(sched, tree.parent, tag + AQ_BARRIER_UP, NULL, 0);
        aq_sched_recv(sched, tree.parent, tag + AQ_BARRIER_DOWN, NULL, 0);
    }
    for (unsigned i = 0; i < tree.children; i++)
        aq_sched_send(sched, tree.child[i], tag + AQ_BARRIER_DOWN, NULL, 0);
}

/* --- split-phase barriers with names --- */

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
    const gex_TM_t tm = aq_coll_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_coll_legacy_tm(GASNET_TEAM_ALL)) {
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
    const gex_TM_t tm = aq_coll_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_coll_legacy_tm(GASNET_TEAM_ALL))
        return gasnet_barrier_wait(id, flags);
    named = aq_team_named("gasnet_coll_barrier_wait", tm, true);
    gex_Event_Wait(named->event);
    return aq_coll_named_finish(named, id, flags);
}

int gasnet_coll_barrier_try(gasnet_team_handle_t handle, int id, int flags)
{
    AQ_CHECK_STARTED();
    const gex_TM_t tm = aq_coll_legacy_tm(handle);
    struct aq_coll_named *named;

    if (tm == aq_coll_legacy_tm(GASNET_TEAM_ALL))
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
    const gex_TM_t tm = aq_coll_legacy_tm(handle);
    const struct aq_coll_named *named;

    if (tm == aq_coll_legacy_tm(GASNET_TEAM_ALL))
        return gasnet_barrier_result(id);
    named = aq_team_named("gasnet_coll_barrier_result", tm, false);
    if (named->all.mismatch || !named->all.named)
        return 1;
    *id = named->all.id;
    return 0;
}
