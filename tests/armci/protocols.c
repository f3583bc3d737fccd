/*
 * protocols.c - transfers of many sizes by the way that the environment forces: the bytes are right
 * and the counters show the way. Arguments: the name of a counter that must have counted, of one
 * that must not.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"
#include "armcix.h"

#define BYTES 300000
#define ROWS  40

static void *base[1024];
static char *ours, *peers;
static int right;

static char byte_of(size_t i, int seed)
{
    return (char)(i * 7 + i / 251 + (size_t)seed);
}

static void fill(char *to, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        to[i] = byte_of(i, seed);
}

static int differs(const char *at, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        if (at[i] != byte_of(i, seed))
            return 1;
    return 0;
}

/* From and to memory that others cannot reach and memory that they can. */
static void contiguous(char *local)
{
    static const int sizes[] = { 1, 8, 1000, 4096, 65536, 65537, BYTES };

    for (int i = 0; i < 7; i++) {
        const int n = sizes[i];
        armci_hdl_t handle;

        fill(local, (size_t)n, i);
        ARMCI_Put(local, peers, n, right);
        memset(local, -1, (size_t)n); /* the source may be reused */
        ARMCI_Get(peers, local, n, right);
        CHECK(!differs(local, (size_t)n, i), "%d bytes", n);
        fill(local, (size_t)n, i + 100);
        ARMCI_INIT_HANDLE(&handle);
        ARMCI_NbPut(local, peers, n, right, &handle);
        ARMCI_Wait(&handle);
        memset(local, -1, (size_t)n);
        ARMCI_Fence(right);
        ARMCI_NbGet(peers, local, n, right, &handle);
        ARMCI_Wait(&handle);
        CHECK(!differs(local, (size_t)n, i + 100), "%d bytes", n);
    }
    fill(local, BYTES, 50);
    ARMCI_Put(local, peers, BYTES, right);
    ARMCI_Barrier();
    CHECK(!differs(ours, BYTES, 50), "what the left neighbour has put");
    ARMCI_Barrier();
}

static void strided(char *local)
{
    int wide[1] = { 6000 }, narrow[1];

    for (int run = 8; run <= 5000; run *= 5) {
        int count[2] = { run, ROWS };

        narrow[0] = run;
        fill(local, (size_t)(run * ROWS), run);
        ARMCI_PutS(local, narrow, peers, wide, count, 1, right);
        memset(local, -1, (size_t)(run * ROWS));
        ARMCI_GetS(peers, wide, local, narrow, count, 1, right);
        CHECK(!differs(local, (size_t)(run * ROWS), run), "runs of %d bytes", run);
    }
    ARMCI_Barrier();
}

/* Two transfers of 1000 segments: by two calls, or each segment by a call of its own. */
static void aggregate(void)
{
    const char *way = getenv("AQ_ARMCI_AGGREGATE");
    const long segments = ARMCIX_Counter("aggregated"), calls = ARMCIX_Counter("aggregate_calls");
    double values[1000], back[1000];
    armci_hdl_t handle;

    ARMCI_INIT_HANDLE(&handle);
    ARMCI_SET_AGGREGATE_HANDLE(&handle);
    for (int i = 0; i < 1000; i++) {
        values[i] = me + i;
        ARMCI_NbPut(&values[i], peers + 24 * i, sizeof(double), right, &handle);
    }
    ARMCI_Wait(&handle);
    ARMCI_Fence(right);
    for (int i = 0; i < 1000; i++)
        ARMCI_NbGet(peers + 24 * i, &back[i], sizeof(double), right, &handle);
    ARMCI_Wait(&handle);
    CHECK(memcmp(values, back, sizeof(values)) == 0, "aggregated doubles");
    CHECK_EQ(ARMCIX_Counter("aggregated") - segments, 2000);
    CHECK_EQ(ARMCIX_Counter("aggregate_calls") - calls,
             way != NULL && strcmp(way, "single") == 0 ? 2000 : 2);
    ARMCI_Barrier();
}

/* The setting changes while the program runs. */
static void settings(void)
{
    CHECK_EQ(ARMCIX_Set("AQ_ARMCI_NONSENSE", "1"), -1);
    CHECK_EQ(ARMCIX_Set("AQ_ARMCI_PUT", "nonsense"), -1);
    CHECK_EQ(ARMCIX_Counter("nonsense"), -1);
}

/* What the library sets in the environment for a setting of its own, it unsets at its end. */
static void starts_again(const char *strided)
{
    CHECK_EQ(getenv("GASNET_VIS_MAXCHUNK") != NULL, strcmp(strided, "packed") == 0);
    ARMCI_Barrier();
    ARMCI_Finalize();
    CHECK(getenv("GASNET_VIS_MAXCHUNK") == NULL, "%s", getenv("GASNET_VIS_MAXCHUNK"));
    ARMCI_Init();
}

static long counted(const char *counter, int runs, char *local)
{
    int wide[1] = { 16 }, narrow[1] = { 8 }, count[2] = { 8, runs };
    const long before = ARMCIX_Counter(counter);

    ARMCI_GetS(peers, wide, local, narrow, count, 1, right);
    return ARMCIX_Counter(counter) - before;
}

/* The automatic choice: many short runs go packed. Over mpi two go by themselves, unless the
 * machine was so busy at start that a run took long. */
static void choice(char *local)
{
    const char *conduit = getenv("GASNET_CONDUIT");
    const long run_ns = ARMCIX_Counter("run_ns");

    CHECK_EQ(run_ns > 0, conduit != NULL && strcmp(conduit, "mpi") == 0);
    CHECK_EQ(counted("strided_calls", 4096, local), 1);
    CHECK_EQ(counted("strided_segments", 4096, local), 0);
    if (run_ns < 20000 || run_ns > 25000)
        CHECK_EQ(counted("strided_segments", 2, local), run_ns > 0 && run_ns < 20000 ? 2 : 0);
}

int main(int argc, char **argv)
{
    static char private_memory[BYTES];
    char *reachable;

    test_start(&argc, &argv);
    right = (me + 1) % nproc;
    CHECK_EQ(ARMCI_Malloc(base, BYTES), 0);
    ours = base[me];
    peers = base[right];
    reachable = ARMCI_Malloc_local(BYTES);
    settings();
    contiguous(private_memory);
    contiguous(reachable);
    strided(private_memory);
    aggregate();
    if (getenv("AQ_ARMCI_STRIDED") == NULL)
        choice(private_memory);
    if (argc > 2) {
        CHECK(ARMCIX_Counter(argv[1]) > 0, "%s", argv[1]);
        CHECK_EQ(ARMCIX_Counter(argv[2]), 0);
    }
    ARMCI_Free_local(reachable);
    ARMCI_Free(ours);
    if (getenv("AQ_ARMCI_STRIDED") != NULL)
        starts_again(getenv("AQ_ARMCI_STRIDED"));
    return test_finish();
}
