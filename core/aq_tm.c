/*
 * aq_tm.c - teams and TM-pairs as far as they name peers.
 *
 * A team has three tables in one piece of memory, sized by its members: jobranks by rank, what the
 * inline transfers add to a member's addresses (deltas) by rank, and ranks hashed by jobrank. A
 * team of all processes in their order shares the job's tables instead. Segments may be attached
 * after teams are made; the deltas are then filled in again.
 *
 * TM-pairs are part of their local endpoint and cost nothing. Those that name further endpoints
 * share one table in which nothing is mapped, made when the first of them is asked for.
 *
 * Owns      every struct aq_tm but the primordial one. Destroyed teams are used again, the longest
 *           destroyed one first, and never go back to malloc: debug builds know a dead handle
 * Threads   any; aq_tms.lock holds the lists and the making of the shared table. A team's
 *           tables are constant while it lives, its deltas but for the time of an attach
 * Uses      aq_job.h; no message is sent here
 * See       GASNet-EX specification 0.19, Teams; TM-pairs. SPDX-License-Identifier: BSD-3-Clause
 */
#include "core/aq_tm.h"

#include <stdlib.h>
#include <string.h>

#include "core/aq_lock.h"
#include "core/aq_log.h"
#include "core/aq_thread.h"

static struct {
    aq_lock lock;
    struct aq_tm *live;                    /* doubly linked */
    struct aq_tm *oldest_gone, *last_gone; /* singly linked by next */
} aq_tms;

/* --- tables --- */

/* Neighbouring jobranks go to neighbouring places: a run of them meets no collision. */
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

/* At least half of the places stay free: searches end soon. */
static gex_Rank_t aq_tm_places(gex_Rank_t members)
{
    gex_Rank_t places = 2;

    while (places < 2 * (uint64_t)members)
        places *= 2;
    return places;
}

static void aq_tm_fill_deltas(struct aq_tm *tm)
{
    intptr_t *delta = (intptr_t *)(uintptr_t)tm->head.delta;

    for (gex_Rank_t rank = 0; rank < tm->head.size; rank++)
        delta[rank] = aq_job.delta[tm->jobranks[rank]];
}

/* One piece of memory: deltas, jobranks, hash. It hangs on head.delta. */
static void aq_tm_make_tables(struct aq_tm *tm, const struct aq_tm_plan *plan)
{
    const size_t size = plan->size, places = aq_tm_places(plan->size);
    intptr_t *delta = malloc(size * (sizeof(intptr_t) + sizeof(gex_Rank_t))
                             + places * sizeof(gex_Rank_t));
    gex_Rank_t *jobranks;

    if (delta == NULL)
        aq_fatal("no memory for the tables of a team of %u members", plan->size);
    jobranks = (gex_Rank_t *)(void *)(delta + size);
    memcpy(jobranks, plan->jobranks, size * sizeof(*jobranks));
    tm->head.delta = delta;
    tm->jobranks = jobranks;
    tm->rank_of = jobranks + size;
    tm->rank_mask = (gex_Rank_t)(places - 1);
    memset(tm->rank_of, 0xff, places * sizeof(*tm->rank_of)); /* GEX_RANK_INVALID everywhere */
    for (gex_Rank_t rank = 0; rank < plan->size; rank++) {
        gex_Rank_t at = aq_tm_hash(jobranks[rank], tm->rank_mask);

        while (tm->rank_of[at] != GEX_RANK_INVALID)
            at = (at + 1) & tm->rank_mask;
        tm->rank_of[at] = rank;
    }
}

/* --- life --- */

/* The object for a new team: one long destroyed, or a new one. */
static struct aq_tm *aq_tm_take(void)
{
    struct aq_tm *tm;

    aq_lock_acquire(&aq_tms.lock);
    tm = aq_tms.oldest_gone;
    if (tm != NULL)
        aq_tms.oldest_gone = tm->next;
    if (aq_tms.oldest_gone == NULL)
        aq_tms.last_gone = NULL;
    aq_lock_release(&aq_tms.lock);
    if (tm == NULL)
        tm = malloc(sizeof(*tm));
    if (tm == NULL)
        aq_fatal("no memory for a team (%zu bytes)", sizeof(*tm));
    memset(tm, 0, sizeof(*tm));
    return tm;
}

struct aq_tm *aq_tm_create(const struct aq_tm_plan *plan)
{
    struct aq_tm *tm = aq_tm_take();

    tm->head = (struct aq_tm_public){ aq_job.delta, (gex_EP_t)(void *)&aq_job.ep, plan->rank,
                                      plan->size };
    tm->flags = plan->flags;
    tm->id = plan->id;
    tm->scratch = plan->scratch;
    if (!aq_tm_is_whole_job(plan))
        aq_tm_make_tables(tm, plan);
    aq_lock_acquire(&aq_tms.lock);
    if (tm->jobranks != NULL)
        aq_tm_fill_deltas(tm); /* under the lock: an attach comes before or finds us in the list */
    tm->next = aq_tms.live;
    if (tm->next != NULL)
        tm->next->prev = tm;
    aq_tms.live = tm;
    aq_lock_release(&aq_tms.lock);
    return tm;
}

void aq_tm_destroy(struct aq_tm *tm)
{
    void *tables = tm->jobranks != NULL ? (void *)(uintptr_t)tm->head.delta : NULL;

    aq_lock_acquire(&aq_tms.lock);
    if (tm->prev != NULL)
        tm->prev->next = tm->next;
    else
        aq_tms.live = tm->next;
    if (tm->next != NULL)
        tm->next->prev = tm->prev;
    memset(tm, 0, sizeof(*tm)); /* no members, no endpoint: see aq_tm_check_team() */
    if (aq_tms.last_gone != NULL)
        aq_tms.last_gone->next = tm;
    else
        aq_tms.oldest_gone = tm;
    aq_tms.last_gone = tm;
    aq_lock_release(&aq_tms.lock);
    free(tables);
}

void aq_tm_segments_came(void)
{
    aq_lock_acquire(&aq_tms.lock);
    for (struct aq_tm *tm = aq_tms.live; tm != NULL; tm = tm->next)
        if (tm->jobranks != NULL)
            aq_tm_fill_deltas(tm);
    aq_lock_release(&aq_tms.lock);
}

/* --- pairs --- */

/* The table of the pairs that name further endpoints. Where inline transfers are off, the job has
 * such a table already. Under the lock. */
static const intptr_t *aq_tm_make_unmapped(void)
{
    intptr_t *table = aq_job.delta;

    if (table != aq_job.map)
        return table;
    table = malloc(aq_job.size * sizeof(*table));
    if (table == NULL)
        aq_fatal("no memory for the peers of a TM-pair: %u entries", aq_job.size);
    for (gex_Rank_t rank = 0; rank < aq_job.size; rank++)
        table[rank] = AQ_NOT_MAPPED;
    return table;
}

void aq_tm_init_pairs(struct aq_ep *ep)
{
    aq_lock_acquire(&aq_tms.lock);
    for (gex_EP_Index_t i = 0; i < GASNET_MAXEPS; i++) {
        ep->pair[i].head = (struct aq_tm_public){
            /* relaxed: written under this lock */
            i == 0 ? aq_job.delta : atomic_load_explicit(&aq_job.unmapped, memory_order_relaxed),
            (gex_EP_t)(void *)ep, GEX_RANK_INVALID, aq_job.size
        };
        ep->pair[i].is_pair = true;
        ep->pair[i].peer_index = i;
    }
    aq_lock_release(&aq_tms.lock);
}

static __attribute__((noinline, cold)) void aq_tm_first_further_pair(void)
{
    const intptr_t *table;

    aq_lock_acquire(&aq_tms.lock);
    /* relaxed, all: written under this lock */
    if (atomic_load_explicit(&aq_job.unmapped, memory_order_relaxed) == NULL) {
        table = aq_tm_make_unmapped();
        for (gex_EP_Index_t i = 1; i < GASNET_MAXEPS; i++)
            aq_job.ep.pair[i].head.delta = table;
        for (gex_EP_Index_t e = 1; e < GASNET_MAXEPS; e++) {
            struct aq_ep *ep = atomic_load_explicit(&aq_job.further[e], memory_order_relaxed);

            for (gex_EP_Index_t i = 1; ep != NULL && i < GASNET_MAXEPS; i++)
                ep->pair[i].head.delta = table;
        }
        /* release: pairs with the acquire in gex_TM_Pair() */
        atomic_store_explicit(&aq_job.unmapped, table, memory_order_release);
    }
    aq_lock_release(&aq_tms.lock);
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
    /* acquire: pairs with the release in aq_tm_first_further_pair(); the pairs are filled */
    if (AQ_UNLIKELY(remote_index != 0)
        && atomic_load_explicit(&aq_job.unmapped, memory_order_acquire) == NULL)
        aq_tm_first_further_pair();
    return (gex_TM_t)(void *)&aq_ep(local_ep)->pair[remote_index];
}

/* --- queries --- */

gex_Client_t gex_TM_QueryClient(gex_TM_t tm)
{
    AQ_CHECK_HANDLE("team", tm);
    (void)tm;
    return (gex_Client_t)(void *)&aq_job.client;
}

gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm)
{
    AQ_CHECK_HANDLE("team", tm);
    return aq_tm(tm)->flags;
}

/* The client's own pointer is handed from thread to thread: release here, acquire there. */
void gex_TM_SetCData(gex_TM_t tm, const void *val)
{
    AQ_CHECK_HANDLE("team", tm);
    atomic_store_explicit(&aq_tm(tm)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_TM_QueryCData(gex_TM_t tm)
{
    AQ_CHECK_HANDLE("team", tm);
    return atomic_load_explicit(&aq_tm(tm)->cdata, memory_order_acquire);
}

void aq_tm_check_team(const char *call, gex_TM_t tm)
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

    aq_tm_check_team(call, tm);
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
