/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_job.c - inside a job: start-up, commands from rank 0 to the others, measuring one row.
 * Owns      the one struct aq_job of the process
 * Threads   one in every process
 * Uses      bench.h
 *
 * Rank 0 decides. Before each slice it sends a command (row, side, iterations) to the ranks that
 * take part; they run their part of that side and acknowledge. Between commands they wait in the
 * library.
 *
 * Segment: the limit area first (rank 0's is used by all), the slots of the 8-byte rows, the word
 * that stops a computing target, then from AQ_POOL_OFFSET the transfer area.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define AQ_POOL_SIZE  ((size_t)128 << 20) /* at least four times a large last-level cache */
#define AQ_POOL_QUICK ((size_t)32 << 20)  /* no cold rows in a quick run */
#define AQ_READY_NS \
    1e9 /* the word that the other rank listens is lost if it has not come by then */
#define AQ_TRY_BYTES    (4u << 20) /* of a stream, to see which way is the fastest */
#define AQ_TRY_MAX      4000       /* operations, if they are small */
#define AQ_LAST_LOOKS   4 /* polls before a rank leaves the library for a limit over sockets */
#define AQ_SLOTS_OFFSET (AQ_POOL_OFFSET - 65536)

enum aq_command_side { AQ_SIDE_SUBJECT, AQ_SIDE_LIMIT, AQ_SIDE_PREPARE, AQ_SIDE_WAY, AQ_SIDE_QUIT };

_Static_assert(sizeof(struct aq_limit_area) <= AQ_SLOTS_OFFSET,
               "the limit area overlaps the slots");

static struct aq_job aq_the_job;

struct aq_job *aq_job_get(void)
{
    return &aq_the_job;
}

unsigned char *aq_job_shared_pool(const struct aq_job *job)
{
    return (job->rank == 0 ? job->segment : job->peer_local) + AQ_POOL_OFFSET;
}

/* --- start --- */

static _Noreturn void aq_job_fail(const char *what)
{
    fprintf(stderr, "aq-bench: %s\n", what);
    gasnet_exit(2);
    abort();
}

static void aq_h_command(gex_Token_t token, gex_AM_Arg_t row, gex_AM_Arg_t side, gex_AM_Arg_t high,
                         gex_AM_Arg_t low)
{
    struct aq_job *job = &aq_the_job;

    (void)token;
    job->command_row = (uint32_t)row;
    job->command_side = (uint32_t)side;
    job->command_iters = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    job->commands++;
}

static void aq_h_ack(gex_Token_t token, gex_AM_Arg_t switches)
{
    (void)token;
    aq_the_job.peer_switches += (uint32_t)switches;
    aq_the_job.acks++;
}

/* A rank that is free to move between cores measures the scheduler: pin it if the launcher has
 * not. */
static void aq_job_pin(const struct aq_job *job)
{
    cpu_set_t allowed, one;
    int count, want;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    count = CPU_COUNT(&allowed);
    if (count <= 1)
        return;
    want = (int)job->rank % count;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && want-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

void aq_job_start(struct aq_job *job, const struct aq_options *options, int *argc, char ***argv)
{
    gex_AM_Entry_t table[] = {
        { AQ_H_COMMAND, (gex_AM_Fn_t)aq_h_command, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL,
          "command" },
        { AQ_H_ACK, (gex_AM_Fn_t)aq_h_ack, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL,
          "ack" },
    };

    if (gex_Client_Init(&job->client, &job->ep, &job->tm, "AQBENCH", argc, argv, 0) != GASNET_OK) {
        fprintf(stderr, "aq-bench: gex_Client_Init failed\n");
        exit(2);
    }
    job->options = options;
    job->rank = gex_TM_QueryRank(job->tm);
    job->size = gex_TM_QuerySize(job->tm);
    gex_EP_RegisterHandlers(job->ep, table, sizeof(table) / sizeof(table[0]));
    aq_am_register(job);
    aq_client_register(job);
}

static void aq_job_attach(struct aq_job *job)
{
    gex_Segment_t segment;
    size_t max = gasnet_getMaxGlobalSegmentSize();
    size_t min = AQ_POOL_OFFSET + ((size_t)1 << 20);
    size_t size = AQ_POOL_OFFSET + (job->options->quick ? AQ_POOL_QUICK : AQ_POOL_SIZE);

    while (size > max && size > min)
        size = AQ_POOL_OFFSET + (size - AQ_POOL_OFFSET) / 2;
    if (gex_Segment_Attach(&segment, job->tm, size) != GASNET_OK)
        aq_job_fail("gex_Segment_Attach failed");
    job->segment = gex_Segment_QueryAddr(segment);
    job->segment_size = gex_Segment_QuerySize(segment);
    job->pool_size = size - AQ_POOL_OFFSET;
}

/* Addresses of the peer (rank 1's segment on rank 0, rank 0's on the others), slots, private
 * buffer. */
static void aq_job_map(struct aq_job *job)
{
    void *owner = NULL, *local = NULL;
    gex_Rank_t peer = job->rank == 0 ? 1 : 0;
    uintptr_t size = 0;

    if (gex_Segment_QueryBound(job->tm, peer, &owner, &local, &size) != 0)
        aq_job_fail("the peer's segment cannot be queried");
    job->peer_owner = owner;
    job->peer_local = local;
    for (size_t i = 0; i < AQ_SLOTS; i++) {
        size_t at = AQ_SLOTS_OFFSET + i * 64;

        job->slots[i].rank = peer;
        job->slots[i].owner = job->peer_owner + at;
        job->slots[i].local = local == NULL ? NULL : job->peer_local + at;
        job->slots[i].offset = at;
        job->slots[i].again = job->slots[i].local;
        job->slots[i].next = (i * 5 + 17) % AQ_SLOTS;
        job->slots[i].twin = local == NULL ? NULL : job->peer_local + at + 8;
    }
    job->buffer =
        mmap(NULL, job->pool_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (job->buffer == MAP_FAILED)
        aq_job_fail("no memory for the private buffer");
    madvise(job->buffer, job->pool_size, MADV_HUGEPAGE);
    for (size_t i = 0; i < job->pool_size; i++)
        job->buffer[i] = (unsigned char)(i * 7 + (i >> 12));
    if (local != NULL && job->size <= AQ_LIMIT_RANKS)
        job->limit.area =
            (struct aq_limit_area *)(void *)(job->rank == 0 ? job->segment : job->peer_local);
    job->max_medium = gex_AM_MaxRequestMedium(job->tm, peer, GEX_EVENT_NOW, 0, 0);
    job->max_medium =
        MIN(job->max_medium, gex_AM_MaxReplyMedium(job->tm, peer, GEX_EVENT_NOW, 0, 0));
    job->max_long = gex_AM_MaxRequestLong(job->tm, peer, GEX_EVENT_NOW, 0, 0);
    job->max_long = MIN(job->max_long, gex_AM_MaxReplyLong(job->tm, peer, GEX_EVENT_NOW, 0, 0));
}

/* --- commands --- */

static gex_Rank_t aq_job_helpers(const struct aq_job *job, const struct aq_row_kind *kind)
{
    return kind->everyone ? job->size - 1 : 1;
}

static void aq_job_command(struct aq_job *job, gex_Rank_t helpers, uint32_t row, uint32_t side,
                           uint64_t iters)
{
    for (gex_Rank_t r = 1; r <= helpers; r++)
        gex_AM_RequestShort4(job->tm, r, AQ_H_COMMAND, 0, row, side, iters >> 32, iters);
    job->acks_target += helpers;
}

void aq_job_wait_acks(struct aq_job *job)
{
    GASNET_BLOCKUNTIL(job->acks >= job->acks_target);
}

static void aq_job_take_way(struct aq_job *job, unsigned way)
{
    if (job->remote) {
        aq_remote_take_way(job, way);
        return;
    }
    job->limit.pause = way % 2 != 0;
    aq_limit_place(&job->limit, way / 2);
}

static void aq_job_serve_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    if (!job->remote) {
        row->kind->limit_peer(job, row, iters);
        return;
    }
    for (int i = 0; i < AQ_LAST_LOOKS; i++)
        gasnet_AMPoll(); /* the command is acknowledged before nobody looks any more */
    aq_remote_ready(job);
    aq_remote_run(job, row, iters);
}

static void aq_job_serve_one(struct aq_job *job)
{
    size_t count;
    const struct aq_row *row = &aq_rows(&count)[job->command_row];
    uint64_t iters = job->command_iters;

    switch (job->command_side) {
    case AQ_SIDE_SUBJECT:
        row->kind->subject_peer(job, row, iters);
        break;
    case AQ_SIDE_LIMIT:
        aq_job_serve_limit(job, row, iters);
        break;
    case AQ_SIDE_PREPARE:
        row->kind->prepare(job, row, iters);
        break;
    case AQ_SIDE_WAY:
        aq_job_take_way(job, (unsigned)iters);
        break;
    }
}

static void aq_job_serve(struct aq_job *job)
{
    for (uint64_t served = 0;; served++) {
        uint64_t before;

        GASNET_BLOCKUNTIL(job->commands > served);
        if (job->command_side == AQ_SIDE_QUIT)
            return;
        before = aq_bench_switches(NULL);
        aq_job_serve_one(job);
        gex_AM_RequestShort1(job->tm, 0, AQ_H_ACK, 0, aq_bench_switches(NULL) - before);
    }
}

/* --- rank 0 measures --- */

struct aq_side_arg {
    struct aq_job *job;
    const struct aq_row *row;
    uint32_t index;
    bool limit;
};

/* A limit over sockets or MPI: both are in the library until both have heard of it, and then not
 * before its end. */
static double aq_job_remote_limit(struct aq_side_arg *a, uint64_t iters)
{
    struct aq_job *job = a->job;
    double start;

    aq_remote_forget(job);
    aq_job_command(job, 1, a->index, AQ_SIDE_LIMIT, iters);
    start = aq_bench_now();
    while (!aq_remote_is_ready(job) && (job->raw != NULL || aq_bench_now() - start < AQ_READY_NS))
        gasnet_AMPoll();
    start = aq_bench_now();
    aq_remote_run(job, a->row, iters);
    start = aq_bench_now() - start;
    aq_job_wait_acks(job);
    return start;
}

static double aq_job_side(void *arg, uint64_t iters)
{
    struct aq_side_arg *a = arg;
    const struct aq_row_kind *kind = a->row->kind;
    aq_row_fn ours = a->limit ? kind->limit : kind->subject;
    aq_row_fn remote = a->limit ? kind->limit_peer : kind->subject_peer;
    double start;

    if (a->limit && a->job->remote)
        return aq_job_remote_limit(a, iters);
    if (remote != NULL)
        aq_job_command(a->job, aq_job_helpers(a->job, kind), a->index,
                       a->limit ? AQ_SIDE_LIMIT : AQ_SIDE_SUBJECT, iters);
    start = aq_bench_now();
    ours(a->job, a->row, iters);
    start = aq_bench_now() - start;
    aq_job_wait_acks(a->job);
    return start;
}

static uint64_t aq_job_switches(void *arg)
{
    const struct aq_job *job = arg;

    return aq_bench_switches(NULL) + job->peer_switches;
}

/* How both sides of a limit spin, and where its payload lies: told to everybody. */
static void aq_job_tell_way(struct aq_job *job, uint32_t row, unsigned way)
{
    aq_job_command(job, job->size - 1, row, AQ_SIDE_WAY, way);
    aq_job_take_way(job, way);
    aq_job_wait_acks(job);
}

/* The limit is what the fastest way takes here and now: spinning with or without a pause
 * instruction, the payload in one place or another; a stream with these datagrams or those. */
static void aq_job_choose_way(struct aq_job *job, struct aq_side_arg *limit)
{
    unsigned ways = job->remote            ? aq_remote_ways(job, limit->row)
                    : limit->row->size > 0 ? 2 * AQ_LIMIT_PLACES
                                           : 2,
             best = 0;
    uint64_t iters =
        job->remote ? MIN(AQ_TRY_BYTES / MAX(limit->row->size, 1), AQ_TRY_MAX) + 1 : 1000;
    double min[MAX(2 * AQ_LIMIT_PLACES, AQ_WIRE_WAYS)];

    for (unsigned k = 0; k < 7 * ways; k++) {
        unsigned way = k % ways;
        double ns;

        aq_job_tell_way(job, limit->index, way);
        ns = aq_job_side(limit, iters);
        if (k < ways || ns < min[way])
            min[way] = ns;
    }
    for (unsigned way = 1; way < ways; way++) {
        if (min[way] < min[best])
            best = way;
    }
    aq_job_tell_way(job, limit->index, best);
}

static void aq_job_prepare(struct aq_job *job, uint32_t index, const struct aq_row *row)
{
    if (row->kind->prepare == NULL)
        return;
    aq_job_command(job, aq_job_helpers(job, row->kind), index, AQ_SIDE_PREPARE, 0);
    aq_job_wait_acks(job);
    row->kind->prepare(job, row, 0);
}

static bool aq_job_limit_possible(const struct aq_job *job, const struct aq_row *row)
{
    /* limits spin without giving way: all ranks together need a core each */
    if (row->kind->everyone && (long)job->size > sysconf(_SC_NPROCESSORS_ONLN))
        return false;
    if (job->remote)
        return aq_remote_possible(job, row) && (!row->kind->everyone || job->size == 2);
    return row->kind->limit != NULL && job->peer_local != NULL && job->limit.area != NULL;
}

/* Is there more than one way to run the limit? */
static bool aq_job_has_ways(const struct aq_job *job, const struct aq_row *row)
{
    if (job->remote)
        return aq_remote_ways(job, row) > 1;
    return row->kind->limit_peer != NULL;
}

static void aq_job_name_limit(const struct aq_job *job, const struct aq_row *row,
                              struct aq_result *r)
{
    const char *how = row->kind->limit_peer == NULL ? "" : job->limit.pause ? ", pause" : ", spin";

    if (job->remote)
        aq_remote_name(job, row, r->limit_name, sizeof(r->limit_name));
    else
        snprintf(r->limit_name, sizeof(r->limit_name), "%s%s", row->kind->limit_name, how);
}

static void aq_job_describe(const struct aq_job *job, const struct aq_row *row, bool limited,
                            struct aq_result *r)
{
    memset(r, 0, sizeof(*r));
    snprintf(r->who, sizeof(r->who), "aqueduct");
    snprintf(r->name, sizeof(r->name), "%s", row->kind->name);
    snprintf(r->unit, sizeof(r->unit), "ns");
    if (limited)
        aq_job_name_limit(job, row, r);
    r->size = row->kind == &aq_kind_am_rate ? job->size : row->size;
    r->budget = limited ? aq_row_budget(job->options, row, job->remote) : 0;
}

static void aq_job_measure(struct aq_job *job, uint32_t index, const struct aq_row *row,
                           struct aq_result *r)
{
    struct aq_side_arg subject = { job, row, index, false }, limit = { job, row, index, true };
    bool quick = job->options->quick;
    struct aq_measure m = {
        .subject = { aq_job_side, &subject },
        .slice_ns = 1e6,
        .slices = quick ? 25 : 101,
        .longest_ns = quick ? 0.2e9 : 1e9,
        .switches = aq_job_switches,
        .switches_arg = job,
        .min = row->kind->min != NULL ? row->kind->min(row->size) : 1,
    };
    bool limited = aq_job_limit_possible(job, row);

    aq_job_prepare(job, index, row);
    if (limited) {
        m.limit = (struct aq_side){ aq_job_side, &limit };
        if (aq_job_has_ways(job, row))
            aq_job_choose_way(job, &limit);
    }
    aq_job_describe(job, row, limited, r);
    aq_bench_settle(&m, 3, r);
    if (r->budget < 0) /* so many ns above the limit, as the ratio that this is here */
        r->budget = 1 - r->budget / r->limit.median;
}

/* The last transfer of a put or get row left what it should have. */
static void aq_job_check_bytes(struct aq_job *job)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;
    size_t n = MIN(job->pool_size, (size_t)1 << 20);
    unsigned char *back = malloc(n);

    if (back == NULL)
        aq_job_fail("no memory to check the transfers");
    gex_RMA_PutBlocking(job->tm, 1, remote_addr, job->buffer, n, 0);
    gex_RMA_GetBlocking(job->tm, back, 1, remote_addr, n, 0);
    if (memcmp(back, job->buffer, n) != 0)
        aq_job_fail("bytes that were put and fetched back differ");
    free(back);
}

void aq_job_rows(struct aq_job *job)
{
    const struct aq_options *options = job->options;
    size_t count;
    const struct aq_row *rows = aq_rows(&count);
    FILE *report = NULL;
    struct aq_out out;

    if (job->size < 2)
        aq_job_fail("at least 2 ranks are needed");
    aq_job_pin(job);
    aq_job_attach(job);
    aq_job_map(job);
    aq_atomic_start(job);
    aq_remote_start(job);
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
    if (strcmp(options->task, "stream") == 0) {
        aq_remote_stream(job);
        return;
    }
    if (job->rank != 0) {
        aq_job_serve(job);
        return;
    }
    aq_job_check_bytes(job);
    aq_out_init(&out, options);
    if (options->report != NULL && (report = fopen(options->report, "w")) == NULL)
        aq_job_fail("the report cannot be opened");
    if (job->raw != NULL) {
        snprintf(out.limits_by, sizeof(out.limits_by), "%s", job->raw->version());
        if (report != NULL)
            fprintf(report, "BESIDE\t%s\n", out.limits_by);
    }
    for (size_t i = 0; i < count; i++) {
        struct aq_result r;

        if (!aq_row_wanted(options, &rows[i], job->remote))
            continue;
        if (rows[i].kind->possible != NULL && !rows[i].kind->possible(job, &rows[i]))
            continue;
        if (report != NULL)
            fprintf(report, "RUNNING\t%s\n", rows[i].kind->name), fflush(report);
        aq_job_measure(job, (uint32_t)i, &rows[i], &r);
        if (report != NULL)
            aq_record_write(report, &r);
        else
            aq_out_result(&out, &r);
    }
    aq_job_check_bytes(job);
    aq_job_command(job, job->size - 1, 0, AQ_SIDE_QUIT, 0);
    out.whole = true;
    if (report != NULL)
        fclose(report);
    else
        aq_out_finish(&out);
}
