/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_coll.c - rows of collectives over all ranks: broadcast, reduce to one, reduce to all.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, gasnet_coll.h
 *
 * Reductions sum doubles. There is no limit in this process; the table at the end sets them beside
 * MPI and OpenSHMEM on the same number of ranks.
 */
#include "bench.h"

#include <gasnet_coll.h>

/* Two halves of the private buffer. */
static void *aq_coll_src(const struct aq_job *job)
{
    return job->buffer;
}

static void *aq_coll_dst(const struct aq_job *job)
{
    return job->buffer + job->pool_size / 2;
}

static void aq_coll_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    double *src = aq_coll_src(job);

    (void)iters;
    for (size_t i = 0; i < row->size / sizeof(double); i++)
        src[i] = (double)(i % 7);
}

static void aq_broadcast(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(
            gex_Coll_BroadcastNB(job->tm, 0, aq_coll_dst(job), aq_coll_src(job), row->size, 0));
}

static void aq_reduce(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_Coll_ReduceToOneNB(
            job->tm, 0, aq_coll_dst(job), aq_coll_src(job), GEX_DT_DBL, sizeof(double),
            row->size / sizeof(double), GEX_OP_ADD, NULL, NULL, 0));
}

static void aq_allreduce(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_Coll_ReduceToAllNB(
            job->tm, aq_coll_dst(job), aq_coll_src(job), GEX_DT_DBL, sizeof(double),
            row->size / sizeof(double), GEX_OP_ADD, NULL, NULL, 0));
}

const struct aq_row_kind aq_kind_broadcast = { .name = "broadcast",
                                               .subject = aq_broadcast,
                                               .subject_peer = aq_broadcast,
                                               .prepare = aq_coll_prepare,
                                               .raw = AQ_RAW_BROADCAST,
                                               .everyone = true };
const struct aq_row_kind aq_kind_reduce = { .name = "reduce",
                                            .subject = aq_reduce,
                                            .subject_peer = aq_reduce,
                                            .prepare = aq_coll_prepare,
                                            .raw = AQ_RAW_REDUCE,
                                            .everyone = true };
const struct aq_row_kind aq_kind_allreduce = { .name = "allreduce",
                                               .subject = aq_allreduce,
                                               .subject_peer = aq_allreduce,
                                               .prepare = aq_coll_prepare,
                                               .remote = { "UDP exchange", aq_remote_exchange,
                                                           aq_remote_exchange, false },
                                               .raw = AQ_RAW_ALLREDUCE,
                                               .everyone = true };
