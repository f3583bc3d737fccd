/*
 * tools_timer.h - ticks: the cheapest clock, for durations inside one process.
 *
 * On x86-64 a tick is one of the time-stamp counter, if that runs at a constant rate and the kernel
 * uses it as its clock source; else, and on other processors, a nanosecond of the monotonic clock.
 * Source: GASNet tools specification 1.20, timers. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h" /* first: the parts come in its order, whichever of them a client names */

#ifndef GASNET_TOOLS_TIMER_H
#define GASNET_TOOLS_TIMER_H 1

AQ_BEGIN_DECLS

typedef uint64_t gasnett_tick_t;

#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX (~(gasnett_tick_t)0)

#if PLATFORM_ARCH_X86_64
AQ_PUBLIC extern int aq_tools_tsc; /* the counter can be used; settled before main() */
#endif
AQ_PUBLIC gasnett_tick_t aq_tools_ticks_os(void);

/** gasnett_ticks_now - now, never earlier than the thread's previous reading. Any context. */
static inline AQ_UNUSED gasnett_tick_t gasnett_ticks_now(void)
{
#if PLATFORM_ARCH_X86_64
    if (AQ_LIKELY(aq_tools_tsc))
        return (gasnett_tick_t)__builtin_ia32_rdtsc();
#endif
    return aq_tools_ticks_os();
}

/**
 * gasnett_ticks_to_ns - a duration in nanoseconds.
 * The first call may take 10 ms to measure the rate of ticks (GASNET_TSC_RATE); it ends the program
 * if the configured rate is impossible. Any thread.
 */
AQ_PUBLIC uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks);

/** gasnett_ticks_to_us - a duration in microseconds, rounded down. */
AQ_PUBLIC uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks);

/** gasnett_tick_granularityus - the smallest step of the clock, microseconds. */
AQ_PUBLIC double gasnett_tick_granularityus(void);

/** gasnett_tick_overheadus - the cost of one reading, microseconds. */
AQ_PUBLIC double gasnett_tick_overheadus(void);

/** gasnett_gettimeofday_us - wall clock: microseconds since the beginning of 1970, UTC. */
AQ_PUBLIC uint64_t gasnett_gettimeofday_us(void);

/**
 * gasnett_nsleep - sleep for at least ns nanoseconds; 0 returns at once.
 * Returns 0; or non-zero with errno set, EINTR if a signal ended the sleep early
 */
AQ_PUBLIC int gasnett_nsleep(uint64_t ns);

AQ_END_DECLS

#endif
