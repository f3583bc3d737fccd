/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_info_machine.c - what this machine, container and user may use: cores, memory, descriptors,
 * the kernel's means of sharing memory. Facilities are tested rather than looked up where possible.
 * Uses      base/aq_platform.h, /proc and /sys, hwloc by dlopen when built with its header
 */
#ifdef HAVE_CONFIG_H
#include "aq_config.h"
#endif
#include "other/info/aq_info.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "base/aq_platform.h"

/* first line of a file without its newline; false if it cannot be read */
static bool info_read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool got;

    if (file == NULL)
        return false;
    got = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = '\0';
    return got;
}

static void info_system(void)
{
    struct utsname name;
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    aq_info_text("host", "host", host, NULL);
    if (uname(&name) == 0) {
        char text[256];

        snprintf(text, sizeof(text), "%.60s %.120s %.60s", name.sysname, name.release,
                 name.machine);
        aq_info_text("kernel", "kernel", text, NULL);
    }
}

static void info_cores(void)
{
    cpu_set_t mask;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned allowed = (unsigned)online, usable = aq_cores_available();

    if (sched_getaffinity(0, sizeof(mask), &mask) == 0)
        allowed = (unsigned)CPU_COUNT(&mask);
    aq_info_count("cores_online", "cores online", (uint64_t)online, NULL);
    aq_info_count("cores_affinity", "cores in affinity mask", allowed, NULL);
    aq_info_count("cores_available", "cores for ranks", usable,
                  usable < allowed ? "the cgroup's quota is smaller; more ranks than this yield "
                                     "and sleep instead of spinning"
                                   : "more ranks than this yield and sleep instead of spinning");
}

/* a field of /proc/meminfo, bytes */
static uint64_t info_meminfo(const char *field)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    unsigned long long kb = 0;
    size_t len = strlen(field);

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, field, len) == 0 && line[len] == ':')
            kb = strtoull(line + len + 1, NULL, 10);
    fclose(file);
    return (uint64_t)kb << 10;
}

static void info_rlimit(const char *key, const char *label, int resource, bool in_bytes)
{
    struct rlimit limit;
    uint64_t value;

    if (getrlimit(resource, &limit) != 0)
        return;
    value = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    if (in_bytes)
        aq_info_bytes(key, label, value, NULL);
    else
        aq_info_count(key, label, value, NULL);
}

static void info_memory(void)
{
    const char *what;
    uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t ours = aq_memory_available(&what);

    aq_info_bytes("memory_physical", "physical memory", physical, NULL);
    aq_info_bytes("memory_for_segments", "memory to share out", ours, what);
    aq_info_bytes("memory_free_now", "available now", info_meminfo("MemAvailable"), NULL);
    info_rlimit("rlimit_as", "address space (ulimit -v)", RLIMIT_AS, true);
    info_rlimit("rlimit_memlock", "locked memory (ulimit -l)", RLIMIT_MEMLOCK, true);
    info_rlimit("rlimit_nofile", "descriptors (ulimit -n)", RLIMIT_NOFILE, false);
    info_rlimit("rlimit_nproc", "processes (ulimit -u)", RLIMIT_NPROC, false);
}

/* ---- shared memory ------------------------------------------------------------------------- */

static bool info_try_memfd(unsigned flags, size_t len, char *why, size_t size)
{
    int fd = memfd_create("aq-info", MFD_CLOEXEC | flags);
    void *at = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)len) == 0)
        at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        snprintf(why, size, "%s", strerror(errno));
    else
        munmap(at, len);
    if (fd >= 0)
        close(fd);
    return at != MAP_FAILED;
}

static void info_huge_pages(void)
{
    char note[256] = "", setting[128] = "";
    bool reserved = info_try_memfd(MFD_HUGETLB, AQ_HUGE_PAGE, note, sizeof(note));

    if (!reserved && strcmp(note, strerror(ENOMEM)) == 0
        && info_read_line("/proc/sys/vm/nr_hugepages", setting, sizeof(setting))
        && strcmp(setting, "0") == 0)
        snprintf(note, sizeof(note), "none is reserved: vm.nr_hugepages is 0");
    aq_info_yesno("hugetlb", "reserved huge pages", reserved, reserved ? NULL : note);
    if (info_read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", setting,
                       sizeof(setting)))
        aq_info_text("thp_shmem", "transparent, shared", setting, NULL);
}

/* what a rank does to another rank: a child process reads its sibling's memory */
static bool info_try_vm_read(char *why, size_t size)
{
    static volatile int secret;
    int status = 0, code;
    pid_t target, reader;
    int ready[2];

    if (pipe(ready) != 0) {
        snprintf(why, size, "pipe: %s", strerror(errno));
        return false;
    }
    target = fork();
    if (target == 0) {
        secret = 42;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
        (void)!write(ready[1], "x", 1);
        for (;;)
            pause();
    }
    reader = target > 0 ? fork() : -1;
    if (reader == 0) {
        int got = 0;
        char byte;
        struct iovec local = { &got, sizeof(got) },
                     remote = { (void *)(uintptr_t)&secret, sizeof(got) };

        (void)!read(ready[0], &byte, 1);
        if (process_vm_readv(target, &local, 1, &remote, 1, 0) != sizeof(got))
            _exit(errno);
        _exit(got == 42 ? 0 : EIO);
    }
    close(ready[0]);
    close(ready[1]);
    if (reader > 0)
        waitpid(reader, &status, 0);
    if (target > 0) {
        kill(target, SIGKILL);
        waitpid(target, NULL, 0);
    }
    code = reader > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EAGAIN;
    if (code != 0)
        snprintf(why, size, "%s; large transfers outside segments go through a buffer",
                 strerror(code));
    return code == 0;
}

static void info_sharing(void)
{
    char note[256] = "", value[64] = "";
    struct statvfs shm;
    bool works;

    works = info_try_memfd(0, 4096, note, sizeof(note));
    aq_info_yesno("memfd", "memfd_create", works, works ? NULL : note);
    info_huge_pages();
    note[0] = '\0';
    works = info_try_vm_read(note, sizeof(note));
    aq_info_yesno("process_vm_readv", "process_vm_readv", works, works ? NULL : note);
    if (info_read_line("/proc/sys/kernel/yama/ptrace_scope", value, sizeof(value)))
        aq_info_text("ptrace_scope", "kernel.yama.ptrace_scope", value, NULL);
    if (statvfs("/dev/shm", &shm) == 0)
        aq_info_bytes("dev_shm", "/dev/shm", (uint64_t)shm.f_blocks * shm.f_frsize, "not needed");
    else
        aq_info_text(NULL, "/dev/shm", "missing", "not needed");
}

/* ---- topology ------------------------------------------------------------------------------ */

#ifdef HAVE_HWLOC
/* the hwloc calls that are needed, found at run time so that nothing links with hwloc */
struct info_hwloc {
    int (*init)(hwloc_topology_t *);
    int (*load)(hwloc_topology_t);
    void (*destroy)(hwloc_topology_t);
    int (*type_depth)(hwloc_topology_t, hwloc_obj_type_t);
    unsigned (*nbobjs)(hwloc_topology_t, int);
    hwloc_obj_t (*obj)(hwloc_topology_t, int, unsigned);
};

static bool info_hwloc_open(struct info_hwloc *h)
{
    void *lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);

    if (lib == NULL)
        return false;
    /* POSIX lets a data pointer from dlsym() be stored as a function pointer this way */
    *(void **)&h->init = dlsym(lib, "hwloc_topology_init");
    *(void **)&h->load = dlsym(lib, "hwloc_topology_load");
    *(void **)&h->destroy = dlsym(lib, "hwloc_topology_destroy");
    *(void **)&h->type_depth = dlsym(lib, "hwloc_get_type_depth");
    *(void **)&h->nbobjs = dlsym(lib, "hwloc_get_nbobjs_by_depth");
    *(void **)&h->obj = dlsym(lib, "hwloc_get_obj_by_depth");
    return h->init != NULL && h->load != NULL && h->destroy != NULL && h->type_depth != NULL
           && h->nbobjs != NULL && h->obj != NULL;
}

static void info_hwloc_summary(const struct info_hwloc *h, hwloc_topology_t topology, char *text,
                               size_t size)
{
    static const struct {
        hwloc_obj_type_t type;
        const char *name;
    } kinds[] = { { HWLOC_OBJ_PACKAGE, "package" }, { HWLOC_OBJ_NUMANODE, "NUMA node" },
                  { HWLOC_OBJ_L3CACHE, "L3" },      { HWLOC_OBJ_L2CACHE, "L2" },
                  { HWLOC_OBJ_CORE, "core" },       { HWLOC_OBJ_PU, "hardware thread" } };
    size_t used = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && used < size; i++) {
        int depth = h->type_depth(topology, kinds[i].type);
        bool cache = kinds[i].type == HWLOC_OBJ_L3CACHE || kinds[i].type == HWLOC_OBJ_L2CACHE;
        unsigned count;

        if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || (count = h->nbobjs(topology, depth)) == 0)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%u %s%s", used > 0 ? ", " : "", count,
                                 kinds[i].name, count > 1 && !cache ? "s" : "");
        if (cache && used < size)
            used += (size_t)snprintf(
                text + used, size - used, " of %llu KB",
                (unsigned long long)h->obj(topology, depth, 0)->attr->cache.size >> 10);
    }
}

static void info_topology(void)
{
    struct info_hwloc h;
    hwloc_topology_t topology;
    char text[256] = "";

    if (!info_hwloc_open(&h)) {
        aq_info_yesno("hwloc", "hwloc", false,
                      "libhwloc.so.15 is not installed; needed for "
                      "gasnetrun --bind");
        return;
    }
    if (h.init(&topology) != 0)
        return;
    if (h.load(topology) == 0)
        info_hwloc_summary(&h, topology, text, sizeof(text));
    h.destroy(topology);
    aq_info_yesno("hwloc", NULL, true, NULL);
    aq_info_text("topology", "topology (hwloc)", text, NULL);
}
#else
static void info_topology(void)
{
    aq_info_yesno("hwloc", "hwloc", false, "this build was made without it");
}
#endif

void aq_info_machine(void)
{
    aq_info_section("machine", "Machine");
    info_system();
    info_cores();
    info_topology();
    info_memory();
    info_sharing();
    aq_info_section_end();
}
