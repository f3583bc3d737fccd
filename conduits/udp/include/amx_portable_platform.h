/*
 * amx_portable_platform.h - the platform's macros, under the name that this conduit's clients know.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AMX_PORTABLE_PLATFORM_H
#define AMX_PORTABLE_PLATFORM_H 1

#include "gasnet_portable_platform.h"

#endif
