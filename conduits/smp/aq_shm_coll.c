/*
 * aq_shm_coll.c - collectives of teams on one host, through memory that all members share.
 *
 * A call becomes a request of one or more steps; a step is as much data as a block holds. In a step
 * every member that contributes data posts its operand. Every member that receives data waits until
 * the operands are there and reads the result directly from them: a barrier or a small reduction to
 * all costs one store and one load for each other member. Steps of one request or of several are
 * posted ahead while lines and blocks are free. Large data therefore flows in a pipeline, and any
 * number of calls can be outstanding. They complete in order.
 *
 * Owns      one struct aq_coll_local for each team: its requests; the list of teams with open
 *           requests
 * Threads   one thread at a time works on a team (lock work, which is only ever tried). A call that
 *           finds another thread at work leaves its request in the team's inbox. The list and the
 *           inboxes are under aq_shm_colls.lock. No spinning lock is held while a client's operator
 *           runs
 * Promise   a call never blocks; polls of any thread make progress on every request; a member that
 *           enables a sleeping member to continue wakes it
 * Uses      aq_shm_coll.h, core/aq_op.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/smp/aq_shm_coll.h"

#include <stdlib.h>

#include "base/aq_state.h"
#include "extended/aq_barrier.h"

#define AQ_SHM_COLLS       18    /* the largest number of areas, see aq_shm_area_plan() */
#define AQ_SHM_SCATTER_MIN 2048u /* bytes from which members share the combining */

static struct {
    aq_lock lock;
    atomic_uint count; /* polls read it before they lock */
    struct aq_coll_local
        *open[AQ_SHM_COLLS]; /* teams that have requests, or had some at the last poll */
} aq_shm_colls AQ_JOB_STATE;

/* --- wakeups --- */

/* This member has published something and there are sleepers: wakes those that can continue. If two
 * members publish last at the same time, each fences before it scans, so at least one of them sees
 * both. */
__attribute__((noinline, cold)) void aq_coll_req_wake(const struct aq_coll_local *coll,
                                                      const struct aq_coll_req *req, size_t step,
                                                      bool shared)
{
    uint32_t seen = 0;

    atomic_thread_fence(memory_order_seq_cst);
    if (req->call.kind != AQ_COLL_BROADCAST
        && !(shared ? aq_all_shared(coll, req, step, &seen)
                    : aq_all_posted(coll, req, step, &seen)))
        return;
    if (req->call.kind == AQ_COLL_TO_ONE && (shared || !req->scattered)) {
        if (req->call.root != coll->area.me)
            aq_shm_area_wake(&coll->area, req->call.root);
    } else {
        aq_shm_area_wake_all(&coll->area);
    }
}

/* --- posting --- */

static bool aq_coll_req_sends(const struct aq_coll_local *coll, const struct aq_coll_req *req)
{
    return req->call.kind != AQ_COLL_BROADCAST || req->call.root == coll->area.me;
}

/* The cells of a block that a step uses. */
static uint64_t *aq_coll_req_users(struct aq_coll_local *coll, const struct aq_coll_req *req,
                                   size_t step)
{
    return &coll->cell_user[(req->cell + step * req->cells) % AQ_AREA_CELLS];
}

/* Returns true if this member may write the line, and the cells, of a step. */
static bool aq_coll_req_has_slot(struct aq_coll_local *coll, const struct aq_coll_req *req,
                                 size_t step, const uint64_t *users)
{
    const uint64_t number = req->first + step;
    uint64_t need = number < AQ_AREA_LINES ? 0 : number - AQ_AREA_LINES + 1;

    for (uint32_t i = 0; i < req->cells; i++)
        if (users[i] > need)
            need = users[i];
    return aq_shm_area_all_done(&coll->area, need);
}

/* Posts the operand of the next step. Returns false if there is no space yet. */
static inline bool aq_coll_req_post(struct aq_coll_local *coll, struct aq_coll_req *req)
{
    const struct aq_coll_call *call = &req->call;
    const size_t step = req->posted, at = step * req->chunk;
    const uint64_t number = req->first + step;
    uint64_t *users = aq_coll_req_users(coll, req, step);

    if (aq_coll_req_closed(req))
        return false;
    if (aq_coll_req_sends(coll, req)) {
        const size_t bytes = aq_step_bytes(req, step);

        if (!aq_coll_req_has_slot(coll, req, step, users) || !aq_shm_coll_may_notify())
            return false;
        if (req->direct) {
            aq_coll_direct_note(coll, req, step);
        } else if (bytes > 0) {
            memcpy(aq_step_data(coll, req, coll->area.me, step), (const char *)call->src + at,
                   bytes);
            if (call->kind == AQ_COLL_BROADCAST && call->dst != call->src)
                memcpy((char *)call->dst + at, (const char *)call->src + at, bytes);
        }
        aq_step_note(coll, req, step);
        /* release: pairs with the acquire in aq_shm_area_posted() */
        atomic_store_explicit(&aq_shm_area_line(&coll->area, coll->area.me, number)->posted,
                              number + 1, memory_order_release);
        if (aq_shm_area_sleepers())
            aq_coll_req_wake(coll, req, step, false);
    }
    for (uint32_t i = 0; i < req->cells; i++)
        users[i] = number + 1;
    req->posted++;
    return true;
}

/* --- finishing --- */

static bool aq_reduction_finish(struct aq_coll_local *coll, struct aq_coll_req *req, size_t step)
{
    const bool gets = req->call.kind == AQ_COLL_TO_ALL || req->call.root == coll->area.me;

    if (req->scattered) {
        if (req->shared == step || (gets && !aq_all_shared(coll, req, step, &req->seen_shared)))
            return false;
        if (gets && req->direct)
            aq_coll_direct_collect(coll, req, step);
        else if (gets)
            aq_coll_req_collect(coll, req, step);
    } else if (gets) {
        if (!aq_all_posted(coll, req, step, &req->seen_posted))
            return false;
        if (req->direct)
            aq_coll_direct_reduce(coll, req, step, 0, aq_step_bytes(req, step));
        else
            aq_coll_req_combine(coll, req, step);
    }
    return true;
}

static bool aq_broadcast_finish(const struct aq_coll_local *coll, const struct aq_coll_req *req,
                                size_t step)
{
    const struct aq_coll_call *call = &req->call;

    if (call->root == coll->area.me) {
        if (req->direct && call->dst != call->src)
            memcpy(call->dst, call->src, req->bytes);
        return true;
    }
    if (!aq_shm_area_posted(&coll->area, call->root, req->first + step))
        return false;
    aq_step_compare(coll, req, step, call->root);
    if (req->direct)
        aq_coll_direct_receive(coll, req, step);
    else if (req->bytes > 0)
        memcpy((char *)call->dst + step * req->chunk, aq_step_data(coll, req, call->root, step),
               aq_step_bytes(req, step));
    return true;
}

/* Reads what this member receives of a step. Returns false if it is not there yet. */
static inline bool aq_coll_req_read(struct aq_coll_local *coll, struct aq_coll_req *req,
                                    size_t step)
{
    const enum aq_coll_kind kind = req->call.kind;
    const bool is_read = kind == AQ_COLL_BARRIER ? aq_all_posted(coll, req, step, &req->seen_posted)
                         : kind == AQ_COLL_BROADCAST ? aq_broadcast_finish(coll, req, step)
                                                     : aq_reduction_finish(coll, req, step);

    if (is_read)
        aq_shm_area_set_done(&coll->area, req->first + step + 1);
    return is_read;
}

/* Returns true if other members read this member's memory, in a direct request. */
static bool aq_coll_req_is_source(const struct aq_coll_local *coll, const struct aq_coll_req *req)
{
    const bool is_root = req->call.root == coll->area.me;

    return req->call.kind == AQ_COLL_TO_ALL || is_root == (req->call.kind == AQ_COLL_BROADCAST);
}

/* The next step of a direct request: reads; then, if others read this member's memory, waits until
 * they have. Returns false if that is not possible yet. Reading alone counts as progress: the
 * caller looks again, so that no member goes to sleep after the look that announced its wait. */
static bool aq_coll_direct_advance(struct aq_coll_local *coll, struct aq_coll_req *req, size_t step)
{
    if (!req->is_read) {
        /* what this member has read may let the others complete */
        if (!aq_shm_coll_may_notify() || !aq_coll_req_read(coll, req, step))
            return false;
        req->is_read = aq_coll_req_is_source(coll, req);
    } else if (aq_shm_area_all_done(&coll->area, req->first + step + 1)) {
        req->is_read = false;
    } else {
        return false;
    }
    req->finished += !req->is_read;
    return true;
}

/* Advances the next step of a request. Returns false if that is not possible yet. */
static inline bool aq_coll_req_advance(struct aq_coll_local *coll, struct aq_coll_req *req)
{
    const size_t step = req->finished;

    if (req->posted == step)
        return false;
    if (AQ_UNLIKELY(req->direct)) {
        if (!aq_coll_direct_advance(coll, req, step))
            return false;
    } else if (aq_coll_req_read(coll, req, step)) {
        req->finished++;
    } else {
        return false;
    }
    if (req->finished != step) {
        if (!req->scattered)
            req->seen_posted = 0;
        req->seen_shared = 0;
    }
    return true;
}

/* --- requests; the caller holds lock work --- */

static void aq_shm_coll_append(struct aq_coll_local *coll, struct aq_coll_req *req)
{
    req->next = NULL;
    if (coll->head == NULL)
        coll->head = req;
    else
        coll->tail->next = req;
    coll->tail = req;
    if (coll->posting == NULL)
        coll->posting = req;
    if (coll->sharing == NULL)
        coll->sharing = req;
}

static void aq_coll_req_free(struct aq_coll_local *coll, struct aq_coll_req *req)
{
    if (!req->is_own) { /* came through the inbox */
        free(req);
        return;
    }
    req->next = coll->free;
    coll->free = req;
}

static void aq_shm_coll_pop(struct aq_coll_local *coll)
{
    struct aq_coll_req *req = coll->head;

    coll->head = req->next;
    req->over = true;
    if (req->part != NULL) {
        req->part->done(req->part);
        aq_coll_req_free(coll, req);
    } else if (req->op != NULL) {
        aq_op_end(req->op, GEX_EC_GET, 1);
        aq_coll_req_free(coll, req);
    }
}

/* Makes progress on a team's requests. Returns how many times one of them advanced. */
static inline unsigned aq_shm_coll_advance(struct aq_coll_local *coll)
{
    unsigned happened = 0, before;

    do {
        before = happened;
        while (coll->posting != NULL
               && (coll->posting->posted == coll->posting->steps
                   || aq_coll_req_post(coll, coll->posting))) {
            happened++;
            if (coll->posting->posted == coll->posting->steps)
                coll->posting = coll->posting->next;
        }
        while (coll->sharing != NULL
               && (!coll->sharing->scattered || aq_coll_req_share(coll, coll->sharing))) {
            happened++;
            if (!coll->sharing->scattered || coll->sharing->shared == coll->sharing->steps)
                coll->sharing = coll->sharing->next;
        }
        while (coll->head != NULL && aq_coll_req_advance(coll, coll->head)) {
            happened++;
            if (coll->head->finished == coll->head->steps)
                aq_shm_coll_pop(coll);
        }
    } while (happened != before && coll->head != NULL);
    return happened;
}

/* --- the list of teams with open requests --- */

/* With aq_shm_colls.lock held. */
static void aq_shm_coll_activate(struct aq_coll_local *coll)
{
    const unsigned count = atomic_load_explicit(&aq_shm_colls.count, memory_order_relaxed);

    if (atomic_load_explicit(&coll->active, memory_order_relaxed))
        return;
    atomic_store_explicit(&coll->active, true, memory_order_relaxed);
    aq_shm_colls.open[count] = coll;
    atomic_store_explicit(&aq_shm_colls.count, count + 1, memory_order_relaxed);
    aq_pending_add(1);
}

/* With aq_shm_colls.lock held. */
static void aq_shm_coll_deactivate(struct aq_coll_local *coll)
{
    const unsigned count = atomic_load_explicit(&aq_shm_colls.count, memory_order_relaxed) - 1;
    unsigned i = 0;

    atomic_store_explicit(&coll->active, false, memory_order_relaxed);
    while (aq_shm_colls.open[i] != coll)
        i++;
    aq_shm_colls.open[i] = aq_shm_colls.open[count];
    atomic_store_explicit(&aq_shm_colls.count, count, memory_order_relaxed);
    aq_pending_add(-1);
}

/* Takes over requests from threads that found another thread at work. */
static void aq_shm_coll_empty_inbox(struct aq_coll_local *coll)
{
    struct aq_coll_req *newest, *oldest = NULL;

    /* relaxed: a thread that adds a request makes the next poll look */
    if (!AQ_THREADED || atomic_load_explicit(&coll->inbox, memory_order_relaxed) == NULL)
        return;
    aq_lock_acquire(&aq_shm_colls.lock);
    /* relaxed: the lock is held */
    newest = atomic_exchange_explicit(&coll->inbox, NULL, memory_order_relaxed);
    aq_lock_release(&aq_shm_colls.lock);
    while (newest != NULL) {
        struct aq_coll_req *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct aq_coll_req *next = oldest->next;

        aq_shm_coll_append(coll, oldest);
        oldest = next;
    }
}

bool aq_shm_coll_is_open(const struct aq_coll_local *coll)
{
    /* relaxed: written under aq_shm_colls.lock, and read again under it before it decides
     * anything */
    return coll->head != NULL
           || atomic_load_explicit(&((struct aq_coll_local *)(uintptr_t)coll)->inbox,
                                   memory_order_relaxed)
                  != NULL;
}

/* Stops working on a team; polls serve it while requests are open. The team stays in the list after
 * its last request has completed, because the next call usually follows soon. A poll that finds
 * nothing removes it. */
static void aq_shm_coll_release(struct aq_coll_local *coll, bool was_open)
{
    /* relaxed: only this thread removes it */
    const bool active = atomic_load_explicit(&coll->active, memory_order_relaxed);

    if (AQ_LIKELY(active == (was_open || coll->head != NULL))) {
        aq_lock_release(&coll->work);
        return;
    }
    aq_lock_acquire(&aq_shm_colls.lock);
    if (was_open || aq_shm_coll_is_open(coll))
        aq_shm_coll_activate(coll);
    else
        aq_shm_coll_deactivate(coll);
    aq_lock_release(&coll->work);
    aq_lock_release(&aq_shm_colls.lock);
}

unsigned aq_shm_coll_progress(void)
{
    unsigned happened = 0;

    /* Downwards: the place of a team that is removed goes to one that this poll has looked at.
     * relaxed: a team that another thread adds at this moment waits for the next poll */
    for (unsigned i = atomic_load_explicit(&aq_shm_colls.count, memory_order_relaxed); i-- > 0;) {
        struct aq_coll_local *coll;
        unsigned moved;
        bool own, was_open;

        aq_lock_acquire(&aq_shm_colls.lock);
        coll = i < atomic_load_explicit(&aq_shm_colls.count, memory_order_relaxed)
                   ? aq_shm_colls.open[i]
                   : NULL;
        own = coll != NULL && aq_lock_try(&coll->work);
        aq_lock_release(&aq_shm_colls.lock);
        if (coll == NULL)
            continue;
        if (!own) { /* another thread works on it: no thread may sleep after this look */
            happened++;
            continue;
        }
        aq_shm_coll_empty_inbox(coll);
        was_open = coll->head != NULL;
        moved = aq_shm_coll_advance(coll);
        happened += moved;
        if (moved == 0 && coll->head != NULL)
            aq_shm_coll_blame(coll);
        aq_shm_coll_release(coll, was_open);
    }
    return happened;
}

/* --- calls --- */

bool aq_shm_coll_serves(const struct aq_coll_local *coll, const struct aq_coll_call *call)
{
    return coll != NULL
           && (call->kind == AQ_COLL_BARRIER || call->kind == AQ_COLL_BROADCAST
               || call->unit <= coll->area.block_bytes);
}

static struct aq_coll_req *aq_coll_req_get(struct aq_coll_local *coll, bool own)
{
    struct aq_coll_req *req = own ? coll->free : NULL;

    if (req != NULL)
        coll->free = req->next;
    else if ((req = malloc(sizeof(*req))) == NULL)
        aq_fatal("no memory for a collective (%zu bytes)", sizeof(*req));
    req->is_own = own;
    return req;
}

/* Returns the cells of a step with that many bytes: a power of two, so that no step crosses the end
 * of a block. */
static uint32_t aq_block_cells(size_t bytes, size_t block_bytes)
{
    uint32_t cells = 1;

    while (cells < AQ_BLOCK_CELLS && cells * (block_bytes / AQ_BLOCK_CELLS) < bytes)
        cells *= 2;
    return cells;
}

/* Plans the steps of a request whose operands go through lines or blocks. */
static inline void aq_coll_req_plan(const struct aq_coll_local *coll, struct aq_coll_req *req,
                                    bool reduces)
{
    const size_t block = coll->area.block_bytes, unit = req->call.unit;

    req->in_blocks = req->bytes > AQ_AREA_INLINE_MAX;
    req->chunk = !req->in_blocks ? AQ_AREA_INLINE_MAX : reduces ? block / unit * unit : block;
    req->steps = req->in_blocks ? (req->bytes + req->chunk - 1) / req->chunk : 1;
    req->cells = req->in_blocks ? aq_block_cells(req->bytes, block) : 0;
    req->scattered = reduces && coll->area.size > 2 && req->bytes >= AQ_SHM_SCATTER_MIN;
}

static void aq_coll_req_fill(struct aq_coll_local *coll, struct aq_coll_req *req,
                             const struct aq_coll_call *call)
{
    const bool reduces = call->kind == AQ_COLL_TO_ONE || call->kind == AQ_COLL_TO_ALL;

    req->op = NULL;
    req->part = NULL;
    req->call = *call;
    req->bytes = reduces                           ? call->unit * call->count
                 : call->kind == AQ_COLL_BROADCAST ? call->nbytes
                                                   : 0;
    req->direct = req->bytes >= AQ_DIRECT_MIN && aq_coll_direct_plan(coll, req);
    if (!req->direct)
        aq_coll_req_plan(coll, req, reduces);
    req->posted = req->shared = req->finished = 0;
    req->seen_posted = req->seen_shared = 0;
    req->is_read = req->over = false;
    req->first = coll->next_step;
    req->cell = req->in_blocks ? aq_round_up(coll->next_cell, req->cells) : coll->next_cell;
    coll->next_step += req->steps;
    coll->next_cell = req->cell + req->steps * req->cells;
}

static struct aq_op *aq_coll_req_op(const struct aq_coll_call *call)
{
    struct aq_op *op = aq_op_create(&aq_coll_op_kinds[call->kind], GEX_RANK_INVALID);

    aq_op_begin(op, GEX_EC_GET, 1);
    return op;
}

/* Another thread is at work on the team: it, or the next poll, finds the request in the inbox. */
static void aq_shm_coll_submit_inbox(struct aq_coll_local *coll, const struct aq_coll_call *call,
                                     struct aq_op *op, struct aq_coll_part *part)
{
    struct aq_coll_req *req = aq_coll_req_get(coll, false);

    aq_coll_req_fill(coll, req, call);
    req->op = op;
    req->part = part;
    aq_lock_acquire(&aq_shm_colls.lock);
    /* relaxed: the lock is held */
    req->next = atomic_load_explicit(&coll->inbox, memory_order_relaxed);
    atomic_store_explicit(&coll->inbox, req, memory_order_relaxed);
    aq_shm_coll_activate(coll);
    aq_lock_release(&aq_shm_colls.lock);
}

/* Stops working on a team. others: it had requests before this call's. */
static void aq_shm_coll_detach(struct aq_coll_local *coll, bool others)
{
    /* relaxed: as in aq_shm_coll_release() */
    aq_shm_coll_release(coll, others || atomic_load_explicit(&coll->active, memory_order_relaxed));
    if (AQ_THREADED && others) /* other threads may wait for the requests that have completed */
        aq_job.local->sleep_wake();
}

gex_Event_t aq_shm_coll_submit(struct aq_coll_local *coll, const struct aq_coll_call *call)
{
    struct aq_op *op = NULL;
    struct aq_coll_req *req;
    bool others;

    if (!aq_lock_try(&coll->work)) {
        op = aq_coll_req_op(call);
        aq_shm_coll_submit_inbox(coll, call, op, NULL);
        return aq_op_expose(op);
    }
    aq_shm_coll_empty_inbox(coll);
    req = aq_coll_req_get(coll, true);
    aq_coll_req_fill(coll, req, call);
    others = coll->head != NULL;
    aq_shm_coll_append(coll, req);
    aq_shm_coll_advance(coll);
    if (req->over)
        aq_coll_req_free(coll, req);
    else
        op = req->op = aq_coll_req_op(call);
    aq_shm_coll_detach(coll, others);
    return op == NULL ? GEX_EVENT_INVALID : aq_op_expose(op);
}

void aq_shm_coll_submit_part(struct aq_coll_local *coll, const struct aq_coll_call *call,
                             struct aq_op *op, struct aq_coll_part *part)
{
    struct aq_coll_req *req;
    bool others;

    if (!aq_lock_try(&coll->work)) {
        aq_shm_coll_submit_inbox(coll, call, op, part);
        return;
    }
    aq_shm_coll_empty_inbox(coll);
    req = aq_coll_req_get(coll, true);
    aq_coll_req_fill(coll, req, call);
    req->op = op;
    req->part = part;
    others = coll->head != NULL;
    aq_shm_coll_append(coll, req);
    aq_shm_coll_advance(coll);
    aq_shm_coll_detach(coll, others);
}

void aq_shm_coll_open_part(struct aq_coll_local *coll, struct aq_coll_part *part)
{
    /* release: pairs with the acquire in aq_coll_req_closed() */
    atomic_store_explicit(&part->closed, false, memory_order_release);
    if (!aq_lock_try(&coll->work))
        return; /* the next poll finds it open */
    aq_shm_coll_empty_inbox(coll);
    aq_shm_coll_advance(coll);
    aq_shm_coll_detach(coll, true);
}

void aq_shm_coll_quiesce(struct aq_coll_local *coll)
{
    for (;;) {
        aq_shm_coll_progress();
        aq_lock_acquire(&aq_shm_colls.lock);
        if (!atomic_load_explicit(&coll->active, memory_order_relaxed) && aq_lock_try(&coll->work))
            break;
        aq_lock_release(&aq_shm_colls.lock);
        aq_cpu_relax();
    }
    aq_lock_release(&aq_shm_colls.lock);
}
