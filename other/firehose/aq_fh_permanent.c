/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aq_fh_permanent.c - memory that stays as long as the process; firehose without events.
 *
 * Without events nothing notices that memory was unmapped. So only memory that cannot go stays
 * registered: the program's code and data, its stack, and the heap if malloc is the C library's.
 * Malloc is then told to keep the heap (M_TRIM_THRESHOLD) and to use it for large blocks too
 * (M_MMAP_MAX). Everything else is registered for one transfer. The program must call
 * firehose_forget() before malloc_trim(), sbrk() downwards, or MADV_DONTNEED in the heap.
 */
#include "other/firehose/aq_fh_permanent.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/aq_env.h"
#include "base/aq_log.h"
#include "base/aq_platform.h"
#include "base/aq_rc.h"
#include "other/firehose/aq_fh_ranges.h"
#include "other/firehose/aq_fh_vma.h"
#include "other/firehose/aq_fh_memmon.h"

struct aq_fh *aq_fh_job;

static struct aq_fh_ranges aq_fh_program; /* the main program: it cannot be unloaded */
static uintptr_t aq_fh_heap;              /* where brk() began; 0: the heap is not kept */

/* --- the program --- */

static struct aq_fh_range aq_fh_permanent_segment(const struct dl_phdr_info *object, int i)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t start = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;

    return (struct aq_fh_range){ start & ~(page - 1),
                                 aq_round_up(start + object->dlpi_phdr[i].p_memsz, page) };
}

static int aq_fh_permanent_first(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const struct aq_fh_range segment = aq_fh_permanent_segment(object, i);

        if (object->dlpi_phdr[i].p_type == PT_LOAD)
            aq_fh_ranges_add(&aq_fh_program, segment.start, segment.end);
    }
    return 1; /* the program itself comes first */
}

static int aq_fh_permanent_belongs(struct dl_phdr_info *object, size_t size, void *arg)
{
    const struct aq_fh_range *range = arg;

    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const struct aq_fh_range segment = aq_fh_permanent_segment(object, i);

        if (object->dlpi_phdr[i].p_type == PT_LOAD && segment.start <= range->start
            && segment.end >= range->end)
            return 1;
    }
    return 0;
}

void aq_fh_permanent_look(void)
{
    if (aq_fh_program.count == 0)
        dl_iterate_phdr(aq_fh_permanent_first, NULL);
}

bool aq_fh_permanent_is_program(uintptr_t start, uintptr_t end)
{
    struct aq_fh_range range = { start, end };

    return dl_iterate_phdr(aq_fh_permanent_belongs, &range) != 0;
}

/* --- the heap --- */

/* Is malloc the C library's? Another one has settings of its own and may use the heap as it likes.
 * */
static bool aq_fh_permanent_malloc_is_libc(void)
{
    void *functions[] = { dlsym(RTLD_DEFAULT, "malloc"), dlsym(RTLD_DEFAULT, "free"),
                          dlsym(RTLD_DEFAULT, "mallopt"), dlsym(RTLD_DEFAULT, "getenv") };
    void *first = NULL;

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        Dl_info info;

        if (functions[i] == NULL || dladdr(functions[i], &info) == 0)
            return false;
        if (first == NULL)
            first = info.dli_fbase;
        if (info.dli_fbase != first || first == (void *)aq_fh_program.range[0].start)
            return false;
    }
    return true;
}

bool aq_fh_permanent_keep_heap(void)
{
    struct aq_fh_vma heap;

    if (!aq_fh_permanent_malloc_is_libc())
        return false;
#ifdef M_TRIM_THRESHOLD /* glibc */
    if (mallopt(M_TRIM_THRESHOLD, -1) == 0 || mallopt(M_MMAP_MAX, 0) == 0)
        return false;
    aq_fh_heap = aq_fh_vma_heap(&heap) == AQ_OK ? heap.start : (uintptr_t)sbrk(0);
#endif
    return aq_fh_heap != 0;
}

/* --- what stays --- */

int aq_fh_permanent_end(uintptr_t addr, uintptr_t *end_out)
{
    struct aq_fh_vma vma;

    for (size_t i = 0; i < aq_fh_program.count; i++)
        if (aq_fh_program.range[i].start <= addr && addr < aq_fh_program.range[i].end) {
            *end_out = aq_fh_program.range[i].end;
            return AQ_OK;
        }
    if (aq_fh_heap != 0 && aq_fh_heap <= addr && addr < (uintptr_t)sbrk(0)) {
        *end_out = (uintptr_t)sbrk(0);
        return AQ_OK;
    }
    if (aq_fh_vma_find(addr, &vma) == AQ_OK && vma.stack) {
        *end_out = vma.end;
        return AQ_OK;
    }
    return AQ_ERR_ARG;
}

bool aq_fh_permanent_covers(uintptr_t start, uintptr_t end)
{
    while (start < end)
        if (aq_fh_permanent_end(start, &start) != AQ_OK)
            return false;
    return true;
}

/* --- the memory monitor of the job --- */

static struct aq_fh_memmon
    *_Atomic aq_fh_memmon_job; /* NULL: no job, or nothing is registered in it */

static void aq_fh_memmon_job_changed(void *arg, uintptr_t addr, size_t nbytes)
{
    (void)arg;
    if (aq_fh_job != NULL)
        aq_fh_invalidate(aq_fh_job, addr, nbytes);
}

int aq_fh_memmon_job_open(struct aq_fh_memmon **memmon_out)
{
    const enum aq_fh_memmon_mode mode =
        (enum aq_fh_memmon_mode)aq_env_choice(AQ_ENV_AQ_FIREHOSE_MONITOR);
    const bool keep_heap = aq_env_bool(AQ_ENV_DISABLE_MUNMAP);
    const char *why = NULL;
    struct aq_fh_memmon *memmon;
    int rc = aq_fh_memmon_open(mode, aq_fh_memmon_job_changed, NULL, &memmon, &why);

    if (rc == AQ_ERR_SYS)
        return aq_fail(
            rc,
            "AQ_FIREHOSE_MONITOR=events, but the kernel does not report unmapped memory: %s. Leave "
            "the variable unset: then registrations of memory that may be unmapped are not kept",
            why);
    if (rc != AQ_OK)
        return rc;
    if (why != NULL)
        AQ_LOG(INFO, FIREHOSE,
               "no events for unmapped memory (%s): only the program's data, stack and heap stay "
               "registered between transfers",
               why);
    /* unset: on for a monitor that depends on it */
    if (keep_heap
        && (aq_env_is_set(AQ_ENV_DISABLE_MUNMAP)
            || aq_fh_memmon_mode(memmon) == AQ_FH_MEMMON_MALLOC)
        && !aq_fh_permanent_keep_heap())
        AQ_LOG(
            INFO, FIREHOSE,
            "malloc is not the C library's: its memory is registered for one transfer at a time");
    /* release: pairs with the acquire in firehose_forget() */
    atomic_store_explicit(&aq_fh_memmon_job, memmon, memory_order_release);
    *memmon_out = memmon;
    return AQ_OK;
}

void aq_fh_memmon_job_close(void)
{
    /* acq_rel: what was told of before has been seen to, later calls find nothing */
    struct aq_fh_memmon *memmon =
        atomic_exchange_explicit(&aq_fh_memmon_job, NULL, memory_order_acq_rel);

    if (memmon != NULL)
        aq_fh_memmon_close(memmon);
}

void firehose_forget(const void *addr, size_t nbytes)
{
    /* acquire: pairs with the release in aq_fh_memmon_job_open() */
    struct aq_fh_memmon *memmon = atomic_load_explicit(&aq_fh_memmon_job, memory_order_acquire);

    if (memmon != NULL)
        aq_fh_memmon_forget(memmon, addr, nbytes);
}
