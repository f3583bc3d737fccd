/*
 * order.c - blocking puts and accumulates of all sizes take effect at their target in the order of
 * the calls, whatever carries them.
 *
 * usage: order [threads] [SETTING=VALUE ...] [used COUNTER ...]
 *        settings of docs/armci.md; counters that must have counted
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"
#include "armcix.h"

#define STEPS   3000
#define WORDS   12288 /* doubles that a rank owns at each target */
#define SIGNALS 20000

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
        const unsigned what = below(10);

        if (what < 5)
            put_some(to);
        else if (what < 7)
            put_section(to);
        else
            add_some(to);
        if (below(STEPS / 20) == 0)
            compare(to, step);
    }
    compare(to, STEPS);
    ARMCI_Barrier();
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
        long second, first, back = 0;

        while ((second = __atomic_load_n(&words[2], __ATOMIC_ACQUIRE)) <= SIGNALS) {
            first = __atomic_load_n(&words[0], __ATOMIC_RELAXED);
            back += first < second;
            ARMCI_Fence(0);
        }
        CHECK(back == 0, "%ld times the second word came before the first", back);
        armci_notify_wait(0, NULL);
        CHECK_EQ(words[0], SIGNALS + 1);
        CHECK_EQ(*(volatile int *)&words[4], SIGNALS + 1);
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
    seen_in_order();
    for (i++; i < argc; i++)
        CHECK(ARMCIX_Counter(argv[i]) > 0, "%s has counted nothing", argv[i]);
    ARMCI_Free(base[me]);
    return test_finish();
}
