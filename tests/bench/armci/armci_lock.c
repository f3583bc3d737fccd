/*
 * armci_lock.c - a mutex that many ranks want at once, on fewer processors, and one whose holder
 * sleeps.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "armci.h"
#include "bench_armci.h"

#define ROUNDS 5
#define ASLEEP 1 /* seconds */

/* Sections of about 1 us by the first ranks, while the others sleep in the library; how many a
 * second. */
static double contend(int contenders)
{
    const double end = (ARMCI_Barrier(), bench_now() + (bench_quick ? 1e8 : 5e8));
    long sections = 0;
    double took = bench_now();

    while (bench_me < contenders && bench_now() < end) {
        for (int i = 0; i < 20; i++, sections++) {
            ARMCI_Lock(0, 0);
            for (int k = 0; k < 3000; k++)
                __asm__ volatile("" ::: "memory");
            ARMCI_Unlock(0, 0);
        }
    }
    ARMCI_Barrier();
    took = bench_now() - took;
    armci_msg_lgop(&sections, 1, "+");
    return 1e9 * (double)sections / took;
}

static void contended_rows(void)
{
    double ratios[ROUNDS], rate = 0;
    char name[64];

    for (int i = 0; i < ROUNDS; i++) {
        const double one = contend(1), all = contend(bench_nproc);

        ratios[i] = all / one;
        rate = one;
    }
    if (bench_me != 0)
        return;
    bench_figure("sections of one rank", 0, rate, "1/s", 0);
    snprintf(name, sizeof(name), "sections of %d ranks", bench_nproc);
    bench_figure_at_min(name, 0, bench_middle(ratios, ROUNDS), "of one's rate", 0.9);
}

static double processor_s(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec)
           + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void asleep_row(void)
{
    double used, upper;

    ARMCI_Barrier();
    if (bench_me == 0)
        ARMCI_Lock(0, 0);
    ARMCI_Barrier();
    used = processor_s();
    if (bench_me == 0)
        sleep(ASLEEP);
    else
        ARMCI_Lock(0, 0);
    used = bench_me == 0 ? 0 : 100 * (processor_s() - used) / ASLEEP;
    ARMCI_Unlock(0, 0);
    MPI_Reduce(&used, &upper, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (bench_me == 0)
        bench_figure("waiters while the holder sleeps", 0, upper, "% of a core", 5);
}

int main(int argc, char **argv)
{
    bench_start(&argc, &argv, 64);
    ARMCI_Create_mutexes(1);
    contended_rows();
    asleep_row();
    ARMCI_Destroy_mutexes();
    bench_finish();
    return 0;
}
