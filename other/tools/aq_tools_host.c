/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_tools_host.c - the host, the process, signals, limits, bytes; see
 * include/gasnet/tools_process.h.
 * Threads   any; results of look-ups are kept
 * Uses      base/aq_platform.h, base/aq_signal_name.h
 */
#include "other/tools/aq_tools.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_signal_name.h"

/* --- host --- */

static char aq_host_name[HOST_NAME_MAX + 1];
static char aq_host_exe[PATH_MAX];

static void aq_host_look_name(void)
{
    if (gethostname(aq_host_name, sizeof(aq_host_name)) != 0)
        gasnett_fatalerror_nopos("gasnett_gethostname: %s", strerror(errno));
    aq_host_name[sizeof(aq_host_name) - 1] = '\0';
}

static void aq_host_look_exe(void)
{
    const ssize_t len = readlink("/proc/self/exe", aq_host_exe, sizeof(aq_host_exe) - 1);

    aq_host_exe[len > 0 ? len : 0] = '\0';
}

const char *gasnett_gethostname(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, aq_host_look_name);
    return aq_host_name;
}

const char *gasnett_exe_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, aq_host_look_exe);
    return aq_host_exe;
}

int gasnett_cpu_count(void)
{
    return (int)aq_cores_available();
}

uint64_t gasnett_getPhysMemSz(int fatal)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    if (pages > 0 && size > 0)
        return (uint64_t)pages * (uint64_t)size;
    if (fatal)
        gasnett_fatalerror_nopos("gasnett_getPhysMemSz: the system does not tell");
    return 0;
}

int gasnett_sched_yield(void)
{
    return sched_yield();
}

int gasnett_set_affinity(int rank)
{
    cpu_set_t allowed, one;
    int place, cpu;

    if (rank < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0
        || CPU_COUNT(&allowed) == 0)
        return -1;
    place = rank % CPU_COUNT(&allowed);
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && place-- == 0)
            break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one);
}

/* --- signals --- */

gasnett_sighandlerfn_t gasnett_reghandler(int sig, gasnett_sighandlerfn_t fn)
{
    struct sigaction act, old;

    memset(&act, 0, sizeof(act));
    act.sa_handler = fn;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    if (sigaction(sig, &act, &old) != 0)
        gasnett_fatalerror_nopos("gasnett_reghandler: signal %d (%s): %s", sig, aq_signal_name(sig),
                                 strerror(errno));
    return old.sa_handler;
}

const char *gasnett_signame_fromval(int sig)
{
    const char *name = aq_signal_name(sig);

    return strncmp(name, "SIG", 3) == 0 ? name : NULL;
}

/* --- limits --- */

int gasnett_maximize_rlimit(int resource, const char *desc)
{
    struct rlimit limit;
    char key[128];

    if (strncmp(desc, "RLIMIT_", 7) == 0)
        desc += 7;
    snprintf(key, sizeof(key), "GASNET_MAXIMIZE_%s", desc);
    if (!aq_tools_flag(key, true))
        return 1;
    /* glibc declares an enumeration of its own for the argument */
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return 0;
    if (limit.rlim_cur == limit.rlim_max)
        return 1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0;
}

int gasnett_maximize_rlimits(void)
{
    static const struct {
        int resource;
        const char *desc;
    } limits[] = { { RLIMIT_CPU, "CPU" },
                   { RLIMIT_DATA, "DATA" },
                   { RLIMIT_RSS, "RSS" },
                   { RLIMIT_STACK, "STACK" },
                   { RLIMIT_AS, "AS" } };
    int all = 1;

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (!gasnett_maximize_rlimit(limits[i].resource, limits[i].desc))
            all = 0;
    return all;
}

/* --- bytes --- */

uint64_t gasnett_checksum(const void *p, int nbytes)
{
    const unsigned char *at = p;
    uint64_t sum = 0;

    for (int i = 0; i < nbytes; i++)
        sum = (sum << 8 | sum >> 56) ^ at[i];
    return sum;
}

size_t gasnett_count0s(const void *p, size_t n)
{
    const unsigned char *at = p;
    size_t zeros = 0;
    uint64_t word;

    for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        zeros += (size_t)gasnett_count0s_uint64_t(word);
    }
    for (; n > 0; n--)
        zeros += *at++ == 0;
    return zeros;
}

size_t gasnett_count0s_copy(void *GASNETT_RESTRICT d, const void *GASNETT_RESTRICT s, size_t n)
{
    unsigned char *to = d;
    const unsigned char *at = s;
    size_t zeros = 0;
    uint64_t word;

    for (; n >= sizeof(word); n -= sizeof(word), at += sizeof(word), to += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        memcpy(to, &word, sizeof(word));
        zeros += (size_t)gasnett_count0s_uint64_t(word);
    }
    for (; n > 0; n--) {
        zeros += *at == 0;
        *to++ = *at++;
    }
    return zeros;
}

/* --- memory --- */

static _Noreturn void aq_host_no_memory(const char *call, size_t bytes)
{
    gasnett_fatalerror_nopos("%s: no memory for %zu bytes", call, bytes);
}

void *aq_tools_malloc(size_t n)
{
    void *p = malloc(n);

    if (p == NULL && n > 0)
        aq_host_no_memory("gasnett_debug_malloc", n);
    return p;
}

void *aq_tools_realloc(void *p, size_t n)
{
    void *now = realloc(p, n);

    if (now == NULL && n > 0)
        aq_host_no_memory("gasnett_debug_realloc", n);
    return now;
}

void *aq_tools_calloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (p == NULL && n > 0 && size > 0)
        aq_host_no_memory("gasnett_debug_calloc", n * size);
    return p;
}

char *aq_tools_strdup(const char *s)
{
    return aq_tools_strndup(s, strlen(s));
}

char *aq_tools_strndup(const char *s, size_t n)
{
    char *copy = strndup(s, n);

    if (copy == NULL)
        aq_host_no_memory("gasnett_debug_strndup", n);
    return copy;
}

int gasnett_getheapstats(gasnett_heapstats_t *stats)
{
    memset(stats, 0, sizeof(*stats));
    return 1;
}

void gasnett_heapinfo_dump(const char *filename, int show_live_objects)
{
    FILE *file = strcmp(filename, "-") == 0 ? stderr : fopen(filename, "we");

    (void)show_live_objects;
    if (file == NULL) {
        aq_warn("gasnett_heapinfo_dump: %s: %s", filename, strerror(errno));
        return;
    }
    fprintf(file, "# nothing to report: this library was built without a debugging allocator\n");
    if (file != stderr)
        fclose(file);
}
