/*
 * lu_armci.c - ranks that are processes, over ARMCI.
 *
 * Owns      the memory of all ranks, from one ARMCI_Malloc, and a handle for each slot
 * Threads   one a rank
 * Uses      armci.h, mpi.h
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include <armci.h>
#include <mpi.h>

#include "lu.h"

static void **memory; /* by rank */
static armci_hdl_t *handles;

int lu_comm_run(int *argc, char ***argv, int threads, int (*body)(void *), void *arg)
{
    (void)threads;
    MPI_Init(argc, argv);
    ARMCI_Init_args(argc, argv);

    int code = body(arg);

    armci_msg_igop(&code, 1, "max");
    ARMCI_Finalize();
    MPI_Finalize();
    return code;
}

int lu_comm_rank(void)
{
    return armci_msg_me();
}

int lu_comm_ranks(void)
{
    return armci_msg_nproc();
}

int lu_comm_hosts(void)
{
    const int hosts = armci_domain_count(ARMCI_DOMAIN_SMP);

    for (int host = 0; host < hosts; host++)
        if (armci_domain_nprocs(ARMCI_DOMAIN_SMP, host) * hosts != armci_msg_nproc())
            return 0;
    return hosts;
}

bool lu_comm_same_host(int rank)
{
    return armci_domain_same_id(ARMCI_DOMAIN_SMP, rank) != 0;
}

const char *lu_comm_kind(void)
{
    return "rank";
}

bool lu_comm_loads_only(void)
{
    return false;
}

void *lu_comm_memory(size_t bytes, int slots)
{
    int me = armci_msg_me(), missing;

    memory = calloc((size_t)armci_msg_nproc(), sizeof(*memory));
    handles = calloc((size_t)slots, sizeof(*handles));
    missing = memory == NULL || handles == NULL;
    armci_msg_igop(&missing, 1, "max");
    /* a rank without blocks still takes part */
    if (missing || ARMCI_Malloc(memory, (armci_size_t)(bytes + 1)) != 0)
        return NULL;
    return memory[me];
}

void lu_comm_memory_free(void)
{
    if (memory != NULL && memory[armci_msg_me()] != NULL)
        ARMCI_Free(memory[armci_msg_me()]);
    free(memory);
    free(handles);
    memory = NULL;
    handles = NULL;
}

const char *lu_comm_address(int rank)
{
    return memory[rank];
}

void lu_comm_get(void *to, int rank, size_t offset, size_t bytes)
{
    ARMCI_Get((char *)memory[rank] + offset, to, (int)bytes, rank);
}

void lu_comm_get_start(void *to, int rank, size_t offset, size_t bytes, int slot)
{
    ARMCI_INIT_HANDLE(&handles[slot]);
    ARMCI_NbGet((char *)memory[rank] + offset, to, (int)bytes, rank, &handles[slot]);
}

void lu_comm_get_wait(int slot)
{
    ARMCI_Wait(&handles[slot]);
}

void lu_comm_barrier(void)
{
    ARMCI_Barrier();
}

void lu_comm_sum(long *values, int count)
{
    armci_msg_lgop(values, count, "+");
}

void lu_comm_max(double *values, int count)
{
    armci_msg_dgop(values, count, "max");
}

double lu_comm_now(void)
{
    return MPI_Wtime();
}

_Noreturn void lu_comm_abort(const char *why)
{
    ARMCI_Error(why, 1);
    abort();
}
