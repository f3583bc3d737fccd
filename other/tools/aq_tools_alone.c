/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_alone.c - the tools that need a conduit, for programs without one. In the tools-only
 * libraries only; aq_tools_conduit.c is the other version.
 */
#include "other/tools/aq_tools.h"

void *gasnett_mmap(uintptr_t size)
{
    gasnett_fatalerror_nopos("gasnett_mmap(%llu): this program has no conduit",
                             (unsigned long long)size);
}
