/*
 * hosts.c - linked to a program, moves its ranks, once MPI has started, to the hosts of
 * tests/restart/hosts.sh: in blocks, or in turn if TEST_HOSTS_IN_TURN is set. What MPI has opened
 * stays where it was; Aqueduct starts later.
 * The first rank of ARMCI says at its end, on standard error, of how many domains the ranks were.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "armci.h"
#include "parmci.h"

#define MAX_HOSTS 16

int MPI_Init(int *argc, char ***argv)
{
    char list[256] = "", path[64], *rest;
    int status = PMPI_Init(argc, argv), pids[MAX_HOSTS], count = 0, rank, size, host, fd;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (getenv("TEST_HOSTS") != NULL)
        strncpy(list, getenv("TEST_HOSTS"), sizeof(list) - 1);
    for (char *pid = strtok_r(list, " ", &rest); pid != NULL && count < MAX_HOSTS;
         pid = strtok_r(NULL, " ", &rest))
        pids[count++] = atoi(pid);
    host = count == 0                             ? 0
           : getenv("TEST_HOSTS_IN_TURN") != NULL ? rank % count
                                                  : rank * count / size;
    snprintf(path, sizeof(path), "/proc/%d/ns/net", count > 0 ? pids[host] : 0);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    close(fd);
    return status;
}

/* The Fortran interface calls no MPI_Init that could be another. */
void mpi_init_(int *status)
{
    *status = MPI_Init(NULL, NULL);
}

int ARMCI_Finalize(void)
{
    if (armci_msg_me() == 0)
        fprintf(stderr, "in %d domains\n", armci_domain_count(ARMCI_DOMAIN_SMP));
    return PARMCI_Finalize();
}
