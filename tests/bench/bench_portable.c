/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_portable.c - the rows of `aq-bench --against`, over any implementation of the interface.
 *
 * Owns      the job, one segment of 8 MiB a rank, the globals below
 * Threads   one in every process
 * Uses      the public interface up to GASNet-EX 2025.8.0, the C library, sched_setaffinity();
 *           nothing of Aqueduct's own, so that one source measures every implementation alike
 *
 * usage: LAUNCHER bench_portable CPUS ROWS SLICES SLICE_US
 *   CPUS      the processors of ranks 0, 1, .. such as 0,1; "-" binds no rank
 *   ROWS      words, one of which a row's name/size contains, such as put/8,barrier; "-" for all
 *   SLICES    measurements of a row, of which the median counts
 *   SLICE_US  microseconds that each of them takes at least
 * A slice during which the kernel took a processor away from a rank has measured somebody else's
 * work: it is taken again, up to four times as many slices in all.
 *
 * Rank 0 prints lines of fields that tabs separate:
 *   AQ_PORTABLE start NAME/SIZE           the row begins
 *   AQ_PORTABLE time NAME/SIZE TEXT NS    nanoseconds of one operation; TEXT is the row in words
 *   AQ_PORTABLE none NAME/SIZE TEXT       this implementation cannot do it
 *   AQ_PORTABLE end                       all rows have been measured
 *
 * Team, rank and address of puts, gets and messages come from globals, which the compiler must load
 * anew for each operation, as clients have them in objects of their own.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>
#include <gasnet_tools.h>

#include <inttypes.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define SEGMENT    ((uintptr_t)8 << 20)
#define BUFFER     ((size_t)1 << 20)
#define WORD_AT    (SEGMENT - 64) /* of the atomics, in each segment */
#define MEDIUM_MAX 65000          /* what every conduit of 2025.8.0 with large messages carries */
#define BATCH      256            /* puts to one wait */
#define MAX_SLICES 101

struct row {
    const char *name, *text;
    size_t size;
    void (*run)(const struct row *row, uint32_t iters);
    int everyone; /* every rank runs it; otherwise rank 0, and the others serve */
};

extern const struct row rows[];
extern const size_t row_count;

/* Of external linkage, so that each compiler fence makes the next operation load them. */
gex_TM_t team;
gex_Rank_t self, ranks, peer;
unsigned char *peer_place;
uint64_t word;
gex_AD_t integers;
_Alignas(4096) unsigned char buffer[BUFFER], landing[BUFFER];
volatile uint32_t replies, self_handled, commands, command_row, command_iters;
volatile uint32_t flood_handled;
volatile uint64_t peer_switches; /* how often the kernel took a processor away from the others */

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t own_switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (uint32_t)usage.ru_nivcsw;
}

/* --- handlers --- */

enum handler {
    H_COMMAND = GEX_AM_INDEX_BASE,
    H_READY,
    H_PING,
    H_PONG,
    H_PING_MEDIUM,
    H_PONG_MEDIUM,
    H_FLOOD,
    H_SELF,
    H_SELF_MEDIUM
};

static void h_command(gex_Token_t token, gex_AM_Arg_t row, gex_AM_Arg_t iters)
{
    (void)token;
    command_row = (uint32_t)row;
    command_iters = (uint32_t)iters;
    flood_handled = 0;
    commands++;
    gex_AM_ReplyShort1(token, H_READY, 0, (gex_AM_Arg_t)own_switches());
}

static void h_ready(gex_Token_t token, gex_AM_Arg_t switches)
{
    (void)token;
    peer_switches += (uint32_t)switches;
    replies++;
}

static void h_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, H_PONG, 0);
}

static void h_pong(gex_Token_t token)
{
    (void)token;
    replies++;
}

static void h_ping_medium(gex_Token_t token, void *payload, size_t nbytes)
{
    (void)payload;
    gex_AM_ReplyMedium0(token, H_PONG_MEDIUM, buffer, nbytes, GEX_EVENT_NOW, 0);
}

static void h_pong_medium(gex_Token_t token, void *payload, size_t nbytes)
{
    (void)token, (void)payload, (void)nbytes;
    replies++;
}

/* Messages may be handled in any order: the reply follows the last one that is handled. */
static void h_flood(gex_Token_t token)
{
    if (++flood_handled == command_iters)
        gex_AM_ReplyShort0(token, H_PONG, 0);
}

static void h_self(gex_Token_t token, gex_AM_Arg_t arg)
{
    (void)token;
    self_handled += (uint32_t)arg;
}

static void h_self_medium(gex_Token_t token, void *payload, size_t nbytes, gex_AM_Arg_t arg)
{
    (void)token, (void)payload, (void)nbytes;
    self_handled += (uint32_t)arg;
}

static void register_handlers(gex_EP_t ep)
{
    const gex_Flags_t request = GEX_FLAG_AM_REQUEST, reply = GEX_FLAG_AM_REPLY;
    const gex_Flags_t shrt = GEX_FLAG_AM_SHORT, medium = GEX_FLAG_AM_MEDIUM;
    gex_AM_Entry_t table[] = {
        { H_COMMAND, (gex_AM_Fn_t)h_command, request | shrt, 2, NULL, "command" },
        { H_READY, (gex_AM_Fn_t)h_ready, reply | shrt, 1, NULL, "ready" },
        { H_PING, (gex_AM_Fn_t)h_ping, request | shrt, 0, NULL, "ping" },
        { H_PONG, (gex_AM_Fn_t)h_pong, reply | shrt, 0, NULL, "pong" },
        { H_PING_MEDIUM, (gex_AM_Fn_t)h_ping_medium, request | medium, 0, NULL, "ping_medium" },
        { H_PONG_MEDIUM, (gex_AM_Fn_t)h_pong_medium, reply | medium, 0, NULL, "pong_medium" },
        { H_FLOOD, (gex_AM_Fn_t)h_flood, request | shrt, 0, NULL, "flood" },
        { H_SELF, (gex_AM_Fn_t)h_self, request | shrt, 1, NULL, "self" },
        { H_SELF_MEDIUM, (gex_AM_Fn_t)h_self_medium, request | medium, 1, NULL, "self_medium" },
    };

    gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(table[0]));
}

/* --- rows of rank 0 --- */

static void run_put(const struct row *row, uint32_t iters)
{
    const size_t n = row->size;

    for (uint32_t i = 0; i < iters; i++)
        gex_RMA_PutBlocking(team, peer, peer_place, buffer, n, 0);
}

/* Eight bytes, known as such to the compiler. */
static void run_put8(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        gex_RMA_PutBlocking(team, peer, peer_place, &word, 8, 0);
        gasnett_compiler_fence();
    }
}

static void run_get8(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        gex_RMA_GetBlocking(team, &word, peer, peer_place, 8, 0);
        gasnett_compiler_fence();
    }
}

static void run_put8_nbi(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        for (uint32_t k = 0; k < BATCH; k++) {
            gex_RMA_PutNBI(team, peer, peer_place + 8 * (size_t)k, &word, 8, GEX_EVENT_DEFER, 0);
            gasnett_compiler_fence();
        }
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

static void run_short(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        const uint32_t want = replies + 1;

        gex_AM_RequestShort0(team, peer, H_PING, 0);
        GASNET_BLOCKUNTIL(replies == want);
    }
}

static void run_medium(const struct row *row, uint32_t iters)
{
    const size_t n = row->size;

    for (uint32_t i = 0; i < iters; i++) {
        const uint32_t want = replies + 1;

        gex_AM_RequestMedium0(team, peer, H_PING_MEDIUM, buffer, n, GEX_EVENT_NOW, 0);
        GASNET_BLOCKUNTIL(replies == want);
    }
}

/* The peer knows how many come from the command. */
static void run_flood(const struct row *row, uint32_t iters)
{
    const uint32_t want = replies + 1;

    (void)row;
    for (uint32_t i = 0; i < iters; i++)
        gex_AM_RequestShort0(team, peer, H_FLOOD, 0);
    GASNET_BLOCKUNTIL(replies == want);
}

static void run_fadd(const struct row *row, uint32_t iters)
{
    unsigned char *const place = peer_place + WORD_AT;
    int64_t old;

    (void)row;
    for (uint32_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_AD_OpNB_I64(integers, &old, peer, place, GEX_OP_FADD, 1, 0, 0));
}

/* Runs of row->size bytes, 64 of them, each twice as far from the last one as it is long. */
static void run_strided(const struct row *row, uint32_t iters)
{
    const ptrdiff_t stride[1] = { (ptrdiff_t)(2 * row->size) };
    const size_t count[1] = { 64 };

    for (uint32_t i = 0; i < iters; i++)
        gex_VIS_StridedPutBlocking(team, peer, peer_place, stride, buffer, stride, row->size, count,
                                   1, 0);
}

static void poll_until_handled(uint32_t want)
{
    while (self_handled != want)
        gasnet_AMPoll();
}

static void run_self(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        const uint32_t want = self_handled + 1;

        gex_AM_RequestShort1(team, self, H_SELF, 0, 1);
        poll_until_handled(want);
    }
}

static void run_self_medium(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        const uint32_t want = self_handled + 1;

        gex_AM_RequestMedium1(team, self, H_SELF_MEDIUM, buffer, 64, GEX_EVENT_NOW, 0, 1);
        poll_until_handled(want);
    }
}

static void run_self_negotiated(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++) {
        const uint32_t want = self_handled + 1;
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(team, self, NULL, 64, 64, NULL, 0, 1);

        memcpy(gex_AM_SrcDescAddr(sd), buffer, 64);
        gex_AM_CommitRequestMedium1(sd, H_SELF_MEDIUM, 64, 1);
        poll_until_handled(want);
    }
}

/* --- rows of every rank --- */

static void run_barrier(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}

static void run_allreduce(const struct row *row, uint32_t iters)
{
    (void)row;
    for (uint32_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(team, landing, buffer, GEX_DT_I64, 8, 1, GEX_OP_ADD,
                                              NULL, NULL, 0));
}

/* The ranks are root in turn, so that each broadcast waits for the one before. */
static void run_broadcast(const struct row *row, uint32_t iters)
{
    gex_Rank_t root = 0;

    for (uint32_t i = 0; i < iters; i++) {
        gex_Event_Wait(gex_Coll_BroadcastNB(team, root, landing, buffer, row->size, 0));
        root = root + 1 == ranks ? 0 : root + 1;
    }
}

const struct row rows[] = {
    { "put", "put 8 B, blocking", 8, run_put8, 0 },
    { "get", "get 8 B, blocking", 8, run_get8, 0 },
    { "put_nbi", "256 x put 8 B NBI + wait", 8, run_put8_nbi, 0 },
    { "put", "put 4 KiB", 4096, run_put, 0 },
    { "put", "put 64 KiB", 65536, run_put, 0 },
    { "put", "put 1 MiB", 1048576, run_put, 0 },
    { "am_short", "AM Short round trip", 0, run_short, 0 },
    { "am_flood", "AM Short flood", 0, run_flood, 0 },
    { "am_medium", "AM Medium 4 KiB round trip", 4096, run_medium, 0 },
    { "am_medium", "AM Medium 64 KiB (65000 B) round trip", MEDIUM_MAX, run_medium, 0 },
    { "fadd", "fetch-add", 8, run_fadd, 0 },
    { "strided", "strided put 64 x 256 B", 256, run_strided, 0 },
    { "barrier", "barrier", 0, run_barrier, 1 },
    { "allreduce", "all-reduce 8 B", 8, run_allreduce, 1 },
    { "broadcast", "broadcast 8 B", 8, run_broadcast, 1 },
    { "self_short", "AM to oneself, Short", 0, run_self, 0 },
    { "self_medium", "AM to oneself, Medium 64 B", 64, run_self_medium, 0 },
    { "self_negotiated", "AM to oneself, negotiated 64 B", 64, run_self_negotiated, 0 },
};
const size_t row_count = sizeof(rows) / sizeof(rows[0]);

/* --- rank 0 measures --- */

/* Row number index, so many times: the others hear of it, and answer before the clock starts.
 * Number row_count ends their service. Returns how often any rank has lost its processor so far. */
static uint64_t command(size_t index, uint32_t iters)
{
    const uint32_t want = replies + (ranks - 1);

    peer_switches = 0;
    for (gex_Rank_t rank = 1; rank < ranks; rank++)
        gex_AM_RequestShort2(team, rank, H_COMMAND, 0, (gex_AM_Arg_t)index, (gex_AM_Arg_t)iters);
    GASNET_BLOCKUNTIL(replies == want);
    return peer_switches + own_switches();
}

/* The time of one slice; *switches_out as command() has it. */
static double slice_ns(size_t index, uint32_t iters, uint64_t *switches_out)
{
    double start;

    *switches_out = command(index, iters);
    start = now_ns();
    rows[index].run(&rows[index], iters);
    return now_ns() - start;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(values[0]), compare);
    return values[n / 2];
}

/* The median of so many undisturbed slices, each of at least slice_us; if the machine does not give
 * three of them, of all. Nanoseconds an operation. */
static double measure(size_t index, unsigned slices, double slice_us)
{
    double all[4 * MAX_SLICES], good[MAX_SLICES];
    unsigned taken = 0, deferred = 0;
    uint64_t before, after;
    uint32_t iters = 1;

    while (slice_ns(index, iters, &before) < slice_us * 1e3 && iters < UINT32_MAX / 4)
        iters *= 2;
    all[0] = slice_ns(index, iters, &before) / iters;
    while (taken < 4 * slices - 1 && deferred < slices) {
        const double next = slice_ns(index, iters, &after) / iters;

        if (after == before)
            good[deferred++] = all[taken];
        before = after;
        all[++taken] = next;
    }
    return deferred >= 3 || taken == deferred ? median(good, deferred) : median(all, taken);
}

static int possible(const struct row *row)
{
    return row->run != run_medium || row->size <= 4096
           || (row->size <= gex_AM_MaxRequestMedium(team, peer, GEX_EVENT_NOW, 0, 0)
               && row->size <= gex_AM_LUBReplyMedium());
}

/* Does one of the words of a list, which commas separate, occur in the name? */
static int wanted(const char *list, const char *name)
{
    if (strcmp(list, "-") == 0)
        return 1;
    while (*list != '\0') {
        char one[64];
        const size_t n = strcspn(list, ",");

        snprintf(one, sizeof(one), "%.*s", (int)n, list);
        if (n > 0 && strstr(name, one) != NULL)
            return 1;
        list += n + (list[n] == ',');
    }
    return 0;
}

static void measure_all(const char *list, unsigned slices, double slice_us)
{
    for (size_t i = 0; i < row_count; i++) {
        char name[64];

        snprintf(name, sizeof(name), "%s/%zu", rows[i].name, rows[i].size);
        if (!wanted(list, name))
            continue;
        if (!possible(&rows[i])) {
            printf("AQ_PORTABLE\tnone\t%s\t%s\n", name, rows[i].text);
            continue;
        }
        printf("AQ_PORTABLE\tstart\t%s\n", name);
        fflush(stdout);
        printf("AQ_PORTABLE\ttime\t%s\t%s\t%.4f\n", name, rows[i].text,
               measure(i, slices, slice_us));
        fflush(stdout);
    }
    command(row_count, 0);
    printf("AQ_PORTABLE\tend\n");
    fflush(stdout);
}

static void serve(void)
{
    for (uint32_t done = 0;; done++) {
        size_t index;

        GASNET_BLOCKUNTIL(commands != done);
        index = command_row;
        if (index >= row_count)
            return;
        if (rows[index].everyone)
            rows[index].run(&rows[index], command_iters);
    }
}

/* --- start --- */

/* The processor that stands at this rank's place of the list, over and over again. */
static void bind_rank(const char *list)
{
    int cpus[256], n = 0;
    cpu_set_t set;

    if (strcmp(list, "-") == 0)
        return;
    while (n < 256) {
        char *end;

        cpus[n++] = (int)strtol(list, &end, 10);
        if (*end != ',')
            break;
        list = end + 1;
    }
    CPU_ZERO(&set);
    CPU_SET(cpus[self % (gex_Rank_t)n], &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0)
        fprintf(stderr, "bench_portable: rank %u cannot be bound to processor %d\n", (unsigned)self,
                cpus[self % (gex_Rank_t)n]);
}

static void start(gex_EP_t ep)
{
    gex_Segment_t segment;
    void *owner = NULL;

    peer = ranks > 1 ? 1 : 0;
    register_handlers(ep);
    gex_Segment_Attach(&segment, team, SEGMENT);
    memset(gex_Segment_QueryAddr(segment), 1, SEGMENT);
    memset(buffer, 1, sizeof(buffer));
    memset(landing, 1, sizeof(landing));
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, peer, &owner, NULL, NULL, 0));
    peer_place = (unsigned char *)owner;
    gex_AD_Create(&integers, team, GEX_DT_I64, GEX_OP_FADD, 0);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    unsigned slices;

    gex_Client_Init(&client, &ep, &team, "AQ_PORTABLE", &argc, &argv, 0);
    self = gex_TM_QueryRank(team);
    ranks = gex_TM_QuerySize(team);
    slices = argc == 5 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
    if (slices < 1 || slices > MAX_SLICES) {
        if (self == 0)
            fprintf(stderr, "usage: bench_portable CPUS ROWS SLICES SLICE_US\n");
        gasnet_exit(2);
    }
    bind_rank(argv[1]);
    start(ep);
    if (self == 0)
        measure_all(argv[2], slices, strtod(argv[4], NULL));
    else
        serve();
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gasnet_exit(0);
    return 0;
}
