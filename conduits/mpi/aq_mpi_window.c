/*
 * aq_mpi_window.c - put and get by MPI's one-sided calls, into the segment of the peer.
 *
 * A short transfer by a one-sided window is complete after a flush, which is then short too. If the
 * client waits for the transfer, both calls are made at once; if not, the next poll flushes. Other
 * transfers have a request, which polls test.
 *
 * Threads   any
 * Uses      aq_mpi_window.h, aq_mpi_lock.h, core/aq_op.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_am.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_measure.h"
#include "core/aq_poll.h"

static inline uint64_t aq_mpi_window_at(gex_Rank_t rank, const void *remote)
{
    return (uintptr_t)remote - (uintptr_t)aq_job.bound[rank].addr;
}

/* A short transfer by a one-sided window, for which the caller waits: complete on return. */
static int aq_mpi_window_now(const struct aq_mpi_xfer *as)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    const int error = as->type == AQ_MPI_X_PUT
                          ? lib->put(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes)
                          : lib->get(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes);

    return error != 0 ? error : lib->flush(AQ_MPI_WIN_JOB, as->rank);
}

/* One-sidedness has been tried with transfers of these lengths; longer ones may need the target. */
static inline bool aq_mpi_window_needs_polls(const struct aq_mpi_xfer *as)
{
    return !aq_mpi_paths_to(as->rank)->one_sided
           || as->nbytes > (as->type == AQ_MPI_X_PUT ? AQ_MPI_TRIED : AQ_MPI_SHORT);
}

static struct aq_mpi_xfer *aq_mpi_window_xfer(const struct aq_mpi_xfer *as)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new(&aq_mpi_rma.xfers);

    xfer->type = as->type;
    xfer->op = as->op;
    xfer->rank = as->rank;
    xfer->remote = as->remote;
    xfer->local = as->local;
    xfer->nbytes = as->nbytes;
    xfer->needs_polls = aq_mpi_window_needs_polls(as);
    aq_op_begin(as->op, as->type == AQ_MPI_X_PUT ? GEX_EC_PUT : GEX_EC_GET, 1);
    return xfer;
}

/* The same by a window that is not one-sided: complete on return if the target calls MPI soon
 * enough. */
static int aq_mpi_window_soon(const struct aq_mpi_xfer *as)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    bool done;
    int error;

    /* the call may wait for the target */
    aq_mpi_wakeup_sent(&aq_mpi_am.wakeup, as->rank, &aq_mpi_am.peers[as->rank], false);
    error = as->type == AQ_MPI_X_PUT
                ? lib->rput_now(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes, &done)
                : lib->rget_now(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes, &done);

    if (error == 0 && !done)
        aq_mpi_xfer_adopt(&aq_mpi_rma.xfers, aq_mpi_window_xfer(as));
    return error;
}

/* Completes a short transfer at once if possible and sets *done_out. Otherwise it is not
 * started. */
static int aq_mpi_window_try(const struct aq_mpi_xfer *as, gex_Flags_t flags, bool *done_out)
{
    int error = 0;

    if ((flags & GEX_FLAG_IMMEDIATE) == 0)
        aq_mpi_lock();
    else if (!aq_mpi_try_lock())
        return AQ_RETRY;
    *done_out = true;
    if (!aq_mpi_xfer_is_alone(&aq_mpi_rma.xfers,
                              as->rank)) /* a flush would wait for other transfers to that rank */
        *done_out = false;
    else
        error =
            aq_mpi_paths_to(as->rank)->one_sided ? aq_mpi_window_now(as) : aq_mpi_window_soon(as);
    aq_mpi_unlock();
    aq_mpi_check(error, "a short transfer");
    return AQ_OK;
}

/* One MPI operation. With the lock. */
static void aq_mpi_window_start(const struct aq_mpi_xfer *as, bool lc_now, atomic_bool *left)
{
    struct aq_mpi_xfer *xfer = aq_mpi_window_xfer(as);

    if (as->type == AQ_MPI_X_PUT && !lc_now) {
        xfer->counts_lc = true;
        aq_op_begin(as->op, GEX_EC_LC, 1);
    } else if (as->type == AQ_MPI_X_PUT && as->nbytes <= AQ_MPI_SHORT) {
        xfer->copy = as->nbytes <= sizeof(xfer->tiny) ? xfer->tiny : malloc(as->nbytes);
        if (xfer->copy == NULL)
            aq_fatal("mpi: no memory for the copy of a put of %zu bytes", as->nbytes);
        xfer->local = memcpy(xfer->copy, as->local, as->nbytes);
    } else if (as->type == AQ_MPI_X_PUT) {
        xfer->left_out = left;
    }
    if (aq_mpi_paths_to(as->rank)->one_sided && as->nbytes <= AQ_MPI_SHORT
        && aq_mpi_xfer_has_space(&aq_mpi_rma.xfers, as->rank))
        aq_mpi_xfer_post(&aq_mpi_rma.xfers, xfer);
    else
        aq_mpi_xfer_start(&aq_mpi_rma.xfers, xfer);
}

static void aq_mpi_window_wait_left(gex_Rank_t rank, atomic_bool *left)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("local completion of a put", rank);

    /* acquire: pairs with the release in aq_mpi_xfer_left() */
    while (!atomic_load_explicit(left, memory_order_acquire))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
}

/* Starts the operations of a whole transfer; *as holds its kind and where it starts. */
static int aq_mpi_window_move(struct aq_mpi_xfer *as, size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    /* a blocking transfer, or a put whose source must be free on return if it is certain to
     * complete in the call */
    const bool tries =
        nbytes <= AQ_MPI_SHORT
        && (as->op->kind->blocks || (lc_now && aq_mpi_paths_to(as->rank)->one_sided));
    bool done = false;

    as->nbytes = nbytes;
    if (tries && (aq_mpi_window_try(as, flags, &done) != AQ_OK))
        return AQ_RETRY;
    for (size_t left = done ? 0 : nbytes; left != 0; left -= as->nbytes) {
        atomic_bool lc_done = false;

        as->nbytes = left < AQ_MPI_FRAG_MAX ? left : AQ_MPI_FRAG_MAX;
        if (aq_mpi_xfer_lock(&aq_mpi_rma.xfers, as->rank, flags) != AQ_OK)
            return AQ_RETRY;
        aq_mpi_window_start(as, lc_now, &lc_done);
        aq_mpi_unlock();
        if (lc_now && as->nbytes > AQ_MPI_SHORT)
            aq_mpi_window_wait_left(as->rank, &lc_done);
        as->local += as->nbytes;
        as->remote += as->nbytes;
    }
    return AQ_OK;
}

int aq_mpi_window_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    struct aq_mpi_xfer as;

    as.type = AQ_MPI_X_PUT;
    as.op = op;
    as.rank = jobrank;
    as.local = (char *)(uintptr_t)src;
    as.remote = aq_mpi_window_at(jobrank, dest);
    return aq_mpi_window_move(&as, nbytes, lc_now, flags);
}

int aq_mpi_window_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
                      size_t nbytes, gex_Flags_t flags)
{
    struct aq_mpi_xfer as;

    as.type = AQ_MPI_X_GET;
    as.op = op;
    as.rank = jobrank;
    as.local = dest;
    as.remote = aq_mpi_window_at(jobrank, src);
    return aq_mpi_window_move(&as, nbytes, false, flags);
}

bool aq_mpi_window_place(gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);
    struct aq_mpi_xfer as = { .type = AQ_MPI_X_PUT,
                              .rank = jobrank,
                              .local = (char *)(uintptr_t)src,
                              .remote = aq_mpi_window_at(jobrank, dest) };

    if (!paths->one_sided || nbytes < paths->put_from || !aq_bound_contains(jobrank, dest, nbytes)
        || !aq_mpi_xfer_is_alone(&aq_mpi_rma.xfers, jobrank))
        return false;
    /* an MPI may need the target for longer puts than were tried */
    for (size_t left = nbytes; left != 0; left -= as.nbytes) {
        as.nbytes = left < AQ_MPI_TRIED ? left : AQ_MPI_TRIED;
        aq_mpi_check(aq_mpi_window_now(&as), "the payload of a message");
        as.local += as.nbytes;
        as.remote += as.nbytes;
    }
    return true;
}
