/*
 * portable_inttypes.h - int8_t to uint64_t, intptr_t and uintptr_t: redirects to what C99 has for
 * it. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef PORTABLE_INTTYPES_H
#define PORTABLE_INTTYPES_H 1

#include <inttypes.h>
#include <stdint.h>

#endif
