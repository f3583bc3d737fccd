/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_timer.c - the rate of ticks; clocks and sleeping; see include/gasnet/tools_timer.h.
 * Owns      whether the time-stamp counter is used, and nanoseconds for each tick
 * Threads   the choice of the counter is made before main(), its rate once under a lock
 * How       a pair (counter, clock) is read before main(). The first conversion reads a second
 *           pair, at least AQ_TICKS_NS later; mostly the program has run that long, and no call
 *           waits
 * Uses      base/aq_log.h, base/aq_env.h (parsers)
 */
#include "other/tools/aq_tools.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_platform.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define AQ_TICKS_NS 10000000u /* minimum distance of the two pairs: their error is below 0.1 us */

struct aq_ticks_pair {
    uint64_t ticks, ns;
};

static struct {
    struct aq_ticks_pair first;
    atomic_bool known; /* the following is valid */
    double ns_of_tick; /* 1 for the clock */
    uint64_t whole;    /* the same as a fixed-point number, 32 bits behind the point */
    pthread_mutex_t lock;
} aq_ticks = { .lock = PTHREAD_MUTEX_INITIALIZER };

gasnett_tick_t aq_tools_ticks_os(void)
{
    return aq_now_ns();
}

#if defined(__x86_64__)

int aq_tools_tsc;

/* True if the counter runs at one constant rate, equal on all cores: the processor says so, and the
 * kernel, which has tested it, uses it as its clock source. */
static bool aq_ticks_tsc_is_good(void)
{
    unsigned a, b, c, d;
    char source[32] = "";
    FILE *file;

    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) == 0 || (d >> 8 & 1) == 0)
        return false;
    file = fopen("/sys/devices/system/clocksource/clocksource0/available_clocksource", "re");
    if (file == NULL)
        return true; /* not visible in this container */
    if (fgets(source, sizeof(source), file) == NULL)
        source[0] = '\0';
    fclose(file);
    return strstr(source, "tsc") != NULL;
}

/* Reads both at once: of several tries the one during which the counter moved least. */
static struct aq_ticks_pair aq_ticks_read_pair(void)
{
    struct aq_ticks_pair best = { 0, 0 };
    uint64_t min = UINT64_MAX;

    for (int i = 0; i < 16; i++) {
        const uint64_t before = __builtin_ia32_rdtsc();
        const uint64_t ns = aq_now_ns();
        const uint64_t after = __builtin_ia32_rdtsc();

        if (after - before < min) {
            min = after - before;
            best.ticks = before + min / 2;
            best.ns = ns;
        }
    }
    return best;
}

/* first of all, because other constructors may use ticks */
__attribute__((constructor(101))) static void aq_ticks_start(void)
{
    aq_tools_tsc = aq_ticks_tsc_is_good();
    if (aq_tools_tsc)
        aq_ticks.first = aq_ticks_read_pair();
}

/* returns Hz, measured by the clock */
static double aq_ticks_measure(void)
{
    struct aq_ticks_pair now = aq_ticks_read_pair();

    while (now.ns - aq_ticks.first.ns < AQ_TICKS_NS) {
        struct timespec rest = { 0, (long)(AQ_TICKS_NS - (now.ns - aq_ticks.first.ns)) };

        nanosleep(&rest, NULL);
        now = aq_ticks_read_pair();
    }
    return (double)(now.ticks - aq_ticks.first.ticks) * 1e9 / (double)(now.ns - aq_ticks.first.ns);
}

/* returns Hz from a line of /proc/cpuinfo: the rate in the model's name, else the present one; 0 if
 * it has none */
static double aq_ticks_from_line(const char *line)
{
    const char *at = strrchr(line, '@');
    double rate = 0;

    if (strncmp(line, "model name", 10) == 0 && at != NULL && strstr(at, "GHz") != NULL)
        return sscanf(at + 1, "%lf", &rate) == 1 ? rate * 1e9 : 0;
    return 0;
}

/* returns Hz as the system reports it, 0 if it does not */
static double aq_ticks_from_system(void)
{
    char line[1024];
    double rate = 0;
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/tsc_freq_khz", "re");

    if (file != NULL) {
        if (fgets(line, sizeof(line), file) != NULL)
            rate = atof(line) * 1e3;
        fclose(file);
    }
    if (rate > 0 || (file = fopen("/proc/cpuinfo", "re")) == NULL)
        return rate;
    while (rate == 0 && fgets(line, sizeof(line), file) != NULL)
        rate = aq_ticks_from_line(line);
    rewind(file);
    while (rate == 0 && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "cpu MHz", 7) == 0 && strchr(line, ':') != NULL)
            rate = atof(strchr(line, ':') + 1) * 1e6;
    fclose(file);
    return rate;
}

static double aq_ticks_tolerance(const char *name, double dflt)
{
    const char *text = aq_env_get_live(name);
    double value = dflt;

    if (text != NULL && *text != '\0' && (!aq_env_parse_real(text, &value) || value < 0))
        gasnett_fatalerror_nopos("%s=%s is not a number that is at least 0, such as 0.001", name,
                                 text);
    return value;
}

/* warns if the rate that the user or the system states differs from the measured one */
static void aq_ticks_compare(double rate, double measured, const char *text)
{
    const double off = fabs(rate - measured) / measured;
    const double soft = aq_ticks_tolerance("GASNET_TSC_RATE_TOLERANCE", 0.0005);
    const double hard = aq_ticks_tolerance("GASNET_TSC_RATE_HARD_TOLERANCE", 0.02);

    if (off > hard)
        gasnett_fatalerror_nopos(
            "GASNET_TSC_RATE=%s gives %.0f Hz, but ticks pass at %.0f Hz: %.3g off, more "
            "than GASNET_TSC_RATE_HARD_TOLERANCE=%.3g; unset GASNET_TSC_RATE",
            text, rate, measured, off, hard);
    if (off > soft)
        aq_warn("GASNET_TSC_RATE=%s gives %.0f Hz, but ticks pass at %.0f Hz: %.3g off, more than "
                "GASNET_TSC_RATE_TOLERANCE=%.3g; times will be wrong by that",
                text, rate, measured, off, soft);
}

static double aq_ticks_settle(void)
{
    const char *text = aq_env_get_live("GASNET_TSC_RATE");
    const double measured = aq_ticks_measure();
    double rate = measured;
    int64_t given;

    if (text == NULL || *text == '\0' || strcasecmp(text, "walltime") == 0) {
        text = "walltime";
    } else if (strcasecmp(text, "cpuinfo") == 0) {
        rate = aq_ticks_from_system();
        if (rate == 0) {
            aq_warn("GASNET_TSC_RATE=cpuinfo: the system does not tell the rate; it is measured");
            rate = measured;
        }
    } else if (strspn(text, "0123456789") == strlen(text) && aq_env_parse_int(text, &given)
               && given >= 1000000 && given <= 100000000000) {
        rate = (double)given;
    } else {
        gasnett_fatalerror_nopos(
            "GASNET_TSC_RATE=%s must be walltime, cpuinfo, or a rate in Hz from 1000000 "
            "to 100000000000",
            text);
    }
    aq_ticks_compare(rate, measured, text);
    if (aq_tools_flag("GASNET_TSC_VERBOSE", false))
        aq_log_print("GASNET_TSC_RATE=%s: ticks of %.6f ns (%.0f Hz; measured %.0f Hz)", text,
                     1e9 / rate, rate, measured);
    return 1e9 / rate;
}

static bool aq_ticks_is_tsc(void)
{
    return aq_tools_tsc;
}

#else

static double aq_ticks_settle(void)
{
    return 1;
}

static bool aq_ticks_is_tsc(void)
{
    return false;
}

#endif

static void aq_ticks_know(void)
{
    /* acquire: pairs with the release below */
    if (AQ_LIKELY(atomic_load_explicit(&aq_ticks.known, memory_order_acquire)))
        return;
    pthread_mutex_lock(&aq_ticks.lock);
    if (!atomic_load_explicit(&aq_ticks.known, memory_order_relaxed)) {
        aq_ticks.ns_of_tick = aq_ticks_is_tsc() ? aq_ticks_settle() : 1;
        aq_ticks.whole = (uint64_t)(aq_ticks.ns_of_tick * 4294967296.0);
        /* release: a reader that sees it known sees the rate */
        atomic_store_explicit(&aq_ticks.known, true, memory_order_release);
    }
    pthread_mutex_unlock(&aq_ticks.lock);
}

uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks)
{
    aq_ticks_know();
    return (uint64_t)((unsigned __int128)ticks * aq_ticks.whole >> 32);
}

uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks)
{
    return gasnett_ticks_to_ns(ticks) / 1000;
}

/* the smallest difference of two readings that is not 0, and the mean difference, in ticks */
static void aq_ticks_sample(double *step_out, double *cost_out)
{
    enum { READINGS = 1000 };
    const gasnett_tick_t begin = gasnett_ticks_now();
    gasnett_tick_t last = begin, min = GASNETT_TICK_MAX;

    for (int i = 0; i < READINGS; i++) {
        const gasnett_tick_t now = gasnett_ticks_now();

        if (now != last && now - last < min)
            min = now - last;
        last = now;
    }
    *step_out = min == GASNETT_TICK_MAX ? 1 : (double)min;
    *cost_out = (double)(last - begin) / READINGS;
}

double gasnett_tick_granularityus(void)
{
    double step, cost;

    aq_ticks_know();
    aq_ticks_sample(&step, &cost);
    return step * aq_ticks.ns_of_tick / 1000;
}

double gasnett_tick_overheadus(void)
{
    double step, cost;

    aq_ticks_know();
    aq_ticks_sample(&step, &cost);
    return cost * aq_ticks.ns_of_tick / 1000;
}

uint64_t gasnett_gettimeofday_us(void)
{
    struct timeval now;

    gettimeofday(&now, NULL);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_usec;
}

int gasnett_nsleep(uint64_t ns)
{
    struct timespec rest = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    return ns == 0 ? 0 : nanosleep(&rest, NULL);
}
