/*
 * gasnet_core.h - the smp conduit's core part; build systems of clients take its presence as "smp is installed".
 *
 * smp adds no call of its own to the interface, so that the whole of it is gasnetex.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_CORE_H
#define GASNET_CORE_H 1

#include "gasnetex.h"

#endif
