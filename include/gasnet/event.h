/*
 * event.h - explicit events, implicit operations and access regions.
 *
 * Source: GASNet-EX specification 0.19, Events. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_EVENT_H
#define GASNET_EVENT_H 1

AQ_BEGIN_DECLS

AQ_PUBLIC int aq_event_test(gex_Event_t event);
AQ_PUBLIC void aq_event_wait(gex_Event_t event);

/**
 * gex_Event_Test - test whether an event is complete. Never polls.
 * event  a root, a leaf whose root is alive, or GEX_EVENT_INVALID (complete)
 * Context ordinary code, any thread, one at a time for a root
 * Returns GASNET_OK (a root is then retired with its leaves) or GASNET_ERR_NOT_READY.
 */
static inline AQ_UNUSED AQ_MUST_USE int gex_Event_Test(gex_Event_t event)
{
    AQ_CHECK_STARTED();
    return AQ_LIKELY(event == GEX_EVENT_INVALID) ? GASNET_OK : aq_event_test(event);
}

/** gex_Event_Wait - poll until event is complete; a root is then retired with its leaves. */
static inline AQ_UNUSED void gex_Event_Wait(gex_Event_t event)
{
    AQ_CHECK_MAIN();
    if (AQ_UNLIKELY(event != GEX_EVENT_INVALID))
        aq_event_wait(event);
}

/**
 * gex_Event_TestSome - test whether one of the events is complete. Never polls; flags 0.
 * events, numevents  complete entries become GEX_EVENT_INVALID
 * Returns GASNET_OK if one or more live entries are complete or none is live,
 * else GASNET_ERR_NOT_READY.
 */
AQ_PUBLIC int gex_Event_TestSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
/** gex_Event_WaitSome - poll until the condition of gex_Event_TestSome holds. */
AQ_PUBLIC void gex_Event_WaitSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
/** gex_Event_TestAll - the same for all events. Complete entries become GEX_EVENT_INVALID in any
 * case. */
AQ_PUBLIC int gex_Event_TestAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
/** gex_Event_WaitAll - poll until the condition of gex_Event_TestAll holds. */
AQ_PUBLIC void gex_Event_WaitAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags);

/**
 * gex_Event_QueryLeaf - the event of an intermediate state of an operation, such as local
 * completion.
 * root      a live root or GEX_EVENT_INVALID
 * category  one GEX_EC_*
 * Returns the leaf, the same one at every call, or GEX_EVENT_INVALID once it is complete.
 */
AQ_PUBLIC gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t category);

/**
 * gex_NBI_Test - test whether all implicit operations of these categories are complete. Never
 * polls.
 * mask  OR of GEX_EC_*; 0 succeeds at once. flags 0
 * Context ordinary code outside an access region; covers the calling thread's operations
 * Returns GASNET_OK or GASNET_ERR_NOT_READY (then no operation counts as synchronised).
 */
AQ_PUBLIC int gex_NBI_Test(gex_EC_t mask, gex_Flags_t flags) AQ_MUST_USE;
/** gex_NBI_Wait - poll until the condition of gex_NBI_Test holds. */
AQ_PUBLIC void gex_NBI_Wait(gex_EC_t mask, gex_Flags_t flags);
/** gex_NBI_BeginAccessRegion - from here this thread's implicit operations are collected. */
AQ_PUBLIC void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
/** gex_NBI_EndAccessRegion - stop collecting; the root event of all that was collected. */
AQ_PUBLIC gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags) AQ_MUST_USE;

AQ_END_DECLS

#endif
