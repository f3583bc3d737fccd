/*
 * progress.c - operations end while their target sleeps, computes, is in MPI or calls the library
 * only now and then; a job that idles costs nearly nothing.
 *
 * usage: progress [threads] [idle | lost]
 *        idle: counts what an idle job costs, too. lost: only what comes late where the network
 *        loses it
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sys/resource.h>
#include <unistd.h>

#include "armci_test.h"

#define OPS       50
#define TRIES     3    /* on a busy machine a thread may be woken late */
#define AWAY      2.0  /* seconds that a target stays away at most */
#define GAP       4e-4 /* seconds between two calls of a target that computes, or more: gap */
#define MAX_GAP   1e-2 /* seconds */
#define IDLE      10   /* seconds */
#define REST      4    /* seconds, after which a service thread sleeps for as long again */
#define RESENT    1.7  /* seconds in which words arrive that were lost */
#define MAX_CPU   10e-3
#define MAX_WAKES 50

enum target { SLEEPS, COMPUTES, IN_MPI, CALLS_RARELY, TARGETS };

static void *base[1024];
static volatile double sum;
static double gap = GAP;
static const char *const names[TARGETS] = { "sleeps", "computes", "is in MPI", "calls rarely" };

static long *words(int proc)
{
    return base[proc];
}

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns true if rank 1 has finished; the target reads its own memory only. */
static int is_over(void)
{
    return __atomic_load_n(&words(me)[7], __ATOMIC_ACQUIRE) != 0;
}

static void stay_away(enum target how)
{
    const double start = armci_timer();
    double x;

    while (how != IN_MPI && !is_over() && armci_timer() - start < AWAY) {
        const double step = armci_timer();

        if (how == SLEEPS)
            usleep(100000);
        while (how != SLEEPS && armci_timer() - step < gap)
            sum = sum + 1;
        if (how == CALLS_RARELY)
            for (int i = 0; i < 100; i++)
                ARMCI_Get(base[me], &x, sizeof(x), me);
    }
}

/* The middle time of a get from the target. */
static double middle_get(void)
{
    double times[OPS], x = 1;

    for (int i = 0; i < OPS; i++) {
        const double start = armci_timer();

        ARMCI_Get(words(0), &x, sizeof(x), 0);
        times[i] = armci_timer() - start;
    }
    qsort(times, OPS, sizeof(times[0]), less);
    return times[OPS / 2];
}

/* The middle time of a get from the target, after all kinds of operations have ended there. */
static double visit(void)
{
    double middle = middle_get(), one = 1;
    long drawn;

    for (int i = 1; i < TRIES && middle >= gap / 4; i++)
        middle = middle_get();
    for (int i = 0; i < OPS; i++) {
        ARMCI_PutValueLong(i, words(0) + 1, 0);
        ARMCI_Acc(ARMCI_ACC_DBL, &one, &one, words(0) + 2, sizeof(one), 0);
        ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &drawn, words(0) + 3, 1, 0);
        ARMCI_Lock(0, 0);
        ARMCI_Unlock(0, 0);
    }
    ARMCI_Fence(0);
    CHECK_EQ(drawn, OPS - 1);
    CHECK_EQ(ARMCI_GetValueDouble(words(0) + 2, 0), OPS);
    return middle;
}

static void absent_target(enum target how)
{
    const double start = (memset(base[me], 0, 64), ARMCI_Barrier(), armci_timer());

    if (me == 0) {
        stay_away(how);
    } else if (me == 1) {
        const double middle = visit(), took = armci_timer() - start;

        printf("a target that %s: get %.1f us, all %.1f ms\n", names[how], 1e6 * middle,
               1e3 * took);
        CHECK(took < AWAY, "a target that %s: %.1f s", names[how], took);
        /* a get that waited for the target's next call would take half of the gap */
        CHECK(how == SLEEPS || middle < gap / 4, "a target that %s: %.0f us", names[how],
              1e6 * middle);
        if (how == SLEEPS) /* only the library can have answered: on a slow machine, slowly */
            gap = middle * 8 < GAP ? GAP : middle * 8 < MAX_GAP ? middle * 8 : MAX_GAP;
        ARMCI_PutValueLong(1, words(0) + 7, 0);
        ARMCI_Fence(0);
    }
    MPI_Bcast(&gap, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    ARMCI_Barrier();
}

static double cpu_of(const struct rusage *use)
{
    return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec)
           + 1e-6 * (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

/* All threads of the process together. */
static void idle(void)
{
    struct rusage before, after;

    usleep(100000); /* what the start has left behind */
    getrusage(RUSAGE_SELF, &before);
    sleep(IDLE);
    getrusage(RUSAGE_SELF, &after);
    printf("rank %d idle for %d s: %.2f ms, %ld wake-ups\n", me, IDLE,
           1e3 * (cpu_of(&after) - cpu_of(&before)), after.ru_nvcsw - before.ru_nvcsw);
    CHECK(cpu_of(&after) - cpu_of(&before) <= MAX_CPU, "%.1f ms",
          1e3 * (cpu_of(&after) - cpu_of(&before)));
    CHECK(after.ru_nvcsw - before.ru_nvcsw <= MAX_WAKES, "%ld wake-ups",
          after.ru_nvcsw - before.ru_nvcsw);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* After a long rest of all threads each other rank puts one word, which the network may lose, and
 * then makes no call: its service thread sends the word again. */
static void senders_leave(void)
{
    const double start = (memset(base[me], 0, 64), ARMCI_Barrier(), sleep(REST), armci_timer());
    int arrived = 0;

    if (me != 0)
        ARMCI_PutValueLong(me, words(0) + me, 0);
    while (arrived < nproc - 1 && armci_timer() - start < 2 * RESENT) {
        arrived = me == 0 ? 0 : -1;
        for (int i = 1; i < nproc && me == 0; i++)
            arrived += __atomic_load_n(&words(0)[i], __ATOMIC_ACQUIRE) == i;
        usleep(1000);
    }
    if (me == 0) {
        printf("%d words after %.2f s\n", arrived, armci_timer() - start);
        CHECK(arrived == nproc - 1 && armci_timer() - start < RESENT, "%d words, %.2f s", arrived,
              armci_timer() - start);
    }
    ARMCI_Barrier();
}

int main(int argc, char **argv)
{
    const char *last;

    test_start(&argc, &argv);
    last = argv[argc - 1];
    ARMCI_Malloc(base, 64);
    ARMCI_Create_mutexes(1);
    for (int how = 0; how < TARGETS && strcmp(last, "lost") != 0; how++)
        absent_target(how);
    if (strcmp(last, "idle") == 0)
        idle();
    if (strcmp(last, "lost") == 0)
        senders_leave();
    ARMCI_Destroy_mutexes();
    ARMCI_Free(base[me]);
    return test_finish();
}
