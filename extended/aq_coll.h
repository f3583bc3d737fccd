/*
 * aq_coll.h - collectives: what the parts of their implementation know of each other.
 *
 * A call (aq_coll.c, aq_coll_legacy.c) is checked, described by a struct aq_coll_call, and goes
 * one of three ways, by team, kind and size, the same at every member:
 *
 *   aq_job.local->coll  through memory that all members share, when they are on one host
 *   aq_coll_msg.c       by messages: a schedule of sends, receives and reductions that
 *                       aq_coll_barrier.c, aq_coll_bcast.c or aq_coll_reduce.c wrote for this
 *                       member, along the trees of aq_coll_tree.c; or aq_coll_levels.c, in two
 *                       levels: by messages among one member of each neighborhood, through shared
 *                       memory inside
 *
 * Threads   calls on one team come one after the other, as the client orders them; progress of
 *           any of them is any thread's
 * Uses      core/aq_job.h, core/aq_op.h; shared memory through aq_job.local->coll only
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_COLL_H
#define AQ_COLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnet_coll.h"

#include "core/aq_job.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_op.h"

struct aq_coll_local;
struct aq_coll_named;
struct aq_coll_levels;

/* What a team has for its collectives: tm->coll. */
struct aq_coll_team {
    uint64_t id;
    gex_Rank_t rank, size;
    const struct aq_tm *tm;
    uint32_t next;                 /* number of the next collective that goes by messages */
    struct aq_coll_local *shm;     /* memory that all members share, or NULL */
    struct aq_coll_levels *levels; /* who shares memory with whom, or NULL: all or nobody */
    struct aq_coll_named *named;   /* the team's legacy barrier, once it was used */
};

static inline gex_Rank_t aq_coll_jobrank(const struct aq_coll_team *team, gex_Rank_t rank)
{
    const gex_Rank_t *jobranks = team->tm->jobranks;

    return jobranks == NULL ? rank : jobranks[rank];
}

/* The team of a handle that has been checked. */
static inline struct aq_coll_team *aq_coll_team(gex_TM_t tm)
{
    return aq_tm(tm)->coll;
}

/* The team of a handle of gasnet_coll_*(). */
static inline gex_TM_t aq_coll_legacy_tm(gasnet_team_handle_t team)
{
    if (team != GASNET_TEAM_ALL)
        return team;
    return aq_job.tm == NULL ? GEX_TM_INVALID : aq_tm_handle(aq_job.tm); /* no job yet */
}

/** aq_coll_named_is_open - is the team between a gasnet_coll_barrier_notify and its wait? */
bool aq_coll_named_is_open(const struct aq_coll_team *team);

/* --- one call --- */

enum aq_coll_kind { AQ_COLL_BARRIER, AQ_COLL_BROADCAST, AQ_COLL_TO_ONE, AQ_COLL_TO_ALL };

struct aq_coll_call {
    enum aq_coll_kind kind;
    gex_Rank_t root;
    void *dst;       /* NULL where this member gets nothing */
    const void *src; /* NULL where this member gives nothing */
    size_t nbytes;   /* of a broadcast */
    /* reductions */
    size_t unit, count;     /* bytes of an element, elements */
    gex_Coll_ReduceFn_t fn; /* y = x (+) y, built in or the client's */
    const void *cdata;
    bool ordered;   /* operands must be combined in rank order */
    bool symmetric; /* x (+) y and y (+) x have the same bits, but for the payload of a NaN */
};

extern const struct aq_op_kind aq_coll_op_kinds[]; /* by enum aq_coll_kind */

/** aq_coll_submit - start a collective whose arguments are right, one way or the other. */
gex_Event_t aq_coll_submit(struct aq_coll_team *team, const struct aq_coll_call *call);

/* What a call returns, once its collective was submitted. Nobody polls for an event that is
 * GEX_EVENT_INVALID, and the member that always comes last, or is always the root, gets no other:
 * it must serve its peers here. An idle poll is so cheap that there is one each time. */
static inline gex_Event_t aq_coll_submitted(gex_Event_t event)
{
    if (event == GEX_EVENT_INVALID)
        aq_poll();
    return event;
}

/* y = x (+) y. A client's operator may do what is legal while an HSL is held, no more. */
static inline void aq_coll_apply(gex_Coll_ReduceFn_t fn, const void *x, void *y, size_t count,
                                 const void *cdata)
{
#if GASNET_DEBUG
    aq_thread_self()->hsls_locked++;
#endif
    fn(x, y, count, cdata);
#if GASNET_DEBUG
    aq_thread_self()->hsls_locked--;
#endif
}

/** aq_coll_check_team - debug: tm is a team and flags are 0, in ordinary context. */
void aq_coll_check_team(const char *call, gex_TM_t tm, gex_Flags_t flags);

/** aq_coll_progress - move collectives on; returns how much happened. Never blocks. */
unsigned aq_coll_progress(void);

/** aq_coll_init - register the handlers. */
void aq_coll_init(void);

/** aq_coll_is_open - has a collective over any team not ended yet? */
bool aq_coll_is_open(void);

/** aq_coll_fini - the job has ended: free what the collectives keep. */
void aq_coll_fini(void);

/* --- built-in operations: aq_coll_ops.c --- */

/** aq_coll_builtin - the loop of an operation on a type, or NULL if there is no such. */
gex_Coll_ReduceFn_t aq_coll_builtin(gex_DT_t dt, gex_OP_t op);

/** aq_coll_dt_size - bytes of a built-in type; 0 for others. */
size_t aq_coll_dt_size(gex_DT_t dt);

/* --- inside a neighborhood, through shared memory: core/aq_conduit.h --- */

#define AQ_COLL_NO_AREA   UINT32_MAX
#define AQ_COLL_JOB_AREAS 2u /* areas 0 and 1 are the job's, for good */

/* A call among the members of one neighborhood that is a part of a collective over more. */
struct aq_coll_part {
    void (*done)(struct aq_coll_part *part); /* in a poll or a call, by any thread */
    atomic_bool closed;
};

/* --- by messages: aq_coll_msg.c --- */

/* A schedule being written, then carried out: steps one after the other. Receives are ready for
 * their data from the start, whichever step is being carried out. */
struct aq_sched;

/** aq_sched_begin - a schedule for the team's next collective; temp bytes go with it, aligned. */
struct aq_sched *aq_sched_begin(struct aq_coll_team *team, size_t temp_bytes, void **temp_out);

/* Data for or from a member. A pair of members uses a tag once in a schedule. */
void aq_sched_send(struct aq_sched *sched, gex_Rank_t to, uint32_t tag, const void *src,
                   size_t nbytes);
void aq_sched_recv(struct aq_sched *sched, gex_Rank_t from, uint32_t tag, void *dst, size_t nbytes);
/* dst = src. Ranges are disjoint or the same. */
void aq_sched_copy(struct aq_sched *sched, void *dst, const void *src, size_t nbytes);
/* y = x (+) y of a call, for count elements. unsent: no send before reads y; if one may, the step
 * waits until all sends have left. */
void aq_sched_reduce(struct aq_sched *sched, const struct aq_coll_call *call, const void *x,
                     void *y, size_t count, bool unsent);

/* A call inside the neighborhood, through shm, started with the schedule; returns its number.
 * closed: the call begins at the step aq_sched_open(). The schedule must wait for the call, or for
 * a later one through the same memory: other threads may be at it longer than its outcome tells. */
unsigned aq_sched_local(struct aq_sched *sched, struct aq_coll_local *shm,
                        const struct aq_coll_call *call, bool closed);
void aq_sched_open(struct aq_sched *sched, unsigned local);
void aq_sched_wait(struct aq_sched *sched, unsigned local);

/* Temporary memory in equal buffers. */
struct aq_temp {
    char *memory;
    size_t stride;
};

static inline void *aq_temp_buffer(const struct aq_temp *temp, size_t index)
{
    return temp->memory + index * temp->stride;
}

/** aq_sched_with_buffers - a schedule with so many buffers of so many bytes. */
struct aq_sched *aq_sched_with_buffers(struct aq_coll_team *team, size_t bytes, size_t buffers,
                                       struct aq_temp *temp_out);

/* --- who sends to whom: aq_coll_tree.c --- */

/* Some of a team's members in order of rank, and which of them we are. Another member can stand for
 * one of them. */
struct aq_coll_ring {
    const gex_Rank_t *rank; /* [size]; NULL: all members */
    gex_Rank_t size, me;
    bool has_deputy;
    gex_Rank_t deputy_at, deputy; /* for whom, by index; who */
};

static inline gex_Rank_t aq_ring_rank(const struct aq_coll_ring *ring, gex_Rank_t at)
{
    if (AQ_UNLIKELY(ring->has_deputy && at == ring->deputy_at))
        return ring->deputy;
    return ring->rank == NULL ? at : ring->rank[at];
}

/* The neighborhoods that the members of a team are in. */
struct aq_coll_levels {
    struct aq_coll_ring leaders; /* the first member of each; me: the one of mine */
    struct aq_coll_ring local;   /* the members in mine */
    bool in_a_row;               /* the ranks of each neighborhood's members follow each other */
    bool shared;                 /* every neighborhood of several members has memory for them: */
    struct aq_coll_local *up;    /* for what goes to the leader, NULL without others, */
    struct aq_coll_local *down;  /* and for what comes from it */
    gex_Rank_t ranks[];          /* what the two rings consist of */
};

/** aq_levels_make - NULL if there is nothing to be gained by a second level. */
struct aq_coll_levels *aq_levels_make(const struct aq_coll_team *team);

/** aq_levels_share - get memory for the neighborhood. Collective over a team with levels. */
void aq_levels_share(struct aq_coll_team *team);
void aq_levels_free(struct aq_coll_levels *levels);

/** aq_levels_group - index, among the leaders, of a member's neighborhood. */
gex_Rank_t aq_levels_group(const struct aq_coll_team *team, gex_Rank_t rank);

/** aq_ring_find - index of a member in a ring; the ring's size if it is not in it. */
gex_Rank_t aq_ring_find(const struct aq_coll_ring *ring, gex_Rank_t rank);

#define AQ_TREE_CHILDREN 64 /* 32 on each level */

struct aq_tree {
    gex_Rank_t parent;                  /* GEX_RANK_INVALID at the root */
    gex_Rank_t child[AQ_TREE_CHILDREN]; /* the farthest first */
    unsigned children;
};

/* Binomial: the fewest hops. Binary: nobody sends more than twice on a level. */
enum aq_tree_shape { AQ_TREE_BINOMIAL, AQ_TREE_BINARY };

/** aq_tree_make - this member's part of a tree over the team. levels: the team's, or NULL to take
 *  no notice of them. If root is 0 and they are NULL or in a row, each member's subtree is of
 *  consecutive ranks that begin with its own. */
void aq_tree_make(struct aq_tree *tree, enum aq_tree_shape shape, const struct aq_coll_team *team,
                  const struct aq_coll_levels *levels, gex_Rank_t root);

/** aq_tree_local - the same over this member's neighborhood, from its leader; only if there are
 * levels. */
void aq_tree_local(struct aq_tree *tree, const struct aq_coll_team *team);

/** aq_tree_ring - the same over a ring, from the member at index root. */
void aq_tree_ring(struct aq_tree *tree, enum aq_tree_shape shape, const struct aq_coll_ring *ring,
                  gex_Rank_t root);

/** aq_sched_start - carry it out; returns the operation's event. */
gex_Event_t aq_sched_start(struct aq_sched *sched, const struct aq_op_kind *kind);

/** aq_msg_is_open - has a schedule of a team's not ended yet? */
bool aq_msg_is_open(uint64_t team);

unsigned aq_msg_progress(void);
void aq_msg_init(void);
void aq_msg_fini(void);

/* --- the schedules: aq_coll_barrier.c, aq_coll_bcast.c, aq_coll_reduce.c --- */

struct aq_sched *aq_sched_of_call(struct aq_coll_team *team, const struct aq_coll_call *call);
struct aq_sched *aq_sched_of_reduction(struct aq_coll_team *team, const struct aq_coll_call *call);
void aq_sched_add_barrier(struct aq_sched *sched, const struct aq_coll_team *team, uint32_t tag);
void aq_sched_add_broadcast(struct aq_sched *sched, const struct aq_coll_team *team,
                            const struct aq_coll_call *call, uint32_t tag);

/** aq_sched_add_dissemination - a barrier of the members of a ring. */
void aq_sched_add_dissemination(struct aq_sched *sched, const struct aq_coll_ring *ring,
                                uint32_t tag);

/** aq_chunk_bytes - in which parts a broadcast goes down a tree; nbytes: in one. */
size_t aq_chunk_bytes(size_t nbytes, gex_Rank_t members);

/** aq_sched_gather - receive what a tree's children have and combine it with src, which is not
 *  written; a buffer for each child. Returns where the combination is. */
const void *aq_sched_gather(struct aq_sched *sched, const struct aq_coll_call *call,
                            const struct aq_tree *tree, const void *src,
                            const struct aq_temp *temp);

/** aq_doubling_buffers, aq_sched_add_doubling - a reduction to all members of a ring of at least 2
 *  of few bytes: this one brings src, and the result ends in call->dst. */
size_t aq_doubling_buffers(gex_Rank_t members);
void aq_sched_add_doubling(struct aq_sched *sched, const struct aq_coll_team *team,
                           const struct aq_coll_call *call, const struct aq_coll_ring *ring,
                           const void *src, const struct aq_temp *temp);

/* --- two levels: aq_coll_levels.c --- */

/** aq_levels_serve - does a call go in two levels? The same at every member. */
bool aq_levels_serve(const struct aq_coll_team *team, const struct aq_coll_call *call);
struct aq_sched *aq_levels_of_call(struct aq_coll_team *team, const struct aq_coll_call *call);

/* Tags: each phase of a schedule has a range of its own. */
#define AQ_TAG_DATA   0u
#define AQ_TAG_DOUBLE 0x30000000u
#define AQ_TAG_RESULT 0x40000000u
#define AQ_TAG_ENTER  0x50000000u
#define AQ_TAG_EXIT   0x60000000u

#endif
