/*
 * armci_memory.c - memory that other ranks reach: ARMCI_Malloc and the calls like it, and
 * ARMCI_Memget.
 *
 * Each rank allocates in its own segment, and an allgather exchanges the addresses. If one rank
 * fails, all ranks fail.
 *
 * Threads   the program's
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_impl.h"

#include <stdlib.h>
#include <string.h>

/* What a rank contributes to the allgather. where is NULL if the rank asked for 0 bytes. */
struct part {
    void *where;
    uint64_t failed;
};

/* Allocates memory that other ranks may reach. */
static void *allocate(size_t bytes)
{
    void *ptr = aq_armci_heap_alloc(aq_armci.heap, bytes);

    if (ptr != NULL)
        aq_armci_note_memory(ptr, bytes);
    return ptr;
}

static int release(void *ptr)
{
    aq_armci_unnote_memory(ptr);
    return aq_armci_heap_free(aq_armci.heap, ptr, 0) == 0 ? 0 : FAIL;
}

static struct part allocate_part(armci_size_t bytes)
{
    struct part part = { NULL, 0 };

    if (bytes < 0) {
        part.failed = 1;
    } else if (bytes > 0) {
        part.where = allocate((size_t)bytes);
        part.failed = part.where == NULL;
    }
    return part;
}

static bool any_failed(const struct part *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (parts[i].failed)
            return true;
    return false;
}

int aq_armci_malloc(void *ptr_arr[], armci_size_t bytes, MPI_Comm comm, const int *members, int n)
{
    struct part *parts = malloc((size_t)n * sizeof(*parts));
    struct part own = allocate_part(bytes);

    if (parts == NULL)
        aq_armci_fatal("no memory for %d addresses", n);
    aq_armci_mpi_allgather(&own, parts, (int)sizeof(own), comm);
    if (any_failed(parts, n)) {
        if (own.where != NULL)
            release(own.where);
        memset(ptr_arr, 0, (size_t)n * sizeof(void *));
        free(parts);
        return FAIL;
    }
    for (int i = 0; i < n; i++) {
        const struct aq_armci_peer *peer = &aq_armci.peers[members == NULL ? i : members[i]];

        ptr_arr[i] = parts[i].where == NULL ? NULL : aq_armci_mapped(peer, parts[i].where);
    }
    free(parts);
    return 0;
}

/* After the barrier every operation that a member has started on the memory has arrived, so its
 * owner may reuse it. */
int aq_armci_free(void *ptr, MPI_Comm comm)
{
    aq_armci_complete_handles();
    PARMCI_AllFence();
    aq_armci_mpi_barrier(comm);
    return ptr == NULL ? 0 : release(ptr);
}

void aq_armci_forget_memory(void)
{
    aq_armci_unnote_all();
    aq_armci_heap_reset(aq_armci.heap);
}

static void must_run(const char *call)
{
    aq_armci_check_proc(call, 0);
}

int PARMCI_Malloc(void *ptr_arr[], armci_size_t bytes)
{
    must_run("ARMCI_Malloc");
    return aq_armci_malloc(ptr_arr, bytes, aq_armci.comm, NULL, aq_armci.nproc);
}
AQ_ARMCI_TWIN(Malloc);

int PARMCI_Malloc_memdev(void *ptr_arr[], armci_size_t bytes, const char *device)
{
    (void)device;
    return PARMCI_Malloc(ptr_arr, bytes);
}
AQ_ARMCI_TWIN(Malloc_memdev);

int PARMCI_Free(void *ptr)
{
    must_run("ARMCI_Free");
    return aq_armci_free(ptr, aq_armci.comm);
}
AQ_ARMCI_TWIN(Free);

int PARMCI_Free_memdev(void *ptr)
{
    return PARMCI_Free(ptr);
}
AQ_ARMCI_TWIN(Free_memdev);

int ARMCI_Malloc_group(void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group)
{
    const ARMCI_Group *of = aq_armci_group(group);

    must_run("ARMCI_Malloc_group");
    if (of->rank < 0)
        return FAIL;
    return aq_armci_malloc(ptr_arr, bytes, of->comm, of->grp_to_abs, of->size);
}

int PARMCI_Malloc_group_memdev(void *ptr_arr[], armci_size_t bytes, ARMCI_Group *group,
                               const char *device)
{
    (void)device;
    return ARMCI_Malloc_group(ptr_arr, bytes, group);
}
AQ_ARMCI_TWIN(Malloc_group_memdev);

int ARMCI_Free_group(void *ptr, ARMCI_Group *group)
{
    const ARMCI_Group *of = aq_armci_group(group);

    must_run("ARMCI_Free_group");
    return of->rank < 0 ? FAIL : aq_armci_free(ptr, of->comm);
}

/* --- memory that one rank allocates alone, described for other ranks --- */

void PARMCI_Memget(size_t bytes, armci_meminfo_t *meminfo, int flag)
{
    void *ptr;

    must_run("ARMCI_Memget");
    if (flag != 0 || bytes == 0)
        aq_armci_fatal("ARMCI_Memget: bytes is %zu and flag %d; wanted are more than 0, and 0",
                       bytes, flag);
    ptr = allocate(bytes);
    memset(meminfo, 0, sizeof(*meminfo));
    meminfo->addr = meminfo->armci_addr = ptr;
    meminfo->size = ptr == NULL ? 0 : bytes;
    meminfo->cpid = aq_armci.me;
}
AQ_ARMCI_TWIN(Memget);

void *PARMCI_Memat(armci_meminfo_t *meminfo, long offset)
{
    aq_armci_check_proc("ARMCI_Memat", meminfo->cpid);
    if (meminfo->cpid == aq_armci.me || meminfo->armci_addr == NULL)
        return meminfo->addr;
    return (char *)aq_armci_mapped(&aq_armci.peers[meminfo->cpid], meminfo->armci_addr) + offset;
}
AQ_ARMCI_TWIN(Memat);

void ARMCI_Memdt(armci_meminfo_t *meminfo, long offset)
{
    (void)meminfo;
    (void)offset;
}

void ARMCI_Memctl(armci_meminfo_t *meminfo)
{
    must_run("ARMCI_Memctl");
    if (meminfo->cpid == aq_armci.me && meminfo->addr != NULL)
        release(meminfo->addr);
    meminfo->addr = meminfo->armci_addr = NULL;
}

void ARMCI_Copy(void *src, void *dst, int bytes)
{
    memmove(dst, src, (size_t)bytes);
}
