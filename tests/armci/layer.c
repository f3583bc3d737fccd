/*
 * layer.c - a program with an armci_msg_init and an armci_msg_finalize of its own, as those of
 * Global Arrays' ARMCI have: it links with the shared library and with the archive, and its own are
 * called.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

static int started, ended;

void armci_msg_init(int *argc, char ***argv)
{
    int is_up = 0;

    MPI_Initialized(&is_up);
    if (!is_up)
        MPI_Init(argc, argv);
    started++;
}

void armci_msg_finalize(void)
{
    ended++;
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    armci_msg_init(&argc, &argv);
    ARMCI_Init();
    me = armci_msg_me();
    nproc = armci_msg_nproc();
    armci_msg_barrier();
    CHECK_EQ(started, 1);
    ARMCI_Finalize();
    armci_msg_finalize();
    CHECK_EQ(ended, 1);
    printf("rank %d of %d %s\n", me, nproc, failures == 0 ? "right" : "wrong");
    return failures != 0;
}
