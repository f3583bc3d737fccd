/*
 * aq_mpi_rma.c - put and get between ranks that share no memory: selects one of three paths.
 *
 *   window    MPI's one-sided calls, into the peer's segment (aq_mpi_window.c)
 *   direct    an active message, then one MPI message between the two buffers (aq_mpi_direct.c)
 *   messages  the data in active messages (aq_ref_put, aq_ref_get)
 *
 * Small transfers share messages (aq_mpi_coalesce.c): implicit puts whatever the path of others is,
 * implicit gets if no window would serve them or their target pays attention (aq_mpi_attention.h),
 * and to such a target all others, too, if a message and its answer are faster than the window. A
 * program that has started MPI itself may have a target that waits in MPI a moment later: there a
 * transfer that a window can complete goes by the window. aq_mpi_choose.c says from which size on
 * which path is best. Memory that no window covers (further endpoints, segment everything) uses the
 * direct path, or messages if the transfer is small.
 *
 * Threads   any
 * Uses      aq_mpi_rma.h and the paths, extended/aq_ref.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rma.h"

#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_choose.h"
#include "conduits/mpi/aq_mpi_coalesce.h"
#include "conduits/mpi/aq_mpi_direct.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_window.h"
#include "extended/aq_ref.h"
#include "other/spawn/mpi/aq_spawn_mpi.h"

/* Returns true if a small transfer shares a message. window: a window would serve the transfer;
 * without one, implicit gets share. */
static inline bool aq_mpi_shares(const struct aq_op *op, gex_Rank_t jobrank,
                                 const struct aq_mpi_paths *paths, bool window)
{
    if (!window)
        return op->kind->counts_many;
    return paths->one_sided && aq_mpi_rma.asks && (paths->slow || op->kind->counts_many)
           && aq_mpi_coalesce_is_attentive(jobrank);
}

int aq_mpi_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);
    /* a transfer that would have to wait for space or for its data to leave, and must not wait,
     * uses messages */
    const bool may_wait =
        (flags & GEX_FLAG_IMMEDIATE) == 0 || nbytes <= (lc_now ? AQ_MPI_SHORT : AQ_MPI_FRAG_MAX);
    const bool fits = aq_mpi_coalesce_fits(aq_mpi_coalesce.max_put, dest, nbytes, flags);
    const bool implicit = fits && op->kind->counts_many;
    const bool window = !implicit && nbytes >= paths->put_from && may_wait
                        && aq_bound_contains(jobrank, dest, nbytes);

    if (implicit || (fits && aq_mpi_shares(op, jobrank, paths, window))) {
        aq_mpi_coalesce_put(op, jobrank, dest, src, nbytes);
        return AQ_OK;
    }
    if (window)
        return aq_mpi_window_put(op, jobrank, dest, src, nbytes, lc_now, flags);
    if (nbytes >= paths->direct_put && may_wait)
        return aq_mpi_direct_put(op, jobrank, dest, src, nbytes, lc_now, flags);
    return aq_ref_put(op, jobrank, dest, src, nbytes, lc_now, flags);
}

int aq_mpi_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags)
{
    const struct aq_mpi_paths *paths = aq_mpi_paths_to(jobrank);
    const bool window = nbytes >= paths->get_from && aq_bound_contains(jobrank, src, nbytes);

    if ((flags & GEX_FLAG_IMMEDIATE) != 0 && nbytes > AQ_MPI_FRAG_MAX)
        return aq_ref_get(op, jobrank, dest, src, nbytes,
                          flags); /* the second chunk might have to wait */
    if (aq_mpi_coalesce_fits(aq_mpi_coalesce.max_get, src, nbytes, flags)
        && aq_mpi_shares(op, jobrank, paths, window)) {
        aq_mpi_coalesce_get(op, jobrank, dest, src, nbytes);
        return AQ_OK;
    }
    if (window)
        return aq_mpi_window_get(op, jobrank, dest, src, nbytes, flags);
    if (nbytes >= paths->direct_get)
        return aq_mpi_direct_get(op, jobrank, dest, src, nbytes, flags);
    return aq_ref_get(op, jobrank, dest, src, nbytes, flags);
}

unsigned aq_mpi_rma_poll(void)
{
    return aq_mpi_rma_busy() ? aq_mpi_xfer_poll(&aq_mpi_rma.xfers) : 0;
}

bool aq_mpi_rma_drain(void)
{
    aq_mpi_coalesce_flush();
    aq_mpi_rma_poll();
    return !aq_mpi_rma_busy();
}

/* --- start and end --- */

int aq_mpi_rma_init(void)
{
    int rc;

    aq_mpi_choose_none();
    if (aq_mpi_is_alone())
        return AQ_OK;
    aq_mpi_rma.lib = aq_mpi.lib->rma;
    aq_mpi_rma.asks = aq_spawn_mpi_is_ours();
    rc = aq_mpi_xfer_init(&aq_mpi_rma.xfers, aq_mpi_rma.lib, aq_job.size);
    if (rc != AQ_OK)
        return rc;
    rc = aq_mpi_coalesce_init(aq_mpi_choose_coalesced_put(), aq_mpi_choose_coalesced_get());
    if (rc != AQ_OK)
        return rc;
    aq_mpi_direct_init();
    aq_mpi_lock();
    aq_mpi_check(aq_mpi_rma.lib->start(), "making the communicator of transfers");
    aq_mpi_unlock();
    return AQ_OK;
}

void aq_mpi_rma_fini(void)
{
    if (aq_mpi_rma.lib == NULL)
        return;
    aq_mpi_choose_none(); /* later calls find no window */
    /* a failure here has no remedy: the process exits, and the others may have exited */
    (void)aq_mpi_rma.lib->close(AQ_MPI_WIN_JOB);
    (void)aq_mpi_rma.lib->stop();
}
