/*
 * tools_words.h - compiler annotations of functions, branches and arguments.
 *
 * Each feature has a switch, GASNETT_USE_..., which a client may define to 0 or 1 before
 * it includes the header; a disabled feature expands to the plain declaration.
 * Source: GASNet tools specification 1.20, compiler annotations.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_WORDS_H
#define GASNET_TOOLS_WORDS_H 1

/* --- switches --- */

#ifndef GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETT_USE_GCC_ATTRIBUTE_NOINLINE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_USE_GCC_ATTRIBUTE_MALLOC 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USE_GCC_ATTRIBUTE_USED 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS
#define GASNETT_USE_GCC_ATTRIBUTE_MAYALIAS 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_USE_GCC_ATTRIBUTE_NORETURN 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_USE_GCC_ATTRIBUTE_PURE 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_USE_GCC_ATTRIBUTE_CONST 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_USE_GCC_ATTRIBUTE_HOT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_USE_GCC_ATTRIBUTE_COLD 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#if (defined(__clang__) && __clang_major__ >= 10) || (!defined(__clang__) && __GNUC__ >= 7)
#define GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH 1
#else
#define GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH 0
#endif
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR 1
#endif
#ifndef GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#define GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG 1
#endif
#ifndef GASNETT_USE_BUILTIN_CONSTANT_P
#define GASNETT_USE_BUILTIN_CONSTANT_P 1
#endif
#ifndef GASNETT_USE_BUILTIN_PREFETCH
#define GASNETT_USE_BUILTIN_PREFETCH 1
#endif
#ifndef GASNETT_USE_BUILTIN_EXPECT
#define GASNETT_USE_BUILTIN_EXPECT 1
#endif
#ifndef GASNETT_USE_BUILTIN_UNREACHABLE
#define GASNETT_USE_BUILTIN_UNREACHABLE 1
#endif
#ifndef GASNETT_USE_BUILTIN_ASSUME
#define GASNETT_USE_BUILTIN_ASSUME 0
#endif
#ifndef GASNETT_USE_ASSUME
#define GASNETT_USE_ASSUME 1
#endif
#ifndef GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH
#define GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH 0
#endif
#ifndef GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH
#define GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH 0
#endif
#ifndef GASNETT_USE_RESTRICT
#define GASNETT_USE_RESTRICT 1
#endif
#ifndef GASNETT_USE_RESTRICT_ON_TYPEDEFS
#define GASNETT_USE_RESTRICT_ON_TYPEDEFS 1
#endif
#ifndef GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC
#define GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC 1
#endif
#ifndef GASNETT_USE_CTYPE_WRAPPERS
#define GASNETT_USE_CTYPE_WRAPPERS 0
#endif
#ifndef GASNETT_USE_TRUE_MUTEXES
#define GASNETT_USE_TRUE_MUTEXES 0
#endif

/* --- functions --- */

/* GASNETT_INLINE(f) int f(int x) {...} */
#if GASNET_DEBUG
#define GASNETT_INLINE(fn) static AQ_UNUSED
#elif GASNETT_USE_GCC_ATTRIBUTE_ALWAYSINLINE
#define GASNETT_INLINE(fn) static inline AQ_ATTR((__always_inline__, __unused__))
#else
#define GASNETT_INLINE(fn) static inline AQ_UNUSED
#endif

/*
 * The next four take a whole declaration, followed by a semicolon, an initialiser or a body. The
 * attribute is put before it, since a definition can have none behind its arguments. extern "C"
 * goes before the macro.
 *
 * GASNETT_NEVER_INLINE(f, static int f(int x)) {...}
 * GASNETT_FORMAT_PRINTF(f, 1, 2, void f(const char *fmt, ...)) {...}
 * GASNETT_FORMAT_PRINTF_FUNCPTR(f, 1, 2, void (*f)(const char *fmt, ...)) = say; a field; a typedef
 * void g(GASNETT_FORMAT_PRINTF_FUNCPTR_ARG(f, 1, 2, void (*f)(const char *fmt, ...)));
 */
#if GASNETT_USE_GCC_ATTRIBUTE_NOINLINE
#define GASNETT_NEVER_INLINE(fn, ...) AQ_ATTR((__noinline__)) __VA_ARGS__
#else
#define GASNETT_NEVER_INLINE(fn, ...) __VA_ARGS__
#endif
#define AQ_TOOLS_PRINTF_LIKE(fmtarg, firstvararg) \
    AQ_ATTR((__format__(__printf__, fmtarg, firstvararg)))
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT
#define GASNETT_FORMAT_PRINTF(fn, fmtarg, firstvararg, ...) \
    AQ_TOOLS_PRINTF_LIKE(fmtarg, firstvararg) __VA_ARGS__
#else
#define GASNETT_FORMAT_PRINTF(fn, fmtarg, firstvararg, ...) __VA_ARGS__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR
#define GASNETT_FORMAT_PRINTF_FUNCPTR(name, fmtarg, firstvararg, ...) \
    AQ_TOOLS_PRINTF_LIKE(fmtarg, firstvararg) __VA_ARGS__
#else
#define GASNETT_FORMAT_PRINTF_FUNCPTR(name, fmtarg, firstvararg, ...) __VA_ARGS__
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_FORMAT_FUNCPTR_ARG
#define GASNETT_FORMAT_PRINTF_FUNCPTR_ARG(name, fmtarg, firstvararg, ...) \
    AQ_TOOLS_PRINTF_LIKE(fmtarg, firstvararg) __VA_ARGS__
#else
#define GASNETT_FORMAT_PRINTF_FUNCPTR_ARG(name, fmtarg, firstvararg, ...) __VA_ARGS__
#endif

/* Used behind a prototype, or before any declaration. The ...P(fn) forms go on a line of their own
 * below it and are for compilers that need a pragma, which gcc and clang do not. */
#if GASNETT_USE_GCC_ATTRIBUTE_NORETURN
#define GASNETT_NORETURN AQ_ATTR((__noreturn__))
#else
#define GASNETT_NORETURN
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_MALLOC
#define GASNETT_MALLOC AQ_ATTR((__malloc__))
#else
#define GASNETT_MALLOC
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_PURE
#define GASNETT_PURE AQ_ATTR((__pure__))
#else
#define GASNETT_PURE
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_CONST
#define GASNETT_CONST AQ_ATTR((__const__))
#else
#define GASNETT_CONST
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_HOT
#define GASNETT_HOT AQ_ATTR((__hot__))
#else
#define GASNETT_HOT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_COLD
#define GASNETT_COLD AQ_ATTR((__cold__))
#else
#define GASNETT_COLD
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_DEPRECATED
#define GASNETT_DEPRECATED AQ_ATTR((__deprecated__))
#else
#define GASNETT_DEPRECATED
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_WARNUNUSEDRESULT
#define GASNETT_WARN_UNUSED_RESULT AQ_ATTR((__warn_unused_result__))
#else
#define GASNETT_WARN_UNUSED_RESULT
#endif
#if GASNETT_USE_GCC_ATTRIBUTE_USED
#define GASNETT_USED AQ_ATTR((__used__))
#else
#define GASNETT_USED
#endif
#define GASNETT_NORETURNP(fn)
#define GASNETT_MALLOCP(fn)
#define GASNETT_PUREP(fn)
#define GASNETT_CONSTP(fn)

#define GASNETT_BEGIN_EXTERNC AQ_BEGIN_DECLS
#define GASNETT_END_EXTERNC   AQ_END_DECLS
#ifdef __cplusplus
#define GASNETT_EXTERNC extern "C"
#else
#define GASNETT_EXTERNC extern
#endif

/* --- arguments and expressions --- */

#if GASNETT_USE_RESTRICT
#define GASNETT_RESTRICT __restrict__
#else
#define GASNETT_RESTRICT
#endif

#if GASNETT_USE_BUILTIN_EXPECT
#define GASNETT_PREDICT_TRUE(e)  __builtin_expect(!!(e), 1)
#define GASNETT_PREDICT_FALSE(e) __builtin_expect(!!(e), 0)
#else
#define GASNETT_PREDICT_TRUE(e)  (!!(e))
#define GASNETT_PREDICT_FALSE(e) (!!(e))
#endif

/* 1 if the compiler knows that e is constant, else 0; e is not evaluated. */
#if GASNETT_USE_BUILTIN_CONSTANT_P
#define gasnett_constant_p(e) __builtin_constant_p(e)
#else
#define gasnett_constant_p(e) 0
#endif

AQ_BEGIN_DECLS
/* Debug builds: reports that an assumption of the program was wrong, and ends the program. */
AQ_PUBLIC void aq_tools_broken(const char *what, const char *func, const char *file,
                               int line) AQ_NORETURN;
AQ_END_DECLS

/* gasnett_unreachable(): this point is never reached. gasnett_assume(c): c holds. */
#if GASNET_DEBUG
#define gasnett_unreachable() \
    aq_tools_broken("gasnett_unreachable() was reached", __func__, __FILE__, __LINE__)
#define gasnett_assume(c) \
    (AQ_LIKELY(c)         \
         ? (void)0        \
         : aq_tools_broken("gasnett_assume(" #c ") does not hold", __func__, __FILE__, __LINE__))
#else
#if GASNETT_USE_BUILTIN_UNREACHABLE
#define gasnett_unreachable() __builtin_unreachable()
#else
#define gasnett_unreachable() __builtin_trap()
#endif
#if !GASNETT_USE_ASSUME
#define gasnett_assume(c) ((void)0)
#elif GASNETT_USE_BUILTIN_ASSUME && defined(__clang__)
#define gasnett_assume(c) __builtin_assume(c)
#else
#define gasnett_assume(c) ((c) ? (void)0 : __builtin_unreachable())
#endif
#endif

/* Written where a case falls through into the next, without a semicolon. */
#if GASNETT_USE_CXX11_ATTRIBUTE_FALLTHROUGH && defined(__cplusplus)
#define GASNETT_FALLTHROUGH [[fallthrough]];
#elif GASNETT_USE_CXX11_ATTRIBUTE_CLANG__FALLTHROUGH && defined(__cplusplus)
#define GASNETT_FALLTHROUGH [[clang::fallthrough]];
#elif GASNETT_USE_GCC_ATTRIBUTE_FALLTHROUGH
#define GASNETT_FALLTHROUGH AQ_ATTR((__fallthrough__));
#else
#define GASNETT_FALLTHROUGH
#endif

#define GASNETT_CURRENT_FUNCTION __func__

#define GASNETT_UNUSED_ARGS1(a)                ((void)(a))
#define GASNETT_UNUSED_ARGS2(a, b)             ((void)(a), (void)(b))
#define GASNETT_UNUSED_ARGS3(a, b, c)          ((void)(a), (void)(b), (void)(c))
#define GASNETT_UNUSED_ARGS4(a, b, c, d)       ((void)(a), (void)(b), (void)(c), (void)(d))
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e)    (GASNETT_UNUSED_ARGS4(a, b, c, d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) (GASNETT_UNUSED_ARGS5(a, b, c, d, e), (void)(f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) \
    (GASNETT_UNUSED_ARGS6(a, b, c, d, e, f), (void)(g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h) \
    (GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g), (void)(h))

#endif
