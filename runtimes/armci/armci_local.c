/*
 * armci_local.c - ARMCI_Malloc_local: memory of the caller alone, from its segment, which the
 * network may have registered and where a peer may answer a get.
 *
 * Such memory outlives ARMCI, as memory of malloc would: Global Arrays keeps its stack and heap in
 * it over ARMCI_Finalize and the next ARMCI_Init. The job's end unmaps the segment. So the pages of
 * what remains are mapped a second time before the end, or copied, and moved to where they were
 * afterwards. The segment itself stays as it is: a hole in it could be taken by another mapping,
 * which the end would unmap.
 *
 * Owns      the allocations that have outlived their jobs, and their ranges of pages; the heap of
 *           the segment has those of the running job, with a mark
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes of freed local memory that stays: Global Arrays allocates a buffer for each product, of
 * 24 MiB on one host and 40 MiB on several, and touches some of it. Pages that come and go cost
 * more than a small product. */
#define LOCAL_RESERVE ((size_t)64 << 20)

/* Pages of allocations that have outlived their job. */
struct range {
    struct range *next; /* in parked */
    char *base, *end;
    char *second; /* where they are mapped while the job ends */
    int users;    /* allocations in it */
};

struct allocation {
    struct allocation *next;
    char *base;
    struct range *range;
};

static struct allocation *remaining;
static struct range *parked; /* while the job ends, the last one first */

void *PARMCI_Malloc_local(armci_size_t bytes)
{
    void *ptr;

    aq_armci_check_proc("ARMCI_Malloc_local", 0);
    if (bytes < 0)
        return NULL;
    ptr = aq_armci_heap_alloc(aq_armci.heap, bytes == 0 ? 1 : (size_t)bytes);
    if (ptr != NULL)
        aq_armci_heap_retain(aq_armci.heap, ptr);
    return ptr;
}
AQ_ARMCI_TWIN(Malloc_local);

static void leave_range(struct range *range)
{
    if (--range->users > 0)
        return;
    munmap(range->base, (size_t)(range->end - range->base));
    free(range);
}

static int free_remaining(const void *ptr)
{
    struct allocation **link = &remaining, *found;

    while (*link != NULL && (*link)->base != ptr)
        link = &(*link)->next;
    found = *link;
    if (found == NULL)
        return FAIL;
    *link = found->next;
    leave_range(found->range);
    free(found);
    return 0;
}

int PARMCI_Free_local(void *ptr)
{
    if (ptr == NULL)
        return 0;
    if (aq_armci.heap != NULL && aq_armci_heap_free(aq_armci.heap, ptr, LOCAL_RESERVE) == 0)
        return 0;
    return free_remaining(ptr);
}
AQ_ARMCI_TWIN(Free_local);

/* --- the end of a job --- */

static char *page_below(const char *at)
{
    return (char *)((uintptr_t)at & ~(uintptr_t)(GASNET_PAGESIZE - 1));
}

static char *page_above(const char *at)
{
    return page_below(at + GASNET_PAGESIZE - 1);
}

/* Notes an allocation, whose pages join those of the one before if they touch. */
static void note(char *ptr, size_t bytes)
{
    struct allocation *new = malloc(sizeof(*new));
    char *base = page_below(ptr), *end = page_above(ptr + bytes);

    if (parked == NULL || base > parked->end) {
        struct range *range = calloc(1, sizeof(*range));

        if (range == NULL)
            aq_armci_fatal("ARMCI_Finalize: no memory for what is known about local memory");
        *range = (struct range){ .next = parked, .base = base };
        parked = range;
    }
    if (new == NULL)
        aq_armci_fatal("ARMCI_Finalize: no memory for what is known about local memory");
    parked->end = end;
    parked->users++;
    *new = (struct allocation){ remaining, ptr, parked };
    remaining = new;
}

/* mremap() by itself: UCX, which MPICH uses, replaces libc's by one that forgets its last argument.
 * Returns NULL if the system refuses. */
static char *remap(char *from, size_t bytes, size_t new_bytes, int flags, char *to)
{
    const long got = syscall(SYS_mremap, from, bytes, new_bytes, (unsigned long)flags, to);

    return got == -1 ? NULL : (char *)got;
}

/* Maps shared pages a second time (a size of 0 asks for that). What cannot be mapped so, huge pages
 * for instance, is copied. */
static char *second_of(char *base, size_t bytes)
{
    char *second = remap(base, 0, bytes, MREMAP_MAYMOVE, NULL);

    if (second != NULL) {
        madvise(second, bytes, MADV_DOFORK);
        return second;
    }
    second = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
    if (second == MAP_FAILED)
        aq_armci_fatal("ARMCI_Finalize: %zu bytes of local memory cannot be kept: %s", bytes,
                       strerror(errno));
    memcpy(second, base, bytes);
    return second;
}

void aq_armci_local_park(void)
{
    aq_armci_heap_each_retained(aq_armci.heap, note);
    for (struct range *range = parked; range != NULL; range = range->next)
        range->second = second_of(range->base, (size_t)(range->end - range->base));
}

/* The addresses are reserved first: they may not be those of another mapping. */
static void move_back(struct range *range)
{
    const size_t bytes = (size_t)(range->end - range->base);
    char *got = mmap(range->base, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

    if (got != range->base
        || remap(range->second, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, range->base)
               != range->base)
        aq_armci_fatal("ARMCI_Finalize: %zu bytes of local memory cannot be kept: %s", bytes,
                       strerror(errno));
}

void aq_armci_local_return(void)
{
    while (parked != NULL) {
        struct range *range = parked;

        parked = range->next;
        move_back(range);
    }
}
