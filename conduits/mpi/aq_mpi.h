/*
 * aq_mpi.h - what the files of the mpi conduit share.
 *
 *   aq_mpi.c           the table; start, polling, sleeping, end
 *   aq_mpi_am.h        messages, and a list of their files
 *   aq_mpi_rma.h       transfers, and a list of theirs
 *   aq_mpi_shutdown.h  start and end of jobs, with other/spawn/mpi
 *
 * Ranks that share memory are conduits/smp's; what is for far ones goes through the MPI library,
 * behind the table aq_mpi.lib (aq_mpi_lib.h).
 *
 * Threads   MPI is called under one lock, whatever thread level it gives. Inside it no client
 *           handler runs and nothing waits for another rank. In seq the lock is empty
 * Uses      core/aq_conduit.h, base/aq_lock.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_MPI_H
#define AQ_MPI_H

#include "core/aq_conduit.h"
#include "conduits/mpi/aq_mpi_lib.h"
#include "base/aq_lock.h"

struct aq_mpi {
    const struct aq_mpi_lib *lib; /* NULL: not loaded */
    atomic_bool alone;            /* no far rank, or none any more: MPI carries nothing */
    aq_lock lock;                 /* around MPI */
    atomic_uint waiting;          /* par: threads that wait for it */
    atomic_bool inside;           /* seq: in MPI, for a signal handler that wants to */
    atomic_bool over; /* the program has called MPI_Finalize; whoever did is inside for good */
    bool lost; /* before that: with messages or transfers, of some rank, that will never end */
};
extern struct aq_mpi aq_mpi;

/* relaxed: set at the start, and at the end by the thread that is in MPI_Finalize, which keeps the
 * lock */
static inline bool aq_mpi_is_alone(void)
{
    return atomic_load_explicit(&aq_mpi.alone, memory_order_relaxed);
}

/* Loads the module, once. AQ_OK, or negative and the reason in why[len]. */
int aq_mpi_load(char *why, size_t len);

/* Every call of aq_mpi.lib but those that aq_mpi_lib.h says are free is made between enter and
 * leave. try_enter: false if another thread is inside, or, in a signal handler, what it has
 * interrupted. */
static inline bool aq_mpi_try_lock(void)
{
#if AQ_THREADED
    /* relaxed: a hint. Who only looks steps back for who has something to do, else pollers would
     * keep the lock among them */
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

/* Somebody is inside: waits; ends the job if nobody will ever leave. */
void aq_mpi_lock_waiting(void) __attribute__((cold));
/* Ends the job if the program has called MPI_Finalize. Any thread. */
void aq_mpi_check_over(void) __attribute__((cold));

/* Not from where a signal may have interrupted somebody inside. */
static inline void aq_mpi_lock(void)
{
#if AQ_THREADED
    if (AQ_UNLIKELY(!aq_lock_try(&aq_mpi.lock)))
        aq_mpi_lock_waiting();
#else
    if (AQ_UNLIKELY(atomic_load_explicit(&aq_mpi.inside, memory_order_relaxed)))
        aq_mpi_lock_waiting();
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

/* MPI has failed in a way that is not a full queue: ends the job, saying in what and why. */
_Noreturn void aq_mpi_fatal(int error, const char *what) __attribute__((cold));

/* --- transfers (aq_mpi_rma.c) --- */

/* Collective, at the end of the conduit's init: messages work. AQ_OK or negative, logged. */
int aq_mpi_rma_init(void);
/* Collective: returns when all ranks are there, and serves messages until then. Inside collective
 * calls that do not, MPI's or the board's, nobody may wait for a message that one of us still has
 * to push. Nothing before messages work. */
void aq_mpi_barrier(void);
/* As the table's entries of the same names; put and get for far ranks only. */
int aq_mpi_segment_attach(uintptr_t size, void **base_out);
int aq_mpi_put(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               bool lc_now, gex_Flags_t flags);
int aq_mpi_get(struct aq_op *op, gex_Rank_t jobrank, void *dest, const void *src, size_t nbytes,
               gex_Flags_t flags);
bool aq_mpi_ad_serves(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);
int aq_mpi_ad_op(struct aq_op *op, gex_Rank_t jobrank, gex_DT_t dt, void *result_p, void *tgt_addr,
                 gex_OP_t opcode, uint64_t operand1, uint64_t operand2, gex_Flags_t flags);
/* Inside aq_mpi_lock(): moves transfers on, completes some; returns how many. Runs no handler. */
unsigned aq_mpi_rma_poll(void);
/* Any thread, no lock: is a transfer on its way, so that a poll must look and a sleep be short? */
bool aq_mpi_rma_busy(void);
/* As the process leaves, inside aq_mpi_lock(): moves transfers on. True: none is on its way any
 * more. */
bool aq_mpi_rma_drain(void);
/* Before MPI_Finalize, inside aq_mpi_lock(), collective as that: an MPI may not end with windows
 * open. */
void aq_mpi_rma_fini(void);

#endif
