/*
 * codes.c - exit statuses of a failed job: codes WAY. Run by run.sh, which knows the expected ones.
 * SPDX-License-Identifier: BSD-3-Clause
 *
 *   assertion    code 256, which a status of eight bits holds as 0
 *   before       before ARMCI_Init, code 0
 *   after        after MPI_Finalize, code 9
 */
#include "armci_test.h"

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";

    MPI_Init(&argc, &argv);
    if (strcmp(way, "before") == 0)
        armci_msg_abort(0);
    ARMCI_Init();
    dassertc(strcmp(way, "assertion") == 0, argc == 0, ("code %d\n", 256), 256);
    ARMCI_Finalize();
    MPI_Finalize();
    if (strcmp(way, "after") == 0)
        ARMCI_Error("after the end", 9);
    return 0;
}
