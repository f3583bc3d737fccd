/*
 * aq_mpi_rma_xfer.c - transfers on their way: requests of MPI's, flushes, and those that wait for
 * either.
 *
 * MPI says of a put that its source is free, by a request; that the data is at the target only a
 * flush says, and a flush waits for everything under way to that target. A flush that waits would
 * hold up this rank's handlers for as long as the target looks away. So a put whose request is done
 * is settled first: it waits until no request to the same target is outstanding, and is flushed
 * then, when nothing is left that the flush could wait for.
 *
 * So that later transfers cannot hold a settled put up for ever, those to the target of the oldest
 * one are queued once AQ_MPI_AGE_MAX others have been started after it: its requests run out, it is
 * flushed, the queue moves on.
 *
 * Owns      pieces: active ones with a request, in step with the module's list; settled ones;
 *           queued ones, of windows, in the order of their starts; free ones, kept for good
 * Threads   inside aq_mpi_lock(), but for the count of busy ones
 * Uses      aq_mpi_rma.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_op.h"

#define AQ_MPI_WINDOW_OPS_MAX 64u   /* requests of windows at a time */
#define AQ_MPI_QUEUE_MAX      1024u /* pieces that may wait before calls do */
#define AQ_MPI_AGE_MAX        64u
#define AQ_MPI_GROW           32u /* pieces allocated at a time */

struct aq_mpi_xfer_list {
    struct aq_mpi_xfer *first, **last;
    unsigned length;
};

static struct {
    struct aq_mpi_xfer **active,
        **over; /* [room]: those with a request; for a poll, those that are done */
    unsigned count, capacity;
    unsigned windows; /* of active ones, those of windows */
    struct aq_mpi_xfer_list settled, queue;
    struct aq_mpi_xfer *free;
    uint32_t *outstanding; /* [size]: requests of window transfers with that rank */
    uint64_t starts;
} aq_mpi_xfers;

/* --- pieces --- */

int aq_mpi_xfer_init(void)
{
    aq_mpi_xfers.settled.last = &aq_mpi_xfers.settled.first;
    aq_mpi_xfers.queue.last = &aq_mpi_xfers.queue.first;
    aq_mpi_xfers.outstanding = calloc(aq_job.size, sizeof(*aq_mpi_xfers.outstanding));
    return aq_mpi_xfers.outstanding != NULL
               ? AQ_OK
               : aq_fail(AQ_ERR_NOMEM, "mpi: no memory for the transfers with %u ranks",
                         aq_job.size);
}

static void aq_mpi_xfer_grow(void)
{
    struct aq_mpi_xfer *more = malloc(AQ_MPI_GROW * sizeof(*more));

    if (more == NULL)
        aq_fatal("mpi: no memory for transfers");
    for (unsigned i = 0; i < AQ_MPI_GROW; i++) {
        more[i].next = aq_mpi_xfers.free;
        aq_mpi_xfers.free = &more[i];
    }
}

struct aq_mpi_xfer *aq_mpi_xfer_new(void)
{
    struct aq_mpi_xfer *xfer;

    if (AQ_UNLIKELY(aq_mpi_xfers.free == NULL))
        aq_mpi_xfer_grow();
    xfer = aq_mpi_xfers.free;
    aq_mpi_xfers.free = xfer->next;
    xfer->op = NULL;
    xfer->copy = NULL;
    xfer->left_out = NULL;
    xfer->counts_lc = false;
    return xfer;
}

static void aq_mpi_xfer_free(struct aq_mpi_xfer *xfer)
{
    xfer->next = aq_mpi_xfers.free;
    aq_mpi_xfers.free = xfer;
    aq_counter_add(&aq_mpi_rma.busy, -(uint64_t)1);
}

static void aq_mpi_xfer_push(struct aq_mpi_xfer_list *list, struct aq_mpi_xfer *xfer)
{
    xfer->next = NULL;
    *list->last = xfer;
    list->last = &xfer->next;
    list->length++;
}

/* Take out the one at *at. */
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

/* --- ends --- */

/* Its source may be used again. */
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
        /* release: whoever sees it may use the source again, and leave its frame */
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

/* Flushed, or what needs no flush: done. */
static void aq_mpi_xfer_end(struct aq_mpi_xfer *xfer)
{
    switch ((enum aq_mpi_xfer_type)xfer->type) {
    case AQ_MPI_X_PUT:
        aq_mpi_xfer_left(xfer); /* if it had no request to say so */
        aq_op_end(xfer->op, GEX_EC_PUT, 1);
        break;
    case AQ_MPI_X_GET:
        aq_op_end(xfer->op, GEX_EC_GET, 1);
        break;
    case AQ_MPI_X_FETCH:
        aq_mpi_xfer_fetched(xfer);
        break;
    case AQ_MPI_X_ACK:
        aq_mpi_direct_give_tag(xfer->tag);
        aq_op_end(xfer->op, GEX_EC_PUT, 1);
        break;
    case AQ_MPI_X_RECV:
        aq_mpi_direct_give_tag(xfer->tag);
        aq_op_end(xfer->op, GEX_EC_GET, 1);
        break;
    case AQ_MPI_X_SERVE_PUT: /* its piece goes on as the acknowledgement */
        aq_counter_add(&aq_mpi_rma.busy, -(uint64_t)1);
        xfer->type = AQ_MPI_X_SERVE_ACK;
        xfer->nbytes = 0;
        aq_mpi_xfer_start(xfer);
        return;
    case AQ_MPI_X_RNDV_RECV:
    case AQ_MPI_X_RNDV_SEND:
        aq_mpi_rndv_end(xfer);
        break;
    case AQ_MPI_X_SEND:
    case AQ_MPI_X_SERVE_ACK:
    case AQ_MPI_X_SERVE_GET:
        break;
    }
    aq_mpi_xfer_free(xfer);
}

static void aq_mpi_xfer_settle(struct aq_mpi_xfer *xfer)
{
    xfer->born = aq_mpi_xfers.starts;
    aq_mpi_xfer_push(&aq_mpi_xfers.settled, xfer);
}

/* Its request is done. */
static void aq_mpi_xfer_requested(struct aq_mpi_xfer *xfer)
{
    if (aq_mpi_xfer_uses_window(xfer)) {
        aq_mpi_xfers.outstanding[xfer->rank]--;
        aq_mpi_xfers.windows--;
    }
    if (xfer->type == AQ_MPI_X_PUT || xfer->type == AQ_MPI_X_SEND)
        aq_mpi_xfer_left(xfer);
    if (xfer->type == AQ_MPI_X_PUT || xfer->type == AQ_MPI_X_FETCH)
        aq_mpi_xfer_settle(xfer);
    else
        aq_mpi_xfer_end(xfer);
}

/* --- starts --- */

static int aq_mpi_xfer_request(struct aq_mpi_xfer *xfer)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    struct aq_mpi_atomic *atomic = &xfer->atomic;
    const int tag = (int)xfer->tag * 3; /* three kinds of messages belong to a transfer */

    switch ((enum aq_mpi_xfer_type)xfer->type) {
    case AQ_MPI_X_PUT:
        return lib->rput(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);
    case AQ_MPI_X_GET:
        return lib->rget(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);
    case AQ_MPI_X_FETCH:
        return lib->fetch(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, (enum aq_mpi_type)atomic->type,
                          (enum aq_mpi_op)atomic->op, &atomic->operand, &atomic->result);
    case AQ_MPI_X_SEND:
        return lib->send(xfer->rank, tag, xfer->local, xfer->nbytes);
    case AQ_MPI_X_SERVE_PUT:
        return lib->recv(xfer->rank, tag, xfer->local, xfer->nbytes);
    case AQ_MPI_X_SERVE_GET:
        return lib->send(xfer->rank, tag + 1, xfer->local, xfer->nbytes);
    case AQ_MPI_X_RECV:
        return lib->recv(xfer->rank, tag + 1, xfer->local, xfer->nbytes);
    case AQ_MPI_X_SERVE_ACK:
        return lib->send(xfer->rank, tag + 2, NULL, 0);
    case AQ_MPI_X_ACK:
        return lib->recv(xfer->rank, tag + 2, NULL, 0);
    case AQ_MPI_X_RNDV_RECV:
        return lib->recv(xfer->rank, (int)(AQ_MPI_RNDV_TAG_BASE + xfer->tag), xfer->local,
                         xfer->nbytes);
    case AQ_MPI_X_RNDV_SEND:
        return lib->send(xfer->rank, (int)(AQ_MPI_RNDV_TAG_BASE + xfer->tag), xfer->local,
                         xfer->nbytes);
    }
    return 0;
}

static void aq_mpi_xfer_grow_active(void)
{
    const unsigned capacity =
        aq_mpi_xfers.capacity == 0 ? AQ_MPI_WINDOW_OPS_MAX : 2 * aq_mpi_xfers.capacity;
    struct aq_mpi_xfer **active = realloc(aq_mpi_xfers.active, capacity * sizeof(*active));
    struct aq_mpi_xfer **over = realloc(aq_mpi_xfers.over, capacity * sizeof(*over));

    if (active == NULL || over == NULL)
        aq_fatal("mpi: no memory for %u transfers at a time", capacity);
    aq_mpi_xfers.active = active;
    aq_mpi_xfers.over = over;
    aq_mpi_xfers.capacity = capacity;
}

/* Its request is the last of the module's list. */
static void aq_mpi_xfer_listed(struct aq_mpi_xfer *xfer)
{
    if (AQ_UNLIKELY(aq_mpi_xfers.count == aq_mpi_xfers.capacity))
        aq_mpi_xfer_grow_active();
    aq_mpi_xfers.active[aq_mpi_xfers.count++] = xfer;
    aq_mpi_xfers.starts++;
    if (aq_mpi_xfer_uses_window(xfer)) {
        aq_mpi_xfers.outstanding[xfer->rank]++;
        aq_mpi_xfers.windows++;
    }
}

static void aq_mpi_xfer_go(struct aq_mpi_xfer *xfer)
{
    aq_mpi_check(aq_mpi_xfer_request(xfer), "starting a transfer");
    aq_mpi_xfer_listed(xfer);
}

void aq_mpi_xfer_adopt(struct aq_mpi_xfer *xfer)
{
    aq_counter_add(&aq_mpi_rma.busy, 1);
    aq_mpi_xfer_listed(xfer);
}

/* Is the oldest settled piece of this rank's, and has it waited for long? */
static inline bool aq_mpi_xfer_is_deferred(gex_Rank_t rank)
{
    const struct aq_mpi_xfer *oldest = aq_mpi_xfers.settled.first;

    return oldest != NULL && oldest->rank == rank
           && aq_mpi_xfers.starts - oldest->born >= AQ_MPI_AGE_MAX;
}

bool aq_mpi_xfer_has_space(gex_Rank_t rank)
{
    return aq_mpi_xfers.queue.first == NULL && aq_mpi_xfers.windows < AQ_MPI_WINDOW_OPS_MAX
           && !aq_mpi_xfer_is_deferred(rank);
}

bool aq_mpi_xfer_is_alone(gex_Rank_t rank)
{
    return aq_mpi_xfers.outstanding[rank] == 0 && aq_mpi_xfer_has_space(rank);
}

bool aq_mpi_xfer_is_full(void)
{
    return aq_mpi_xfers.queue.length >= AQ_MPI_QUEUE_MAX;
}

void aq_mpi_xfer_start(struct aq_mpi_xfer *xfer)
{
    aq_counter_add(&aq_mpi_rma.busy, 1);
    /* a direct one never waits: the other side counts on it */
    if (!aq_mpi_xfer_uses_window(xfer) || AQ_LIKELY(aq_mpi_xfer_has_space(xfer->rank)))
        aq_mpi_xfer_go(xfer);
    else
        aq_mpi_xfer_push(&aq_mpi_xfers.queue, xfer);
}

void aq_mpi_xfer_post(struct aq_mpi_xfer *xfer)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    const int error =
        xfer->type == AQ_MPI_X_PUT
            ? lib->put(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes)
            : lib->get(AQ_MPI_WIN_JOB, xfer->rank, xfer->remote, xfer->local, xfer->nbytes);

    aq_mpi_check(error, "starting a transfer");
    aq_counter_add(&aq_mpi_rma.busy, 1);
    aq_mpi_xfers.starts++;
    aq_mpi_xfer_settle(xfer);
}

/* --- polls --- */

static unsigned aq_mpi_xfer_test(void)
{
    const unsigned *done;
    unsigned count;

    if (aq_mpi_xfers.count == 0)
        return 0;
    aq_mpi_check(aq_mpi_rma.lib->test(&done, &count), "a transfer");
    for (unsigned i = 0; i < count; i++) {
        aq_mpi_xfers.over[i] = aq_mpi_xfers.active[done[i]];
        aq_mpi_xfers.active[done[i]] = aq_mpi_xfers.active[--aq_mpi_xfers.count];
    }
    /* in step with the module's list first: an end may start another */
    for (unsigned i = 0; i < count; i++)
        aq_mpi_xfer_requested(aq_mpi_xfers.over[i]);
    return count;
}

/* End what is settled with targets to which nothing is outstanding. */
static unsigned aq_mpi_xfer_flush(void)
{
    struct aq_mpi_xfer **at = &aq_mpi_xfers.settled.first;
    gex_Rank_t flushed = GEX_RANK_INVALID;
    unsigned ended = 0;

    while (*at != NULL) {
        const gex_Rank_t rank = (*at)->rank;

        if (aq_mpi_xfers.outstanding[rank] != 0) {
            at = &(*at)->next;
            continue;
        }
        if (rank != flushed)
            aq_mpi_check(aq_mpi_rma.lib->flush(AQ_MPI_WIN_JOB, rank), "completing transfers");
        flushed = rank;
        aq_mpi_xfer_end(aq_mpi_xfer_unlink(&aq_mpi_xfers.settled, at));
        ended++;
    }
    return ended;
}

/* Start what waits, as far as there is room; what is held is passed over. */
static void aq_mpi_xfer_feed(void)
{
    struct aq_mpi_xfer **at = &aq_mpi_xfers.queue.first;

    while (*at != NULL && aq_mpi_xfers.windows < AQ_MPI_WINDOW_OPS_MAX) {
        if (aq_mpi_xfer_is_deferred((*at)->rank))
            at = &(*at)->next;
        else
            aq_mpi_xfer_go(aq_mpi_xfer_unlink(&aq_mpi_xfers.queue, at));
    }
}

unsigned aq_mpi_xfer_poll(void)
{
    const unsigned count = aq_mpi_xfer_test();
    const unsigned ended = aq_mpi_xfers.settled.first != NULL ? aq_mpi_xfer_flush() : 0;

    if (AQ_UNLIKELY(aq_mpi_xfers.queue.first != NULL))
        aq_mpi_xfer_feed();
    return count + ended;
}
