/*
 * aq_op.h - operations: what each still waits for, and the events that clients hold of it.
 *
 * An operation counts its parts in flight, one count for each category (GEX_EC_*). The code that
 * starts a part calls aq_op_begin() first. The code that learns of its completion, usually a reply
 * handler on any thread, calls aq_op_end() and does not touch the operation afterwards. The
 * operation is complete when all counts are zero.
 *
 * Events    an event is the operation's address, which is a multiple of AQ_OP_SIZE, plus a tag: the
 *           cell (the root, or the leaf of one category) and a generation, which changes whenever
 *           the operation is reused and shows debug builds a stale event
 * Owns      the pools of operations. Memory goes from a pool to its thread's operations and back
 *           and is never freed, so that a late read of a retired operation is at worst outdated
 * Threads   any thread may count, test and retire. A pool's free list belongs to its thread; other
 *           threads push retired operations on the pool's list of returns
 * States    FREE -> MADE (the library works on it) -> LIVE (a client holds events) -> SYNCED (found
 *           complete inside an array call) -> FREE; LIVE may go straight to FREE
 * Uses      base/aq_lock.h, core/aq_thread.h; no conduit
 * See       GASNet-EX specification 0.19, Events. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_OP_H
#define AQ_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#include "base/aq_lock.h"

struct aq_op;
struct aq_pool;

/* The kind of an operation: one constant for each call that makes operations. */
struct aq_op_kind {
    const char *waits_in; /* for the stall report: the call, and the operation that it waits for */
    const char *name;     /* the call that started it, for diagnostics */
    bool hides_lc;        /* the call's local completion has no event */
    bool blocks;          /* the call returns when the operation is complete */
    bool counts_many;     /* it counts transfers of many calls; no transfer has an event */
    /* where aq_wait_looks() is not 0, other ranks complete it by stores; it has no leaves */
    bool by_store;
    /* If not NULL, completion is not counted but determined by this function. If the operation is
     * not complete, *missing_out is the missing rank, or GEX_RANK_INVALID. Must neither poll nor
     * block. */
    bool (*look)(const struct aq_op *op, gex_Rank_t *missing_out);
};

/* Cells of an operation: its root event and its leaves. */
enum aq_op_cell { AQ_CELL_ROOT, AQ_CELL_LC, AQ_CELL_PUT, AQ_CELL_GET, AQ_CELL_RMW, AQ_CELLS };

enum aq_op_state { AQ_OP_FREE, AQ_OP_MADE, AQ_OP_LIVE, AQ_OP_SYNCED };

#define AQ_OP_SIZE 64 /* bytes: one cache line, and the tag's range */

struct aq_op {
    aq_counter pending[AQ_CELLS - 1]; /* parts in flight, [cell - 1] */
    const struct aq_op_kind *kind;
    struct aq_pool *home; /* the pool that it returns to */
    union {
        struct aq_op *next; /* in a list: free, or found complete */
        uint64_t phase;     /* of a barrier: its phase */
        uint64_t value;     /* of a get of a value with a handle: the value */
    };
    /* the rank that can complete it, for the stall report; GEX_RANK_INVALID: several */
    _Atomic gex_Rank_t peer;
    uint8_t state;      /* enum aq_op_state */
    uint8_t generation; /* 0..7 */
    /* bit [cell]: pending when the client got the root, so the cell has an event */
    uint8_t leaves;
};

_Static_assert(sizeof(struct aq_op) <= AQ_OP_SIZE, "an operation is one cache line");

/* The rank that can complete the operation. relaxed, both: a name for the stall report, which
 * orders nothing. A thread that makes progress on a collective may change it while another thread
 * waits. */
static inline gex_Rank_t aq_op_peer(const struct aq_op *op)
{
    return atomic_load_explicit(&((struct aq_op *)(uintptr_t)op)->peer, memory_order_relaxed);
}

static inline void aq_op_set_peer(struct aq_op *op, gex_Rank_t peer)
{
    atomic_store_explicit(&op->peer, peer, memory_order_relaxed);
}

/* --- counting parts --- */

static inline enum aq_op_cell aq_op_cell_of(gex_EC_t category)
{
    switch (category) {
    case GEX_EC_PUT:
        return AQ_CELL_PUT;
    case GEX_EC_GET:
        return AQ_CELL_GET;
    case GEX_EC_RMW:
        return AQ_CELL_RMW;
    default: /* GEX_EC_LC and GEX_EC_AM share one value */
        return AQ_CELL_LC;
    }
}

/* A race detector sees one process only. It does not know that a message to a peer and its answer
 * order accesses, so it is told. leaves: called before the message; returns: at its answer. */
#if defined(__SANITIZE_THREAD__)
#define AQ_RACE_DETECTOR 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AQ_RACE_DETECTOR 1
#endif
#endif
#if AQ_RACE_DETECTOR
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
static inline void aq_op_release(struct aq_op *op)
{
    __tsan_release(op);
}
static inline void aq_op_acquire(struct aq_op *op)
{
    __tsan_acquire(op);
}
#else
static inline void aq_op_release(struct aq_op *op)
{
    (void)op;
}
static inline void aq_op_acquire(struct aq_op *op)
{
    (void)op;
}
#endif

/** aq_op_begin - n more parts of a category are about to be sent. Called before the first is
 * sent. */
static inline void aq_op_begin(struct aq_op *op, gex_EC_t category, uint64_t n)
{
    aq_counter_add(&op->pending[aq_op_cell_of(category) - 1], n);
    aq_op_release(op);
}

/** aq_op_end - n parts are complete, or could not be sent. op may be freed when this returns. */
static inline void aq_op_end(struct aq_op *op, gex_EC_t category, uint64_t n)
{
    aq_op_acquire(op);
    aq_counter_add(&op->pending[aq_op_cell_of(category) - 1], -n);
}

/* Returns true if all parts of one cell's category are complete. */
static inline bool aq_op_cell_done(const struct aq_op *op, enum aq_op_cell cell)
{
    return aq_counter_get(&op->pending[cell - 1]) == 0;
}

/* Returns true if all counted parts are complete. No part is added once every count is zero, so
 * testing one count after the other is equivalent to testing all at once. */
static inline bool aq_op_counts_done(const struct aq_op *op)
{
    return (aq_counter_get(&op->pending[0]) | aq_counter_get(&op->pending[1])
            | aq_counter_get(&op->pending[2]) | aq_counter_get(&op->pending[3]))
           == 0;
}

/* --- life cycle --- */

/** aq_op_create - makes an operation that waits for nothing yet; ends the job without memory. */
struct aq_op *aq_op_create(const struct aq_op_kind *kind, gex_Rank_t peer);

/** aq_op_retire - frees an operation that is complete, or never began. Any thread. */
void aq_op_retire(struct aq_op *op);

/** aq_op_is_done - returns true if everything is complete. missing_out may be NULL. Never
 * polls. */
bool aq_op_is_done(const struct aq_op *op, gex_Rank_t *missing_out);

/** aq_op_wait - polls until op is complete, then retires it. For blocking calls. */
void aq_op_wait(struct aq_op *op);

/**
 * aq_op_expose - pass an operation to the client, after its parts were started.
 * Returns the root event; GEX_EVENT_INVALID, and op is retired, if it is already complete.
 */
gex_Event_t aq_op_expose(struct aq_op *op);

/** aq_op_expose_open - the same for an operation that counts nothing and has just been found
 * incomplete. */
gex_Event_t aq_op_expose_open(struct aq_op *op);

/** aq_op_leaf - the event of one cell of an exposed operation; GEX_EVENT_INVALID if it is
 * complete. */
gex_Event_t aq_op_leaf(const struct aq_op *op, enum aq_op_cell cell);

/* --- implicit operations --- */

/**
 * aq_op_implicit - the operation that counts this thread's implicit operations: its open access
 * region, or the thread's own set. peer is recorded for the stall report. Conduits that take over
 * the payload of an active message with GEX_EVENT_GROUP count it here as GEX_EC_AM.
 */
struct aq_op *aq_op_implicit(gex_Rank_t peer);

/* The operations of a thread. Never freed: a thread that starts later takes an idle pool over, with
 * its outstanding implicit operations. */
struct aq_pool {
    _Alignas(AQ_OP_SIZE) struct aq_op implicit;
    struct aq_op *region;  /* the open access region, or NULL */
    struct aq_op *free;    /* private to the thread */
    struct aq_op *orphans; /* regions that an ended thread has left open */
    struct aq_pool *next;  /* in the list of idle pools */
    size_t grown;          /* operations allocated so far */
    _Alignas(AQ_OP_SIZE) struct aq_op *_Atomic returned; /* retired by other threads */
};

/** aq_pool_self - the calling thread's pool, made at its first operation. */
struct aq_pool *aq_pool_self(void);

/** aq_pool_look - the same, or NULL if this thread has none yet. */
struct aq_pool *aq_pool_look(void);

#endif
