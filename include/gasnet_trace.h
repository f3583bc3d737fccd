/*
 * gasnet_trace.h - redirects: what clients write into traces is in gasnet/tools_trace.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
