/*
 * aq_mpi_window.c - start and end of transfers, and attaching a segment: conduits/smp makes the
 * memory, MPI puts a window over it.
 *
 * Threads   one; collective over the job, but for fini, which is so in ranks that leave together
 * Uses      aq_mpi_rma.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_am.h"
#include "base/aq_log.h"
#include "core/aq_poll.h"
#include "base/aq_rc.h"

void aq_mpi_barrier(void)
{
    struct aq_waiter waiter =
        AQ_WAITER_INIT("the other ranks at a collective call", GEX_RANK_INVALID);
    bool begun = false, done = aq_mpi_is_alone() || aq_mpi_rma.lib == NULL;

    /* transfers end first, of others with us, too: who goes on from here may have the list of
     * requests for itself */
    while (!done || aq_mpi_rma_busy()) {
        begun = begun || !aq_mpi_rma_busy();
        if (begun && !done) {
            aq_mpi_lock();
            aq_mpi_check(aq_mpi_rma.lib->ibarrier(&done), "meeting the other ranks");
            aq_mpi_unlock();
        }
        if (!done || aq_mpi_rma_busy())
            aq_wait_step(&waiter);
    }
    aq_wait_end(&waiter);
}

/* False: this MPI has none for us, and messages serve. */
static bool aq_mpi_window_open(void *base, uintptr_t size)
{
    char text[256] = "some rank's MPI has none that is one with its memory (MPI_WIN_UNIFIED)";
    bool usable = false;
    int error;

    aq_mpi_barrier();
    aq_mpi_lock();
    error = aq_mpi_rma.lib->open(base, size, &usable);
    aq_mpi_unlock();
    if (error != 0)
        aq_mpi.lib->job->text(error, text, sizeof(text));
    if (!usable)
        AQ_LOG(INFO, MPI, "no window over the segments, messages serve: %s", text);
    return usable;
}

int aq_mpi_segment_attach(uintptr_t size, void **base_io)
{
    return aq_mpi_choose(aq_mpi_choose_needs_window() && aq_mpi_window_open(*base_io, size));
}

int aq_mpi_rma_init(void)
{
    int rc;

    aq_mpi_choose_none();
    if (aq_mpi_is_alone())
        return AQ_OK;
    aq_mpi_rma.lib = aq_mpi.lib->rma;
    rc = aq_mpi_xfer_init();
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
    aq_mpi_choose_none(); /* whoever comes later finds no window */
    /* what fails here fails for good: the process leaves, and so may the others have */
    (void)aq_mpi_rma.lib->close(AQ_MPI_WIN_JOB);
    (void)aq_mpi_rma.lib->stop();
}
