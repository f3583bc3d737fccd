/*
 * gasnet_core_help.h - inline parts of the smp conduit's core.
 *
 * Kept under this name for clients that include it; on smp everything it stands for is declared by
 * gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_CORE_HELP_H
#define GASNET_CORE_HELP_H 1

#include "gasnetex.h"

#endif
