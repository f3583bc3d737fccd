/*
 * aq_ep.c - endpoints: creation, binding of segments, handler tables.
 *
 * The primordial endpoint can do everything; further ones serve put and get only. They are never
 * freed, since the interface has no call for that.
 *
 * Owns      the further endpoints
 * Threads   creation and binding under aq_eps.lock; registration under the endpoint's table_lock;
 *           delivery reads entries without it, since the client separates registration from use
 * Uses      aq_job.h, aq_am.h, the conduit table
 * See       GASNet-EX specification 0.19, Endpoints. SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>
#include <string.h>

#include "core/aq_am.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "base/aq_rc.h"
#include "base/aq_state.h"
#include "core/aq_thread.h"
#include "core/aq_trace.h"
#include "core/aq_tm.h"

/* Capabilities of endpoints other than the primordial one. */
#define AQ_EP_FURTHER_CAPS GEX_EP_CAPABILITY_RMA

static struct {
    aq_lock lock;
    gex_EP_Index_t last; /* index of the last endpoint made */
} aq_eps AQ_JOB_STATE;

/* --- creation and binding --- */

/* Assigns the next index. Indices are consecutive; a failure uses none. */
static int aq_ep_add(struct aq_ep *ep)
{
    int rc = GASNET_OK;

    aq_lock_acquire(&aq_eps.lock);
    if (aq_eps.last + 1 >= GASNET_MAXEPS) {
        rc = GASNET_ERR_RESOURCE;
    } else {
        ep->index = ++aq_eps.last;
        /* release: pairs with the acquire in aq_ep_at() */
        atomic_store_explicit(&aq_job.further[ep->index], ep, memory_order_release);
    }
    aq_lock_release(&aq_eps.lock);
    return rc;
}

int gex_EP_Create(gex_EP_t *ep_p, gex_Client_t client, gex_EP_Capabilities_t caps,
                  gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_EP_CREATE, GEX_RANK_INVALID, 0);
    struct aq_ep *ep;
    int rc;

#if GASNET_DEBUG
    aq_thread_check_main("gex_EP_Create");
#endif
    if (ep_p == NULL || client != (gex_Client_t)(void *)&aq_job.client)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_Create: %s",
                       ep_p == NULL ? "the output is NULL" : "this is not the job's client");
    if ((flags & ~GEX_FLAG_HINT_ACCEL_ALL) != 0)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_Create: unknown flags 0x%x", (unsigned)flags);
    if (caps == 0 || (caps & ~AQ_EP_FURTHER_CAPS) != 0)
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gex_EP_Create: capabilities 0x%x; further endpoints have "
                       "GEX_EP_CAPABILITY_RMA, and no other",
                       (unsigned)caps);
    ep = calloc(1, sizeof(*ep));
    if (ep == NULL)
        return aq_fail(GASNET_ERR_RESOURCE, "gex_EP_Create: no memory for an endpoint");
    ep->caps = AQ_EP_FURTHER_CAPS;
    ep->flags = flags;
    rc = aq_ep_add(ep);
    if (rc != GASNET_OK) {
        free(ep);
        return aq_fail(rc,
                       "gex_EP_Create: all %u endpoints of this process (GASNET_MAXEPS) are made",
                       (unsigned)GASNET_MAXEPS);
    }
    *ep_p = (gex_EP_t)(void *)ep;
    return GASNET_OK;
}

/* Returns the reason why it cannot be bound, or NULL. Under the lock. */
static const char *aq_ep_bind_error(const struct aq_ep *ep, const struct aq_segment *segment)
{
    /* relaxed: written under this lock */
    if (atomic_load_explicit(&ep->segment, memory_order_relaxed) != NULL)
        return "the endpoint has a segment already, and keeps it";
    if (aq_segment_size(segment) == 0)
        return "the segment has been destroyed";
    return NULL;
}

/* Members of teams are primordial endpoints: this rank's segment is in its tables of transfers.
 * Other ranks learn of it by gex_EP_PublishBoundSegment; no rank maps it. */
static void aq_ep_bound_primordial(const struct aq_segment *segment)
{
#if GASNET_SEGMENT_EVERYTHING
    (void)segment; /* the tables hold the whole address space */
#else
    aq_job.bound[aq_job.rank] = (struct aq_bound){ segment->base, aq_segment_size(segment) };
    aq_job.map[aq_job.rank] = 0;
    aq_tm_segments_came();
#endif
}

int gex_EP_BindSegment(gex_EP_t handle, gex_Segment_t segment_handle, gex_Flags_t flags)
{
    aq_check_started(__func__);
    AQ_TRACE_SCOPE(AQ_TRACE_EP_BIND, GEX_RANK_INVALID, 0);
    struct aq_ep *ep = aq_ep(handle);
    struct aq_segment *segment = (struct aq_segment *)(void *)segment_handle;
    const char *error;
    int rc = AQ_OK;

#if GASNET_DEBUG
    aq_thread_check_main("gex_EP_BindSegment");
#endif
    if (ep == NULL || segment == NULL || flags != 0)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_BindSegment: %s",
                       ep == NULL        ? "the endpoint is GEX_EP_INVALID"
                       : segment == NULL ? "the segment is GEX_SEGMENT_INVALID"
                                         : "flags must be 0");
    aq_lock_acquire(&aq_eps.lock);
    error = aq_ep_bind_error(ep, segment);
    if (error == NULL)
        rc = aq_job.local->segment_bind(segment);
    if (error == NULL && rc == AQ_OK)
        rc = aq_job.remote->segment_bind(segment);
    if (error == NULL && rc == AQ_OK) {
        segment->bound++;
        if (ep == &aq_job.ep)
            aq_ep_bound_primordial(segment);
        /* release: pairs with the acquire in gex_EP_QuerySegment() */
        atomic_store_explicit(&ep->segment, segment, memory_order_release);
    }
    aq_lock_release(&aq_eps.lock);
    if (error != NULL)
        return aq_fail(GASNET_ERR_BAD_ARG, "gex_EP_BindSegment: endpoint %u: %s", ep->index, error);
    return aq_rc_to_gasnet(rc);
}

bool aq_ep_release_segment(struct aq_segment *segment)
{
    bool unbound;

    aq_lock_acquire(&aq_eps.lock);
    /* A handler that another thread runs in the meantime looks up an address of some other segment.
     * The old size with the base, which does not change, serves it as well as 0: a client that
     * destroys a segment promises that no message refers to it any more. */
    aq_segment_set_size(segment, 0);
#if !GASNET_SEGMENT_EVERYTHING
    /* relaxed: written under this lock */
    if (atomic_load_explicit(&aq_job.ep.segment, memory_order_relaxed) == segment)
        aq_job.bound[aq_job.rank] = (struct aq_bound){ NULL, 0 };
#endif
    unbound = segment->bound == 0;
    aq_lock_release(&aq_eps.lock);
    return unbound;
}

/* --- endpoint queries --- */

gex_Client_t gex_EP_QueryClient(gex_EP_t ep)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    (void)ep;
    return (gex_Client_t)(void *)&aq_job.client;
}

gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    return aq_ep(ep)->flags;
}

gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    return (gex_Segment_t)(void *)atomic_load_explicit(&aq_ep(ep)->segment, memory_order_acquire);
}

gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    return aq_ep(ep)->index;
}

void gex_EP_SetCData(gex_EP_t ep, const void *val)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    atomic_store_explicit(&aq_ep(ep)->cdata, (void *)(uintptr_t)val, memory_order_release);
}

void *gex_EP_QueryCData(gex_EP_t ep)
{
    AQ_CHECK_HANDLE("endpoint", ep);
    return atomic_load_explicit(&aq_ep(ep)->cdata, memory_order_acquire);
}

/* --- handler tables --- */

/* Returns what is wrong with a row, or NULL. */
static const char *aq_ep_row_error(const gex_AM_Entry_t *row)
{
    const gex_Flags_t kinds = row->gex_flags & (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDLONG);
    const gex_Flags_t directions = row->gex_flags & GEX_FLAG_AM_REQREP;

    if (row->gex_fnptr == NULL)
        return "gex_fnptr is NULL";
    if (row->gex_index != 0 && row->gex_index < GEX_AM_INDEX_BASE)
        return "gex_index is below GEX_AM_INDEX_BASE";
    if (row->gex_flags == AQ_AM_ANY_KIND && row->gex_nargs == AQ_AM_ANY_NARGS)
        return NULL;
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
    /* relaxed: see aq_am_enter() */
    atomic_store_explicit(&ep->handler[row->gex_index], row->gex_fnptr, memory_order_relaxed);
}

/* Checks all rows and chooses all indices before the first is installed, so that a failed call has
 * no effect. taken[] is the present table plus what this call claims. */
static int aq_ep_plan(const char *call, const struct aq_ep *ep, const gex_AM_Entry_t *table,
                      size_t count, uint8_t *chosen)
{
    bool taken[256];
    unsigned highest = 255;

    for (unsigned i = 0; i < 256; i++)
        taken[i] = atomic_load_explicit(&ep->handler[i], memory_order_relaxed)
                   != NULL; /* relaxed: under the lock */
    for (size_t i = 0; i < count; i++) {
        const char *error = aq_ep_row_error(&table[i]);
        const uint8_t index = table[i].gex_index;

        if (error != NULL)
            return aq_fail(GASNET_ERR_BAD_ARG, "%s: row %zu (%s): %s", call, i,
                           table[i].gex_name != NULL ? table[i].gex_name : "unnamed", error);
        if (index == 0)
            continue;
        if (taken[index])
            return aq_fail(GASNET_ERR_BAD_ARG, "%s: row %zu: index %u is in use", call, i, index);
        taken[index] = true;
        chosen[i] = index;
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].gex_index != 0)
            continue;
        while (highest >= GEX_AM_INDEX_BASE && taken[highest])
            highest--;
        if (highest < GEX_AM_INDEX_BASE)
            return aq_fail(GASNET_ERR_RESOURCE, "%s: row %zu: all %u indices are in use", call, i,
                           256u - GEX_AM_INDEX_BASE);
        taken[highest] = true;
        chosen[i] = (uint8_t)highest;
    }
    return GASNET_OK;
}

int aq_ep_register(const char *call, struct aq_ep *ep, gex_AM_Entry_t *table, size_t count)
{
    uint8_t chosen[256];
    int rc;

    aq_lock_acquire(&ep->table_lock);
    rc = aq_ep_plan(call, ep, table, count, chosen);
    for (size_t i = 0; rc == GASNET_OK && i < count; i++) {
        if (table[i].gex_index == 0)
            table[i].gex_index = chosen[i]; /* the only write to the client's table */
        aq_ep_install(ep, &table[i]);
    }
    aq_lock_release(&ep->table_lock);
    return rc;
}

int gex_EP_RegisterHandlers(gex_EP_t handle, gex_AM_Entry_t *table, size_t numentries)
{
    aq_check_started(__func__);
    struct aq_ep *ep = aq_ep(handle);

    if (numentries == 0)
        return GASNET_OK;
    if (ep == NULL || table == NULL || numentries > 256u - GEX_AM_INDEX_BASE)
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gex_EP_RegisterHandlers: %zu rows at %p; the most is %u", numentries,
                       (void *)table, 256u - GEX_AM_INDEX_BASE);
    if (ep->index != 0)
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gex_EP_RegisterHandlers: endpoint %u was made without "
                       "GEX_EP_CAPABILITY_AM: it takes no messages",
                       ep->index);
#if GASNET_DEBUG
    aq_thread_check_main("gex_EP_RegisterHandlers");
#endif
    return aq_ep_register("gex_EP_RegisterHandlers", ep, table, numentries);
}

void aq_am_register_internal(enum aq_am_index index, gex_AM_Fn_t fn, gex_Flags_t flags,
                             unsigned nargs, const char *name)
{
    const gex_AM_Entry_t row = { .gex_index = (gex_AM_Index_t)index,
                                 .gex_fnptr = fn,
                                 .gex_flags = flags,
                                 .gex_nargs = nargs,
                                 .gex_name = name };

    aq_ep_install(&aq_job.ep, &row);
}

void aq_ep_fini(void)
{
    for (gex_EP_Index_t index = 1; index < GASNET_MAXEPS; index++)
        /* relaxed: no other thread is in the library */
        free(atomic_load_explicit(&aq_job.further[index], memory_order_relaxed));
}
