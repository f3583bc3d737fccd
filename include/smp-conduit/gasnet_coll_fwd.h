/*
 * gasnet_coll_fwd.h - constants of collectives that depend on the conduit.
 *
 * Like gasnet_core_fwd.h it may be included alone; smp's collectives need no constants beyond those.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_COLL_FWD_H
#define GASNET_COLL_FWD_H 1

#include "gasnet_core_fwd.h"

#endif
