/*
 * aq_coll_flat.c - collectives of teams on one host, through memory that all members share.
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
 * Owns      one struct aq_flat a team: its items; the list of those with open items
 * Threads   one at a time works on a team (lock work, only ever tried); a call that finds
 *           somebody at work leaves its item in the team's inbox. The list and the inboxes are
 *           under aq_flats.lock. No spinning lock is held while a client's operator runs
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

#define AQ_SLICED 2048u /* bytes of a step from which members share the combining */
#define AQ_FLATS 16     /* the most areas, so teams, there can be */

struct aq_item {
    struct aq_item *next;
    struct aq_op *op; /* NULL: its submitter still holds the team */
    struct aq_coll_call call;
    uint64_t first;   /* number of its first step */
    uint64_t block;   /* number of its first block */
    size_t bytes;     /* of data in all */
    size_t chunk;     /* bytes in a step, but for the last */
    size_t steps;
    size_t posted, shared, finished; /* steps that are */
    uint32_t seen_posted, seen_shared; /* members that have, in the step we look at */
    bool far;    /* operands are in blocks */
    bool sliced; /* members share the combining */
    bool over;
};

struct aq_flat {
    aq_lock work; /* all but what is said */
    struct aq_shm_coll shm;
    const struct aq_coll_team *team;
    struct aq_item *head, *tail; /* in order */
    struct aq_item *posting;     /* the first that is not all posted */
    struct aq_item *sharing;     /* the first that is not all combined */
    struct aq_item *free;
    uint64_t next_step, next_block; /* of the next call: the client's order protects them */
    uint64_t block_user[AQ_COLL_BLOCKS]; /* the step that used it last, + 1 */
    void *temp;                          /* block_bytes, made when needed */
    struct aq_item *_Atomic inbox;       /* newest first; changed under aq_flats.lock */
    atomic_bool watched; /* in aq_flats; set under its lock, taken back only by who works on the team */
};

static struct {
    aq_lock lock;
    atomic_uint count; /* polls look before they lock */
    struct aq_flat *open[AQ_FLATS]; /* those with items, or that had some at the last poll */
} aq_flats;

/* --- a step's data --- */

static size_t aq_step_bytes(const struct aq_item *item, size_t step)
{
    const size_t at = step * item->chunk;

    return item->bytes - at < item->chunk ? item->bytes - at : item->chunk;
}

/* A member's operand. */
static void *aq_step_data(const struct aq_flat *flat, const struct aq_item *item, uint32_t member,
                          size_t step)
{
    return item->far ? (void *)aq_shm_coll_block(&flat->shm, member, item->block + step)
                     : (void *)aq_shm_coll_line(&flat->shm, member, item->first + step)->data;
}

/* Where a member's slice of a step begins, in bytes. */
static size_t aq_step_slice(const struct aq_flat *flat, const struct aq_item *item, size_t step,
                            uint32_t member)
{
    const size_t unit = item->call.unit, count = aq_step_bytes(item, step) / unit;
    const size_t each = count / flat->shm.size, more = count % flat->shm.size;

    return (member * each + (member < more ? member : more)) * unit;
}

/* --- debug builds: all members pass the same sizes --- */

#if GASNET_DEBUG
static void aq_step_note(const struct aq_flat *flat, const struct aq_item *item, size_t step)
{
    aq_shm_coll_line(&flat->shm, flat->shm.me, item->first + step)->bytes = item->bytes;
}

/* Once the member has posted the step. */
static void aq_step_compare(const struct aq_flat *flat, const struct aq_item *item, size_t step,
                            uint32_t member)
{
    const uint64_t bytes = aq_shm_coll_line(&flat->shm, member, item->first + step)->bytes;

    if (bytes != item->bytes)
        aq_fatal("%s: rank %u of the team takes part in it with %llu bytes, this rank, %u, with %zu: "
                 "all members of a team must make the same calls with the same sizes",
                 aq_coll_op_kinds[item->call.kind].name, member, (unsigned long long)bytes,
                 flat->shm.me, item->bytes);
}
#else
#define aq_step_note(flat, item, step) ((void)0)
#define aq_step_compare(flat, item, step, member) ((void)0)
#endif

/* --- who is there --- */

static bool aq_all_posted(const struct aq_flat *flat, const struct aq_item *item, size_t step,
                          uint32_t *seen)
{
    while (*seen < flat->shm.size && aq_shm_coll_posted(&flat->shm, *seen, item->first + step)) {
        aq_step_compare(flat, item, step, *seen);
        ++*seen;
    }
    return *seen == flat->shm.size;
}

static bool aq_all_shared(const struct aq_flat *flat, const struct aq_item *item, size_t step,
                          uint32_t *seen)
{
    while (*seen < flat->shm.size && aq_shm_coll_shared(&flat->shm, *seen, item->first + step))
        ++*seen;
    return *seen == flat->shm.size;
}

/* Something of ours was published, and there are sleepers: wake those who can go on. Of two
 * who come last together each fences before it looks, so at least one of them sees both. */
static __attribute__((noinline, cold)) void aq_item_wake(const struct aq_flat *flat,
                                                         const struct aq_item *item, size_t step,
                                                         bool shared)
{
    uint32_t seen = 0;

    atomic_thread_fence(memory_order_seq_cst);
    if (item->call.kind != AQ_COLL_BROADCAST
        && !(shared ? aq_all_shared(flat, item, step, &seen)
                    : aq_all_posted(flat, item, step, &seen)))
        return;
    if (item->call.kind == AQ_COLL_TO_ONE && (shared || !item->sliced)) {
        if (item->call.root != flat->shm.me)
            aq_shm_coll_wake(&flat->shm, item->call.root);
    } else {
        aq_shm_coll_wake_all(&flat->shm);
    }
}

/* --- posting --- */

static bool aq_item_gives(const struct aq_flat *flat, const struct aq_item *item)
{
    return item->call.kind != AQ_COLL_BROADCAST || item->call.root == flat->shm.me;
}

/* May this member write the line, and the block, of a step? */
static bool aq_item_has_room(struct aq_flat *flat, const struct aq_item *item, size_t step,
                             uint64_t block_user)
{
    const uint64_t number = item->first + step;
    uint64_t need = number < AQ_COLL_LINES ? 0 : number - AQ_COLL_LINES + 1;

    if (item->far && block_user > need)
        need = block_user;
    return aq_shm_coll_all_done(&flat->shm, need);
}

/* May others learn from a store of ours? See core/aq_conduit.h. */
static inline bool aq_flat_may_tell(void)
{
#if GASNET_SEGMENT_EVERYTHING
    return aq_job.conduit->may_tell == NULL || aq_job.conduit->may_tell();
#else
    return true;
#endif
}

/* Post the operand of the next step. False: no room yet. */
static inline bool aq_item_post(struct aq_flat *flat, struct aq_item *item)
{
    const struct aq_coll_call *call = &item->call;
    const size_t step = item->posted, at = step * item->chunk;
    const uint64_t number = item->first + step;
    uint64_t *block_user = &flat->block_user[(item->block + step) % AQ_COLL_BLOCKS];

    if (aq_item_gives(flat, item)) {
        const size_t bytes = aq_step_bytes(item, step);

        if (!aq_item_has_room(flat, item, step, *block_user) || !aq_flat_may_tell())
            return false;
        if (bytes > 0) {
            memcpy(aq_step_data(flat, item, flat->shm.me, step), (const char *)call->src + at, bytes);
            if (call->kind == AQ_COLL_BROADCAST && call->dst != call->src)
                memcpy((char *)call->dst + at, (const char *)call->src + at, bytes);
        }
        aq_step_note(flat, item, step);
        /* release: pairs with the acquire in aq_shm_coll_posted() */
        atomic_store_explicit(&aq_shm_coll_line(&flat->shm, flat->shm.me, number)->posted,
                              number + 1, memory_order_release);
        if (aq_shm_coll_sleepers())
            aq_item_wake(flat, item, step, false);
    }
    if (item->far)
        *block_user = number + 1;
    item->posted++;
    return true;
}

/* --- combining --- */

/* All operands of a step, from the last to the first: what is combined is the right operand, and
 * only that is written. */
static void aq_item_combine(const struct aq_flat *flat, const struct aq_item *item, size_t step)
{
    const struct aq_coll_call *call = &item->call;
    const size_t bytes = aq_step_bytes(item, step);
    void *dst = (char *)call->dst + step * item->chunk;
    uint32_t member = flat->shm.size - 1;

    memcpy(dst, aq_step_data(flat, item, member, step), bytes);
    while (member-- > 0)
        aq_coll_apply(call->fn, aq_step_data(flat, item, member, step), dst, bytes / call->unit,
                      call->cdata);
}

/* The same in rank order for a slice, which then replaces this member's operand. */
static void aq_slice_in_order(struct aq_flat *flat, const struct aq_item *item, size_t step,
                              size_t at, size_t bytes)
{
    const struct aq_coll_call *call = &item->call;
    uint32_t member = flat->shm.size - 1;
    char *mine = (char *)aq_step_data(flat, item, flat->shm.me, step) + at;
    char *result = mine;

    if (flat->shm.me != member) {
        if (flat->temp == NULL && (flat->temp = malloc(flat->shm.block_bytes)) == NULL)
            aq_fatal("no memory for a reduction (%zu bytes)", flat->shm.block_bytes);
        result = flat->temp;
        memcpy(result, (char *)aq_step_data(flat, item, member, step) + at, bytes);
    }
    while (member-- > 0)
        aq_coll_apply(call->fn, (char *)aq_step_data(flat, item, member, step) + at, result,
                      bytes / call->unit, call->cdata);
    if (result != mine)
        memcpy(mine, result, bytes);
}

/* Combine this member's slice of the next step, and share it. False: operands are missing. */
static bool aq_item_share(struct aq_flat *flat, struct aq_item *item)
{
    const struct aq_coll_call *call = &item->call;
    const size_t step = item->shared;
    const uint32_t me = flat->shm.me;
    size_t at, bytes;

    if (item->posted == step || !aq_all_posted(flat, item, step, &item->seen_posted) || !aq_flat_may_tell())
        return false;
    at = aq_step_slice(flat, item, step, me);
    bytes = aq_step_slice(flat, item, step, me + 1) - at;
    if (bytes > 0 && call->ordered) {
        aq_slice_in_order(flat, item, step, at, bytes);
    } else if (bytes > 0) {
        char *mine = (char *)aq_step_data(flat, item, me, step) + at;

        for (uint32_t member = flat->shm.size; member-- > 0;)
            if (member != me)
                aq_coll_apply(call->fn, (char *)aq_step_data(flat, item, member, step) + at, mine,
                              bytes / call->unit, call->cdata);
    }
    /* release: pairs with the acquire in aq_shm_coll_shared() */
    atomic_store_explicit(&aq_shm_coll_line(&flat->shm, me, item->first + step)->shared,
                          item->first + step + 1, memory_order_release);
    if (aq_shm_coll_sleepers())
        aq_item_wake(flat, item, step, true);
    item->shared++;
    item->seen_posted = 0;
    return true;
}

/* --- finishing --- */

static void aq_item_collect(const struct aq_flat *flat, const struct aq_item *item, size_t step)
{
    char *dst = (char *)item->call.dst + step * item->chunk;

    for (uint32_t member = 0; member < flat->shm.size; member++) {
        const size_t at = aq_step_slice(flat, item, step, member);
        const size_t bytes = aq_step_slice(flat, item, step, member + 1) - at;

        memcpy(dst + at, (char *)aq_step_data(flat, item, member, step) + at, bytes);
    }
}

static bool aq_reduction_finish(const struct aq_flat *flat, struct aq_item *item, size_t step)
{
    const bool gets = item->call.kind == AQ_COLL_TO_ALL || item->call.root == flat->shm.me;

    if (item->sliced) {
        if (item->shared == step || (gets && !aq_all_shared(flat, item, step, &item->seen_shared)))
            return false;
        if (gets)
            aq_item_collect(flat, item, step);
    } else if (gets) {
        if (!aq_all_posted(flat, item, step, &item->seen_posted))
            return false;
        aq_item_combine(flat, item, step);
    }
    return true;
}

static bool aq_broadcast_finish(const struct aq_flat *flat, const struct aq_item *item, size_t step)
{
    const struct aq_coll_call *call = &item->call;

    if (call->root == flat->shm.me)
        return true;
    if (!aq_shm_coll_posted(&flat->shm, call->root, item->first + step))
        return false;
    aq_step_compare(flat, item, step, call->root);
    if (item->bytes > 0)
        memcpy((char *)call->dst + step * item->chunk, aq_step_data(flat, item, call->root, step),
               aq_step_bytes(item, step));
    return true;
}

/* Take what this member gets of the next step. False: it is not there yet. */
static inline bool aq_item_finish(struct aq_flat *flat, struct aq_item *item)
{
    const size_t step = item->finished;

    if (item->posted == step)
        return false;
    if (item->call.kind == AQ_COLL_BARRIER) {
        if (!aq_all_posted(flat, item, step, &item->seen_posted))
            return false;
    } else if (item->call.kind == AQ_COLL_BROADCAST) {
        if (!aq_broadcast_finish(flat, item, step))
            return false;
    } else if (!aq_reduction_finish(flat, item, step)) {
        return false;
    }
    item->finished++;
    if (!item->sliced)
        item->seen_posted = 0;
    item->seen_shared = 0;
    aq_shm_coll_set_done(&flat->shm, item->first + item->finished);
    return true;
}

/* --- items; the caller is at work on the team --- */

static void aq_flat_append(struct aq_flat *flat, struct aq_item *item)
{
    item->next = NULL;
    if (flat->head == NULL)
        flat->head = item;
    else
        flat->tail->next = item;
    flat->tail = item;
    if (flat->posting == NULL)
        flat->posting = item;
    if (flat->sharing == NULL)
        flat->sharing = item;
}

static void aq_item_free(struct aq_flat *flat, struct aq_item *item)
{
    item->next = flat->free;
    flat->free = item;
}

static void aq_flat_pop(struct aq_flat *flat)
{
    struct aq_item *item = flat->head;

    flat->head = item->next;
    item->over = true;
    if (item->op != NULL) {
        aq_op_end(item->op, GEX_EC_GET, 1);
        aq_item_free(flat, item);
    }
}

/* Move a team's items on as far as they go. Returns how much happened. */
static inline unsigned aq_flat_advance(struct aq_flat *flat)
{
    unsigned happened = 0, before;

    do {
        before = happened;
        while (flat->posting != NULL && (flat->posting->posted == flat->posting->steps
                                         || aq_item_post(flat, flat->posting))) {
            happened++;
            if (flat->posting->posted == flat->posting->steps)
                flat->posting = flat->posting->next;
        }
        while (flat->sharing != NULL && (!flat->sharing->sliced
                                         || aq_item_share(flat, flat->sharing))) {
            happened++;
            if (!flat->sharing->sliced || flat->sharing->shared == flat->sharing->steps)
                flat->sharing = flat->sharing->next;
        }
        while (flat->head != NULL && aq_item_finish(flat, flat->head)) {
            happened++;
            if (flat->head->finished == flat->head->steps)
                aq_flat_pop(flat);
        }
    } while (happened != before && flat->head != NULL);
    return happened;
}

/* --- who is missing, for the stall report --- */

/* The member whose operand, slice or leave to use a line again an item waits for in the step that it
 * is to finish next; size: nobody in particular. */
static uint32_t aq_item_missing(const struct aq_flat *flat, const struct aq_item *item)
{
    if (item->posted == item->finished)
        return aq_shm_coll_behind(&flat->shm);
    if (item->call.kind == AQ_COLL_BROADCAST)
        return item->call.root;
    return item->sliced && item->shared > item->finished ? item->seen_shared : item->seen_posted;
}

/* A poll has found nothing to do for a team: name who is missing to whoever waits for its first item.
 * Items end in order, so that one is first waited for. */
static void aq_flat_blame(const struct aq_flat *flat)
{
    struct aq_op *op = flat->head->op;
    const uint32_t member = aq_item_missing(flat, flat->head);
    const gex_Rank_t jobrank = member == flat->shm.size ? GEX_RANK_INVALID
                                                        : aq_coll_jobrank(flat->team, member);

    if (aq_op_peer(op) != jobrank) /* its line may be another thread's, who waits */
        aq_op_set_peer(op, jobrank);
}

/* --- the list of teams with open items --- */

/* Under aq_flats.lock. */
static void aq_flat_watch(struct aq_flat *flat)
{
    const unsigned count = atomic_load_explicit(&aq_flats.count, memory_order_relaxed);

    if (atomic_load_explicit(&flat->watched, memory_order_relaxed))
        return;
    atomic_store_explicit(&flat->watched, true, memory_order_relaxed);
    aq_flats.open[count] = flat;
    atomic_store_explicit(&aq_flats.count, count + 1, memory_order_relaxed);
    aq_pending_add(1);
}

/* Under aq_flats.lock. */
static void aq_flat_unwatch(struct aq_flat *flat)
{
    const unsigned count = atomic_load_explicit(&aq_flats.count, memory_order_relaxed) - 1;
    unsigned i = 0;

    atomic_store_explicit(&flat->watched, false, memory_order_relaxed);
    while (aq_flats.open[i] != flat)
        i++;
    aq_flats.open[i] = aq_flats.open[count];
    atomic_store_explicit(&aq_flats.count, count, memory_order_relaxed);
    aq_pending_add(-1);
}

/* Items that were left by threads which found somebody at work. */
static void aq_flat_empty_inbox(struct aq_flat *flat)
{
    struct aq_item *newest, *oldest = NULL;

    /* relaxed: whoever leaves something has the next poll look */
    if (!AQ_THREADED || atomic_load_explicit(&flat->inbox, memory_order_relaxed) == NULL)
        return;
    aq_lock_acquire(&aq_flats.lock);
    newest = atomic_exchange_explicit(&flat->inbox, NULL, memory_order_relaxed); /* lock held */
    aq_lock_release(&aq_flats.lock);
    while (newest != NULL) {
        struct aq_item *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct aq_item *next = oldest->next;

        aq_flat_append(flat, oldest);
        oldest = next;
    }
}

bool aq_flat_is_open(const struct aq_flat *flat)
{
    /* relaxed: written under aq_flats.lock, read again under it before it decides anything */
    return flat->head != NULL
           || atomic_load_explicit(&((struct aq_flat *)(uintptr_t)flat)->inbox, memory_order_relaxed)
                  != NULL;
}

/* Stop working on a team; polls look after it while anything is open. It stays in the list when the
 * last item has ended, for the next call will come soon: a poll that found nothing takes it out. */
static void aq_flat_leave(struct aq_flat *flat, bool was_open)
{
    /* relaxed: only we take it out */
    const bool watched = atomic_load_explicit(&flat->watched, memory_order_relaxed);

    if (AQ_LIKELY(watched == (was_open || flat->head != NULL))) {
        aq_lock_release(&flat->work);
        return;
    }
    aq_lock_acquire(&aq_flats.lock);
    if (was_open || aq_flat_is_open(flat))
        aq_flat_watch(flat);
    else
        aq_flat_unwatch(flat);
    aq_lock_release(&flat->work);
    aq_lock_release(&aq_flats.lock);
}

unsigned aq_flat_progress(void)
{
    unsigned happened = 0;

    /* relaxed: what another thread adds at this moment waits for the next poll */
    for (unsigned i = 0; i < atomic_load_explicit(&aq_flats.count, memory_order_relaxed); i++) {
        struct aq_flat *flat;
        unsigned moved;
        bool mine, was_open;

        aq_lock_acquire(&aq_flats.lock);
        flat = i < atomic_load_explicit(&aq_flats.count, memory_order_relaxed) ? aq_flats.open[i]
                                                                               : NULL;
        mine = flat != NULL && aq_lock_try(&flat->work);
        aq_lock_release(&aq_flats.lock);
        if (flat == NULL)
            return happened;
        if (!mine)
            continue; /* another thread is at it */
        aq_flat_empty_inbox(flat);
        was_open = flat->head != NULL;
        moved = aq_flat_advance(flat);
        happened += moved;
        if (moved == 0 && flat->head != NULL)
            aq_flat_blame(flat);
        aq_flat_leave(flat, was_open);
    }
    return happened;
}

/* --- calls --- */

bool aq_flat_serves(const struct aq_flat *flat, const struct aq_coll_call *call)
{
    return flat != NULL
           && (call->kind == AQ_COLL_BARRIER || call->kind == AQ_COLL_BROADCAST
               || call->unit <= flat->shm.block_bytes);
}

static struct aq_item *aq_item_get(struct aq_flat *flat, bool mine)
{
    struct aq_item *item = mine ? flat->free : NULL;

    if (item != NULL)
        flat->free = item->next;
    else if ((item = malloc(sizeof(*item))) == NULL)
        aq_fatal("no memory for a collective (%zu bytes)", sizeof(*item));
    return item;
}

static void aq_item_fill(struct aq_flat *flat, struct aq_item *item, const struct aq_coll_call *call)
{
    const bool reduces = call->kind == AQ_COLL_TO_ONE || call->kind == AQ_COLL_TO_ALL;
    const size_t block = flat->shm.block_bytes;

    item->op = NULL;
    item->call = *call;
    item->bytes = reduces ? call->unit * call->count
                          : call->kind == AQ_COLL_BROADCAST ? call->nbytes : 0;
    item->far = item->bytes > AQ_COLL_NEAR;
    item->chunk = item->far ? reduces ? block / call->unit * call->unit : block : AQ_COLL_NEAR;
    item->steps = item->far ? (item->bytes + item->chunk - 1) / item->chunk : 1;
    item->sliced = reduces && flat->shm.size > 2 && item->bytes >= AQ_SLICED;
    item->posted = item->shared = item->finished = 0;
    item->seen_posted = item->seen_shared = 0;
    item->over = false;
    item->first = flat->next_step;
    item->block = flat->next_block;
    flat->next_step += item->steps;
    if (item->far)
        flat->next_block += item->steps;
}

static struct aq_op *aq_item_op(const struct aq_coll_call *call)
{
    struct aq_op *op = aq_op_create(&aq_coll_op_kinds[call->kind], GEX_RANK_INVALID);

    aq_op_begin(op, GEX_EC_GET, 1);
    return op;
}

/* Another thread is at work on the team: it, or the next poll, finds the item in the inbox. */
static gex_Event_t aq_flat_submit_aside(struct aq_flat *flat, const struct aq_coll_call *call)
{
    struct aq_item *item = aq_item_get(flat, false);
    struct aq_op *op = aq_item_op(call);

    aq_item_fill(flat, item, call);
    item->op = op;
    aq_lock_acquire(&aq_flats.lock);
    item->next = atomic_load_explicit(&flat->inbox, memory_order_relaxed); /* lock held */
    atomic_store_explicit(&flat->inbox, item, memory_order_relaxed);
    aq_flat_watch(flat);
    aq_lock_release(&aq_flats.lock);
    return aq_op_expose(op);
}

gex_Event_t aq_flat_submit(struct aq_flat *flat, const struct aq_coll_call *call)
{
    struct aq_op *op = NULL;
    struct aq_item *item;
    bool others;

    if (!aq_lock_try(&flat->work))
        return aq_flat_submit_aside(flat, call);
    aq_flat_empty_inbox(flat);
    item = aq_item_get(flat, true);
    aq_item_fill(flat, item, call);
    others = flat->head != NULL;
    aq_flat_append(flat, item);
    aq_flat_advance(flat);
    if (item->over)
        aq_item_free(flat, item);
    else
        op = item->op = aq_item_op(call);
    aq_flat_leave(flat, others || atomic_load_explicit(&flat->watched, memory_order_relaxed));
    if (AQ_THREADED && others) /* other threads may sleep on what we ended */
        aq_job.conduit->sleep_ring();
    return op == NULL ? GEX_EVENT_INVALID : aq_op_expose(op);
}

/* --- teams --- */

/* Index of each member among the ranks of this neighborhood, or NULL if one is elsewhere. */
static uint32_t *aq_flat_locals(const struct aq_coll_team *team)
{
    uint32_t *local = malloc(team->size * sizeof(*local));

    if (local == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", team->size,
                 team->size * sizeof(*local));
    for (gex_Rank_t rank = 0; rank < team->size; rank++) {
        local[rank] = aq_shm_find_local(aq_coll_jobrank(team, rank));
        if (local[rank] == UINT32_MAX) {
            free(local);
            return NULL;
        }
    }
    return local;
}

/* Rank 0 takes an area for the team and tells the others which. */
static uint32_t aq_flat_area(struct aq_coll_team *team)
{
    uint32_t area = 0;

    if (team->id == 0)
        return 0; /* the job's */
    if (team->rank == 0)
        area = aq_shm_coll_take();

    const struct aq_coll_call call = { .kind = AQ_COLL_BROADCAST, .dst = &area, .src = &area,
                                       .nbytes = sizeof(area) };

    gex_Event_Wait(aq_prog_start(aq_prog_of_call(team, &call), &aq_coll_op_kinds[call.kind]));
    return area;
}

struct aq_flat *aq_flat_make(struct aq_coll_team *team)
{
    struct aq_flat *flat;
    uint32_t *local, area;

    if (aq_job.no_overrides || aq_shm.arena == NULL || team->size == 1
        || (local = aq_flat_locals(team)) == NULL)
        return NULL;
    area = aq_flat_area(team);
    if (area == AQ_COLL_NO_AREA) {
        free(local);
        return NULL;
    }
    flat = calloc(1, sizeof(*flat));
    if (flat == NULL)
        aq_fatal("no memory for a team of %u members (%zu bytes)", team->size, sizeof(*flat));
    flat->team = team;
    aq_shm_coll_open(&flat->shm, area, team->size, team->rank, local);
    flat->next_step = aq_shm_coll_first(area);
    return flat;
}

/* All its items are over, but another thread's poll may be about to see that. */
static void aq_flat_take_down(struct aq_flat *flat)
{
    for (;;) {
        aq_flat_progress();
        aq_lock_acquire(&aq_flats.lock);
        if (!atomic_load_explicit(&flat->watched, memory_order_relaxed)
            && aq_lock_try(&flat->work))
            break;
        aq_lock_release(&aq_flats.lock);
        aq_cpu_relax();
    }
    aq_lock_release(&aq_flats.lock);
}

void aq_flat_free(struct aq_flat *flat)
{
    aq_flat_take_down(flat);
    aq_shm_coll_close(&flat->shm, flat->next_step);
    while (flat->free != NULL) {
        struct aq_item *next = flat->free->next;

        free(flat->free);
        flat->free = next;
    }
    free(flat->temp);
    free(flat);
}
