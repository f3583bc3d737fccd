/*
 * aq_coll_shm.c - collectives of teams on one host, through memory that all members share.
 *
 * A call becomes an item of one or more steps: as much data as a block holds is a step. In a step
 * every member that gives something posts its operand, and every member that gets something waits
 * until the operands are there and takes the result straight from them: a barrier or a small
 * reduction to all costs one store and one look at each of the others. With more data and more
 * than two members each combines one slice of the operands where it lies in its own block, shares
 * it, and the others copy it from there. Steps of one item or of many are posted ahead as
 * far as there are free lines and blocks, so that large data flow in a pipeline and calls can
 * be outstanding in any number; they end in order.
 *
 * Owns      one struct aq_coll_shm a team: its items; the list of those with open items
 * Threads   one at a time works on a team (lock work, only ever tried); a call that finds
 *           somebody at work leaves its item in the team's inbox. The list and the inboxes are
 *           under aq_coll_shms.lock. No spinning lock is held while a client's operator runs
 * Promise   a call never blocks; polls of any thread move every item on; who makes a sleeping
 *           member able to go on wakes it
 * Uses      conduits/smp/aq_shm_coll.h, core/aq_op.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "extended/aq_barrier.h"
#include "conduits/smp/aq_shm_coll.h"

#define AQ_COLL_SHM_SCATTER_MIN 2048u /* bytes of a step from which members share the combining */
#define AQ_COLL_SHMS            16    /* the most areas, so teams, there can be */

struct aq_coll_req {
    struct aq_coll_req *next;
    struct aq_op *op; /* NULL: its submitter still holds the team */
    struct aq_coll_call call;
    uint64_t first; /* number of its first step */
    uint64_t block; /* number of its first block */
    size_t bytes;   /* of data in all */
    size_t chunk;   /* bytes in a step, but for the last */
    size_t steps;
    size_t posted, shared, finished;   /* steps that are */
    uint32_t seen_posted, seen_shared; /* members that have, in the step we look at */
    bool in_blocks;                    /* operands are in blocks */
    bool scattered;                    /* members share the combining */
    bool over;
};

struct aq_coll_shm {
    aq_lock work; /* all but what is said */
    struct aq_shm_coll mem;
    const struct aq_coll_team *team;
    struct aq_coll_req *head, *tail; /* in order */
    struct aq_coll_req *posting;     /* the first that is not all posted */
    struct aq_coll_req *sharing;     /* the first that is not all combined */
    struct aq_coll_req *free;
    uint64_t next_step, next_block;      /* of the next call: the client's order protects them */
    uint64_t block_user[AQ_COLL_BLOCKS]; /* the step that used it last, + 1 */
    void *temp;                          /* block_bytes, made when needed */
    struct aq_coll_req *_Atomic inbox;   /* newest first; changed under aq_coll_shms.lock */
    atomic_bool
        active; /* in aq_coll_shms; set under its lock, taken back only by who works on the team */
};

static struct {
    aq_lock lock;
    atomic_uint count; /* polls look before they lock */
    struct aq_coll_shm
        *open[AQ_COLL_SHMS]; /* those with items, or that had some at the last poll */
} aq_coll_shms;

/* --- a step's data --- */

static size_t aq_step_bytes(const struct aq_coll_req *req, size_t step)
{
    const size_t at = step * req->chunk;

    return req->bytes - at < req->chunk ? req->bytes - at : req->chunk;
}

/* A member's operand. */
static void *aq_step_data(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                          uint32_t member, size_t step)
{
    return req->in_blocks ? (void *)aq_shm_coll_block(&shm->mem, member, req->block + step)
                          : (void *)aq_shm_coll_line(&shm->mem, member, req->first + step)->data;
}

/* Where a member's slice of a step begins, in bytes. */
static size_t aq_step_offset(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                             size_t step, uint32_t member)
{
    const size_t unit = req->call.unit, count = aq_step_bytes(req, step) / unit;
    const size_t each = count / shm->mem.size, more = count % shm->mem.size;

    return (member * each + (member < more ? member : more)) * unit;
}

/* --- debug builds: all members pass the same sizes --- */

#if GASNET_DEBUG
static void aq_step_note(const struct aq_coll_shm *shm, const struct aq_coll_req *req, size_t step)
{
    aq_shm_coll_line(&shm->mem, shm->mem.me, req->first + step)->bytes = req->bytes;
}

/* Once the member has posted the step. */
static void aq_step_compare(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                            size_t step, uint32_t member)
{
    const uint64_t bytes = aq_shm_coll_line(&shm->mem, member, req->first + step)->bytes;

    if (bytes != req->bytes)
        aq_fatal(
            "%s: rank %u of the team takes part in it with %llu bytes, this rank, %u, with %zu: "
            "all members of a team must make the same calls with the same sizes",
            aq_coll_op_kinds[req->call.kind].name, member, (unsigned long long)bytes, shm->mem.me,
            req->bytes);
}
#else
#define aq_step_note(shm, req, step)            ((void)0)
#define aq_step_compare(shm, req, step, member) ((void)0)
#endif

/* --- who is there --- */

static bool aq_all_posted(const struct aq_coll_shm *shm, const struct aq_coll_req *req, size_t step,
                          uint32_t *seen)
{
    while (*seen < shm->mem.size && aq_shm_coll_posted(&shm->mem, *seen, req->first + step)) {
        aq_step_compare(shm, req, step, *seen);
        ++*seen;
    }
    return *seen == shm->mem.size;
}

static bool aq_all_shared(const struct aq_coll_shm *shm, const struct aq_coll_req *req, size_t step,
                          uint32_t *seen)
{
    while (*seen < shm->mem.size && aq_shm_coll_shared(&shm->mem, *seen, req->first + step))
        ++*seen;
    return *seen == shm->mem.size;
}

/* Something of ours was published, and there are sleepers: wake those who can go on. Of two
 * who come last together each fences before it looks, so at least one of them sees both. */
static __attribute__((noinline, cold)) void aq_coll_req_wake(const struct aq_coll_shm *shm,
                                                             const struct aq_coll_req *req,
                                                             size_t step, bool shared)
{
    uint32_t seen = 0;

    atomic_thread_fence(memory_order_seq_cst);
    if (req->call.kind != AQ_COLL_BROADCAST
        && !(shared ? aq_all_shared(shm, req, step, &seen) : aq_all_posted(shm, req, step, &seen)))
        return;
    if (req->call.kind == AQ_COLL_TO_ONE && (shared || !req->scattered)) {
        if (req->call.root != shm->mem.me)
            aq_shm_coll_wake(&shm->mem, req->call.root);
    } else {
        aq_shm_coll_wake_all(&shm->mem);
    }
}

/* --- posting --- */

static bool aq_coll_req_sends(const struct aq_coll_shm *shm, const struct aq_coll_req *req)
{
    return req->call.kind != AQ_COLL_BROADCAST || req->call.root == shm->mem.me;
}

/* May this member write the line, and the block, of a step? */
static bool aq_coll_req_has_slot(struct aq_coll_shm *shm, const struct aq_coll_req *req,
                                 size_t step, uint64_t block_user)
{
    const uint64_t number = req->first + step;
    uint64_t need = number < AQ_COLL_LINES ? 0 : number - AQ_COLL_LINES + 1;

    if (req->in_blocks && block_user > need)
        need = block_user;
    return aq_shm_coll_all_done(&shm->mem, need);
}

/* May others learn from a store of ours? See core/aq_conduit.h. */
static inline bool aq_coll_shm_may_notify(void)
{
#if GASNET_SEGMENT_EVERYTHING
    return aq_job.remote->may_notify();
#else
    return true;
#endif
}

/* Post the operand of the next step. False: no room yet. */
static inline bool aq_coll_req_post(struct aq_coll_shm *shm, struct aq_coll_req *req)
{
    const struct aq_coll_call *call = &req->call;
    const size_t step = req->posted, at = step * req->chunk;
    const uint64_t number = req->first + step;
    uint64_t *block_user = &shm->block_user[(req->block + step) % AQ_COLL_BLOCKS];

    if (aq_coll_req_sends(shm, req)) {
        const size_t bytes = aq_step_bytes(req, step);

        if (!aq_coll_req_has_slot(shm, req, step, *block_user) || !aq_coll_shm_may_notify())
            return false;
        if (bytes > 0) {
            memcpy(aq_step_data(shm, req, shm->mem.me, step), (const char *)call->src + at, bytes);
            if (call->kind == AQ_COLL_BROADCAST && call->dst != call->src)
                memcpy((char *)call->dst + at, (const char *)call->src + at, bytes);
        }
        aq_step_note(shm, req, step);
        /* release: pairs with the acquire in aq_shm_coll_posted() */
        atomic_store_explicit(&aq_shm_coll_line(&shm->mem, shm->mem.me, number)->posted, number + 1,
                              memory_order_release);
        if (aq_shm_coll_sleepers())
            aq_coll_req_wake(shm, req, step, false);
    }
    if (req->in_blocks)
        *block_user = number + 1;
    req->posted++;
    return true;
}

/* --- combining --- */

/* All operands of a step, from the last to the first: what is combined is the right operand, and
 * only that is written. */
static void aq_coll_req_combine(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                                size_t step)
{
    const struct aq_coll_call *call = &req->call;
    const size_t bytes = aq_step_bytes(req, step);
    void *dst = (char *)call->dst + step * req->chunk;
    uint32_t member = shm->mem.size - 1;

    memcpy(dst, aq_step_data(shm, req, member, step), bytes);
    while (member-- > 0)
        aq_coll_apply(call->fn, aq_step_data(shm, req, member, step), dst, bytes / call->unit,
                      call->cdata);
}

/* The same in rank order for a slice, which then replaces this member's operand. */
static void aq_step_reduce_ordered(struct aq_coll_shm *shm, const struct aq_coll_req *req,
                                   size_t step, size_t at, size_t bytes)
{
    const struct aq_coll_call *call = &req->call;
    uint32_t member = shm->mem.size - 1;
    char *own = (char *)aq_step_data(shm, req, shm->mem.me, step) + at;
    char *result = own;

    if (shm->mem.me != member) {
        if (shm->temp == NULL && (shm->temp = malloc(shm->mem.block_bytes)) == NULL)
            aq_fatal("no memory for a reduction (%zu bytes)", shm->mem.block_bytes);
        result = shm->temp;
        memcpy(result, (char *)aq_step_data(shm, req, member, step) + at, bytes);
    }
    while (member-- > 0)
        aq_coll_apply(call->fn, (char *)aq_step_data(shm, req, member, step) + at, result,
                      bytes / call->unit, call->cdata);
    if (result != own)
        memcpy(own, result, bytes);
}

/* Combine this member's slice of the next step, and share it. False: operands are missing. */
static bool aq_coll_req_share(struct aq_coll_shm *shm, struct aq_coll_req *req)
{
    const struct aq_coll_call *call = &req->call;
    const size_t step = req->shared;
    const uint32_t me = shm->mem.me;
    size_t at, bytes;

    if (req->posted == step || !aq_all_posted(shm, req, step, &req->seen_posted)
        || !aq_coll_shm_may_notify())
        return false;
    at = aq_step_offset(shm, req, step, me);
    bytes = aq_step_offset(shm, req, step, me + 1) - at;
    if (bytes > 0 && call->ordered) {
        aq_step_reduce_ordered(shm, req, step, at, bytes);
    } else if (bytes > 0) {
        char *own = (char *)aq_step_data(shm, req, me, step) + at;

        for (uint32_t member = shm->mem.size; member-- > 0;)
            if (member != me)
                aq_coll_apply(call->fn, (char *)aq_step_data(shm, req, member, step) + at, own,
                              bytes / call->unit, call->cdata);
    }
    /* release: pairs with the acquire in aq_shm_coll_shared() */
    atomic_store_explicit(&aq_shm_coll_line(&shm->mem, me, req->first + step)->shared,
                          req->first + step + 1, memory_order_release);
    if (aq_shm_coll_sleepers())
        aq_coll_req_wake(shm, req, step, true);
    req->shared++;
    req->seen_posted = 0;
    return true;
}

/* --- finishing --- */

static void aq_coll_req_collect(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                                size_t step)
{
    char *dst = (char *)req->call.dst + step * req->chunk;

    for (uint32_t member = 0; member < shm->mem.size; member++) {
        const size_t at = aq_step_offset(shm, req, step, member);
        const size_t bytes = aq_step_offset(shm, req, step, member + 1) - at;

        memcpy(dst + at, (char *)aq_step_data(shm, req, member, step) + at, bytes);
    }
}

static bool aq_reduction_finish(const struct aq_coll_shm *shm, struct aq_coll_req *req, size_t step)
{
    const bool gets = req->call.kind == AQ_COLL_TO_ALL || req->call.root == shm->mem.me;

    if (req->scattered) {
        if (req->shared == step || (gets && !aq_all_shared(shm, req, step, &req->seen_shared)))
            return false;
        if (gets)
            aq_coll_req_collect(shm, req, step);
    } else if (gets) {
        if (!aq_all_posted(shm, req, step, &req->seen_posted))
            return false;
        aq_coll_req_combine(shm, req, step);
    }
    return true;
}

static bool aq_broadcast_finish(const struct aq_coll_shm *shm, const struct aq_coll_req *req,
                                size_t step)
{
    const struct aq_coll_call *call = &req->call;

    if (call->root == shm->mem.me)
        return true;
    if (!aq_shm_coll_posted(&shm->mem, call->root, req->first + step))
        return false;
    aq_step_compare(shm, req, step, call->root);
    if (req->bytes > 0)
        memcpy((char *)call->dst + step * req->chunk, aq_step_data(shm, req, call->root, step),
               aq_step_bytes(req, step));
    return true;
}

/* Take what this member gets of the next step. False: it is not there yet. */
static inline bool aq_coll_req_finish(struct aq_coll_shm *shm, struct aq_coll_req *req)
{
    const size_t step = req->finished;

    if (req->posted == step)
        return false;
    if (req->call.kind == AQ_COLL_BARRIER) {
        if (!aq_all_posted(shm, req, step, &req->seen_posted))
            return false;
    } else if (req->call.kind == AQ_COLL_BROADCAST) {
        if (!aq_broadcast_finish(shm, req, step))
            return false;
    } else if (!aq_reduction_finish(shm, req, step)) {
        return false;
    }
    req->finished++;
    if (!req->scattered)
        req->seen_posted = 0;
    req->seen_shared = 0;
    aq_shm_coll_set_done(&shm->mem, req->first + req->finished);
    return true;
}

/* --- items; the caller is at work on the team --- */

static void aq_coll_shm_append(struct aq_coll_shm *shm, struct aq_coll_req *req)
{
    req->next = NULL;
    if (shm->head == NULL)
        shm->head = req;
    else
        shm->tail->next = req;
    shm->tail = req;
    if (shm->posting == NULL)
        shm->posting = req;
    if (shm->sharing == NULL)
        shm->sharing = req;
}

static void aq_coll_req_free(struct aq_coll_shm *shm, struct aq_coll_req *req)
{
    req->next = shm->free;
    shm->free = req;
}

static void aq_coll_shm_pop(struct aq_coll_shm *shm)
{
    struct aq_coll_req *req = shm->head;

    shm->head = req->next;
    req->over = true;
    if (req->op != NULL) {
        aq_op_end(req->op, GEX_EC_GET, 1);
        aq_coll_req_free(shm, req);
    }
}

/* Move a team's items on as far as they go. Returns how much happened. */
static inline unsigned aq_coll_shm_advance(struct aq_coll_shm *shm)
{
    unsigned happened = 0, before;

    do {
        before = happened;
        while (shm->posting != NULL
               && (shm->posting->posted == shm->posting->steps
                   || aq_coll_req_post(shm, shm->posting))) {
            happened++;
            if (shm->posting->posted == shm->posting->steps)
                shm->posting = shm->posting->next;
        }
        while (shm->sharing != NULL
               && (!shm->sharing->scattered || aq_coll_req_share(shm, shm->sharing))) {
            happened++;
            if (!shm->sharing->scattered || shm->sharing->shared == shm->sharing->steps)
                shm->sharing = shm->sharing->next;
        }
        while (shm->head != NULL && aq_coll_req_finish(shm, shm->head)) {
            happened++;
            if (shm->head->finished == shm->head->steps)
                aq_coll_shm_pop(shm);
        }
    } while (happened != before && shm->head != NULL);
    return happened;
}

/* --- who is missing, for the stall report --- */

/* The member whose operand, slice or leave to use a line again an item waits for in the step that
 * it is to finish next; size: nobody in particular. */
static uint32_t aq_coll_req_missing(const struct aq_coll_shm *shm, const struct aq_coll_req *req)
{
    if (req->posted == req->finished)
        return aq_shm_coll_behind(&shm->mem);
    if (req->call.kind == AQ_COLL_BROADCAST)
        return req->call.root;
    return req->scattered && req->shared > req->finished ? req->seen_shared : req->seen_posted;
}

/* A poll has found nothing to do for a team: name who is missing to whoever waits for its first
 * item. Items end in order, so that one is first waited for. */
static void aq_coll_shm_blame(const struct aq_coll_shm *shm)
{
    struct aq_op *op = shm->head->op;
    const uint32_t member = aq_coll_req_missing(shm, shm->head);
    const gex_Rank_t jobrank =
        member == shm->mem.size ? GEX_RANK_INVALID : aq_coll_jobrank(shm->team, member);

    if (aq_op_peer(op) != jobrank) /* its line may be another thread's, who waits */
        aq_op_set_peer(op, jobrank);
}

/* --- the list of teams with open items --- */

/* Under aq_coll_shms.lock. */
static void aq_coll_shm_activate(struct aq_coll_shm *shm)
{
    const unsigned count = atomic_load_explicit(&aq_coll_shms.count, memory_order_relaxed);

    if (atomic_load_explicit(&shm->active, memory_order_relaxed))
        return;
    atomic_store_explicit(&shm->active, true, memory_order_relaxed);
    aq_coll_shms.open[count] = shm;
    atomic_store_explicit(&aq_coll_shms.count, count + 1, memory_order_relaxed);
    aq_pending_add(1);
}

/* Under aq_coll_shms.lock. */
static void aq_coll_shm_deactivate(struct aq_coll_shm *shm)
{
    const unsigned count = atomic_load_explicit(&aq_coll_shms.count, memory_order_relaxed) - 1;
    unsigned i = 0;

    atomic_store_explicit(&shm->active, false, memory_order_relaxed);
    while (aq_coll_shms.open[i] != shm)
        i++;
    aq_coll_shms.open[i] = aq_coll_shms.open[count];
    atomic_store_explicit(&aq_coll_shms.count, count, memory_order_relaxed);
    aq_pending_add(-1);
}

/* Items that were left by threads which found somebody at work. */
static void aq_coll_shm_empty_inbox(struct aq_coll_shm *shm)
{
    struct aq_coll_req *newest, *oldest = NULL;

    /* relaxed: whoever leaves something has the next poll look */
    if (!AQ_THREADED || atomic_load_explicit(&shm->inbox, memory_order_relaxed) == NULL)
        return;
    aq_lock_acquire(&aq_coll_shms.lock);
    newest = atomic_exchange_explicit(&shm->inbox, NULL, memory_order_relaxed); /* lock held */
    aq_lock_release(&aq_coll_shms.lock);
    while (newest != NULL) {
        struct aq_coll_req *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct aq_coll_req *next = oldest->next;

        aq_coll_shm_append(shm, oldest);
        oldest = next;
    }
}

static bool aq_coll_shm_is_open(const struct aq_coll_shm *shm)
{
    /* relaxed: written under aq_coll_shms.lock, read again under it before it decides anything */
    return shm->head != NULL
           || atomic_load_explicit(&((struct aq_coll_shm *)(uintptr_t)shm)->inbox,
                                   memory_order_relaxed)
                  != NULL;
}

/* Stop working on a team; polls look after it while anything is open. It stays in the list when the
 * last item has ended, for the next call will come soon: a poll that found nothing takes it out. */
static void aq_coll_shm_release(struct aq_coll_shm *shm, bool was_open)
{
    /* relaxed: only we take it out */
    const bool active = atomic_load_explicit(&shm->active, memory_order_relaxed);

    if (AQ_LIKELY(active == (was_open || shm->head != NULL))) {
        aq_lock_release(&shm->work);
        return;
    }
    aq_lock_acquire(&aq_coll_shms.lock);
    if (was_open || aq_coll_shm_is_open(shm))
        aq_coll_shm_activate(shm);
    else
        aq_coll_shm_deactivate(shm);
    aq_lock_release(&shm->work);
    aq_lock_release(&aq_coll_shms.lock);
}

static unsigned aq_coll_shm_progress(void)
{
    unsigned happened = 0;

    /* relaxed: what another thread adds at this moment waits for the next poll */
    for (unsigned i = 0; i < atomic_load_explicit(&aq_coll_shms.count, memory_order_relaxed); i++) {
        struct aq_coll_shm *shm;
        unsigned moved;
        bool own, was_open;

        aq_lock_acquire(&aq_coll_shms.lock);
        shm = i < atomic_load_explicit(&aq_coll_shms.count, memory_order_relaxed)
                  ? aq_coll_shms.open[i]
                  : NULL;
        own = shm != NULL && aq_lock_try(&shm->work);
        aq_lock_release(&aq_coll_shms.lock);
        if (shm == NULL)
            return happened;
        if (!own)
            continue; /* another thread is at it */
        aq_coll_shm_empty_inbox(shm);
        was_open = shm->head != NULL;
        moved = aq_coll_shm_advance(shm);
        happened += moved;
        if (moved == 0 && shm->head != NULL)
            aq_coll_shm_blame(shm);
        aq_coll_shm_release(shm, was_open);
    }
    return happened;
}

/* --- calls --- */

static bool aq_coll_shm_serves(const struct aq_coll_shm *shm, const struct aq_coll_call *call)
{
    return shm != NULL
           && (call->kind == AQ_COLL_BARRIER || call->kind == AQ_COLL_BROADCAST
               || call->unit <= shm->mem.block_bytes);
}

static struct aq_coll_req *aq_coll_req_get(struct aq_coll_shm *shm, bool own)
{
    struct aq_coll_req *req = own ? shm->free : NULL;

    if (req != NULL)
        shm->free = req->next;
    else if ((req = malloc(sizeof(*req))) == NULL)
        aq_fatal("no memory for a collective (%zu bytes)", sizeof(*req));
    return req;
}

static void aq_coll_req_fill(struct aq_coll_shm *shm, struct aq_coll_req *req,
                             const struct aq_coll_call *call)
{
    const bool reduces = call->kind == AQ_COLL_TO_ONE || call->kind == AQ_COLL_TO_ALL;
    const size_t block = shm->mem.block_bytes;

    req->op = NULL;
    req->call = *call;
    req->bytes = reduces                           ? call->unit * call->count
                 : call->kind == AQ_COLL_BROADCAST ? call->nbytes
                                                   : 0;
    req->in_blocks = req->bytes > AQ_COLL_INLINE_MAX;
    req->chunk =
        req->in_blocks ? reduces ? block / call->unit * call->unit : block : AQ_COLL_INLINE_MAX;
    req->steps = req->in_blocks ? (req->bytes + req->chunk - 1) / req->chunk : 1;
    req->scattered = reduces && shm->mem.size > 2 && req->bytes >= AQ_COLL_SHM_SCATTER_MIN;
    req->posted = req->shared = req->finished = 0;
    req->seen_posted = req->seen_shared = 0;
    req->over = false;
    req->first = shm->next_step;
    req->block = shm->next_block;
    shm->next_step += req->steps;
    if (req->in_blocks)
        shm->next_block += req->steps;
}

static struct aq_op *aq_coll_req_op(const struct aq_coll_call *call)
{
    struct aq_op *op = aq_op_create(&aq_coll_op_kinds[call->kind], GEX_RANK_INVALID);

    aq_op_begin(op, GEX_EC_GET, 1);
    return op;
}

/* Another thread is at work on the team: it, or the next poll, finds the item in the inbox. */
static gex_Event_t aq_coll_shm_submit_inbox(struct aq_coll_shm *shm,
                                            const struct aq_coll_call *call)
{
    struct aq_coll_req *req = aq_coll_req_get(shm, false);
    struct aq_op *op = aq_coll_req_op(call);

    aq_coll_req_fill(shm, req, call);
    req->op = op;
    aq_lock_acquire(&aq_coll_shms.lock);
    req->next = atomic_load_explicit(&shm->inbox, memory_order_relaxed); /* lock held */
    atomic_store_explicit(&shm->inbox, req, memory_order_relaxed);
    aq_coll_shm_activate(shm);
    aq_lock_release(&aq_coll_shms.lock);
    return aq_op_expose(op);
}

static gex_Event_t aq_coll_shm_submit(struct aq_coll_shm *shm, const struct aq_coll_call *call)
{
    struct aq_op *op = NULL;
    struct aq_coll_req *req;
    bool others;

    if (!aq_lock_try(&shm->work))
        return aq_coll_shm_submit_inbox(shm, call);
    aq_coll_shm_empty_inbox(shm);
    req = aq_coll_req_get(shm, true);
    aq_coll_req_fill(shm, req, call);
    others = shm->head != NULL;
    aq_coll_shm_append(shm, req);
    aq_coll_shm_advance(shm);
    if (req->over)
        aq_coll_req_free(shm, req);
    else
        op = req->op = aq_coll_req_op(call);
    aq_coll_shm_release(shm, others || atomic_load_explicit(&shm->active, memory_order_relaxed));
    if (AQ_THREADED && others) /* other threads may sleep on what we ended */
        aq_job.local->sleep_wake();
    return op == NULL ? GEX_EVENT_INVALID : aq_op_expose(op);
}

/* --- teams --- */

/* Index of each member among the ranks of this neighborhood, or NULL if one is elsewhere. */
static uint32_t *aq_coll_shm_locals(const struct aq_coll_team *team)
{
    uint32_t *local = malloc(team->size * sizeof(*local));

    if (local == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", team->size,
                 team->size * sizeof(*local));
    for (gex_Rank_t rank = 0; rank < team->size; rank++) {
        local[rank] = aq_job_find_local(aq_coll_jobrank(team, rank));
        if (local[rank] == UINT32_MAX) {
            free(local);
            return NULL;
        }
    }
    return local;
}

/* Rank 0 takes an area for the team and tells the others which. */
static uint32_t aq_coll_shm_area(struct aq_coll_team *team)
{
    uint32_t area = 0;

    if (team->id == 0)
        return 0; /* the job's */
    if (team->rank == 0)
        area = aq_shm_coll_take();

    const struct aq_coll_call call = {
        .kind = AQ_COLL_BROADCAST, .dst = &area, .src = &area, .nbytes = sizeof(area)
    };

    gex_Event_Wait(aq_sched_start(aq_sched_of_call(team, &call), &aq_coll_op_kinds[call.kind]));
    return area;
}

static struct aq_coll_shm *aq_coll_shm_make(struct aq_coll_team *team)
{
    struct aq_coll_shm *shm;
    uint32_t *local, area;

    if (aq_shm.arena == NULL || team->size == 1 || (local = aq_coll_shm_locals(team)) == NULL)
        return NULL;
    area = aq_coll_shm_area(team);
    if (area == AQ_COLL_NO_AREA) {
        free(local);
        return NULL;
    }
    shm = calloc(1, sizeof(*shm));
    if (shm == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", team->size, sizeof(*shm));
    shm->team = team;
    aq_shm_coll_open(&shm->mem, area, team->size, team->rank, local);
    shm->next_step = aq_shm_coll_first(area);
    return shm;
}

/* All its items are over, but another thread's poll may be about to see that. */
static void aq_coll_shm_quiesce(struct aq_coll_shm *shm)
{
    for (;;) {
        aq_coll_shm_progress();
        aq_lock_acquire(&aq_coll_shms.lock);
        if (!atomic_load_explicit(&shm->active, memory_order_relaxed) && aq_lock_try(&shm->work))
            break;
        aq_lock_release(&aq_coll_shms.lock);
        aq_cpu_relax();
    }
    aq_lock_release(&aq_coll_shms.lock);
}

static void aq_coll_shm_free(struct aq_coll_shm *shm)
{
    aq_coll_shm_quiesce(shm);
    aq_shm_coll_close(&shm->mem, shm->next_step);
    while (shm->free != NULL) {
        struct aq_coll_req *next = shm->free->next;

        free(shm->free);
        shm->free = next;
    }
    free(shm->temp);
    free(shm);
}

const struct aq_coll_ops aq_shm_coll_ops = {
    .make = aq_coll_shm_make,
    .free = aq_coll_shm_free,
    .serves = aq_coll_shm_serves,
    .is_open = aq_coll_shm_is_open,
    .submit = aq_coll_shm_submit,
    .progress = aq_coll_shm_progress,
};
