/*
 * gasnet1_sync.h - synchronisation of GASNet-1: handles, implicit operations, access regions.
 *
 * Handles are events: either interface may complete what the other started, on any thread. The try
 * forms poll before they test, except those whose name ends in _nopoll.
 *
 * Source: GASNet specification 1.8, Extended API. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_GASNET1_SYNC_H
#define GASNET_GASNET1_SYNC_H 1

AQ_BEGIN_DECLS

/* --- handles --- */

/** gasnet_wait_syncnb - poll until handle's operation is complete; the handle is then dead. */
static inline AQ_UNUSED void gasnet_wait_syncnb(gasnet_handle_t handle)
{
    gex_Event_Wait(handle);
}

/** gasnet_try_syncnb_nopoll - GASNET_OK (and the handle is dead) or GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED int gasnet_try_syncnb_nopoll(gasnet_handle_t handle)
{
    return gex_Event_Test(handle);
}

/** gasnet_try_syncnb - the same after a poll. */
static inline AQ_UNUSED int gasnet_try_syncnb(gasnet_handle_t handle)
{
    (void)gasnet_AMPoll();
    return gex_Event_Test(handle);
}

/**
 * gasnet_wait_syncnb_all - poll until all n handles are complete.
 * handles  in all six calls on arrays, complete entries become GASNET_INVALID_HANDLE, which is
 *          ignored; also when a try form returns GASNET_ERR_NOT_READY
 */
static inline AQ_UNUSED void gasnet_wait_syncnb_all(gasnet_handle_t *handles, size_t n)
{
    gex_Event_WaitAll(handles, n, 0);
}

/** gasnet_try_syncnb_all_nopoll - GASNET_OK if all are complete, else GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED int gasnet_try_syncnb_all_nopoll(gasnet_handle_t *handles, size_t n)
{
    return gex_Event_TestAll(handles, n, 0);
}

/** gasnet_try_syncnb_all - the same after a poll. */
static inline AQ_UNUSED int gasnet_try_syncnb_all(gasnet_handle_t *handles, size_t n)
{
    (void)gasnet_AMPoll();
    return gex_Event_TestAll(handles, n, 0);
}

/** gasnet_wait_syncnb_some - poll until one or more have completed; at once if none is valid. */
static inline AQ_UNUSED void gasnet_wait_syncnb_some(gasnet_handle_t *handles, size_t n)
{
    gex_Event_WaitSome(handles, n, 0);
}

/** gasnet_try_syncnb_some_nopoll - GASNET_OK if one or more have completed or none is valid. */
static inline AQ_UNUSED int gasnet_try_syncnb_some_nopoll(gasnet_handle_t *handles, size_t n)
{
    return gex_Event_TestSome(handles, n, 0);
}

/** gasnet_try_syncnb_some - the same after a poll. */
static inline AQ_UNUSED int gasnet_try_syncnb_some(gasnet_handle_t *handles, size_t n)
{
    (void)gasnet_AMPoll();
    return gex_Event_TestSome(handles, n, 0);
}

/* --- implicit operations of the calling thread, outside its access region --- */

/** gasnet_wait_syncnbi_gets - poll until all implicit gets are complete. */
static inline AQ_UNUSED void gasnet_wait_syncnbi_gets(void)
{
    gex_NBI_Wait(GEX_EC_GET, 0);
}

/** gasnet_wait_syncnbi_puts - the same for puts, value puts, memsets and non-contiguous puts. */
static inline AQ_UNUSED void gasnet_wait_syncnbi_puts(void)
{
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

/** gasnet_wait_syncnbi_all - the same for everything. */
static inline AQ_UNUSED void gasnet_wait_syncnbi_all(void)
{
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/** gasnet_try_syncnbi_gets - GASNET_OK if all are complete, else GASNET_ERR_NOT_READY. */
static inline AQ_UNUSED int gasnet_try_syncnbi_gets(void)
{
    (void)gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_GET, 0);
}

/** gasnet_try_syncnbi_puts - the same for puts. */
static inline AQ_UNUSED int gasnet_try_syncnbi_puts(void)
{
    (void)gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_PUT, 0);
}

/** gasnet_try_syncnbi_all - the same for everything. */
static inline AQ_UNUSED int gasnet_try_syncnbi_all(void)
{
    (void)gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_ALL, 0);
}

/* --- access regions --- */

/** gasnet_begin_nbi_accessregion - from now on this thread's implicit operations join the
 * region. */
static inline AQ_UNUSED void gasnet_begin_nbi_accessregion(void)
{
    gex_NBI_BeginAccessRegion(0);
}

/** gasnet_end_nbi_accessregion - end the region; returns one handle for all of its operations. */
static inline AQ_UNUSED gasnet_handle_t gasnet_end_nbi_accessregion(void)
{
    return gex_NBI_EndAccessRegion(0);
}

AQ_END_DECLS

#endif
