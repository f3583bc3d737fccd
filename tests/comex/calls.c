/*
 * calls.c - groups, memory, requests, mutexes, codes; and starts over a part of the ranks.
 *
 *   calls           starts MPI by itself
 *   calls parts     over halves of the ranks, twice, the second time in reversed order
 *   calls error     ends the job by comex_error
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "comex_test.h"

/* --- groups --- */

static void translation(comex_group_t half, comex_group_t reversed)
{
    int *ranks = (int *)malloc((size_t)nproc * sizeof(int)), *to, rank, size;

    to = (int *)malloc((size_t)nproc * sizeof(int));
    for (int p = 0; p < nproc; p++)
        ranks[p] = p;
    WORKS(comex_group_translate_ranks(nproc, reversed, ranks, COMEX_GROUP_WORLD, to));
    for (int p = 0; p < nproc; p++) {
        CHECK_EQ(to[p], nproc - 1 - p);
        WORKS(comex_group_translate_world(reversed, p, &rank));
        CHECK_EQ(rank, nproc - 1 - p);
    }
    WORKS(comex_group_translate_ranks(nproc, COMEX_GROUP_WORLD, ranks, reversed, to));
    CHECK_EQ(to[0], nproc - 1);
    WORKS(comex_group_size(half, &size));
    WORKS(comex_group_translate_ranks(nproc, COMEX_GROUP_WORLD, ranks, half, to));
    for (int p = 0, members = 0; p < nproc; p++) {
        members += to[p] >= 0;
        CHECK(p < nproc - 1 || members == size, "%d", members);
    }
    WORKS(comex_group_rank(half, &rank));
    CHECK_EQ(to[me], rank);
    FAILS(comex_group_translate_world(half, size, &rank));
    FAILS(comex_group_translate_world(half, -1, &rank));
    ranks[0] = size;
    FAILS(comex_group_translate_ranks(1, half, ranks, COMEX_GROUP_WORLD, to));
    free(ranks);
    free(to);
}

/* A group of a group, whose ranks are those of the parent: the last of them alone. */
static void nested(comex_group_t reversed)
{
    int last = nproc - 1, rank, size;
    MPI_Comm comm;
    comex_group_t group;

    WORKS(comex_group_create(1, &last, reversed, &group));
    WORKS(comex_group_size(group, &size));
    CHECK_EQ(size, 1);
    CHECK_EQ(comex_group_rank(group, &rank), me == 0 ? COMEX_SUCCESS : COMEX_FAILURE);
    CHECK_EQ(rank, me == 0 ? 0 : -1);
    CHECK_EQ(comex_barrier(group), me == 0 ? COMEX_SUCCESS : COMEX_FAILURE);
    WORKS(comex_group_comm(group, &comm));
    CHECK((comm == MPI_COMM_NULL) == (me != 0), "rank %d", me);
    WORKS(comex_group_free(group));
    FAILS(comex_group_size(group, &size));
    FAILS(comex_group_free(group));
}

static void no_groups(void)
{
    int beyond[1] = { nproc }, number;
    comex_group_t group;
    MPI_Comm comm;
    void *ptrs[1];

    FAILS(comex_group_create(1, beyond, COMEX_GROUP_WORLD, &group));
    CHECK_EQ(group, COMEX_GROUP_NULL);
    FAILS(comex_group_create(-1, beyond, COMEX_GROUP_WORLD, &group));
    FAILS(comex_group_create(0, beyond, COMEX_GROUP_NULL, &group));
    FAILS(comex_group_rank(COMEX_GROUP_NULL, &number));
    FAILS(comex_group_size(COMEX_GROUP_NULL, &number));
    FAILS(comex_group_size(1000, &number));
    FAILS(comex_group_comm(COMEX_GROUP_NULL, &comm));
    FAILS(comex_group_free(COMEX_GROUP_NULL));
    FAILS(comex_group_translate_ranks(0, COMEX_GROUP_WORLD, beyond, COMEX_GROUP_NULL, beyond));
    FAILS(comex_barrier(COMEX_GROUP_NULL));
    FAILS(comex_fence_all(COMEX_GROUP_NULL));
    FAILS(comex_fence_proc(0, COMEX_GROUP_NULL));
    FAILS(comex_wait_all(COMEX_GROUP_NULL));
    FAILS(comex_wait_proc(nproc, COMEX_GROUP_WORLD));
    FAILS(comex_malloc(ptrs, 1, COMEX_GROUP_NULL));
    FAILS(comex_malloc_mem_dev(ptrs, 1, COMEX_GROUP_NULL, ""));
    FAILS(comex_free(NULL, COMEX_GROUP_NULL));
    WORKS(comex_group_create(0, beyond, COMEX_GROUP_WORLD, &group));
    WORKS(comex_group_size(group, &number));
    CHECK_EQ(number, 0);
    WORKS(comex_group_free(group));
    WORKS(comex_group_free(COMEX_GROUP_WORLD));
}

static void groups(void)
{
    comex_group_t half = test_half(), reversed = test_reversed();
    int rank, sum = 1;
    MPI_Comm comm;

    CHECK(half > 0 && reversed > 0 && half != reversed, "%d and %d", half, reversed);
    WORKS(comex_group_rank(reversed, &rank));
    CHECK_EQ(rank, nproc - 1 - me);
    WORKS(comex_group_comm(half, &comm));
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
    WORKS(comex_group_size(half, &rank));
    CHECK_EQ(sum, rank);
    translation(half, reversed);
    nested(reversed);
    no_groups();
    WORKS(comex_barrier(half));
    WORKS(comex_group_free(half)); /* reversed: by comex_finalize */
}

/* --- memory --- */

/* Rank r of the group has 100 * r bytes; the last byte of each is written by its left neighbour. */
static void memory(comex_group_t group)
{
    int rank, size;
    void **ptrs, *local = comex_malloc_local(100);

    WORKS(comex_group_rank(group, &rank));
    WORKS(comex_group_size(group, &size));
    ptrs = (void **)malloc((size_t)size * sizeof(*ptrs));
    memset(local, 'a' + rank, 100);
    for (int device = 0; device < 2; device++) {
        const int right = (rank + 1) % size;
        const size_t bytes = 100 * (size_t)rank;

        WORKS(device ? comex_malloc_mem_dev(ptrs, bytes, group, "none")
                     : comex_malloc(ptrs, bytes, group));
        for (int p = 0; p < size; p++)
            CHECK((ptrs[p] == NULL) == (p == 0), "part %d", p);
        if (right != 0)
            WORKS(comex_put(local, (char *)ptrs[right] + 100 * (right - 1), 100, right, group));
        WORKS(comex_barrier(group));
        if (rank != 0)
            CHECK_EQ(((char *)ptrs[rank])[bytes - 1], 'a' + rank - 1);
        WORKS(device ? comex_free_dev(ptrs[rank], group) : comex_free(ptrs[rank], group));
    }
    FAILS(comex_malloc(ptrs, rank == 0 ? (size_t)-1 : 1, group));
    CHECK(ptrs[rank] == NULL, "%p", ptrs[rank]);
    WORKS(comex_free_local(local));
    WORKS(comex_free_local(NULL));
    free(ptrs);
}

/* --- requests --- */

/* More puts than there are requests, all of them forgotten until the end, and one get. */
static void many_requests(long **words, int right)
{
    enum { MANY = 5000 };
    static long from[MANY];
    static comex_request_t requests[MANY];
    comex_request_t get;
    long got = 0;
    int status;

    for (int i = 0; i < MANY; i++) {
        from[i] = me * MANY + i;
        WORKS(comex_nbput(&from[i], words[right] + i % 64, sizeof(long), right, COMEX_GROUP_WORLD,
                          &requests[i]));
        if (i == MANY - 65)
            WORKS(comex_fence_proc(right, COMEX_GROUP_WORLD)); /* the last 64 have no order */
    }
    for (int i = 0; i < MANY; i++)
        WORKS(comex_wait(&requests[i]));
    WORKS(comex_nbget(words[right] + (MANY - 1) % 64, &got, sizeof(got), right, COMEX_GROUP_WORLD,
                      &get));
    WORKS(comex_wait_proc(right, COMEX_GROUP_WORLD));
    CHECK_EQ(got, from[MANY - 1]);
    WORKS(comex_wait(&get));
    WORKS(comex_wait(NULL));
    WORKS(comex_test(NULL, &status));
    CHECK_EQ(status, 0);
    for (int i = -1; i < 2; i++) { /* no request at all */
        get = i;
        WORKS(comex_wait(&get));
        WORKS(comex_test(&get, &status));
        CHECK_EQ(status, 0);
    }
}

/* A barrier and fences complete puts that nobody has waited for, with a request and without, and
 * accumulates. MPI's barrier says that the others have done theirs. */
static void no_waits(comex_group_t group)
{
    enum { N = 1 << 17, TIMES = 12 };
    int rank = 0, right, left;
    long **words = (long **)malloc((size_t)nproc * sizeof(*words)), one = 1;
    long *local = (long *)calloc(N, sizeof(long));
    comex_request_t request;

    WORKS(comex_group_rank(group, &rank));
    right = (rank + 1) % nproc;
    left = (rank + nproc - 1) % nproc;
    WORKS(comex_malloc((void **)words, N * sizeof(long), group));
    for (int i = 0; i < TIMES; i++) {
        memset(words[rank], 0, N * sizeof(long));
        local[0] = local[N - 1] = rank * TIMES + i;
        MPI_Barrier(MPI_COMM_WORLD);
        if (i < TIMES / 2)
            WORKS(comex_nbput(local, words[right], N * sizeof(long), right, group,
                              i % 2 ? NULL : &request));
        else
            WORKS(comex_acc(COMEX_ACC_LNG, &one, local, words[right], N * sizeof(long), right,
                            group));
        if (i % 3 == 0)
            WORKS(comex_barrier(group));
        else
            WORKS(i % 3 == 1 ? comex_fence_all(group) : comex_fence_proc(right, group));
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(words[rank][0], left * TIMES + i);
        CHECK_EQ(words[rank][N - 1], left * TIMES + i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    WORKS(comex_free(words[rank], group));
    free(local);
    free(words);
}

static void refused(long **words, int right)
{
    long value = 0;
    comex_request_t request = -1;
    comex_giov_t none[20];
    comex_group_t alone = test_group(me, 1, 1);
    int bad = -1;

    memset(none, 0, sizeof(none));
    FAILS(comex_put(NULL, words[right], 8, right, COMEX_GROUP_WORLD));
    FAILS(comex_get(words[right], &value, 8, nproc, COMEX_GROUP_WORLD));
    FAILS(comex_put(&value, words[me], 8, 1, alone));
    FAILS(comex_put(&value, words[me], 8, 0, COMEX_GROUP_NULL));
    FAILS(comex_putv(none, 1, right, COMEX_GROUP_WORLD));
    FAILS(comex_getv(NULL, 1, right, COMEX_GROUP_WORLD));
    FAILS(comex_putv(none, 0, right, COMEX_GROUP_WORLD));
    FAILS(comex_puts(&value, NULL, words[right], NULL, &bad, 0, right, COMEX_GROUP_WORLD));
    FAILS(comex_nbput(&value, words[right], -1, right, COMEX_GROUP_WORLD, &request));
    FAILS(comex_nbgetv(none, 20, right, COMEX_GROUP_WORLD, &request));
    FAILS(comex_nbget(words[right], &value, 8, -1, COMEX_GROUP_WORLD, NULL));
    WORKS(comex_wait(&request));
    FAILS(comex_rmw(COMEX_SWAP, NULL, words[right], 0, right, COMEX_GROUP_WORLD));
    WORKS(comex_put(&value, words[me], 8, 0, alone));
    WORKS(comex_group_free(alone));
}

static void requests(void)
{
    comex_group_t reversed = test_reversed();
    const int right = (me + 1) % nproc;
    long **words = (long **)malloc((size_t)nproc * sizeof(*words));

    WORKS(comex_malloc((void **)words, 64 * sizeof(long), COMEX_GROUP_WORLD));
    many_requests(words, right);
    no_waits(COMEX_GROUP_WORLD);
    no_waits(reversed);
    WORKS(comex_group_free(reversed));
    refused(words, right);
    WORKS(comex_barrier(COMEX_GROUP_WORLD));
    WORKS(comex_free(words[me], COMEX_GROUP_WORLD));
    free(words);
}

/* --- mutexes --- */

static void mutexes(void)
{
    const int last = nproc - 1;
    long **counter = (long **)malloc((size_t)nproc * sizeof(*counter)), value;

    WORKS(comex_create_mutexes(me == last ? 2 : 0));
    FAILS(comex_create_mutexes(1));
    WORKS(comex_malloc((void **)counter, sizeof(long), COMEX_GROUP_WORLD));
    *counter[me] = 0;
    WORKS(comex_barrier(COMEX_GROUP_WORLD));
    for (int i = 0; i < 20; i++) {
        WORKS(comex_lock(1, last));
        WORKS(comex_get(counter[last], &value, sizeof(value), last, COMEX_GROUP_WORLD));
        value++;
        WORKS(comex_put(&value, counter[last], sizeof(value), last, COMEX_GROUP_WORLD));
        WORKS(comex_unlock(1, last));
    }
    WORKS(comex_barrier(COMEX_GROUP_WORLD));
    CHECK_EQ(*counter[me], me == last ? 20 * nproc : 0);
    WORKS(comex_free(counter[me], COMEX_GROUP_WORLD));
    WORKS(comex_destroy_mutexes());
    FAILS(comex_destroy_mutexes());
    free(counter);
}

/* --- parts --- */

static void use(void)
{
    comex_group_t reversed = test_reversed();
    void **ptrs = (void **)malloc((size_t)nproc * sizeof(*ptrs));

    memory(COMEX_GROUP_WORLD);
    memory(reversed);
    WORKS(comex_malloc(ptrs, 8, reversed)); /* comex_finalize frees it, and the group */
    free(ptrs);
}

static int run_parts(void)
{
    int rank, size, status = 0;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int times = 0; times < 2; times++) {
        MPI_Comm half;

        MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, times == 0 ? rank : -rank, &half);
        WORKS(comex_init_comm(half));
        test_started();
        FAILS(comex_group_size(1, &size)); /* comex_finalize has released it */
        use();
        WORKS(comex_init()); /* it runs: nothing to do */
        WORKS(comex_group_size(COMEX_GROUP_WORLD, &size));
        CHECK_EQ(size, nproc);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        if (times == 1)
            me = rank, nproc = size; /* for the last line */
        status = times == 1 ? test_end() : comex_finalize();
        CHECK_EQ(comex_initialized(), 0);
        MPI_Comm_free(&half);
    }
    MPI_Finalize();
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "parts") == 0)
        return run_parts();
    CHECK_EQ(comex_initialized(), 0);
    WORKS(comex_finalize()); /* it does not run: nothing to do */
    WORKS(comex_init());
    CHECK_EQ(comex_initialized(), 1);
    test_started();
    if (argc > 1 && strcmp(argv[1], "error") == 0) {
        if (me == 0)
            comex_error("enough of this", 7);
        comex_barrier(COMEX_GROUP_WORLD);
    }
    groups();
    use();
    requests();
    mutexes();
    return test_finish();
}
