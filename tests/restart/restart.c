/*
 * restart.c - jobs that start over groups of processes and end, one after the other and at the same
 * time; see run.sh. SPDX-License-Identifier: BSD-3-Clause
 *
 *   restart N CASE [COUNT]     forked processes
 *   mpirun -n N restart CASE [COUNT]    built with TEST_MPI
 *
 *   again     COUNT jobs over all: the process holds the same resources after each. Before the
 *             first and after the last, while no process has a job, TEST_RESOURCES (a command) says
 *             the same
 *   halves    both halves have jobs at the same time
 *   turns     one half has a job while the other waits outside
 *   members   groups of other members and orders, one after the other
 *   misuse    refused calls, and their messages
 *   twice, after, open   misuse that ends the process
 *   killed, failed       in the second job a rank is lost; calls gasnet_exit(3)
 *   before, first, second [RANK]   the rank (0) is lost just before the end of the second job; in
 *             the group's barrier there, the first and the second time
 *   leave     each process ends as soon as its second job has
 */
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "holdings.h"
#include "inquire.h"
#include "world.h"

#include "gasnet_coll.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#define WARM_UP 10
#define HIDX    GEX_AM_INDEX_BASE
/* bytes of a transfer that no conduit copies: it registers this process's memory, if it does so */
#define LARGE 32768

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;
static gex_Segment_t segment;
static atomic_int pongs; /* handlers may run on a service thread */
static atomic_size_t payload_sum;
static int job; /* number of the one that runs */

static void fail(int line, const char *what)
{
    fprintf(stderr, "restart.c:%d: process %d: job %d: %s\n", line, world_rank, job, what);
    exit(1);
}
#define CHECK(cond)                       \
    do {                                  \
        if (!(cond))                      \
            fail(__LINE__, "not " #cond); \
    } while (0)

/* --- what a job does --- */

static void on_ping(gex_Token_t token, gex_AM_Arg_t value)
{
    gex_AM_ReplyShort1(token, HIDX + 1, 0, value + 1);
}

static void on_pong(gex_Token_t token, gex_AM_Arg_t value)
{
    (void)token;
    pongs += value;
}

static void on_payload(gex_Token_t token, void *buf, size_t nbytes)
{
    (void)token;
    for (size_t i = 0; i < nbytes; i++)
        payload_sum += ((unsigned char *)buf)[i];
}

static void start(const struct aqueduct_group *group)
{
    gex_AM_Entry_t table[] = {
        { HIDX, (gex_AM_Fn_t)on_ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ping" },
        { HIDX + 1, (gex_AM_Fn_t)on_pong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "pong" },
        { HIDX + 2, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL,
          "payload" },
    };

    CHECK(aqueduct_job_is_running() == 0);
    CHECK(aqueduct_job_can_end() == 0);
    CHECK(world_conduit_is_right());
    CHECK(aqueduct_job_start(group, getenv("TEST_CONDUIT"), &client, &ep, &tm, "restart", 0)
          == GASNET_OK);
    job++;
    CHECK(aqueduct_job_is_running() == 1);
    CHECK(world_conduit_is_right());
    CHECK(aqueduct_job_can_end() == 1);
    CHECK((int)gex_System_QueryJobRank() == group->rank);
    CHECK((int)gex_System_QueryJobSize() == group->size);
    CHECK(gex_TM_QueryRank(tm) == (gex_Rank_t)group->rank);
    CHECK(gex_EP_RegisterHandlers(ep, table, 3) == GASNET_OK);
    CHECK(gex_Segment_Attach(&segment, tm, (uintptr_t)16 * GASNET_PAGESIZE) == GASNET_OK);
}

static void do_messages(gex_Rank_t me, gex_Rank_t size)
{
    static unsigned char text[24576]; /* several packets */
    const size_t max = gex_AM_LUBRequestMedium(), len = max < sizeof(text) ? max : sizeof(text);
    size_t want = 0;

    pongs = 0;
    payload_sum = 0;
    memset(text, (int)me + 1, len);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    for (gex_Rank_t peer = 0; peer < size; peer++) {
        gex_AM_RequestShort1(tm, peer, HIDX, 0, (gex_AM_Arg_t)peer);
        gex_AM_RequestMedium0(tm, peer, HIDX + 2, text, len, GEX_EVENT_NOW, 0);
        want += (size_t)(peer + 1) * len;
    }
    GASNET_BLOCKUNTIL(pongs == (int)(size * (size - 1) / 2 + size) && payload_sum == want);
}

static void do_transfers(gex_Rank_t me, gex_Rank_t size)
{
    const gex_Rank_t next = (me + 1) % size;
    long *own = gex_Segment_QueryAddr(segment), *remote, got[64], value[64];
    void *owner;
    uintptr_t bytes;

    CHECK(gex_Segment_QueryBound(tm, next, &owner, NULL, &bytes) == 0);
    CHECK(own[0] == 0); /* memory of an earlier job is not there */
    remote = owner;
    for (int i = 0; i < 64; i++)
        value[i] = me * 1000 + i;
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    gex_RMA_PutBlocking(tm, next, remote, value, sizeof(value), 0);
    gex_RMA_GetBlocking(tm, got, next, remote, sizeof(got), 0);
    CHECK(memcmp(got, value, sizeof(got)) == 0);
    for (int i = 0; i < 64; i++)
        gex_RMA_PutNBI(tm, next, remote + 64 + i, &value[i], sizeof(long), GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    CHECK(own[64 + 63] == (long)((me + size - 1) % size) * 1000 + 63);
}

static void do_large(gex_Rank_t me, gex_Rank_t size)
{
    static char remote_addr[LARGE], back[LARGE];
    const gex_Rank_t next = (me + 1) % size;
    void *owner;
    uintptr_t bytes;

    CHECK(gex_Segment_QueryBound(tm, next, &owner, NULL, &bytes) == 0 && bytes >= 2 * LARGE);
    memset(remote_addr, job + (int)me, sizeof(remote_addr));
    gex_RMA_PutBlocking(tm, next, (char *)owner + LARGE, remote_addr, LARGE, 0);
    gex_RMA_GetBlocking(tm, back, next, (char *)owner + LARGE, LARGE, 0);
    CHECK(memcmp(remote_addr, back, LARGE) == 0);
}

/* Pages go back and come again, zero; what peers put there afterwards is what the owner finds.
 * Where they are pinned nothing happens. */
static void do_discard(gex_Rank_t me, gex_Rank_t size)
{
    enum { FIRST = 12, LAST = 14 }; /* pages */
    const gex_Rank_t next = (me + 1) % size;
    char *own = gex_Segment_QueryAddr(segment), value = (char)(1 + me), got = 0;
    const char *expected = getenv("TEST_DISCARD");
    void *owner, *mapped;
    uintptr_t bytes;
    int rc;

    CHECK(gex_Segment_QueryBound(tm, next, &owner, &mapped, &bytes) == 0);
    CHECK(inquire_is_right(tm));
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0)); /* the ranks are done with what they did before */
    memset(own, 1, (FIRST + 1) * (size_t)GASNET_PAGESIZE);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    for (int page = FIRST; page <= LAST; page++)
        gex_RMA_PutBlocking(tm, next, (char *)owner + page * GASNET_PAGESIZE, &value, 1, 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    for (int i = 0; i < 256; i++) /* to the page below, meanwhile */
        gex_RMA_PutNBI(tm, next, (char *)owner + (FIRST - 1) * GASNET_PAGESIZE + i, &value, 1,
                       GEX_EVENT_NOW, 0);
    rc = aqueduct_segment_discard(own + FIRST * GASNET_PAGESIZE - 8,
                                  (LAST - FIRST + 1) * (size_t)GASNET_PAGESIZE + 16);
    /* a job of one rank has no network */
    CHECK(rc == (expected != NULL && size > 1 ? atoi(expected) : GASNET_OK));
    CHECK((own[FIRST * GASNET_PAGESIZE] == 0) == (rc == GASNET_OK));
    CHECK(own[FIRST * GASNET_PAGESIZE - 1] == 1);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    value = (char)(value + 100);
    for (int page = FIRST; page <= LAST; page++)
        gex_RMA_PutBlocking(tm, next, (char *)owner + page * GASNET_PAGESIZE, &value, 1, 0);
    gex_RMA_GetBlocking(tm, &got, next, (char *)owner + LAST * GASNET_PAGESIZE, 1, 0);
    CHECK(got == value);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    for (int page = FIRST; page <= LAST; page++)
        CHECK(own[page * GASNET_PAGESIZE] == (char)(101 + (me + size - 1) % size));
    for (int i = 0; i < 256; i++)
        CHECK(own[(FIRST - 1) * GASNET_PAGESIZE + i] == (char)(1 + (me + size - 1) % size));
    if (job == 1) { /* each is logged */
        CHECK(aqueduct_segment_discard(own - 1, 2) == GASNET_ERR_BAD_ARG);
        CHECK(aqueduct_segment_discard(own, 17 * (size_t)GASNET_PAGESIZE) == GASNET_ERR_BAD_ARG);
    }
    CHECK(aqueduct_segment_discard(own + 1, 100) == GASNET_OK); /* no whole page: nothing */
}

/* Objects that are left for the end of the job to free, and some that are not. */
static void do_objects(gex_Rank_t me, gex_Rank_t size)
{
    int64_t sum = 1, old;
    gex_TM_t half;
    gex_EP_t further;
    gex_Segment_t own;
    gex_AD_t ad;
    void *owner;
    uintptr_t bytes;

    gex_TM_Split(&half, tm, (int)(me & 1), (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_Event_Wait(
        gex_Coll_ReduceToAllNB(half, &sum, &sum, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
    CHECK((gex_Rank_t)sum == (size + 1 - (me & 1)) / 2);
    CHECK(gex_EP_Create(&further, client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    CHECK(gex_Segment_Create(&own, client, NULL, GASNET_PAGESIZE, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(further, own, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(tm, &further, 1, 0) == GASNET_OK);
    CHECK(gex_Segment_Create(&own, client, NULL, GASNET_PAGESIZE, GEX_MK_HOST, 0) == GASNET_OK);
    gex_AD_Create(&ad, tm, GEX_DT_I64, GEX_OP_FADD, 0);
    CHECK(gex_Segment_QueryBound(tm, 0, &owner, NULL, &bytes) == 0);
    gex_Event_Wait(gex_AD_OpNB_I64(ad, &old, 0, (int64_t *)owner + 200, GEX_OP_FADD, 1, 0, 0));
    CHECK(old >= 0 && old < (int64_t)size);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (me == 0)
        CHECK(((int64_t *)owner)[200] == (int64_t)size);
    if (size % 2 == 0) { /* of the others the job frees what is left */
        gex_AD_Destroy(ad);
        gex_TM_Destroy(half, NULL, 0);
    }
}

static void do_strided(gex_Rank_t me, gex_Rank_t size)
{
    static char packed[256];
    const size_t count[1] = { 32 };
    const ptrdiff_t apart[1] = { 64 }, dense[1] = { 8 };
    void *owner;
    uintptr_t bytes;

    CHECK(gex_Segment_QueryBound(tm, (me + 1) % size, &owner, NULL, &bytes) == 0);
    gex_VIS_StridedPutBlocking(tm, (me + 1) % size, (char *)owner + 8192, apart, packed, dense, 8,
                               count, 1, 0);
}

static void work(void)
{
    const gex_Rank_t me = gex_TM_QueryRank(tm), size = gex_TM_QuerySize(tm);

    do_transfers(me, size);
    do_messages(me, size);
    do_objects(me, size);
    do_strided(me, size);
    do_large(me, size);
    do_discard(me, size);
}

static void end(void)
{
    CHECK(aqueduct_job_end() == GASNET_OK);
    CHECK(aqueduct_job_is_running() == 0);
}

/* --- what a process holds --- */

/* What a command says of resources that /proc does not show. Nothing without a command. */
static void look_outside(char *text, size_t size)
{
    const char *command = getenv("TEST_RESOURCES");
    FILE *f = command != NULL && world_rank == 0 ? popen(command, "r") : NULL;

    text[0] = '\0';
    if (f == NULL)
        return;
    text[fread(text, 1, size - 1, f)] = '\0';
    CHECK(pclose(f) == 0 && text[0] != '\0');
}

static long setting(const char *name, long otherwise)
{
    return getenv(name) != NULL ? atol(getenv(name)) : otherwise;
}

static void check_growth(const char *of, long before, long after, long upper)
{
    if (after <= before + upper)
        return;
    fprintf(stderr, "process %d: %ld %s, then %ld\n", world_rank, before, of, after);
    fail(__LINE__, "jobs that have ended left something");
}

/* --- cases --- */

static void run_again(int count)
{
    struct holdings warm = { 0, 0, 0, 0, 0 }, now = warm;
    struct aqueduct_group group;
    char before[4096], after[4096];
    long threads = LONG_MAX;

    holdings_note_handlers();
    look_outside(before, sizeof(before));
    world_barrier();
    world_split(0, 0, &group);
    for (int i = 0; i < count; i++) {
        start(&group);
        work();
        end();
        if (!holdings_has_handlers())
            fail(__LINE__, "a signal handler was not given back");
        now = holdings_look(threads);
        threads = now.threads < threads ? now.threads : threads;
        if (i == WARM_UP) {
            warm = now;
            holdings_show("after the first jobs", &warm);
        }
        if (i > WARM_UP && (now.files != warm.files || now.threads != warm.threads)) {
            fprintf(stderr, "process %d: %ld descriptors and %ld threads, then %ld and %ld\n",
                    world_rank, warm.files - 2, warm.threads - 2, now.files - 2, now.threads - 2);
            fail(__LINE__, "descriptors or threads are left");
        }
    }
    holdings_show("after all", &now);
    world_barrier();
    look_outside(after, sizeof(after));
    if (strcmp(before, after) != 0) {
        fprintf(stderr, "before the first job:\n%safter the last:\n%s", before, after);
        fail(__LINE__, "resources are left");
    }
    /* a sanitizer's allocator goes on mapping */
    const long more = getenv("TEST_SANITIZER") != NULL ? 64 : setting("TEST_MAPPINGS", 0);

    check_growth("mappings", warm.mappings, now.mappings, more);
    check_growth("kB allocated", warm.heap_kb, now.heap_kb, setting("TEST_HEAP_KB", 4));
    check_growth("kB resident", warm.rss_kb, now.rss_kb, setting("TEST_RSS_KB", 512));
    world_join(&group);
}

static void run_halves(int count)
{
    struct aqueduct_group group;

    for (int i = 0; i < count; i++) {
        const int lower = world_rank < world_size / 2 || world_size == 1;

        world_split(lower ? 0 : 1, i & 1, &group);
        start(&group);
        work();
        end();
        world_join(&group);
    }
}

static void run_turns(int count)
{
    struct aqueduct_group group;

    for (int i = 0; i < count; i++) {
        const int upper = world_rank >= world_size / 2;

        world_split(upper, 0, &group);
        for (int half = 0; half < 2; half++) {
            if (half == upper) {
                start(&group);
                work();
                end();
            }
            world_barrier();
        }
        world_join(&group);
    }
}

static void run_members(int count)
{
    struct aqueduct_group group;

    for (int i = 0; i < count; i++)
        for (int size = world_size; size > 0; size--) {
            /* size processes, others each time */
            const int in = (world_rank + i) % world_size < size;

            world_split(in ? 0 : -1, i & 1, &group);
            if (in) {
                start(&group);
                work();
                end();
            }
            world_join(&group);
        }
}

static void run_misuse(void)
{
    struct aqueduct_group group, wrong;

    world_split(0, 0, &group);
    CHECK(aqueduct_job_end() == GASNET_ERR_NOT_INIT);
    wrong = group;
    wrong.rank = wrong.size;
    CHECK(aqueduct_job_group(&wrong, NULL) == GASNET_ERR_BAD_ARG);
    wrong = group;
    wrong.barrier = NULL;
    CHECK(aqueduct_job_group(&wrong, NULL) == GASNET_ERR_BAD_ARG);
    CHECK(aqueduct_job_group(NULL, NULL) == GASNET_ERR_BAD_ARG);
    start(&group);
    CHECK(aqueduct_job_start(&group, NULL, &client, &ep, &tm, "again", 0) == GASNET_ERR_BAD_ARG);
    work();
    end();
    CHECK(aqueduct_job_end() == GASNET_ERR_NOT_INIT);
    start(&group);
    work();
    end();
    world_join(&group);
}

static void run_fatal(const char *name)
{
    struct aqueduct_group group;

    world_split(0, 0, &group);
    start(&group);
    end();
    if (strcmp(name, "after") == 0)
        gex_System_QueryJobRank();
    start(&group);
    if (strcmp(name, "twice") == 0)
        gex_Client_Init(&client, &ep, &tm, "again", NULL, NULL, 0);
    if (strcmp(name, "open") == 0)
        gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (strcmp(name, "open") == 0)
        aqueduct_job_end();
    if (strcmp(name, "killed") == 0 && gex_TM_QueryRank(tm) == 0)
        raise(SIGKILL);
    if (strcmp(name, "failed") == 0 && gex_TM_QueryRank(tm) == 0)
        gasnet_exit(3);
    GASNET_BLOCKUNTIL(pongs == -1);
}

static struct aqueduct_group joined; /* of the job that runs */
static int barriers_left;            /* of them, until this process is lost */

static int barrier_with_a_loss(void *ctx)
{
    if (--barriers_left == 0) {
        usleep(100000); /* the others are in it */
        raise(SIGKILL);
    }
    return joined.barrier(ctx);
}

static void run_lost(const char *name, int lost)
{
    struct aqueduct_group group;

    world_split(0, 0, &group);
    start(&group);
    end();
    joined = group;
    if (world_rank == lost)
        group.barrier = barrier_with_a_loss;
    if (strcmp(name, "first") == 0)
        barriers_left = 1;
    if (strcmp(name, "second") == 0)
        barriers_left = 2;
    start(&group);
    work();
    if (strcmp(name, "before") == 0 && world_rank == lost)
        raise(SIGKILL);
    end();
    fail(__LINE__, "the job has ended without the rank that was lost");
}

/* The first to leave are no loss for those that are still in aqueduct_job_end(). */
static int run_leave(void)
{
    struct aqueduct_group group;

    world_split(0, 0, &group);
    start(&group);
    end();
    start(&group);
    work();
    end();
    return 0;
}

int main(int argc, char **argv)
{
    const char *name;
    int count;

    world_start(&argc, &argv);
    name = argc > 1 ? argv[1] : "again";
    count = argc > 2 ? atoi(argv[2]) : 100;
    if (strcmp(name, "again") == 0)
        run_again(count);
    else if (strcmp(name, "halves") == 0)
        run_halves(count);
    else if (strcmp(name, "turns") == 0)
        run_turns(count);
    else if (strcmp(name, "members") == 0)
        run_members(count);
    else if (strcmp(name, "misuse") == 0)
        run_misuse();
    else if (strstr("before first second", name) != NULL)
        run_lost(name, argc > 2 ? count : 0);
    else if (strcmp(name, "leave") == 0)
        return run_leave();
    else
        run_fatal(name);
    return world_end(0);
}
