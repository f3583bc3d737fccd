/*
 * gasnet_ratomic_fwd.h - constants of remote atomics that depend on the conduit.
 *
 * Like gasnet_core_fwd.h it may be included alone; smp's remote atomics need no constants beyond those.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_RATOMIC_FWD_H
#define GASNET_RATOMIC_FWD_H 1

#include "gasnet_core_fwd.h"

#endif
