/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_vis.c - rows of strided transfers: a 2-D section of a matrix of doubles, put to or fetched
 * from rank 1.
 * Owns      nothing
 * Threads   one in every process
 * Uses      bench.h, gasnet_vis.h
 *
 * The section has n rows of n doubles; the matrix it is cut out of has rows twice as long, on both
 * sides. In the rows named _gaps its doubles lie in every second column, so that nothing is
 * contiguous. The limits: the two loops that a programmer would write over mapped memory; one
 * contiguous put for each run; memcpy of as many bytes.
 */
#include "bench.h"

#include <gasnet_vis.h>

#include <math.h>
#include <string.h>

struct aq_section {
    double *mine, *owner,
        *here;          /* first element: local; remote as its owner and as this process sees it */
    size_t n, ld, step; /* rows and columns; doubles from row to row and from column to column */
};

static struct aq_section aq_section_of(const struct aq_job *job, const struct aq_row *row)
{
    const size_t n = (size_t)sqrt((double)(row->size / sizeof(double)));

    return (struct aq_section){
        .mine = (double *)(void *)job->buffer,
        .owner = (double *)(void *)(job->peer_owner + AQ_POOL_OFFSET),
        .here =
            job->peer_local == NULL ? NULL : (double *)(void *)(job->peer_local + AQ_POOL_OFFSET),
        .n = n,
        .ld = 2 * n,
        .step = strstr(row->kind->name, "_gaps") != NULL ? 2 : 1,
    };
}

static void aq_strided_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const ptrdiff_t stride[2] = { (ptrdiff_t)(s.step * sizeof(double)),
                                  (ptrdiff_t)(s.ld * sizeof(double)) };
    const size_t count[2] = { s.n, s.n };

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedPutBlocking(job->tm, 1, s.owner, stride, s.mine, stride, sizeof(double),
                                   count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

static void aq_strided_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const ptrdiff_t stride[2] = { (ptrdiff_t)(s.step * sizeof(double)),
                                  (ptrdiff_t)(s.ld * sizeof(double)) };
    const size_t count[2] = { s.n, s.n };

    for (uint64_t i = 0; i < iters; i++) {
        gex_VIS_StridedGetBlocking(job->tm, s.mine, stride, 1, s.owner, stride, sizeof(double),
                                   count, 2, 0);
        aq_limit_compiler_barrier();
    }
}

/* What a programmer writes for each of the two shapes. Not inlined, so that the compiler knows no
 * more than the library does. */
static __attribute__((noinline)) void aq_loop_rows(double *restrict dst, const double *restrict src,
                                                   size_t n, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + j] = src[i * ld + j];
}

static __attribute__((noinline)) void aq_loop_gaps(double *restrict dst, const double *restrict src,
                                                   size_t n, size_t ld)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            dst[i * ld + 2 * j] = src[i * ld + 2 * j];
}

static void aq_loop(double *dst, const double *src, const struct aq_section *s, uint64_t iters)
{
    for (uint64_t i = 0; i < iters; i++) {
        if (s->step == 1)
            aq_loop_rows(dst, src, s->n, s->ld);
        else
            aq_loop_gaps(dst, src, s->n, s->ld);
        aq_limit_compiler_barrier();
    }
}

static void aq_loop_put(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    aq_loop(s.here, s.mine, &s, iters);
}

static void aq_loop_get(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    aq_loop(s.mine, s.here, &s, iters);
}

/* A put for each contiguous run: a row, or a single double. */
static void aq_run_by_run(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);
    const size_t run = s.step == 1 ? s.n : 1;

    for (uint64_t i = 0; i < iters; i++)
        for (size_t r = 0; r < s.n; r++)
            for (size_t c = 0; c < s.n; c += run)
                gex_RMA_PutBlocking(job->tm, 1, s.owner + r * s.ld + c * s.step,
                                    s.mine + r * s.ld + c * s.step, run * sizeof(double), 0);
}

static void aq_same_bytes(struct aq_job *job, const struct aq_row *row, uint64_t iters)
{
    const struct aq_section s = aq_section_of(job, row);

    for (uint64_t i = 0; i < iters; i++) {
        memcpy(s.here, s.mine, row->size);
        aq_limit_compiler_barrier();
    }
}

const struct aq_row_kind aq_kind_strided_put = { .name = "strided_put",
                                                 .limit_name = "copy loop",
                                                 .subject = aq_strided_put,
                                                 .limit = aq_loop_put };
const struct aq_row_kind aq_kind_strided_put_gaps = { .name = "strided_put_gaps",
                                                      .limit_name = "copy loop",
                                                      .subject = aq_strided_put,
                                                      .limit = aq_loop_put };
const struct aq_row_kind aq_kind_strided_get = { .name = "strided_get",
                                                 .limit_name = "copy loop",
                                                 .subject = aq_strided_get,
                                                 .limit = aq_loop_get };
const struct aq_row_kind aq_kind_strided_get_gaps = { .name = "strided_get_gaps",
                                                      .limit_name = "copy loop",
                                                      .subject = aq_strided_get,
                                                      .limit = aq_loop_get };
const struct aq_row_kind aq_kind_strided_runs = { .name = "strided_by_runs",
                                                  .limit_name = "a put for each run",
                                                  .subject = aq_strided_put,
                                                  .limit = aq_run_by_run };
const struct aq_row_kind aq_kind_strided_runs_gaps = { .name = "strided_gaps_by_runs",
                                                       .limit_name = "a put for each run",
                                                       .subject = aq_strided_put,
                                                       .limit = aq_run_by_run };
const struct aq_row_kind aq_kind_strided_bytes = { .name = "strided_by_bytes",
                                                   .limit_name = "memcpy of the same bytes",
                                                   .subject = aq_strided_put,
                                                   .limit = aq_same_bytes };
