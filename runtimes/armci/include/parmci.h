/*
 * parmci.h - the PARMCI_ names, which armci.h declares beside the ARMCI_ ones.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _PARMCI_H_
#define _PARMCI_H_ 1
#include "armci.h"
#endif
