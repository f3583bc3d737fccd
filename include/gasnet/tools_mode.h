/*
 * tools_mode.h - thread mode of the tools, versions, identification of programs and builds.
 *
 * Source: GASNet tools specification 1.20, conventions and identification.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_MODE_H
#define GASNET_TOOLS_MODE_H 1

#include "gasnet/system.h"

/* --- thread mode: the client defines exactly one; afterwards it expands to 1 --- */

#if (defined(GASNET_SEQ) || defined(GASNET_PAR) || defined(GASNET_PARSYNC)) && !defined(GASNETEX_H)
#error \
    "GASNET_SEQ, GASNET_PAR or GASNET_PARSYNC is defined: include gasnetex.h before gasnet_tools.h"
#endif
#if defined(GASNETT_THREAD_SAFE) + defined(GASNETT_THREAD_SINGLE) + defined(GASNETT_LITE_MODE) > 1
#error "define at most one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE and GASNETT_LITE_MODE"
#endif
#if defined(GASNETT_LITE_MODE) && defined(GASNETEX_H)
#error "GASNETT_LITE_MODE is for files that do not include gasnetex.h"
#endif
#if defined(GASNET_PAR) && defined(GASNETT_THREAD_SINGLE)
#error "GASNET_PAR has many threads: GASNETT_THREAD_SINGLE contradicts it"
#endif
#if (defined(GASNET_SEQ) || defined(GASNET_PARSYNC)) && defined(GASNETT_THREAD_SAFE)
#error \
    "GASNET_SEQ and GASNET_PARSYNC have one caller at a time: GASNETT_THREAD_SAFE contradicts them"
#endif

#if defined(GASNETT_LITE_MODE)
#undef GASNETT_LITE_MODE
#define GASNETT_LITE_MODE    1
#define GASNETT_THREAD_MODEL LITE
#define AQ_TOOLS_MODE_STR    "LITE"
#define AQ_TOOLS_MODE_NAME   _LITE
#elif defined(GASNETT_THREAD_SAFE) || defined(GASNET_PAR)                                   \
    || (!defined(GASNETT_THREAD_SINGLE) && !defined(GASNET_SEQ) && !defined(GASNET_PARSYNC) \
        && (defined(_REENTRANT) || defined(_THREAD_SAFE) || defined(PTHREAD_MUTEX_INITIALIZER)))
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE  1
#define GASNETT_THREAD_MODEL PAR
#define AQ_TOOLS_MODE_STR    "PAR"
#define AQ_TOOLS_MODE_NAME   _PAR
#else
#undef GASNETT_THREAD_SINGLE
#define GASNETT_THREAD_SINGLE 1
#define GASNETT_THREAD_MODEL  SEQ
#define AQ_TOOLS_MODE_STR     "SEQ"
#define AQ_TOOLS_MODE_NAME    _SEQ
#endif

/* In parsync there are other client threads, though only one calls at a time: memory that other
 * threads may access needs real atomics. */
#if GASNETT_THREAD_SAFE || defined(GASNET_PARSYNC)
#define AQ_TOOLS_THREADS 1
#include <pthread.h>
#else
#define AQ_TOOLS_THREADS 0
#endif

/* --- versions --- */

#define GASNETT_SPEC_VERSION_MAJOR    GASNETI_TOOLS_SPEC_VERSION_MAJOR
#define GASNETT_SPEC_VERSION_MINOR    GASNETI_TOOLS_SPEC_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH

/* --- configuration --- */

#define GASNETT_SYSTEM_TUPLE   GASNETI_SYSTEM_TUPLE
#define GASNETT_CONFIGURE_ARGS GASNETI_CONFIGURE_ARGS
/* Nothing depends on it: differences between compilers are tested where they matter. A client may
 * claim another compiler by GASNETT_COMPILER_FORCE_MISMATCH. */
#if !defined(GASNETT_COMPILER_FORCE_MISMATCH)                           \
    && PLATFORM_COMPILER_FAMILYID == GASNETI_PLATFORM_COMPILER_FAMILYID \
    && PLATFORM_COMPILER_VERSION == GASNETI_PLATFORM_COMPILER_VERSION
#define GASNETT_CONFIGURE_MISMATCH 0
#else
#define GASNETT_CONFIGURE_MISMATCH 1
#endif
#define GASNETT_PLATFORM_COMPILER_IDSTR    GASNETI_PLATFORM_COMPILER_IDSTR
#define GASNETT_PLATFORM_COMPILER_FAMILYID GASNETI_PLATFORM_COMPILER_FAMILYID
#define GASNETT_PLATFORM_COMPILER_ID       GASNETI_PLATFORM_COMPILER_ID
#define GASNETT_PLATFORM_COMPILER_VERSION  GASNETI_PLATFORM_COMPILER_VERSION

#if GASNET_DEBUG
#define GASNETT_DEBUG_CONFIG debug
#define AQ_TOOLS_DEBUG_NAME  _debug
#define AQ_TOOLS_DEBUG_STR   "debug"
#else
#define GASNETT_DEBUG_CONFIG nodebug
#define AQ_TOOLS_DEBUG_NAME  _nodebug
#define AQ_TOOLS_DEBUG_STR   "nodebug"
#endif
#if PLATFORM_ARCH_64
#define GASNETT_PTR_CONFIG 64bit
#else
#error "these libraries are for 64-bit systems"
#endif
#define GASNETT_TIMER_CONFIG    timers_native
#define GASNETT_MEMBAR_CONFIG   membars_native
#define GASNETT_ATOMIC_CONFIG   atomics_native
#define GASNETT_ATOMIC32_CONFIG atomic32_native
#define GASNETT_ATOMIC64_CONFIG atomic64_native

#if GASNETT_LITE_MODE
#define AQ_TOOLS_CONFIG_ATOMICS
#else
#define AQ_TOOLS_CONFIG_ATOMICS                                                                   \
    "," _STRINGIFY(GASNETT_ATOMIC_CONFIG) "," _STRINGIFY(GASNETT_ATOMIC32_CONFIG) "," _STRINGIFY( \
        GASNETT_ATOMIC64_CONFIG)
#endif
/* clang-format off */
#define GASNETT_CONFIG_STRING                                                                    \
    "RELEASE=" _STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." _STRINGIFY(                         \
        GASNETT_RELEASE_VERSION_MINOR) "." _STRINGIFY(GASNETT_RELEASE_VERSION_PATCH)             \
    ",SPEC=" _STRINGIFY(GASNETT_SPEC_VERSION_MAJOR) "." _STRINGIFY(GASNETT_SPEC_VERSION_MINOR)   \
    ",PTR=" _STRINGIFY(GASNETT_PTR_CONFIG) "," AQ_TOOLS_DEBUG_STR                                \
    "," AQ_TOOLS_MODE_STR "," _STRINGIFY(GASNETT_TIMER_CONFIG) "," _STRINGIFY(                   \
        GASNETT_MEMBAR_CONFIG) AQ_TOOLS_CONFIG_ATOMICS
/* clang-format on */

#define GASNETT_PAGESIZE         4096
#define GASNETT_PAGESHIFT        12
#define GASNETT_CACHE_LINE_BYTES GASNETI_CACHE_LINE_BYTES

/* --- identification --- */

/* Keeps a text in the object file, whatever compiler and linker find unused. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define AQ_TOOLS_KEPT AQ_ATTR((__used__, __retain__))
#endif
#endif
#ifndef AQ_TOOLS_KEPT
#define AQ_TOOLS_KEPT AQ_ATTR((__used__))
#endif

/* GASNETT_IDENT(name, text); at file scope: keeps text, of the form "$Key: value $", in the
 * program. */
#define GASNETT_IDENT(name, text) static const char name[] AQ_TOOLS_KEPT = text

AQ_BEGIN_DECLS

/** gasnett_release_version_str - "2025.8.0": the release of the library that is linked. */
AQ_PUBLIC const char *gasnett_release_version_str(void);
/** gasnett_release_version - the same as a number: major * 1000000 + minor * 10000 + patch. */
AQ_PUBLIC uint64_t gasnett_release_version(void);
/**
 * gasnett_performance_warning_str - why this build is unsuitable for measurements: one line for
 * each reason, ended by a newline; empty if it is suitable.
 */
AQ_PUBLIC const char *gasnett_performance_warning_str(void);

/*
 * Each object refers to a function whose name says what the object was compiled for. Objects and a
 * library of different thread mode, debug mode or release therefore do not link: the name of the
 * missing symbol says which of them is wanted. The words begin with an underscore, since a client
 * may have a macro of such a name.
 */
#define AQ_TOOLS_CHECK_NAME_(mode, debug, major, minor, patch) \
    gasnett_tools_compiled_for##mode##debug##_##major##_##minor##_##patch
#define AQ_TOOLS_CHECK_NAME(mode, debug, major, minor, patch) \
    AQ_TOOLS_CHECK_NAME_(mode, debug, major, minor, patch)
#define AQ_TOOLS_CHECK(mode)                                                     \
    AQ_TOOLS_CHECK_NAME(mode, AQ_TOOLS_DEBUG_NAME, GASNET_RELEASE_VERSION_MAJOR, \
                        GASNET_RELEASE_VERSION_MINOR, GASNET_RELEASE_VERSION_PATCH)

#if defined(GASNET_PARSYNC)
#define AQ_TOOLS_LINKS_WITH _PARSYNC /* the model is SEQ, the library is that of par */
#else
#define AQ_TOOLS_LINKS_WITH AQ_TOOLS_MODE_NAME
#endif
AQ_PUBLIC void AQ_TOOLS_CHECK(AQ_TOOLS_LINKS_WITH)(void);
#ifndef AQ_BUILD_LIBRARY
static void (*const aq_tools_check)(void) AQ_ATTR((__used__)) = AQ_TOOLS_CHECK(AQ_TOOLS_LINKS_WITH);
#endif

AQ_END_DECLS

#endif
