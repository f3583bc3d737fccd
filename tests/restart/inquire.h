/*
 * inquire.h - what aqueduct.h says about transfers. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef INQUIRE_H
#define INQUIRE_H

#include "gasnetex.h"

/** inquire_is_right - collective; segments are attached. Returns 1, or 0: an answer is wrong. */
int inquire_is_right(gex_TM_t tm);

#endif
