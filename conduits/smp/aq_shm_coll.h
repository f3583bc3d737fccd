/*
 * aq_shm_coll.h - internal header of the collectives over memory that all members of a team share.
 *
 *     aq_shm_coll.c          requests and their steps; submitting, progress
 *     aq_shm_coll_reduce.c   reduction of the operands of a step
 *     aq_shm_coll_direct.c   large data, which members read in each other's memory
 *     aq_shm_coll_stall.c    calls that cannot continue
 *     aq_shm_coll_team.c     the state of a team: making and freeing it
 *     aq_shm_coll_area.c     the shared memory
 *
 * Uses      extended/aq_coll.h, aq_shm_coll_area.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_SHM_COLL_H
#define AQ_SHM_COLL_H

#include <string.h>

#include "base/aq_log.h"
#include "conduits/smp/aq_shm_coll_area.h"
#include "extended/aq_coll.h"

struct aq_coll_req {
    struct aq_coll_req *next;
    struct aq_op *op;          /* NULL: its submitter still holds the team */
    struct aq_coll_part *part; /* this request as a part of op, a larger collective; or NULL */
    struct aq_coll_call call;
    uint64_t first; /* number of its first step */
    uint64_t cell;  /* number of its first cell of a block */
    uint32_t cells; /* cells of a step: a power of two; 0: data are in the line */
    size_t bytes;   /* of data in all */
    size_t chunk;   /* bytes in a step, but for the last */
    size_t steps;
    size_t posted, shared, finished; /* number of steps posted, shared, finished */
    /* members that have posted, shared the step that is being tested */
    uint32_t seen_posted, seen_shared;
    bool in_blocks; /* operands are in blocks; direct: chunks of the result are */
    bool scattered; /* members share the reduction */
    bool direct;    /* members read the operands in each other's memory */
    bool is_read;   /* direct: this member has read all of the next step, others may not have */
    bool over;
    bool is_own; /* made under the team's lock, and kept for the next call; otherwise freed */
};

struct aq_coll_local {
    aq_lock work; /* protects everything except where stated */
    struct aq_shm_area area;
    struct aq_coll_req *head, *tail; /* in order */
    struct aq_coll_req *posting;     /* the first request with a step that is not posted */
    struct aq_coll_req *sharing;     /* the first request with a step that is not reduced */
    struct aq_coll_req *free;
    uint64_t next_step, next_cell;     /* of the next call: the client's order protects them */
    uint64_t cell_user[AQ_AREA_CELLS]; /* the step that used it last, + 1 */
    void *temp;                        /* see aq_coll_temp() */
    struct aq_coll_req *_Atomic inbox; /* newest first; changed under aq_shm_colls.lock */
    atomic_bool
        /* in aq_shm_colls; set under its lock, cleared only by the thread that works on the team */
        active;
};

/* --- a step's data --- */

static inline size_t aq_step_bytes(const struct aq_coll_req *req, size_t step)
{
    const size_t at = step * req->chunk;

    return req->bytes - at < req->chunk ? req->bytes - at : req->chunk;
}

/* Address of a member's operand. */
static inline void *aq_step_data(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                 uint32_t member, size_t step)
{
    return req->in_blocks
               ? (void *)aq_shm_area_cell(&coll->area, member, req->cell + step * req->cells)
               : (void *)aq_shm_area_line(&coll->area, member, req->first + step)->data;
}

/* Offset of a member's chunk of a step, bytes. */
static inline size_t aq_step_offset(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                    size_t step, uint32_t member)
{
    const size_t unit = req->call.unit, count = aq_step_bytes(req, step) / unit;
    const size_t each = count / coll->area.size, more = count % coll->area.size;

    return (member * each + (member < more ? member : more)) * unit;
}

/* --- debug builds check that all members pass the same sizes --- */

#if GASNET_DEBUG
static inline void aq_step_note(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                size_t step)
{
    struct aq_shm_area_line *line = aq_shm_area_line(&coll->area, coll->area.me, req->first + step);

    line->bytes = req->bytes;
    line->in_place = req->call.kind == AQ_COLL_TO_ALL && req->call.dst == req->call.src;
}

/* Ends the job: the member takes part with other bytes than this rank, or in place if this rank
 * does not, or the reverse. */
_Noreturn void aq_step_differs(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                               uint32_t member, const struct aq_shm_area_line *line);

/* Called once the member has posted the step. */
static inline void aq_step_compare(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                   size_t step, uint32_t member)
{
    const struct aq_shm_area_line *line = aq_shm_area_line(&coll->area, member, req->first + step);
    const bool in_place = req->call.kind == AQ_COLL_TO_ALL && req->call.dst == req->call.src;

    if (line->bytes != req->bytes || line->in_place != in_place)
        aq_step_differs(coll, req, member, line);
}
#else
#define aq_step_note(coll, req, step)            ((void)0)
#define aq_step_compare(coll, req, step, member) ((void)0)
#endif

/* --- members that have posted or shared --- */

static inline bool aq_all_posted(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                 size_t step, uint32_t *seen)
{
    while (*seen < coll->area.size && aq_shm_area_posted(&coll->area, *seen, req->first + step)) {
        aq_step_compare(coll, req, step, *seen);
        ++*seen;
    }
    return *seen == coll->area.size;
}

static inline bool aq_all_shared(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                 size_t step, uint32_t *seen)
{
    while (*seen < coll->area.size && aq_shm_area_shared(&coll->area, *seen, req->first + step))
        ++*seen;
    return *seen == coll->area.size;
}

/* Returns true if the next store may complete something at other members. See core/aq_conduit.h. */
static inline bool aq_shm_coll_may_notify(void)
{
#if GASNET_SEGMENT_EVERYTHING
    return aq_job.remote->may_notify();
#else
    return true;
#endif
}

/** aq_coll_req_wake - this member has posted, or shared, a step and there are sleepers: wakes
 * those that can continue. */
void aq_coll_req_wake(const struct aq_coll_local *coll, const struct aq_coll_req *req, size_t step,
                      bool shared);

/* Returns true if a request waits for aq_shm_coll_open_part(). */
static inline bool aq_coll_req_closed(const struct aq_coll_req *req)
{
    /* acquire: pairs with the release in aq_shm_coll_open_part(); the operand is ready */
    return AQ_UNLIKELY(req->part != NULL)
           && atomic_load_explicit(&req->part->closed, memory_order_acquire);
}

/** aq_shm_coll_quiesce - returns when no thread works on the team any more; its requests are
 *  complete, but another thread's poll may be about to see that. */
void aq_shm_coll_quiesce(struct aq_coll_local *coll);

/* --- aq_shm_coll_stall.c --- */

/** aq_shm_coll_blame - a poll has made no progress for a team: records the missing member in the
 * team's first request. Requests complete in order, so a waiter waits for the first one first. */
void aq_shm_coll_blame(const struct aq_coll_local *coll);

/* --- aq_shm_coll_reduce.c --- */

/** aq_coll_req_combine - reduces all operands of a step into dst. Every member has posted it. */
void aq_coll_req_combine(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step);

/** aq_coll_req_share - reduces this member's chunk of the next step and shares it. False: operands
 * are missing. */
bool aq_coll_req_share(struct aq_coll_local *coll, struct aq_coll_req *req);

/** aq_coll_req_collect - copies all chunks of a step to dst. Every member has shared it. */
void aq_coll_req_collect(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step);

/** aq_coll_temp - space for two operands of AQ_COLL_TEMP bytes, each larger than a block. */
void *aq_coll_temp(struct aq_coll_local *coll);

/* --- aq_shm_coll_direct.c --- */

#define AQ_COLL_TEMP 262144u /* bytes of an operand that one system call reads, at most */

/* Bytes from which one copy by a system call costs less than two: 2.9 us against 2.0 (cores 64 ns
 * apart) or 7.6 (350 ns) for 16 KiB. */
#define AQ_DIRECT_MIN 16384u

/** aq_coll_direct_plan - decides whether members read this request's operands in each other's
 * memory, equally on all members, and plans its steps if so. req->call and req->bytes are set. */
bool aq_coll_direct_plan(const struct aq_coll_local *coll, struct aq_coll_req *req);

/** aq_coll_direct_note - writes this member's addresses into its line of a step. */
void aq_coll_direct_note(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                         size_t step);

/** aq_coll_direct_receive - copies the root's data of a step. The root has posted it. */
void aq_coll_direct_receive(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                            size_t step);

/** aq_coll_direct_reduce - reduces bytes of a step at offset `at`. Every member has posted it. */
void aq_coll_direct_reduce(struct aq_coll_local *coll, const struct aq_coll_req *req, size_t step,
                           size_t at, size_t bytes);

/** aq_coll_direct_collect - copies the other members' chunks of a step to dst. Every member has
 * shared it. */
void aq_coll_direct_collect(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                            size_t step);

/* --- entries of struct aq_coll_ops: core/aq_conduit.h --- */

bool aq_shm_coll_serves(const struct aq_coll_local *coll, const struct aq_coll_call *call);
bool aq_shm_coll_is_open(const struct aq_coll_local *coll);
gex_Event_t aq_shm_coll_submit(struct aq_coll_local *coll, const struct aq_coll_call *call);
void aq_shm_coll_submit_part(struct aq_coll_local *coll, const struct aq_coll_call *call,
                             struct aq_op *op, struct aq_coll_part *part);
void aq_shm_coll_open_part(struct aq_coll_local *coll, struct aq_coll_part *part);
unsigned aq_shm_coll_progress(void);

#endif
