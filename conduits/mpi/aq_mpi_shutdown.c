/*
 * aq_mpi_shutdown.c - the conduit and the MPI provider share one MPI, up to MPI_Finalize.
 *
 * The provider (other/spawn/mpi) starts MPI and decides which side calls MPI_Finalize. It takes the
 * conduit's lock around MPI, asks the conduit to complete what is under way, and notifies it at the
 * beginning of MPI_Finalize, so that the conduit frees receives, windows and communicators. The end
 * of a job over a group, whose processes go on, does the same.
 *
 * Close     a receive or communicator may be freed only after all messages for it have arrived.
 *           Each rank first completes its own sends and transfers, and receives and drops what
 *           arrives. It then enters a nonblocking barrier, and continues to receive until all ranks
 *           have entered it. The last credit message, which an MPI without eager messages keeps at
 *           its sender, finds its receiver in that phase
 * Threads   any; close: one, which keeps the lock
 * Uses      other/spawn/mpi, the conduit's messages and transfers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_shutdown.h"

#include <stdlib.h>
#include <time.h>

#include "conduits/mpi/aq_mpi_am_in.h"
#include "conduits/mpi/aq_mpi_attach.h"
#include "conduits/mpi/aq_mpi_coalesce.h"
#include "conduits/mpi/aq_mpi_lock.h"
#include "conduits/mpi/aq_mpi_rma.h"
#include "base/aq_rc.h"
#include "core/aq_service.h"

#define AQ_MPI_CLOSE_MS UINT64_C(200) /* limit for transfers that the client has not waited for */
/* polls between two sleeps of 200 us while a rank waits for others */
#define AQ_MPI_LOOKS    64u
#define AQ_MPI_FLUSH_NS 20000 /* between polls during shutdown */

static void aq_mpi_shutdown_sleep(long ns)
{
    const struct timespec delay = { .tv_nsec = ns };

    nanosleep(&delay, NULL);
}

void aq_mpi_shutdown_flush(uint64_t max_ns)
{
    const uint64_t end = aq_now_ns() + max_ns;
    bool drained = aq_mpi_is_alone();

    while (!drained) {
        /* try only: the owner may be stopped for good */
        if (aq_mpi_try_lock()) {
            /* a transfer that the client has not waited for need not complete */
            (void)aq_mpi_rma_drain();
            drained =
                aq_mpi_am_drain(&aq_mpi_am); /* a peer's last messages may wait for this rank */
            aq_mpi_unlock();
        }
        if (drained || aq_now_ns() >= end)
            return;
        aq_mpi_shutdown_sleep(AQ_MPI_FLUSH_NS);
    }
}

/* --- at the beginning of MPI_Finalize: see "Close" --- */

static void aq_mpi_shutdown_drain(void)
{
    const uint64_t end = aq_now_ns() + AQ_MPI_CLOSE_MS * UINT64_C(1000000);
    bool entered = false, all = false;

    for (unsigned looks = 1; !all; looks++) {
        const bool moved = aq_mpi_rma_drain() && !aq_mpi_coalesce_is_pending();
        const bool drained = aq_mpi_am_drain(&aq_mpi_am);

        /* transfers that the client has not waited for may have lost their partner: hence the
         * timeout */
        if (!entered && drained && (moved || aq_now_ns() >= end)) {
            aq_mpi_coalesce_drop(); /* nothing is sent to a rank that may have entered, too */
            entered = aq_mpi.lib->job->ibarrier() == 0;
            if (!entered) /* MPI has failed, so no other call would work either */
                return;
        }
        if (entered && aq_mpi.lib->job->ibarrier_test(&all) != 0)
            return;
        if (looks % AQ_MPI_LOOKS == 0)
            aq_mpi_shutdown_sleep(200000);
    }
}

/* Collective: has any rank dropped a message, or a transfer that never completes? */
static bool aq_mpi_shutdown_any_lost(void)
{
    const uint32_t size = aq_mpi.lib->job->size();
    const char own = aq_mpi_am.dropped || aq_mpi_rma_busy() || aq_mpi_coalesce.dropped;
    char *lost = malloc(size);
    bool any = lost == NULL || aq_mpi.lib->job->allgather(&own, 1, lost) != 0;

    for (uint32_t i = 0; i < size && !any; i++)
        any = lost[i] != 0;
    free(lost);
    return any;
}

static void aq_mpi_shutdown_close(bool by_client)
{
    if (aq_mpi_am.lib != NULL) {
        aq_mpi_shutdown_drain();
        aq_mpi.lost = by_client && aq_mpi_shutdown_any_lost();
        aq_mpi_am.lib->close();
    }
    aq_mpi_rma_fini();
    /* release: pairs with the acquire in aq_mpi_check_over() */
    atomic_store_explicit(&aq_mpi.over, by_client, memory_order_release);
    /* relaxed: from here on polls leave MPI out */
    atomic_store_explicit(&aq_mpi.alone, true, memory_order_relaxed);
}

/* --- calls by the provider --- */

static const struct aq_spawn_mpi_lib *aq_mpi_shutdown_load(char *why, size_t len)
{
    return aq_mpi_load(why, len) == AQ_OK ? aq_mpi.lib->job : NULL;
}

static void aq_mpi_shutdown_lock(void)
{
    aq_mpi_lock();
}

static bool aq_mpi_shutdown_try_lock(void)
{
    return aq_mpi_try_lock();
}

static void aq_mpi_shutdown_unlock(void)
{
    aq_mpi_unlock();
}

static int aq_mpi_shutdown_ibarrier(bool *all_out)
{
    return aq_mpi_rma.lib == NULL ? AQ_ERR_SYS : aq_mpi_rma.lib->ibarrier(all_out);
}

static bool aq_mpi_shutdown_progress(void)
{
    bool moved, drained;

    if (aq_mpi_is_alone() || aq_mpi_am.lib == NULL)
        return true;
    moved = aq_mpi_rma_drain();
    aq_mpi_coalesce_drop();                /* credit comes no more from a rank that ends, too */
    drained = aq_mpi_am_drain(&aq_mpi_am); /* always: others' sends may wait for this rank */
    return moved && drained;
}

static const struct aq_spawn_mpi_conduit aq_mpi_shutdown_conduit = {
    .load = aq_mpi_shutdown_load,
    .has_progress_thread = aq_service_is_on,
    .lock = aq_mpi_shutdown_lock,
    .try_lock = aq_mpi_shutdown_try_lock,
    .unlock = aq_mpi_shutdown_unlock,
    .barrier = aq_mpi_barrier,
    .ibarrier = aq_mpi_shutdown_ibarrier,
    .progress = aq_mpi_shutdown_progress,
    .close = aq_mpi_shutdown_close,
};

static int aq_mpi_shutdown_join(struct aq_spawn_state *st)
{
    return aq_spawn_mpi_join(st, &aq_mpi_shutdown_conduit);
}

const struct aq_spawn_provider aq_mpi_spawn = {
    .name = "mpi",
    .offered = aq_spawn_mpi_offered,
    .join = aq_mpi_shutdown_join,
    .allgather = aq_spawn_mpi_allgather,
    .bcast = aq_spawn_mpi_bcast,
    .fence = aq_spawn_mpi_fence,
    .notify = aq_spawn_mpi_notify,
    .finish = aq_spawn_mpi_finish,
};

const struct aq_spawn_provider aq_mpi_spawn_group = {
    .name = "mpi",
    .offered = aq_spawn_mpi_offered,
    .join = aq_mpi_shutdown_join,
    .allgather = aq_spawn_mpi_allgather,
    .bcast = aq_spawn_mpi_bcast,
    .fence = aq_spawn_mpi_fence,
    .notify = aq_spawn_mpi_notify,
    .finish = aq_spawn_mpi_finish,
    .disconnect = aq_spawn_mpi_disconnect,
    .gather = aq_spawn_mpi_gather,
    .fini = aq_spawn_mpi_fini,
};
