/*
 * aq_mpi_rma.c - put and get between far ranks: which of three ways each of them goes.
 *
 *   window    into the peer's segment by MPI's own one-sided calls
 *   direct    an active message, then one send between the two buffers (aq_mpi_rma_direct.c)
 *   messages  the data in active messages (aq_ref_put, aq_ref_get)
 *
 * aq_mpi_choose.c says from which size on which of them is best. Memory that no window holds, of
 * further endpoints and in segment everything, goes directly if it is much.
 *
 * A short transfer by a one-sided window is complete after a flush, which is short too. If the
 * client waits for it anyhow, both calls are made at once; if not, the flush is the next poll's.
 * Everything else has a request, which polls test.
 *
 * Owns      aq_mpi_rma
 * Threads   any
 * Uses      aq_mpi_rma.h, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

#define AQ_MPI_SHORT \
    ((size_t)32768) /* bytes: complete in the call, or copied, rather than waited for */

struct aq_mpi_rma aq_mpi_rma;

/* --- a turn at MPI --- */

int aq_mpi_xfer_lock(gex_Rank_t rank, gex_Flags_t flags)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("room for a transfer", rank);

    if ((flags & GEX_FLAG_IMMEDIATE) != 0) {
        if (!aq_mpi_try_lock()) {
            aq_mpi_check_over();
            return AQ_RETRY;
        }
        if (aq_mpi_xfer_has_space(rank))
            return AQ_OK;
        aq_mpi_unlock();
        return AQ_RETRY;
    }
    aq_mpi_lock();
    while (AQ_UNLIKELY(aq_mpi_xfer_is_full())) {
        aq_mpi_unlock();
        aq_wait_step(&waiter);
        aq_mpi_lock();
    }
    aq_wait_end(&waiter);
    return AQ_OK;
}

/* --- by the window --- */

static inline uint64_t aq_mpi_window_at(gex_Rank_t rank, const void *remote)
{
    return (uintptr_t)remote - (uintptr_t)aq_job.bound[rank].addr;
}

/* A short one that the caller waits for, by a one-sided window: from start to end. */
static int aq_mpi_window_now(const struct aq_mpi_xfer *as)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    const int error = as->type == AQ_MPI_X_PUT
                          ? lib->put(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes)
                          : lib->get(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes);

    return error != 0 ? error : lib->flush(AQ_MPI_WIN_JOB, as->rank);
}

static struct aq_mpi_xfer *aq_mpi_window_xfer(const struct aq_mpi_xfer *as)
{
    struct aq_mpi_xfer *xfer = aq_mpi_xfer_new();

    xfer->type = as->type;
    xfer->op = as->op;
    xfer->rank = as->rank;
    xfer->remote = as->remote;
    xfer->local = as->local;
    xfer->nbytes = as->nbytes;
    aq_op_begin(as->op, as->type == AQ_MPI_X_PUT ? GEX_EC_PUT : GEX_EC_GET, 1);
    return xfer;
}

/* The same by a window that needs the target's attention: to the end, if that comes at once. */
static int aq_mpi_window_soon(const struct aq_mpi_xfer *as)
{
    const struct aq_mpi_lib_rma *lib = aq_mpi_rma.lib;
    bool done;
    const int error =
        as->type == AQ_MPI_X_PUT
            ? lib->rput_now(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes, &done)
            : lib->rget_now(AQ_MPI_WIN_JOB, as->rank, as->remote, as->local, as->nbytes, &done);

    if (error == 0 && !done)
        aq_mpi_xfer_adopt(aq_mpi_window_xfer(as));
    return error;
}

/* Complete a short transfer at once if that can be: *done_out, or it goes the usual way. */
static int aq_mpi_window_try(const struct aq_mpi_xfer *as, gex_Flags_t flags, bool *done_out)
{
    int error = 0;

    if ((flags & GEX_FLAG_IMMEDIATE) == 0)
        aq_mpi_lock();
    else if (!aq_mpi_try_lock())
        return AQ_RETRY;
    *done_out = true;
    if (!aq_mpi_xfer_is_alone(
            as->rank)) /* a flush would wait for all that is under way to that rank */
        *done_out = false;
    else
        error =
            aq_mpi_paths_to(as->rank)->one_sided ? aq_mpi_window_now(as) : aq_mpi_window_soon(as);
    aq_mpi_unlock();
    aq_mpi_check(error, "a short transfer");
    return AQ_OK;
}

/* One piece, inside the lock. */
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
        && aq_mpi_xfer_has_space(as->rank))
        aq_mpi_xfer_post(xfer);
    else
        aq_mpi_xfer_start(xfer);
}

static void aq_mpi_window_wait_left(gex_Rank_t rank, atomic_bool *left)
{
    struct aq_waiter waiter = AQ_WAITER_INIT("the leaving of a put's data", rank);

    /* acquire: pairs with the release in aq_mpi_xfer_left() */
    while (!atomic_load_explicit(left, memory_order_acquire))
        aq_wait_step(&waiter);
    aq_wait_end(&waiter);
}

/* All of it; *as says what and from where. */
static int aq_mpi_window_move(struct aq_mpi_xfer *as, size_t nbytes, bool lc_now, gex_Flags_t flags)
{
    /* only what is one-sided ends for sure in the call, and so at once if its source has to be free
     * */
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
        if (aq_mpi_xfer_lock(as->rank, flags) != AQ_OK)
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

static int aq_mpi_window_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
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

static int aq_mpi_window_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src,
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

/* --- the table's entries, for far ranks --- */

int aq_mpi_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);
    /* what would have to wait here for its data to leave, or for room, and must not, goes in
     * messages */
    const bool may_wait =
        (flags & GEX_FLAG_IMMEDIATE) == 0 || nbytes <= (lc_now ? AQ_MPI_SHORT : AQ_MPI_FRAG_MAX);

    if (aq_mpi_paths_say_window(paths->put, nbytes) && may_wait
        && aq_bound_contains(jobrank, dest, nbytes))
        return aq_mpi_window_put(op, jobrank, dest, src, nbytes, lc_now, flags);
    if (nbytes >= paths->direct && may_wait)
        return aq_mpi_direct_put(op, jobrank, dest, src, nbytes, lc_now, flags);
    return aq_ref_put(op, jobrank, dest, src, nbytes, lc_now, flags);
}

int aq_mpi_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);

    if ((flags & GEX_FLAG_IMMEDIATE) != 0 && nbytes > AQ_MPI_FRAG_MAX)
        return aq_ref_get(op, jobrank, dest, src, nbytes,
                          flags); /* the second piece might have to wait */
    if (aq_mpi_paths_say_window(paths->get, nbytes) && aq_bound_contains(jobrank, src, nbytes))
        return aq_mpi_window_get(op, jobrank, dest, src, nbytes, flags);
    if (nbytes >= paths->direct)
        return aq_mpi_direct_get(op, jobrank, dest, src, nbytes, flags);
    return aq_ref_get(op, jobrank, dest, src, nbytes, flags);
}

unsigned aq_mpi_rma_poll(void)
{
    return aq_mpi_rma_busy() ? aq_mpi_xfer_poll() : 0;
}

bool aq_mpi_rma_drain(void)
{
    aq_mpi_rma_poll();
    return !aq_mpi_rma_busy();
}

bool aq_mpi_rma_busy(void)
{
    return aq_counter_get(&aq_mpi_rma.busy) != 0;
}
