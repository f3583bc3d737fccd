/*
 * aq_mpi_lock.c - loading the module, and waiting for the lock around MPI.
 *
 * Owns      aq_mpi
 * Threads   any
 * Uses      aq_mpi_lock.h, base/aq_module.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "conduits/mpi/aq_mpi_lock.h"

#include <sched.h>
#include <stdio.h>

#include "base/aq_log.h"
#include "base/aq_module.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"

#define AQ_MPI_SPINS 64u

struct aq_mpi aq_mpi AQ_JOB_STATE = { .alone = true }; /* until init finds remote ranks */

static const struct aq_mpi_lib *aq_mpi_module; /* loaded, for the life of the process */

int aq_mpi_load(char *why, size_t len)
{
    const struct aq_mpi_lib *lib =
        aq_mpi_module != NULL ? aq_mpi_module : aq_module_open("mpi", why, len);

    if (lib == NULL)
        return AQ_ERR_SYS;
    if (lib->version != AQ_MPI_LIB_VERSION) {
        snprintf(why, len, "its module is of another release (%u, this is %u)", lib->version,
                 AQ_MPI_LIB_VERSION);
        return AQ_ERR_SYS;
    }
    aq_mpi.lib = aq_mpi_module = lib;
    return AQ_OK;
}

void aq_mpi_fatal(int error, const char *what)
{
    char text[256] = "";

    aq_mpi.lib->job->text(error, text, sizeof(text));
    aq_fatal("mpi: %s: %s", what, text);
}

void aq_mpi_check_over(void)
{
    /* acquire: pairs with the release in aq_mpi_shutdown_close(). A thread that fails to get the
     * lock reads this at the latest */
    if (atomic_load_explicit(&aq_mpi.over, memory_order_acquire))
        aq_fatal("mpi: the program communicates, or waits for what it had begun, after its "
                 "MPI_Finalize, which has "
                 "ended MPI for this library too; call MPI_Finalize after the end of the last "
                 "operation with a rank "
                 "that shares no memory with this one, or leave it to gasnet_exit()");
}

void aq_mpi_lock_wait(void)
{
#if AQ_THREADED
    unsigned spins = 0;

    atomic_fetch_add_explicit(&aq_mpi.waiting, 1, memory_order_relaxed); /* see aq_mpi_try_lock() */
    while (!aq_lock_try(&aq_mpi.lock)) {
        aq_mpi_check_over();
        if (spins++ < AQ_MPI_SPINS)
            aq_cpu_relax();
        else
            sched_yield(); /* the owner may have been descheduled */
    }
    atomic_fetch_sub_explicit(&aq_mpi.waiting, 1, memory_order_relaxed);
#else
    aq_mpi_check_over();
#endif
}
