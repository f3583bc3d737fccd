/*
 * lu_threads.c - ranks that are threads of one process.
 *
 * Every block is loaded in place. A block that lu_armci.c would fetch from the same host is counted
 * too, so that the counts of both programs can be compared.
 *
 * Owns      struct team, one, shared by all threads; the barrier orders every access to its arrays
 * Threads   as many as ranks; the first is the program's own
 * Uses      pthreads
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lu.h"

#define MAX_THREADS 256
#define MAX_VALUES  16
#define MAX_POLLS   2000 /* polls without a result before a thread yields */

static struct team {
    int ranks;
    atomic_int arrived;  /* at the barrier that is under way */
    atomic_uint barrier; /* barriers that all threads have passed */
    void *memory[MAX_THREADS];
    double numbers[MAX_THREADS][MAX_VALUES]; /* of reductions */
    long integers[MAX_THREADS][MAX_VALUES];
    int codes[MAX_THREADS];
    int (*body)(void *);
    void *arg;
} team;

static _Thread_local int self;

static void *run_rank(void *arg)
{
    self = (int)((int *)arg - team.codes);
    team.codes[self] = team.body(team.arg);
    return NULL;
}

int lu_comm_run(int *argc, char ***argv, int threads, int (*body)(void *), void *arg)
{
    pthread_t ids[MAX_THREADS];
    int code = 0;

    (void)argc;
    (void)argv;
    team.ranks = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    team.body = body;
    team.arg = arg;
    for (int rank = 1; rank < team.ranks; rank++)
        if (pthread_create(&ids[rank], NULL, run_rank, &team.codes[rank]) != 0)
            lu_comm_abort("no more threads");
    run_rank(&team.codes[0]);
    for (int rank = 1; rank < team.ranks; rank++)
        pthread_join(ids[rank], NULL);
    for (int rank = 0; rank < team.ranks; rank++)
        code = team.codes[rank] > code ? team.codes[rank] : code;
    return code;
}

int lu_comm_rank(void)
{
    return self;
}

int lu_comm_ranks(void)
{
    return team.ranks;
}

int lu_comm_hosts(void)
{
    return 1;
}

bool lu_comm_same_host(int rank)
{
    (void)rank;
    return true;
}

const char *lu_comm_kind(void)
{
    return "thread";
}

bool lu_comm_loads_only(void)
{
    return true;
}

void *lu_comm_memory(size_t bytes, int slots)
{
    bool all = true;

    (void)slots;
    team.memory[self] = malloc(bytes + 1);
    lu_comm_barrier();
    for (int rank = 0; rank < team.ranks; rank++)
        all = all && team.memory[rank] != NULL;
    return all ? team.memory[self] : NULL;
}

void lu_comm_memory_free(void)
{
    lu_comm_barrier();
    free(team.memory[self]);
    team.memory[self] = NULL;
}

const char *lu_comm_address(int rank)
{
    return team.memory[rank];
}

void lu_comm_get(void *to, int rank, size_t offset, size_t bytes)
{
    memcpy(to, (const char *)team.memory[rank] + offset, bytes);
}

void lu_comm_get_start(void *to, int rank, size_t offset, size_t bytes, int slot)
{
    (void)slot;
    lu_comm_get(to, rank, offset, bytes);
}

void lu_comm_get_wait(int slot)
{
    (void)slot;
}

/* Polls for a while and then yields, as ARMCI's barrier does. */
void lu_comm_barrier(void)
{
    const unsigned passed = atomic_load_explicit(&team.barrier, memory_order_relaxed);

    /* the last thread to arrive sees what each thread has written before */
    if (atomic_fetch_add_explicit(&team.arrived, 1, memory_order_acq_rel) == team.ranks - 1) {
        atomic_store_explicit(&team.arrived, 0, memory_order_relaxed);
        /* pairs with the acquire below */
        atomic_store_explicit(&team.barrier, passed + 1, memory_order_release);
        return;
    }
    for (int polls = 0; atomic_load_explicit(&team.barrier, memory_order_acquire) == passed;)
        if (polls < MAX_POLLS)
            polls++;
        else
            sched_yield();
}

void lu_comm_sum(long *values, int count)
{
    memcpy(team.integers[self], values, (size_t)count * sizeof(*values));
    lu_comm_barrier();
    for (int at = 0; at < count; at++) {
        values[at] = 0;
        for (int rank = 0; rank < team.ranks; rank++)
            values[at] += team.integers[rank][at];
    }
    lu_comm_barrier();
}

void lu_comm_max(double *values, int count)
{
    memcpy(team.numbers[self], values, (size_t)count * sizeof(*values));
    lu_comm_barrier();
    for (int at = 0; at < count; at++)
        for (int rank = 0; rank < team.ranks; rank++)
            if (team.numbers[rank][at] > values[at])
                values[at] = team.numbers[rank][at];
    lu_comm_barrier();
}

double lu_comm_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

_Noreturn void lu_comm_abort(const char *why)
{
    fprintf(stderr, "lu-pthread: %s\n", why);
    exit(1);
}
