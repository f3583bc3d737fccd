/*
 * mp3.h - short names for the message library, as ARMCI's test programs use them.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _MP3_H_
#define _MP3_H_ 1

#include <mpi.h>

#define MP_INIT(argc, argv)    MPI_Init(&(argc), &(argv))
#define MP_FINALIZE()          MPI_Finalize()
#define MP_BARRIER()           MPI_Barrier(MPI_COMM_WORLD)
#define MP_PROCS(n)            MPI_Comm_size(MPI_COMM_WORLD, (n))
#define MP_MYID(me)            MPI_Comm_rank(MPI_COMM_WORLD, (me))
#define MP_TIMER()             MPI_Wtime()
#define ARMCI_INIT(argc, argv) ARMCI_Init()
#define GA_INIT(argc, argv)    GA_Initialize()

#endif
