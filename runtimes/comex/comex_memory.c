/*
 * comex_memory.c - memory that the members of a group can reach, and local memory.
 *
 * Threads   the program's
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

#include <limits.h>

/* A size for ARMCI, which refuses negative ones on all ranks. */
static armci_size_t size_of(size_t bytes)
{
    return bytes > LONG_MAX ? -1 : (armci_size_t)bytes;
}

int comex_malloc(void **ptrs, size_t bytes, comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    return aq_comex_code(ARMCI_Malloc_group(ptrs, size_of(bytes), of));
}

int comex_malloc_mem_dev(void **ptrs, size_t bytes, comex_group_t group, const char *device)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    return aq_comex_code(PARMCI_Malloc_group_memdev(ptrs, size_of(bytes), of, device));
}

int comex_free(void *ptr, comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    return aq_comex_code(ARMCI_Free_group(ptr, of));
}

int comex_free_dev(void *ptr, comex_group_t group)
{
    return comex_free(ptr, group);
}

void *comex_malloc_local(size_t bytes)
{
    return PARMCI_Malloc_local(size_of(bytes));
}

int comex_free_local(void *ptr)
{
    return aq_comex_code(PARMCI_Free_local(ptr));
}
