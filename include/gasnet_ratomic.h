/*
 * gasnet_ratomic.h - remote atomics of the EX interface: table of contents.
 *
 * Source: GASNet-EX specification 0.19, Remote atomics. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H 1

#include "gasnetex.h"

#include "gasnet/atomic.h" /* atomic domains and operations on them */

#endif
