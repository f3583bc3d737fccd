/*
 * armci_local.c - ARMCI_Malloc_local: memory of the caller alone, from its segment, which the
 * network may have registered and where a peer may answer a get.
 *
 * Such memory outlives ARMCI, as memory of malloc would: Global Arrays keeps its stack and heap in
 * it over ARMCI_Finalize and the next ARMCI_Init. The job's end unmaps the segment. So the pages of
 * allocations that remain are mapped elsewhere meanwhile, and afterwards where they were.
 *
 * Owns      a list of the allocations, and the ranges of pages that a job left
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of freed local memory that stays: Global Arrays allocates a buffer of 24 MiB for each
 * product, and touches some of it. Pages that come and go cost more than a small product. */
#define LOCAL_RESERVE ((size_t)32 << 20)

/* Pages of allocations that have outlived their job. */
struct range {
    char *base;
    size_t bytes;
    char *parked; /* where they are mapped while the job ends */
    int users;    /* allocations in it */
};

struct allocation {
    struct allocation *next;
    char *base;
    size_t bytes;
    struct range *range; /* NULL: it is of the running job's heap */
};

static struct allocation *list;

static uintptr_t page_below(const char *at)
{
    return (uintptr_t)at & ~(uintptr_t)(GASNET_PAGESIZE - 1);
}

static uintptr_t page_above(const char *at)
{
    return page_below(at + GASNET_PAGESIZE - 1);
}

void *PARMCI_Malloc_local(armci_size_t bytes)
{
    struct allocation *new;

    aq_armci_check_proc("ARMCI_Malloc_local", 0);
    if (bytes < 0 || (new = malloc(sizeof(*new))) == NULL)
        return NULL;
    new->bytes = bytes == 0 ? 1 : (size_t)bytes;
    new->base = aq_armci_heap_alloc(aq_armci.heap, new->bytes);
    if (new->base == NULL) {
        free(new);
        return NULL;
    }
    new->range = NULL;
    new->next = list;
    list = new;
    return new->base;
}
AQ_ARMCI_TWIN(Malloc_local);

static void leave_range(struct range *range)
{
    if (--range->users > 0)
        return;
    munmap(range->base, range->bytes);
    free(range);
}

int PARMCI_Free_local(void *ptr)
{
    struct allocation **link = &list, *found;

    if (ptr == NULL)
        return 0;
    while (*link != NULL && (*link)->base != ptr)
        link = &(*link)->next;
    found = *link;
    if (found == NULL)
        return FAIL;
    *link = found->next;
    if (found->range != NULL)
        leave_range(found->range);
    else
        aq_armci_heap_free(aq_armci.heap, ptr, LOCAL_RESERVE);
    free(found);
    return 0;
}
AQ_ARMCI_TWIN(Free_local);

bool aq_armci_local_any(void)
{
    for (const struct allocation *at = list; at != NULL; at = at->next)
        if (at->range == NULL)
            return true;
    return false;
}

/* --- the end of a job --- */

static int by_address(const void *left, const void *right)
{
    const struct allocation *a = *(struct allocation *const *)left,
                            *b = *(struct allocation *const *)right;

    return (a->base > b->base) - (a->base < b->base);
}

/* Returns the allocations of the running job in the order of their addresses, and how many. */
static struct allocation **sorted(size_t *count_out)
{
    struct allocation **all;
    size_t count = 0;

    for (struct allocation *at = list; at != NULL; at = at->next)
        count += at->range == NULL;
    all = malloc((count + 1) * sizeof(struct allocation *));
    if (all == NULL)
        aq_armci_fatal("ARMCI_Finalize: no memory for a list of %zu local allocations", count);
    count = 0;
    for (struct allocation *at = list; at != NULL; at = at->next)
        if (at->range == NULL)
            all[count++] = at;
    qsort(all, count, sizeof(struct allocation *), by_address);
    *count_out = count;
    return all;
}

/* Moves pages to another address, where nothing is mapped or what is mapped may go. */
static void move_pages(char *from, char *to, size_t bytes)
{
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        aq_armci_fatal("ARMCI_Finalize: local memory cannot be kept: %s", strerror(errno));
}

static char *reserve(char *where, size_t bytes, int flags)
{
    char *got =
        mmap(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    if (got == MAP_FAILED || (where != NULL && got != where))
        aq_armci_fatal("ARMCI_Finalize: no addresses for local memory: %s", strerror(errno));
    return got;
}

static struct range *park(uintptr_t base, uintptr_t end)
{
    struct range *range = calloc(1, sizeof(*range));

    if (range == NULL)
        aq_armci_fatal("ARMCI_Finalize: no memory for what is known about local memory");
    range->base = (char *)base;
    range->bytes = end - base;
    range->parked = reserve(NULL, range->bytes, 0);
    move_pages(range->base, range->parked, range->bytes);
    return range;
}

void aq_armci_local_park(void)
{
    size_t count;
    struct allocation **all = sorted(&count);

    for (size_t first = 0, next; first < count; first = next) {
        uintptr_t end = page_above(all[first]->base + all[first]->bytes);
        struct range *range;

        for (next = first + 1; next < count && page_below(all[next]->base) <= end; next++)
            end = page_above(all[next]->base + all[next]->bytes);
        range = park(page_below(all[first]->base), end);
        for (size_t i = first; i < next; i++) {
            all[i]->range = range;
            range->users++;
        }
    }
    free(all);
}

void aq_armci_local_return(void)
{
    for (const struct allocation *at = list; at != NULL; at = at->next) {
        struct range *range = at->range;

        if (range == NULL || range->parked == NULL)
            continue;
        reserve(range->base, range->bytes, MAP_FIXED_NOREPLACE);
        move_pages(range->parked, range->base, range->bytes);
        range->parked = NULL;
    }
}
