/*
 * gasnet_arch_arm.h - redirects: no processor needs code of its own; see gasnet/tools_fence.h and
 * gasnet/tools_atomic.h. SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
