/*
 * aq_mpi_xfer.c - outstanding transfers: requests, flushes, and transfers that wait for either.
 *
 * The request of a put completes when the source is free. Only a flush shows that the data is at
 * the target, and a flush waits for everything under way to that target. A flush that waits would
 * stop this rank's handlers until the target calls MPI. A put whose request is complete is
 * therefore settled first: it waits until no request to the same target is outstanding, and is
 * flushed then, when the flush has nothing to wait for.
 *
 * Later transfers could starve a settled put. Transfers to the target of the oldest settled put are
 * therefore queued once AQ_MPI_AGE_MAX others have started after it. The target's requests then
 * complete, the put is flushed, and the queue proceeds.
 *
 * Owns      transfers: active ones with a request, in the order of the module's list; settled ones;
 *           queued ones, which use a window, in the order of their starts; free ones, which are
 *           under the same lock and so have no list of core/aq_freelist.h, and are returned to
 *           malloc when the job ends
 * Threads   with the lock around MPI, except aq_mpi_xfer_lock() and the count of busy ones
 * Uses      aq_mpi_xfer.h, aq_mpi_lock.h, aq_mpi_am.h, core/aq_op.h.
 *           SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_xfer.h"

#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_am.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "core/aq_poll.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"

#define AQ_MPI_WINDOW_OPS_MAX 64u   /* outstanding window requests at a time */
#define AQ_MPI_QUEUE_MAX      1024u /* queued transfers at which calls wait */
#define AQ_MPI_AGE_MAX        64u
#define AQ_MPI_GROW           32u /* transfers allocated at a time */

/* --- transfers --- */

int aq_mpi_xfer_init(struct aq_mpi_xfers *xs, const struct aq_mpi_lib_rma *lib, gex_Rank_t size)
{
    xs->lib = lib;
    xs->settled.last = &xs->settled.first;
    xs->queue.last = &xs->queue.first;
    xs->outstanding = calloc(size, sizeof(*xs->outstanding));
    return xs->outstanding != NULL
               ? AQ_OK
               : aq_fail(AQ_ERR_NOMEM, "mpi: no memory for the transfers with %u ranks", size);
}

void aq_mpi_xfer_fini(struct aq_mpi_xfers *xs)
{
    while (xs->blocks != NULL) {
        struct aq_mpi_xfer *block = xs->blocks;

        xs->blocks = block->next;
        free(block);
    }
    free(xs->active);
    free(xs->done);
    free(xs->outstanding);
}

static void aq_mpi_xfer_grow(struct aq_mpi_xfers *xs)
{
    struct aq_mpi_xfer *more = malloc((1 + AQ_MPI_GROW) * sizeof(*more));

    if (more == NULL)
        aq_fatal("mpi: no memory for transfers");
    more[0].next = xs->blocks; /* the first of a block is no transfer */
    xs->blocks = more;
    for (unsigned i = 1; i <= AQ_MPI_GROW; i++) {
        more[i].next = xs->free;
        xs->free = &more[i];
    }
}

struct aq_mpi_xfer *aq_mpi_xfer_new(struct aq_mpi_xfers *xs)
{
    struct aq_mpi_xfer *xfer;

    if (AQ_UNLIKELY(xs->free == NULL))
        aq_mpi_xfer_grow(xs);
    xfer = xs->free;
    xs->free = xfer->next;
    xfer->op = NULL;
    xfer->ended = NULL;
    xfer->copy = NULL;
    xfer->left_out = NULL;
    xfer->counts_lc = false;
    xfer->needs_polls = false;
    return xfer;
}

static void aq_mpi_xfer_free(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    xfer->next = xs->free;
    xs->free = xfer;
    aq_counter_add(&xs->busy, -(uint64_t)1);
}

static void aq_mpi_xfer_push(struct aq_mpi_xfer_list *list, struct aq_mpi_xfer *xfer)
{
    xfer->next = NULL;
    *list->last = xfer;
    list->last = &xfer->next;
    list->length++;
}

/* Removes the transfer at *at. */
static struct aq_mpi_xfer *aq_mpi_xfer_unlink(struct aq_mpi_xfer_list *list,
                                              struct aq_mpi_xfer **at)
{
    struct aq_mpi_xfer *xfer = *at;

    *at = xfer->next;
    if (list->last == &xfer->next)
        list->last = at;
    list->length--;
    return xfer;
}

static inline bool aq_mpi_xfer_uses_window(const struct aq_mpi_xfer *xfer)
{
    return xfer->type <= AQ_MPI_X_FETCH;
}

/* --- completion --- */

/* The source may be reused. */
static void aq_mpi_xfer_left(struct aq_mpi_xfer *xfer)
{
    if (xfer->copy != NULL) {
        if (xfer->copy != xfer->tiny)
            free(xfer->copy);
        xfer->copy = NULL;
    }
    if (xfer->counts_lc)
        aq_op_end(xfer->op, GEX_EC_LC, 1);
    xfer->counts_lc = false;
    if (xfer->left_out != NULL)
        /* release: the waiting caller may then reuse the source and leave the frame that holds the
         * flag */
        atomic_store_explicit(xfer->left_out, true, memory_order_release);
    xfer->left_out = NULL;
}

static void aq_mpi_xfer_fetched(struct aq_mpi_xfer *xfer)
{
    const struct aq_mpi_atomic *atomic = &xfer->atomic;

    aq_op_acquire(xfer->op);
    if (atomic->result_p != NULL)
        memcpy(atomic->result_p, &atomic->result, atomic->size);
    aq_op_end(xfer->op, (gex_EC_t)atomic->category, 1);
}

/* The transfer is complete: it has been flushed, or needs no flush. */
static void aq_mpi_xfer_end(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    if (xfer->needs_polls)
        aq_mpi_wakeup_end(&aq_mpi_am.wakeup, xfer->rank);
    if (xfer->type == AQ_MPI_X_PUT) {
        aq_mpi_xfer_left(xfer); /* a transfer without a request has not reported this yet */
        aq_op_end(xfer->op, GEX_EC_PUT, 1);
    } else if (xfer->type == AQ_MPI_X_GET) {
        aq_op_end(xfer->op, GEX_EC_GET, 1);
    } else if (xfer->type == AQ_MPI_X_FETCH) {
        aq_mpi_xfer_fetched(xfer);
    } else if (xfer->ended != NULL && xfer->ended(xfer)) {
        return;
    }
    aq_mpi_xfer_free(xs, xfer);
}

static void aq_mpi_xfer_settle(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    xfer->born = xs->starts;
    aq_mpi_xfer_push(&xs->settled, xfer);
}

/* The request is complete. */
static void aq_mpi_xfer_requested(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    if (aq_mpi_xfer_uses_window(xfer)) {
        xs->outstanding[xfer->rank]--;
        xs->windows--;
    }
    if (xfer->type == AQ_MPI_X_PUT || xfer->type == AQ_MPI_X_SEND)
        aq_mpi_xfer_left(xfer);
    if (xfer->type == AQ_MPI_X_PUT || xfer->type == AQ_MPI_X_FETCH)
        aq_mpi_xfer_settle(xs, xfer);
    else
        aq_mpi_xfer_end(xs, xfer);
}

/* --- starts --- */

static int aq_mpi_xfer_request(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    const struct aq_mpi_lib_rma *lib = xs->lib;
    struct aq_mpi_atomic *atomic = &xfer->atomic;

    switch ((enum aq_mpi_xfer_type)xfer->type) {
    case AQ_MPI_X_PUT:
        return lib->rput(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);
    case AQ_MPI_X_GET:
        return lib->rget(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);
    case AQ_MPI_X_FETCH:
        return lib->fetch(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, (enum aq_mpi_type)atomic->type,
                          (enum aq_mpi_op)atomic->op, &atomic->operand, &atomic->result);
    case AQ_MPI_X_SEND:
        return lib->send(xfer->rank, xfer->tag, xfer->local, xfer->nbytes);
    case AQ_MPI_X_RECV:
        return lib->recv(xfer->rank, xfer->tag, xfer->local, xfer->nbytes);
    }
    return 0;
}

static void aq_mpi_xfer_grow_active(struct aq_mpi_xfers *xs)
{
    const unsigned capacity = xs->capacity == 0 ? AQ_MPI_WINDOW_OPS_MAX : 2 * xs->capacity;
    struct aq_mpi_xfer **active = realloc(xs->active, capacity * sizeof(*active));
    struct aq_mpi_xfer **over = realloc(xs->done, capacity * sizeof(*over));

    if (active == NULL || over == NULL)
        aq_fatal("mpi: no memory for %u transfers at a time", capacity);
    xs->active = active;
    xs->done = over;
    xs->capacity = capacity;
}

/* The request of this transfer is the last of the module's list. */
static void aq_mpi_xfer_listed(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    if (AQ_UNLIKELY(xs->count == xs->capacity))
        aq_mpi_xfer_grow_active(xs);
    xs->active[xs->count++] = xfer;
    xs->starts++;
    if (aq_mpi_xfer_uses_window(xfer)) {
        xs->outstanding[xfer->rank]++;
        xs->windows++;
    }
    if (xfer->needs_polls)
        aq_mpi_wakeup_begin(&aq_mpi_am.wakeup, xfer->rank, aq_now_ns());
}

static void aq_mpi_xfer_go(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    /* the call may wait for the target, in which time no wake-up is repeated */
    if (xfer->needs_polls)
        aq_mpi_wakeup_sent(&aq_mpi_am.wakeup, xfer->rank, &aq_mpi_am.peers[xfer->rank], false);
    aq_mpi_check(aq_mpi_xfer_request(xs, xfer), "starting a transfer");
    aq_mpi_xfer_listed(xs, xfer);
}

void aq_mpi_xfer_restart(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    aq_mpi_xfer_go(xs, xfer);
}

/* From now on this rank has to poll. */
static inline void aq_mpi_xfer_count(struct aq_mpi_xfers *xs)
{
    aq_counter_add(&xs->busy, 1);
    aq_mpi_wakeup_rise(&aq_mpi_am.wakeup);
}

void aq_mpi_xfer_adopt(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    aq_mpi_xfer_count(xs);
    aq_mpi_xfer_listed(xs, xfer);
}

/* Returns true if transfers to rank are queued, because the oldest settled put targets it and is
 * old. */
static inline bool aq_mpi_xfer_is_deferred(const struct aq_mpi_xfers *xs, gex_Rank_t rank)
{
    const struct aq_mpi_xfer *oldest = xs->settled.first;

    return oldest != NULL && oldest->rank == rank && xs->starts - oldest->born >= AQ_MPI_AGE_MAX;
}

bool aq_mpi_xfer_has_space(const struct aq_mpi_xfers *xs, gex_Rank_t rank)
{
    return xs->queue.first == NULL && xs->windows < AQ_MPI_WINDOW_OPS_MAX
           && !aq_mpi_xfer_is_deferred(xs, rank);
}

bool aq_mpi_xfer_is_alone(const struct aq_mpi_xfers *xs, gex_Rank_t rank)
{
    return xs->outstanding[rank] == 0 && aq_mpi_xfer_has_space(xs, rank);
}

static inline bool aq_mpi_xfer_is_full(const struct aq_mpi_xfers *xs)
{
    return xs->queue.length >= AQ_MPI_QUEUE_MAX;
}

void aq_mpi_xfer_start(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    aq_mpi_xfer_count(xs);
    /* a direct transfer never waits: the partner relies on it */
    if (!aq_mpi_xfer_uses_window(xfer) || AQ_LIKELY(aq_mpi_xfer_has_space(xs, xfer->rank)))
        aq_mpi_xfer_go(xs, xfer);
    else
        aq_mpi_xfer_push(&xs->queue, xfer);
}

void aq_mpi_xfer_post(struct aq_mpi_xfers *xs, struct aq_mpi_xfer *xfer)
{
    const struct aq_mpi_lib_rma *lib = xs->lib;
    const int error =
        xfer->type == AQ_MPI_X_PUT
            ? lib->put(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes)
            : lib->get(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);

    aq_mpi_check(error, "starting a transfer");
    aq_mpi_xfer_count(xs);
    xs->starts++;
    aq_mpi_xfer_settle(xs, xfer);
}

/* --- polls --- */

static unsigned aq_mpi_xfer_test(struct aq_mpi_xfers *xs)
{
    const unsigned *done;
    unsigned count;

    if (xs->count == 0)
        return 0;
    aq_mpi_check(xs->lib->test(&done, &count), "a transfer");
    for (unsigned i = 0; i < count; i++) {
        xs->done[i] = xs->active[done[i]];
        xs->active[done[i]] = xs->active[--xs->count];
    }
    /* first in step with the module's list: a completion callback may start another transfer */
    for (unsigned i = 0; i < count; i++)
        aq_mpi_xfer_requested(xs, xs->done[i]);
    return count;
}

/* Completes settled transfers to targets to which no request is outstanding. */
static unsigned aq_mpi_xfer_flush(struct aq_mpi_xfers *xs)
{
    struct aq_mpi_xfer **at = &xs->settled.first;
    gex_Rank_t flushed = GEX_RANK_INVALID;
    unsigned ended = 0;

    while (*at != NULL) {
        const gex_Rank_t rank = (*at)->rank;

        if (xs->outstanding[rank] != 0) {
            at = &(*at)->next;
            continue;
        }
        if (rank != flushed && (*at)->needs_polls)
            aq_mpi_wakeup_sent(&aq_mpi_am.wakeup, rank, &aq_mpi_am.peers[rank], false);
        if (rank != flushed)
            aq_mpi_check(xs->lib->flush(AQ_MPI_WIN_JOB, rank), "completing transfers");
        flushed = rank;
        aq_mpi_xfer_end(xs, aq_mpi_xfer_unlink(&xs->settled, at));
        ended++;
    }
    return ended;
}

/* Starts queued transfers while requests are free; deferred ones are passed over. */
static void aq_mpi_xfer_feed(struct aq_mpi_xfers *xs)
{
    struct aq_mpi_xfer **at = &xs->queue.first;

    while (*at != NULL && xs->windows < AQ_MPI_WINDOW_OPS_MAX) {
        if (aq_mpi_xfer_is_deferred(xs, (*at)->rank))
            at = &(*at)->next;
        else
            aq_mpi_xfer_go(xs, aq_mpi_xfer_unlink(&xs->queue, at));
    }
}

unsigned aq_mpi_xfer_poll(struct aq_mpi_xfers *xs)
{
    const unsigned count = aq_mpi_xfer_test(xs);
    const unsigned ended = xs->settled.first != NULL ? aq_mpi_xfer_flush(xs) : 0;

    if (AQ_UNLIKELY(xs->queue.first != NULL))
        aq_mpi_xfer_feed(xs);
    return count + ended;
}

/* --- calls with the lock --- */

int aq_mpi_xfer_lock(struct aq_mpi_xfers *xs, gex_Rank_t rank, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("space for a transfer", rank);

    if ((flags & GEX_FLAG_IMMEDIATE) != 0) {
        if (!aq_mpi_try_lock()) {
            aq_mpi_check_over();
            return AQ_RETRY;
        }
        if (aq_mpi_xfer_has_space(xs, rank))
            return AQ_OK;
        aq_mpi_unlock();
        return AQ_RETRY;
    }
    aq_mpi_lock();
    while (AQ_UNLIKELY(aq_mpi_xfer_is_full(xs))) {
        aq_mpi_unlock();
        aq_wait_step(&waiter);
        aq_mpi_lock();
    }
    aq_wait_end(&waiter);
    return AQ_OK;
}
