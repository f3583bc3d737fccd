/*
 * edges.c - the edges of calls: what is less than an element at the end of an accumulate, unaligned
 * elements across the borders of locks, strides that a contiguous section does not need,
 * notifications after calls of each format. Accumulates with a rest do to memory of another rank
 * what they do to own memory.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#define BYTES (1 << 20)
#define INTS  5000 /* more than a stretch of 16 KiB under one lock */

static void *base[1024];
static char source[BYTES], got[BYTES];
static int right;

/* Memory of the right neighbour, and the caller's: a model that needs no message. */
static char *other, *own;

static void begin(void)
{
    ARMCI_Barrier();
    memset(base[me], 0, BYTES);
    memset(own, 0, BYTES);
    ARMCI_Barrier();
}

static void compare(const char *what, int bytes)
{
    ARMCI_Get(other, got, BYTES, right);
    CHECK(memcmp(got, own, BYTES) == 0, "%s of %d bytes", what, bytes);
    ARMCI_Barrier();
}

static void rest_of_one(int type, void *scale, int bytes)
{
    begin();
    CHECK_EQ(ARMCI_Acc(type, scale, source, other, bytes, right), 0);
    CHECK_EQ(ARMCI_Acc(type, scale, source, own, bytes, me), 0);
    compare("an accumulate", bytes);
}

/* Runs with a rest each: more of them than a message holds. */
static void rest_of_runs(int type, void *scale, int bytes, int runs)
{
    int to[1] = { bytes + 16 }, from[1] = { bytes + 3 }, count[2] = { bytes, runs };

    begin();
    CHECK_EQ(ARMCI_AccS(type, scale, source, from, other, to, count, 1, right), 0);
    CHECK_EQ(ARMCI_AccS(type, scale, source, from, own, to, count, 1, me), 0);
    compare("runs", bytes);
}

static void rest_of_list(int type, void *scale, int bytes, int n)
{
    void *src[100], *dst[100], *model[100];
    armci_giov_t list = { src, dst, bytes, n }, same = { src, model, bytes, n };

    for (int i = 0; i < n; i++) {
        src[i] = source + i * (bytes + 5);
        dst[i] = other + i * (bytes + 16);
        model[i] = own + i * (bytes + 16);
    }
    begin();
    CHECK_EQ(ARMCI_AccV(type, scale, &list, 1, right), 0);
    CHECK_EQ(ARMCI_AccV(type, scale, &same, 1, me), 0);
    compare("a list", bytes);
}

static void rests(void)
{
    static const int types[] = { ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_DCP };
    long scale[2] = { 1, 1 };

    for (int i = 0; i < BYTES; i++)
        source[i] = (char)(i % 7); /* numbers whose sums and products stay numbers */
    for (int t = 0; t < 3; t++) {
        rest_of_one(types[t], scale, 3);
        rest_of_one(types[t], scale, 16 * 10 + 3);
        rest_of_one(types[t], scale, 500001);
        rest_of_runs(types[t], scale, 3, 5);
        rest_of_runs(types[t], scale, 19, 2000);
        rest_of_runs(types[t], scale, 8 * 1000 + 13, 100);
        rest_of_list(types[t], scale, 3, 4);
        rest_of_list(types[t], scale, 133, 100);
        rest_of_list(types[t], scale, 100003, 3);
    }
}

/* All ranks at once to the same addresses, none of them aligned: some element lies across the
 * border of two locks. */
static void unaligned(void)
{
    static int values[INTS];
    const int strides[1] = { 4 * INTS / 2 + 2 }, count[2] = { 4 * INTS / 2, 2 };
    const int turns = 20;
    int one = 1, value;
    char *at = (char *)base[0] + 1;

    memset(base[me], 0, BYTES);
    for (int i = 0; i < INTS; i++)
        values[i] = i + 1;
    ARMCI_Barrier();
    for (int i = 0; i < turns; i++) {
        ARMCI_Acc(ARMCI_ACC_INT, &one, values, at, sizeof(values), 0);
        ARMCI_AccS(ARMCI_ACC_INT, &one, values, (int[]){ 4 * INTS / 2 }, at + 4 * INTS + 1,
                   (int *)strides, (int *)count, 1, 0);
    }
    ARMCI_Barrier();
    for (int i = 0; me == 0 && i < INTS; i++) {
        memcpy(&value, at + 4 * i, 4);
        CHECK(value == turns * nproc * (i + 1), "element %d is %d", i, value);
        memcpy(&value, at + 4 * INTS + 1 + 4 * i + (i < INTS / 2 ? 0 : 2), 4);
        CHECK(value == turns * nproc * (i + 1), "element %d of two runs is %d", i, value);
    }
    ARMCI_Barrier();
}

/* Sections of level 0 need no arrays of strides. */
static void no_strides(void)
{
    int count[1] = { 64 };
    long values[8], back[8] = { 0 }, one = 1;
    armci_hdl_t handle;

    begin();
    for (int i = 0; i < 8; i++)
        values[i] = 100 * me + i;
    CHECK_EQ(ARMCI_PutS(values, NULL, other, NULL, count, 0, right), 0);
    CHECK_EQ(ARMCI_AccS(ARMCI_ACC_LNG, &one, values, NULL, other, NULL, count, 0, right), 0);
    CHECK_EQ(ARMCI_GetS(other, NULL, back, NULL, count, 0, right), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(back[i], 2 * values[i]);
    for (int aggregate = 0; aggregate < 2; aggregate++) {
        ARMCI_INIT_HANDLE(&handle);
        if (aggregate)
            ARMCI_SET_AGGREGATE_HANDLE(&handle);
        CHECK_EQ(ARMCI_NbPutS(values, NULL, other, NULL, count, 0, right, &handle), 0);
        CHECK_EQ(ARMCI_Wait(&handle), 0);
        CHECK_EQ(
            ARMCI_NbAccS(ARMCI_ACC_LNG, &one, values, NULL, other, NULL, count, 0, right, &handle),
            0);
        CHECK_EQ(ARMCI_Wait(&handle), 0);
        CHECK_EQ(ARMCI_NbGetS(other, NULL, back, NULL, count, 0, right, &handle), 0);
        CHECK_EQ(ARMCI_Wait(&handle), 0);
        for (int i = 0; i < 8; i++)
            CHECK_EQ(back[i], 2 * values[i]);
    }
    CHECK_EQ(ARMCI_PutS_flag(values, NULL, other, NULL, count, 0, (int *)(other + 128), 1, right),
             0);
    ARMCI_Barrier();
    CHECK_EQ(((long *)base[me])[7], 100 * ((me + nproc - 1) % nproc) + 7);
    ARMCI_Barrier();
}

enum format { ACC, ACC_SECTION, ACC_LIST, SECTION, LIST, FORMATS };

/* Adds or puts value to each fourth of 64 numbers. */
static void send(enum format format, long *values)
{
    long one = 1, *to = (long *)other;
    int from[1] = { 8 }, strides[1] = { 32 }, count[2] = { 8, 16 };
    void *src[16], *dst[16];
    armci_giov_t list = { src, dst, 8, 16 };

    for (int i = 0; i < 16; i++) {
        src[i] = values + i;
        dst[i] = to + 4 * i;
    }
    if (format == ACC)
        for (int i = 0; i < 16; i++)
            ARMCI_Acc(ARMCI_ACC_LNG, &one, values + i, to + 4 * i, 8, right);
    else if (format == ACC_SECTION)
        ARMCI_AccS(ARMCI_ACC_LNG, &one, values, from, to, strides, count, 1, right);
    else if (format == ACC_LIST)
        ARMCI_AccV(ARMCI_ACC_LNG, &one, &list, 1, right);
    else if (format == SECTION)
        ARMCI_PutS(values, from, to, strides, count, 1, right);
    else
        ARMCI_PutV(&list, 1, right);
}

/* A notification follows earlier calls of all formats: the receiver reads its own memory. */
static void notify_after(void)
{
    const int left = (me + nproc - 1) % nproc;
    long values[16];

    begin();
    for (int turn = 0; turn < 20; turn++) {
        for (int format = 0; format < FORMATS; format++) {
            const int adds = format <= ACC_LIST;

            memset(base[me], 0, 512);
            parmci_msg_barrier();
            for (int i = 0; i < 16; i++)
                values[i] = 1000 * turn + 10 * format + i;
            send((enum format)format, values);
            memset(values, -1, sizeof(values));
            armci_notify(right);
            armci_notify_wait(left, NULL);
            for (int i = 0; i < 16; i++)
                CHECK(((long *)base[me])[4 * i] == 1000 * turn + 10 * format + i,
                      "%s number %d of turn %d is %ld", adds ? "added" : "put", i, turn,
                      ((long *)base[me])[4 * i]);
            armci_msg_barrier();
        }
    }
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    right = (me + 1) % nproc;
    CHECK_EQ(ARMCI_Malloc(base, 2 * BYTES), 0);
    other = base[right];
    own = (char *)base[me] + BYTES;
    rests();
    unaligned();
    no_strides();
    notify_after();
    ARMCI_Free(base[me]);
    return test_finish();
}
