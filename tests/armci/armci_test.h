/*
 * armci_test.h - what the programs of tests/armci share: start, checks, a last line, random
 * numbers.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef ARMCI_TEST_H
#define ARMCI_TEST_H 1

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armci.h"
#include "check.h"

/* With the argument "threads" the program starts MPI for threads: the library's may then call it.
 * */
static inline int test_threads(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "threads") == 0;
}

static inline void test_start(int *argc, char ***argv)
{
    int level;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (test_threads(*argc, *argv))
        MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(argc, argv);
    ARMCI_Init_args(argc, argv);
    me = armci_msg_me();
    nproc = armci_msg_nproc();
}

static inline int test_finish(void)
{
    armci_msg_igop(&failures, 1, "+");
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    ARMCI_Finalize();
    MPI_Finalize();
    return failures != 0;
}

/* Numbers from 0 to below, the same for the same seed. */
static inline unsigned test_random(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (unsigned)((unsigned long)*seed * below >> 32);
}

#endif
