/*
 * gasnet_extended.h - the smp conduit's puts, gets, events and barriers.
 *
 * Kept under this name for clients that include it; on smp everything it stands for is declared by
 * gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_EXTENDED_H
#define GASNET_EXTENDED_H 1

#include "gasnetex.h"

#endif
