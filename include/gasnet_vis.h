/*
 * gasnet_vis.h - transfers that are not contiguous: table of contents.
 *
 * The client defines its thread mode first, as for gasnetex.h, which comes with this header.
 *
 * Source: GASNet-EX specification 0.19, non-contiguous transfers. SPDX-License-Identifier:
 * BSD-3-Clause
 */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H 1

#include "gasnetex.h"

#include "gasnet/vis.h" /* vector, indexed and strided puts and gets, peer completion */

#endif
