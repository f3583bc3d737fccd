/*
 * offsets.c - displacements of more than 2^31 and of more than 2^32 bytes: transfers to and from a
 * large array, of which hardly a page is used. Without memory for it the program says so.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#define GB     1073741824L
#define STRIDE 1610612736 /* bytes: twice this is more than an int has, thrice than 32 bits */
#define RUNS   4
#define SIZE   ((RUNS - 1L) * STRIDE + 4096)
#define LEN    24 /* bytes of a run */

static void *parts[8];
static int peer;

static char *local_at(long at)
{
    return (char *)parts[me] + at;
}

static char *remote_at(long at)
{
    return (char *)parts[peer] + at;
}

static void fill(char *run, int seed)
{
    for (int i = 0; i < LEN; i++)
        run[i] = (char)(16 * me + 5 * seed + i);
}

/* Is the run what the rank has filled with that seed? */
static int is_from(const char *run, int rank, int seed)
{
    for (int i = 0; i < LEN; i++)
        if (run[i] != (char)(16 * rank + 5 * seed + i))
            return 0;
    return 1;
}

/* Everybody has written to its peer: what is here is from the rank before. */
static void written(const char *what, long at, int seed)
{
    CHECK(is_from(local_at(at), (me + nproc - 1) % nproc, seed), "%s, at %ld", what, at);
}

static void contiguous(void)
{
    char run[LEN], back[LEN] = "";

    fill(run, 1);
    ARMCI_Put(run, remote_at(4 * GB), LEN, peer);
    ARMCI_Fence(peer);
    ARMCI_Get(remote_at(4 * GB), back, LEN, peer);
    CHECK(memcmp(run, back, LEN) == 0, "get");
    ARMCI_Barrier();
    written("put", 4 * GB, 1);
}

/* Runs at places far apart, of the target, then of both sides. */
static void strided(void)
{
    int wide = STRIDE, packed = LEN, count[2] = { LEN, RUNS };
    char runs[RUNS * LEN], back[RUNS * LEN] = "";

    ARMCI_Barrier();
    for (int i = 0; i < RUNS; i++)
        fill(runs + i * LEN, i);
    ARMCI_PutS(runs, &packed, remote_at(64), &wide, count, 1, peer);
    ARMCI_Fence(peer);
    ARMCI_GetS(remote_at(64), &wide, back, &packed, count, 1, peer);
    CHECK(memcmp(runs, back, sizeof(back)) == 0, "strided get from wide strides");
    ARMCI_Barrier();
    for (int i = 0; i < RUNS; i++)
        written("strided put to wide strides", 64 + (long)i * wide, i);
    for (int i = 0; i < RUNS; i++)
        fill(local_at(128 + (long)i * wide), 7 + i);
    ARMCI_Barrier();
    ARMCI_PutS(local_at(128), &wide, remote_at(192), &wide, count, 1, peer);
    ARMCI_AllFence();
    ARMCI_GetS(remote_at(192), &wide, local_at(256), &wide, count, 1, peer);
    for (int i = 0; i < RUNS; i++)
        CHECK(is_from(local_at(256 + (long)i * wide), me, 7 + i),
              "strided get, wide on both sides");
    ARMCI_Barrier();
    for (int i = 0; i < RUNS; i++)
        written("strided put, wide on both sides", 192 + (long)i * wide, 7 + i);
}

/* Two levels, of which one is wide; sums of numbers. */
static void accumulates(void)
{
    int packed[2] = { 16, 32 }, wide[2] = { 16, STRIDE }, count[3] = { 16, 2, RUNS }, one = 1;
    long sum[RUNS * 4], back[RUNS * 4];
    const int from = (me + nproc - 1) % nproc;

    for (long i = 0; i < RUNS; i++)
        memset(local_at(512 + i * STRIDE), 0, 32);
    *(int *)(void *)local_at(4 * GB + 1024) = 0;
    for (int i = 0; i < RUNS * 4; i++)
        sum[i] = 1000 * me + i;
    ARMCI_Barrier();
    ARMCI_AccS(ARMCI_ACC_LNG, &(long){ 3 }, sum, packed, remote_at(512), wide, count, 2, peer);
    ARMCI_Acc(ARMCI_ACC_INT, &one, &one, remote_at(4 * GB + 1024), sizeof(int), peer);
    ARMCI_Fence(peer);
    ARMCI_GetS(remote_at(512), wide, back, packed, count, 2, peer);
    for (int i = 0; i < RUNS * 4; i++)
        CHECK_EQ(back[i], 3 * sum[i]);
    ARMCI_Barrier();
    CHECK_EQ(*(int *)(void *)local_at(4 * GB + 1024), 1);
    for (int i = 0; i < RUNS * 4; i++)
        CHECK_EQ(((long *)(void *)local_at(512 + (long)(i / 4) * STRIDE))[i % 4],
                 3 * (1000 * from + i));
}

static void vectors(void)
{
    static const long places[3] = { 1024, 4 * GB + 256, 1 * GB };
    char runs[3][LEN];
    void *from[3], *to[3], *back[3];
    armci_giov_t put = { from, to, .bytes = LEN, .ptr_array_len = 3 };
    armci_giov_t get = { to, back, .bytes = LEN, .ptr_array_len = 3 };

    for (int i = 0; i < 3; i++) {
        fill(runs[i], 20 + i);
        from[i] = runs[i];
        to[i] = remote_at(places[i]);
        back[i] = local_at(places[i] + 512);
    }
    ARMCI_PutV(&put, 1, peer);
    ARMCI_Fence(peer);
    ARMCI_GetV(&get, 1, peer);
    for (int i = 0; i < 3; i++)
        CHECK(is_from(back[i], me, 20 + i), "vector get, %d", i);
    ARMCI_Barrier();
    for (int i = 0; i < 3; i++)
        written("vector put", places[i], 20 + i);
}

static void values(void)
{
    const long at = 4 * GB + 128;
    long old = -1;

    *(long *)(void *)local_at(at) = me;
    ARMCI_Barrier();
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, remote_at(at), 100, peer);
    CHECK_EQ(old, peer);
    ARMCI_Barrier();
    CHECK_EQ(*(long *)(void *)local_at(at), me + 100);
    ARMCI_Barrier();
    ARMCI_PutValueLong(me, remote_at(at), peer);
    ARMCI_Fence(peer);
    CHECK_EQ(ARMCI_GetValueLong(remote_at(at), peer), me);
    ARMCI_Barrier();
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    peer = (me + 1) % nproc;
    if (ARMCI_Malloc(parts, SIZE) != 0) { /* on all ranks */
        printf("no memory\n");
    } else {
        contiguous();
        strided();
        accumulates();
        vectors();
        values();
        ARMCI_Barrier();
        ARMCI_Free(parts[me]);
    }
    return test_finish();
}
