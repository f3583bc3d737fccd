/*
 * user_stall.c - the last rank keeps the others waiting, in the way that its argument names. Run by
 * users.sh, which looks at what rank 0 prints.
 * Usage: user_stall CASE SECONDS [tag]. Ranks 2, and more for collectives.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "gasnet_coll.h"
#include "gasnetex.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { H_TAKE = GEX_AM_INDEX_BASE, H_GO, SPACE = 100000 };

static gex_TM_t tm, team;   /* team: all ranks, the last one first */
static gex_Rank_t me, away; /* away: the rank that keeps the others waiting */
static volatile int taken, go;
static uint64_t *peer_words;

static void h_take(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    taken++;
}

static void h_go(gex_Token_t token)
{
    (void)token;
    go = 1;
}

static gex_AM_Entry_t table[] = {
    { H_TAKE, (gex_AM_Fn_t)h_take, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "take" },
    { H_GO, (gex_AM_Fn_t)h_go, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "go" },
};

static void sleep_for(double seconds)
{
    struct timespec left = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&left, &left) != 0)
        ;
}

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* Part in the collective of a case, as large as the data of a pipeline if its name begins with
 * "large-". False: the case is none. */
static int collective(const char *what)
{
    enum { MANY = 1 << 20 };
    static int64_t src[MANY / 8], dst[MANY / 8];
    const int large = strncmp(what, "large-", 6) == 0;
    const size_t nbytes = large ? sizeof(src) : 8;
    const char *name = what + (large ? 6 : 0);
    gex_Event_t event;

    if (strcmp(name, "broadcast") == 0)
        event = gex_Coll_BroadcastNB(tm, away, dst, src, nbytes, 0);
    else if (strcmp(name, "broadcast-from-0") == 0)
        event = gex_Coll_BroadcastNB(tm, 0, dst, src, nbytes, 0);
    else if (strcmp(name, "reduce") == 0)
        event = gex_Coll_ReduceToOneNB(tm, 0, dst, src, GEX_DT_I64, 8, nbytes / 8, GEX_OP_ADD, NULL,
                                       NULL, 0);
    else if (strcmp(name, "reduce-all") == 0)
        event = gex_Coll_ReduceToAllNB(tm, dst, src, GEX_DT_I64, 8, nbytes / 8, GEX_OP_ADD, NULL,
                                       NULL, 0);
    else if (strcmp(name, "team-barrier") == 0)
        event = gex_Coll_BarrierNB(team, 0);
    else
        return 0;
    gex_Event_Wait(event);
    return 1;
}

/* What a waiting rank does in each case. */
static void wait_in(const char *what)
{
    static char payload[4096];
    uint64_t word = 0;

    if (strcmp(what, "barrier") == 0) {
        barrier();
    } else if (strcmp(what, "named") == 0) {
        gasnet_barrier_notify(7, 0);
        gasnet_barrier_wait(7, 0);
    } else if (strcmp(what, "get") == 0) {
        gex_RMA_GetBlocking(tm, &word, away, peer_words, sizeof(word), 0);
    } else if (strcmp(what, "event") == 0) {
        gex_Event_Wait(gex_RMA_GetNB(tm, &word, away, peer_words, sizeof(word), 0));
    } else if (strcmp(what, "nbi") == 0) {
        gex_RMA_GetNBI(tm, &word, away, peer_words, sizeof(word), 0);
        gex_NBI_Wait(GEX_EC_ALL, 0);
    } else if (strcmp(what, "space") == 0) {
        for (int i = 0; i < SPACE / 1000; i++)
            gex_AM_RequestMedium0(tm, away, H_TAKE, payload, sizeof(payload), GEX_EVENT_NOW, 0);
    } else if (strcmp(what, "until") == 0) {
        GASNET_BLOCKUNTIL(go);
    } else if (!collective(what)) {
        fprintf(stderr, "no such case: %s\n", what);
        gasnet_exit(2);
    }
}

/* The last rank is away, and comes back. */
static void be_away(const char *what, double seconds, pid_t waiter)
{
    const char *number = getenv("USER_STALL_SIGNAL");

    sleep_for(seconds);
    if (number != NULL) {
        kill(waiter, atoi(number));
        sleep_for(0.4);
    }
    if (strcmp(what, "named") == 0) {
        gasnet_barrier_notify(7, 0);
        gasnet_barrier_wait(7, 0);
    } else if (strcmp(what, "barrier") == 0) {
        barrier();
    } else if (strcmp(what, "until") == 0) {
        gex_AM_RequestShort0(tm, 0, H_GO, 0);
    } else {
        collective(what);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "barrier";
    const double seconds = argc > 2 ? atof(argv[2]) : 1;
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    uint64_t *ours;

    if (gex_Client_Init(&client, &ep, &tm, "STALL", &argc, &argv, 0) != GASNET_OK
        || gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0])) != GASNET_OK
        || gex_Segment_Attach(&segment, tm, GASNET_PAGESIZE) != GASNET_OK)
        return 3;
    me = gex_TM_QueryRank(tm);
    ours = gex_Segment_QueryAddr(segment);
    away = gex_TM_QuerySize(tm) - 1;
    gex_Segment_QueryBound(tm, me == 0 ? away : 0, (void **)&peer_words, NULL, NULL);
    gex_TM_Split(&team, tm, 0, (int)(away - me), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    *ours = 0;
    barrier();
    if (me == 0) /* the last rank learns whom to signal */
        gex_RMA_PutBlockingVal(tm, away, peer_words, (gex_RMA_Value_t)getpid(), 8, 0);
    barrier();
    if (me == away)
        be_away(what, seconds, (pid_t)*ours);
    else
        wait_in(what);
    barrier();
    barrier();
    gasnet_exit(0);
}
