/*
 * aq_platform.h - the machine: cache lines, spinning, clock, available cores, memory and files.
 *
 * Every platform test of the library is here, so that other files need no #if.
 * Depends on no other header of the library. SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef AQ_PLATFORM_H
#define AQ_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifndef AQ_LIKELY /* the same definitions as in include/gasnet/basics.h */
#define AQ_LIKELY(cond)   __builtin_expect(!!(cond), 1)
#define AQ_UNLIKELY(cond) __builtin_expect(!!(cond), 0)
#endif

#define AQ_CACHE_LINE 64
#define AQ_PAGE_SIZE  4096
#define AQ_HUGE_PAGE  ((size_t)2 << 20)

/* Tells the core that this thread spins: saves power and gives the pipeline to a hyper-thread. */
static inline void aq_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* What is marked AQ_TARGET_WIDE may use vectors of 32 bytes, AQ_TARGET_LINE of 64. It is called
 * only where the processor has them; elsewhere it is never called. */
#if defined(__x86_64__)
#define AQ_TARGET_WIDE __attribute__((target("avx2")))
#define AQ_TARGET_LINE __attribute__((target("avx512f")))
static inline bool aq_cpu_has_wide(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

static inline bool aq_cpu_has_line(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

/* AMD's from Zen 4 on, which have vectors of 64 bytes. Only what is fastest may depend on this. */
static inline bool aq_cpu_is_zen4(void)
{
    return __builtin_cpu_is("amd") != 0 && aq_cpu_has_line();
}
#else
#define AQ_TARGET_WIDE
#define AQ_TARGET_LINE
static inline bool aq_cpu_has_wide(void)
{
    return false;
}

static inline bool aq_cpu_has_line(void)
{
    return false;
}

static inline bool aq_cpu_is_zen4(void)
{
    return false;
}
#endif

/* Monotonic time, ns. */
static inline uint64_t aq_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same to a tick of the kernel, 1 to 10 ms, and late by that: a few ns where aq_now_ns() takes
 * some tens. */
static inline uint64_t aq_now_coarse_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline size_t aq_round_up(size_t value, size_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

/* Number of cores this process may use, at least 1: the affinity mask (allowed), reduced by the
 * cgroup's quota. Reads files: a host's ranks share the result, see aq_spawn_host_facts(). */
unsigned aq_cores_available(void);
unsigned aq_cores_allowed(void);
unsigned aq_cores_quota(void);

/* Bytes of memory of this process's host or container: physical memory, reduced by the cgroup's
 * limit. *what_out, if not NULL, says which of the two it was. */
uint64_t aq_memory_available(const char **what_out);

/* Bytes of the largest file that this process may make (ulimit -f); UINT64_MAX: any. Beyond the
 * limit the kernel ends the process by SIGXFSZ. */
uint64_t aq_file_size_max(void);

#endif
