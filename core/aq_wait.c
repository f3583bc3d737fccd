/*
 * aq_wait.c - how a rank waits.
 *
 * A waiter polls; for what other ranks store it looks some times before it does (aq_wait_looks).
 * While nothing comes it first spins (a peer on another core answers within a microsecond), then
 * yields the core, and where ranks outnumber cores, or the client asked for it, sleeps until it is
 * woken. Where a peer waits for this very core, spinning is left out, unless the wait is for a rank
 * of another core; where yielding has turned out slow, so is that (aq_contention.h).
 *
 * Owns      the wait mode, the spin budget
 * Threads   any; each waiter is on its thread's stack
 * Promise   no wake-up is lost: a waiter announces itself as a sleeper, then looks at everything
 *           once more, and sleeps only if the wake-up count has not changed since the announcement
 * Uses      the conduit table, aq_poll_step.h, aq_contention.h, aq_stall.h, aq_progress.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_poll.h"

#include <stdatomic.h>

#include "base/aq_env.h"
#include "base/aq_state.h"
#include "core/aq_poll_step.h"
#include "core/aq_progress.h"
#include "core/aq_service.h"
#include "core/aq_stall.h"
#include "core/aq_trace.h"
#include "other/spawn/aq_spawn.h"

#define AQ_YIELDS      4         /* yields before the first sleep */
#define AQ_BUSY_SPINS  20u       /* unless AQ_SPIN says how long a wait spins */
#define AQ_LOOK_STEPS  1024u     /* spinning steps between looks at the clock */
#define AQ_LOOKS_RANKS 8u        /* ranks of a host whose waits poll twice in a step */
#define AQ_CORE_STEPS  16u       /* spinning steps between looks for peers on this core */
#define AQ_RANK_STEPS  512u      /* unless AQ_SPIN says how long a wait spins */
#define AQ_LONG_NS     10000000u /* who waits longer leaves its core to others */
#define AQ_SLEEP_PART  8         /* of the time waited so far, see aq_wait_limit() */
#define AQ_TICK_NS     5000000u  /* a sleep as long as this needs no timer before the next tick */
#define AQ_VAIN_NS     3000u /* of a client's polls in vain between looks for peers on this core */

static struct {
    atomic_int mode;     /* GASNET_WAIT_* */
    uint32_t spins;      /* steps before the first yield */
    uint32_t rank_steps; /* steps of a wait for a rank, on a shared core, before it sleeps */
    uint32_t busy_spins; /* times that while only polls move the network's work */
    bool sleeps_out;     /* AQ_SLEEP is set: nobody wakes earlier by himself */
    uint64_t sleep_ns;   /* longest sleep: bounds what a stall report can be late */
} aq_wait AQ_JOB_STATE = { .spins = 64, .busy_spins = 1 };

int gasnet_set_waitmode(int wait_mode)
{
    if (wait_mode < GASNET_WAIT_SPIN || wait_mode > GASNET_WAIT_SPINBLOCK)
        return GASNET_ERR_BAD_ARG;
    atomic_store_explicit(&aq_wait.mode, wait_mode, memory_order_relaxed); /* a hint */
    return GASNET_OK;
}

/* --- sleeping: the wake-ups are of shared memory, the descriptors of the network --- */

uint32_t aq_wait_prepare(bool waits)
{
    aq_poll_skip.busy = 0; /* the last look is at everything */
    aq_job.remote->wait_arm();
    return aq_job.local->sleep_prepare(waits);
}

/* --- waiting --- */

unsigned aq_wait_yield(bool replies_only)
{
    const uint64_t took = aq_contention_yield();
    unsigned served;

    aq_poll_skip.busy = 0;
    served = replies_only ? aq_poll_transports(true) : aq_poll_unnoted();
    aq_contention_judge(took, served);
    return served;
}

static inline void aq_wait_awake(struct aq_waiter *waiter)
{
    if (waiter->asleep) {
        waiter->asleep = 0;
        aq_job.local->sleep_cancel(true);
    }
}

static inline void aq_wait_idles(struct aq_waiter *waiter)
{
    if (AQ_UNLIKELY(aq_service_is_watching()) && waiter->idled == 0) {
        waiter->idled = aq_now_ns();
        aq_service_note_wait();
    }
}

/* The library's bits of aq_waiter.no_wakeup. */
#define AQ_WAITER_MORE  2u /* in this wait messages have ended a sleep, and it goes on */
#define AQ_WAITER_SPINS 4u /* it spins first although a peer may want this core */
#define AQ_WAITER_BITS  (AQ_WAITER_MORE | AQ_WAITER_SPINS)

/* Is yielding worth its time? Among many ranks that talk it is, however long it takes: a sleeper
 * would be woken for each single message. */
static bool aq_wait_may_yield(const struct aq_waiter *waiter)
{
    return aq_contention_yields_well()
           || ((waiter->no_wakeup & AQ_WAITER_MORE) != 0 && aq_contention_is_crowd());
}

/* A part of an idle step: what a poll in it has served, or AQ_STEP_ON if the step goes on. */
#define AQ_STEP_ON (-1)

/* A peer waits for the core that this thread spins on: yield, or go to sleep at once. */
static __attribute__((noinline)) int aq_wait_gives_way(struct aq_waiter *waiter, bool replies_only)
{
    if (!aq_contention_look() || aq_contention_move())
        return AQ_STEP_ON;
    if (aq_wait_may_yield(waiter))
        return (int)aq_wait_yield(replies_only);
    waiter->idle = MAX(waiter->idle, aq_wait.spins + AQ_YIELDS);
    return AQ_STEP_ON;
}

/* On a shared core: spins for as long as an answer takes from a peer that runs elsewhere, before
 * the wait goes on as if it had begun now. */
static int aq_wait_spins_first(struct aq_waiter *waiter, bool replies_only)
{
    int served;

    if (waiter->idle % aq_poll_vain_max != 0 || aq_contention_spins_on()) {
        aq_cpu_relax();
        return 0;
    }
    waiter->no_wakeup &= ~AQ_WAITER_SPINS;
    waiter->idle = 1;
    aq_contention_note_spin(false);
    served = aq_wait_gives_way(waiter, replies_only);
    return served == AQ_STEP_ON && waiter->idle < aq_wait.spins ? 0 : served;
}

/* A wait on a shared core begins: true if it spins first. */
static bool aq_wait_is_lucky(struct aq_waiter *waiter)
{
    if (waiter->idle != 1 || !aq_contention_spins_first())
        return false;
    waiter->no_wakeup |= AQ_WAITER_SPINS;
    return true;
}

/* The end of a step that spins: a pause, and a second look at shared memory, so that less is done
 * between two looks. A network, and operations under way, need whole polls; those of many ranks
 * take long. */
static inline int aq_wait_pause(uint32_t idle, bool replies_only)
{
    /* relaxed: as in aq_poll_operations() */
    if (aq_job.has_remote || aq_job.nbrhd_size > AQ_LOOKS_RANKS
        || atomic_load_explicit(&aq_callback_pending, memory_order_relaxed) != 0) {
        aq_wait_between_looks(idle);
        return 0;
    }
    aq_cpu_relax();
    return (int)aq_job.local->poll(replies_only ? AQ_POLL_REPLIES : AQ_POLL_ALL);
}

/* On a shared core a wait for a certain rank knows whether spinning is in vain: a rank of this core
 * needs the core, one of another core may be there any moment. Ranks that meet, as in a barrier,
 * need each other soon: a sleep and the wake-up that ends it take longer than many yields. */
static int aq_wait_for_rank(struct aq_waiter *waiter, bool replies_only)
{
    const enum aq_contention_place place = aq_contention_place_of(waiter->peer);
    int served;

    if (place == AQ_PLACE_UNKNOWN || waiter->idle >= aq_wait.rank_steps)
        return AQ_STEP_ON;
    if (place == AQ_PLACE_OTHER_CORE && waiter->idle % AQ_CORE_STEPS != 0)
        return aq_wait_pause(waiter->idle, replies_only);
    if (place == AQ_PLACE_OWN_CORE)
        waiter->idle += AQ_CORE_STEPS; /* each yield counts as much */
    served = aq_wait_gives_way(waiter, replies_only);
    if (served != AQ_STEP_ON)
        return served;
    if (aq_wait_may_yield(waiter))
        return (int)aq_wait_yield(replies_only);
    waiter->idle = MAX(waiter->idle, aq_wait.rank_steps + AQ_YIELDS);
    return AQ_STEP_ON;
}

/* Is there more to know than that nothing has come? A network's messages wake a sleeper soon
 * enough, and a poll of it is dear; a wait that messages have woken lasts for long. */
static inline bool aq_wait_is_for_rank(const struct aq_waiter *waiter)
{
    return (aq_job.oversubscribed || aq_contention_was_shared()) && !aq_job.has_remote
           && !waiter->asleep && (waiter->no_wakeup & AQ_WAITER_BITS) == 0;
}

/* Still in the time for spinning? */
static inline int aq_wait_spins(struct aq_waiter *waiter, bool replies_only)
{
    const uint32_t idle = waiter->idle;

    if (AQ_UNLIKELY((waiter->no_wakeup & AQ_WAITER_SPINS) != 0))
        return aq_wait_spins_first(waiter, replies_only);
    if (idle >= aq_wait.spins)
        return AQ_STEP_ON;
    if (AQ_UNLIKELY(idle % AQ_CORE_STEPS == 0 || (idle == 1 && aq_contention_was_shared()))) {
        const int served = aq_wait_is_lucky(waiter) ? 0 : aq_wait_gives_way(waiter, replies_only);

        if (served != AQ_STEP_ON || waiter->idle >= aq_wait.spins)
            return served;
    }
    return aq_wait_pause(idle, replies_only);
}

/* Spinning is over. Does the client want to spin on, and does nobody else want the core? */
static int aq_wait_spins_on(struct aq_waiter *waiter, bool replies_only)
{
    const uint32_t idle = waiter->idle;

    if (aq_job.oversubscribed || !aq_contention_yields_well())
        return AQ_STEP_ON;
    if (idle % AQ_LOOK_STEPS == 0)
        aq_stall_look(waiter);
    aq_cpu_relax();
    /* whoever else wants this core may have it */
    return idle % 32 == 0 ? (int)aq_wait_yield(replies_only) : 0;
}

/* Does the network have work that needs polls? A sleep would hold it up on both sides. */
static bool aq_wait_is_busy(const struct aq_waiter *waiter)
{
    return aq_job.has_remote && waiter->idle / aq_wait.busy_spins < aq_wait.spins
           && aq_job_is_busy();
}

/* The first of these to end the step. */
static int aq_wait_remain_awake(struct aq_waiter *waiter, int mode, bool replies_only)
{
    int served = AQ_STEP_ON;

    if (mode == GASNET_WAIT_BLOCK)
        return AQ_STEP_ON;
    if (AQ_UNLIKELY(aq_wait_is_for_rank(waiter)))
        served = aq_wait_for_rank(waiter, replies_only);
    if (served == AQ_STEP_ON)
        served = aq_wait_spins(waiter, replies_only);
    if (served == AQ_STEP_ON && (mode == GASNET_WAIT_SPIN || aq_wait_is_busy(waiter)))
        served = aq_wait_spins_on(waiter, replies_only);
    if (served == AQ_STEP_ON && waiter->idle - aq_wait.spins < AQ_YIELDS
        && aq_wait_may_yield(waiter))
        served = (int)aq_wait_yield(replies_only);
    return served;
}

/* The last condition of a client that this thread slept for became true without a message: by a
 * peer's store, that nobody rings for. */
static _Thread_local bool aq_wait_by_store;

/* How long may this wait sleep? For a condition of the client's, that a store may make true, an
 * eighth of the time that it has waited. Sleeps shorter than a tick cost a timer each: only if
 * stores are what this thread waits for. */
static uint64_t aq_wait_limit(const struct aq_waiter *waiter)
{
    uint64_t waited;

    if ((waiter->no_wakeup & ~AQ_WAITER_BITS) != 0)
        return AQ_BACKOFF_NS;
    waited = aq_now_ns() - waiter->since;
    if (waited > AQ_LONG_NS)
        aq_contention_retire();
    if (aq_stall_kind(waiter->what) != AQ_WAIT_BLOCKUNTIL || aq_wait.sleeps_out)
        return aq_wait.sleep_ns;
    return MAX(aq_wait_by_store ? AQ_BACKOFF_NS : AQ_TICK_NS,
               MIN(waited / AQ_SLEEP_PART, aq_wait.sleep_ns));
}

/* Announce sleep; in the next step, after one more look at everything, sleep. */
static void aq_wait_asleep(struct aq_waiter *waiter, bool replies_only)
{
    uint64_t began, limit;

    if (!waiter->asleep) {
        waiter->asleep = 1;
        waiter->wakeup = aq_wait_prepare(true);
        return;
    }
    aq_stall_look(waiter);
    if (AQ_UNLIKELY(aq_trace_is_on()))
        aq_trace_idle();
    limit = aq_wait_limit(waiter);
    if (!replies_only) { /* not while a handler waits */
        const uint64_t due = aq_progress_sleep(waiter->since);

        limit = MIN(limit, due);
    }
    began = aq_trace_begin(AQ_TRACE_SLEEP);
    aq_wait_sleep(waiter->wakeup, limit);
    aq_trace_end(AQ_TRACE_SLEEP, began, waiter->peer, 0);
    aq_wait_awake(waiter); /* announce afresh before the next sleep */
}

/* Nothing came in this step: give way, the more the longer. Returns what came meanwhile. */
static unsigned aq_wait_idle(struct aq_waiter *waiter, bool replies_only)
{
    const uint32_t idle = ++waiter->idle;
    const int mode = atomic_load_explicit(&aq_wait.mode, memory_order_relaxed);
    int served;

    if (AQ_UNLIKELY(idle == 1 && aq_trace_is_on()) && waiter->began == 0)
        waiter->began = aq_trace_begin(AQ_TRACE_BLOCKUNTIL);
    aq_wait_idles(waiter);
    served = aq_wait_remain_awake(waiter, mode, replies_only);
    if (served != AQ_STEP_ON)
        return (unsigned)served;
    aq_wait_asleep(waiter, replies_only);
    return 0;
}

static inline void aq_wait_over(struct aq_waiter *waiter)
{
    if (AQ_UNLIKELY((waiter->no_wakeup & AQ_WAITER_SPINS) != 0)) {
        waiter->no_wakeup &= ~AQ_WAITER_SPINS;
        aq_contention_note_spin(true);
    }
    aq_wait_awake(waiter);
    if (AQ_UNLIKELY(waiter->idled != 0)) {
        aq_service_note_waited(aq_now_ns() - waiter->idled);
        waiter->idled = 0;
    }
    if (AQ_UNLIKELY(waiter->since != 0))
        aq_jobarea_note_done(aq_spawn_jobarea(), aq_spawn_info()->host_rank);
}

/* A client's own wait; other calls that wait are traced as what they are. */
static __attribute__((noinline, cold)) void aq_wait_end_traced(const struct aq_waiter *waiter)
{
    if (aq_stall_kind(waiter->what) == AQ_WAIT_BLOCKUNTIL)
        aq_trace_end(AQ_TRACE_BLOCKUNTIL, waiter->began, waiter->peer, 0);
}

void aq_wait_end(struct aq_waiter *waiter)
{
    if (AQ_UNLIKELY(waiter->since != 0))
        aq_wait_by_store = true; /* nothing has come since the clock was looked at */
    aq_wait_over(waiter);
    if (AQ_UNLIKELY(waiter->began != 0))
        aq_wait_end_traced(waiter);
}

/* Something came: the waiting that a stall report tells of begins anew. */
static inline void aq_wait_progressed(struct aq_waiter *waiter)
{
    aq_wait_over(waiter);
    waiter->idle = 0;
    if (AQ_UNLIKELY(waiter->since != 0)) {
        waiter->since = 0;
        waiter->no_wakeup |= AQ_WAITER_MORE;
        aq_wait_by_store = false;
    }
}

/* The end of a step whose poll has served so many messages. */
static inline void aq_wait_step_end(struct aq_waiter *waiter, unsigned served, bool replies_only)
{
    if (served == 0)
        served = aq_wait_idle(waiter, replies_only);
    if (served == 0)
        return;
    aq_wait_progressed(waiter);
    aq_poll_notify(served);
}

void aq_wait_step(struct aq_waiter *waiter)
{
    const unsigned served = aq_poll_unnoted(); /* the wait as a whole is noted */

    aq_progress_step();
    aq_wait_step_end(waiter, served, false);
}

void aq_wait_step_replies(struct aq_waiter *waiter)
{
    aq_wait_step_end(waiter, aq_poll_transports(true), true);
}

void aq_wait_init(void)
{
    const double steps_per_us = 1e3 / (aq_limits.poll_ns != 0 ? aq_limits.poll_ns : 50);
    double spin_us = aq_job.oversubscribed ? 1 : 100;

    /* over a network who has waited long may wait longer: other jobs, or hosts that are not what
     * they seem, may have need of this core, and waking adds a few us to what took 100 */
    if (aq_job.nbrhd_count > 1)
        gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK);
    if (aq_env_is_set(AQ_ENV_AQ_SPIN)) {
        spin_us = aq_env_real(AQ_ENV_AQ_SPIN);
        gasnet_set_waitmode(
            GASNET_WAIT_SPINBLOCK); /* who limits spinning knows of others on these cores */
    }
    aq_wait.busy_spins = aq_env_is_set(AQ_ENV_AQ_SPIN) ? 1 : AQ_BUSY_SPINS;
    aq_wait.spins = spin_us * steps_per_us > 4e9 ? UINT32_MAX : (uint32_t)(spin_us * steps_per_us);
    aq_wait.rank_steps =
        aq_env_is_set(AQ_ENV_AQ_SPIN) ? MIN(AQ_RANK_STEPS, aq_wait.spins) : AQ_RANK_STEPS;
    aq_poll_vain_max =
        MAX(1u, MIN(64u, AQ_VAIN_NS / (aq_limits.poll_ns != 0 ? aq_limits.poll_ns : 50)));
    aq_wait.sleeps_out = aq_env_is_set(AQ_ENV_AQ_SLEEP);
    aq_wait.sleep_ns = (uint64_t)(aq_env_real(AQ_ENV_AQ_SLEEP) * 1e6);
    aq_stall_init();
}
