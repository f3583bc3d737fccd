/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_load.c - inside a job on a machine with other work: how long each operation takes, beside
 * the same by programs that spin and that yield.
 * Owns      the distributions of a job's times
 * Threads   one in every process
 * Uses      bench_load.h
 *
 * Slices of ours and of the peer programs alternate; in each slice every rank takes part, and rank
 * 0 notes how long each operation takes it. A slice is longer than what a scheduler gives to one
 * process, unless the run is a quick one. The figure of a row is the median, or the 99th
 * percentile, over all slices; its quartiles are over the slices.
 *
 * Nobody is bound to a core, so that the scheduler does to the ranks whatever it does to programs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "bench_load.h"

#include <gasnet_coll.h>
#include <stdlib.h>

/* from one try to the next while the number of operations is found */
#define AQ_LOAD_GROW      8.0
#define AQ_LOAD_TRIES     10
#define AQ_LOAD_MIN       4 /* operations of a slice */
#define AQ_LOAD_MAX       200000
#define AQ_LOAD_SLICES    12
#define AQ_LOAD_SLICES_UP 16
#define AQ_LOAD_BYTES     ((size_t)1 << 20)
#define AQ_LOAD_RATE_EACH 64 /* messages from each rank to each other one: a flood's round */

enum aq_load_op {
    AQ_LOAD_SHORT, /* round trip, in GASNET_BLOCKUNTIL */
    AQ_LOAD_POLLS, /* the same in a loop of gasnet_AMPoll() */
    AQ_LOAD_BARRIER,
    AQ_LOAD_NAMED,
    AQ_LOAD_REDUCE,
    AQ_LOAD_RATE,
    AQ_LOAD_QUIT
};
enum aq_load_way { AQ_LOAD_OURS, AQ_LOAD_SPINS, AQ_LOAD_YIELDS, AQ_LOAD_WAYS };

static const char *const aq_load_ways[AQ_LOAD_WAYS] = { "", "a program that spins",
                                                        "a program that yields" };

/* One thing to measure: an operation and the way that it is done. */
struct aq_load_side {
    enum aq_load_op op;
    enum aq_load_way way;
    uint64_t iters;
    struct aq_times all, slice;
    double median[AQ_LOAD_SLICES_UP], upper[AQ_LOAD_SLICES_UP]; /* of each slice, and 99 of 100 */
    double took;                                                /* the last slice, ns */
};

static struct aq_load_peer aq_load_peer;
static struct aq_load_side aq_load_sides[AQ_LOAD_WAYS];

/* --- distributions --- */

void aq_times_merge(struct aq_times *times, const struct aq_times *other)
{
    for (unsigned i = 0; i < AQ_TIMES_BUCKETS; i++)
        times->bucket[i] += other->bucket[i];
    times->count += other->count;
}

/* The middle of a bucket. */
static double aq_times_value(unsigned bucket)
{
    const unsigned octave = bucket >> AQ_TIMES_BITS < 2 ? 0 : (bucket >> AQ_TIMES_BITS) - 1;
    const uint64_t digits = bucket - (octave << AQ_TIMES_BITS);

    return ((double)digits + (octave == 0 ? 0 : 0.5)) * (double)(UINT64_C(1) << octave);
}

double aq_times_at(const struct aq_times *times, double part)
{
    const double want = part * (double)times->count;
    uint64_t passed = 0;

    for (unsigned i = 0; i < AQ_TIMES_BUCKETS; i++) {
        passed += times->bucket[i];
        if (passed != 0 && (double)passed >= want)
            return aq_times_value(i);
    }
    return 0;
}

/* --- operations: each rank's part of one --- */

static void aq_load_trip(struct aq_job *job, bool polls)
{
    const uint64_t until = job->replies + 1;

    gex_AM_RequestShort0(job->tm, job->rank ^ 1u, AQ_H_PING_SHORT, 0);
    if (polls)
        while (job->replies < until)
            gasnet_AMPoll();
    else
        GASNET_BLOCKUNTIL(job->replies >= until);
}

static void aq_load_reduce(struct aq_job *job)
{
    int64_t sum = 0, ours = (int64_t)job->rank;

    gex_Event_Wait(gex_Coll_ReduceToAllNB(job->tm, &sum, &ours, GEX_DT_I64, sizeof(ours), 1,
                                          GEX_OP_ADD, NULL, NULL, 0));
}

/* A round of a flood. */
static void aq_load_flood(struct aq_job *job)
{
    job->handled_target += (uint64_t)AQ_LOAD_RATE_EACH * (job->size - 1);
    for (unsigned i = 0; i < AQ_LOAD_RATE_EACH; i++)
        for (gex_Rank_t remote = 1; remote < job->size; remote++)
            gex_AM_RequestShort0(job->tm, (job->rank + remote) % job->size, AQ_H_SINK_SHORT, 0);
    GASNET_BLOCKUNTIL(job->handled >= job->handled_target);
}

static void aq_load_ours(struct aq_job *job, enum aq_load_op op)
{
    switch (op) {
    case AQ_LOAD_SHORT:
    case AQ_LOAD_POLLS:
        aq_load_trip(job, op == AQ_LOAD_POLLS);
        break;
    case AQ_LOAD_BARRIER:
        gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
        break;
    case AQ_LOAD_NAMED:
        gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
        break;
    case AQ_LOAD_REDUCE:
        aq_load_reduce(job);
        break;
    case AQ_LOAD_RATE:
        aq_load_flood(job);
        break;
    case AQ_LOAD_QUIT:
        break;
    }
}

/* A rank that only answers is done when it has answered all. */
static void aq_load_answer(struct aq_job *job, bool polls, uint64_t iters)
{
    job->handled_target += iters;
    if (polls)
        while (job->handled < job->handled_target)
            gasnet_AMPoll();
    else
        GASNET_BLOCKUNTIL(job->handled >= job->handled_target);
}

static void aq_load_one(struct aq_job *job, const struct aq_load_side *side)
{
    if (side->way == AQ_LOAD_OURS)
        aq_load_ours(job, side->op);
    else if (side->op == AQ_LOAD_BARRIER)
        aq_load_peer_barrier(&aq_load_peer);
    else
        aq_load_peer_trip(&aq_load_peer);
}

/* --- slices --- */

/* Every rank's part of a slice. */
static void aq_load_slice(struct aq_job *job, struct aq_load_side *side)
{
    const bool trips = side->op == AQ_LOAD_SHORT || side->op == AQ_LOAD_POLLS;
    double start = aq_bench_now();

    aq_load_peer.yields = side->way == AQ_LOAD_YIELDS;
    if (trips && side->way == AQ_LOAD_OURS && job->rank % 2 != 0) {
        aq_load_answer(job, side->op == AQ_LOAD_POLLS, side->iters);
        return;
    }
    for (uint64_t i = 0; i < side->iters; i++) {
        double now;

        aq_load_one(job, side);
        now = aq_bench_now();
        aq_times_add(&side->slice, (uint64_t)(now - start));
        start = now;
    }
}

static void aq_load_handshake(struct aq_job *job)
{
    gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
}

static void aq_load_command(struct aq_job *job, uint32_t op, uint32_t way, uint64_t iters)
{
    for (gex_Rank_t r = 1; r < job->size; r++)
        gex_AM_RequestShort4(job->tm, r, AQ_H_COMMAND, 0, op, way, iters >> 32, iters);
}

/* Rank 0: one slice. */
static void aq_load_lead(struct aq_job *job, struct aq_load_side *side)
{
    double start;

    memset(&side->slice, 0, sizeof(side->slice));
    aq_load_command(job, side->op, side->way, side->iters);
    aq_load_handshake(job);
    start = aq_bench_now();
    aq_load_slice(job, side);
    side->took = aq_bench_now() - start;
    aq_load_handshake(job);
}

/* The others, until rank 0 has no more. */
static void aq_load_serve(struct aq_job *job)
{
    static struct aq_load_side side;

    for (uint64_t served = 0;; served++) {
        GASNET_BLOCKUNTIL(job->commands > served);
        side.op = (enum aq_load_op)job->command_row;
        side.way = (enum aq_load_way)job->command_side;
        side.iters = job->command_iters;
        if (side.op == AQ_LOAD_QUIT)
            return;
        aq_load_handshake(job);
        aq_load_slice(job, &side);
        aq_load_handshake(job);
    }
}

static void aq_load_adapt(struct aq_load_side *side, double slice_ns)
{
    const double grow = MIN(slice_ns / MAX(side->took, 1), AQ_LOAD_GROW);
    const double iters = (double)side->iters * grow;

    side->iters = iters < AQ_LOAD_MIN   ? AQ_LOAD_MIN
                  : iters > AQ_LOAD_MAX ? AQ_LOAD_MAX
                                        : (uint64_t)iters;
}

static void aq_load_calibrate(struct aq_job *job, struct aq_load_side *side, double slice_ns)
{
    side->iters = AQ_LOAD_MIN;
    for (unsigned i = 0; i < AQ_LOAD_TRIES; i++) {
        const uint64_t before = side->iters;

        aq_load_lead(job, side);
        aq_load_adapt(side, slice_ns);
        if (side->took > slice_ns / 4 || side->iters == before)
            break;
    }
}

/* Rank 0: so many slices of each side in turn. */
static void aq_load_measure(struct aq_job *job, struct aq_load_side *sides, unsigned count,
                            unsigned slices, double slice_ns)
{
    for (unsigned k = 0; k < count; k++)
        aq_load_calibrate(job, &sides[k], slice_ns);
    for (unsigned s = 0; s < slices; s++)
        for (unsigned k = 0; k < count; k++) {
            struct aq_load_side *side = &sides[k];

            aq_load_lead(job, side);
            side->median[s] = aq_times_at(&side->slice, 0.5);
            side->upper[s] = aq_times_at(&side->slice, 0.99);
            aq_times_merge(&side->all, &side->slice);
            aq_load_adapt(side, slice_ns);
        }
}

static void aq_load_side_init(struct aq_load_side *side, enum aq_load_op op, enum aq_load_way way)
{
    memset(side, 0, sizeof(*side));
    side->op = op;
    side->way = way;
}

/* --- results --- */

static void aq_load_quart(struct aq_quart *out, const double *slices, unsigned count, double all)
{
    *out = aq_stat_quart(slices, count);
    out->median = all;
}

/* The row that compares two sides, by the 99th percentiles (most) or by the medians. */
static void aq_load_compare(FILE *report, const struct aq_job *job, const char *name,
                            const char *limit_name, const struct aq_load_side *side,
                            const struct aq_load_side *limit, unsigned slices, bool upper)
{
    const double *s = upper ? side->upper : side->median;
    const double *l = upper ? limit->upper : limit->median;
    const double part = upper ? 0.99 : 0.5;
    double ratio[AQ_LOAD_SLICES_UP];
    struct aq_result r;

    memset(&r, 0, sizeof(r));
    snprintf(r.who, sizeof(r.who), "aqueduct");
    snprintf(r.name, sizeof(r.name), "%s%s", name, upper ? "_p99" : "");
    snprintf(r.unit, sizeof(r.unit), "ns");
    snprintf(r.limit_name, sizeof(r.limit_name), "%s", limit_name);
    r.size = job->size;
    r.budget = 1;
    r.slices = slices;
    aq_load_quart(&r.subject, s, slices, aq_times_at(&side->all, part));
    aq_load_quart(&r.limit, l, slices, aq_times_at(&limit->all, part));
    for (unsigned i = 0; i < slices; i++)
        ratio[i] = s[i] / MAX(l[i], 1);
    aq_load_quart(&r.ratio, ratio, slices, r.subject.median / MAX(r.limit.median, 1));
    aq_record_write(report, &r);
}

static unsigned aq_load_slices(const struct aq_job *job)
{
    return job->options->quick ? 1 : AQ_LOAD_SLICES;
}

/* Longer than what a scheduler gives to one process. */
static double aq_load_slice_ns(const struct aq_job *job)
{
    return job->options->quick ? 2e6 : 50e6;
}

/* An operation beside both peer programs. */
static void aq_load_beside(struct aq_job *job, FILE *report, enum aq_load_op op, const char *name)
{
    const unsigned slices = aq_load_slices(job);

    for (unsigned way = 0; way < AQ_LOAD_WAYS; way++)
        aq_load_side_init(&aq_load_sides[way], op, (enum aq_load_way)way);
    aq_load_measure(job, aq_load_sides, AQ_LOAD_WAYS, slices, aq_load_slice_ns(job));
    for (unsigned way = AQ_LOAD_SPINS; way < AQ_LOAD_WAYS; way++)
        for (int upper = 0; upper < 2; upper++)
            aq_load_compare(report, job, name, aq_load_ways[way], &aq_load_sides[0],
                            &aq_load_sides[way], slices, upper != 0);
}

/* Both barriers beside an all-reduce. */
static void aq_load_many(struct aq_job *job, FILE *report)
{
    static const enum aq_load_op ops[] = { AQ_LOAD_BARRIER, AQ_LOAD_NAMED, AQ_LOAD_REDUCE };
    const unsigned slices = aq_load_slices(job);

    for (unsigned k = 0; k < 3; k++)
        aq_load_side_init(&aq_load_sides[k], ops[k], AQ_LOAD_OURS);
    aq_load_measure(job, aq_load_sides, 3, slices, aq_load_slice_ns(job));
    aq_load_compare(report, job, "barrier", "all-reduce of 8 B", &aq_load_sides[0],
                    &aq_load_sides[2], slices, false);
    aq_load_compare(report, job, "barrier_named", "all-reduce of 8 B", &aq_load_sides[1],
                    &aq_load_sides[2], slices, false);
}

/* The median of some operations, for who compares runs. */
static void aq_load_measure_run(struct aq_job *job, FILE *report)
{
    static const enum aq_load_op ops[] = { AQ_LOAD_SHORT, AQ_LOAD_POLLS, AQ_LOAD_BARRIER };

    for (unsigned k = 0; k < 3; k++)
        aq_load_side_init(&aq_load_sides[k], ops[k], AQ_LOAD_OURS);
    aq_load_measure(job, aq_load_sides, 3, 2, aq_load_slice_ns(job));
    fprintf(report, "LOADRUN\t%.6g\t%.6g\t%.6g\n", aq_times_at(&aq_load_sides[0].all, 0.5),
            aq_times_at(&aq_load_sides[1].all, 0.5), aq_times_at(&aq_load_sides[2].all, 0.5));
}

/* Nanoseconds from one message to the next, of all that all ranks send. */
static void aq_load_rate(struct aq_job *job, FILE *report)
{
    struct aq_load_side *side = &aq_load_sides[0];
    double ns = 0, messages = 0;

    aq_load_side_init(side, AQ_LOAD_RATE, AQ_LOAD_OURS);
    aq_load_calibrate(job, side, aq_load_slice_ns(job));
    for (unsigned s = 0; s < aq_load_slices(job); s++) {
        aq_load_lead(job, side);
        ns += side->took;
        messages += (double)side->iters * AQ_LOAD_RATE_EACH * job->size * (job->size - 1);
    }
    fprintf(report, "LOADRATE\t%.6g\n", ns / messages);
}

/* --- the job --- */

static _Noreturn void aq_load_fail(const char *what)
{
    fprintf(stderr, "aq-bench: %s\n", what);
    gasnet_exit(2);
    abort();
}

/* Everybody learns everybody's port. */
static void aq_load_connect(struct aq_job *job)
{
    struct aq_load_peer *p = &aq_load_peer;

    if (aq_load_peer_open(p) != 0)
        aq_load_fail("no socket for the peer programs");
    for (gex_Rank_t root = 0; root < job->size; root++)
        gex_Event_Wait(gex_Coll_BroadcastNB(job->tm, root, &p->ports[root], &p->ports[root],
                                            sizeof(p->ports[root]), 0));
}

static void aq_load_start(struct aq_job *job)
{
    struct aq_load_peer *p = &aq_load_peer;
    void *owner = NULL, *local = NULL;
    uintptr_t size = 0;
    gex_Segment_t segment;

    if (gex_Segment_Attach(&segment, job->tm, AQ_LOAD_BYTES) != GASNET_OK
        || gex_Segment_QueryBound(job->tm, 0, &owner, &local, &size) != 0)
        aq_load_fail("gex_Segment_Attach failed");
    p->rank = job->rank;
    p->ranks = job->size;
    if (!job->options->remote && local != NULL)
        p->area = local;
    aq_load_handshake(job);
}

void aq_job_load(struct aq_job *job)
{
    const char *task = job->options->task;
    FILE *report;

    aq_load_start(job);
    if (strcmp(task, "load") == 0 && (job->size % 2 != 0 || job->size > AQ_LOAD_RANKS))
        aq_load_fail("the peer programs need 2, 4, 6 or 8 ranks");
    if (strcmp(task, "load") == 0 && aq_load_peer.area == NULL)
        aq_load_connect(job);
    if (job->rank != 0) {
        aq_load_serve(job);
        return;
    }
    report = job->options->report != NULL ? fopen(job->options->report, "w") : stdout;
    if (report == NULL)
        aq_load_fail("the report cannot be opened");
    if (strcmp(task, "load-many") == 0) {
        aq_load_many(job, report);
    } else if (strcmp(task, "load-run") == 0) {
        aq_load_measure_run(job, report);
    } else if (strcmp(task, "load-rate") == 0) {
        aq_load_rate(job, report);
    } else {
        aq_load_beside(job, report, AQ_LOAD_SHORT, "short");
        aq_load_beside(job, report, AQ_LOAD_POLLS, "polled");
        aq_load_beside(job, report, AQ_LOAD_BARRIER, "barrier");
    }
    aq_load_command(job, AQ_LOAD_QUIT, 0, 0);
    if (report != stdout)
        fclose(report);
}
