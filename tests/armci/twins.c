/*
 * twins.c - a program's own ARMCI_ calls count and pass on to PARMCI_: the library calls none of
 * them.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

static int counted;

int ARMCI_Put(void *src, void *dst, int bytes, int proc)
{
    counted++;
    return PARMCI_Put(src, dst, bytes, proc);
}

int ARMCI_Get(void *src, void *dst, int bytes, int proc)
{
    counted++;
    return PARMCI_Get(src, dst, bytes, proc);
}

void ARMCI_Barrier(void)
{
    counted++;
    PARMCI_Barrier();
}

int ARMCI_Finalize(void)
{
    counted++;
    return PARMCI_Finalize();
}

int main(int argc, char **argv)
{
    void *base[1024];
    double x = 1, one = 1;

    test_start(&argc, &argv);
    ARMCI_Malloc(base, 64);
    ARMCI_Put(&x, base[me], 8, me);
    ARMCI_Get(base[me], &x, 8, me);
    ARMCI_Acc(ARMCI_ACC_DBL, &one, &x, base[me], 8, me);
    CHECK(ARMCI_GetValueDouble(base[me], me) == 2, "%g", x);
    ARMCI_Barrier();
    ARMCI_Free(base[me]);
    CHECK_EQ(counted, 3);
    return test_finish();
}
