/*
 * gasnet_tools.h - the tools interface: table of contents.
 *
 * Timers, fences, atomics, locks, environment, backtraces and other helpers which need no job:
 * they work before, after and without gex_Client_Init. A client of a conduit includes
 * gasnetex.h (or gasnet.h) first; a program without one chooses GASNETT_THREAD_SAFE,
 * GASNETT_THREAD_SINGLE or GASNETT_LITE_MODE and links libgasnet_tools-{par,seq}.a.
 *
 * Source: GASNet tools specification 1.20. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _INCLUDED_GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H 1

#include "gasnet_config.h"            /* made by configure: version, debug */
#include "gasnet_portable_platform.h" /* compiler, system, processor */

#include "gasnet/words.h"       /* attributes, unprefixed helper names */
#include "gasnet/tools_mode.h"  /* thread mode, version, identification */
#include "gasnet/tools_words.h" /* compiler annotations */
#include "gasnet/tools_fence.h" /* memory barriers, spinning */
#include "gasnet/tools_timer.h" /* ticks, wall clock, sleeping */
#if !GASNETT_LITE_MODE
#include "gasnet/tools_atomic.h"  /* atomics in this process and in shared memory */
#include "gasnet/tools_lock.h"    /* mutexes, conditions, read-write locks, thread keys */
#include "gasnet/tools_env.h"     /* environment, number formats */
#include "gasnet/tools_process.h" /* fatal errors, backtraces, freezing, host and process */
#include "gasnet/tools_trace.h"   /* lines in traces and statistics */
#include "gasnet/tools_malloc.h"  /* allocation */
#include "gasnet/tools_conduit.h" /* what needs a conduit */
#endif

#endif
