/*
 * handles.c - non-blocking calls: explicit, implicit and aggregate handles, values, reuse, many in
 * flight.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include "armcix.h"

#define N 2000 /* elements that peers put into; one more belongs to its rank alone */

static void *base[1024];
static double *ours;
static int right, left;

static double *remote_addr(int proc)
{
    return base[proc];
}

static void set_own(double value)
{
    for (int i = 0; i < N; i++)
        ours[i] = value;
    ARMCI_Barrier();
}

static void check_own(const char *what, double (*want)(int))
{
    ARMCI_Barrier();
    for (int i = 0; i < N; i++)
        CHECK(ours[i] == want(i), "%s: element %d is %g, not %g", what, i, ours[i], want(i));
    ARMCI_Barrier();
}

static double from_left(int i)
{
    return left * 10000.0 + i;
}

/* Each on a handle of its own, which its wait leaves ready for another use. */
static void explicit_handles(void)
{
    static armci_hdl_t handles[N];
    double values[N];

    set_own(-1);
    for (int i = 0; i < N; i++) {
        values[i] = me * 10000.0 + i;
        if (i % 2 == 0)
            ARMCI_INIT_HANDLE(handles + i);
        else
            ARMCI_INIT_HANDLE(&handles[i]);
        ARMCI_NbPut(&values[i], remote_addr(right) + i, sizeof(double), right, &handles[i]);
    }
    for (int i = N - 1; i >= 0; i--)
        CHECK_EQ(ARMCI_Wait(&handles[i]), 0);
    check_own("explicit handles", from_left);
    for (int i = 0; i < N; i++)
        CHECK_EQ(ARMCI_NbGet(remote_addr(left) + i, &values[i], sizeof(double), left, &handles[i]),
                 0);
    for (int i = 0; i < N; i++)
        while (ARMCI_Test(&handles[i]) != 0)
            continue;
    CHECK_EQ(ARMCI_Test(&handles[0]), 0);
    CHECK_EQ(ARMCI_Wait(&handles[0]), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(values[i], ((left + nproc - 1) % nproc) * 10000.0 + i);
    ARMCI_Barrier();
}

/* A value put with a handle each. */
static void value_handles(void)
{
    static armci_hdl_t handles[N];

    set_own(-1);
    for (int i = 0; i < N; i++) {
        ARMCI_INIT_HANDLE(&handles[i]);
        CHECK_EQ(
            ARMCI_NbPutValueDouble(me * 10000.0 + i, remote_addr(right) + i, right, &handles[i]),
            0);
    }
    for (int i = 0; i < N; i++)
        ARMCI_Wait(&handles[i]);
    check_own("handles of values", from_left);
}

/* What nobody has waited for is complete after a barrier, and a wait returns. */
static void waits_after_barrier(void)
{
    armci_hdl_t put, get;
    double values[N], back[N];

    set_own(-1);
    for (int i = 0; i < N; i++)
        values[i] = me * 10000.0 + i;
    ARMCI_INIT_HANDLE(&put);
    ARMCI_INIT_HANDLE(&get);
    ARMCI_NbPut(values, remote_addr(right), sizeof(values), right, &put);
    ARMCI_Barrier();
    ARMCI_NbGet(remote_addr(left), back, sizeof(back), left, &get);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_Wait(&put), 0);
    CHECK_EQ(ARMCI_Test(&get), 0);
    CHECK_EQ(ARMCI_Wait(&get), 0);
    for (int i = 0; i < N; i++)
        CHECK(ours[i] == from_left(i) && back[i] == (left + nproc - 1) % nproc * 10000.0 + i,
              "element %d is %g and %g", i, ours[i], back[i]);
    ARMCI_Barrier(); /* every rank has looked at its elements */
    ARMCI_NbPut(values, remote_addr(right), sizeof(values), right, &put); /* used again */
    ARMCI_Wait(&put);
    ARMCI_Barrier();
}

/* Each format of get and accumulate with an explicit and with the implicit handle. */
static void formats(armci_hdl_t *handle)
{
    int strides[1] = { 2 * sizeof(double) }, count[2] = { sizeof(double), N / 2 };
    double values[N], back[N], two = 2;
    void *local[N / 2], *remote[N / 2];
    armci_giov_t list = { local, remote, sizeof(double), N / 2 };

    set_own(1);
    for (int i = 0; i < N; i++)
        values[i] = me + i;
    for (int i = 0; i < N / 2; i++) {
        local[i] = &values[2 * i + 1];
        remote[i] = remote_addr(right) + 2 * i + 1;
    }
    CHECK_EQ(ARMCI_NbAccS(ARMCI_ACC_DBL, &two, values, strides, remote_addr(right), strides, count,
                          1, right, handle),
             0);
    CHECK_EQ(ARMCI_NbAccV(ARMCI_ACC_DBL, &two, &list, 1, right, handle), 0);
    ARMCI_Wait(handle);
    ARMCI_Fence(right);
    for (int i = 0; i < N / 2; i++)
        local[i] = &back[2 * i + 1];
    list = (armci_giov_t){ remote, local, sizeof(double), N / 2 };
    CHECK_EQ(ARMCI_NbGetS(remote_addr(right), strides, back, strides, count, 1, right, handle), 0);
    CHECK_EQ(ARMCI_NbGetV(&list, 1, right, handle), 0);
    ARMCI_Wait(handle);
    for (int i = 0; i < N; i++)
        CHECK(back[i] == 1 + 2 * values[i], "element %d is %g", i, back[i]);
    ARMCI_Barrier();
}

/* Several on one handle, of any kind; a barrier completes what nobody has waited for. */
static void several_on_one(void)
{
    double values[N], back[N], one = 1;
    int strides[1] = { 2 * sizeof(double) }, count[2] = { sizeof(double), N / 2 };
    armci_hdl_t handle;

    set_own(-1);
    for (int i = 0; i < N; i++)
        values[i] = me * 10000.0 + i;
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_NbPutS(values, strides, remote_addr(right), strides, count, 1, right, &handle);
    ARMCI_NbPutS(values + 1, strides, remote_addr(right) + 1, strides, count, 1, right, &handle);
    ARMCI_NbGet(remote_addr(me) + N, back, sizeof(double), me, &handle);
    ARMCI_Wait(&handle);
    CHECK_EQ(back[0], me + 0.5);
    check_own("several on one handle", from_left);
    ARMCI_NbAcc(ARMCI_ACC_DBL, &one, values, remote_addr(right), sizeof(values), right, &handle);
    ARMCI_Barrier();
    CHECK_EQ(ARMCI_Wait(&handle), 0);
    for (int i = 0; i < N; i++)
        CHECK_EQ(ours[i], 2 * from_left(i));
    ARMCI_Barrier();
}

/* The lists of a vector call may be written to as soon as it has returned. */
static void implicit_handle(void)
{
    double values[N];
    void *src[N / 4], *dst[N / 4];
    armci_giov_t vector = { src, dst, sizeof(double), N / 4 };

    set_own(-1);
    for (int i = 0; i < N; i++)
        values[i] = me * 10000.0 + i;
    for (int part = 0; part < 3; part++) {
        for (int i = 0; i < N / 4; i++) {
            src[i] = &values[part * (N / 4) + i];
            dst[i] = remote_addr(right) + part * (N / 4) + i;
        }
        ARMCI_NbPutV(&vector, 1, right, NULL);
    }
    memset(src, 0, sizeof(src));
    memset(dst, 0, sizeof(dst));
    for (int i = N / 4 * 3; i < N; i++)
        ARMCI_NbPutValueDouble(values[i], remote_addr(right) + i, right, NULL);
    ARMCI_WaitProc(right);
    ARMCI_WaitAll();
    ARMCI_Fence(right);
    check_own("implicit handle", from_left);
}

/* One for each process, open at once; values, lists and sections together; used again for another
 * target. */
static void aggregate_handles(void)
{
    static armci_hdl_t handles[64];
    double values[N], back[N];
    void *src[1], *dst[1];
    armci_giov_t vector = { src, dst, sizeof(double), 1 };
    int strides[1] = { sizeof(double) }, count[2] = { sizeof(double), 10 };

    set_own(-1);
    for (int i = 0; i < N; i++)
        values[i] = i;
    for (int p = 0; p < nproc; p++) {
        ARMCI_INIT_HANDLE(&handles[p]);
        ARMCI_SET_AGGREGATE_HANDLE(&handles[p]);
    }
    for (int i = me; i < N - 20; i += nproc) {
        for (int p = 0; p < nproc; p++) {
            src[0] = &values[i];
            dst[0] = remote_addr(p) + i;
            if (i % 3 == 0)
                ARMCI_NbPutValueDouble(i, remote_addr(p) + i, p, &handles[p]);
            else if (i % 3 == 1)
                ARMCI_NbPutV(&vector, 1, p, &handles[p]);
            else
                ARMCI_NbPut(&values[i], remote_addr(p) + i, sizeof(double), p, &handles[p]);
        }
    }
    if (me == 0)
        for (int p = 0; p < nproc; p++)
            for (int part = 0; part < 2; part++)
                ARMCI_NbPutS(&values[N - 20 + 10 * part], strides,
                             remote_addr(p) + N - 20 + 10 * part, strides, count, part, p,
                             &handles[p]);
    if (me == 0)
        for (int p = 0; p < nproc; p++)
            for (int i = N - 9; i < N; i++)
                ARMCI_NbPutValueDouble(i, remote_addr(p) + i, p, &handles[p]);
    for (int p = 0; p < nproc; p++)
        ARMCI_Wait(&handles[p]);
    ARMCI_Barrier();
    for (int i = 0; i < N; i++)
        CHECK(ours[i] == i || (i > N - 20 && i < N - 10), "aggregate: element %d is %g", i,
              ours[i]);
    for (int i = 0; i < N; i++)
        ARMCI_NbGet(remote_addr((me + i / 100) % nproc) + i, &back[i], sizeof(double),
                    (me + i / 100) % nproc, &handles[0]);
    ARMCI_Wait(&handles[0]);
    ARMCI_UNSET_AGGREGATE_HANDLE(&handles[0]);
    ARMCI_NbGet(remote_addr(right), &back[0], sizeof(double), right, &handles[0]);
    ARMCI_Wait(&handles[0]);
    CHECK(memcmp(back, ours, sizeof(back)) == 0, "gets of an aggregate handle");
    ARMCI_Barrier();
}

/* A barrier sends what was collected and completes it; the handle goes on collecting. */
static void aggregate_after_barrier(void)
{
    const long before = ARMCIX_Counter("aggregated");
    armci_hdl_t handle;
    double values[N];

    set_own(-1);
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
    for (int i = 0; i < N; i++) {
        values[i] = me * 10000.0 + i;
        ARMCI_NbPut(&values[i], remote_addr(right) + i, sizeof(double), right, &handle);
        if (i % (N / 4) == N / 8)
            ARMCI_Barrier();
    }
    check_own("aggregate before a barrier", from_left);
    CHECK_EQ(ARMCIX_Counter("aggregated") - before, ARMCI_Same_node(right) ? 0 : N);
    CHECK_EQ(ARMCI_Wait(&handle), 0);
    ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
    ARMCI_NbPut(&values[0], remote_addr(right), sizeof(double), right, &handle);
    CHECK_EQ(ARMCI_Wait(&handle), 0);
    CHECK_EQ(ARMCIX_Counter("aggregated") - before, ARMCI_Same_node(right) ? 0 : N);
    ARMCI_Barrier();
}

static int length_of(int i, int shift)
{
    if (i < 100)
        return 8;
    return (i + shift) % 10 == 7 ? 0 : (i + shift) % 3 == 0 ? 4 : 8;
}

/* Two handles in turn, each with segments of one length at first, then of others and of none. With
 * another shift the lengths differ from those that the library may have stored before. */
static void segments_of_different_lengths(int shift)
{
    armci_hdl_t handles[2];
    double values[N];

    set_own(-1);
    for (int h = 0; h < 2; h++) {
        ARMCI_INIT_HANDLE(&handles[h]);
        ARMCI_SET_AGGREGATE_HANDLE(&handles[h]);
    }
    for (int i = 0; i < N; i++)
        values[i] = me + i;
    for (int i = 0; i < N; i++) {
        if (i % 5 == 3)
            CHECK_EQ(ARMCI_NbPut(NULL, remote_addr(right) + i, 8, right, &handles[i / 5 % 2]),
                     FAIL);
        ARMCI_NbPut(&values[i], remote_addr(right) + i, length_of(i, shift), right,
                    &handles[i / 5 % 2]);
    }
    for (int h = 0; h < 2; h++)
        ARMCI_Wait(&handles[h]);
    ARMCI_Barrier();
    for (int i = 0; i < N; i++) {
        double wanted = -1, sent = left + i;

        memcpy(&wanted, &sent, (size_t)length_of(i, shift));
        CHECK(ours[i] == wanted, "lengths: element %d is %g, not %g", i, ours[i], wanted);
    }
    ARMCI_Barrier();
}

static void values(void)
{
    const int three = 3;
    armci_hdl_t handle;
    int copy = 0;

    set_own(0);
    ARMCI_PutValueInt(-5, base[right], right);
    ARMCI_PutValueLong(1L << 40, remote_addr(right) + 1, right);
    ARMCI_PutValueFloat(2.5f, remote_addr(right) + 2, right);
    ARMCI_PutValueDouble(-3.25, remote_addr(right) + 3, right);
    CHECK_EQ(ARMCI_GetValueInt(base[right], right), -5);
    CHECK_EQ(ARMCI_GetValueLong(remote_addr(right) + 1, right), 1L << 40);
    CHECK(ARMCI_GetValueFloat(remote_addr(right) + 2, right) == 2.5f, "a float");
    CHECK(ARMCI_GetValueDouble(remote_addr(right) + 3, right) == -3.25, "a double");
    ARMCI_Barrier();
    CHECK_EQ(*(int *)base[me], -5);
    ARMCI_Barrier();
    ARMCI_INIT_HANDLE(&handle);
    CHECK_EQ(ARMCI_NbPutValueInt(7, base[right], right, &handle), 0);
    CHECK_EQ(ARMCI_NbPutValueLong(-(1L << 40), remote_addr(right) + 1, right, &handle), 0);
    CHECK_EQ(ARMCI_NbPutValueFloat(-0.5f, remote_addr(right) + 2, right, &handle), 0);
    CHECK_EQ(ARMCI_NbPutValueInt(7, NULL, right, &handle), FAIL);
    CHECK_EQ(ARMCI_NbPutValueInt(7, base[right], nproc, &handle), FAIL5);
    ARMCI_Wait(&handle);
    ARMCI_Barrier();
    CHECK(*(int *)base[me] == 7 && *(float *)(void *)(ours + 2) == -0.5f, "values with a handle");
    CHECK(*(long *)(void *)(ours + 1) == -(1L << 40), "a long with a handle");
    CHECK_EQ(ARMCI_Put1(&three, &copy, sizeof(copy), me), 0);
    CHECK_EQ(copy, 3);
}

int main(int argc, char **argv)
{
    armci_hdl_t handle;

    test_start(&argc, &argv);
    right = (me + 1) % nproc;
    left = (me + nproc - 1) % nproc;
    CHECK_EQ(ARMCI_Malloc(base, (N + 1) * sizeof(double)), 0);
    ours = base[me];
    ours[N] = me + 0.5;
    explicit_handles();
    value_handles();
    waits_after_barrier();
    ARMCI_INIT_HANDLE(&handle);
    formats(&handle);
    formats(NULL);
    several_on_one();
    implicit_handle();
    aggregate_handles();
    aggregate_after_barrier();
    for (int shift = 0; shift < 3; shift++)
        segments_of_different_lengths(shift);
    values();
    ARMCI_Free(base[me]);
    return test_finish();
}
