/*
 * portable_platform.h - redirects: the platform macros are in gasnet_portable_platform.h.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_portable_platform.h"
