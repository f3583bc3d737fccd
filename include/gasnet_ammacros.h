/*
 * gasnet_ammacros.h - redirects: the forms of active messages by number of arguments are in
 * gasnet/am_forms.h. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h"
