/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fh_memmon_unit.h - shared by the tests of firehose's memory monitor: a monitor that records what
 * it is told, and memory for it.
 */
#ifndef FH_MEMMON_UNIT_H
#define FH_MEMMON_UNIT_H

#include "tests/unit/aq_unit.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/aq_platform.h"
#include "other/firehose/aq_fh_memmon.h"

#define PAGE ((size_t)4096)
enum { PAGES = 8, UNMAPPED_MAX = 64 };

struct unmapped {
    uintptr_t start, end;
};

static struct aq_fh_memmon *memmon;
static struct unmapped unmapped[UNMAPPED_MAX];
static unsigned unmapped_count;

static inline void note_unmapped(void *arg, uintptr_t addr, size_t nbytes)
{
    assert_ptr_equal(arg, &unmapped);
    unmapped[unmapped_count++ % UNMAPPED_MAX] = (struct unmapped){ addr, addr + nbytes };
}

static inline int setup(void **state)
{
    const char *why;

    (void)state;
    unmapped_count = 0;
    memmon = NULL;
    return aq_fh_memmon_open(AQ_FH_MEMMON_AUTO, note_unmapped, &unmapped, &memmon, &why) == AQ_OK
               ? 0
               : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    aq_fh_memmon_close(memmon);
    return 0;
}

static inline void events_or_skip(void)
{
    if (aq_fh_memmon_mode(memmon) != AQ_FH_MEMMON_EVENTS)
        skip();
}

static inline bool quiet(void)
{
    return !(memmon->changing != NULL && memmon->changing(memmon))
           && atomic_load(&memmon->unsettled) == 0;
}

/* As aq_fh_settle() does. */
static inline void settle(void)
{
    if (!quiet())
        memmon->settle(memmon);
}

static inline int cover(const void *addr, size_t len)
{
    return memmon->cover(memmon, (uintptr_t)addr & ~(PAGE - 1),
                         aq_round_up((uintptr_t)addr % PAGE + len, PAGE));
}

static inline bool was_reported(const void *addr, size_t len)
{
    const uintptr_t start = (uintptr_t)addr, end = start + len;
    uintptr_t at = start;

    settle();
    for (unsigned again = 0; again < unmapped_count && at < end; again++)
        for (unsigned i = 0; i < unmapped_count && i < UNMAPPED_MAX; i++)
            if (unmapped[i].start <= at && unmapped[i].end > at)
                at = unmapped[i].end;
    return at >= end;
}

/* Was all memory declared changed? So it is when the thread of events gets no processor for too
 * long. */
static inline bool has_flooded(void)
{
    struct aq_fh_memmon_counts counts;

    aq_fh_memmon_counts(memmon, &counts);
    return counts.floods != 0;
}

static inline char *map(size_t pages)
{
    char *addr =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(addr, MAP_FAILED);
    return addr;
}

/* PAGES pages that are covered and settled. */
static inline char *covered(void)
{
    char *addr = map(PAGES);

    memset(addr, 1, PAGES * PAGE);
    assert_int_equal(cover(addr, PAGES * PAGE), AQ_OK);
    settle();
    assert_true(quiet());
    unmapped_count = 0;
    return addr;
}

static inline void rest(unsigned ms)
{
    const struct timespec time = { ms / 1000, (long)(ms % 1000) * 1000000 };

    nanosleep(&time, NULL);
}

#endif
