/*
 * aq_barrier.c - the EX barrier, and the split-phase barriers with names of GASNet-1.
 *
 * The EX barrier of a team other than the job's is one of its collectives: aq_coll.h. The job's has
 * its own series of phases here, so that it works before anything else does.
 *
 * Both series number their phases from 1 on, independently. The conduit, or the reference version,
 * is told that this process has arrived at phase k, and is asked whether all ranks have. Phases
 * complete in order, so open EX barriers cost nothing but their events: such an event asks for the
 * number of its phase. The conduit's barrier needs no poll; the reference version sends its
 * messages in polls (aq_ref_barrier_progress).
 *
 * Owns      the numbers of both series, the open named phase and its outcome
 * Threads   EX: calls in the client's collective order, events on any thread; named: one caller at
 *           a time as the interface demands, notify and wait perhaps on different threads
 * Promise   arriving is a release of the caller, synchronising an acquire; arriving never blocks;
 *           a wait polls at least once
 * Uses      the conduit table, extended/aq_ref.h, core/aq_op.h, core/aq_poll.h
 * See       GASNet-EX specification 0.19, Collectives; GASNet specification 1.8, Barriers
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_barrier.h"

#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_poll.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "extended/aq_coll.h"
#include "core/aq_op.h"
#include "extended/aq_ref.h"

/* EX phases this process has entered. relaxed: the client orders its collective calls */
static atomic_uint_fast64_t aq_bar_entered AQ_JOB_STATE;

static struct {
    aq_lock lock;     /* phase, known, outcome */
    atomic_bool open; /* between notify and a successful wait or try */
    bool known;       /* the open phase is complete, outcome is set */
    uint64_t phase;
    struct aq_barrier_name outcome; /* of the last complete phase */
} aq_named AQ_JOB_STATE;

/* --- over all ranks of the job --- */

static void aq_bar_arrive(uint64_t k)
{
    aq_job_ops_all()->barrier_arrive(k);
}

static bool aq_bar_done(uint64_t k, gex_Rank_t *missing_out)
{
    return aq_job_ops_all()->barrier_done(k, missing_out);
}

static void aq_named_arrive(uint64_t k, int id, int flags)
{
    aq_job_ops_all()->named_arrive(k, id, flags);
}

static bool aq_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out)
{
    return aq_job_ops_all()->named_done(k, name_out, missing_out);
}

/* --- EX --- */

/* Arrives at the next phase. */
static uint64_t aq_bar_enter(void)
{
    const uint64_t k = atomic_load_explicit(&aq_bar_entered, memory_order_relaxed) + 1;

    /* release: ranks that leave the barrier see what this thread did before */
    atomic_thread_fence(memory_order_release);
    aq_bar_arrive(k);
    atomic_store_explicit(&aq_bar_entered, k, memory_order_relaxed);
    return k;
}

/* Is the phase complete, or is it after the first looks? */
static bool aq_bar_is_quick(uint64_t k, gex_Rank_t *missing_out)
{
    for (unsigned looks = aq_wait_looks(); !aq_bar_done(k, missing_out); looks--) {
        if (looks == 0)
            return false;
        aq_wait_between_looks(looks);
    }
    return true;
}

/* Enters and leaves. */
static void aq_bar_wait(const char *call)
{
    struct aq_waiter waiter = AQ_WAITER_INIT(call, GEX_RANK_INVALID);
    const uint64_t k = aq_bar_enter();

    if (aq_bar_is_quick(k, &waiter.peer)) {
        aq_poll(); /* a rank that always arrives last must serve its peers too */
    } else {
        do {
            aq_wait_step(&waiter);
        } while (!aq_bar_done(k, &waiter.peer));
        aq_wait_end(&waiter);
    }
    /* acquire: what the other ranks did before they arrived is visible */
    atomic_thread_fence(memory_order_acquire);
}

static bool aq_bar_look(const struct aq_op *op, gex_Rank_t *missing_out)
{
    if (!aq_bar_done(op->phase, missing_out))
        return false;
    /* acquire: as in aq_bar_wait() */
    atomic_thread_fence(memory_order_acquire);
    return true;
}

static const struct aq_op_kind aq_bar_kind = { .waits_in = "gex_Event_Wait (gex_Coll_BarrierNB)",
                                               .name = "gex_Coll_BarrierNB",
                                               .hides_lc = true,
                                               .by_store = true,
                                               .look = aq_bar_look };

static bool aq_bar_is_job(gex_TM_t tm)
{
    return AQ_LIKELY(aq_tm(tm) == aq_job.tm);
}

void aq_barrier_check_mixing(const char *call, gex_TM_t tm)
{
    /* relaxed: only a diagnostic */
    if (aq_bar_is_job(tm) && atomic_load_explicit(&aq_named.open, memory_order_relaxed))
        aq_fatal("%s called between gasnet_barrier_notify and its wait; finish one kind of "
                 "barrier before starting the other",
                 call);
}

static gex_Event_t aq_bar_of_team(gex_TM_t tm)
{
    static const struct aq_coll_call call = { .kind = AQ_COLL_BARRIER };

    return aq_coll_submit(aq_coll_team(tm), &call);
}

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags)
{
    AQ_TRACE_SCOPE(AQ_TRACE_BARRIER_NB, GEX_RANK_INVALID, 0);
    gex_Rank_t missing;
    struct aq_op *op;
    uint64_t k;

    aq_coll_check_team("gex_Coll_BarrierNB", tm, flags);
    if (!aq_bar_is_job(tm))
        return aq_bar_of_team(tm);
    k = aq_bar_enter();
    op = aq_op_create(&aq_bar_kind, GEX_RANK_INVALID); /* while the others' arrivals come */
    op->phase = k;
    if (!aq_bar_done(k, &missing))
        return aq_op_expose_open(op);
    /* acquire: as in aq_bar_wait() */
    atomic_thread_fence(memory_order_acquire);
    aq_op_retire(op);
    return aq_coll_submitted(GEX_EVENT_INVALID);
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags)
{
    AQ_TRACE_SCOPE(AQ_TRACE_BARRIER, GEX_RANK_INVALID, 0);

    aq_coll_check_team("gex_Coll_BarrierBlocking", tm, flags);
    if (aq_bar_is_job(tm))
        aq_bar_wait("gex_Coll_BarrierBlocking");
    else
        gex_Event_Wait(aq_bar_of_team(tm));
}

void aq_callback_barrier(void)
{
    aq_bar_wait("the start-up barrier");
}

/* --- GASNet-1 --- */

static bool aq_named_is_open(void)
{
    /* acquire: pairs with the release in gasnet_barrier_notify(), perhaps by another thread */
    return atomic_load_explicit(&aq_named.open, memory_order_acquire);
}

static void aq_named_check_flags(const char *call, int flags)
{
#if GASNET_DEBUG
    const int legal = GASNET_BARRIERFLAG_UNNAMED | GASNET_BARRIERFLAG_MISMATCH;

    aq_thread_check_main(call);
    if ((flags & ~legal) != 0)
        aq_fatal("%s: flags are 0x%x; they must be 0 or GASNET_BARRIERFLAG_*", call,
                 (unsigned)flags);
#else
    (void)call, (void)flags;
#endif
}

/* Returns true if the open phase is complete. Stores its outcome when this is first found. */
static bool aq_named_look(gex_Rank_t *missing_out)
{
    bool known;

    aq_lock_acquire(&aq_named.lock);
    if (!aq_named.known)
        aq_named.known = aq_named_done(aq_named.phase, &aq_named.outcome, missing_out);
    known = aq_named.known;
    aq_lock_release(&aq_named.lock);
    return known;
}

/* As aq_bar_is_quick(). */
static bool aq_named_is_quick(gex_Rank_t *missing_out)
{
    for (unsigned looks = aq_wait_looks(); !aq_named_look(missing_out); looks--) {
        if (looks == 0)
            return false;
        aq_wait_between_looks(looks);
    }
    return true;
}

void gasnet_barrier_notify(int id, int flags)
{
    AQ_CHECK_STARTED();
    AQ_TRACE_SCOPE(AQ_TRACE_BARRIER_NOTIFY, GEX_RANK_INVALID, 0);
    const char *call = "gasnet_barrier_notify";

    aq_named_check_flags(call, flags);
    if (aq_named_is_open())
        aq_fatal("%s(%d) called again before gasnet_barrier_wait or gasnet_barrier_try ended the "
                 "phase; notify and wait alternate",
                 call, id);
#if GASNET_DEBUG
    gex_Rank_t missing;

    if (!aq_bar_done(atomic_load_explicit(&aq_bar_entered, memory_order_relaxed), &missing))
        aq_fatal("%s called while a gex_Coll_BarrierNB is under way; finish one kind of barrier "
                 "before starting the other",
                 call);
#endif
    aq_lock_acquire(&aq_named.lock);
    aq_named.known = false;
    aq_named.phase++;
    /* release: ranks that leave the barrier see what this thread did before */
    atomic_thread_fence(memory_order_release);
    aq_named_arrive(aq_named.phase, id, flags); /* does not block; no thread may test it before */
    aq_lock_release(&aq_named.lock);
    /* release: pairs with the acquire in aq_named_is_open() */
    atomic_store_explicit(&aq_named.open, true, memory_order_release);
}

/* The phase is complete: closes it and compares this process's name with the outcome. */
static int aq_named_finish(int id, int flags)
{
    const struct aq_barrier_name *outcome = &aq_named.outcome;
    const bool names = (flags & (GASNET_BARRIERFLAG_ANONYMOUS | GASNET_BARRIERFLAG_MISMATCH)) == 0;

    /* acquire: what the other ranks did before they arrived is visible */
    atomic_thread_fence(memory_order_acquire);
    /* release: the next notify, perhaps by another thread, finds the phase closed */
    atomic_store_explicit(&aq_named.open, false, memory_order_release);
    if (outcome->mismatch || (flags & GASNET_BARRIERFLAG_MISMATCH) != 0
        || (names && outcome->named && outcome->id != id))
        return GASNET_ERR_BARRIER_MISMATCH;
    return GASNET_OK;
}

static void aq_named_check_open(const char *call, int id, int flags)
{
    aq_named_check_flags(call, flags);
    if (!aq_named_is_open())
        aq_fatal("%s(%d) called without gasnet_barrier_notify; notify and wait alternate", call,
                 id);
}

int gasnet_barrier_wait(int id, int flags)
{
    AQ_CHECK_STARTED();
    AQ_TRACE_SCOPE(AQ_TRACE_BARRIER_WAIT, GEX_RANK_INVALID, 0);
    struct aq_waiter waiter = AQ_WAITER_INIT("gasnet_barrier_wait", GEX_RANK_INVALID);

    aq_named_check_open("gasnet_barrier_wait", id, flags);
    if (aq_named_is_quick(&waiter.peer)) {
        aq_poll(); /* a rank that always arrives last must serve its peers too */
    } else {
        do {
            aq_wait_step(&waiter);
        } while (!aq_named_look(&waiter.peer));
        aq_wait_end(&waiter);
    }
    return aq_named_finish(id, flags);
}

int gasnet_barrier_try(int id, int flags)
{
    AQ_CHECK_STARTED();
    const uint64_t began = aq_trace_begin(AQ_TRACE_BARRIER_TRY);
    gex_Rank_t missing;
    bool over;

    aq_named_check_open("gasnet_barrier_try", id, flags);
    aq_poll(); /* clients may spin on this call alone */
    over = aq_named_look(&missing);
    aq_trace_end(over ? AQ_TRACE_BARRIER_TRY : AQ_TRACE_BARRIER_RETRY, began, GEX_RANK_INVALID, 0);
    return over ? aq_named_finish(id, flags) : GASNET_ERR_NOT_READY;
}

int gasnet_barrier(int id, int flags)
{
    AQ_CHECK_STARTED();
    gasnet_barrier_notify(id, flags);
    return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int *id)
{
    AQ_CHECK_STARTED();
#if GASNET_DEBUG
    aq_thread_check_main("gasnet_barrier_result");
    if (aq_named_is_open())
        aq_fatal("gasnet_barrier_result called between gasnet_barrier_notify and its wait: the "
                 "phase has no result yet");
#endif
    if (aq_named.outcome.mismatch || !aq_named.outcome.named)
        return 1;
    *id = aq_named.outcome.id;
    return 0;
}

bool aq_barrier_is_open(void)
{
    /* relaxed: other threads have stopped calling */
    return atomic_load_explicit(&aq_named.open, memory_order_relaxed);
}
