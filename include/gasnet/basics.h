/*
 * basics.h - used by every other part: thread mode, attributes, fences, small helpers.
 *
 * Depends on gasnet_config.h and the conduit's gasnet_core_fwd.h only.
 * Source: GASNet-EX specification 0.19, configuration. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnetex.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_BASICS_H
#define GASNET_BASICS_H 1

#include "gasnet/system.h"
#include "gasnet/words.h"

/* Words that become part of a function's name (client.h) begin with an underscore: a client may
 * have a macro PAR or FAST. */

/* --- thread mode: the client defines exactly one; afterwards it expands to 1 --- */

#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#error "define exactly one of GASNET_SEQ, GASNET_PARSYNC or GASNET_PAR before including gasnetex.h"
#endif
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ   1
#define AQ_MODE_NAME _SEQ
#define AQ_MODE_STR  "SEQ"
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC 1
#define AQ_MODE_NAME   _PARSYNC
#define AQ_MODE_STR    "PARSYNC"
#else
#undef GASNET_PAR
#define GASNET_PAR   1
#define AQ_MODE_NAME _PAR
#define AQ_MODE_STR  "PAR"
#endif
#if !defined(GASNET_SEQ)
#include <pthread.h>
#endif

#if GASNET_DEBUG && defined(NDEBUG)
#error "this library was configured with --enable-debug: compile its clients without NDEBUG"
#endif
#if GASNET_DEBUG && defined(__OPTIMIZE__) && !defined(AQ_BUILD_LIBRARY) \
    && !defined(GASNET_ALLOW_OPTIMIZED_DEBUG)
#error "this library was configured with --enable-debug: compile its clients with -O0"
#endif

/* --- version: the specification that the features correspond to --- */

#define GEX_SPEC_VERSION_MAJOR 0
#define GEX_SPEC_VERSION_MINOR 19
#ifndef GASNET_SPEC_VERSION_MAJOR
#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#endif
#ifndef GASNET_VERSION
#define GASNET_VERSION GASNET_SPEC_VERSION_MAJOR
#endif

/* --- constants of the implementation --- */

#define GASNET_PAGESIZE            4096
#define GASNET_MAXNODES            2147483647
#define GASNET_NULL_ARGV_OK        1
#define GASNET_ALIGNED_SEGMENTS    0
#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_EP      1
#define GASNET_SUPPORTS_TI_ENTRY   1
#define GASNET_SUPPORTS_TI_IS_REQ  1
#define GASNET_SUPPORTS_TI_IS_LONG 1
/* experimental calls: the date at which the specification added each */
#define GASNET_SUPPORTS_AM_CANCEL    20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L
#define SIZEOF_GEX_RMA_VALUE_T       8
#ifndef GASNET_MAXEPS
#define GASNET_MAXEPS 1
#endif

#if defined(GASNET_SEGMENT_FAST)
#define AQ_SEGMENT_NAME _FAST
#define AQ_SEGMENT_STR  "FAST"
#elif defined(GASNET_SEGMENT_LARGE)
#define AQ_SEGMENT_NAME _LARGE
#define AQ_SEGMENT_STR  "LARGE"
#else
#define AQ_SEGMENT_NAME _EVERYTHING
#define AQ_SEGMENT_STR  "EVERYTHING"
#endif
#if GASNET_DEBUG
#define AQ_DEBUG_NAME _debug
#define AQ_DEBUG_STR  "debug"
#else
#define AQ_DEBUG_NAME _nodebug
#define AQ_DEBUG_STR  "nodebug"
#endif

/* clang-format off */
#define GASNET_CONFIG_STRING                                                          \
    "RELEASE=" _STRINGIFY(GASNET_RELEASE_VERSION_MAJOR) "." _STRINGIFY(               \
        GASNET_RELEASE_VERSION_MINOR) "." _STRINGIFY(GASNET_RELEASE_VERSION_PATCH)    \
    ",SPEC=" _STRINGIFY(GEX_SPEC_VERSION_MAJOR) "." _STRINGIFY(GEX_SPEC_VERSION_MINOR) \
    ",CONDUIT=" GASNET_CONDUIT_NAME_STR "(" GASNET_CORE_NAME_STR                      \
    "-" GASNET_CORE_VERSION_STR "/" GASNET_EXTENDED_NAME_STR                          \
    "-" GASNET_EXTENDED_VERSION_STR "),THREADMODEL=" AQ_MODE_STR                      \
    ",SEGMENT=" AQ_SEGMENT_STR ",PTR=64bit,CACHE_LINE_BYTES="            \
    _STRINGIFY(GASNETI_CACHE_LINE_BYTES) ","                                          \
    "noalign,pshm," AQ_DEBUG_STR ",trace,stats,nodebugmalloc,srclines,"         \
    "timers_native,membars_native,atomics_native,atomic32_native,atomic64_native"
/* clang-format on */

/* --- debug builds: calls follow the start, and their handles are valid --- */

AQ_BEGIN_DECLS
AQ_PUBLIC void aq_check_started(const char *call);
AQ_PUBLIC void aq_check_handle(const char *call, const char *what, const void *handle);
/* Ends the job in a handler, under an HSL and between a Prepare and its Commit. */
AQ_PUBLIC void aq_check_main(const char *call);
AQ_END_DECLS
#if GASNET_DEBUG
#define AQ_CHECK_STARTED()            aq_check_started(__func__)
#define AQ_CHECK_HANDLE(what, handle) aq_check_handle(__func__, what, (const void *)(handle))
#define AQ_CHECK_MAIN()               aq_check_main(__func__)
#else
#define AQ_CHECK_STARTED()            ((void)0)
#define AQ_CHECK_HANDLE(what, handle) ((void)0)
#define AQ_CHECK_MAIN()               ((void)0)
#endif

/* --- fences: the only ordering the inline fast paths need --- */

/* Everything stored before becomes visible before anything stored after: costs no instruction on
 * x86. */
static inline AQ_UNUSED void aq_fence_release(void)
{
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Nothing read after is older than anything read before: costs no instruction on x86. */
static inline AQ_UNUSED void aq_fence_acquire(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

#endif
