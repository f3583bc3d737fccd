/*
 * aq_mpi_lock.h - the loaded module, and the lock around MPI.
 *
 * Every call of the module's tables is made with the lock, unless aq_mpi_lib*.h says otherwise. A
 * thread that holds the lock runs no client handler and waits for no other rank. In seq the lock is
 * a flag, which shows a signal handler that it has interrupted an MPI call.
 *
 * Owns      aq_mpi
 * Threads   any
 * Uses      aq_mpi_lib.h, base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_LOCK_H
#define AQ_MPI_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/aq_lock.h"
#include "base/aq_platform.h"
#include "conduits/mpi/aq_mpi_lib.h"

struct aq_mpi {
    const struct aq_mpi_lib *lib; /* NULL: not loaded */
    aq_lock lock;
    atomic_uint waiting; /* par: threads that wait for the lock */
    atomic_bool inside;  /* seq: the lock is taken */
    /* The client has called MPI_Finalize. The lock is then never released again. */
    atomic_bool over;
    /* At that time some rank had messages or transfers under way that can never complete. */
    bool lost;
    /* No rank outside shared memory is left: MPI carries nothing. */
    atomic_bool alone;
};
extern struct aq_mpi aq_mpi;

/** aq_mpi_load - loads the module, once. AQ_OK, or negative and the reason in why[len]. */
int aq_mpi_load(char *why, size_t len);

/** aq_mpi_fatal - MPI has failed for good: ends the job with what failed and MPI's text. */
_Noreturn void aq_mpi_fatal(int error, const char *what) __attribute__((cold));

static inline void aq_mpi_check(int error, const char *what)
{
    if (AQ_UNLIKELY(error != 0))
        aq_mpi_fatal(error, what);
}

/** aq_mpi_check_over - ends the job if the client has called MPI_Finalize. Any thread. */
void aq_mpi_check_over(void) __attribute__((cold));

/** aq_mpi_lock_wait - waits for the lock, which another thread holds. Ends the job if it is never
 * released. */
void aq_mpi_lock_wait(void) __attribute__((cold));

static inline bool aq_mpi_is_alone(void)
{
    /* relaxed: written at start, and by the thread in MPI_Finalize, which keeps the lock */
    return atomic_load_explicit(&aq_mpi.alone, memory_order_relaxed);
}

/* Returns false if another thread holds the lock, or the code that this signal handler has
 * interrupted. */
static inline bool aq_mpi_try_lock(void)
{
#if AQ_THREADED
    /* relaxed: a hint. A poller leaves the lock to a thread that waits for it; otherwise pollers
     * would pass it among themselves */
    return atomic_load_explicit(&aq_mpi.waiting, memory_order_relaxed) == 0
           && aq_lock_try(&aq_mpi.lock);
#else
    /* relaxed, here and below: the other side is a signal handler of this thread */
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_mpi.inside, memory_order_relaxed)))
        return false;
    atomic_store_explicit(&aq_mpi.inside, true, memory_order_relaxed);
    return true;
#endif
}

/* Not in a signal handler. */
static inline void aq_mpi_lock(void)
{
#if AQ_THREADED
    if (AQ_UNLIKELY(!aq_lock_try(&aq_mpi.lock)))
        aq_mpi_lock_wait();
#else
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_mpi.inside, memory_order_relaxed)))
        aq_mpi_lock_wait();
    atomic_store_explicit(&aq_mpi.inside, true, memory_order_relaxed);
#endif
}

static inline void aq_mpi_unlock(void)
{
#if AQ_THREADED
    aq_lock_release(&aq_mpi.lock);
#else
    atomic_store_explicit(&aq_mpi.inside, false, memory_order_relaxed);
#endif
}

#endif
