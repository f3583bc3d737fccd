/*
 * procedures.c - GPC: functions run at another process, under its lock, while that one calls
 * others; one that waits for a later one.
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
    CHECK_EQ(ARMCI_Get_gpc_hlen() + ARMCI_Gpc_get_dlen(), 131072);
}

/* What a function and the programs of all ranks change under the lock of the function's rank. */
static long *shared;

static int count(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
                 int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    long before;

    (void)from, (void)hlen, (void)data, (void)dlen, (void)rhlen, (void)rdata, (void)rdlen;
    (void)rdsize, (void)rtype;
    if (*(int *)hdr % 2 == 0)
        ARMCI_Gpc_lock(to);
    else if (ARMCI_Gpc_trylock(to) == 0)
        return GPC_PENDING;
    before = *shared;
    for (volatile int i = 0; i < 200; i++)
        continue;
    *shared = before + 1;
    ARMCI_Gpc_unlock(to);
    *(int *)rhdr = *(int *)hdr;
    *rhsize = (int)sizeof(int);
    return GPC_DONE;
}

/* A word that functions swap at rank 0: a spin lock for everybody. */
static int swap(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
                int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    static int word;

    (void)from, (void)hlen, (void)data, (void)dlen, (void)rhlen, (void)rdata, (void)rdlen;
    (void)rdsize, (void)rtype;
    ARMCI_Gpc_lock(to);
    *(int *)rhdr = word;
    word = *(int *)hdr;
    ARMCI_Gpc_unlock(to);
    *rhsize = (int)sizeof(int);
    return GPC_DONE;
}

/* Waits, as often as it is called, until a later call has come. */
static int gate(int to, int from, void *hdr, int hlen, void *data, int dlen, void *rhdr, int rhlen,
                int *rhsize, void *rdata, int rdlen, int *rdsize, int rtype)
{
    static int opened[1024]; /* by caller */
    const int opens = *(int *)hdr;

    (void)to, (void)hlen, (void)data, (void)dlen, (void)rhlen, (void)rdata, (void)rdlen;
    (void)rdsize, (void)rtype;
    opened[from] += opens;
    if (!opens && opened[from] == 0)
        return GPC_PENDING;
    opened[from] -= !opens;
    *(int *)rhdr = opens;
    *rhsize = (int)sizeof(int);
    return GPC_DONE;
}

static void functions_that_wait_for_others(void)
{
    const int gates = ARMCI_Gpc_register((aq_gpc_any_t)gate), to = (me + 1) % nproc;
    int wait = 0, open = 1, waited, opened;
    gpc_hdl_t later;

    for (int i = 0; i < CALLS / 5; i++) {
        waited = opened = -1;
        ARMCI_Gpc_exec(gates, to, &wait, sizeof(int), NULL, 0, &waited, sizeof(int), NULL, 0,
                       &later);
        ARMCI_Gpc_exec(gates, to, &open, sizeof(int), NULL, 0, &opened, sizeof(int), NULL, 0, NULL);
        ARMCI_Gpc_wait(&later);
        CHECK_EQ(opened, 1);
        CHECK_EQ(waited, 0);
    }
    ARMCI_Barrier();
    ARMCI_Gpc_release(gates);
}

static void add_under_lock(void *base)
{
    ARMCI_Gpc_lock(0);
    ARMCI_PutValueLong(ARMCI_GetValueLong(base, 0) + 1, base, 0);
    ARMCI_Gpc_unlock(0);
}

static void locks_in_functions(void **base)
{
    gpc_hdl_t later;
    int counts, swaps, answer;

    shared = base[me];
    counts = ARMCI_Gpc_register((aq_gpc_any_t)count);
    swaps = ARMCI_Gpc_register((aq_gpc_any_t)swap);
    for (int i = 0; i < CALLS; i++) {
        ARMCI_Gpc_exec(counts, 0, &i, sizeof(i), NULL, 0, &answer, sizeof(int), NULL, 0, &later);
        add_under_lock(base[0]);
        ARMCI_Gpc_wait(&later);
        CHECK_EQ(answer, i);
    }
    for (int i = 0; i < CALLS / 5; i++) {
        int taken = 1, free_again = 0;

        do
            ARMCI_Gpc_exec(swaps, 0, &taken, sizeof(int), NULL, 0, &answer, sizeof(int), NULL, 0,
                           NULL);
        while (answer != 0);
        ARMCI_PutValueLong(ARMCI_GetValueLong((long *)base[0] + 1, 0) + 1, (long *)base[0] + 1, 0);
        ARMCI_Fence(0);
        ARMCI_Gpc_exec(swaps, 0, &free_again, sizeof(int), NULL, 0, &answer, sizeof(int), NULL, 0,
                       NULL);
        CHECK_EQ(answer, 1);
    }
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_GetValueLong(base[0], 0), 3L * CALLS * nproc);
    CHECK_EQ(ARMCI_GetValueLong((long *)base[0] + 1, 0), CALLS / 5 * nproc);
    ARMCI_Barrier();
    ARMCI_Gpc_release(swaps);
    ARMCI_Gpc_release(counts);
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
    ARMCI_Malloc(base, 2 * sizeof(long));
    memset(base[me], 0, 2 * sizeof(long));
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
    ARMCI_Barrier();
    locks_in_functions(base);
    functions_that_wait_for_others();
    ARMCI_Free(base[me]);
    ARMCI_Gpc_release(handle);
    return test_finish();
}
