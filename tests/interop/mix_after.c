/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix_after.c - a program that communicates after its MPI_Finalize, which is an error that must be
 * reported; and one that does not.
 * Owns      a thread
 * Threads   the caller's; after-thread, after-leave: another, which puts, or ends the job, while
 *           the main one is in MPI_Finalize
 * Uses      interop.h, pthreads
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interop.h"

static unsigned char *remote_memory(void)
{
    void *segment;

    gex_Segment_QueryBound(it.tm, (gex_Rank_t)right(), &segment, NULL, NULL);
    return segment;
}

static void put(void)
{
    static unsigned char word[8];

    gex_RMA_PutBlocking(it.tm, (gex_Rank_t)right(), remote_memory(), word, sizeof(word), 0);
}

/* With IMMEDIATE a put is declined as long as there is no room for it; here there never will be. */
static void put_immediate(void)
{
    static unsigned char word[8];
    gex_Event_t event = GEX_EVENT_NO_OP;

    while (event == GEX_EVENT_NO_OP)
        event = gex_RMA_PutNB(it.tm, (gex_Rank_t)right(), remote_memory(), word, sizeof(word),
                              GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE);
    gex_Event_Wait(event);
}

static void *put_on(void *arg)
{
    for (;;)
        put();
    return arg;
}

static void *leave_on(void *arg)
{
    usleep(100000);
    gasnet_exit(3);
    return arg;
}

/* Rank 0 waits in MPI_Finalize as a thread of it leaves. The others enter the call at about that
 * time, or never. */
static _Noreturn void end_and_leave(bool together)
{
    pthread_t thread;

    if (it.rank == 0)
        pthread_create(&thread, NULL, leave_on, NULL);
    else if (together)
        usleep(100000);
    else
        sleep(60);
    MPI_Finalize();
    sleep(60);
    gasnet_exit(4);
}

/* A put that was begun before, and whose answer nobody has taken in. */
static gex_Event_t begin_and_end(void)
{
    static unsigned char word[8];
    const gex_Event_t event = gex_RMA_PutNB(it.tm, (gex_Rank_t)right(), remote_memory(), word,
                                            sizeof(word), GEX_EVENT_NOW, 0);

    MPI_Finalize();
    return event;
}

static void end_and_wait(int mode)
{
    gasnet_set_waitmode(mode);
    gex_Event_Wait(begin_and_end());
}

/* What has been begun is not waited for: that is no mistake. */
static _Noreturn void end_and_work(void)
{
    begin_and_end();
    sleep(2);
    gasnet_exit(0);
}

bool mix_after(const char *how)
{
    const bool threaded = strcmp(how, "after-thread") == 0;
    pthread_t thread;

    if (strncmp(how, "after-", 6) != 0)
        return false;
    if (strcmp(how, "after-work") == 0)
        end_and_work();
    if (strcmp(how, "after-leave") == 0 || strcmp(how, "after-leave-alone") == 0)
        end_and_leave(strcmp(how, "after-leave") == 0);
    if (strcmp(how, "after-wait") == 0 || strcmp(how, "after-spin") == 0) {
        end_and_wait(strcmp(how, "after-spin") == 0 ? GASNET_WAIT_SPIN : GASNET_WAIT_SPINBLOCK);
        return true;
    }
    if (threaded)
        pthread_create(&thread, NULL, put_on, NULL);
    MPI_Finalize();
    if (threaded)
        pthread_join(thread, NULL);
    else if (strcmp(how, "after-barrier") == 0)
        barrier();
    else if (strcmp(how, "after-put") == 0)
        put();
    else
        put_immediate();
    return true;
}
