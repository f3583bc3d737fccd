/*
 * tools_fence.h - memory barriers between the threads of a process, and the hint for spinning
 * loops.
 *
 * A wmb before publishing data and an rmb after seeing that it was published pass the data from
 * thread to thread: they are a release and an acquire fence, which order loads too.
 * Source: GASNet tools specification 1.20, memory barriers. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_FENCE_H
#define GASNET_TOOLS_FENCE_H 1

/** gasnett_compiler_fence - the compiler moves no memory access across it; no instruction. */
static inline AQ_UNUSED void gasnett_compiler_fence(void)
{
    __asm__ __volatile__("" : : : "memory");
}

/** gasnett_local_wmb - orders earlier reads and writes before later writes: release. */
static inline AQ_UNUSED void gasnett_local_wmb(void)
{
    gasnett_compiler_fence();
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/** gasnett_local_rmb - orders earlier reads before later reads and writes: acquire. */
static inline AQ_UNUSED void gasnett_local_rmb(void)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    gasnett_compiler_fence();
}

/** gasnett_local_mb - orders all earlier accesses before all later ones. */
static inline AQ_UNUSED void gasnett_local_mb(void)
{
    gasnett_compiler_fence();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    gasnett_compiler_fence();
}

/* gasnett_weak_*mb: the same if other threads can access the memory; else nothing, not even for the
 * compiler. */
static inline AQ_UNUSED void gasnett_weak_wmb(void)
{
#if AQ_TOOLS_THREADS || GASNETT_LITE_MODE
    gasnett_local_wmb();
#endif
}

static inline AQ_UNUSED void gasnett_weak_rmb(void)
{
#if AQ_TOOLS_THREADS || GASNETT_LITE_MODE
    gasnett_local_rmb();
#endif
}

static inline AQ_UNUSED void gasnett_weak_mb(void)
{
#if AQ_TOOLS_THREADS || GASNETT_LITE_MODE
    gasnett_local_mb();
#endif
}

/** gasnett_spinloop_hint - for a loop that waits for memory to change: saves power, rereads
 * memory. */
static inline AQ_UNUSED void gasnett_spinloop_hint(void)
{
#if PLATFORM_ARCH_X86_64
    __builtin_ia32_pause();
#elif PLATFORM_ARCH_AARCH64
    __asm__ __volatile__("yield");
#elif PLATFORM_ARCH_POWERPC
    __asm__ __volatile__("or 27,27,27");
#endif
    gasnett_compiler_fence();
}

#endif
