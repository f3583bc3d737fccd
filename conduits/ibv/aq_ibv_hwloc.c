/*
 * aq_ibv_hwloc.c - how far a device is from this process's cores, as hwloc sees the machine.
 *
 * hwloc is a header at build time and is loaded when it is needed, so that no program depends on
 * it. It knows more than the device's own files do: of two devices that are both on another NUMA
 * node, one may be in our package.
 *
 * Owns      the topology, from the first question to aq_ibv_hwloc_end()
 * Threads   start-up's only
 * Uses      hwloc 2 by dlopen. SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif
#include "conduits/ibv/aq_ibv_choose.h"

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif
#if defined(HAVE_HWLOC) \
    && HWLOC_API_VERSION < 0x30000 /* the library of that name has this version's types */

#include <dlfcn.h>
#include <string.h>

#define AQ_IBV_HWLOC "libhwloc.so.15"

static struct {
    bool asked, loaded;
    hwloc_topology_t topology;
    int (*init)(hwloc_topology_t *);
    int (*filter)(hwloc_topology_t, enum hwloc_type_filter_e);
    int (*components)(hwloc_topology_t, unsigned long, const char *); /* NULL: before 2.1 */
    int (*load)(hwloc_topology_t);
    void (*destroy)(hwloc_topology_t);
    unsigned (*count)(hwloc_topology_t, int);
    hwloc_obj_t (*object)(hwloc_topology_t, int, unsigned);
    int (*isset)(hwloc_const_bitmap_t, unsigned);
} aq_ibv_hwloc;

static bool aq_ibv_hwloc_open(void)
{
    void *lib = dlopen(AQ_IBV_HWLOC, RTLD_NOW | RTLD_LOCAL);

    if (lib == NULL)
        return false;
    /* POSIX lets a data pointer from dlsym() be stored as a function pointer this way */
    *(void **)&aq_ibv_hwloc.init = dlsym(lib, "hwloc_topology_init");
    *(void **)&aq_ibv_hwloc.filter = dlsym(lib, "hwloc_topology_set_io_types_filter");
    *(void **)&aq_ibv_hwloc.components = dlsym(lib, "hwloc_topology_set_components");
    *(void **)&aq_ibv_hwloc.load = dlsym(lib, "hwloc_topology_load");
    *(void **)&aq_ibv_hwloc.destroy = dlsym(lib, "hwloc_topology_destroy");
    *(void **)&aq_ibv_hwloc.count = dlsym(lib, "hwloc_get_nbobjs_by_depth");
    *(void **)&aq_ibv_hwloc.object = dlsym(lib, "hwloc_get_obj_by_depth");
    *(void **)&aq_ibv_hwloc.isset = dlsym(lib, "hwloc_bitmap_isset");
    return aq_ibv_hwloc.init != NULL && aq_ibv_hwloc.filter != NULL && aq_ibv_hwloc.load != NULL
           && aq_ibv_hwloc.destroy != NULL && aq_ibv_hwloc.count != NULL
           && aq_ibv_hwloc.object != NULL && aq_ibv_hwloc.isset != NULL;
}

/* Those that look for devices of other kinds would start their libraries and drivers, in every
 * rank. */
static void aq_ibv_hwloc_blacklist(void)
{
#if HWLOC_API_VERSION >= 0x20100
    static const char *const others[] = { "cuda", "nvml", "rsmi", "levelzero", "opencl", "gl" };

    for (size_t i = 0; aq_ibv_hwloc.components != NULL && i < sizeof(others) / sizeof(others[0]);
         i++)
        (void)aq_ibv_hwloc.components(aq_ibv_hwloc.topology,
                                      HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, others[i]);
#endif
}

static bool aq_ibv_hwloc_load(void)
{
    if (aq_ibv_hwloc.asked)
        return aq_ibv_hwloc.loaded;
    aq_ibv_hwloc.asked = true;
    if (!aq_ibv_hwloc_open() || aq_ibv_hwloc.init(&aq_ibv_hwloc.topology) != 0)
        return false;
    aq_ibv_hwloc_blacklist();
    aq_ibv_hwloc.loaded =
        aq_ibv_hwloc.filter(aq_ibv_hwloc.topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0
        && aq_ibv_hwloc.load(aq_ibv_hwloc.topology) == 0;
    if (!aq_ibv_hwloc.loaded)
        aq_ibv_hwloc.destroy(aq_ibv_hwloc.topology);
    return aq_ibv_hwloc.loaded;
}

/* The part of the machine that a device hangs on, or NULL: hwloc does not know it. */
static hwloc_obj_t aq_ibv_hwloc_locate(const char *device)
{
    const unsigned count = aq_ibv_hwloc.count(aq_ibv_hwloc.topology, HWLOC_TYPE_DEPTH_OS_DEVICE);

    for (unsigned i = 0; i < count; i++) {
        hwloc_obj_t at = aq_ibv_hwloc.object(aq_ibv_hwloc.topology, HWLOC_TYPE_DEPTH_OS_DEVICE, i);

        if (at->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS || at->name == NULL
            || strcmp(at->name, device) != 0)
            continue;
        while (at != NULL && at->cpuset == NULL) /* devices have none */
            at = at->parent;
        return at;
    }
    return NULL;
}

/* How many of our cores it has. */
static int aq_ibv_hwloc_shared(hwloc_const_bitmap_t cores, const cpu_set_t *own)
{
    int shared = 0;

    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        shared += CPU_ISSET(cpu, own) && aq_ibv_hwloc.isset(cores, cpu) != 0;
    return shared;
}

bool aq_ibv_hwloc_distance(const char *device, const cpu_set_t *own, uint32_t *distance_out)
{
    hwloc_obj_t at;

    if (!aq_ibv_hwloc_load() || (at = aq_ibv_hwloc_locate(device)) == NULL || at->parent == NULL)
        return false; /* at the machine as a whole: hwloc knows no better */
    *distance_out = 0;
    if (aq_ibv_hwloc_shared(at->cpuset, own) > 0)
        return true;
    while (at->parent != NULL && aq_ibv_hwloc_shared(at->cpuset, own) < CPU_COUNT(own))
        at = at->parent;
    *distance_out = at->parent != NULL ? 1 : 2; /* the whole machine is all that they share */
    return true;
}

void aq_ibv_hwloc_end(void)
{
    if (aq_ibv_hwloc.loaded)
        aq_ibv_hwloc.destroy(aq_ibv_hwloc.topology);
    aq_ibv_hwloc.asked = aq_ibv_hwloc.loaded = false;
}

#else

bool aq_ibv_hwloc_distance(const char *device, const cpu_set_t *own, uint32_t *distance_out)
{
    (void)device, (void)own, (void)distance_out;
    return false;
}

void aq_ibv_hwloc_end(void)
{
}

#endif
