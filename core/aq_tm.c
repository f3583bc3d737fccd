/*
 * aq_tm.c - teams and TM-pairs, as far as they name peers.
 *
 * The deltas that inline transfers add to a member's addresses are stored by rank in the object
 * itself, behind the head that the handle points to. A team that is not all processes in their
 * order has two more tables in one allocation: jobranks by rank, and ranks hashed by jobrank.
 * Segments may be attached after teams are made; the deltas are then filled in again.
 *
 * A TM-pair is made when it is first used, and is kept. In pairs that name further endpoints
 * nothing is mapped.
 *
 * Owns      every struct aq_tm. Destroyed teams are reused, the longest destroyed one that is large
 *           enough first, and never go back to malloc, so that debug builds recognise a dead handle
 * Threads   any; aq_tms.lock protects the lists and the making of pairs. A team's tables are
 *           constant while it lives, except that an attach changes its deltas
 * Uses      aq_job.h; no message is sent here
 * See       GASNet-EX specification 0.19, Teams; TM-pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_tm.h"

#include <stdlib.h>
#include <string.h>

#include "base/aq_lock.h"
#include "base/aq_log.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"

static struct {
    aq_lock lock;
    struct aq_tm *live;        /* teams and pairs except the primordial team; doubly linked */
    struct aq_tm *oldest_free; /* singly linked by next */
    struct aq_tm **free_end;   /* where the next destroyed team is linked */
} aq_tms AQ_JOB_STATE = { .free_end = &aq_tms.oldest_free };

/* --- tables --- */

/* Consecutive jobranks hash to consecutive slots: a run of them has no collision. */
static inline gex_Rank_t aq_tm_hash(gex_Rank_t jobrank, gex_Rank_t mask)
{
    return (jobrank ^ jobrank >> 16) & mask;
}

gex_Rank_t aq_tm_rank(const struct aq_tm *tm, gex_Rank_t jobrank)
{
    if (tm->jobranks == NULL)
        return jobrank;
    for (gex_Rank_t at = aq_tm_hash(jobrank, tm->rank_mask);; at = (at + 1) & tm->rank_mask) {
        const gex_Rank_t rank = tm->rank_of[at];

        if (rank == GEX_RANK_INVALID || tm->jobranks[rank] == jobrank)
            return rank;
    }
}

static bool aq_tm_is_whole_job(const struct aq_tm_plan *plan)
{
    if (plan->size != aq_job.size)
        return false;
    for (gex_Rank_t rank = 0; rank < plan->size; rank++)
        if (plan->jobranks[rank] != rank)
            return false;
    return true;
}

/* At least half of the slots stay free, so that searches are short. */
static gex_Rank_t aq_tm_slots(gex_Rank_t members)
{
    gex_Rank_t slots = 2;

    while (slots < 2 * (uint64_t)members)
        slots *= 2;
    return slots;
}

/* The table behind the head, for the code that fills it. */
static intptr_t *aq_tm_own_deltas(struct aq_tm *tm)
{
    return (intptr_t *)(uintptr_t)aq_tm_deltas(aq_tm_handle(tm));
}

/* Further endpoints have segments of their own, which are not mapped. */
static void aq_tm_fill_deltas(struct aq_tm *tm)
{
    intptr_t *delta = aq_tm_own_deltas(tm);

    for (gex_Rank_t rank = 0; rank < tm->head.size; rank++)
        delta[rank] = tm->peer_index != 0 ? AQ_NOT_MAPPED
                                          : aq_job.delta[aq_tm_jobrank(aq_tm_handle(tm), rank)];
}

/* One allocation for jobranks and hash table; jobranks points to it. */
static void aq_tm_make_tables(struct aq_tm *tm, const struct aq_tm_plan *plan)
{
    const size_t size = plan->size, slots = aq_tm_slots(plan->size);
    gex_Rank_t *jobranks = malloc((size + slots) * sizeof(*jobranks));

    if (jobranks == NULL)
        aq_fatal("no memory for the tables of a team of %u members", plan->size);
    memcpy(jobranks, plan->jobranks, size * sizeof(*jobranks));
    tm->jobranks = jobranks;
    tm->rank_of = jobranks + size;
    tm->rank_mask = (gex_Rank_t)(slots - 1);
    memset(tm->rank_of, 0xff, slots * sizeof(*tm->rank_of)); /* GEX_RANK_INVALID everywhere */
    for (gex_Rank_t rank = 0; rank < plan->size; rank++) {
        gex_Rank_t at = aq_tm_hash(jobranks[rank], tm->rank_mask);

        while (tm->rank_of[at] != GEX_RANK_INVALID)
            at = (at + 1) & tm->rank_mask;
        tm->rank_of[at] = rank;
    }
}

/* --- life cycle --- */

/* Allocates an object with space for so many members, all zero except its capacity. */
static struct aq_tm *aq_tm_alloc(gex_Rank_t capacity)
{
    struct aq_tm *tm = calloc(1, sizeof(*tm) + capacity * sizeof(intptr_t));

    if (tm == NULL)
        aq_fatal("no memory for a team of %u members", capacity);
    tm->capacity = capacity;
    return tm;
}

/* Returns an object for a new team: the longest destroyed one that is large enough, or a new one.
 * Capacities are powers of two, so that successive teams of many sizes share few objects. */
static struct aq_tm *aq_tm_take(gex_Rank_t members)
{
    struct aq_tm **at, *tm;
    gex_Rank_t capacity = 1;

    aq_lock_acquire(&aq_tms.lock);
    for (at = &aq_tms.oldest_free; *at != NULL && (*at)->capacity < members; at = &(*at)->next)
        continue;
    tm = *at;
    if (tm != NULL) {
        *at = tm->next;
        tm->next = NULL;
        if (*at == NULL)
            aq_tms.free_end = at;
    }
    aq_lock_release(&aq_tms.lock);
    if (tm != NULL)
        return tm;
    while (capacity < members)
        capacity *= 2;
    return aq_tm_alloc(capacity);
}

/* Under the lock: an attach either precedes this or finds the object in the list. */
static void aq_tm_enlist(struct aq_tm *tm)
{
    aq_tm_fill_deltas(tm);
    tm->next = aq_tms.live;
    if (tm->next != NULL)
        tm->next->prev = tm;
    aq_tms.live = tm;
}

struct aq_tm *aq_tm_create(const struct aq_tm_plan *plan)
{
    struct aq_tm *tm = aq_tm_take(plan->size);

    tm->head = (struct aq_tm_public){ (gex_EP_t)(void *)&aq_job.ep, plan->rank, plan->size };
    tm->flags = plan->flags;
    tm->id = plan->id;
    tm->scratch = plan->scratch;
    if (!aq_tm_is_whole_job(plan))
        aq_tm_make_tables(tm, plan);
    aq_lock_acquire(&aq_tms.lock);
    aq_tm_enlist(tm);
    aq_lock_release(&aq_tms.lock);
    return tm;
}

void aq_tm_create_primordial(void)
{
    struct aq_tm *tm = aq_tm_alloc(aq_job.size);

    tm->head = (struct aq_tm_public){ (gex_EP_t)(void *)&aq_job.ep, aq_job.rank, aq_job.size };
    aq_job.tm = tm;
    aq_job.delta = aq_tm_own_deltas(tm);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        aq_job.delta[rank] = AQ_NOT_MAPPED;
}

void aq_tm_destroy(struct aq_tm *tm)
{
    void *tables = (void *)(uintptr_t)tm->jobranks;
    const gex_Rank_t capacity = tm->capacity;

    aq_lock_acquire(&aq_tms.lock);
    if (tm->prev != NULL)
        tm->prev->next = tm->next;
    else
        aq_tms.live = tm->next;
    if (tm->next != NULL)
        tm->next->prev = tm->prev;
    memset(tm, 0, sizeof(*tm)); /* no members, no endpoint: see aq_check_team() */
    tm->capacity = capacity;
    *aq_tms.free_end = tm;
    aq_tms.free_end = &tm->next;
    aq_lock_release(&aq_tms.lock);
    free(tables);
}

void aq_tm_segments_came(void)
{
    aq_lock_acquire(&aq_tms.lock);
    for (struct aq_tm *tm = aq_tms.live; tm != NULL; tm = tm->next)
        aq_tm_fill_deltas(tm);
    aq_lock_release(&aq_tms.lock);
}

void aq_tm_each_team(void (*fn)(struct aq_tm *tm))
{
    for (struct aq_tm *tm = aq_tms.live, *next; tm != NULL; tm = next) {
        next = tm->next;
        if (!tm->is_pair)
            fn(tm);
    }
    fn(aq_job.tm);
}

static void aq_tm_free_list(struct aq_tm *tm)
{
    while (tm != NULL) {
        struct aq_tm *next = tm->next;

        free((void *)(uintptr_t)tm->jobranks);
        free(tm);
        tm = next;
    }
}

void aq_tm_fini(void)
{
    aq_tm_free_list(aq_tms.live);
    aq_tm_free_list(aq_tms.oldest_free);
    free(aq_job.tm);
}

/* --- pairs --- */

static __attribute__((noinline, cold)) struct aq_tm *aq_tm_make_pair(struct aq_ep *ep,
                                                                     gex_EP_Index_t remote_index)
{
    struct aq_tm *tm;

    aq_lock_acquire(&aq_tms.lock);
    /* relaxed: under this lock */
    tm = atomic_load_explicit(&ep->pair[remote_index], memory_order_relaxed);
    if (tm == NULL) {
        tm = aq_tm_alloc(aq_job.size);
        tm->head = (struct aq_tm_public){ (gex_EP_t)(void *)ep, GEX_RANK_INVALID, aq_job.size };
        tm->is_pair = true;
        tm->peer_index = remote_index;
        aq_tm_enlist(tm);
        /* release: pairs with the acquire in gex_TM_Pair() */
        atomic_store_explicit(&ep->pair[remote_index], tm, memory_order_release);
    }
    aq_lock_release(&aq_tms.lock);
    return tm;
}

gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_index)
{
    AQ_CHECK_STARTED();
#if GASNET_DEBUG
    if (local_ep == GEX_EP_INVALID)
        aq_fatal("gex_TM_Pair: the local endpoint is GEX_EP_INVALID");
    if (remote_index >= GASNET_MAXEPS)
        aq_fatal("gex_TM_Pair: endpoint index %u; the most is %u", remote_index,
                 (unsigned)GASNET_MAXEPS - 1);
#endif
    struct aq_ep *ep = aq_ep(local_ep);
    /* acquire: pairs with the release in aq_tm_make_pair(); the pair is filled */
    struct aq_tm *tm = atomic_load_explicit(&ep->pair[remote_index], memory_order_acquire);

    return aq_tm_handle(AQ_LIKELY(tm != NULL) ? tm : aq_tm_make_pair(ep, remote_index));
}

/* --- queries --- */

gex_Client_t gex_TM_QueryClient(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
    (void)tm;
    return (gex_Client_t)(void *)&aq_job.client;
}

gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
    return aq_tm(tm)->flags;
}

/* The client passes its own pointer from thread to thread: release here, acquire in the query. */
void gex_TM_SetCData(gex_TM_t tm, const void *val)
{
    AQ_CHECK_TEAM(tm);
    atomic_store_explicit(&aq_tm(tm)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_TM_QueryCData(gex_TM_t tm)
{
    AQ_CHECK_TEAM(tm);
    return atomic_load_explicit(&aq_tm(tm)->cdata, memory_order_acquire);
}

void aq_check_team(const char *call, gex_TM_t tm)
{
    aq_check_started(call);
    if (tm == GEX_TM_INVALID)
        aq_fatal("%s: the team is GEX_TM_INVALID", call);
    if (aq_tm(tm)->is_pair)
        aq_fatal("%s: tm is a TM-pair, not a team", call);
    if (aq_tm_head_of(tm)->size == 0)
        aq_fatal("%s: the team %p has been destroyed", call, (const void *)tm);
}

/* of_job: the rank is a jobrank. */
static inline void aq_tm_check_query(const char *call, gex_TM_t tm, bool of_job, gex_Rank_t rank)
{
#if GASNET_DEBUG
    gex_Rank_t bound;

    aq_check_team(call, tm);
    bound = of_job ? aq_job.size : aq_tm_head_of(tm)->size;
    if (rank >= bound)
        aq_fatal("%s: %s %u is outside 0..%u", call, of_job ? "jobrank" : "rank", rank, bound - 1);
    aq_thread_check_main(call);
#else
    (void)call, (void)tm, (void)of_job, (void)rank;
#endif
}

gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank)
{
    aq_tm_check_query("gex_TM_TranslateRankToJobrank", tm, false, rank);
    return aq_tm_jobrank(tm, rank);
}

gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank)
{
    aq_tm_check_query("gex_TM_TranslateJobrankToRank", tm, true, jobrank);
    return aq_tm_rank(aq_tm(tm), jobrank);
}

gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags)
{
    gex_EP_Location_t location = { 0, 0 }; /* members are primordial endpoints: index 0 */

    aq_tm_check_query("gex_TM_TranslateRankToEP", tm, false, rank);
#if GASNET_DEBUG
    if (flags != 0)
        aq_fatal("gex_TM_TranslateRankToEP: flags are 0x%x; they must be 0", (unsigned)flags);
#else
    (void)flags;
#endif
    location.gex_rank = aq_tm_jobrank(tm, rank);
    return location;
}
