/*
 * soak.c - ranks that wait for each other in every way, for as long as they are told.
 *
 *   soak SECONDS FOLDER     each rank leaves its process number in FOLDER/pid.RANK; rank 0 prints
 *                           how many rounds are over, twice a second
 *
 * All ranks draw the same random numbers: each round is a barrier, a named barrier, an all-reduce,
 * or messages, after a pause that differs by rank, so that the others are asleep. In par two more
 * threads of each rank send requests to random ranks and wait for the replies. run.pl stops and
 * continues the processes meanwhile. With AQ_SLEEP=1000s nobody wakes by himself: a wake-up that is
 * lost ends the progress.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_coll.h"
#include "gasnetex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if GASNET_PAR
#include <pthread.h>
#define THREADS 2
#else
#define THREADS 0
#endif

enum { H_RING = 200, H_PING, H_PONG };
enum { KINDS = 5, ROUNDS_PER_LOOK = 64 };

static gex_TM_t tm;
static gex_Rank_t me, size;
static atomic_uint rings, pongs[THREADS + 1];
static atomic_bool over;

static void h_ring(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&rings, 1);
}

static void h_ping(gex_Token_t token, gex_AM_Arg_t thread)
{
    gex_AM_ReplyShort1(token, H_PONG, 0, thread);
}

static void h_pong(gex_Token_t token, gex_AM_Arg_t thread)
{
    (void)token;
    atomic_fetch_add(&pongs[thread], 1);
}

static unsigned draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(*state >> 33);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void rest(unsigned us)
{
    const struct timespec length = { 0, (long)us * 1000 };

    nanosleep(&length, NULL);
}

static void ping(unsigned thread, gex_Rank_t rank)
{
    const unsigned before = atomic_load(&pongs[thread]);

    gex_AM_RequestShort1(tm, rank, H_PING, 0, (gex_AM_Arg_t)thread);
    GASNET_BLOCKUNTIL(atomic_load(&pongs[thread]) != before);
}

/* The largest of the ranks' values. */
static int32_t largest(int32_t value)
{
    int32_t result = 0;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(tm, &result, &value, GEX_DT_I32, sizeof(value), 1,
                                          GEX_OP_MAX, NULL, NULL, 0));
    return result;
}

static void play(unsigned kind, unsigned round)
{
    static unsigned rung;

    switch (kind) {
    case 0:
        gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
        break;
    case 1:
        gasnet_barrier_notify((int)round, 0);
        if (gasnet_barrier_wait((int)round, 0) != GASNET_OK)
            abort();
        break;
    case 2:
        if (largest((int32_t)me) != (int32_t)size - 1)
            abort();
        break;
    case 3:
        rung++;
        gex_AM_RequestShort0(tm, (me + 1) % size, H_RING, 0);
        GASNET_BLOCKUNTIL(atomic_load(&rings) >= rung);
        break;
    default:
        ping(THREADS, (me + round) % size);
        break;
    }
}

#if GASNET_PAR
static void *chat(void *arg)
{
    const unsigned thread = (unsigned)(uintptr_t)arg;
    uint64_t random = 1000 * me + thread;

    while (!atomic_load(&over)) {
        ping(thread, draw(&random) % size);
        rest(draw(&random) % 3000);
    }
    return NULL;
}
#endif

static void rounds_until(double end)
{
    uint64_t together = 1, own = me + 1;
    double said = 0;

    for (unsigned round = 0;; round++) {
        if (round % ROUNDS_PER_LOOK == 0 && largest(me == 0 && now() > end) != 0)
            return;
        if (draw(&together) % 4 == 0)
            rest(draw(&own) % 1500);
        play(draw(&together) % KINDS, round);
        if (me == 0 && now() > said + 0.5) {
            printf("%u\n", round);
            fflush(stdout);
            said = now();
        }
    }
}

static void leave_pid(const char *folder)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/pid.%u", folder, me);
    file = fopen(path, "w");
    if (file == NULL)
        abort();
    fprintf(file, "%ld\n", (long)getpid());
    fclose(file);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        { H_RING, (gex_AM_Fn_t)h_ring, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ring" },
        { H_PING, (gex_AM_Fn_t)h_ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping" },
        { H_PONG, (gex_AM_Fn_t)h_pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong" },
    };
    gex_Client_t client;
    gex_EP_t ep;

    if (gex_Client_Init(&client, &ep, &tm, "SOAK", &argc, &argv, 0) != GASNET_OK || argc != 3)
        return 2;
    me = gex_TM_QueryRank(tm);
    size = gex_TM_QuerySize(tm);
    gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0]));
    leave_pid(argv[2]);
    if (me % 2 == 1)
        gasnet_set_waitmode(GASNET_WAIT_BLOCK); /* half of the ranks sleep at once */
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
#if GASNET_PAR
    pthread_t threads[THREADS];

    for (uintptr_t t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, chat, (void *)t) != 0)
            abort();
#endif
    rounds_until(now() + atof(argv[1]));
    atomic_store(&over, true);
#if GASNET_PAR
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
#endif
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gasnet_exit(0);
    return 0;
}
