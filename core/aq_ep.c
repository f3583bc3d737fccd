/*
 * aq_ep.c - endpoints and their handler tables; teams as far as they name peers.
 *
 * Threads   registration under the endpoint's table_lock; delivery reads entries without it,
 *           since the client separates registration from use
 * Uses      aq_job.h, aq_am.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_job.h"
#include "core/aq_log.h"
#include "core/aq_thread.h"

/* --- endpoint queries --- */

gex_Client_t gex_EP_QueryClient(gex_EP_t ep)
{
    (void)ep;
    return (gex_Client_t)(void *)&aq_job.client;
}

gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep)
{
    return aq_ep(ep)->flags;
}

gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep)
{
    return (gex_Segment_t)(void *)atomic_load_explicit(&aq_ep(ep)->segment, memory_order_acquire);
}

gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep)
{
    return aq_ep(ep)->index;
}

void gex_EP_SetCData(gex_EP_t ep, const void *val)
{
    atomic_store_explicit(&aq_ep(ep)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_EP_QueryCData(gex_EP_t ep)
{
    return atomic_load_explicit(&aq_ep(ep)->cdata, memory_order_acquire);
}

/* --- handler tables --- */

/* What is wrong with a row, or NULL. */
static const char *aq_ep_row_fault(const gex_AM_Entry_t *row)
{
    const gex_Flags_t kinds = row->gex_flags & (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG);
    const gex_Flags_t directions = row->gex_flags & GEX_FLAG_AM_REQREP;

    if (row->gex_fnptr == NULL)
        return "gex_fnptr is NULL";
    if (row->gex_index != 0 && row->gex_index < GEX_AM_INDEX_BASE)
        return "gex_index is below GEX_AM_INDEX_BASE";
    if (kinds == 0 || (kinds & (kinds - 1) && kinds != GEX_FLAG_AM_MEDLONG))
        return "gex_flags must name one of SHORT, MEDIUM, LONG, MEDLONG";
    if (directions == 0)
        return "gex_flags must name one of REQUEST, REPLY, REQREP";
    if (row->gex_nargs > AQ_AM_MAX_ARGS)
        return "gex_nargs exceeds gex_AM_MaxArgs()";
    return NULL;
}

static void aq_ep_install(struct aq_ep *ep, const gex_AM_Entry_t *row)
{
    ep->entry[row->gex_index] = *row;
    ep->handler[row->gex_index] = row->gex_fnptr;
}

/* Check all rows and choose all indices before the first is installed, so that a failed call
 * has done nothing. taken[] is the present table plus what this call claims. */
static int aq_ep_plan(const struct aq_ep *ep, const gex_AM_Entry_t *table, size_t count,
                      uint8_t *chosen)
{
    bool taken[256];
    unsigned highest = 255;

    for (unsigned i = 0; i < 256; i++)
        taken[i] = ep->handler[i] != NULL;
    for (size_t i = 0; i < count; i++) {
        const char *fault = aq_ep_row_fault(&table[i]);
        const uint8_t index = table[i].gex_index;

        if (fault != NULL)
            return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_RegisterHandlers: row %zu (%s): %s", i,
                           table[i].gex_name != NULL ? table[i].gex_name : "unnamed", fault);
        if (index == 0)
            continue;
        if (taken[index])
            return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_RegisterHandlers: row %zu: index %u is in "
                           "use", i, index);
        taken[index] = true;
        chosen[i] = index;
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].gex_index != 0)
            continue;
        while (highest >= GEX_AM_INDEX_BASE && taken[highest])
            highest--;
        if (highest < GEX_AM_INDEX_BASE)
            return aq_fail(GASNET_ERR_RESOURCE, "gex_EP_RegisterHandlers: row %zu: all %u indices "
                           "are in use", i, 256u - GEX_AM_INDEX_BASE);
        taken[highest] = true;
        chosen[i] = (uint8_t)highest;
    }
    return GASNET_OK;
}

int gex_EP_RegisterHandlers(gex_EP_t handle, gex_AM_Entry_t *table, size_t numentries)
{
    struct aq_ep *ep = aq_ep(handle);
    uint8_t chosen[256];
    int rc;

    if (numentries == 0)
        return GASNET_OK;
    if (ep == NULL || table == NULL || numentries > 256u - GEX_AM_INDEX_BASE)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_RegisterHandlers: %zu rows at %p; the most is %u",
                       numentries, (void *)table, 256u - GEX_AM_INDEX_BASE);
#if GASNET_DEBUG
    aq_thread_check_main("gex_EP_RegisterHandlers");
#endif
    aq_lock_acquire(&ep->table_lock);
    rc = aq_ep_plan(ep, table, numentries, chosen);
    for (size_t i = 0; rc == GASNET_OK && i < numentries; i++) {
        if (table[i].gex_index == 0)
            table[i].gex_index = chosen[i]; /* the only write to the client's table */
        aq_ep_install(ep, &table[i]);
    }
    aq_lock_release(&ep->table_lock);
    return rc;
}

void aq_am_register_internal(enum aq_am_index index, gex_AM_Fn_t fn, gex_Flags_t flags,
                             unsigned nargs, const char *name)
{
    const gex_AM_Entry_t row = { .gex_index = (gex_AM_Index_t)index, .gex_fnptr = fn,
                                 .gex_flags = flags, .gex_nargs = nargs, .gex_name = name };

    aq_ep_install(&aq_job.ep, &row);
}

/* --- teams --- */

gex_Client_t gex_TM_QueryClient(gex_TM_t tm)
{
    (void)tm;
    return (gex_Client_t)(void *)&aq_job.client;
}

gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm)
{
    return aq_tm(tm)->flags;
}

void gex_TM_SetCData(gex_TM_t tm, const void *val)
{
    atomic_store_explicit(&aq_tm(tm)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_TM_QueryCData(gex_TM_t tm)
{
    return atomic_load_explicit(&aq_tm(tm)->cdata, memory_order_acquire);
}

static void aq_tm_check(const char *call, gex_TM_t tm, gex_Rank_t rank, gex_Rank_t bound)
{
#if GASNET_DEBUG
    if (tm == GEX_TM_INVALID || aq_tm(tm)->is_pair)
        aq_fatal("%s: tm is %s, not a team", call,
                 tm == GEX_TM_INVALID ? "GEX_TM_INVALID" : "a TM-pair");
    if (rank >= bound)
        aq_fatal("%s: rank %u is outside 0..%u", call, rank, bound - 1);
    aq_thread_check_main(call);
#else
    (void)call, (void)tm, (void)rank, (void)bound;
#endif
}

gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank)
{
    aq_tm_check("gex_TM_TranslateRankToJobrank", tm, rank, aq_tm_head_of(tm)->size);
    return aq_tm_jobrank(tm, rank);
}

gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank)
{
    const gex_Rank_t *jobranks = aq_tm(tm)->jobranks;

    aq_tm_check("gex_TM_TranslateJobrankToRank", tm, jobrank, aq_job.size);
    if (jobranks == NULL)
        return jobrank;
    for (gex_Rank_t rank = 0; rank < aq_tm_head_of(tm)->size; rank++)
        if (jobranks[rank] == jobrank)
            return rank;
    return GEX_RANK_INVALID;
}

gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags)
{
    gex_EP_Location_t location = { 0, 0 };

    (void)flags;
    aq_tm_check("gex_TM_TranslateRankToEP", tm, rank, aq_tm_head_of(tm)->size);
    location.gex_rank = aq_tm_jobrank(tm, rank);
    return location;
}

gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_index)
{
#if GASNET_DEBUG
    if (remote_index >= GASNET_MAXEPS)
        aq_fatal("gex_TM_Pair: endpoint index %u; the most is %u", remote_index,
                 (unsigned)GASNET_MAXEPS - 1);
#endif
    return (gex_TM_t)(void *)&aq_ep(local_ep)->pair[remote_index];
}
