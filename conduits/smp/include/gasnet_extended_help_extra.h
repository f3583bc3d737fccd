/*
 * gasnet_extended_help_extra.h - further inline parts of the smp conduit's puts and gets.
 *
 * Kept under this name for clients that include it; on smp everything it stands for is declared by
 * gasnetex.h. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_EXTENDED_HELP_EXTRA_H
#define GASNET_EXTENDED_HELP_EXTRA_H 1

#include "gasnetex.h"

#endif
