/*
 * aq_ibv_numa.c - where devices and this process are, by hwloc or /sys, and settings that depend on
 * it.
 *
 * Without hwloc a device's files tell which cores are on its side of the machine; a software device
 * has none. Settings such as GASNET_IBV_PORTS may differ by place: GASNET_IBV_PORTS_TYPE names how
 * a process makes its number (the socket, core or NUMA node it is bound to, or its rank in the job,
 * on the host or in the neighborhood), and GASNET_IBV_PORTS_1, say, is for those whose number is 1,
 * GASNET_IBV_PORTS_0_1 for those on sockets 0 and 1.
 *
 * Threads   start-up's only
 * Uses      base/aq_env.h, core/aq_job.h. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "conduits/ibv/aq_ibv_choose.h"
#include "base/aq_env.h"
#include "core/aq_job.h"
#include "base/aq_log.h"

#define AQ_IBV_NUMBERS 64 /* of one process */
#define AQ_IBV_NODES   256

/* --- devices --- */

bool aq_ibv_numa_is_software(const char *device)
{
    char path[128];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", device);
    return access(path, F_OK) != 0;
}

static bool aq_ibv_numa_read(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    const bool done = file != NULL && fgets(text, (int)size, file) != NULL;

    if (file != NULL)
        fclose(file);
    return done;
}

/* Is a number of a list such as "0-3,8" in the set? */
static bool aq_ibv_numa_list_overlaps(const char *list, const cpu_set_t *set)
{
    while (isdigit((unsigned char)*list)) {
        char *after;
        const unsigned long first = strtoul(list, &after, 10);
        const unsigned long last = *after == '-' ? strtoul(after + 1, &after, 10) : first;

        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, set))
                return true;
        list = *after == ',' ? after + 1 : after;
    }
    return false;
}

uint32_t aq_ibv_numa_distance(const char *device)
{
    char path[128], list[4096];
    uint32_t distance;
    cpu_set_t own;

    if (sched_getaffinity(0, sizeof(own), &own) != 0)
        return 1;
    if (aq_ibv_hwloc_distance(device, &own, &distance))
        return distance;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/local_cpulist", device);
    if (!aq_ibv_numa_read(path, list, sizeof(list)))
        return 1;
    return aq_ibv_numa_list_overlaps(list, &own) ? 0 : 2;
}

/* --- the numbers of this process --- */

/* A sorted set. */
struct aq_ibv_numbers {
    uint32_t count;
    int64_t of[AQ_IBV_NUMBERS];
};

static void aq_ibv_numbers_add(struct aq_ibv_numbers *set, int64_t number)
{
    uint32_t at = 0;

    while (at < set->count && set->of[at] < number)
        at++;
    if (set->count == AQ_IBV_NUMBERS || (at < set->count && set->of[at] == number))
        return;
    memmove(&set->of[at + 1], &set->of[at], (set->count - at) * sizeof(set->of[0]));
    set->of[at] = number;
    set->count++;
}

/* The numbers in a file of this process's cores. */
static void aq_ibv_numa_cores(const char *file, struct aq_ibv_numbers *set)
{
    cpu_set_t own;

    if (sched_getaffinity(0, sizeof(own), &own) != 0)
        return;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[128], text[32];

        if (!CPU_ISSET(cpu, &own))
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, file);
        if (aq_ibv_numa_read(path, text, sizeof(text)))
            aq_ibv_numbers_add(set, strtoll(text, NULL, 10));
    }
}

static void aq_ibv_numa_nodes(struct aq_ibv_numbers *set)
{
    cpu_set_t own;

    if (sched_getaffinity(0, sizeof(own), &own) != 0)
        return;
    for (int node = 0; node < AQ_IBV_NODES; node++) {
        char path[128], list[4096];

        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
        if (aq_ibv_numa_read(path, list, sizeof(list)) && aq_ibv_numa_list_overlaps(list, &own))
            aq_ibv_numbers_add(set, node);
    }
}

static bool aq_ibv_numa_base(const char *name, size_t len, struct aq_ibv_numbers *set)
{
    static const char *const types[] = { "JRank",  "HRank",   "NRank",    "Core",
                                         "Socket", "Package", "NUMANode", "Node" };
    size_t type = 0;

    while (type < sizeof(types) / sizeof(types[0])
           && (strlen(types[type]) != len || strncasecmp(types[type], name, len) != 0))
        type++;
    switch (type) {
    case 0:
        aq_ibv_numbers_add(set, aq_job.rank);
        return true;
    case 1:
        aq_ibv_numbers_add(set, aq_job.host_index);
        return true;
    case 2:
        aq_ibv_numbers_add(set, aq_job.nbrhd_index);
        return true;
    case 3:
        aq_ibv_numa_cores("core_id", set);
        return true;
    case 4:
    case 5:
        aq_ibv_numa_cores("physical_package_id", set);
        return true;
    case 6:
    case 7:
        aq_ibv_numa_nodes(set);
        return true;
    default:
        return false;
    }
}

/* The operation on each number: "%4", "/ 0x2", or nothing. */
static bool aq_ibv_numa_operator(const char *at, char *op_out, int64_t *by_out)
{
    char *after;

    while (isspace((unsigned char)*at))
        at++;
    *op_out = *at;
    if (*at == '\0')
        return true;
    if (*at != '/' && *at != '%')
        return false;
    *by_out = strtoll(at + 1, &after, 0);
    while (isspace((unsigned char)*after))
        after++;
    return *by_out > 0 && *after == '\0';
}

bool aq_ibv_numa_numbers(const char *type, char *text, size_t size)
{
    struct aq_ibv_numbers all = { .count = 0 }, set = { .count = 0 };
    size_t len = 0, used = 0;
    int64_t by = 1;
    char op;

    while (isalpha((unsigned char)type[len]))
        len++;
    if (!aq_ibv_numa_base(type, len, &all) || !aq_ibv_numa_operator(type + len, &op, &by))
        return false;
    for (uint32_t i = 0; i < all.count; i++)
        aq_ibv_numbers_add(&set, op == '/'   ? all.of[i] / by
                                 : op == '%' ? all.of[i] % by
                                             : all.of[i]);
    text[0] = '\0';
    for (uint32_t i = 0; i < set.count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i == 0 ? "" : "_",
                                 (long long)set.of[i]);
    return true;
}

/* --- settings --- */

const char *aq_ibv_numa_setting(enum aq_env_id base, enum aq_env_id how)
{
    const char *type = aq_env_str(how), *value;
    char numbers[256], name[320];

    if (type == NULL || *type == '\0' || strcasecmp(type, "none") == 0
        || strcasecmp(type, "auto") == 0)
        return aq_env_str(base);
    if (!aq_ibv_numa_numbers(type, numbers, sizeof(numbers)))
        aq_fatal("%s is \"%s\"; write Socket, Core, NUMANode, JRank, HRank or NRank, perhaps with "
                 "/k or %%k behind it: "
                 "%s=HRank%%2",
                 aq_env_rows[how].name, type, aq_env_rows[how].name);
    snprintf(name, sizeof(name), "%s_%s", aq_env_rows[base].name, numbers);
    value = aq_env_get(name);
    return numbers[0] != '\0' && value != NULL && *value != '\0' ? value : aq_env_str(base);
}
