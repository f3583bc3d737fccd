/*
 * gasnet_atomic_fwd.h - redirects: the types of atomics are in gasnet/tools_atomic.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
