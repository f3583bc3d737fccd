/*
 * gasnet_toolhelp.h - redirects: what the tools need inline is in the files gasnet/tools_....h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
