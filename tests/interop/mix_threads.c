/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix_threads.c - threads that call MPI while others call Aqueduct; and threads that take turns.
 * Owns      its threads
 * Threads   mix_threads: with MPI_THREAD_MULTIPLE, all at once. mix_turns: with
 *           MPI_THREAD_SERIALIZED, one at a time, whether it calls the one library or the other
 * Uses      interop.h, pthreads
 */
#include <pthread.h>
#include <stdlib.h>

#include "interop.h"

#ifdef GASNET_SEQ

void mix_threads(void)
{
}
void mix_turns(void)
{
}

#else

#define MPI_THREADS 2
#define LONG        20000
#define ROUNDS      (10 * it.rounds)

static MPI_Comm comms[MPI_THREADS];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *call_mpi(void *arg)
{
    const int number = (int)(intptr_t)arg;
    unsigned char *in = calloc(1, LONG), *out = malloc(LONG);

    for (unsigned round = 0; round < ROUNDS; round++) {
        const int n = round % 2 == 0 ? 100 : LONG;
        const long ours = (long)round + it.rank;
        long sum = 0;

        fill(out, (size_t)n, round + (uint32_t)it.rank * 3);
        MPI_Sendrecv(out, n, MPI_BYTE, right(), number, in, n, MPI_BYTE, left(), number,
                     comms[number], MPI_STATUS_IGNORE);
        compare("an MPI message of a thread", in, (size_t)n, round + (uint32_t)left() * 3);
        MPI_Allreduce(&ours, &sum, 1, MPI_LONG, MPI_SUM, comms[number]);
        equal("MPI_Allreduce of a thread", sum,
              (long)round * it.size + (long)it.size * (it.size - 1) / 2);
    }
    free(in), free(out);
    return NULL;
}

static void *call_aqueduct(void *arg)
{
    const unsigned channel = (unsigned)(intptr_t)arg;
    struct traffic t;

    for (unsigned round = 0; round < ROUNDS; round++) {
        traffic_start(&t, channel, 29 * round, round % 2 != 0);
        traffic_finish(&t);
        traffic_read_back(channel, 29 * round, round % 2 != 0);
    }
    return NULL;
}

void mix_threads(void)
{
    pthread_t threads[MPI_THREADS + CHANNELS];

    for (int i = 0; i < MPI_THREADS; i++)
        MPI_Comm_dup(it.comm, &comms[i]);
    MPI_Barrier(it.comm);
    for (int i = 0; i < MPI_THREADS; i++)
        pthread_create(&threads[i], NULL, call_mpi, (void *)(intptr_t)i);
    for (int i = 0; i < CHANNELS; i++)
        pthread_create(&threads[MPI_THREADS + i], NULL, call_aqueduct, (void *)(intptr_t)i);
    for (int i = 0; i < CHANNELS; i++)
        pthread_join(threads[MPI_THREADS + i], NULL);
    barrier(); /* serves those whose threads are not done */
    for (int i = 0; i < MPI_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned channel = 0; channel < CHANNELS; channel++)
        traffic_arrived(channel, 29 * (ROUNDS - 1), (ROUNDS - 1) % 2 != 0);
    MPI_Barrier(it.comm);
    for (int i = 0; i < MPI_THREADS; i++)
        MPI_Comm_free(&comms[i]);
    barrier();
}

/* --- one at a time --- */

static void *mpi_in_turns(void *arg)
{
    unsigned char *in = calloc(1, LONG), *out = malloc(LONG);

    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        int done = 0;

        fill(out, LONG, round + (uint32_t)it.rank * 5);
        pthread_mutex_lock(&turn);
        MPI_Irecv(in, LONG, MPI_BYTE, left(), 9, it.comm, &requests[0]);
        MPI_Isend(out, LONG, MPI_BYTE, right(), 9, it.comm, &requests[1]);
        pthread_mutex_unlock(&turn);
        while (!done) {
            pthread_mutex_lock(&turn);
            MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
            pthread_mutex_unlock(&turn);
            sched_yield();
        }
        compare("an MPI message of a thread in its turn", in, LONG, round + (uint32_t)left() * 5);
    }
    free(in), free(out);
    return arg;
}

static void aqueduct_in_turns(const bool *others_done)
{
    bool more = true;

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct traffic t;
        bool done = false;

        pthread_mutex_lock(&turn);
        traffic_start(&t, 0, 31 * round, false);
        pthread_mutex_unlock(&turn);
        while (!done) {
            pthread_mutex_lock(&turn);
            done = traffic_done(&t);
            pthread_mutex_unlock(&turn);
            sched_yield();
        }
        pthread_mutex_lock(&turn);
        traffic_finish(&t);
        traffic_read_back(0, 31 * round, false);
        pthread_mutex_unlock(&turn);
    }
    while (more) { /* the others still need our answers */
        pthread_mutex_lock(&turn);
        gasnet_AMPoll();
        more = !*others_done;
        pthread_mutex_unlock(&turn);
        sched_yield();
    }
}

struct helper {
    pthread_t thread;
    bool done;
};

static void *run_helper(void *arg)
{
    struct helper *h = arg;

    mpi_in_turns(NULL);
    pthread_mutex_lock(&turn);
    h->done = true;
    pthread_mutex_unlock(&turn);
    return NULL;
}

void mix_turns(void)
{
    struct helper h = { .done = false };

    barrier();
    pthread_create(&h.thread, NULL, run_helper, &h);
    aqueduct_in_turns(&h.done);
    pthread_join(h.thread, NULL);
    barrier();
    traffic_arrived(0, 31 * (ROUNDS - 1), false);
    barrier();
}

#endif
