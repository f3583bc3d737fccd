/*
 * words.h - attributes, and the small names that clients use from these headers.
 *
 * The part that gasnetex.h and gasnet_tools.h share. It needs no thread mode, and declares nothing
 * that needs a library. Depends on nothing. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_WORDS_H
#define GASNET_WORDS_H 1

/* --- attributes, known to gcc and clang --- */

#if defined(__GNUC__)
#define AQ_ATTR(list)     __attribute__(list)
#define AQ_LIKELY(cond)   __builtin_expect(!!(cond), 1)
#define AQ_UNLIKELY(cond) __builtin_expect(!!(cond), 0)
#else
#error "the inline parts need the __atomic built-ins of gcc or clang"
#endif
#define AQ_NORETURN AQ_ATTR((__noreturn__))
#define AQ_UNUSED   AQ_ATTR((__unused__))
#define AQ_MUST_USE AQ_ATTR((__warn_unused_result__))
#define AQ_WEAK     AQ_ATTR((__weak__))
#define AQ_PUBLIC   AQ_ATTR((__visibility__("default")))

#ifdef __cplusplus
#define AQ_BEGIN_DECLS extern "C" {
#define AQ_END_DECLS   }
#else
#define AQ_BEGIN_DECLS
#define AQ_END_DECLS
#endif

/* --- helper names that clients use from these headers --- */

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x)        _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b)        _CONCAT_HELPER(a, b)
#endif
#ifndef MIN
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#endif
#ifndef MAX
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#endif
#ifndef if_pf
#define if_pf(cond) if (AQ_UNLIKELY(cond))
#endif
#ifndef if_pt
#define if_pt(cond) if (AQ_LIKELY(cond))
#endif
#ifndef PRIuSZ
#define PRIuSZ "zu"
#endif

/* Clients take the addresses of these two, so that compilers do not call them unused. */
AQ_BEGIN_DECLS

/* Thread keys need no initialisation. */
static inline AQ_UNUSED void _gasneti_threadkey_init(void **key)
{
    (void)key;
}

/* no "inline": a function with a variable argument list is never inlined */
static AQ_UNUSED void _gasnett_trace_printf_noop(const char *fmt, ...)
{
    (void)fmt;
}

AQ_END_DECLS

#endif
