/*
 * gasnet_vis_fwd.h - constants of strided transfers that depend on the conduit.
 *
 * Like gasnet_core_fwd.h it may be included alone; smp's strided transfers need no constants beyond those.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_VIS_FWD_H
#define GASNET_VIS_FWD_H 1

#include "gasnet_core_fwd.h"

#endif
