/*
 * order.c - blocking puts and accumulates of all sizes take effect at their target in the order of
 * the calls, whatever carries them, and are there after a fence.
 *
 * usage: order [threads] [SETTING=VALUE ...] [quiet] [used COUNTER ...]
 *        settings of docs/armci.md; with a target that waits in MPI; counters that must have
 *        counted
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"
#include "armcix.h"

#define STEPS   3000
#define WORDS   12288 /* doubles that a rank owns at each target */
#define SIGNALS 20000
#define FENCED  40 /* operations before a fence, at most */

static void *base[1024];
static double model[WORDS], source[WORDS], found[WORDS];
static unsigned seed;

static unsigned below(unsigned limit)
{
    return test_random(&seed, limit);
}

static double *part_of(int proc)
{
    return (double *)base[proc] + 64 + (size_t)me * WORDS;
}

/* Short lengths are the most frequent. */
static int some_words(void)
{
    static const int limits[] = { 1, 2, 16, 128, 600, 5000 };

    return 1 + (int)below((unsigned)limits[below(6)]);
}

static void put_some(int to)
{
    const int n = some_words(), at = (int)below((unsigned)(WORDS - n));

    for (int i = 0; i < n; i++)
        model[at + i] = source[i] = below(1000);
    ARMCI_Put(source, part_of(to) + at, n * 8, to);
    source[0] = -1; /* the source may be reused */
}

static void put_section(int to)
{
    int n = some_words() / 4 + 1, runs = 2 + (int)below(6), gap = n + (int)below(40);
    const int at = (int)below((unsigned)(WORDS - runs * gap));
    int stride = gap * 8, local = n * 8, count[2] = { n * 8, runs };

    for (int r = 0; r < runs; r++)
        for (int i = 0; i < n; i++)
            model[at + r * gap + i] = source[r * n + i] = below(1000);
    ARMCI_PutS(source, &local, part_of(to) + at, &stride, count, 1, to);
    source[0] = -1;
}

static void add_some(int to)
{
    const int n = some_words(), at = (int)below((unsigned)(WORDS - n));
    double scale = 2;

    for (int i = 0; i < n; i++) {
        source[i] = below(1000);
        model[at + i] += scale * source[i];
    }
    ARMCI_Acc(ARMCI_ACC_DBL, &scale, source, part_of(to) + at, n * 8, to);
    source[0] = -1;
}

/* A block of planes of rows, put or added. */
static void block(int to, int adds)
{
    const int n = 1 + (int)below(30), rows = 2 + (int)below(9), planes = 2 + (int)below(9);
    const int row = n + (int)below(7), plane = rows * row + (int)below(5);
    const int at = (int)below((unsigned)(WORDS - planes * plane));
    int dst_stride[2] = { row * 8, plane * 8 }, src_stride[2] = { n * 8, rows * n * 8 };
    int count[3] = { n * 8, rows, planes };
    double scale = 3;

    for (int p = 0; p < planes; p++)
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < n; i++) {
                double *const x = &model[at + p * plane + r * row + i];
                const double value = below(1000);

                source[(p * rows + r) * n + i] = value;
                *x = adds ? *x + scale * value : value;
            }
    if (adds)
        ARMCI_AccS(ARMCI_ACC_DBL, &scale, source, src_stride, part_of(to) + at, dst_stride, count,
                   2, to);
    else
        ARMCI_PutS(source, src_stride, part_of(to) + at, dst_stride, count, 2, to);
    source[0] = -1;
}

/* A list of segments of one length in different places, put or added. */
static void list(int to, int adds)
{
    enum { SEGMENTS = 9, PART = WORDS / SEGMENTS };
    const int n = 1 + (int)below(PART < 900 ? PART : 900);
    void *from[SEGMENTS], *at[SEGMENTS];
    armci_giov_t giov = {
        .src_ptr_array = from, .dst_ptr_array = at, .bytes = n * 8, .ptr_array_len = SEGMENTS
    };
    double scale = 1;

    for (int k = 0; k < SEGMENTS; k++) {
        const int begin = k * PART + (int)below((unsigned)(PART - n + 1));

        from[k] = source + k * n;
        at[k] = part_of(to) + begin;
        for (int i = 0; i < n; i++) {
            source[k * n + i] = below(1000);
            model[begin + i] = source[k * n + i] + (adds ? model[begin + i] : 0);
        }
    }
    if (adds)
        ARMCI_AccV(ARMCI_ACC_DBL, &scale, &giov, 1, to);
    else
        ARMCI_PutV(&giov, 1, to);
    source[0] = -1;
}

/* Operations that are no messages. */
static void other(int to)
{
    const int at = (int)below(WORDS);
    double word = below(1000), *x = part_of(to) + at;
    long old;
    armci_hdl_t handle;

    switch (below(4)) {
    case 0:
        ARMCI_INIT_HANDLE(&handle);
        ARMCI_NbPut(&word, x, sizeof(word), to, &handle);
        ARMCI_Wait(&handle);
        model[at] = word;
        break;
    case 1:
        CHECK(ARMCI_GetValueDouble(x, to) == model[at], "a value");
        break;
    case 2: /* the bits of a double are never read as a number here */
        ARMCI_Rmw(ARMCI_SWAP_LONG, (void *)memcpy(&old, &word, sizeof(old)), x, 0, to);
        CHECK(memcmp(&old, &model[at], sizeof(old)) == 0, "a swapped word");
        model[at] = word;
        break;
    default:
        ARMCI_PutValueDouble(word, x, to);
        model[at] = word;
        break;
    }
}

static void compare(int to, int step)
{
    int wrong = 0;

    ARMCI_Get(part_of(to), found, sizeof(found), to);
    for (int i = 0; i < WORDS; i++)
        wrong += found[i] != model[i];
    CHECK(wrong == 0, "step %d: %d words differ", step, wrong);
}

/* All ranks at the same time, each to memory of its own at the next one. */
static void random_operations(void)
{
    const int to = (me + 1) % nproc;

    seed = 7u + (unsigned)me;
    memset(base[me], 0, (64 + (size_t)nproc * WORDS) * 8);
    ARMCI_Barrier();
    for (int step = 0; step < STEPS; step++) {
        const unsigned what = below(10); /* tenths */

        if (what < 4)
            put_some(to);
        else if (what < 5)
            put_section(to);
        else if (what < 7)
            add_some(to);
        else if (what < 8)
            block(to, step % 2);
        else if (what < 9)
            list(to, step % 2);
        else
            other(to);
        if (below(STEPS / 20) == 0)
            compare(to, step);
    }
    compare(to, STEPS);
    ARMCI_Barrier();
}

/* A fence means arrival, after any number of operations. */
static void arrived_at_fence(void)
{
    const int to = (me + 1) % nproc, from = (me + nproc - 1) % nproc;
    long one = 1, wrong = 0;

    for (long n = 0; n <= FENCED; n++) {
        memset(base[me], 0, FENCED * sizeof(long));
        ARMCI_Barrier();
        for (long i = 0, word = 100 * me + n; i < n; i++)
            if (i % 3 == 2)
                ARMCI_Acc(ARMCI_ACC_LNG, &one, &word, (long *)base[to] + i, sizeof(word), to);
            else
                ARMCI_Put(&word, (long *)base[to] + i, sizeof(word), to);
        ARMCI_Fence(to);
        armci_msg_barrier();
        for (long i = 0; i < FENCED; i++)
            wrong += ((volatile long *)base[me])[i] != (i < n ? 100 * from + n : 0);
        armci_msg_barrier();
    }
    CHECK(wrong == 0, "%ld words were not there after a fence", wrong);
}

/* Rank 0 puts two words again and again; who sees the second of a pair sees the first. The last
 * ones come by a flag and by a notification. */
static void seen_in_order(void)
{
    long *const words = base[me];
    long *const to = base[1];

    memset(base[me], 0, 64);
    ARMCI_Barrier();
    if (me == 0) {
        for (long i = 1; i < SIGNALS; i++) {
            ARMCI_Put(&i, to, sizeof(i), 1);
            ARMCI_PutValueLong(i, to + 2, 1);
        }
        for (long i = SIGNALS; i <= SIGNALS + 1; i++) {
            int flag = (int)i;

            ARMCI_Put_flag(&i, to, sizeof(i), (int *)(to + 4), flag, 1);
            ARMCI_PutValueLong(i, to + 2, 1);
        }
        armci_notify(1);
    } else if (me == 1) {
        long second, back = 0;

        do {
            const int flag = __atomic_load_n((int *)&words[4], __ATOMIC_ACQUIRE);

            back += __atomic_load_n(&words[0], __ATOMIC_RELAXED) < flag;
            second = __atomic_load_n(&words[2], __ATOMIC_ACQUIRE);
            back += __atomic_load_n(&words[0], __ATOMIC_RELAXED) < second;
            ARMCI_Fence(0);
        } while (second <= SIGNALS);
        CHECK(back == 0, "%ld times a flag or a second word came before the first", back);
        armci_notify_wait(0, NULL);
        CHECK_EQ(words[0], SIGNALS + 1);
        CHECK_EQ(*(volatile int *)&words[4], SIGNALS + 1);
    }
    ARMCI_Barrier();
}

/* A rank that waits in MPI, and serves nobody, finds the data and the flag of a put that needs no
 * thread of it. */
static void target_in_mpi(void)
{
    int *const flag = (int *)((long *)base[1] + 4), token = 0;
    long word = 5, eager = ARMCIX_Counter("put_eager");
    int served = 1;

    memset(base[me], 0, 64);
    ARMCI_Barrier();
    if (me == 0) {
        ARMCI_Put(&word, base[1], sizeof(word), 1);
        served = ARMCIX_Counter("put_eager") > eager;
    }
    MPI_Bcast(&served, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (served) {
        printf("puts need a thread of their target\n");
    } else if (me == 0) {
        ARMCI_Put_flag(&word, base[1], sizeof(word), flag, 7, 1);
        ARMCI_Fence(1);
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        armci_notify(1);
        ARMCI_Fence(1);
        MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (me == 1) {
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(*(volatile long *)base[1], 5);
        CHECK_EQ(*(volatile int *)flag, 7);
        MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        armci_notify_wait(0, NULL);
    }
    ARMCI_Barrier();
}

int main(int argc, char **argv)
{
    int i = test_threads(argc, argv) ? 2 : 1;

    test_start(&argc, &argv);
    ARMCI_Malloc(base, (64 + (size_t)nproc * WORDS) * 8);
    for (char *value; i < argc && (value = strchr(argv[i], '=')) != NULL; i++) {
        *value = '\0';
        CHECK_EQ(ARMCIX_Set(argv[i], value + 1), 0);
    }
    random_operations();
    arrived_at_fence();
    seen_in_order();
    if (i < argc && strcmp(argv[i], "quiet") == 0) {
        target_in_mpi();
        i++;
    }
    for (i++; i < argc; i++)
        CHECK(ARMCIX_Counter(argv[i]) > 0, "%s has counted nothing", argv[i]);
    ARMCI_Free(base[me]);
    return test_finish();
}
