/*
 * gasnet_basic.h - redirects: annotations and helper names are in gasnet/words.h and
 * gasnet/tools_words.h. SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#include "gasnetex.h"
#endif
#include "gasnet_tools.h"
