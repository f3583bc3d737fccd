/*
 * gasnet_help.h - redirects: inline parts of the interface are in the folder gasnet, which
 * gasnetex.h lists. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"
