/*
 * locks.c - what mutexes cost: free, contended by all ranks, and while the holder sleeps; and that
 * signals do not delay a waiting rank. With the argument "limits" the goals are checks, for
 * machines that have nothing else to do; with "short" few slices are measured.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "armci_test.h"

#define SLICES  15
#define PAIRS   20000
#define ASLEEP  1 /* seconds */
#define SIGNALS 80

static void *base[1024];
static int limits, rounds = 5;
static double seconds = 0.5; /* of a slice with contention */

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double middle(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), less);
    return values[n / 2];
}

static double cpu(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec)
           + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* A pair of lock and unlock beside a compare-and-swap that takes a word and one that gives it back,
 * in turn. */
static void free_mutex(void)
{
    static volatile unsigned word;
    double ratios[SLICES], pair = 0, swap = 0;

    for (int slice = 0; slice < SLICES && me == 0; slice++) {
        const double start = armci_timer();
        double between;

        for (int i = 0; i < PAIRS; i++) {
            ARMCI_Lock(0, 0);
            ARMCI_Unlock(0, 0);
        }
        between = armci_timer();
        for (int i = 0; i < PAIRS; i++) {
            unsigned expected = 0;

            __atomic_compare_exchange_n(&word, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
            expected = 1;
            __atomic_compare_exchange_n(&word, &expected, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
        }
        pair = between - start;
        swap = armci_timer() - between;
        ratios[slice] = pair / swap;
    }
    if (me == 0) {
        const double ratio = middle(ratios, SLICES);

        printf("free mutex: %.1f ns for lock and unlock, %.2f of two compare-and-swaps\n",
               1e9 * pair / PAIRS, ratio);
        CHECK(!limits || ratio <= 1.5, "%.2f", ratio);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A section of about 1 us; returns how many a second the contenders ran together. */
static double contend(int contenders)
{
    const double start = (ARMCI_Barrier(), armci_timer());
    long *count = base[0];
    long sections = 0;

    while (me < contenders && armci_timer() - start < seconds) {
        for (int i = 0; i < 20; i++, sections++) {
            ARMCI_Lock(0, 0);
            for (int k = 0; k < 3000; k++)
                __asm__ volatile("" ::: "memory");
            if (ARMCI_Same_node(0))
                ++*count; /* a sum that is wrong when two are inside */
            ARMCI_Unlock(0, 0);
        }
    }
    ARMCI_Barrier();
    armci_msg_lgop(&sections, 1, "+");
    if (me == 0 && ARMCI_Same_node(nproc - 1))
        CHECK_EQ(*count, sections);
    ARMCI_Barrier();
    if (me == 0)
        *count = 0;
    return (double)sections / seconds;
}

/* The ranks that do not contend sleep: MPI's barrier would take their cores. */
static void contended_mutex(void)
{
    double ratios[5], one = 0, all;

    for (int i = 0; i < rounds; i++) {
        one = contend(1);
        all = contend(nproc);
        ratios[i] = all / one;
    }
    if (me == 0) {
        const double ratio = middle(ratios, rounds);

        printf("contended mutex: %d ranks %.2f of the rate of one (%.0f/s)\n", nproc, ratio, one);
        CHECK(!limits || ratio >= 0.9, "%.2f", ratio);
    }
}

static void holder_sleeps(void)
{
    double used;

    ARMCI_Barrier();
    if (me == 0)
        ARMCI_Lock(0, 0);
    ARMCI_Barrier();
    used = cpu();
    if (me == 0) {
        sleep(ASLEEP);
        ARMCI_Unlock(0, 0);
    } else {
        usleep(10000);
        ARMCI_Lock(0, 0);
        used = (cpu() - used) / ASLEEP;
        ARMCI_Unlock(0, 0);
        if (me == 1)
            printf("waiting for a holder that sleeps: %.2f %% of a core\n", 100 * used);
        CHECK(used < 0.05, "%.1f %%", 100 * used);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time); /* the same for all ranks of a host */
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void hold_for(double s)
{
    const double end = now() + s;

    while (now() < end)
        continue;
}

static void on_alarm(int number)
{
    (void)number;
}

static void set_alarm(long us)
{
    const struct itimerval at = { .it_value = { 0, us } };

    setitimer(ITIMER_REAL, &at, NULL);
}

/* Holds the mutex for long enough that others sleep, takes it again and again, and releases it for
 * good. Returns when. */
static double take_again_and_again(void)
{
    double began, end;

    hold_for(500e-6);
    began = now();
    do {
        ARMCI_Unlock(0, 0);
        ARMCI_Lock(0, 0);
        hold_for(4e-6);
        end = now();
    } while (end - began < 600e-6);
    ARMCI_Unlock(0, 0);
    return end;
}

/* A rank that was woken, and found the mutex taken again, looks again soon, although a signal ends
 * the sleep in between: such a rank is late no more often than others. */
static void signal_in_sleep(void)
{
    const struct sigaction act = { .sa_handler = on_alarm };
    int late[2] = { 0, 0 };

    sigaction(SIGALRM, &act, NULL);
    for (int i = 0; i < 2 * SIGNALS; i++) {
        double taken = 0;

        if (me == 0)
            ARMCI_Lock(0, 0);
        ARMCI_Barrier();
        if (me == 0) {
            *(volatile double *)base[0] = take_again_and_again();
        } else if (me == 1) {
            if (i % 2 != 0)
                set_alarm(500 + 90 * (i % 11));
            ARMCI_Lock(0, 0);
            taken = now();
            set_alarm(0);
            ARMCI_Unlock(0, 0);
        }
        ARMCI_Barrier();
        if (me == 1)
            late[i % 2] += taken - ARMCI_GetValueDouble(base[0], 0) > 0.01;
        ARMCI_Barrier();
    }
    CHECK(late[1] <= late[0] + SIGNALS / 6,
          "%d of %d takes 10 ms after the mutex was free, %d without signals", late[1], SIGNALS,
          late[0]);
}

int main(int argc, char **argv)
{
    test_start(&argc, &argv);
    limits = argc > 1 && strcmp(argv[argc - 1], "limits") == 0;
    if (argc > 1 && strcmp(argv[argc - 1], "short") == 0) {
        rounds = 1;
        seconds = 0.1;
    }
    ARMCI_Malloc(base, 64);
    memset(base[me], 0, 64);
    ARMCI_Create_mutexes(1);
    free_mutex();
    contended_mutex();
    holder_sleeps();
    signal_in_sleep();
    ARMCI_Destroy_mutexes();
    ARMCI_Free(base[me]);
    return test_finish();
}
