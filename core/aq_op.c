/*
 * aq_op.c - operations: pools, life cycle, waiting.
 *
 * Owns      every struct aq_pool and the memory of all operations
 * Threads   see aq_op.h; the list of idle pools is under aq_pool_lock
 * Promise   a thread allocates nothing once it has had its maximum number of operations at a time,
 *           even when other threads retire them; memory is the only limit
 * Uses      core/aq_thread.h, core/aq_poll.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_op.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_conduit.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_callback.h"

#define AQ_POOL_FIRST 32   /* operations in a pool's first allocation */
#define AQ_POOL_GROW  1024 /* maximum of a later one: 64 KiB */

static aq_lock aq_pool_lock = AQ_LOCK_INITIALIZER;
static struct aq_pool *aq_pool_idle;

static const struct aq_op_kind aq_op_implicit_kind = { .waits_in = "gex_NBI_Wait",
                                                       .name = "an implicit operation",
                                                       .counts_many = true };

/* --- pools --- */

static struct aq_pool *aq_pool_create(void)
{
    struct aq_pool *pool = aligned_alloc(_Alignof(struct aq_pool), sizeof(*pool));

    if (pool == NULL)
        aq_fatal("no memory for a thread's operations (%zu bytes)", sizeof(*pool));
    memset(pool, 0, sizeof(*pool));
    pool->implicit.kind = &aq_op_implicit_kind;
    aq_op_set_peer(&pool->implicit, GEX_RANK_INVALID);
    pool->implicit.state = AQ_OP_MADE;
    return pool;
}

static struct aq_pool *aq_pool_adopt(struct aq_thread *self)
{
    struct aq_pool *pool;

    aq_lock_acquire(&aq_pool_lock);
    pool = aq_pool_idle;
    if (pool != NULL)
        aq_pool_idle = pool->next;
    aq_lock_release(&aq_pool_lock);

    if (pool == NULL)
        pool = aq_pool_create();
    self->extended = pool;
    return pool;
}

struct aq_pool *aq_pool_look(void)
{
    return aq_thread_self()->extended;
}

struct aq_pool *aq_pool_self(void)
{
    struct aq_thread *self = aq_thread_self();

    return AQ_LIKELY(self->extended != NULL) ? self->extended : aq_pool_adopt(self);
}

/* The pool, with its outstanding operations, is kept for the next thread that needs one. Implicit
 * operations of the old thread complete in it, and waits of the new thread cover them. */
void aq_callback_thread_exit(struct aq_thread *thread)
{
    struct aq_pool *pool = thread->extended;

    if (pool == NULL)
        return;
#if GASNET_DEBUG
    if (pool->region != NULL)
        aq_fatal("a thread ended inside an access region; call gex_NBI_EndAccessRegion on the "
                 "thread that called gex_NBI_BeginAccessRegion");
#endif
    if (pool->region != NULL) {
        if (aq_job.remote != NULL)
            aq_job.remote->rma_batch_end(
                NULL); /* this thread's region: no other thread can start it */
        pool->region->next = pool->orphans;
        pool->orphans = pool->region;
        pool->region = NULL;
    }
    thread->extended = NULL;
    aq_lock_acquire(&aq_pool_lock);
    pool->next = aq_pool_idle;
    aq_pool_idle = pool;
    aq_lock_release(&aq_pool_lock);
}

/* --- memory for operations --- */

static void aq_pool_grow(struct aq_pool *pool)
{
    size_t count = pool->grown == 0 ? AQ_POOL_FIRST : pool->grown;
    char *memory;

    if (count > AQ_POOL_GROW)
        count = AQ_POOL_GROW;
    memory = aligned_alloc(AQ_OP_SIZE, count * AQ_OP_SIZE);
    if (memory == NULL)
        aq_fatal("no memory for another %zu operations (%zu bytes); this thread has %zu "
                 "under way: synchronise some before starting more",
                 count, count * AQ_OP_SIZE, pool->grown);
    memset(memory, 0, count * AQ_OP_SIZE);
    pool->grown += count;
    for (size_t i = count; i-- > 0;) {
        struct aq_op *op = (struct aq_op *)(void *)(memory + i * AQ_OP_SIZE);

        op->home = pool;
        op->next = pool->free;
        pool->free = op;
    }
}

static void aq_pool_reap_orphans(struct aq_pool *pool)
{
    struct aq_op *op = pool->orphans;

    pool->orphans = NULL;
    while (op != NULL) {
        struct aq_op *next = op->next;

        if (aq_op_counts_done(op)) {
            aq_op_retire(op);
        } else {
            op->next = pool->orphans;
            pool->orphans = op;
        }
        op = next;
    }
}

/* The free list is empty: takes what other threads have returned, or allocates. */
static __attribute__((noinline)) void aq_pool_refill(struct aq_pool *pool)
{
    if (AQ_UNLIKELY(pool->orphans != NULL))
        aq_pool_reap_orphans(pool);
    /* relaxed: only decides whether the exchange is worth its cost. acquire: pairs with the release
     * in aq_pool_return(). Taking the whole list excludes the ABA problem. */
    if (AQ_THREADED && pool->free == NULL
        && atomic_load_explicit(&pool->returned, memory_order_relaxed) != NULL)
        pool->free = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    if (pool->free == NULL)
        aq_pool_grow(pool);
}

/* Returns an operation of another thread to its pool. */
static void aq_pool_return(struct aq_pool *home, struct aq_op *op)
{
    /* relaxed: the exchange below verifies it */
    struct aq_op *head = atomic_load_explicit(&home->returned, memory_order_relaxed);

    do {
        op->next = head;
        /* release: the owner sees the link and the state of what it takes */
    } while (!atomic_compare_exchange_weak_explicit(&home->returned, &head, op,
                                                    memory_order_release, memory_order_relaxed));
}

/* --- life cycle --- */

struct aq_op *aq_op_create(const struct aq_op_kind *kind, gex_Rank_t peer)
{
    struct aq_pool *pool = aq_pool_self();
    struct aq_op *op;

    if (AQ_UNLIKELY(pool->free == NULL))
        aq_pool_refill(pool);
    op = pool->free;
    pool->free = op->next;
    op->kind = kind;
    aq_op_set_peer(op, peer);
    op->state = AQ_OP_MADE;
    op->leaves = 0;
    op->phase = 0;
    return op;
}

void aq_op_retire(struct aq_op *op)
{
    struct aq_pool *home = op->home;

    op->state = AQ_OP_FREE;
    op->generation = (op->generation + 1) & 7;
    if (AQ_THREADED && home != aq_thread_self()->extended) {
        aq_pool_return(home, op);
        return;
    }
    op->next = home->free;
    home->free = op;
}

bool aq_op_is_done(const struct aq_op *op, gex_Rank_t *missing_out)
{
    gex_Rank_t missing = aq_op_peer(op);
    bool done = op->kind->look == NULL ? aq_op_counts_done(op) : op->kind->look(op, &missing);

    if (!done && missing_out != NULL)
        *missing_out = missing;
    return done;
}

void aq_op_wait(struct aq_op *op)
{
    struct aq_waiter waiter = AQ_WAITER_INIT(op->kind->waits_in, aq_op_peer(op));

    while (!aq_op_is_done(op, &waiter.peer))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
    aq_op_retire(op);
}

/* --- events --- */

static gex_Event_t aq_op_event(const struct aq_op *op, enum aq_op_cell cell)
{
    return (gex_Event_t)((uintptr_t)op + ((uintptr_t)op->generation << 3) + (uintptr_t)cell);
}

gex_Event_t aq_op_expose(struct aq_op *op)
{
    if (aq_op_is_done(op, NULL)) {
        aq_op_retire(op);
        return GEX_EVENT_INVALID;
    }
    for (enum aq_op_cell cell = AQ_CELL_LC; cell < AQ_CELLS; cell++)
        if (!aq_op_cell_done(op, cell))
            op->leaves |= (uint8_t)(1u << cell);
    op->state = AQ_OP_LIVE;
    return aq_op_event(op, AQ_CELL_ROOT);
}

gex_Event_t aq_op_expose_open(struct aq_op *op)
{
    op->state = AQ_OP_LIVE;
    return aq_op_event(op, AQ_CELL_ROOT);
}

gex_Event_t aq_op_leaf(const struct aq_op *op, enum aq_op_cell cell)
{
    return op->leaves & 1u << cell ? aq_op_event(op, cell) : GEX_EVENT_INVALID;
}
