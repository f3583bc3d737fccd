/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_launch_bind.c - the CPUs of each rank (--bind, -c).
 * Threads   one
 * How       takes the requested objects (cores, caches, ...) that this process may use, in topology
 *           order; rank r gets the next -c of them. With more ranks than objects no rank is bound:
 *           the scheduler places them better if it may move them. With share each rank gets an
 *           equal part of the cores. By default no rank is bound: a rank may have more threads
 *           than its share has cores, and other jobs or hosts may use the same processors
 * Uses      hwloc; without it, hardware threads of the affinity mask stand for every kind
 */
#include "aq_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "other/launcher/aq_launch.h"

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

struct aq_bind_objects {
    cpu_set_t **set;
    unsigned count;
    size_t size; /* bytes of a set */
};

static bool aq_bind_add(struct aq_bind_objects *o, cpu_set_t *set)
{
    cpu_set_t **grown = realloc(o->set, (o->count + 1) * sizeof(*grown));

    if (grown == NULL)
        return false;
    o->set = grown;
    o->set[o->count++] = set;
    return true;
}

#ifdef HAVE_HWLOC
static hwloc_obj_type_t aq_bind_type(enum aq_launch_bind bind)
{
    switch (bind) {
    case AQ_BIND_HWTHREAD:
        return HWLOC_OBJ_PU;
    case AQ_BIND_CACHE:
        return HWLOC_OBJ_L3CACHE;
    case AQ_BIND_NUMA:
        return HWLOC_OBJ_NUMANODE;
    case AQ_BIND_SOCKET:
        return HWLOC_OBJ_PACKAGE;
    default:
        return HWLOC_OBJ_CORE;
    }
}

static bool aq_bind_collect(enum aq_launch_bind bind, struct aq_bind_objects *o)
{
    hwloc_topology_t topo;
    hwloc_obj_type_t type = aq_bind_type(bind);
    hwloc_bitmap_t own = hwloc_bitmap_alloc();
    bool ok = false;
    int n;

    if (hwloc_topology_init(&topo) != 0)
        goto free_map;
    if (hwloc_topology_load(topo) != 0)
        goto destroy;
    if (hwloc_get_cpubind(topo, own, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_topology_restrict(topo, own, HWLOC_RESTRICT_FLAG_REMOVE_CPULESS);
    n = hwloc_get_nbobjs_by_type(topo, type);
    /* a virtual machine may show no cores or caches: its hardware threads stand for them */
    if (n <= 0) {
        type = HWLOC_OBJ_PU;
        n = hwloc_get_nbobjs_by_type(topo, type);
    }
    for (int i = 0; i < n; i++) {
        hwloc_obj_t obj = hwloc_get_obj_by_type(topo, type, (unsigned)i);
        cpu_set_t *set = calloc(1, o->size);
        unsigned cpu;

        if (set == NULL || obj == NULL || !aq_bind_add(o, set))
            goto destroy;
        hwloc_bitmap_foreach_begin(cpu, obj->cpuset) CPU_SET_S(cpu, o->size, set);
        hwloc_bitmap_foreach_end();
    }
    ok = n > 0;
destroy:
    hwloc_topology_destroy(topo);
free_map:
    hwloc_bitmap_free(own);
    return ok;
}
#else
static bool aq_bind_collect(enum aq_launch_bind bind, struct aq_bind_objects *o)
{
    cpu_set_t *all = calloc(1, o->size);

    (void)bind;
    if (all == NULL || sched_getaffinity(0, o->size, all) != 0) {
        free(all);
        return false;
    }
    for (size_t cpu = 0; cpu < o->size * 8; cpu++) {
        cpu_set_t *set;

        if (!CPU_ISSET_S(cpu, o->size, all))
            continue;
        set = calloc(1, o->size);
        if (set == NULL || !aq_bind_add(o, set))
            break;
        CPU_SET_S(cpu, o->size, set);
    }
    free(all);
    return o->count > 0;
}
#endif

static void aq_bind_or(cpu_set_t *to, const cpu_set_t *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] |= ((const unsigned char *)from)[i];
}

/* The objects to choose from; a core's threads count as cores if the ranks need them. */
static bool aq_bind_find(const struct aq_launch *lo, struct aq_bind_objects *o)
{
    o->size = CPU_ALLOC_SIZE(sysconf(_SC_NPROCESSORS_CONF) + 1024);
    if (!aq_bind_collect(lo->bind, o))
        return false;
    if (lo->bind != AQ_BIND_SHARE || o->count >= lo->ranks)
        return true;
    o->count = 0; /* the sets found so far are this process's for good */
    return aq_bind_collect(AQ_BIND_HWTHREAD, o);
}

/* A rank's objects: from first up to but not including end. */
static cpu_set_t *aq_bind_join(const struct aq_bind_objects *o, uint64_t first, uint64_t end)
{
    cpu_set_t *set = o->set[first];

    for (uint64_t i = first + 1; i < end; i++)
        aq_bind_or(set, o->set[i], o->size);
    return set;
}

cpu_set_t **aq_launch_bindings(const struct aq_launch *lo, size_t *size_out)
{
    static struct aq_bind_objects o; /* ranks refer to its sets until they run */
    const bool shares = lo->bind == AQ_BIND_SHARE;
    const unsigned each = lo->cpus > 0 ? (unsigned)lo->cpus : 1;
    cpu_set_t **sets;

    if (lo->bind == AQ_BIND_NONE || (shares && lo->ranks == 1))
        return NULL;
    if (!aq_bind_find(lo, &o)) {
        aq_launch_tell(lo, "the machine's topology cannot be read: ranks are not bound");
        return NULL;
    }
    if ((uint64_t)each * lo->ranks > o.count) {
        aq_launch_tell(lo,
                       "%u ranks with %u each need more than the %u there are: ranks are not bound",
                       lo->ranks, each, o.count);
        return NULL;
    }
    sets = calloc(lo->ranks, sizeof(*sets));
    for (uint64_t r = 0; sets != NULL && r < lo->ranks; r++)
        sets[r] = shares ? aq_bind_join(&o, r * o.count / lo->ranks, (r + 1) * o.count / lo->ranks)
                         : aq_bind_join(&o, r * each, (r + 1) * each);
    *size_out = o.size;
    return sets;
}
