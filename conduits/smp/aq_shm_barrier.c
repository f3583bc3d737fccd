/*
 * aq_shm_barrier.c - barriers over the ranks of a neighborhood. They are the job's barriers if the
 * neighborhood is the whole job, and the lower level of barriers over a network otherwise.
 *
 * Each rank counts its arrivals in a word of its own; a phase is complete when every word has
 * reached it. Arriving is one store, any number of phases may be open, and no rank depends on
 * another's attention. Eight words share a line, and a waiter resumes its scan at the first rank
 * that was missing, so that a test costs one line most of the time. On a shared core a test also
 * looks for a missing rank of that core.
 *
 * Over a network the last rank of the neighborhood is its leader. It arrives after the others and
 * after the barrier of the leaders (extended/aq_barrier_ref.c). The last of the others wakes it.
 *
 * Named phases put name and flags in the word, in two sets by parity: a rank can be at most one
 * phase ahead of another, since it must see every rank in a phase before it leaves the phase.
 *
 * Threads   any. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_job.h"
#include "base/aq_state.h"
#include "core/aq_contention.h"
#include "conduits/smp/aq_shm.h"

static _Atomic uint64_t *aq_shm_arrived(void)
{
    return (_Atomic uint64_t *)(void *)(aq_shm.arena + aq_shm.layout.arrived);
}

static _Atomic uint64_t *aq_shm_named(uint64_t k)
{
    return (_Atomic uint64_t *)(void *)(aq_shm.arena + aq_shm.layout.named) + (k & 1) * aq_shm.size;
}

/* The last rank to arrive wakes the threads that wait; the last of the other ranks wakes the
 * leader, where a service thread may do what the leader has to. No other service thread has
 * anything to do at the end of a phase: a program whose barriers woke one each time would pay for
 * two wake-ups in each. If two ranks arrive last at the same time, each fences before it scans, so
 * at least one of them sees both. */
static void aq_shm_barrier_announce(bool (*all_arrived)(uint64_t k, gex_Rank_t *missing_out),
                                    uint64_t k)
{
    const uint32_t leader = aq_shm.size - 1;
    _Atomic uint32_t *sleepers =
        aq_job.has_remote ? &aq_shm_common()->sleepers : &aq_shm_common()->waiting;
    gex_Rank_t missing;

    aq_shm_order_before_look();
    if (AQ_LIKELY(atomic_load_explicit(sleepers, memory_order_relaxed) == 0))
        return;
    atomic_thread_fence(memory_order_seq_cst);
    if (all_arrived(k, &missing))
        aq_shm_wake_waiting();
    else if (aq_job.has_remote && aq_shm.me != leader && missing == aq_shm.jobrank_of[leader])
        aq_shm_wake(aq_shm_control(leader));
}

/* Of the missing ranks, from `first` on, the one that a wait names: the first whose core is this
 * thread's, which gives way to it then; else `first`. Over a network always `first`: if that is the
 * leader, the others have arrived. */
static gex_Rank_t aq_shm_missing(bool (*has_arrived)(uint64_t k, uint32_t rank), uint64_t k,
                                 uint32_t first)
{
    if (AQ_UNLIKELY(aq_contention_was_shared()) && !aq_job.has_remote)
        for (uint32_t rank = first; rank < aq_shm.size; rank++)
            if (!has_arrived(k, rank)
                && aq_contention_place_of(aq_shm.jobrank_of[rank]) == AQ_PLACE_OWN_CORE)
                return aq_shm.jobrank_of[rank];
    return aq_shm.jobrank_of[first];
}

/* --- anonymous phases --- */

/* Acquire: who sees the arrival sees what the rank did before. */
static inline bool aq_shm_has_arrived(uint64_t k, uint32_t rank)
{
    return atomic_load_explicit(&aq_shm_arrived()[rank], memory_order_acquire) >= k;
}

static bool aq_shm_all_arrived(uint64_t k, gex_Rank_t *missing_out)
{
    return aq_shm_barrier_done(k, missing_out);
}

void aq_shm_barrier_arrive(uint64_t k)
{
    /* release: a rank that sees the arrival sees what this rank did before */
    atomic_store_explicit(&aq_shm_arrived()[aq_shm.me], k, memory_order_release);
    aq_shm_barrier_announce(aq_shm_all_arrived, k);
}

bool aq_shm_barrier_done(uint64_t k, gex_Rank_t *missing_out)
{
    /* How far the scan of a phase has come: phase:40 ranks:24. Acquire and release: a thread that
     * resumes another thread's scan also sees what the scanned ranks did before. */
    static _Atomic uint64_t progress AQ_JOB_STATE;
    const uint64_t seen = atomic_load_explicit(&progress, memory_order_acquire);
    /* the ranks before it have reached that phase, and so every earlier one */
    uint32_t rank = seen >> 24 >= k ? (uint32_t)(seen & 0xffffff) : 0;

    while (rank < aq_shm.size && aq_shm_has_arrived(k, rank))
        rank++;
    if (seen >> 24 <= k)
        atomic_store_explicit(&progress, k << 24 | rank, memory_order_release);
    if (rank == aq_shm.size)
        return true;
    *missing_out = aq_shm_missing(aq_shm_has_arrived, k, rank);
    return false;
}

/* --- named phases --- */

#define AQ_NAMED_PHASES ((UINT64_C(1) << 28) - 1)

/* phase:28 flags:4 id:32 */
static uint64_t aq_shm_named_word(uint64_t k, int id, int flags)
{
    return (k & AQ_NAMED_PHASES) << 36 | (uint64_t)(flags & 0xf) << 32 | (uint32_t)id;
}

static bool aq_shm_all_named(uint64_t k, gex_Rank_t *missing_out)
{
    struct aq_barrier_name name;

    return aq_shm_named_done(k, &name, missing_out);
}

void aq_shm_named_arrive(uint64_t k, int id, int flags)
{
    atomic_store_explicit(&aq_shm_named(k)[aq_shm.me], aq_shm_named_word(k, id, flags),
                          memory_order_release);
    aq_shm_barrier_announce(aq_shm_all_named, k);
}

static bool aq_shm_has_named(uint64_t k, uint32_t rank)
{
    return atomic_load_explicit(&aq_shm_named(k)[rank], memory_order_acquire) >> 36
           == (k & AQ_NAMED_PHASES);
}

static void aq_shm_named_fold(uint64_t word, struct aq_barrier_name *name)
{
    const int flags = (int)(word >> 32 & 0xf);
    const int id = (int)(uint32_t)word;

    if (flags & GASNET_BARRIERFLAG_MISMATCH)
        name->mismatch = true;
    if (flags & (GASNET_BARRIERFLAG_MISMATCH | GASNET_BARRIERFLAG_ANONYMOUS))
        return;
    if (name->named && name->id != id)
        name->mismatch = true;
    name->named = true;
    name->id = id;
}

bool aq_shm_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out)
{
    _Atomic uint64_t *words = aq_shm_named(k);

    *name_out = (struct aq_barrier_name){ false, false, 0 };
    for (uint32_t rank = 0; rank < aq_shm.size; rank++) {
        const uint64_t word = atomic_load_explicit(&words[rank], memory_order_acquire);

        if (word >> 36 != (k & AQ_NAMED_PHASES)) {
            *missing_out = aq_shm_missing(aq_shm_has_named, k, rank);
            return false;
        }
        aq_shm_named_fold(word, name_out);
    }
    return true;
}
