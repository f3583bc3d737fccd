/*
 * gasnet1_job.h - start-up of GASNet-1 clients, their queries, locks and no-interrupt sections.
 *
 * Source: GASNet specification 1.8, Core API. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_JOB_H
#define GASNET_GASNET1_JOB_H 1

AQ_BEGIN_DECLS

/* Returns true at the process's first start. Records that the client uses gasnet_init(). */
AQ_PUBLIC int aq_gasnet1_may_start(void);

/**
 * gasnet_init - start the library in this process.
 * argc, argv  main's, or both NULL on all processes; not used otherwise
 * Context collective over all processes, before any other call; instead of gex_Client_Init
 * Returns GASNET_OK; GASNET_ERR_NOT_INIT if the library is already started; GASNET_ERR_RESOURCE.
 * Source: GASNet specification 1.8, Job control. Test: test_g1_attach.
 */
static inline AQ_UNUSED int gasnet_init(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;

    if (!aq_gasnet1_may_start())
        return GASNET_ERR_NOT_INIT;
    return AQ_START(&client, &ep, &tm, "LEGACY", argc, argv, GEX_FLAG_USES_GASNET1,
                    AQ_COMPILED_CONDUIT);
}

/**
 * gasnet_attach - register handlers and make this process's segment, on all processes together.
 * table       NULL, or rows with index 128..255, or 0: the highest free one is written there,
 *             in the order of the table, after the rows with fixed indices. Handlers serve
 *             requests and replies of every kind and number of arguments.
 * numentries  rows in table, 0..128
 * segsize     bytes, a multiple of GASNET_PAGESIZE and at most gasnet_getMaxLocalSegmentSize();
 *             0 makes one page; may differ between processes. Ignored in segment everything
 * minheapoffset  ignored: the segment never limits the growth of the heap
 * Context collective over all processes, once, after gasnet_init; contains a barrier
 * Returns GASNET_OK; GASNET_ERR_NOT_INIT (not started with gasnet_init, or attached already);
 * GASNET_ERR_BAD_ARG (segsize); GASNET_ERR_RESOURCE (handlers, segment). An error that does not
 * concern the segment's memory has changed nothing.
 */
AQ_PUBLIC int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
                            uintptr_t minheapoffset);

/**
 * gasnet_QueryGexObjects - the EX handles of the client and the process.
 * client_p, endpoint_p, tm_p, segment_p  outputs, each may be NULL; the segment may be
 *         GEX_SEGMENT_INVALID
 * Context any, once attached, or after gex_Client_Init with GEX_FLAG_USES_GASNET1
 */
AQ_PUBLIC void gasnet_QueryGexObjects(gex_Client_t *client_p, gex_EP_t *endpoint_p, gex_TM_t *tm_p,
                                      gex_Segment_t *segment_p);

/** gasnet_mynode - this process's number in the job. Legal in every context. */
static inline AQ_UNUSED gasnet_node_t gasnet_mynode(void)
{
    return gex_System_QueryJobRank();
}

/** gasnet_nodes - processes in the job. Legal in every context. */
static inline AQ_UNUSED gasnet_node_t gasnet_nodes(void)
{
    return gex_System_QueryJobSize();
}

/* --- handler-safe locks: those of the EX interface --- */

/** gasnet_hsl_init - initialise a free lock where GASNET_HSL_INITIALIZER was not used. */
static inline AQ_UNUSED void gasnet_hsl_init(gasnet_hsl_t *hsl)
{
    gex_HSL_Init(hsl);
}

/** gasnet_hsl_destroy - end the use of a lock, which must be free. */
static inline AQ_UNUSED void gasnet_hsl_destroy(gasnet_hsl_t *hsl)
{
    gex_HSL_Destroy(hsl);
}

/** gasnet_hsl_lock - wait for the lock and take it; runs no handler. */
static inline AQ_UNUSED void gasnet_hsl_lock(gasnet_hsl_t *hsl)
{
    gex_HSL_Lock(hsl);
}

/** gasnet_hsl_trylock - GASNET_OK if the lock was taken, else GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED int gasnet_hsl_trylock(gasnet_hsl_t *hsl)
{
    return gex_HSL_Trylock(hsl);
}

/** gasnet_hsl_unlock - release a lock that this thread holds. */
static inline AQ_UNUSED void gasnet_hsl_unlock(gasnet_hsl_t *hsl)
{
    gex_HSL_Unlock(hsl);
}

/* --- no-interrupt sections: handlers run inside calls only and interrupt no thread --- */

/** gasnet_hold_interrupts - from now on no handler interrupts this thread. */
static inline AQ_UNUSED void gasnet_hold_interrupts(void)
{
}

/** gasnet_resume_interrupts - end of the section. */
static inline AQ_UNUSED void gasnet_resume_interrupts(void)
{
}

AQ_END_DECLS

#endif
