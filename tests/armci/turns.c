/*
 * turns.c - threads of a program call ARMCI in turns, as Global Arrays' threadsafec does: one call
 * at a time, whichever thread makes it. Run by run.sh, and under ThreadSanitizer.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "armci_test.h"

#include <pthread.h>

#define THREADS 3
#define TURNS   30
#define WORDS   4000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next_turn = PTHREAD_COND_INITIALIZER;
static int turn;
static void *base[1024];
static armci_hdl_t handle; /* of one turn's get, waited for in the next, by another thread */
static long got[WORDS];

/* Every rank's threads have the same turns, so that collective calls meet. */
static void work(int number)
{
    const int right = (me + 1) % nproc;
    long values[WORDS];
    int one = 1;

    if (number > 0)
        ARMCI_Wait(&handle);
    for (int i = 0; number > 0 && i < WORDS; i++)
        CHECK_EQ(got[i], (long)(number - 1) * WORDS + i);
    for (int i = 0; i < WORDS; i++)
        values[i] = (long)number * WORDS + i;
    ARMCI_Barrier(); /* who reads has read */
    ARMCI_Put(values, base[right], sizeof(values), right);
    ARMCI_Acc(ARMCI_ACC_INT, &one, &one, (char *)base[right] + sizeof(values), sizeof(int), right);
    ARMCI_Lock(0, 0);
    ARMCI_Unlock(0, 0);
    ARMCI_Barrier();
    ARMCI_INIT_HANDLE(&handle);
    ARMCI_NbGet(base[right], got, sizeof(got), right, &handle);
}

static void *run(void *arg)
{
    const int thread = *(int *)arg;

    pthread_mutex_lock(&mutex);
    while (turn < TURNS) {
        if (turn % THREADS == thread) {
            work(turn++);
            pthread_cond_broadcast(&next_turn);
        } else {
            pthread_cond_wait(&next_turn, &mutex);
        }
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int number[THREADS];

    test_start(&argc, &argv);
    ARMCI_Malloc(base, WORDS * sizeof(long) + sizeof(int));
    memset(base[me], 0, WORDS * sizeof(long) + sizeof(int));
    ARMCI_Create_mutexes(me == 0);
    ARMCI_Barrier();
    for (int t = 0; t < THREADS; t++) {
        number[t] = t;
        pthread_create(&threads[t], NULL, run, &number[t]);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    ARMCI_Wait(&handle);
    ARMCI_Barrier();
    CHECK_EQ(*(int *)(void *)((char *)base[me] + WORDS * sizeof(long)), TURNS);
    ARMCI_Destroy_mutexes();
    ARMCI_Free(base[me]);
    return test_finish();
}
