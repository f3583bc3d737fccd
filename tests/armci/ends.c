/*
 * ends.c - how a job ends: ends WAY. Run by run.sh, which knows what has to come of it.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    MPI_Comm half;
    void *base[1024];

    if (strcmp(way, "half") == 0) {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &me);
        MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
        ARMCI_Init_mpi_comm(half);
        return 0;
    }
    test_start(&argc, &argv);
    ARMCI_Malloc(base, 64);
    if (strcmp(way, "late") == 0) { /* the others have left main long before */
        ARMCI_Finalize();
        MPI_Finalize();
        if (me == 0)
            sleep(4);
        printf("rank %d of %d right\n", me, nproc);
        return 0;
    }
    if (me == nproc - 1) {
        if (strcmp(way, "error") == 0)
            ARMCI_Error("enough of this", 7);
        else if (strcmp(way, "rank") == 0)
            ARMCI_Fence(nproc);
        else if (strcmp(way, "mutex") == 0)
            ARMCI_Lock(0, 0);
        else if (strcmp(way, "operation") == 0)
            ARMCI_Rmw(5, &nproc, base[0], 1, 0);
        else if (strcmp(way, "assertion") == 0)
            dassert(1, me < 0);
        else if (strcmp(way, "range") == 0)
            ARMCI_Put(&me, (char *)base[me] + (1 << 20), 4, me);
    }
    ARMCI_Barrier();
    return test_finish();
}
