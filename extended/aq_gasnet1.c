/*
 * aq_gasnet1.c - start-up of GASNet-1 clients, and the debug checks of their calls.
 *
 * gasnet_init() is gex_Client_Init() with GEX_FLAG_USES_GASNET1 and a fixed name; gasnet_attach()
 * is handler registration and gex_Segment_Attach() in one. A client that starts with
 * gex_Client_Init() and the same flag may use all other calls too.
 *
 * States    not started -> STARTED (gasnet_init) -> ATTACHED (gasnet_attach); or EX, for processes
 *           that start with gex_Client_Init()
 * Threads   start-up and attach once, before other threads call; the rest from any
 * Promise   an init or attach that is called too early or too late returns an error and changes
 *           nothing
 * Uses      core/aq_ep.h for handlers of any kind, the EX interface for the rest
 * See       GASNet specification 1.8, Job control; include/gasnet/gasnet1_job.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"

#include "core/aq_am.h"
#include "core/aq_am_out.h"
#include "core/aq_ep.h"
#include "core/aq_job.h"
#include "base/aq_log.h"
#include "core/aq_segment.h"
#include "core/aq_thread.h"
#include "extended/aq_gasnet1.h"

gex_TM_t aq_gasnet1_tm;

static enum { AQ_GASNET1_EX, AQ_GASNET1_STARTED, AQ_GASNET1_ATTACHED } aq_gasnet1_state;

/* --- init --- */

int aq_gasnet1_may_start(void)
{
    if (aq_job.conduit != NULL) {
        aq_fail(GASNET_ERR_NOT_INIT,
                "gasnet_init: the library is already started; a process starts it "
                "once, with gasnet_init or gex_Client_Init");
        return 0;
    }
    aq_gasnet1_state = AQ_GASNET1_STARTED;
    return 1;
}

void aq_gasnet1_start(void)
{
    if (!(aq_job.client.flags & GEX_FLAG_USES_GASNET1))
        return;
    aq_gasnet1_tm = aq_tm_handle(aq_job.tm);
    aq_job.ep.flags |= GEX_FLAG_USES_GASNET1;
    aq_job.tm->flags |= GEX_FLAG_USES_GASNET1;
}

void aq_gasnet1_fini(void)
{
    aq_gasnet1_tm = GEX_TM_INVALID;
    aq_gasnet1_state = AQ_GASNET1_EX;
}

/* --- attach --- */

#define AQ_GASNET1_MAX_HANDLERS (256 - GEX_AM_INDEX_BASE)

#if !GASNET_SEGMENT_EVERYTHING
/* A segment of size 0 becomes one page. */
static int aq_gasnet1_check_segsize(uintptr_t *segsize)
{
    const uintptr_t limit = gasnet_getMaxLocalSegmentSize();
    char why[256];

    if (*segsize % GASNET_PAGESIZE != 0)
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gasnet_attach: the segment's size is %zu, not a multiple of "
                       "GASNET_PAGESIZE (%u)",
                       (size_t)*segsize, (unsigned)GASNET_PAGESIZE);
    if (*segsize > limit) {
        aq_segment_explain(why, sizeof(why));
        return aq_fail(GASNET_ERR_BAD_ARG,
                       "gasnet_attach: %.1f MB asked for, the limit is %.1f MB: %s",
                       (double)*segsize / 1048576, (double)limit / 1048576, why);
    }
    if (*segsize == 0)
        *segsize = GASNET_PAGESIZE;
    return GASNET_OK;
}
#endif

/* Registers the rows as EX rows that accept every kind of message. The table is written to only if
 * all of them were registered. */
static int aq_gasnet1_register(gasnet_handlerentry_t *table, int numentries)
{
    gex_AM_Entry_t rows[AQ_GASNET1_MAX_HANDLERS];
    int rc;

    if (table == NULL || numentries == 0)
        return GASNET_OK;
    if (numentries < 0 || numentries > AQ_GASNET1_MAX_HANDLERS)
        return aq_fail(GASNET_ERR_RESOURCE, "gasnet_attach: a table of %d handlers; the most is %d",
                       numentries, AQ_GASNET1_MAX_HANDLERS);
    for (int i = 0; i < numentries; i++)
        rows[i] = (gex_AM_Entry_t){ .gex_index = table[i].index,
                                    .gex_fnptr = table[i].fnptr,
                                    .gex_flags = AQ_AM_ANY_KIND,
                                    .gex_nargs = AQ_AM_ANY_NARGS };
    rc = aq_ep_register("gasnet_attach", &aq_job.ep, rows, (size_t)numentries);
    if (rc != GASNET_OK)
        return GASNET_ERR_RESOURCE;
    for (int i = 0; i < numentries; i++)
        if (table[i].index == 0)
            table[i].index = rows[i].gex_index;
    return GASNET_OK;
}

int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
                  uintptr_t minheapoffset)
{
    gex_Segment_t segment;
    int rc = GASNET_OK;

    (void)minheapoffset;
    if (aq_gasnet1_state == AQ_GASNET1_ATTACHED)
        return aq_fail(GASNET_ERR_NOT_INIT, "gasnet_attach called a second time");
    if (aq_gasnet1_state != AQ_GASNET1_STARTED || !aq_job_has_started())
        return aq_fail(GASNET_ERR_NOT_INIT,
                       "gasnet_attach called without gasnet_init before it; clients "
                       "of gex_Client_Init call gex_Segment_Attach and gex_EP_RegisterHandlers");
#if GASNET_DEBUG
    aq_thread_check_main("gasnet_attach");
#endif
#if !GASNET_SEGMENT_EVERYTHING
    rc = aq_gasnet1_check_segsize(&segsize);
    if (rc != GASNET_OK)
        return rc;
#endif
    rc = aq_gasnet1_register(table, numentries);
    if (rc != GASNET_OK)
        return rc;
    /* Its barrier follows every rank's registration: messages may be sent at once. One from a rank
     * that has left the barrier may run a handler while this rank is still in it. */
    aq_gasnet1_state = AQ_GASNET1_ATTACHED;
    if (gex_Segment_Attach(&segment, aq_gasnet1_tm, segsize) == GASNET_OK)
        return GASNET_OK;
    aq_gasnet1_state = AQ_GASNET1_STARTED;
    return GASNET_ERR_RESOURCE;
}

void gasnet_QueryGexObjects(gex_Client_t *client_p, gex_EP_t *endpoint_p, gex_TM_t *tm_p,
                            gex_Segment_t *segment_p)
{
#if GASNET_DEBUG
    aq_gasnet1_check("gasnet_QueryGexObjects");
#endif
    if (client_p != NULL)
        *client_p = (gex_Client_t)(void *)&aq_job.client;
    if (endpoint_p != NULL)
        *endpoint_p = (gex_EP_t)(void *)&aq_job.ep;
    if (tm_p != NULL)
        *tm_p = aq_tm_handle(aq_job.tm);
    if (segment_p != NULL)
        *segment_p = gex_EP_QuerySegment((gex_EP_t)(void *)&aq_job.ep);
}

/* Configure scripts of clients look for this name to recognise a GASNet library. */
AQ_PUBLIC int gasnetc_AMPoll(void);

int gasnetc_AMPoll(void)
{
    return gasnet_AMPoll();
}

/* --- debug checks --- */

void aq_gasnet1_check(const char *call)
{
    if (aq_job.conduit == NULL)
        aq_fatal("%s called before gasnet_init", call);
    if (aq_gasnet1_tm == GEX_TM_INVALID)
        aq_fatal("%s: this process was started by gex_Client_Init without GEX_FLAG_USES_GASNET1, "
                 "which GASNet-1 communication needs",
                 call);
    if (aq_gasnet1_state == AQ_GASNET1_STARTED)
        aq_fatal("%s called before gasnet_attach", call);
}

void aq_gasnet1_check_rma(const char *call, gasnet_node_t node, const void *remote, size_t nbytes)
{
    aq_gasnet1_check(call);
    aq_rma_check(call, aq_gasnet1_tm, node, remote, nbytes, 0);
}

void aq_gasnet1_check_val(const char *call, gasnet_node_t node, const void *remote, size_t nbytes)
{
    aq_gasnet1_check_rma(call, node, remote, nbytes);
    aq_rma_check_val(call, nbytes);
}

void aq_gasnet1_check_request(const char *call, gasnet_node_t node)
{
    aq_gasnet1_check(call);
    aq_thread_check_main(call);
    if (node >= aq_job.size)
        aq_fatal("%s: node %u is outside 0..%u", call, node, aq_job.size - 1);
}

void aq_gasnet1_check_payload(const char *call, size_t nbytes, size_t limit)
{
    if (nbytes > limit)
        aq_fatal("%s: payload of %zu bytes; the most is %zu (ask gasnet_AMMax*)", call, nbytes,
                 limit);
}

void aq_gasnet1_check_reply(const char *call, gasnet_token_t token)
{
    AQ_AM_CHECK_REPLY(call, token);
    (void)call, (void)token;
}

void aq_gasnet1_wrong_count(const char *call, int numargs, int counted)
{
    aq_fatal("%s: numargs is %d, but %d argument%s follow%s", call, numargs, counted,
             counted == 1 ? "" : "s", counted == 1 ? "s" : "");
}
