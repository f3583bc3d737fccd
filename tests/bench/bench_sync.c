/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_sync.c - rows of barriers, of progress while the target computes, and of overlap.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h
 *
 * Progress: a put or get to a rank that computes without entering the library, against the same
 * to a rank that waits in the library; 1.00 says that the target's attention is not needed.
 * Overlap: a transfer with as much computation between its start and its end as it takes itself,
 * against that computation alone; 1.00 says that the transfer is hidden entirely, 2.00 that
 * nothing is.
 */
#include "bench.h"

/* --- barriers --- */

static void aq_barrier(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        gex_Event_Wait(gex_Coll_BarrierNB(job->tm, 0));
}

static void aq_barrier_named(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row, (void)job;
    for (uint64_t i = 0; i < iters; i++) {
        gasnet_barrier_notify((int)(i & 0xff), 0);
        gasnet_barrier_wait((int)(i & 0xff), 0);
    }
}

static void aq_barrier_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    aq_limit_barrier(&job->limit, iters, job->rank, job->size);
}

const struct aq_row_kind aq_kind_barrier = {
    .name = "barrier",
    .limit_name = "flag exchange",
    .subject = aq_barrier,
    .subject_peer = aq_barrier,
    .limit = aq_barrier_limit,
    .limit_peer = aq_barrier_limit,
    .remote = { "UDP exchange", aq_remote_exchange, aq_remote_exchange, false },
    .raw = AQ_RAW_BARRIER,
    .everyone = true,
};

const struct aq_row_kind aq_kind_barrier_named = {
    .name = "barrier_named",
    .limit_name = "flag exchange",
    .subject = aq_barrier_named,
    .subject_peer = aq_barrier_named,
    .limit = aq_barrier_limit,
    .limit_peer = aq_barrier_limit,
    .remote = { "UDP exchange", aq_remote_exchange, aq_remote_exchange, false },
    .raw = AQ_RAW_BARRIER,
    .everyone = true,
};

/* --- progress --- */

/* Register-only work: a chain of multiplications. */
static void aq_compute(uint64_t steps)
{
    uint64_t x = steps | 1;

    for (uint64_t i = 0; i < steps; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
}

/* The target computes until rank 0 puts a new number into the last word before its pool. It looks
 * into the library once in AQ_LOOK_NS, for the sake of conduits that cannot do without: their rows
 * show about that long. */
#define AQ_LOOK_NS 5e6

static volatile uint64_t *aq_stop_word(unsigned char *segment)
{
    return (volatile uint64_t *)(void *)(segment + AQ_POOL_OFFSET - sizeof(uint64_t));
}

static void aq_progress_compute(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    volatile uint64_t *stop = aq_stop_word(job->segment);
    double look = aq_bench_now() + AQ_LOOK_NS;

    (void)row, (void)iters;
    while (*stop == 0) {
        aq_compute(1000);
        if (aq_bench_now() > look) {
            gasnet_AMPoll();
            look = aq_bench_now() + AQ_LOOK_NS;
        }
    }
    *stop = 0;
}

static void aq_progress_stop(struct aq_job *job)
{
    gex_RMA_PutBlockingVal(job->tm, 1, (void *)(uintptr_t)aq_stop_word(job->peer_owner), 1, 8, 0);
}

static void aq_progress_put_polling(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        gex_RMA_PutBlocking(job->tm, 1, job->peer_owner + AQ_POOL_OFFSET, job->buffer, row->size,
                            0);
        aq_limit_compiler_barrier();
    }
}

static void aq_progress_get_polling(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        gex_RMA_GetBlocking(job->tm, job->buffer, 1, job->peer_owner + AQ_POOL_OFFSET, row->size,
                            0);
        aq_limit_compiler_barrier();
    }
}

static void aq_progress_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_progress_put_polling(job, row, iters);
    aq_progress_stop(job);
}

static void aq_progress_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    aq_progress_get_polling(job, row, iters);
    aq_progress_stop(job);
}

const struct aq_row_kind aq_kind_progress_put = {
    .name = "progress_put",
    .limit_name = "target in the library",
    .subject = aq_progress_put,
    .subject_peer = aq_progress_compute,
    .limit = aq_progress_put_polling,
};

const struct aq_row_kind aq_kind_progress_get = {
    .name = "progress_get",
    .limit_name = "target in the library",
    .subject = aq_progress_get,
    .subject_peer = aq_progress_compute,
    .limit = aq_progress_get_polling,
};

/* --- overlap --- */

static void aq_overlap_transfer(struct aq_job *job, const struct aq_row *row, uint64_t steps)
{
    unsigned char *remote_addr = job->peer_owner + AQ_POOL_OFFSET;

    if (row->kind == &aq_kind_overlap_put) {
        gex_RMA_PutNBI(job->tm, 1, remote_addr, job->buffer, row->size, GEX_EVENT_DEFER, 0);
        aq_compute(steps);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    } else {
        gex_RMA_GetNBI(job->tm, job->buffer, 1, remote_addr, row->size, 0);
        aq_compute(steps);
        gex_NBI_Wait(GEX_EC_GET, 0);
    }
}

/* Finds how much computation takes as long as the transfer. */
static void aq_overlap_prepare(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const uint64_t trial = 1u << 20;
    double transfer = 1e18, compute = 1e18;

    (void)iters;
    if (job->rank != 0)
        return;
    for (int k = 0; k < 9; k++) {
        double start = aq_bench_now(), middle;

        aq_overlap_transfer(job, row, 0);
        middle = aq_bench_now();
        aq_compute(trial);
        transfer = MIN(transfer, middle - start);
        compute = MIN(compute, aq_bench_now() - middle);
    }
    job->overlap_steps = (uint64_t)(transfer / compute * (double)trial) + 1;
}

static void aq_overlap(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++)
        aq_overlap_transfer(job, row, job->overlap_steps);
}

static void aq_overlap_limit(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    (void)row;
    for (uint64_t i = 0; i < iters; i++)
        aq_compute(job->overlap_steps);
}

static bool aq_overlap_possible(const struct aq_job *job, const struct aq_row *row)
{
    return row->size <= job->pool_size;
}

const struct aq_row_kind aq_kind_overlap_put = {
    .name = "overlap_put",
    .limit_name = "computation alone",
    .subject = aq_overlap,
    .limit = aq_overlap_limit,
    .prepare = aq_overlap_prepare,
    .possible = aq_overlap_possible,
};

const struct aq_row_kind aq_kind_overlap_get = {
    .name = "overlap_get",
    .limit_name = "computation alone",
    .subject = aq_overlap,
    .limit = aq_overlap_limit,
    .prepare = aq_overlap_prepare,
    .possible = aq_overlap_possible,
};
