/*
 * late.c - calls of procedures that nobody has waited for when ARMCI ends: they run before the end,
 * not in the next job of the process. Over a network that loses, where a barrier overtakes them.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include "gpc.h"

#define JOBS  3
#define CALLS 6

static int job, ran;

static int count(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
                 int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    (void)to, (void)from, (void)hlen, (void)data, (void)dlen, (void)rdata, (void)rdlen;
    (void)rdsize, (void)rtype;
    CHECK(*(int *)hdr == __atomic_load_n(&job, __ATOMIC_ACQUIRE), "a call of job %d in job %d",
          *(int *)hdr, job);
    __atomic_fetch_add(&ran, 1, __ATOMIC_RELEASE);
    *(int *)rhdr = -1;
    *rhsize = rhlen;
    return GPC_DONE;
}

/* The buffers of the results are gone when the function returns. */
static void call_and_leave(int handle)
{
    int answer[CALLS];
    gpc_hdl_t later[CALLS];

    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(ARMCI_Gpc_exec(handle, (me + nproc - 1) % nproc, &job, sizeof(job), NULL, 0,
                                &answer[i], sizeof(int), NULL, 0, &later[i]),
                 0);
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    for (int i = 0; i < JOBS; i++) {
        if (i > 0)
            ARMCI_Init();
        call_and_leave(ARMCI_Gpc_register((aq_gpc_any_t)count));
        ARMCI_Finalize();
        CHECK(__atomic_load_n(&ran, __ATOMIC_ACQUIRE) == CALLS, "%d calls in job %d", ran, job);
        ran = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        __atomic_fetch_add(&job, 1, __ATOMIC_RELEASE);
    }
    ARMCI_Init();
    return test_finish();
}
