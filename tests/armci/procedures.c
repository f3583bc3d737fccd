/*
 * procedures.c - GPC: functions run at another process, under its lock, while that one calls
 * others.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include "gpc.h"

#define CALLS 50

static long sum;

static int add(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
               int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    static int pending;
    long *numbers = data;

    if (rtype == GPC_INIT && pending++ % 7 == 0)
        return GPC_PENDING;
    CHECK((unsigned long)data % 16 == 0 && (unsigned long)rdata % 16 == 0, "%p %p", data, rdata);
    __atomic_fetch_add(&sum, *(int *)ARMCI_Gpc_translate(hdr, to, from), __ATOMIC_RELAXED);
    for (int i = 0; i < rdlen / (int)sizeof(long); i++)
        ((long *)rdata)[i] = numbers[i] + to;
    *(int *)rhdr = hlen + dlen + rhlen;
    *rhsize = rhlen;
    *rdsize = rdlen;
    return GPC_DONE;
}

static void calls(int handle)
{
    enum { N = 8000 }; /* nearly the largest */
    static long data[N], result[2][N];
    int one = 1, answer[2];
    gpc_hdl_t later;

    for (int i = 0; i < N; i++)
        data[i] = i;
    for (int call = 0; call < CALLS; call++) {
        const int to = (me + call) % nproc;

        CHECK_EQ(ARMCI_Gpc_exec(handle, to, &one, sizeof(one), data, sizeof(data), &answer[0],
                                sizeof(int), result[0], sizeof(data), NULL),
                 0);
        CHECK_EQ(answer[0], (long)(2 * sizeof(int) + sizeof(data)));
        CHECK_EQ(result[0][N - 1], N - 1 + to);
    }
    ARMCI_Gpc_init_handle(&later);
    CHECK_EQ(ARMCI_Gpc_exec(handle, 0, &one, sizeof(one), data, 8, &answer[1], sizeof(int),
                            result[1], 8, &later),
             0);
    while (ARMCI_Gpc_test(&later) != 0)
        continue;
    ARMCI_Gpc_wait(&later);
    CHECK_EQ(result[1][0], 0);
    CHECK_EQ(ARMCI_Gpc_exec(handle, 0, NULL, 4, NULL, 0, &answer[1], 4, NULL, 0, NULL), FAIL);
    CHECK_EQ(ARMCI_Gpc_exec(handle - 1, 0, &one, 4, NULL, 0, &answer[1], 4, NULL, 0, NULL), FAIL);
    CHECK_EQ(ARMCI_Gpc_get_hlen() + ARMCI_Get_gpc_dlen(), 131072);
}

int main(int argc, char **argv)
{
    void *base[1024];
    int handle;
    long all;

    test_start(&argc, &argv);
    handle = ARMCI_Gpc_register((aq_gpc_any_t)add);
    CHECK(handle == -100, "%d", handle);
    calls(handle);
    ARMCI_Barrier();
    all = __atomic_load_n(&sum, __ATOMIC_RELAXED);
    armci_msg_lgop(&all, 1, "+");
    CHECK_EQ(all, (CALLS + 1L) * nproc);
    ARMCI_Malloc(base, sizeof(long));
    *(long *)base[me] = 0;
    ARMCI_Barrier();
    for (int i = 0; i < CALLS; i++) {
        if (i % 2 == 0)
            ARMCI_Gpc_lock(0);
        else
            while (ARMCI_Gpc_trylock(0) == 0)
                continue;
        ARMCI_PutValueLong(ARMCI_GetValueLong(base[0], 0) + 1, base[0], 0);
        ARMCI_Gpc_unlock(0);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(base[0], 0), (long)CALLS * nproc);
    ARMCI_Free(base[me]);
    ARMCI_Gpc_release(handle);
    return test_finish();
}
