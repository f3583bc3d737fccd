/*
 * gasnet_vis.h - non-contiguous transfers: table of contents.
 *
 * The client first defines its thread mode, as for gasnetex.h, which this header includes.
 *
 * Source: GASNet-EX specification 0.19, non-contiguous transfers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H 1

#include "gasnetex.h"

#include "gasnet/vis.h" /* vector, indexed and strided puts and gets, peer completion */

#endif
