/*
 * positions.h - what the program that positions.awk makes begins with.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet.h"
#include "gasnet_tools.h"

/* wrong calls are made to see whether the compiler has been told enough to notice them */
#ifdef WRONG
#define CALL(...) __VA_ARGS__;
#else
#define CALL(...)
#endif

#if !defined(__cplusplus) && !defined(__clang__) && __STDC_VERSION__ >= 201112L && !defined(PLAIN)
#define HAS(fn, attribute) \
    _Static_assert(__builtin_has_attribute(fn, attribute), #fn " is not " #attribute);
#else
#define HAS(fn, attribute)
#endif
