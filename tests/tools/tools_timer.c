/*
 * tools_timer.c - ticks do not go backwards and agree with the clock; sleeping; the wall clock.
 * "tools_timer rate" settles the rate of ticks and says it, for tools.sh.
 * Source: GASNet tools specification 1.20, timers. SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_tools.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "aq_tap.h"

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* both clocks over the same interval: the difference, relative */
static double compare(uint64_t ns)
{
    const uint64_t began = clock_ns();
    const gasnett_tick_t ticks = gasnett_ticks_now();
    uint64_t ended, passed;

    while (clock_ns() - began < ns)
        continue;
    passed = gasnett_ticks_to_ns(gasnett_ticks_now() - ticks);
    ended = clock_ns();
    return fabs((double)passed - (double)(ended - began)) / (double)(ended - began);
}

static void on_signal(int sig)
{
    (void)sig;
}

static void check_ticks(void)
{
    gasnett_tick_t last = gasnett_ticks_now();
    double best = 1;

    rule("ticks never go backwards");
    for (int i = 0; i < 1000000; i++) {
        const gasnett_tick_t now = gasnett_ticks_now();

        CHECK(now >= last);
        last = now;
    }
    CHECK(sizeof(gasnett_tick_t) == 8 && (gasnett_tick_t)-1 > 0);
    CHECK(GASNETT_TICK_MIN == 0 && GASNETT_TICK_MAX == (gasnett_tick_t)-1);

    rule("ticks agree with the monotonic clock to one part in a thousand");
    for (int i = 0; i < 20 && best > 0.001; i++)
        best = MIN(best, compare(20000000));
    CHECK(best <= 0.001);

    rule("conversions: linear, to microseconds by rounding down, no overflow for long durations");
    CHECK_EQ(gasnett_ticks_to_ns(0), 0);
    CHECK_EQ(gasnett_ticks_to_us(0), 0);
    last = gasnett_ticks_now() / 2;
    CHECK(gasnett_ticks_to_us(last) == gasnett_ticks_to_ns(last) / 1000);
    CHECK(fabs((double)gasnett_ticks_to_ns(UINT64_C(1) << 60)
                   / ((double)gasnett_ticks_to_ns(UINT64_C(1) << 40) * 1048576.0)
               - 1)
          < 1e-6);

    rule("granularity and overhead are small and not zero");
    CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_granularityus() < 100);
    CHECK(gasnett_tick_overheadus() > 0 && gasnett_tick_overheadus() < 100);
}

static void check_clocks(void)
{
    struct itimerval once = { { 0, 0 }, { 0, 20000 } };
    struct timeval wall;
    uint64_t us, began;

    rule("the wall clock counts microseconds from 1970");
    gettimeofday(&wall, NULL);
    us = gasnett_gettimeofday_us();
    CHECK(us >= (uint64_t)wall.tv_sec * 1000000u && us < ((uint64_t)wall.tv_sec + 60) * 1000000u);
#ifdef GASNETT_USING_GETTIMEOFDAY
    CHECK(!"ticks are not the wall clock");
#endif

    rule("gasnett_nsleep sleeps at least that long; nothing at once; a signal ends it");
    began = clock_ns();
    CHECK_EQ(gasnett_nsleep(5000000), 0);
    CHECK(clock_ns() - began >= 5000000);
    CHECK_EQ(gasnett_nsleep(0), 0);
    gasnett_reghandler(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &once, NULL);
    errno = 0;
    CHECK(gasnett_nsleep(UINT64_C(20000000000)) != 0 && errno == EINTR);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "rate") == 0) {
        printf("%.0f\n", 1e18 / (double)gasnett_ticks_to_ns(1000000000));
        return 0;
    }
    check_ticks();
    check_clocks();
    return tap_finish();
}
