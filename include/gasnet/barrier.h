/*
 * barrier.h - the EX barrier, and the split-phase barriers with names of GASNet-1.
 *
 * Source: GASNet-EX specification 0.19, Collectives; GASNet specification 1.8, Barriers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_BARRIER_H
#define GASNET_BARRIER_H 1

AQ_BEGIN_DECLS

/**
 * gex_Coll_BarrierNB - an event that completes when every member of tm has called.
 * flags   0
 * Context collective over tm; several may be outstanding: the k-th call matches the k-th
 * Returns a root event.
 */
AQ_PUBLIC gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags) AQ_MUST_USE;
/** gex_Coll_BarrierBlocking - the same, complete at return. */
AQ_PUBLIC void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);

#define GASNET_BARRIERFLAG_ANONYMOUS 1 /* no name; matches any */
#define GASNET_BARRIERFLAG_MISMATCH  2 /* every process gets a mismatch */
#define GASNET_BARRIERFLAG_UNNAMED   9 /* anonymous on all processes */

/**
 * gasnet_barrier_notify - enter the next barrier phase over all processes.
 * id, flags  a name to be compared with the others' (flags 0), or GASNET_BARRIERFLAG_*
 * Context ordinary code, one caller per process and phase, alternating with wait or try
 */
AQ_PUBLIC void gasnet_barrier_notify(int id, int flags);
/**
 * gasnet_barrier_wait - leave the phase once every process has entered it.
 * id, flags  with flags 0, id must also equal the phase's name if it has one
 * Returns GASNET_OK or GASNET_ERR_BARRIER_MISMATCH.
 */
AQ_PUBLIC int gasnet_barrier_wait(int id, int flags);
/** gasnet_barrier_try - polls; then as gasnet_barrier_wait if the phase is complete, else
 * GASNET_ERR_NOT_READY. */
AQ_PUBLIC int gasnet_barrier_try(int id, int flags);
/** gasnet_barrier - notify and wait in one. */
AQ_PUBLIC int gasnet_barrier(int id, int flags);
/** gasnet_barrier_result - non-zero if the last phase had no name; else 0 and its name in *id. */
AQ_PUBLIC int gasnet_barrier_result(int *id);

AQ_END_DECLS

#endif
