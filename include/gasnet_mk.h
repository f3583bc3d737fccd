/*
 * gasnet_mk.h - memory kinds, for clients that make segments of device memory.
 *
 * Source: GASNet-EX specification 0.19, Memory kinds. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_MK_H
#define GASNET_MK_H 1

#include "gasnetex.h"

#include "gasnet/mk.h" /* classes, making kinds and asking about them */

#endif
