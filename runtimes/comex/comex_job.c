/*
 * comex_job.c - start, end and errors, which are those of ARMCI.
 *
 * Threads   the program's; collective over the communicator
 * Uses      comex_impl.h, armci.h
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_impl.h"

/* Forgets the groups and requests of a job that ARMCI_Finalize() has ended. Returns false if a job
 * is running. */
static bool forget_last_job(void)
{
    if (PARMCI_Initialized())
        return false;
    aq_comex_requests_forget();
    aq_comex_groups_forget();
    return true;
}

int comex_init_args(int *argc, char ***argv)
{
    (void)forget_last_job();
    return aq_comex_code(PARMCI_Init_args(argc, argv));
}

int comex_init(void)
{
    (void)forget_last_job();
    return aq_comex_code(PARMCI_Init());
}

int comex_init_comm(MPI_Comm comm)
{
    (void)forget_last_job();
    return PARMCI_Init_mpi_comm(comm) == 1 ? COMEX_SUCCESS : COMEX_FAILURE;
}

int comex_initialized(void)
{
    return PARMCI_Initialized();
}

int comex_finalize(void)
{
    if (forget_last_job())
        return COMEX_SUCCESS;
    aq_comex_requests_complete();
    PARMCI_Barrier(); /* no member is still in a call of a group */
    aq_comex_groups_end();
    return aq_comex_code(PARMCI_Finalize());
}

void comex_error(const char *msg, int code)
{
    ARMCI_Error(msg, code);
}
