/*
 * traced.c - a program with a known number of calls, which tests/trace/run.pl looks for in traces
 * and statistics.
 *
 *   traced CASE
 *     counts   each rank: the calls in the table of run.pl
 *     client   the client's own lines, masks, source positions, callbacks
 *     many     enough puts to fill a thread's memory several times
 *     threads  puts and messages from four threads (par)
 *     levels   barriers, broadcasts and reductions, small and large, of a team that is not the
 *              primordial one
 *     fork     a child process that ends by exit() must add nothing
 *     exit N, kill N, segv N, abort N   rank N ends so, among other calls; the others wait
 *     hang     rank 1 waits for the others' barrier for ever and is ended from outside
 *
 * Exit status 0, or as the case says. SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT    ((uintptr_t)1 << 20)
#define REQUEST    GEX_AM_INDEX_BASE
#define REPLY      (GEX_AM_INDEX_BASE + 1)
#define THREADS    4
#define PER_THREAD 500

static gex_TM_t team;
static gex_Rank_t me, size, next;
static char *remote_addr; /* the segment of next */
static volatile int replies;
static char buffer[65536];

static void reply_handler(gex_Token_t token, gex_AM_Arg_t a)
{
    (void)token, (void)a;
    __atomic_fetch_add(&replies, 1, __ATOMIC_RELAXED);
}

static void request_handler(gex_Token_t token, gex_AM_Arg_t a)
{
    gex_AM_ReplyShort1(token, REPLY, 0, a);
}

static void start(void)
{
    static gex_AM_Entry_t table[] = {
        { REQUEST, (gex_AM_Fn_t)request_handler, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL,
          "request_handler" },
        { REPLY, (gex_AM_Fn_t)reply_handler, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL,
          "reply_handler" },
    };
    gex_Client_t client;
    gex_Segment_t segment;
    void *owner;
    uintptr_t length;
    gex_EP_t ep;

    if (gex_Client_Init(&client, &ep, &team, "traced", NULL, NULL, 0) != GASNET_OK
        || gex_Segment_Attach(&segment, team, SEGMENT) != GASNET_OK
        || gex_EP_RegisterHandlers(ep, table, 2) != GASNET_OK)
        abort();
    me = gex_TM_QueryRank(team);
    size = gex_TM_QuerySize(team);
    next = (me + 1) % size;
    if (gex_Segment_QueryBound(team, next, &owner, NULL, &length) != GASNET_OK)
        abort();
    remote_addr = owner;
    gex_Coll_BarrierBlocking(team, 0);
}

static void ask(int n)
{
    const int before = __atomic_load_n(&replies, __ATOMIC_RELAXED);

    for (int i = 0; i < n; i++)
        gex_AM_RequestShort1(team, next, REQUEST, 0, i);
    GASNET_BLOCKUNTIL(__atomic_load_n(&replies, __ATOMIC_RELAXED) >= before + n);
}

/* The numbers are those of %known in run.pl. */
static void do_counts(void)
{
    gex_RMA_Value_t value;
    gex_Event_t event;

    for (int i = 0; i < 10; i++)
        gex_RMA_PutBlocking(team, next, remote_addr, buffer, 64, 0);
    for (int i = 0; i < 3; i++)
        gex_Event_Wait(gex_RMA_PutNB(team, next, remote_addr, buffer, 1000, GEX_EVENT_NOW, 0));
    for (int i = 0; i < 7; i++)
        gex_RMA_PutNBI(team, next, remote_addr, buffer, 8, GEX_EVENT_NOW, 0);
    for (int i = 0; i < 5; i++)
        gex_RMA_GetBlocking(team, buffer, next, remote_addr, 32768, 0);
    event = gex_RMA_GetNB(team, buffer, next, remote_addr, 16, 0);
    gex_Event_Wait(event);
    gex_RMA_GetNBI(team, buffer, next, remote_addr, 24, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_RMA_PutBlockingVal(team, next, remote_addr, 7, 4, 0);
    gex_Event_Wait(gex_RMA_PutNBVal(team, next, remote_addr, 7, 8, 0));
    gex_RMA_PutNBIVal(team, next, remote_addr, 7, 1, 0);
    gex_RMA_PutNBIVal(team, next, remote_addr, 7, 1, 0);
    value = gex_RMA_GetBlockingVal(team, next, remote_addr, 4, 0);
    (void)value; /* neighbours write there at the same time */
    ask(20);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_Coll_BarrierBlocking(team, 0);
    gex_Coll_BarrierBlocking(team, 0);
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK)
        abort();
}

static void say_in_statistics(void (*print)(const char *fmt, ...))
{
    print("callback of rank %u", (unsigned)me);
}

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "traced: %s\n", what);
        gasnet_exit(4);
    }
}

static void do_client(void)
{
    const char *file;
    unsigned line;

    GASNETT_TRACE_PRINTF("plain %d \"quoted\" back\\slash\ttab", 42);
    GASNETT_TRACE_SETSOURCELINE("program.upc", 17);
    gex_RMA_PutBlocking(team, next, remote_addr, buffer, 8, 0);
    GASNETT_TRACE_GETSOURCELINE(&file, &line);
    check(strcmp(file, "program.upc") == 0 && line == 17,
          "the source position is not what was set");
    GASNETT_TRACE_FREEZESOURCELINE();
    GASNETT_TRACE_SETSOURCELINE("library.c", 1);
    GASNETT_TRACE_UNFREEZESOURCELINE();
    GASNETT_TRACE_GETSOURCELINE(&file, &line);
    check(line == 17, "the source position changed while it was frozen");
    check(GASNETT_TRACE_ENABLED, "category H is not on");
    check(strcmp(GASNETT_TRACE_GETMASK(), "GPRSWBLAXIOCDNH") == 0, "the mask is not the default");
    GASNETT_TRACE_SETMASK("^PH");
    check(!GASNETT_TRACE_ENABLED, "category H is still on");
    check(strcmp(GASNETT_TRACE_GETMASK(), "GRSWBLAXIOCDN") == 0, "the mask is not what was set");
    gex_RMA_PutBlocking(team, next, remote_addr, buffer, 77, 0);
    GASNETT_TRACE_PRINTF("%s", "this is not to be seen");
    GASNETT_TRACE_PRINTF_FORCE("%s", "forced");
    GASNETT_TRACE_SETMASK("GPH");
    GASNETT_TRACE_PRINTF("%s", "on again");
    check(GASNETT_TRACE_GET_TRACELOCAL(), "local operations are not traced");
    GASNETT_TRACE_SET_TRACELOCAL(0);
    gex_RMA_PutBlocking(team, me, gex_Segment_QueryAddr(gex_EP_QuerySegment(gex_TM_QueryEP(team))),
                        buffer, 55, 0);
    check(!GASNETT_TRACE_GET_TRACELOCAL(), "local operations are traced");
    check(GASNETT_STATS_INIT(say_in_statistics), "category H is not counted");
    GASNETT_STATS_PRINTF("statistics line of rank %u", (unsigned)me);
    GASNETT_STATS_DUMP(1);
    gex_RMA_PutBlocking(team, next, remote_addr, buffer, 8, 0);
}

/* arg: the thread's number; puts of two threads to one place would be a race of the program's. */
static void *run_thread(void *arg)
{
    uint64_t *const own = (uint64_t *)remote_addr + (uintptr_t)arg;

    for (int i = 0; i < PER_THREAD; i++) {
        gex_RMA_PutBlocking(team, next, own, buffer, 8, 0);
        gex_AM_RequestShort1(team, next, REQUEST, 0, i);
    }
    return NULL;
}

static void do_threads(void)
{
#if GASNET_PAR
    pthread_t thread[THREADS];

    for (int round = 0; round < 2;
         round++) { /* the second four take over the first four's memory */
        for (int i = 0; i < THREADS; i++)
            check(pthread_create(&thread[i], NULL, run_thread, (void *)(uintptr_t)i) == 0,
                  "no thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
    }
#else
    for (int i = 0; i < 2 * THREADS; i++)
        run_thread((void *)(uintptr_t)(i % THREADS));
#endif
    GASNET_BLOCKUNTIL(__atomic_load_n(&replies, __ATOMIC_RELAXED) == 2 * THREADS * PER_THREAD);
}

static void do_fork(void)
{
    pid_t child;

    gex_RMA_PutBlocking(team, next, remote_addr, buffer, 8, 0);
    child = fork();
    if (child == 0)
        exit(0);
    check(child > 0 && waitpid(child, NULL, 0) == child, "no child");
    gex_RMA_PutBlocking(team, next, remote_addr, buffer, 8, 0);
}

static void do_end(const char *how, gex_Rank_t who)
{
    do_counts();
    usleep(700000); /* what is older than half a second is in the file */
    ask(3);
    if (me == who) {
        if (strcmp(how, "exit") == 0)
            gasnet_exit(7);
        else if (strcmp(how, "kill") == 0)
            raise(SIGKILL);
        else if (strcmp(how, "segv") == 0)
            raise(SIGSEGV);
        else if (strcmp(how, "abort") == 0)
            abort();
    }
    gex_Coll_BarrierBlocking(team, 0);
}

static void do_levels(void)
{
    static int64_t src[8192], dst[8192];
    gex_TM_t copy;

    gex_TM_Split(&copy, team, 0, (int)me, NULL, 0, 0);
    for (int i = 0; i < 200; i++) {
        gex_Event_Wait(gex_Coll_BarrierNB(copy, 0));
        gex_Event_Wait(
            gex_Coll_ReduceToAllNB(copy, dst, src, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
    }
    for (int i = 0; i < 20; i++)
        gex_Event_Wait(
            gex_Coll_ReduceToAllNB(copy, dst, src, GEX_DT_I64, 8, 8192, GEX_OP_ADD, NULL, NULL, 0));
    for (int i = 0; i < 100; i++) {
        gex_Event_Wait(gex_Coll_BroadcastNB(copy, 0, dst, src, sizeof(src), 0));
        gex_Event_Wait(gex_Coll_ReduceToOneNB(copy, 0, dst, src, GEX_DT_I64, 8, 8192, GEX_OP_ADD,
                                              NULL, NULL, 0));
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "counts";

    start();
    if (strcmp(what, "counts") == 0) {
        do_counts();
    } else if (strcmp(what, "client") == 0) {
        do_client();
    } else if (strcmp(what, "many") == 0) {
        for (int i = 0; i < 50000; i++)
            gex_RMA_PutBlocking(team, next, remote_addr, buffer, 8, 0);
    } else if (strcmp(what, "threads") == 0) {
        do_threads();
    } else if (strcmp(what, "levels") == 0) {
        do_levels();
    } else if (strcmp(what, "fork") == 0) {
        do_fork();
    } else if (strcmp(what, "hang") == 0) {
        if (me != 1)
            sleep(60);
        gex_Coll_BarrierBlocking(team, 0);
    } else {
        do_end(what, argc > 2 ? (gex_Rank_t)atoi(argv[2]) : 0);
    }
    gex_Coll_BarrierBlocking(team, 0);
    gasnet_exit(0);
    return 0;
}
