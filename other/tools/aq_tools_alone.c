/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_alone.c - what programs without a conduit get for the tools that need one. In the
 * tools-only libraries alone; see aq_tools_conduit.c for the other kind.
 */
#include "other/tools/aq_tools.h"

void *gasnett_mmap(uintptr_t size)
{
    gasnett_fatalerror_nopos("gasnett_mmap(%llu): this program has no conduit",
                             (unsigned long long)size);
}
