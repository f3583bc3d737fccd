/*
 * gasnetex.h - the EX interface: table of contents.
 *
 * The client defines exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR first. The parts
 * below contain the declarations and the inline fast paths; each names the section of the
 * specification that it implements.
 *
 * Source: GASNet-EX specification 0.19. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETEX_H
#define GASNETEX_H           1
#define _INCLUDED_GASNETEX_H 1 /* clients test it */

#include "gasnet_config.h"   /* made by configure: version, segment mode, debug */
#include "gasnet_core_fwd.h" /* from the conduit's folder: which conduit, its constants */
#include "gasnet_fwd.h"      /* constants and simple types */

#include "gasnet/basics.h"   /* thread mode, attributes, helper names, fences */
#include "gasnet/types.h"    /* handles, error codes, structs */
#include "gasnet/client.h"   /* start-up, clients, job and host queries, environment, exit */
#include "gasnet/segment.h"  /* segments and bound-segment queries */
#include "gasnet/ep.h"       /* endpoints, handler registration */
#include "gasnet/tm.h"       /* teams and TM-pairs */
#include "gasnet/hsl.h"      /* handler-safe locks */
#include "gasnet/poll.h"     /* polling, wait modes, thread-info macros */
#include "gasnet/am.h"       /* active messages, limits, tokens */
#include "gasnet/npam.h"     /* active messages with a negotiated payload */
#include "gasnet/am_forms.h" /* made by awk: the argument-count forms of both */
#include "gasnet/event.h"    /* events, implicit operations, access regions */
#include "gasnet/rma.h"      /* put and get */
#include "gasnet/barrier.h"  /* barriers */

#endif
