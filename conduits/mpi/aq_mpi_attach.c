/*
 * aq_mpi_attach.c - attaching segments: MPI makes a window over them.
 *
 * Threads   one; collective over the job
 * Uses      aq_mpi_choose.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_attach.h"

#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "conduits/mpi/aq_mpi_am.h"
#include "conduits/mpi/aq_mpi_choose.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_rma.h"
#include "core/aq_am.h"
#include "core/aq_job.h"
#include "core/aq_poll.h"

/* A rank that takes part in a collective call of MPI polls until it is complete, and for a while
 * after that: the others may need progress of this rank. */
static void aq_mpi_attach_stay_awake(bool begins)
{
    aq_mpi_lock();
    aq_mpi_am.wakeup.collectives += begins ? 1u : -1u;
    aq_mpi_wakeup_came(&aq_mpi_am.wakeup);
    aq_mpi_unlock();
}

void aq_mpi_barrier(void)
{
    struct aq_waiter waiter =
        AQ_WAITER_INIT("the other ranks at a collective call", GEX_RANK_INVALID);
    bool begun = false, done = aq_mpi_is_alone() || aq_mpi_rma.lib == NULL;
    const bool collective = !done;

    /* waits for transfers too, also those of other ranks: afterwards the caller alone uses the
     * module's list of requests */
    if (collective)
        aq_mpi_attach_stay_awake(true);
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
    if (collective)
        aq_mpi_attach_stay_awake(false);
}

/* Returns false if this MPI has no usable window; active messages then carry all transfers. */
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

/* Between hosts an MPI library may have registered memory with a device, for a window or a large
 * message, and keeps it pinned. */
int aq_mpi_segment_discard(void *addr, size_t nbytes)
{
    return aq_job.host_count > 1 ? AQ_ERR_RESOURCE : aq_job.local->segment_discard(addr, nbytes);
}
