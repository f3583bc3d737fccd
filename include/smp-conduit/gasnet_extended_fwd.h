/*
 * gasnet_extended_fwd.h - constants of puts, gets and barriers that depend on the conduit.
 *
 * Like gasnet_core_fwd.h it may be included alone; smp's puts, gets and barriers need no constants beyond those.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_EXTENDED_FWD_H
#define GASNET_EXTENDED_FWD_H 1

#include "gasnet_core_fwd.h"

#endif
