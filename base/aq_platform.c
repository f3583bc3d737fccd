/*
 * aq_platform.c - the number of cores, the memory and the size of files that this process may use.
 *
 * A container's share is smaller than its host: the affinity mask and the cgroup's quota and limit
 * (versions 2 and 1, at every level up to the root) all count.
 * Uses libc only. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include "base/aq_platform.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define AQ_PATH_MAX 1024

/* Reads the first line of a small file; false if there is none. */
static bool aq_platform_read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found;

    if (file == NULL)
        return false;
    found = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return found;
}

/* Finds this process's cgroup of a hierarchy: controller "" is version 2. */
static bool aq_platform_cgroup_path(const char *controller, char *path, size_t size)
{
    char line[AQ_PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        char *list = strchr(line, ':');
        char *dir = list != NULL ? strchr(list + 1, ':') : NULL;

        if (dir == NULL)
            continue;
        *dir++ = '\0';
        dir[strcspn(dir, "\n")] = '\0';
        list++;
        if (*controller == '\0' ? *list == '\0' : strstr(list, controller) != NULL) {
            snprintf(path, size, "%s", dir);
            found = true;
        }
    }
    fclose(file);
    return found;
}

/* Calls look(directory, state) for a cgroup directory and each of its parents. */
static void aq_platform_each_cgroup(const char *root, const char *controller,
                                    void (*look)(const char *dir, void *state), void *state)
{
    char path[AQ_PATH_MAX], dir[2 * AQ_PATH_MAX];

    if (!aq_platform_cgroup_path(controller, path, sizeof(path)))
        snprintf(path, sizeof(path), "/");
    for (;;) {
        char *slash = strrchr(path, '/');

        snprintf(dir, sizeof(dir), "%s%s", root, strcmp(path, "/") == 0 ? "" : path);
        look(dir, state);
        if (slash == NULL || strcmp(path, "/") == 0)
            return;
        if (slash == path)
            slash++;
        *slash = '\0';
    }
}

static void aq_platform_look_quota(const char *dir, void *state)
{
    char path[2 * AQ_PATH_MAX + 32], line[128];
    double *cores = state;
    double quota, period;

    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (aq_platform_read_line(path, line, sizeof(line))
        && sscanf(line, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0
        && quota / period < *cores)
        *cores = quota / period;

    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (!aq_platform_read_line(path, line, sizeof(line)) || sscanf(line, "%lf", &quota) != 1)
        return;
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (aq_platform_read_line(path, line, sizeof(line)) && sscanf(line, "%lf", &period) == 1
        && quota > 0 && period > 0 && quota / period < *cores)
        *cores = quota / period;
}

unsigned aq_cores_quota(void)
{
    double cores = UINT16_MAX;

    aq_platform_each_cgroup("/sys/fs/cgroup", "", aq_platform_look_quota, &cores);
    aq_platform_each_cgroup("/sys/fs/cgroup/cpu", "cpu", aq_platform_look_quota, &cores);
    return cores < 1.5 ? 1 : (unsigned)(cores + 0.5);
}

unsigned aq_cores_allowed(void)
{
    cpu_set_t mask;

    if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
        return (unsigned)CPU_COUNT(&mask);
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

unsigned aq_cores_available(void)
{
    const unsigned allowed = aq_cores_allowed(), quota = aq_cores_quota();

    return allowed < quota ? allowed : quota;
}

static void aq_platform_look_memory(const char *dir, void *state)
{
    static const char *const names[] = { "memory.max", "memory.limit_in_bytes" };
    char path[2 * AQ_PATH_MAX + 32], line[128];
    uint64_t *bytes = state;

    for (size_t i = 0; i < 2; i++) {
        unsigned long long limit;

        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        if (aq_platform_read_line(path, line, sizeof(line)) && sscanf(line, "%llu", &limit) == 1
            && limit > 0 && limit < *bytes)
            *bytes = limit;
    }
}

uint64_t aq_memory_available(const char **what_out)
{
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = physical;

    aq_platform_each_cgroup("/sys/fs/cgroup", "", aq_platform_look_memory, &bytes);
    aq_platform_each_cgroup("/sys/fs/cgroup/memory", "memory", aq_platform_look_memory, &bytes);
    if (what_out != NULL)
        *what_out = bytes < physical ? "the cgroup's memory limit" : "physical memory";
    return bytes;
}

uint64_t aq_file_size_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}
