/*
 * test_thread_main_ends.c - the first thread of a process ends by pthread_exit, and another one
 * goes on: collectives of all lengths, puts and gets, and the end of the job. The kernel finds no
 * memory by the number of such a process.
 * Ranks 1+. Mode par. Conduits all. Source GASNet-EX specification 0.19, threads.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "aq_test.h"

#if GASNET_PAR
#include "gasnet_coll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIGHEST ((size_t)1 << 20)

static uint64_t word(size_t nbytes, size_t k)
{
    return nbytes * 31 + k * 7 + 5;
}

static void broadcast(size_t nbytes)
{
    const size_t n = nbytes / 8;
    uint64_t *data = malloc(nbytes); /* private memory */
    const gex_Rank_t root = aq_test_n - 1;
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        data[i] = aq_test_me == root ? word(nbytes, i) : 0;
    gex_Event_Wait(gex_Coll_BroadcastNB(aq_test_tm, root, data, data, nbytes, 0));
    while (k < n && data[k] == word(nbytes, k))
        k++;
    AQ_CHECK_EQ(k, n);
    free(data);
}

static void transfer(size_t nbytes)
{
    uint64_t *words = malloc(nbytes);
    const gex_Rank_t to = aq_test_peer(1);
    size_t k = 0;

    for (size_t i = 0; i < nbytes / 8; i++)
        words[i] = word(aq_test_me, i);
    gex_RMA_PutBlocking(aq_test_tm, to, aq_test_base(to), words, nbytes, 0);
    gex_RMA_GetBlocking(aq_test_tm, words, to, aq_test_base(to), nbytes, 0);
    while (k < nbytes / 8 && words[k] == word(aq_test_me, k))
        k++;
    AQ_CHECK_EQ(k, nbytes / 8);
    free(words);
}

/* Open MPI and MPICH themselves read other processes' memory by their numbers. */
static bool mpi_moves_data(void)
{
    const char *conduit = getenv("GASNET_CONDUIT");
    gex_Rank_t neighbours;

    gex_System_QueryNbrhdInfo(NULL, &neighbours, NULL);
    return conduit != NULL && strcmp(conduit, "mpi") == 0 && neighbours < aq_test_n;
}

/* ThreadSanitizer lets nobody join the first thread. */
static bool first_has_ended(void)
{
    char path[64], text[512] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", (long)getpid());
    file = fopen(path, "r");
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    }
    return strstr(text, ") Z ") != NULL;
}

static void *go_on(void *arg)
{
    (void)arg;
    while (!first_has_ended())
        usleep(1000);
    aq_test_barrier();
    rule("threads: a job goes on after the end of each process's first thread");
    for (size_t nbytes = 8; nbytes <= HIGHEST; nbytes *= 4)
        broadcast(nbytes);
    transfer(HIGHEST);
    exit(aq_test_finish());
}

int main(int argc, char **argv)
{
    pthread_t other;

    aq_test_start(&argc, &argv, 1);
    if (mpi_moves_data())
        aq_test_skip("the MPI reads no process whose first thread has ended");
    aq_test_segment(HIGHEST);
    if (pthread_create(&other, NULL, go_on, NULL) != 0)
        abort();
    pthread_exit(NULL);
}
#else
int main(int argc, char **argv)
{
    aq_test_start(&argc, &argv, 1);
    aq_test_skip("one thread only in seq");
}
#endif
