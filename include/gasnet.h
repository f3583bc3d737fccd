/*
 * gasnet.h - the GASNet-1 interface: table of contents.
 *
 * Every call here is a few lines over the EX interface, on the team of all processes: both
 * interfaces share ranks, handlers, events and locks, and may be mixed in one program. This file
 * may come before or after gasnetex.h, any number of times.
 *
 * Source: GASNet specification 1.8. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H 1

#include "gasnetex.h"
#include "gasnet_tools.h"
#include "gasnet_vis.h"

#include "gasnet/gasnet1_types.h" /* types, constants, debug checks */
#include "gasnet/gasnet1_job.h"   /* init, attach, queries, locks, no-interrupt sections */
#include "gasnet/gasnet1_am.h"    /* active messages */
#include "gasnet/gasnet1_rma.h"   /* put, get, memset, value forms */
#include "gasnet/gasnet1_sync.h"  /* handles, implicit operations, access regions */
#include "gasnet/gasnet1_vis.h"   /* vector, indexed and strided transfers */

#endif
