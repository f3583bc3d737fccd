/*
 * comex_sync.c - barriers, fences, mutexes.
 *
 * Barriers and fences complete the non-blocking operations of the caller first, so that programs
 * need no wait before them.
 *
 * Threads   the program's
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

/* of NULL: the world */
static void fence(ARMCI_Group *of)
{
    aq_comex_requests_complete();
    if (of == NULL)
        PARMCI_AllFence();
    else
        PARMCI_GroupFence(of);
}

int comex_barrier(comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_own_group(group, &of))
        return COMEX_FAILURE;
    fence(of);
    parmci_msg_group_barrier(of);
    return COMEX_SUCCESS;
}

int comex_fence_all(comex_group_t group)
{
    ARMCI_Group *of;

    if (!aq_comex_group(group, &of))
        return COMEX_FAILURE;
    fence(of);
    return COMEX_SUCCESS;
}

int comex_fence_proc(int proc, comex_group_t group)
{
    const int rank = aq_comex_member(proc, group);

    if (rank < 0)
        return COMEX_FAILURE;
    aq_comex_requests_complete();
    PARMCI_Fence(rank);
    return COMEX_SUCCESS;
}

int comex_create_mutexes(int num)
{
    return aq_comex_code(PARMCI_Create_mutexes(num));
}

int comex_destroy_mutexes(void)
{
    return aq_comex_code(PARMCI_Destroy_mutexes());
}

int comex_lock(int mutex, int proc)
{
    PARMCI_Lock(mutex, proc);
    return COMEX_SUCCESS;
}

int comex_unlock(int mutex, int proc)
{
    PARMCI_Unlock(mutex, proc);
    return COMEX_SUCCESS;
}
