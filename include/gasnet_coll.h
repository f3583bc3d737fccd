/*
 * gasnet_coll.h - collectives other than the barrier: table of contents.
 *
 * Source: GASNet-EX specification 0.19, Collectives. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H 1

#include "gasnetex.h"

#include "gasnet/coll.h"        /* broadcast, reductions */
#include "gasnet/coll_legacy.h" /* gasnet_coll_*: broadcast, scatter, gather, exchange, barrier */

#endif
