/*
 * gasnet_timer.h - redirects: ticks and clocks are in gasnet/tools_timer.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
