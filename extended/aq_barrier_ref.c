/*
 * aq_barrier_ref.c - barriers over short active messages, for conduits without their own.
 *
 * Dissemination: in round r = 0, 1, ... party i sends a message to party i + 2^r, and receives one
 * from party i - 2^r, both modulo the number of parties. After the last round each party has
 * received, directly or indirectly, from all others. A party sends round r of a phase once it has
 * arrived and has received rounds 0..r-1.
 *
 * Two levels: an EX barrier has one party for each neighborhood, its leader, which is the last rank
 * of the neighborhood. The other ranks arrive in shared memory. The leader arrives when all of them
 * have. When the barrier of the leaders is complete, the leader arrives in shared memory too, for
 * which the others wait. One level: each rank is a party. Named barriers do the same; a leader
 * sends the name of its neighborhood, and arrives in shared memory with the name of all ranks.
 *
 * EX barriers are cumulative: "round r, phase k" says that the sender has reached round r of all
 * phases 1..k. One number for each round is then the whole state, for any number of open phases;
 * messages may overtake each other, and one message is enough for a rank that lags behind.
 *
 * A named phase carries what is known about its name. A rank may be one phase ahead of another,
 * never two, so there are two slots. Merging names is idempotent: a round may contain more than it
 * must (a number of ranks that is no power of two; a later round first).
 *
 * Owns      the state of both, under one lock each
 * Threads   any; handlers take the lock for a few instructions, sends happen without it
 * Promise   arriving and polling never block: a message that finds no credit is sent by a later
 *           poll. A phase is complete at this rank only when all of its messages have been sent, so
 *           that no rank waits for one that has left the library
 * Wire      BARRIER(round, k), NAMED_BARRIER(round, k, what, id); k as two arguments
 * Uses      core/aq_am.h, core/aq_callback.h
 * See       Hensgen, Finkel, Manber: Two algorithms for barrier synchronization, 1988
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "extended/aq_ref.h"

#include <stdlib.h>

#include "core/aq_am.h"
#include "core/aq_contention.h"
#include "core/aq_poll.h"
#include "core/aq_job.h"
#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "extended/aq_barrier.h"

#define AQ_ROUNDS 32

#define AQ_NAME_MISMATCH 1
#define AQ_NAME_NAMED    2

/* The parties of both; set at the start. */
static struct {
    gex_Rank_t count, self;       /* how many, and which of them this rank is */
    const gex_Rank_t *jobrank_of; /* [count]; NULL: each rank is a party */
    bool is_member;               /* this rank is not a party: its leader is */
} aq_ref_parties AQ_JOB_STATE;

static struct {
    aq_lock lock;
    atomic_bool active; /* counted in aq_callback_pending; polls look before they lock */
    uint64_t entered;   /* phases this process has entered */
    /* phases that the whole neighborhood has entered, if there are two levels */
    uint64_t arrived;
    uint64_t received[AQ_ROUNDS]; /* phases whose message of the round has been received */
    uint64_t sent[AQ_ROUNDS];     /* phases whose message of the round has been sent */
    bool sending[AQ_ROUNDS];      /* a thread is sending */
    /* phases that are complete, and whose messages have all been sent */
    atomic_uint_fast64_t finished;
} aq_ref_bar AQ_JOB_STATE;

struct aq_ref_slot {
    bool entered; /* by this process */
    bool arrived; /* and by all of the neighborhood, if there are two levels */
    bool done;
    uint32_t received, sent, sending; /* bit [round] */
    struct aq_barrier_name name;      /* what is known about it */
};

static struct {
    aq_lock lock;
    atomic_bool active;
    uint64_t phase;             /* the phase that this process has entered last */
    struct aq_ref_slot slot[2]; /* [phase & 1] */
} aq_ref_named AQ_JOB_STATE;

/* --- parties and rounds --- */

static unsigned aq_ref_rounds(void)
{
    unsigned rounds = 0;

    while (((uint64_t)1 << rounds) < aq_ref_parties.count)
        rounds++;
    return rounds;
}

static gex_Rank_t aq_ref_jobrank(uint64_t party)
{
    return aq_ref_parties.jobrank_of == NULL ? (gex_Rank_t)party : aq_ref_parties.jobrank_of[party];
}

/* The jobranks that this party sends to, and receives from, in a round. */
static gex_Rank_t aq_ref_ahead(unsigned round)
{
    return aq_ref_jobrank((aq_ref_parties.self + ((uint64_t)1 << round)) % aq_ref_parties.count);
}

static gex_Rank_t aq_ref_behind(unsigned round)
{
    const uint64_t count = aq_ref_parties.count;

    return aq_ref_jobrank((aq_ref_parties.self + count - ((uint64_t)1 << round)) % count);
}

/* Sends a short message without waiting for credit and without running handlers. */
static bool aq_ref_try_send(gex_Rank_t jobrank, enum aq_am_index index, unsigned nargs,
                            const gex_AM_Arg_t *args)
{
    return aq_am_request_short(aq_tm_handle(aq_job.tm), jobrank, (gex_AM_Index_t)index,
                               GEX_FLAG_IMMEDIATE, nargs, args)
           == 0;
}

/* Says whether polls make progress on a kind of barrier. Under its lock. */
static void aq_ref_set_active(atomic_bool *active, bool wanted)
{
    /* relaxed: the lock is held */
    if (atomic_load_explicit(active, memory_order_relaxed) != wanted)
        aq_pending_add(wanted ? 1 : -1);
    /* relaxed: the next poll sees it */
    atomic_store_explicit(active, wanted, memory_order_relaxed);
}

/* relaxed: the caller then takes the lock */
static bool aq_ref_is_active(const atomic_bool *active)
{
    return atomic_load_explicit((atomic_bool *)(uintptr_t)active, memory_order_relaxed);
}

/* A message has found no credit. This counts as an event, so that the next poll comes soon. */
static unsigned aq_ref_declined(void)
{
    aq_contention_declined();
    return 1;
}

/* --- EX --- */

/* Returns true if the other ranks of the neighborhood have entered phase k. The local table names
 * the lowest rank that has not, and the leader is the last. */
static bool aq_ref_bar_gathered(uint64_t k)
{
    gex_Rank_t missing;

    return aq_job.local->barrier_done(k, &missing) || missing == aq_job.rank;
}

/* Finds which phase the neighborhood has reached. Under the lock. */
static void aq_ref_bar_gather(void)
{
    if (aq_ref_parties.jobrank_of == NULL)
        aq_ref_bar.arrived = aq_ref_bar.entered;
    while (aq_ref_bar.arrived < aq_ref_bar.entered && aq_ref_bar_gathered(aq_ref_bar.arrived + 1))
        aq_ref_bar.arrived++;
}

/* Returns the phases whose message of the round this rank may send. Under the lock. */
static uint64_t aq_ref_reach(unsigned round)
{
    uint64_t reach = aq_ref_bar.arrived;

    for (unsigned r = 0; r < round; r++)
        if (aq_ref_bar.received[r] < reach)
            reach = aq_ref_bar.received[r];
    return reach;
}

/* Sends one round's message if there is something to send. Returns false if there was no credit. */
static bool aq_ref_bar_send(unsigned round, unsigned *sent_out)
{
    uint64_t reach;
    bool left = true;

    for (;;) {
        aq_lock_acquire(&aq_ref_bar.lock);
        reach = aq_ref_reach(round);
        if (!left || aq_ref_bar.sending[round] || aq_ref_bar.sent[round] >= reach)
            break;
        aq_ref_bar.sending[round] = true;
        aq_lock_release(&aq_ref_bar.lock);

        const gex_AM_Arg_t args[] = { (gex_AM_Arg_t)round, AQ_ARGS_OF_U64(reach) };

        left = aq_ref_try_send(aq_ref_ahead(round), AQ_HIDX_BARRIER, 3, args);
        *sent_out += left;

        aq_lock_acquire(&aq_ref_bar.lock);
        aq_ref_bar.sending[round] = false;
        if (left)
            aq_ref_bar.sent[round] = reach;
        aq_lock_release(&aq_ref_bar.lock);
    }
    aq_lock_release(&aq_ref_bar.lock);
    return left;
}

/* Finds which phases are complete. Returns 1 if there are new ones. */
static unsigned aq_ref_bar_settle(unsigned rounds)
{
    uint64_t over, before;

    aq_lock_acquire(&aq_ref_bar.lock);
    over = aq_ref_reach(rounds);
    for (unsigned r = 0; r < rounds; r++)
        if (aq_ref_bar.sent[r] < over)
            over = aq_ref_bar.sent[r];
    /* relaxed: written under this lock */
    before = atomic_load_explicit(&aq_ref_bar.finished, memory_order_relaxed);
    /* release: pairs with the acquire in aq_ref_barrier_done() */
    if (over > before)
        atomic_store_explicit(&aq_ref_bar.finished, over, memory_order_release);
    aq_ref_set_active(&aq_ref_bar.active, over < aq_ref_bar.entered);
    if (over > before && aq_ref_parties.jobrank_of != NULL)
        aq_job.local->barrier_arrive(over); /* the other ranks wait for this */
    aq_lock_release(&aq_ref_bar.lock);
    return over > before;
}

/* Returns the number of events; a message without credit counts, since another poll is needed. */
static unsigned aq_ref_bar_advance(void)
{
    const unsigned rounds = aq_ref_rounds();
    unsigned happened = 0;

    if (!aq_ref_is_active(&aq_ref_bar.active))
        return 0;
    aq_lock_acquire(&aq_ref_bar.lock);
    aq_ref_bar_gather();
    aq_lock_release(&aq_ref_bar.lock);
    for (unsigned r = 0; r < rounds; r++)
        if (!aq_ref_bar_send(r, &happened))
            happened += aq_ref_declined();
    return happened + aq_ref_bar_settle(rounds);
}

static void aq_ref_on_barrier(gex_Token_t token, gex_AM_Arg_t round, gex_AM_Arg_t k_high,
                              gex_AM_Arg_t k_low)
{
    const uint64_t k = aq_u64_of_args(k_high, k_low);

    (void)token;
    if (round < 0 || (unsigned)round >= aq_ref_rounds())
        aq_fatal("a barrier message of round %d came; this job has %u rounds", (int)round,
                 aq_ref_rounds());
    aq_lock_acquire(&aq_ref_bar.lock);
    if (aq_ref_bar.received[round] < k)
        aq_ref_bar.received[round] = k;
    aq_lock_release(&aq_ref_bar.lock);
}

void aq_ref_barrier_arrive(uint64_t k)
{
    uint64_t before;

    if (aq_ref_parties.is_member) {
        aq_job.local->barrier_arrive(k);
        return;
    }
    aq_lock_acquire(&aq_ref_bar.lock);
    aq_ref_bar.entered = k;
    aq_ref_set_active(&aq_ref_bar.active, true);
    /* relaxed: the lock is held */
    before = atomic_load_explicit(&aq_ref_bar.finished, memory_order_relaxed);
    aq_lock_release(&aq_ref_bar.lock);
    aq_ref_bar_advance();
    /* another thread may sleep until an earlier phase is complete; polls notice that themselves.
     * relaxed: the sleeper tests the phase itself */
    if (AQ_THREADED && atomic_load_explicit(&aq_ref_bar.finished, memory_order_relaxed) != before)
        aq_wait_wake();
}

/* Only tests: polls send the messages. */
bool aq_ref_barrier_done(uint64_t k, gex_Rank_t *missing_out)
{
    const unsigned rounds = aq_ref_rounds();

    if (aq_ref_parties.is_member)
        return aq_job.local->barrier_done(k, missing_out);
    /* acquire: pairs with the release in aq_ref_bar_settle() */
    if (atomic_load_explicit(&aq_ref_bar.finished, memory_order_acquire) >= k)
        return true;
    *missing_out = GEX_RANK_INVALID;
    aq_lock_acquire(&aq_ref_bar.lock);
    for (unsigned r = rounds; r-- > 0;)
        if (aq_ref_bar.received[r] < k) /* the earliest round remains */
            *missing_out = aq_ref_behind(r);
    if (aq_ref_parties.jobrank_of != NULL && !aq_ref_bar_gathered(k))
        (void)aq_job.local->barrier_done(k, missing_out);
    aq_lock_release(&aq_ref_bar.lock);
    return false;
}

/* --- named --- */

static void aq_ref_merge(struct aq_barrier_name *name, int what, int id)
{
    if (what & AQ_NAME_MISMATCH)
        name->mismatch = true;
    if (!(what & AQ_NAME_NAMED))
        return;
    if (name->named && name->id != id)
        name->mismatch = true;
    name->named = true;
    name->id = id;
}

static int aq_ref_what(const struct aq_barrier_name *name)
{
    return (name->mismatch ? AQ_NAME_MISMATCH : 0) | (name->named ? AQ_NAME_NAMED : 0);
}

/* Returns the name that a leader passes to its own ranks, as flags of gasnet_barrier_notify(). */
static int aq_ref_flags(const struct aq_barrier_name *name)
{
    return name->mismatch ? GASNET_BARRIERFLAG_MISMATCH
           : name->named  ? 0
                          : GASNET_BARRIERFLAG_ANONYMOUS;
}

/* Returns true if the other ranks of the neighborhood have entered phase k, with their merged name
 * in *name_out. The local table names the lowest rank that has not, and the leader is the last. */
static bool aq_ref_named_gathered(uint64_t k, struct aq_barrier_name *name_out,
                                  gex_Rank_t *missing_out)
{
    return aq_job.local->named_done(k, name_out, missing_out) || *missing_out == aq_job.rank;
}

/* Checks whether the whole neighborhood has entered the current phase. Under the lock. */
static void aq_ref_named_gather(void)
{
    struct aq_ref_slot *slot = &aq_ref_named.slot[aq_ref_named.phase & 1];
    struct aq_barrier_name name = { false, false, 0 };
    gex_Rank_t missing;

    if (slot->arrived || !slot->entered
        || (aq_ref_parties.jobrank_of != NULL
            && !aq_ref_named_gathered(aq_ref_named.phase, &name, &missing)))
        return;
    slot->arrived = true;
    aq_ref_merge(&slot->name, aq_ref_what(&name), name.id);
}

/* Sends one round of the current phase if it is due. Returns false if there was no credit. */
static bool aq_ref_named_send(unsigned round, unsigned *sent_out)
{
    const uint32_t bit = (uint32_t)1 << round;
    struct aq_ref_slot *slot;
    bool due, left;

    aq_lock_acquire(&aq_ref_named.lock);
    slot = &aq_ref_named.slot[aq_ref_named.phase & 1];
    due = slot->arrived && (slot->received & (bit - 1)) == bit - 1
          && ((slot->sent | slot->sending) & bit) == 0;
    const gex_AM_Arg_t args[] = { (gex_AM_Arg_t)round, AQ_ARGS_OF_U64(aq_ref_named.phase),
                                  aq_ref_what(&slot->name), slot->name.id };
    if (due)
        slot->sending |= bit;
    aq_lock_release(&aq_ref_named.lock);
    if (!due)
        return true;

    left = aq_ref_try_send(aq_ref_ahead(round), AQ_HIDX_NAMED_BARRIER, 5, args);
    *sent_out += left;

    aq_lock_acquire(&aq_ref_named.lock);
    slot->sending &= ~bit;
    if (left)
        slot->sent |= bit; /* the phase cannot have ended before */
    aq_lock_release(&aq_ref_named.lock);
    return left;
}

static unsigned aq_ref_named_settle(unsigned rounds)
{
    const uint32_t all = (uint32_t)(((uint64_t)1 << rounds) - 1);
    struct aq_ref_slot *slot;
    unsigned ended = 0;

    aq_lock_acquire(&aq_ref_named.lock);
    slot = &aq_ref_named.slot[aq_ref_named.phase & 1];
    if (slot->arrived && !slot->done && slot->received == all && slot->sent == all) {
        slot->done = true;
        ended = 1;
        if (aq_ref_parties.jobrank_of != NULL) /* the other ranks wait for this */
            aq_job.local->named_arrive(aq_ref_named.phase, slot->name.id,
                                       aq_ref_flags(&slot->name));
    }
    aq_ref_set_active(&aq_ref_named.active, slot->entered && !slot->done);
    aq_lock_release(&aq_ref_named.lock);
    return ended;
}

static unsigned aq_ref_named_advance(void)
{
    const unsigned rounds = aq_ref_rounds();
    unsigned happened = 0;

    if (!aq_ref_is_active(&aq_ref_named.active))
        return 0;
    aq_lock_acquire(&aq_ref_named.lock);
    aq_ref_named_gather();
    aq_lock_release(&aq_ref_named.lock);
    for (unsigned r = 0; r < rounds; r++)
        if (!aq_ref_named_send(r, &happened))
            happened += aq_ref_declined();
    return happened + aq_ref_named_settle(rounds);
}

static void aq_ref_on_named(gex_Token_t token, gex_AM_Arg_t round, gex_AM_Arg_t k_high,
                            gex_AM_Arg_t k_low, gex_AM_Arg_t what, gex_AM_Arg_t id)
{
    const uint64_t k = aq_u64_of_args(k_high, k_low);
    struct aq_ref_slot *slot = &aq_ref_named.slot[k & 1];
    uint64_t own;

    (void)token;
    aq_lock_acquire(&aq_ref_named.lock);
    own = aq_ref_named.phase;
    if (round >= 0 && (unsigned)round < aq_ref_rounds() && (k == own || k == own + 1)) {
        slot->received |= (uint32_t)1 << round;
        aq_ref_merge(&slot->name, what, id);
        aq_lock_release(&aq_ref_named.lock);
        return;
    }
    aq_lock_release(&aq_ref_named.lock);
    aq_fatal("a message of round %d of named barrier %llu came, while this process is at %llu",
             (int)round, (unsigned long long)k, (unsigned long long)own);
}

void aq_ref_named_arrive(uint64_t k, int id, int flags)
{
    const int what = flags & GASNET_BARRIERFLAG_MISMATCH    ? AQ_NAME_MISMATCH
                     : flags & GASNET_BARRIERFLAG_ANONYMOUS ? 0
                                                            : AQ_NAME_NAMED;

    if (aq_ref_parties.is_member) {
        aq_job.local->named_arrive(k, id, flags);
        return;
    }
    aq_lock_acquire(&aq_ref_named.lock);
    aq_ref_named.phase = k;
    aq_ref_named.slot[k & 1].entered = true;
    aq_ref_merge(&aq_ref_named.slot[k & 1].name, what, id);
    /* no rank can be at phase k + 1 before it has received this arrival */
    aq_ref_named.slot[(k + 1) & 1] = (struct aq_ref_slot){ 0 };
    aq_ref_set_active(&aq_ref_named.active, true);
    aq_lock_release(&aq_ref_named.lock);
    aq_ref_named_advance();
}

/* Under the lock. */
static gex_Rank_t aq_ref_named_missing(uint64_t k, const struct aq_ref_slot *slot)
{
    struct aq_barrier_name name;
    gex_Rank_t missing = GEX_RANK_INVALID;

    if (aq_ref_parties.jobrank_of != NULL && !aq_ref_named_gathered(k, &name, &missing))
        return missing;
    for (unsigned r = 0; r < aq_ref_rounds(); r++)
        if ((slot->received & (uint32_t)1 << r) == 0)
            return aq_ref_behind(r);
    return GEX_RANK_INVALID;
}

bool aq_ref_named_done(uint64_t k, struct aq_barrier_name *name_out, gex_Rank_t *missing_out)
{
    const struct aq_ref_slot *slot = &aq_ref_named.slot[k & 1];
    bool done;

    if (aq_ref_parties.is_member)
        return aq_job.local->named_done(k, name_out, missing_out);
    aq_lock_acquire(&aq_ref_named.lock);
    done = slot->done;
    if (done)
        *name_out = slot->name;
    else
        *missing_out = aq_ref_named_missing(k, slot);
    aq_lock_release(&aq_ref_named.lock);
    return done;
}

/* --- polls and start-up --- */

unsigned aq_ref_barrier_progress(void)
{
    return aq_ref_bar_advance() + aq_ref_named_advance();
}

/* Two levels if the ranks of a neighborhood can use shared memory; the last rank of each is the
 * leader. */
static void aq_ref_choose_parties(void)
{
    gex_Rank_t *leaders;

    aq_ref_parties.count = aq_job.size;
    aq_ref_parties.self = aq_job.rank;
    if (!aq_job.has_remote || aq_job.nbrhd_count == aq_job.size
        || (aq_job.local->caps & AQ_CAP_LOAD_STORE) == 0)
        return;
    leaders = calloc(aq_job.nbrhd_count, sizeof(*leaders));
    if (leaders == NULL)
        aq_fatal("no memory for the leaders of %u neighborhoods", aq_job.nbrhd_count);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        leaders[aq_job.nbrhd_of[rank]] = rank;
    aq_ref_parties.count = aq_job.nbrhd_count;
    aq_ref_parties.self = aq_job.nbrhd_of[aq_job.rank];
    aq_ref_parties.is_member = leaders[aq_ref_parties.self] != aq_job.rank;
    aq_ref_parties.jobrank_of = leaders;
}

void aq_ref_barrier_fini(void)
{
    free((void *)(uintptr_t)aq_ref_parties.jobrank_of);
}

void aq_ref_barrier_init(void)
{
    const gex_Flags_t flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;

    aq_ref_choose_parties();
    aq_am_register_internal(AQ_HIDX_BARRIER, (gex_AM_Fn_t)aq_ref_on_barrier, flags, 3, "barrier");
    aq_am_register_internal(AQ_HIDX_NAMED_BARRIER, (gex_AM_Fn_t)aq_ref_on_named, flags, 5,
                            "named barrier");
}
