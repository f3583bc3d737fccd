/*
 * gasnet_asm.h - redirects: fences and the spinning hint are in gasnet/tools_fence.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
